// SPDX-License-Identifier: Apache-2.0
#include "tests/system/harness/bare_endpoint.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "driver/queue/doorbells.h"

namespace heddle {
namespace {

// All of libfabric's low `msg_order` bits.
constexpr uint64_t kEveryOrder = 0x1ff;

using contract::Completion;

// Creates a completion queue in fresh memory; its number.
std::optional<uint32_t> CreateCq(Device& device, AdminQueue& admin,
                                 uint8_t log2, DmaBuffer& memory,
                                 std::optional<CompletionQueue>& queue) {
  const size_t entries = size_t{1} << log2;
  auto pages = DmaBuffer::Create(device, entries * sizeof(Completion));
  if (!pages.ok()) {
    return std::nullopt;
  }
  memory = std::move(pages.value());
  auto number =
      admin.CreateCq({.base = ToInteger(memory.iova()), .log2 = log2});
  if (!number.ok()) {
    return std::nullopt;
  }
  auto created =
      CompletionQueue::Create(memory.entries<const Completion>(entries),
                              CqConsumerDoorbell(device, number.value()));
  if (!created.ok()) {
    return std::nullopt;
  }
  queue.emplace(created.value());
  return number.value();
}

std::optional<Completion> Poll(std::optional<CompletionQueue>& queue) {
  const Completion* entry = queue->Peek();
  if (entry == nullptr) {
    return std::nullopt;
  }
  const Completion copy = *entry;
  queue->Pop();
  return copy;
}

}  // namespace

std::unique_ptr<BareEndpoint> BareEndpoint::Create(
    Device& device, AdminQueue& admin, const BareEndpointOptions& options,
    std::string* error) {
  std::unique_ptr<BareEndpoint> ep(new BareEndpoint(device, admin));
  auto grant = admin.CreateEndpoint(
      {.port = options.port,
       .job_id = options.job_id,
       .flags =
           options.relative ? contract::kEndpointFlagRelative : uint8_t{0}});
  if (!grant.ok()) {
    *error = "create endpoint on port " + std::to_string(options.port) + ": " +
             std::strerror(static_cast<int>(grant.error()));
    return nullptr;
  }
  ep->grant_ = grant.value();
  ep->endpoint_ = ep->grant_.endpoint;
  if (!ep->CreateQueues(options)) {
    *error = "create queues: " + admin.failure();
    return nullptr;
  }
  return ep;
}

bool BareEndpoint::CreateQueues(const BareEndpointOptions& options) {
  const size_t tx_slots = size_t{1} << options.tx_log2;
  const size_t rx_slots = size_t{1} << options.rx_log2;
  tx_slots_count_ = tx_slots;
  if (options.counters && !CreateCounters()) {
    return false;
  }
  auto av = DmaBuffer::Create(device_,
                              options.av_entries * sizeof(contract::AvEntry));
  auto tx = DmaBuffer::Create(device_, tx_slots * sizeof(contract::TxDesc));
  auto rx = DmaBuffer::Create(device_, rx_slots * sizeof(contract::RxDesc));
  auto cells = DmaBuffer::Create(device_, 64);
  if (!av.ok() || !tx.ok() || !rx.ok() || !cells.ok()) {
    return false;
  }
  av_ = std::move(av.value());
  tx_slots_ = std::move(tx.value());
  rx_slots_ = std::move(rx.value());
  cells_ = std::move(cells.value());
  uint64_t spill_iova = options.spill_iova;
  if (options.spill && spill_iova == 0) {
    auto spill = DmaBuffer::Create(
        device_,
        tx_slots * (sizeof(contract::TxDesc) + sizeof(contract::SpillMark)));
    if (!spill.ok()) {
      return false;
    }
    spill_ = std::move(spill.value());
    spill_iova = ToInteger(spill_.iova());
  }
  if (options.sends) {
    tx_cq_number_ =
        CreateCq(device_, admin_, options.cq_log2, tx_entries_, tx_cq_);
  }
  rx_cq_number_ =
      CreateCq(device_, admin_, options.cq_log2, rx_entries_, rx_cq_);
  return rx_cq_number_ && (!options.sends || CreateTx(options, spill_iova)) &&
         (!options.receives || CreateRx(options));
}

bool BareEndpoint::CreateTx(const BareEndpointOptions& options,
                            uint64_t spill_iova) {
  if (!tx_cq_number_) {
    return false;
  }
  auto tx_number = admin_.CreateTx(
      {.endpoint = grant_.endpoint,
       .ring_base = ToInteger(tx_slots_.iova()),
       .head_cell = ToInteger(cells_.iova()),
       .av_base = ToInteger(av_.iova()),
       .spill_base = options.spill ? spill_iova : 0,
       .av_entries = options.av_entries,
       .cq = static_cast<uint8_t>(*tx_cq_number_),
       .ring_log2 = options.tx_log2,
       .traffic_class = options.traffic_class,
       .msg_order = options.ordered ? kEveryOrder : 0,
       .counter_send = Reference(Counted::kSend),
       .counter_read = Reference(Counted::kRead),
       .counter_write = Reference(Counted::kWrite),
       .flags = options.early_release ? contract::kTxCtxFlagEarlyRelease
                                      : uint8_t{0}});
  if (!tx_number.ok()) {
    return false;
  }
  tx_number_ = tx_number.value();
  const auto* cell = reinterpret_cast<const uint64_t*>(cells_.data());
  auto tx_ring = SendRing::Create(
      tx_slots_.entries<contract::TxDesc>(tx_slots_count_), cell,
      TxTailDoorbell(device_, *tx_number_),
      options.push ? TxPushTarget(device_, *tx_number_) : PushTarget{});
  if (!tx_ring.ok()) {
    return false;
  }
  tx_.emplace(tx_ring.value());
  return true;
}

bool BareEndpoint::CreateRx(const BareEndpointOptions& options) {
  auto rx_number = admin_.CreateRx(
      {.endpoint = grant_.endpoint,
       .ring_base = ToInteger(rx_slots_.iova()),
       .head_cell = ToInteger(cells_.iova()) + sizeof(uint64_t),
       .cq = static_cast<uint8_t>(*rx_cq_number_),
       .ring_log2 = options.rx_log2,
       .counter_recv = Reference(Counted::kRecv),
       .counter_remote_read = Reference(Counted::kRemoteRead),
       .counter_remote_write = Reference(Counted::kRemoteWrite),
       .flags = options.events ? contract::kRxCtxFlagRegionEvent : uint8_t{0}});
  if (!rx_number.ok()) {
    return false;
  }
  rx_number_ = rx_number.value();
  auto rx_ring = RecvRing::Create(
      rx_slots_.entries<contract::RxDesc>(size_t{1} << options.rx_log2),
      reinterpret_cast<const uint64_t*>(cells_.data()) + 1,
      RxTailDoorbell(device_, *rx_number_), RxOpDoorbell(device_, *rx_number_));
  if (!rx_ring.ok()) {
    return false;
  }
  rx_.emplace(rx_ring.value());
  return true;
}

BareEndpoint::~BareEndpoint() {
  // A device that fails here has failed its test already.
  if (tx_number_) {
    (void)admin_.DestroyTx(*tx_number_);
  }
  if (rx_number_) {
    (void)admin_.DestroyRx(*rx_number_);
  }
  if (tx_cq_number_) {
    (void)admin_.DestroyCq(*tx_cq_number_);
  }
  if (rx_cq_number_) {
    (void)admin_.DestroyCq(*rx_cq_number_);
  }
  for (const uint32_t counter : counters_) {
    (void)admin_.DestroyCounter(counter);
  }
  if (endpoint_) {
    (void)admin_.DestroyEndpoint(*endpoint_);
  }
}

void BareEndpoint::Forget() {
  tx_number_ = rx_number_ = tx_cq_number_ = rx_cq_number_ = endpoint_ =
      std::nullopt;
  counters_.clear();
}

uint32_t BareEndpoint::AddPeer(const sim::frame::WireAddress& address,
                               const EndpointGrant& grant) {
  const auto hop = admin_.ResolveNextHop(
      {.lo = address.lo, .hi = address.hi, .ipv6 = address.ipv6});
  // An address that the device refuses outright is the test's wish.
  if (!hop.ok() && hop.error() != Errno{EINVAL}) {
    throw std::runtime_error("no next hop for " + address.Text());
  }
  av_.entries<contract::AvEntry>(peers_ + 1)[peers_] = {
      .fa_lo = address.lo,
      .fa_hi = address.hi,
      .pid_on_fep = grant.pid_on_fep,
      .resource_index = grant.resource_index,
      .next_hop = static_cast<uint16_t>(hop.ok() ? hop.value() : 0),
      .flags = static_cast<uint8_t>(
          contract::kAvFlagValid | (address.ipv6 ? contract::kAvFlagIpv6 : 0))};
  return peers_++;
}

bool BareEndpoint::CreateCounters() {
  auto cells =
      DmaBuffer::Create(device_, kCounted * sizeof(contract::CounterCell));
  if (!cells.ok()) {
    return false;
  }
  counter_cells_ = std::move(cells.value());
  for (size_t i = 0; i < kCounted; ++i) {
    const auto counter = admin_.CreateCounter(Iova{
        ToInteger(counter_cells_.iova()) + i * sizeof(contract::CounterCell)});
    if (!counter.ok()) {
      return false;
    }
    counters_.push_back(counter.value());
  }
  return true;
}

uint8_t BareEndpoint::Reference(Counted counted) const {
  return counters_.empty() ? uint8_t{0}
                           : static_cast<uint8_t>(counter(counted) + 1);
}

const contract::CounterCell& BareEndpoint::Cell(Counted counted) const {
  return counter_cells_.entries<const contract::CounterCell>(
      kCounted)[static_cast<size_t>(counted)];
}

contract::TxDesc& BareEndpoint::LastTxDesc() {
  return tx_slots_.entries<contract::TxDesc>(
      tx_slots_count_)[tx_->last_position() % tx_slots_count_];
}

std::optional<Completion> BareEndpoint::PollTx() {
  auto completion = Poll(tx_cq_);
  if (completion) {
    (void)tx_->ReleaseTo(completion->queue_head);
  }
  return completion;
}

std::optional<Completion> BareEndpoint::PollRx() {
  auto completion = Poll(rx_cq_);
  if (completion) {
    (void)rx_->ReleaseTo(completion->queue_head);
  }
  return completion;
}

}  // namespace heddle
