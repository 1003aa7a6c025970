// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/endpoint.h"

#include <type_traits>

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
                             .counter_write_high = HighByte(write),
                             .flags = TxFlags()});
  if (!context.ok()) {
    return context.error();
  }
  tx_created_ = true;
  auto bound = tx_->Bind(nic_.device(), context.value());
  tx_cq()->Attach(*tx_);
  peers()->Attach(TxOpDoorbell(nic_.device(), tx_->context()));
  return bound;
}

// Peers that have tags, as those of an endpoint with tags have, take deferrable
// sends.
uint8_t Endpoint::TxFlags() const noexcept {
  return options_.contexts.tagged &&
                 nic_.info().Has(contract::kCapabilityDeferrable)
             ? contract::kTxCtxFlagDeferrable
             : uint8_t{0};
}

Result<bool> Endpoint::EnableRx() {
  const backend::ReceiveContexts& contexts = options_.contexts;
  if (options_.rx_cq == nullptr) {
    return true;
  }
  RxOptions options = MakeRxOptions();
  if (contexts.untagged) {
    auto created = contexts.matches
                       ? CreateRx(options, RxCommand(/*tagged=*/false), &match_)
                       : CreateRx(options, RxCommand(/*tagged=*/false), &rx_);
    if (!created.ok()) {
      return created.error();
    }
  }
  options.tagged = true;
  return contexts.tagged
             ? CreateRx(options, RxCommand(/*tagged=*/true), &tagged_)
             : Result<bool>(true);
}

RxOptions Endpoint::MakeRxOptions() const {
  return {.operations = options_.rx_operations,
          .copy_limit_bytes =
              options_.receives_in_buffer ? 0 : options_.copy_limit_bytes,
          .peers = options_.name_senders ? peers() : nullptr,
          .refuse_strangers = options_.refuse_strangers,
          .in_place = options_.counters.receive != nullptr,
          .report_targets = options_.report_targets,
          .owner_context = options_.owner_context,
          .on_refused = options_.on_refused,
          .directory = peers(),
          .unexpected_bytes = options_.contexts.unexpected_bytes};
}

contract::AdminCreateRx Endpoint::RxCommand(bool tagged) const noexcept {
  const uint32_t cq = rx_cq()->number();
  const uint16_t receive = ReferenceTo(options_.counters.receive);
  const uint16_t read = ReferenceTo(options_.counters.remote_read);
  const uint16_t write = ReferenceTo(options_.counters.remote_write);
  contract::AdminCreateRx command = {
      .endpoint = grant_.endpoint,
      .cq = LowByte(cq),
      .rx_index = 0,
      .counter_recv = LowByte(receive),
      .flags = tagged ? contract::kRxCtxFlagTagged : uint8_t{0},
      .cq_high = HighByte(cq),
      .counter_recv_high = HighByte(receive)};
  if (!tagged) {
    command.counter_remote_read = LowByte(read);
    command.counter_remote_read_high = HighByte(read);
    command.counter_remote_write = LowByte(write);
    command.counter_remote_write_high = HighByte(write);
    command.flags =
        options_.region_events ? contract::kRxCtxFlagRegionEvent : uint8_t{0};
  }
  return command;
}

template <typename Queue>
Result<bool> Endpoint::CreateRx(const RxOptions& options,
                                contract::AdminCreateRx command,
                                std::unique_ptr<Queue>* queue) {
  auto made = Queue::Create(nic_.device(), options);
  if (!made.ok()) {
    return made.error();
  }
  command.ring_base = ToInteger(made.value()->ring_iova());
  command.head_cell = ToInteger(made.value()->head_cell_iova());
  command.ring_log2 = made.value()->ring_log2();
  if constexpr (std::is_same_v<Queue, MatchQueue>) {
    command.flags |= contract::kRxCtxFlagMatch;
    command.unexpected_bytes = options.unexpected_bytes;
    command.unexpected_base = ToInteger(made.value()->unexpected_iova());
    command.unexpected_messages = options_.contexts.unexpected_messages;
    command.copy_limit = options_.contexts.copy_limit_bytes;
    command.receives = made.value()->receives();
  }
  auto context = nic_.admin().CreateRx(command);
  if (!context.ok()) {
    return context.error();
  }
  *queue = std::move(made.value());
  auto bound = (*queue)->Bind(nic_.device(), context.value());
  rx_cq()->Attach(**queue);
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
  tx_.reset();
  DestroyRx(&rx_);
  DestroyRx(&match_);
  DestroyRx(&tagged_);
}

template <typename Queue>
void Endpoint::DestroyRx(std::unique_ptr<Queue>* queue) noexcept {
  if (*queue == nullptr) {
    return;
  }
  rx_cq()->Detach(**queue);
  (void)nic_.admin().DestroyRx((*queue)->context());
  rx_cq()->Forget(**queue);
  (*queue)->Abandon();
  queue->reset();
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
