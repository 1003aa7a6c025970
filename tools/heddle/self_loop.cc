// SPDX-License-Identifier: Apache-2.0
#include "tools/heddle/self_loop.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "driver/queue/doorbells.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_text.h"
#include "tools/heddle/command.h"

namespace heddle::tool {
namespace {

using contract::Completion;

constexpr uint32_t kRingLog2 = contract::kRingLog2Min;
constexpr uint32_t kSlots = 1u << kRingLog2;

template <typename T>
T Need(Result<T> result, const char* what) {
  if (!result.ok()) {
    throw CommandError(std::string(what) + ": " +
                       std::strerror(static_cast<int>(result.error())));
  }
  return std::move(result.value());
}

std::string NameOf(contract::Status status) {
  for (const auto& value : contract::text::kStatusValues) {
    if (value.value == static_cast<uint64_t>(status)) {
      return value.name;
    }
  }
  return std::to_string(static_cast<unsigned>(status));
}

std::byte Pattern(uint32_t seed, uint32_t at) {
  constexpr uint32_t kSpread = 2654435761u;
  return static_cast<std::byte>((seed + at) * kSpread >> 24);
}

}  // namespace

SelfLoop::SelfLoop(Device& device, AdminQueue& admin, const PortInfo& port,
                   const Options& options)
    : device_(device), admin_(admin), limit_(options.limit) {
  const auto memory = [&](size_t bytes) {
    return Need(DmaBuffer::Create(device, bytes), "memory for the device");
  };
  av_ = memory(sizeof(contract::AvEntry));
  tx_slots_ = memory(kSlots * sizeof(contract::TxDesc));
  rx_slots_ = memory(kSlots * sizeof(contract::RxDesc));
  tx_entries_ = memory(kSlots * sizeof(Completion));
  rx_entries_ = memory(kSlots * sizeof(Completion));
  cells_ = memory(2 * sizeof(uint64_t));
  data_ = memory(size_t{2} * kBytes);
  constexpr uint32_t kJob = 1;
  grant_ =
      Need(admin.CreateEndpoint({.port = 0, .job_id = kJob}), "an endpoint");
  endpoint_ = grant_.endpoint;
  CreateQueues(options.vector);
  CreateContexts(port);
}

void SelfLoop::CreateQueues(uint8_t vector) {
  const auto create = [&](const DmaBuffer& entries, uint8_t interrupt) {
    return Need(admin_.CreateCq({.base = ToInteger(entries.iova()),
                                 .log2 = kRingLog2,
                                 .vector = interrupt}),
                "a completion queue");
  };
  tx_cq_ = create(tx_entries_, 0);
  rx_cq_ = create(rx_entries_, vector);
  const auto bind = [&](const DmaBuffer& entries, uint32_t number) {
    return Need(
        CompletionQueue::Create(entries.entries<const Completion>(kSlots),
                                CqConsumerDoorbell(device_, number)),
        "a completion queue");
  };
  sent_.emplace(bind(tx_entries_, *tx_cq_));
  received_.emplace(bind(rx_entries_, *rx_cq_));
}

void SelfLoop::CreateContexts(const PortInfo& port) {
  const uint32_t hop =
      Need(admin_.ResolveNextHop(port.address), "a next hop to itself");
  av_.entries<contract::AvEntry>(1)[0] = {
      .fa_lo = port.address.lo,
      .fa_hi = port.address.hi,
      .pid_on_fep = grant_.pid_on_fep,
      .resource_index = grant_.resource_index,
      .next_hop = static_cast<uint16_t>(hop),
      .flags = static_cast<uint8_t>(
          contract::kAvFlagValid |
          (port.address.ipv6 ? contract::kAvFlagIpv6 : 0))};
  tx_number_ = Need(admin_.CreateTx({.endpoint = grant_.endpoint,
                                     .ring_base = ToInteger(tx_slots_.iova()),
                                     .head_cell = ToInteger(cells_.iova()),
                                     .av_base = ToInteger(av_.iova()),
                                     .av_entries = 1,
                                     .cq = static_cast<uint8_t>(*tx_cq_),
                                     .ring_log2 = kRingLog2}),
                    "a transmit context");
  rx_number_ = Need(
      admin_.CreateRx({.endpoint = grant_.endpoint,
                       .ring_base = ToInteger(rx_slots_.iova()),
                       .head_cell = ToInteger(cells_.iova() + sizeof(uint64_t)),
                       .cq = static_cast<uint8_t>(*rx_cq_),
                       .ring_log2 = kRingLog2}),
      "a receive context");
  const auto* const cell = reinterpret_cast<const uint64_t*>(cells_.data());
  tx_.emplace(Need(SendRing::Create(tx_slots_.entries<contract::TxDesc>(kSlots),
                                    cell, TxTailDoorbell(device_, *tx_number_)),
                   "a transmit ring"));
  rx_.emplace(
      Need(RecvRing::Create(rx_slots_.entries<contract::RxDesc>(kSlots),
                            cell + 1, RxTailDoorbell(device_, *rx_number_),
                            RxOpDoorbell(device_, *rx_number_)),
           "a receive ring"));
}

SelfLoop::~SelfLoop() {
  // A later step detects a device that rejects these.
  if (tx_number_) {
    (void)admin_.DestroyTx(*tx_number_);
  }
  if (rx_number_) {
    (void)admin_.DestroyRx(*rx_number_);
  }
  for (const auto& queue : {tx_cq_, rx_cq_}) {
    if (queue) {
      (void)admin_.DestroyCq(*queue);
    }
  }
  if (endpoint_) {
    (void)admin_.DestroyEndpoint(*endpoint_);
  }
}

std::string SelfLoop::Await(std::optional<CompletionQueue>& queue,
                            const char* what, Completion* got) {
  const auto deadline = std::chrono::steady_clock::now() + limit_;
  const ProgressHook hook = device_.progress_hook();
  const Completion* entry = nullptr;
  while ((entry = queue->Peek()) == nullptr) {
    if (device_.failed()) {
      return "the device failed: " + device_.failure();
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return std::string("no completion of the ") + what + " within " +
             std::to_string(limit_.count()) + " ms";
    }
    if (hook.step != nullptr) {
      hook.step(hook.cookie);
    }
  }
  *got = *entry;
  queue->Pop();
  return got->status == contract::Status::kOk
             ? std::string()
             : std::string(what) + " completed with " + NameOf(got->status);
}

std::string SelfLoop::Exchange(uint32_t bytes, uint32_t seed) {
  std::byte* const from = data_.data();
  std::byte* const to = from + kBytes;
  for (uint32_t i = 0; i < bytes; ++i) {
    from[i] = Pattern(seed, i);
    to[i] = ~from[i];
  }
  const SendFields fields{.op_context = seed,
                          .flags = contract::kTxFlagCompletion};
  if (!rx_->TryPush(seed, data_.iova() + kBytes, bytes) ||
      !tx_->PushBuffer(fields, data_.iova(), bytes)) {
    return "a ring has no room";
  }
  rx_->Publish();
  tx_->Publish();
  std::string broken = Finish(bytes);
  if (!broken.empty()) {
    return broken;
  }
  return std::memcmp(from, to, bytes) == 0
             ? std::string()
             : "a message of " + std::to_string(bytes) +
                   " bytes arrived with other contents";
}

std::string SelfLoop::Finish(uint32_t bytes) {
  Completion sent;
  Completion received;
  std::string broken = Await(received_, "receive", &received);
  if (broken.empty()) {
    (void)rx_->ReleaseTo(received.queue_head);
    broken = Await(sent_, "send", &sent);
  }
  if (broken.empty()) {
    (void)tx_->ReleaseTo(sent.queue_head);
    if (received.length != bytes) {
      broken = "a message of " + std::to_string(bytes) +
               " bytes arrived with " + std::to_string(received.length);
    }
  }
  return broken;
}

void SelfLoop::PostForInterrupt() {
  received_->Arm();
  if (!rx_->TryPush(0, data_.iova() + kBytes, kBytes) ||
      !tx_->PushInline({.flags = contract::kTxFlagCompletion}, nullptr, 0)) {
    throw CommandError("a ring has no room");
  }
  rx_->Publish();
  tx_->Publish();
}

std::string SelfLoop::FinishInterrupted() {
  return Finish(0);
}

}  // namespace heddle::tool
