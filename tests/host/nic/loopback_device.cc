// SPDX-License-Identifier: Apache-2.0
#include "tests/host/nic/loopback_device.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace heddle::test {
namespace {

using contract::CompletionKind;
using contract::Statistic;
using contract::Status;

constexpr uint32_t kLimits = 0x10101010;  // 16 of each kind.

void* HostAddress(uint64_t iova) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): host memory is this process.
  return reinterpret_cast<void*>(iova - LoopbackDevice::kIovaOffset);
}

uint64_t WithHalf(uint64_t whole, bool high, uint32_t half) {
  return high ? (whole & 0xffff'ffff) | uint64_t{half} << 32
              : (whole >> 32 << 32) | half;
}

}  // namespace

LoopbackDevice::LoopbackDevice(std::shared_ptr<LoopbackWire> wire,
                               LoopbackOptions options)
    : wire_(std::move(wire)),
      options_(options),
      board_(firmware::TestBoard()),
      program_(bus_, *this, object_memory_, board_) {
  const std::lock_guard lock(wire_->mutex);
  for (int& fd : interrupts_) {
    fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  }
  bus_.context_limits = kLimits;
  bus_.region_limits = 0;
  program_.Start();
  wire_->devices.push_back(this);
  if (options_.own_thread) {
    thread_ = std::thread([this] { RunThread(); });
  }
}

LoopbackDevice::~LoopbackDevice() {
  {
    const std::lock_guard lock(doorbell_mutex_);
    stop_ = true;
  }
  rung_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
  const std::lock_guard lock(wire_->mutex);
  std::erase(wire_->devices, this);
  for (const int fd : interrupts_) {
    (void)close(fd);
  }
}

// ------------------------------------------------------------ BAR0 and memory

uint32_t LoopbackDevice::ReadRegister32(uint32_t offset) {
  const std::lock_guard lock(wire_->mutex);
  switch (offset) {
    case contract::kBar0MagicOffset:
      return contract::kBar0MagicReset;
    case contract::kBar0VersionOffset:
      return bus_.version;
    case contract::kBar0ContextLimitsOffset:
      return bus_.context_limits;
    case contract::kBar0TransportLimitsOffset:
      return bus_.transport_limits;
    case contract::kBar0DatapathOffset:
      return bus_.datapath;
    case contract::kBar0RegionLimitsOffset:
      return bus_.region_limits;
    case contract::kBar0ContextCountsOffset:
      return bus_.context_counts;
    case contract::kBar0QueueCountsOffset:
      return bus_.queue_counts;
    case contract::kBar0RegionCountOffset:
      return bus_.region_count;
    case contract::kBar0DeviceStatusOffset:
      return bus_.status;
    case contract::kBar0FatalCauseOffset:
      return bus_.fatal_cause;
    case contract::kBar0DeviceControlOffset:
      return bus_.reset_requested ? contract::kBar0DeviceControlResetMask : 0;
    case contract::kBar0AdminTailOffset:
      return bus_.admin_tail;
    default:
      return 0;
  }
}

void LoopbackDevice::ReadIdentity(std::span<uint64_t> words) {
  LoopbackDevice device(std::make_shared<LoopbackWire>(),
                        {.own_thread = false});
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] =
        device.ReadRegister64(static_cast<uint32_t>(i * sizeof(uint64_t)));
  }
}

uint64_t LoopbackDevice::ReadRegister64(uint32_t offset) {
  const std::lock_guard lock(wire_->mutex);
  if (offset == contract::kBar0CapabilityOffset) {
    return contract::kCapabilitySend | contract::kCapabilityRod |
           contract::kCapabilityInline | contract::kCapabilityWriteErrors;
  }
  if (offset >= contract::kBar0StatisticsOffset) {
    return statistics_.at((offset - contract::kBar0StatisticsOffset) /
                          contract::kBar0StatisticsStride);
  }
  return ReadRegister32(offset) | uint64_t{ReadRegister32(offset + 4)} << 32;
}

void LoopbackDevice::WriteRegister32(uint32_t offset, uint32_t value) {
  {
    const std::lock_guard lock(wire_->mutex);
    switch (offset) {
      case contract::kBar0AdminCommandBaseOffset:
      case contract::kBar0AdminCommandBaseOffset + 4:
        bus_.admin_command_base =
            WithHalf(bus_.admin_command_base,
                     offset != contract::kBar0AdminCommandBaseOffset, value);
        break;
      case contract::kBar0AdminAnswerBaseOffset:
      case contract::kBar0AdminAnswerBaseOffset + 4:
        bus_.admin_answer_base =
            WithHalf(bus_.admin_answer_base,
                     offset != contract::kBar0AdminAnswerBaseOffset, value);
        break;
      case contract::kBar0AdminSizeOffset:
        bus_.admin_log2 = value;
        break;
      case contract::kBar0AdminTailOffset:
        bus_.admin_tail = static_cast<uint16_t>(value);
        break;
      case contract::kBar0DeviceControlOffset:
        bus_.reset_requested |= (value & 1) != 0;
        break;
      default:
        break;
    }
  }
  rung_.notify_all();
}

void LoopbackDevice::WriteRegister64(uint32_t offset, uint64_t value) {
  WriteRegister32(offset, static_cast<uint32_t>(value));
  WriteRegister32(offset + 4, static_cast<uint32_t>(value >> 32));
}

Result<Iova> LoopbackDevice::Map(void* address, size_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(address);
  if (bytes == 0 || start + bytes < start) {
    return Errno{EINVAL};
  }
  const std::lock_guard lock(wire_->mutex);
  ++mappings_[{start + kIovaOffset, bytes}];
  return Iova{start + kIovaOffset};
}

void LoopbackDevice::Unmap(Iova iova, size_t bytes) {
  if (on_unmap) {
    on_unmap();
  }
  const std::lock_guard lock(wire_->mutex);
  const auto found = mappings_.find({static_cast<uint64_t>(iova), bytes});
  if (found == mappings_.end()) {
    Fail("unmapped what was not mapped");
    return;
  }
  if (--found->second == 0) {
    mappings_.erase(found);
  }
}

bool LoopbackDevice::IsMapped(uint64_t iova, size_t bytes) const {
  // Contiguous mappings serve one access together.
  uint64_t at = iova;
  while (at < iova + bytes) {
    const auto found = std::find_if(mappings_.begin(), mappings_.end(),
                                    [&](const auto& entry) {
                                      const auto& [start, length] = entry.first;
                                      return start <= at && at < start + length;
                                    });
    if (found == mappings_.end()) {
      return false;
    }
    at = found->first.first + found->first.second;
  }
  return true;
}

bool LoopbackDevice::Read(uint64_t address, void* data, size_t bytes) {
  if (!IsMapped(address, bytes)) {
    return false;
  }
  std::memcpy(data, HostAddress(address), bytes);
  return true;
}

bool LoopbackDevice::Write(uint64_t address, const void* data, size_t bytes) {
  if (!IsMapped(address, bytes)) {
    return false;
  }
  auto* to = static_cast<std::byte*>(HostAddress(address));
  if (bytes < sizeof(uint64_t) || (address + bytes) % sizeof(uint64_t) != 0) {
    std::memcpy(to, data, bytes);
    return true;
  }
  // The last eight bytes become visible last, as a device promises.
  std::memcpy(to, data, bytes - sizeof(uint64_t));
  uint64_t last = 0;
  std::memcpy(&last, static_cast<const std::byte*>(data) + bytes - sizeof(last),
              sizeof(last));
  __atomic_store_n(reinterpret_cast<uint64_t*>(to + bytes - sizeof(last)), last,
                   __ATOMIC_RELEASE);
  return true;
}

int LoopbackDevice::interrupt_fd(uint32_t vector) {
  return vector < interrupts_.size() ? interrupts_[vector] : -1;
}

Result<bool> LoopbackDevice::Reset() {
  WriteRegister32(contract::kBar0DeviceControlOffset, 1);
  for (int i = 0; i < 1000; ++i) {
    Step();
    if (ReadRegister32(contract::kBar0DeviceControlOffset) == 0) {
      return true;
    }
  }
  return Errno{EIO};
}

bool LoopbackDevice::failed() const {
  const std::lock_guard lock(wire_->mutex);
  return !failure_.empty();
}

std::string LoopbackDevice::failure() const {
  const std::lock_guard lock(wire_->mutex);
  return failure_;
}

void LoopbackDevice::Fail(const std::string& reason) {
  {
    const std::lock_guard lock(wire_->mutex);
    if (!failure_.empty()) {
      return;
    }
    failure_ = reason;
  }
  (void)std::fprintf(stderr, "loopback device failed: %s\n", reason.c_str());
  ReportFailure();
}

size_t LoopbackDevice::mapping_count() const {
  const std::lock_guard lock(wire_->mutex);
  return mappings_.size();
}

uint32_t LoopbackDevice::doorbells() const {
  const std::lock_guard lock(doorbell_mutex_);
  return doorbell_count_;
}

uint8_t LoopbackDevice::dscp(uint32_t context) const {
  const std::lock_guard lock(wire_->mutex);
  return tx_cfg(context).traffic_class;
}

size_t LoopbackDevice::waiting_messages() const {
  const std::lock_guard lock(wire_->mutex);
  size_t waiting = 0;
  for (const TxState& state : tx_) {
    waiting += state.messages.size();
  }
  return waiting;
}

// ---------------------------------------------------------------------- ports

firmware::PortClaim LoopbackDevice::ClaimPort(const firmware::PortName& name) {
  constexpr uint32_t kFirstFree = 40000;
  auto& ports = wire_->ports;
  uint32_t port = name.port;
  if (port == 0) {
    port = kFirstFree;
    while (ports.contains({options_.ipv4, port})) {
      ++port;
    }
  }
  const auto [entry, fresh] =
      ports.try_emplace({options_.ipv4, port}, static_cast<uint32_t>(getpid()));
  return {.granted = fresh,
          .exhausted = false,
          .port = port,
          .owner = entry->second};
}

void LoopbackDevice::ReleasePort(const firmware::PortName& name) {
  wire_->ports.erase({options_.ipv4, name.port});
}

// ------------------------------------------------------------------- progress

Doorbell LoopbackDevice::doorbell(uint32_t bar2_offset) {
  return {.notify =
              [](void* cookie, uint32_t offset, uint64_t value) {
                auto* device = static_cast<LoopbackDevice*>(cookie);
                {
                  const std::lock_guard lock(device->doorbell_mutex_);
                  device->doorbells_.emplace_back(offset, value);
                  ++device->doorbell_count_;
                }
                device->rung_.notify_all();
              },
          .cookie = this,
          .bar2_offset = bar2_offset};
}

ProgressHook LoopbackDevice::progress_hook() {
  return {
      .step =
          [](void* cookie) { static_cast<LoopbackDevice*>(cookie)->Step(); },
      .cookie = this};
}

void LoopbackDevice::RunThread() {
  // Short enough for the dead-peer times of tests.
  constexpr std::chrono::milliseconds kLongestSleep{5};
  while (true) {
    {
      std::unique_lock lock(doorbell_mutex_);
      rung_.wait_for(lock, kLongestSleep);
      if (stop_) {
        return;
      }
    }
    Step();
  }
}

void LoopbackDevice::Step() {
  const std::lock_guard lock(wire_->mutex);
  for (LoopbackDevice* device : wire_->devices) {
    device->ServeSelf();
  }
}

void LoopbackDevice::ServeSelf() {
  if (!failure_.empty()) {
    return;
  }
  if (bus_.HasEvent()) {
    program_.Step();
    ForgetRewritten();
  }
  TakeDoorbells();
  for (uint32_t i = 0; i < kContexts; ++i) {
    if (rx_cfg(i).enable != 0) {
      ServeCancels(i);
    }
    if (tx_cfg(i).enable != 0) {
      FetchAll(i);
      DeliverAll(i);
    }
  }
}

// A context that firmware writes starts anew, or ends.
void LoopbackDevice::ForgetRewritten() {
  for (; events_seen_ < bus_.events.size(); ++events_seen_) {
    const firmware::BusEvent& event = bus_.events[events_seen_];
    if (event.kind != firmware::BusEvent::Kind::kTableWrite) {
      continue;
    }
    if (event.index >= kContexts) {
      continue;
    }
    if (event.table == contract::Table::kTxCtx) {
      tx_[event.index] = {};
    } else if (event.table == contract::Table::kRxCtx) {
      rx_[event.index] = {};
    } else if (event.table == contract::Table::kCq) {
      cq_[event.index] = {};
    }
  }
}

void LoopbackDevice::TakeDoorbells() {
  std::deque<std::pair<uint32_t, uint64_t>> taken;
  {
    const std::lock_guard lock(doorbell_mutex_);
    taken.swap(doorbells_);
  }
  for (const auto& [offset, value] : taken) {
    TakeDoorbell(offset, value);
  }
}

void LoopbackDevice::TakeDoorbell(uint32_t offset, uint64_t value) {
  const uint32_t page = offset / contract::kDoorbellPageBytes;
  const uint32_t reg = offset % contract::kDoorbellPageBytes;
  const auto opcode = static_cast<contract::DoorbellOp>(
      value & contract::kDoorbellOpOpcodeMask);
  if (page >= contract::kCqPageFirst) {
    const uint32_t index = page - contract::kCqPageFirst;
    CqState& cq = cq_.at(index);
    const auto count = static_cast<uint32_t>(value);
    if (count - cq.consumed > cq.produced - cq.consumed) {
      Fail("completion queue doorbell beyond what was written");
    }
    cq.consumed = count;
    if ((value & contract::kDoorbellCqConsumerArmMask) != 0) {
      cq.armed = count;
      if (cq.produced != count) {
        cq.armed.reset();
        (void)eventfd_write(interrupts_.at(cq_cfg(index).vector), 1);
      }
    }
    return;
  }
  const bool receive = page >= contract::kRxPageFirst;
  if (receive) {
    RxState& rx = rx_.at(page - contract::kRxPageFirst);
    if (reg == contract::kDoorbellTailOffset) {
      rx.tail = static_cast<uint16_t>(value);
    } else if (opcode == contract::DoorbellOp::kCancel) {
      rx.cancels.push_back(
          static_cast<uint16_t>(value >> contract::kDoorbellOpArgumentLsb));
    }
    return;
  }
  TxState& tx = tx_.at(page - contract::kTxPageFirst);
  if (reg == contract::kDoorbellTailOffset) {
    tx.tail = static_cast<uint16_t>(value);
  } else if (opcode == contract::DoorbellOp::kAvInvalidate) {
    tx.av_cache.clear();
  }
}

// ------------------------------------------------------------------- transmit

void LoopbackDevice::FetchAll(uint32_t context) {
  TxState& tx = tx_[context];
  const contract::TxCtxCfg cfg = tx_cfg(context);
  if (static_cast<uint16_t>(tx.tail - tx.head) > 1U << cfg.ring_log2) {
    Fail("transmit doorbell ran past the ring");
    return;
  }
  while (tx.next != tx.tail && FetchOne(context)) {
  }
}

bool LoopbackDevice::FetchOne(uint32_t context) {
  TxState& tx = tx_[context];
  const contract::TxCtxCfg cfg = tx_cfg(context);
  const uint32_t mask = (1U << cfg.ring_log2) - 1;
  Message message;
  message.position = tx.next;
  message.since = std::chrono::steady_clock::now();
  if (!Read(cfg.ring_base + uint64_t{tx.next & mask} * contract::kDescBytes,
            &message.desc, sizeof(message.desc))) {
    Fail("transmit ring is not mapped");
    return false;
  }
  if (message.desc.position != tx.next) {
    Fail("transmit descriptor carries a wrong position");
    return false;
  }
  if (message.desc.opcode == contract::Opcode::kNop) {
    tx.done[tx.next++] = 1;
    return true;
  }
  message.slots = static_cast<uint16_t>(1 + message.desc.ext_slots);
  if ((tx.next & mask) + message.slots > mask + 1) {
    Fail("extension slots wrap");
    return false;
  }
  tx.next = static_cast<uint16_t>(tx.next + message.slots);
  if (tx.error) {
    message.status = Status::kFlushed;
  } else if (!FetchPayload(context, cfg, message)) {
    tx.error = true;
  }
  tx.messages.push_back(std::move(message));
  return true;
}

bool LoopbackDevice::FetchPayload(uint32_t context,
                                  const contract::TxCtxCfg& cfg,
                                  Message& message) {
  const contract::TxDesc& desc = message.desc;
  const std::optional<uint64_t> buffer = FindBuffer(cfg, message);
  if (!buffer) {
    return false;
  }
  auto [cached, missing] = tx_[context].av_cache.try_emplace(desc.peer);
  if (missing &&
      !Read(cfg.av_base + uint64_t{desc.peer} * sizeof(contract::AvEntry),
            &cached->second, sizeof(contract::AvEntry))) {
    Fail("address vector is not mapped");
    return false;
  }
  message.peer = cached->second;
  if (desc.peer >= cfg.av_entries ||
      (message.peer.flags & contract::kAvFlagValid) == 0) {
    message.status = Status::kBadPeer;
    return true;
  }
  message.payload.resize(desc.length);
  if (desc.length != 0 && !Read(*buffer, message.payload.data(), desc.length)) {
    message.status = Status::kLocalAccess;
    return false;
  }
  return true;
}

std::optional<uint64_t> LoopbackDevice::FindBuffer(
    const contract::TxCtxCfg& cfg, Message& message) {
  const contract::TxDesc& desc = message.desc;
  if (desc.opcode != contract::Opcode::kSend) {
    message.status = Status::kBadOpcode;
    return std::nullopt;
  }
  const bool in_desc = (desc.flags & contract::kTxFlagInline) != 0;
  const bool in_slots = (desc.flags & contract::kTxFlagInlineExt) != 0;
  const bool is_inline = in_desc || in_slots;
  const uint32_t room =
      in_desc ? contract::kInlineBytes : contract::kInjectBytes;
  if (is_inline ? desc.length > room || desc.segments != 0
                : desc.segments != (desc.length == 0 ? 0 : 1) ||
                      desc.local_length != desc.length) {
    message.status = Status::kBadLength;
    return std::nullopt;
  }
  const uint32_t mask = (1U << cfg.ring_log2) - 1;
  const uint64_t slot =
      cfg.ring_base + uint64_t{message.position & mask} * contract::kDescBytes;
  return in_desc    ? slot + contract::kInlineOffset
         : in_slots ? slot + contract::kDescBytes
                    : desc.local_iova;
}

void LoopbackDevice::DeliverAll(uint32_t context) {
  TxState& tx = tx_[context];
  // A peer that cannot take its next message delays no other.
  std::vector<uint32_t> blocked;
  for (auto at = tx.messages.begin(); at != tx.messages.end();) {
    const uint32_t peer = at->desc.peer;
    const bool may =
        std::find(blocked.begin(), blocked.end(), peer) == blocked.end();
    if (may && DeliverOne(context, *at)) {
      at = tx.messages.erase(at);
    } else {
      blocked.push_back(peer);
      ++at;
    }
  }
}

LoopbackDevice* LoopbackDevice::FindTarget(const Message& message,
                                           uint32_t* rx_context) {
  for (LoopbackDevice* device : wire_->devices) {
    const FabricAddress own = device->address();
    if (own.lo != message.peer.fa_lo || own.hi != message.peer.fa_hi ||
        own.ipv6 != ((message.peer.flags & contract::kAvFlagIpv6) != 0) ||
        !device->failure_.empty()) {
      continue;
    }
    for (uint32_t i = 0; i < kContexts; ++i) {
      const contract::RxCtxCfg cfg = device->rx_cfg(i);
      if (cfg.enable != 0 && cfg.pid_on_fep == message.peer.pid_on_fep &&
          cfg.resource_index ==
              message.peer.resource_index + 1 + message.desc.rx_index) {
        *rx_context = i;
        return device;
      }
    }
  }
  return nullptr;
}

// True when the message is done with, well or badly.
bool LoopbackDevice::DeliverOne(uint32_t context, Message& message) {
  const uint32_t cq = tx_cfg(context).cq;
  if (message.status != Status::kOk) {
    return CompleteTx(context, message);
  }
  uint32_t rx_context = 0;
  LoopbackDevice* target = FindTarget(message, &rx_context);
  if (target == nullptr) {
    if (std::chrono::steady_clock::now() - message.since < options_.dead) {
      return false;
    }
    message.status = Status::kPeerUnreachable;
    return CompleteTx(context, message);
  }
  if (target->rx_cfg(rx_context).job_id != tx_cfg(context).job_id) {
    message.status = Status::kRemoteError;
    message.detail = static_cast<uint16_t>(contract::ReturnCode::kBadJobId);
    return CompleteTx(context, message);
  }
  target->TakeDoorbells();
  if (!HasCredit(cq) ||
      !target->Receive(rx_context, tx_cfg(context), address(), message)) {
    return false;
  }
  // The receive may have taken the last entry of a shared queue.
  if (!CompleteTx(context, message)) {
    message.status = Status::kOk;
    Fail("no credit for a transmit completion");
  }
  return true;
}

bool LoopbackDevice::CompleteTx(uint32_t context, Message& message) {
  TxState& tx = tx_[context];
  const contract::TxCtxCfg cfg = tx_cfg(context);
  const bool report = message.status != Status::kOk ||
                      (message.desc.flags & contract::kTxFlagCompletion) != 0;
  if (report && !HasCredit(cfg.cq)) {
    return false;
  }
  tx.done[message.position] = message.slots;
  for (auto found = tx.done.find(tx.head); found != tx.done.end();
       found = tx.done.find(tx.head)) {
    tx.head = static_cast<uint16_t>(tx.head + found->second);
    tx.done.erase(found);
  }
  // As seldom as the contract lets it be.
  const uint64_t head = tx.head;
  const auto untold = static_cast<uint16_t>(tx.head - tx.told);
  const bool due = untold > 1U << cfg.ring_log2 >> 2U || tx.head == tx.next;
  if (!report && due && !Write(cfg.head_cell, &head, sizeof(head))) {
    Fail("head cell is not mapped");
  }
  tx.told = report || due ? tx.head : tx.told;
  if (report) {
    Produce(cfg.cq, {.op_context = message.desc.op_context,
                     .length = message.desc.length,
                     .message_length = message.desc.length,
                     .peer = message.desc.peer,
                     .queue_head = tx.head,
                     .position = message.position,
                     .status = message.status,
                     .opcode = message.desc.opcode,
                     .context = static_cast<uint8_t>(context),
                     .detail = static_cast<uint8_t>(message.detail),
                     .kind = CompletionKind::kTx});
  }
  statistics_[static_cast<size_t>(Statistic::kTxMessages)] += 1;
  return true;
}

// -------------------------------------------------------------------- receive

// False when there is no buffer or no credit: the sender repeats it.
bool LoopbackDevice::Receive(uint32_t context, const contract::TxCtxCfg& source,
                             const FabricAddress& source_fa,
                             const Message& message) {
  const contract::RxCtxCfg cfg = rx_cfg(context);
  RxState& rx = rx_[context];
  ServeCancels(context);
  while (rx.next != rx.tail && rx.done.contains(rx.next)) {
    ++rx.next;
  }
  // Two: the sender's completion may go to the same queue.
  const uint32_t used = cq_[cfg.cq].produced - cq_[cfg.cq].consumed;
  if (rx.next == rx.tail || used + 2 > 1U << cq_cfg(cfg.cq).log2) {
    return false;
  }
  if (static_cast<uint16_t>(rx.tail - rx.head) > 1U << cfg.ring_log2) {
    Fail("receive doorbell ran past the ring");
    return false;
  }
  contract::RxDesc desc;
  const uint32_t mask = (1U << cfg.ring_log2) - 1;
  if (!Read(cfg.ring_base + uint64_t{rx.next & mask} * contract::kRxDescBytes,
            &desc, sizeof(desc)) ||
      desc.position != rx.next) {
    Fail("receive ring is not mapped or carries a wrong position");
    return false;
  }
  const auto bytes = static_cast<uint32_t>(message.payload.size());
  const uint32_t placed = std::min(bytes, desc.length);
  Status status = placed < bytes ? Status::kTruncated : Status::kOk;
  if (placed != 0 && !Write(desc.local_iova, message.payload.data(), placed)) {
    status = Status::kLocalAccess;
  }
  const uint16_t position = rx.next++;
  ReleaseRx(context, position);
  const bool has_data = (message.desc.flags & contract::kTxFlagHeaderData) != 0;
  Produce(cfg.cq,
          {.op_context = desc.op_context,
           .length = placed,
           .message_length = bytes,
           .header_data = has_data ? message.desc.header_data : 0,
           .source_fa_lo = source_fa.lo,
           .source_fa_hi = source_fa.hi,
           .peer = uint32_t{source.source_pid} << 12U | source.source_ri,
           .queue_head = rx.head,
           .position = position,
           .status = status,
           .opcode = message.desc.opcode,
           .flags = static_cast<uint8_t>(
               (has_data ? contract::kCompletionFlagHeaderData : 0) |
               (source_fa.ipv6 ? contract::kCompletionFlagSourceIpv6 : 0)),
           .context = static_cast<uint8_t>(context),
           .kind = CompletionKind::kRx});
  statistics_[static_cast<size_t>(Statistic::kRxMessages)] += 1;
  return true;
}

void LoopbackDevice::ReleaseRx(uint32_t context, uint16_t position) {
  RxState& rx = rx_[context];
  rx.done[position] = true;
  for (auto found = rx.done.find(rx.head); found != rx.done.end();
       found = rx.done.find(rx.head)) {
    ++rx.head;
    rx.done.erase(found);
  }
}

void LoopbackDevice::ServeCancels(uint32_t context) {
  RxState& rx = rx_[context];
  const contract::RxCtxCfg cfg = rx_cfg(context);
  while (!rx.cancels.empty() && HasCredit(cfg.cq)) {
    const uint16_t position = rx.cancels.front();
    rx.cancels.pop_front();
    const auto pending = static_cast<uint16_t>(rx.tail - rx.next);
    if (static_cast<uint16_t>(position - rx.next) >= pending ||
        rx.done.contains(position)) {
      continue;
    }
    ReleaseRx(context, position);
    // What was released from the front is not offered to a message.
    if (static_cast<uint16_t>(rx.head - rx.next) <= pending) {
      rx.next = rx.head;
    }
    Produce(cfg.cq, {.queue_head = rx.head,
                     .position = position,
                     .status = Status::kCancelled,
                     .context = static_cast<uint8_t>(context),
                     .kind = CompletionKind::kRx});
  }
}

// ---------------------------------------------------------------- completions

bool LoopbackDevice::HasCredit(uint32_t cq) const {
  return cq_[cq].produced - cq_[cq].consumed < 1U << cq_cfg(cq).log2;
}

void LoopbackDevice::Produce(uint32_t index, contract::Completion completion) {
  CqState& cq = cq_[index];
  const contract::CqCfg cfg = cq_cfg(index);
  const uint32_t size = 1U << cfg.log2;
  completion.phase = (cq.produced / size) % 2 == 0 ? 1 : 0;
  if (!Write(cfg.base + uint64_t{cq.produced % size} * sizeof(completion),
             &completion, sizeof(completion))) {
    Fail("completion queue is not mapped");
    return;
  }
  ++cq.produced;
  if (cq.armed.has_value()) {
    cq.armed.reset();
    (void)eventfd_write(interrupts_.at(cfg.vector), 1);
  }
}

}  // namespace heddle::test
