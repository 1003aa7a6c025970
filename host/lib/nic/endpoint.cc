// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/endpoint.h"

#include "driver/queue/doorbells.h"
#include "hw/contract/split_number.h"

namespace heddle::nic {

using contract::HighByte;
using contract::LowByte;

namespace {

uint16_t ReferenceTo(const backend::Counter* counter) noexcept {
  return counter == nullptr ? uint16_t{0}
                            : static_cast<const Counter*>(counter)->reference();
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::Claim(
    Nic& nic, const Name& name, contract::AdminAnswer* refusal) {
  std::unique_ptr<Endpoint> endpoint(new Endpoint(nic));
  auto grant = nic.admin().CreateEndpoint(
      {.port = name.port,
       .job_id = name.job_id,
       .flags = name.relative ? contract::kEndpointFlagRelative : uint8_t{0}},
      refusal);
  if (!grant.ok()) {
    return grant.error();
  }
  endpoint->grant_ = grant.value();
  endpoint->claimed_ = true;
  return endpoint;
}

Result<bool> Endpoint::Enable(const Options& options) {
  options_ = options;
  for (auto enable : {&Endpoint::EnableTx, &Endpoint::EnableRx}) {
    auto enabled = (this->*enable)();
    if (!enabled.ok()) {
      Disable();
      return enabled.error();
    }
  }
  return true;
}

Result<bool> Endpoint::EnableTx() {
  if (options_.tx_cq == nullptr) {
    return true;
  }
  auto queue = TxQueue::Create(
      nic_.device(),
      {.operations = options_.tx_operations,
       .copy_limit_bytes = options_.copy_limit_bytes,
       .peers = peers(),
       .scatter_gather = nic_.info().Has(contract::kCapabilityScatterGather),
       .more = nic_.info().Has(contract::kCapabilityMore),
       .reads_in_place = options_.counters.read != nullptr,
       .spill = nic_.info().Has(contract::kCapabilitySpill),
       .completions = tx_cq(),
       .on_refused = options_.on_refused},
      &tx_cq()->credit());
  if (!queue.ok()) {
    return queue.error();
  }
  tx_ = std::move(queue.value());
  const uint32_t cq = tx_cq()->number();
  const uint16_t send = ReferenceTo(options_.counters.send);
  const uint16_t read = ReferenceTo(options_.counters.read);
  const uint16_t write = ReferenceTo(options_.counters.write);
  auto context =
      nic_.admin().CreateTx({.endpoint = grant_.endpoint,
                             .ring_base = ToInteger(tx_->ring_iova()),
                             .head_cell = ToInteger(tx_->head_cell_iova()),
                             .av_base = ToInteger(peers()->iova()),
                             .spill_base = ToInteger(tx_->spill_iova()),
                             .av_entries = AddressTable::kMaxEntries,
                             .cq = LowByte(cq),
                             .ring_log2 = tx_->ring_log2(),
                             .traffic_class = options_.dscp,
                             .cq_high = HighByte(cq),
                             .msg_order = options_.msg_order,
                             .counter_send = LowByte(send),
                             .counter_read = LowByte(read),
                             .counter_write = LowByte(write),
                             .counter_send_high = HighByte(send),
                             .counter_read_high = HighByte(read),
                             .counter_write_high = HighByte(write)});
  if (!context.ok()) {
    return context.error();
  }
  tx_created_ = true;
  auto bound = tx_->Bind(nic_.device(), context.value());
  tx_cq()->Attach(*tx_);
  peers()->Attach(TxOpDoorbell(nic_.device(), tx_->context()));
  return bound;
}

Result<bool> Endpoint::EnableRx() {
  if (options_.rx_cq == nullptr) {
    return true;
  }
  auto queue = RxQueue::Create(
      nic_.device(), {.operations = options_.rx_operations,
                      .copy_limit_bytes = options_.copy_limit_bytes,
                      .peers = options_.name_senders ? peers() : nullptr,
                      .refuse_strangers = options_.refuse_strangers,
                      .in_place = options_.counters.receive != nullptr,
                      .report_targets = options_.report_targets,
                      .owner_context = options_.owner_context,
                      .on_refused = options_.on_refused});
  if (!queue.ok()) {
    return queue.error();
  }
  rx_ = std::move(queue.value());
  const uint32_t cq = rx_cq()->number();
  const uint16_t receive = ReferenceTo(options_.counters.receive);
  const uint16_t read = ReferenceTo(options_.counters.remote_read);
  const uint16_t write = ReferenceTo(options_.counters.remote_write);
  auto context = nic_.admin().CreateRx(
      {.endpoint = grant_.endpoint,
       .ring_base = ToInteger(rx_->ring_iova()),
       .head_cell = ToInteger(rx_->head_cell_iova()),
       .cq = LowByte(cq),
       .ring_log2 = rx_->ring_log2(),
       .rx_index = 0,
       .counter_recv = LowByte(receive),
       .counter_remote_read = LowByte(read),
       .counter_remote_write = LowByte(write),
       .flags = options_.region_events ? contract::kRxCtxFlagRegionEvent
                                       : uint8_t{0},
       .cq_high = HighByte(cq),
       .counter_recv_high = HighByte(receive),
       .counter_remote_read_high = HighByte(read),
       .counter_remote_write_high = HighByte(write)});
  if (!context.ok()) {
    return context.error();
  }
  rx_created_ = true;
  auto bound = rx_->Bind(nic_.device(), context.value());
  rx_cq()->Attach(*rx_);
  return bound;
}

void Endpoint::Disable() noexcept {
  // A device that does not answer is lost; unmapping keeps it off the memory.
  if (tx_created_) {
    peers()->Detach(TxOpDoorbell(nic_.device(), tx_->context()));
    tx_cq()->Detach(*tx_);
    (void)nic_.admin().DestroyTx(tx_->context());
    tx_cq()->Forget(*tx_);
    tx_->Abandon();
    tx_created_ = false;
  }
  if (rx_created_) {
    rx_cq()->Detach(*rx_);
    (void)nic_.admin().DestroyRx(rx_->context());
    rx_cq()->Forget(*rx_);
    rx_->Abandon();
    rx_created_ = false;
  }
  tx_.reset();
  rx_.reset();
}

Endpoint::~Endpoint() {
  Disable();
  if (claimed_) {
    (void)nic_.admin().DestroyEndpoint(grant_.endpoint);
    // The next endpoint of this port may be another function's: PDCs of this
    // one's peers, which are not told apart here, are opened again when they
    // are needed.
    if (nic_.info().Has(contract::kCapabilityClosePdcs)) {
      (void)nic_.admin().ClosePdcs();
    }
  }
}

}  // namespace heddle::nic
