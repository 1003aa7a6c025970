// SPDX-License-Identifier: Apache-2.0
// A transmit queue whose device the test plays.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "host/lib/nic/tx_queue.h"
#include "tests/driver/fake_device.h"

namespace heddle::nic {

// The device's side of a transmit context, as the contract has it.
class ContextModel {
 public:
  ContextModel(FakeDevice* device, const TxQueue& queue)
      : device_(device),
        size_(1U << queue.ring_log2()),
        slots_(At<contract::TxDesc>(ToInteger(queue.ring_iova()))),
        cell_(At<uint64_t>(ToInteger(queue.head_cell_iova()))),
        marks_(ToInteger(queue.spill_iova()) == 0
                   ? nullptr
                   : At<contract::SpillMark>(ToInteger(queue.spill_iova()) +
                                             uint64_t{size_} *
                                                 contract::kDescBytes)) {}

  struct Operation {
    contract::TxDesc descriptor;
    uint16_t slots = 1;
    bool ended = false;
    bool given = false;  // Up; its slots are released.
  };

  template <typename T>
  static T* At(uint64_t iova) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<T*>(iova - FakeDevice::kIovaOffset);
  }

  // What the last doorbell published.
  void Fetch() {
    uint16_t tail = taken_;
    if (!device_->rung.empty()) {
      tail = static_cast<uint16_t>(device_->rung.back().value >>
                                   contract::kDoorbellTailCountLsb);
      device_->rung.clear();
    }
    ASSERT_LE(static_cast<uint16_t>(tail - told_), size_);
    while (taken_ != tail) {
      const contract::TxDesc descriptor = slots_[taken_ & (size_ - 1U)];
      ASSERT_EQ(descriptor.position, taken_);
      ASSERT_TRUE(descriptor.opcode == contract::Opcode::kNop ||
                  std::none_of(given_.begin(), given_.end(),
                               [&](const Operation& other) {
                                 return other.descriptor.position == taken_;
                               }))
          << "one name for two operations";
      const auto slots = static_cast<uint16_t>(1 + descriptor.ext_slots);
      ring_.push_back({.descriptor = descriptor,
                       .slots = slots,
                       .ended = descriptor.opcode == contract::Opcode::kNop});
      taken_ = static_cast<uint16_t>(taken_ + slots);
    }
    Release();
  }

  void Mark(uint16_t position) {
    marks_[position & (size_ - 1U)] = {.position = position, .given = 1};
  }

  // Gives up what is oldest while the ring is as full as that.
  void Spill() {
    // Those in flight have entries of the message table.
    while (given_.size() < contract::kMessageShare &&
           static_cast<uint16_t>(taken_ - told_) >= size_ - size_ / 4 &&
           !ring_.empty()) {
      Operation operation = ring_.front();
      ring_.pop_front();
      const uint16_t position = operation.descriptor.position;
      Mark(position);
      head_ = static_cast<uint16_t>(head_ + operation.slots);
      operation.given = true;
      given_.push_back(operation);
      Release();
      Store();
      ++spilled;
    }
  }

  // All that have not ended, the oldest first.
  std::vector<Operation*> UnderWay() {
    std::vector<Operation*> found;
    found.reserve(given_.size() + ring_.size());
    for (Operation& operation : given_) {
      found.push_back(&operation);
    }
    for (Operation& operation : ring_) {
      if (!operation.ended) {
        found.push_back(&operation);
      }
    }
    return found;
  }

  size_t UnderWayCount() const {
    return given_.size() + static_cast<size_t>(std::ranges::count(
                               ring_, false, &Operation::ended));
  }

  void End(Operation* operation, contract::Status status) {
    const contract::TxDesc descriptor = operation->descriptor;
    const bool given = operation->given;
    const bool asked = (descriptor.flags & contract::kTxFlagCompletion) != 0 ||
                       status != contract::Status::kOk;
    operation->ended = true;
    given_.remove_if([](const Operation& other) { return other.ended; });
    Release();
    if (asked || given) {
      told_ = head_;
      completions.push_back(
          {.op_context = descriptor.op_context,
           .peer = descriptor.peer,
           .queue_head = head_,
           .position = descriptor.position,
           .status = status,
           .opcode = descriptor.opcode,
           .kind = asked ? contract::CompletionKind::kTx
                         : contract::CompletionKind::kTxSilent});
    } else if (static_cast<uint16_t>(head_ - told_) > (size_ - 1U) / 4) {
      Store();
    }
    if (UnderWayCount() == 0 && head_ != told_) {
      Store();
    }
  }

  std::deque<contract::Completion> completions;  // Not read yet.
  uint64_t spilled = 0;

 private:
  void Release() {
    while (!ring_.empty() && ring_.front().ended) {
      head_ = static_cast<uint16_t>(head_ + ring_.front().slots);
      ring_.pop_front();
    }
  }
  void Store() { *cell_ = told_ = head_; }

  FakeDevice* device_;
  uint32_t size_;
  contract::TxDesc* slots_;
  uint64_t* cell_;
  contract::SpillMark* marks_;
  uint16_t taken_ = 0;
  uint16_t head_ = 0;
  uint16_t told_ = 0;
  std::list<Operation> ring_;  // From the head on.
  std::list<Operation> given_;
};

// Entries that the model wrote, of which some were read.
class PlayedCompletions : public TxCompletions {
 public:
  explicit PlayedCompletions(std::optional<ContextModel>* model)
      : model_(model) {}
  uint64_t EntriesRead() const noexcept override { return read; }
  uint64_t EntriesWritten() const noexcept override {
    return read + (model_->has_value() ? (*model_)->completions.size() : 0);
  }
  void DrainSilent(TxQueue* caller) noexcept override {
    auto& entries = (*model_)->completions;
    while (drains && !entries.empty() &&
           entries.front().kind == contract::CompletionKind::kTxSilent) {
      caller->RetireSilent(entries.front());
      entries.pop_front();
      ++read;
    }
  }

  uint64_t read = 0;
  bool drains = false;

 private:
  std::optional<ContextModel>* model_;
};

// A queue with its device, and what the application expects of both. The
// context of an operation is its number.
class PlayedQueue {
 public:
  static constexpr uint32_t kStuck = 7;  // A peer.

  explicit PlayedQueue(bool spill, uint32_t cq_entries = 1U << 20)
      : credit_(cq_entries) {
    auto created = TxQueue::Create(device_,
                                   {.operations = 32,
                                    .copy_limit_bytes = 1024,
                                    .spill = spill,
                                    .completions = &completions_},
                                   &credit_);
    EXPECT_TRUE(created.ok() && created.value()->Bind(device_, 0).ok());
    queue_ = std::move(created.value());
    model_.emplace(&device_, *queue_);
  }

  TxQueue* operator->() const { return queue_.get(); }
  ContextModel& model() { return *model_; }
  PlayedCompletions& completions() { return completions_; }

  struct Payload {
    std::vector<uint8_t> bytes;  // Of the caller.
    bool asked = false;
    bool read = false;
  };

  // 0 or EAGAIN.
  int Post(uint32_t peer, size_t bytes, bool asked, bool read = false) {
    auto payload = std::make_unique<Payload>();
    payload->bytes.assign(bytes, static_cast<uint8_t>(next_));
    payload->asked = asked;
    payload->read = read;
    const Segment segment = {.address = payload->bytes.data(), .bytes = bytes};
    Operation operation;
    operation.context = next_;
    operation.peer = peer;
    operation.flags = asked ? contract::kTxFlagCompletion : uint8_t{0};
    operation.opcode = read ? backend::Opcode::kRead : backend::Opcode::kSend;
    const int error =
        queue_->PostSegments<backend::Locked>(operation, {&segment, 1});
    if (error == 0) {
      outstanding_.emplace(next_++, std::move(payload));
    }
    model_->Fetch();
    return error;
  }

  // The device is done with it. Its payload is there to the end.
  void End(ContextModel::Operation* operation,
           contract::Status status = contract::Status::kOk) {
    const contract::TxDesc descriptor = operation->descriptor;
    const auto at = outstanding_.find(descriptor.op_context);
    ASSERT_NE(at, outstanding_.end());
    if (descriptor.segments == 1) {
      ASSERT_TRUE(
          device_.IsMapped(descriptor.local_iova, descriptor.local_length));
      auto* const memory = ContextModel::At<uint8_t>(descriptor.local_iova);
      if (at->second->read) {
        std::fill_n(memory, descriptor.local_length, uint8_t{0xaa});
      } else {
        ASSERT_EQ(std::count(memory, memory + descriptor.local_length,
                             static_cast<uint8_t>(descriptor.op_context)),
                  descriptor.local_length);
      }
    }
    model_->End(operation, status);
    if (status == contract::Status::kOk && !at->second->asked &&
        !at->second->read) {
      done_.push_back(std::move(at->second));
      outstanding_.erase(at);
    }
  }

  // Reads one completion.
  void Poll() {
    const contract::Completion entry = model_->completions.front();
    model_->completions.pop_front();
    if (entry.kind == contract::CompletionKind::kTxSilent) {
      const backend::Locked::Guard guard(queue_->lock());
      queue_->RetireSilent(entry);
    } else {
      Retire(entry);
    }
    ++completions_.read;
  }

  void Retire(const contract::Completion& entry) {
    const bool report = queue_->Retire<backend::Locked>(entry);
    const auto at = outstanding_.find(entry.op_context);
    ASSERT_NE(at, outstanding_.end()) << "never posted, or reported twice";
    const Payload& payload = *at->second;
    // An error is the reader's to report, whatever this says.
    EXPECT_EQ(report, payload.asked || !payload.read);
    if (payload.read && entry.status == contract::Status::kOk) {
      EXPECT_EQ(std::count(payload.bytes.begin(), payload.bytes.end(), 0xaa),
                static_cast<ptrdiff_t>(payload.bytes.size()));
    }
    outstanding_.erase(at);
  }

  void PollAll() {
    while (!model_->completions.empty()) {
      ASSERT_NO_FATAL_FAILURE(Poll());
    }
    const EndedMemory ended = std::move(queue_->ended());
  }
  bool IsMapped(uint64_t iova) const { return device_.IsMapped(iova, 1); }
  size_t outstanding() const { return outstanding_.size(); }

 private:
  FakeDevice device_;
  CqCredit credit_;
  std::optional<ContextModel> model_;
  PlayedCompletions completions_{&model_};
  std::unique_ptr<TxQueue> queue_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::unique_ptr<Payload>> outstanding_;
  // Memory that was sent may still be mapped: it stays until the end.
  std::vector<std::unique_ptr<Payload>> done_;
};

}  // namespace heddle::nic
