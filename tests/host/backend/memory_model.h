// SPDX-License-Identifier: Apache-2.0
// A backend that moves messages within the process: the smallest one that the
// seam of host/lib/backend carries. Not a double of a Heddle device; it has no
// rings, no addresses of a device and no failures but those of its peers.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/lib/backend/device.h"
#include "host/lib/backend/model.h"
#include "host/lib/core/open_device.h"

namespace heddle::backend::memory {

inline constexpr Backend kBackend = {
    .name = "memory",
    .statistics = {
        .count = []() noexcept { return size_t{0}; },
        .name = [](size_t) noexcept -> const char* { return nullptr; },
        .help = [](size_t) noexcept -> const char* { return nullptr; }}};

// One entry holds the completions of operations that ended together: none, if
// their success is not reported, or several.
class Queue final : public CompletionQueue {
 public:
  struct Ended {
    Completion completion;
    uint64_t source = FI_ADDR_NOTAVAIL;
    std::optional<ErrorCompletion> error;
  };
  struct Entry {
    std::deque<Ended> ended;
  };
  struct Candidate {
    const Entry* entry;
  };
  template <typename Locking>
  struct ReadGuard {
    explicit ReadGuard(Queue& queue) noexcept : guard(queue.lock()) {}
    typename Locking::Guard guard;
  };

  explicit Queue(Device& /*device*/) {}

  void Write(Entry entry) { entries_.push_back(std::move(entry)); }
  size_t entries() const { return entries_.size(); }

  Result<bool> Open(size_t /*entries*/, bool interrupt) override {
    return interrupt ? Result<bool>(Errno{ENOSPC}) : Result<bool>(true);
  }
  size_t capacity() const noexcept override { return 64; }
  int interrupt_fd() const noexcept override { return -1; }
  bool HasEntry() const noexcept override { return !entries_.empty(); }
  bool HasLost() noexcept override { return false; }
  void Arm() noexcept override {}
  void Alert() noexcept override { alerted_ = true; }
  std::optional<ErrorCompletion> TakeError(bool /*failed*/) noexcept override {
    const Locked::Guard guard(lock());
    if (entries_.empty() || !IsError(entries_.front(), false)) {
      return std::nullopt;
    }
    const auto error = entries_.front().ended.front().error;
    entries_.pop_front();
    return error;
  }

  const Entry* Peek() const noexcept {
    return entries_.empty() ? nullptr : &entries_.front();
  }
  Candidate Poll() const noexcept {
    static const Entry none;
    const Entry* entry = Peek();
    return {entry == nullptr && alerted_ ? &none : entry};
  }
  template <typename Sink>
  bool TryTake(const Candidate& /*candidate*/, Sink&& /*sink*/) noexcept {
    return false;
  }
  template <typename Sink>
  bool TryTakeMatched(const Candidate& /*candidate*/,
                      Sink&& /*sink*/) noexcept {
    return false;
  }
  template <typename Sink>
  bool TryTakeOther(const Entry& /*entry*/, Sink&& /*sink*/) noexcept {
    return false;
  }
  static bool IsError(const Entry& entry, bool /*sources*/) noexcept {
    return !entry.ended.empty() && entry.ended.front().error.has_value();
  }
  template <typename Locking, typename Sink>
  void Take(const Entry& /*entry*/, size_t room, Sink&& sink) noexcept {
    auto& ended = entries_.front().ended;
    for (; room != 0 && !ended.empty(); --room) {
      const Ended& first = ended.front();
      sink(first.completion, [&] { return first.source; });
      ended.pop_front();
    }
    if (ended.empty()) {
      entries_.pop_front();
    }
  }

 private:
  std::deque<Entry> entries_;
  std::atomic<bool> alerted_ = false;
};

class PlainCounter final : public Counter {
 public:
  PlainCounter() { SetCells(&value_, &errors_); }
  int Execute(Change change, uint64_t amount) noexcept override {
    uint64_t& cell =
        change == Change::kSet || change == Change::kAdd ? value_ : errors_;
    const bool sets = change == Change::kSet || change == Change::kSetErrors;
    cell = sets ? amount : cell + amount;
    return 0;
  }

 private:
  uint64_t value_ = 0;
  uint64_t errors_ = 0;
};

class PeerTable final : public Peers {
 public:
  Result<uint32_t> Insert(const base::SocketAddress& address) override {
    peers_.push_back(address);
    return static_cast<uint32_t>(peers_.size() - 1);
  }
  bool Remove(uint64_t index) noexcept override {
    const bool there = Contains(index);
    if (there) {
      peers_[index].reset();
    }
    return there;
  }
  std::optional<base::SocketAddress> Lookup(
      uint64_t index) const noexcept override {
    return Contains(index) ? peers_[index] : std::nullopt;
  }
  bool Contains(uint64_t index) const noexcept {
    return index < peers_.size() && peers_[index].has_value();
  }
  uint64_t Find(uint16_t port) const noexcept {
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (peers_[i].has_value() && peers_[i]->port() == port) {
        return i;
      }
    }
    return FI_ADDR_NOTAVAIL;
  }

 private:
  std::vector<std::optional<base::SocketAddress>> peers_;
};

// Registered memory of which only the first part is looked at.
class Memory final : public Region {
 public:
  explicit Memory(const iovec& part) : part_(part) {}
  Result<uint64_t> Grant(const Access& /*access*/) override {
    return Errno{EOPNOTSUPP};
  }
  bool Revoke() noexcept override { return true; }
  bool granted() const noexcept override { return false; }
  bool Covers(const iovec& part) const noexcept {
    const auto start = reinterpret_cast<uintptr_t>(part_.iov_base);
    const auto at = reinterpret_cast<uintptr_t>(part.iov_base);
    return at >= start && at + part.iov_len <= start + part_.iov_len;
  }
  static const Memory* Of(const void* descriptor) noexcept {
    return static_cast<const Memory*>(static_cast<const Region*>(descriptor));
  }

 private:
  iovec part_;
};

// A buffer as a payload.
struct OnePart {
  explicit OnePart(const Buffer& buffer)
      : part{const_cast<void*>(buffer.address), buffer.bytes},
        descriptor(const_cast<void*>(buffer.descriptor)),
        payload{&part, &descriptor, 1} {}
  iovec part;
  void* descriptor;
  Payload payload;
};

inline std::vector<std::byte> Gather(const Payload& payload) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < payload.count; ++i) {
    const auto* from = static_cast<const std::byte*>(payload.parts[i].iov_base);
    bytes.insert(bytes.end(), from, from + payload.parts[i].iov_len);
  }
  return bytes;
}

class Receiver final : public ReceiveContext {
 public:
  Queue* queue = nullptr;
  const PeerTable* peers = nullptr;

  struct Posted {
    uint64_t context;
    std::vector<iovec> parts;
    bool report;
  };
  std::deque<Posted> posted;
  Queue::Entry batch;  // Arrived, and not written yet.

  template <typename Locking>
  static bool TryPostRegistered(uint64_t /*context*/,
                                const Buffer& /*buffer*/) noexcept {
    return false;
  }
  template <typename Locking>
  int Post(const ReceiveOperation& operation, const Buffer& buffer) noexcept {
    const OnePart one(buffer);
    return Post<Locking>(operation, one.payload);
  }
  template <typename Locking>
  int Post(const ReceiveOperation& operation, const Payload& payload) noexcept {
    for (size_t i = 0; i < payload.count; ++i) {
      if (payload.descriptors != nullptr && payload.descriptors[i] != nullptr &&
          !Memory::Of(payload.descriptors[i])->Covers(payload.parts[i])) {
        return EINVAL;
      }
    }
    posted.push_back({.context = operation.context,
                      .parts = {payload.parts, payload.parts + payload.count},
                      .report = operation.report});
    return 0;
  }

  void Arrive(const std::vector<std::byte>& message, const Operation& operation,
              uint16_t port, bool more);
};

// Endpoints by port.
using Wire = std::map<uint16_t, Receiver*>;

class Transmitter final : public TransmitContext {
 public:
  Queue* queue = nullptr;
  PeerTable* peers = nullptr;
  Wire* wire = nullptr;
  uint16_t port = 0;

  // How many were posted in a table's shortest ways.
  size_t tried = 0;
  size_t direct_ones = 0;

  Transmitter() { SetDirect(true); }

  static bool IsShort(size_t bytes) noexcept { return bytes == 8; }
  template <typename Locking, bool kDirect, typename Make>
  bool TryPostShort(const Make& make, const Buffer& buffer) noexcept {
    ++tried;
    direct_ones += kDirect ? 1 : 0;
    return Post<Locking>(make(), buffer) == 0;
  }
  template <typename Locking, bool kDirect, typename Make>
  bool TryPostMedium(const Make& make, const Buffer& buffer) noexcept {
    return TryPostShort<Locking, kDirect>(make, buffer);
  }
  template <typename Locking, bool kDirect, typename Make>
  bool TryPostRegistered(const Make& make, const Buffer& buffer) noexcept {
    return buffer.descriptor != nullptr &&
           TryPostShort<Locking, kDirect>(make, buffer);
  }
  template <typename Locking>
  int Post(const Operation& operation, const Buffer& buffer) noexcept {
    return Post<Locking>(operation, OnePart(buffer).payload);
  }
  template <typename Locking>
  int Post(const Operation& operation, const Payload& payload) noexcept {
    return Send(operation, Gather(payload));
  }
  template <typename Locking>
  int Post(const Operation& /*operation*/, const Payload& /*payload*/,
           std::span<const RemoteSegment> /*remote*/) noexcept {
    return EOPNOTSUPP;
  }

 private:
  int Send(const Operation& operation, const std::vector<std::byte>& message);
};

struct Model {
  using Transmit = Transmitter;
  using Receive = Receiver;
  using PeerTable = memory::PeerTable;
  using Queue = memory::Queue;
};
static_assert(backend::Model<Model>);

// Domains named "memory0".
extern const core::DeviceOpener kOpener;

}  // namespace heddle::backend::memory
