// SPDX-License-Identifier: Apache-2.0
// Mapping of a user's buffer to device addresses, and its lifetime.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "driver/device.h"
#include "driver/dma/dma_buffer.h"
#include "driver/dma/slab_pool.h"
#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// Memory of the user and where the device has it.
struct Reach {
  uintptr_t start = 0;
  size_t bytes = 0;
  size_t longest = 0;  // Operation on it.
  uint64_t shift = 0;  // From an address to what the device calls it; wraps.

  // True when all of [address, address + count) is inside.
  bool Covers(const void* address, size_t count) const noexcept {
    return count <= bytes &&
           reinterpret_cast<uintptr_t>(address) - start <= bytes - count;
  }
  // As well, and an operation can be so long.
  bool Holds(const void* address, size_t count) const noexcept {
    return count <= longest &&
           reinterpret_cast<uintptr_t>(address) - start <= bytes - count;
  }

  // Precondition: `Covers(address, ...)`.
  Iova iova_of(const void* address) const noexcept {
    return Iova{reinterpret_cast<uintptr_t>(address) + shift};
  }
};

// User memory that stays mapped until this object is destroyed: an explicit
// registration. May overlap other regions and mappings.
//
// Thread safety: immutable, so any thread may read it.
// Ownership: owns the mapping; borrows device and memory, which outlive it.
class MappedRegion {
 public:
  // Errors: EINVAL for an empty or wrapping range, and those of `Device::Map`.
  static Result<MappedRegion> Create(Device& device, void* address,
                                     size_t bytes);

  MappedRegion() = default;
  MappedRegion(MappedRegion&& other) noexcept { Swap(other); }
  MappedRegion& operator=(MappedRegion&& other) noexcept {
    Swap(other);
    return *this;
  }
  MappedRegion(const MappedRegion&) = delete;
  MappedRegion& operator=(const MappedRegion&) = delete;

  // When it returns, the device no longer accesses the memory.
  ~MappedRegion();

  const Reach& reach() const noexcept { return reach_; }
  bool Covers(const void* address, size_t bytes) const noexcept {
    return reach_.Covers(address, bytes);
  }
  Iova iova_of(const void* address) const noexcept {
    return reach_.iova_of(address);
  }

 private:
  void Swap(MappedRegion& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(reach_, other.reach_);
  }

  Device* device_ = nullptr;
  Reach reach_;
};

// One piece of a user's buffer. `region`, when not null, is the registration
// that the user named.
struct Segment {
  void* address = nullptr;
  size_t bytes = 0;
  const MappedRegion* region = nullptr;
};

// Memory that the device reached for an operation, until its end.
struct OperationMemory {
  MappedRegion region;  // The user's memory, or
  DmaBuffer memory;     // memory allocated for the operation.
  std::unique_ptr<OperationMemory> next;
};

// Memory of operations that have ended; destruction unmaps it.
class EndedMemory {
 public:
  EndedMemory() = default;
  EndedMemory(EndedMemory&&) = default;
  EndedMemory& operator=(EndedMemory&&) = delete;
  ~EndedMemory() {
    while (first_ != nullptr) {
      first_ = std::move(first_->next);
    }
  }

  void Add(std::unique_ptr<OperationMemory> memory) noexcept {
    memory->next = std::move(first_);
    first_ = std::move(memory);
  }
  // Takes everything from `other`.
  void Add(EndedMemory& other) noexcept {
    while (other.first_ != nullptr) {
      auto memory = std::move(other.first_);
      other.first_ = std::move(memory->next);
      Add(std::move(memory));
    }
  }

 private:
  std::unique_ptr<OperationMemory> first_;
};

// Names the resources of an operation in a `Registrar`; the caller keeps it by
// ring position and releases it at completion.
using Ticket = uint16_t;
// Nothing is held: the buffer is registered, or empty.
inline constexpr Ticket kNoTicket = 0xffff;

// Answer of `Registrar::Prepare*`.
struct Prepared {
  enum class Status : uint8_t {
    kOk,
    kFull,    // Retry when an operation of this endpoint has completed.
    kFailed,  // `error` is the reason; a retry does not help.
  };

  Status status = Status::kFailed;
  Ticket ticket = kNoTicket;
  Errno error{};
  Iova iova{};
};

// A contiguous piece of a local buffer, by device address.
struct LocalPiece {
  Iova iova{};
  uint32_t bytes = 0;
};

// Receives the first `bytes` that `Device::Map` refused for an operation; may
// be empty. Throws nothing.
using MapRefusalListener = std::function<void(Errno error, size_t bytes)>;

// Makes the buffers of one endpoint's operations accessible to the device.
//
// Rule: an implicit registration never outlives its operation, because the
// library receives no event when an application unmaps memory and maps other
// pages at the same address.
// - Registered memory: its mapping is used, nothing is held.
// - Up to `copy_limit_bytes`: copied through a pre-mapped slab. When the slabs
//   are used up, as the next line.
// - Above: mapped for the operation, unmapped by `Finish*`, which the caller
//   calls before it reports the completion. Several segments for a device that
//   takes one go through memory allocated for the operation.
//
// Thread safety: none. Every member is called under the lock of the endpoint
// that owns the registrar (or by its only thread): it takes no lock itself, but
// leaves that one to map memory (`LeaveToMap`). Memory to be unmapped then
// waits in `ended` until the caller has left its locks.
// Cost: registered memory and slabs O(1) plus the copy, no system call, no
// allocation; the rest maps and unmaps.
// Ownership: borrows the device. All tickets are finished before destruction,
// except after the device has ended the contexts that used them.
class Registrar {
 public:
  static constexpr uint32_t kDefaultCopyLimitBytes = 65536;
  static constexpr size_t kMaxSegments = 4;
  static_assert(kMaxSegments == contract::kLocalSegments);

  struct Options {
    // 0 to `SlabPool::kMaxSlabBytes`; 0 maps every unregistered buffer.
    uint32_t copy_limit_bytes = kDefaultCopyLimitBytes;
    // Most tickets held at a time, 1 to 65535: slots of both rings.
    uint32_t tickets = 1024;
    SlabCounts slabs = {};
    MapRefusalListener on_refused = {};
  };

  // Errors: EINVAL for options out of range, ENOMEM, those of `DmaBuffer`.
  static Result<Registrar> Create(Device& device, const Options& options);

  Registrar(Registrar&&) = default;
  Registrar& operator=(Registrar&&) = delete;

  // The lock of a caller that shares the registrar.
  struct Lock {
    void (*leave)(void* lock) = nullptr;
    void (*enter)(void* lock) = nullptr;
    void* lock = nullptr;
  };
  // From now on `Prepare*` leave the caller's lock for each system call and
  // enter it again: the caller then checks again what the lock protects.
  void LeaveToMap(const Lock& lock) noexcept { lock_ = lock; }
  // How many times they did; wraps.
  uint32_t times_left() const noexcept { return times_left_; }
  // Filled after `LeaveToMap`, also by `Prepare*` that fail. The caller takes
  // it out, and destroys it without a lock before it reports the completion.
  EndedMemory& ended() noexcept { return ended_; }

  // For an operation that reads the segments, in order, as one message. At
  // return, copied data may be changed by its owner; mapped data not before
  // the completion. More than `kMaxSegments`: kFailed, EINVAL.
  [[nodiscard]] Prepared PrepareSend(std::span<const Segment> segments) {
    return Prepare(segments, /*receive=*/false);
  }

  // For an operation that fills the segments in order. They stay reserved
  // until `FinishReceive`; only then do they hold the data.
  [[nodiscard]] Prepared PrepareReceive(std::span<const Segment> segments) {
    return Prepare(segments, /*receive=*/true);
  }

  // As `PrepareReceive` of one buffer of user memory, if it goes through a
  // slab. False, changing nothing, for any other.
  [[nodiscard, gnu::always_inline]] bool TryCopyReceive(void* address,
                                                        size_t bytes,
                                                        Ticket* ticket,
                                                        Iova* iova) noexcept {
    Slab slab;
    if (bytes == 0 || bytes > copy_limit_bytes_ || free_count_ == 0 ||
        !slabs_.TryTake(static_cast<uint32_t>(bytes), slab)) {
      return false;
    }
    *ticket = TakeTicket();
    *iova = slab.iova;
    Lease& lease = leases_[*ticket];
    lease.slab = slab;
    lease.targets[0] = {.address = address, .bytes = bytes};
    lease.target_count = 1;
    return true;
  }

  // As `PrepareReceive`, copying nothing, however short it is. More than one
  // segment that is not empty: kFailed, EOPNOTSUPP.
  [[nodiscard]] Prepared PrepareInPlace(std::span<const Segment> segments);

  // An operation's buffer in as many pieces as the device takes.
  struct Pieces {
    Prepared::Status status = Prepared::Status::kFailed;
    Ticket ticket = kNoTicket;
    Errno error{};
    uint32_t count = 0;
    std::array<LocalPiece, kMaxSegments> pieces;

    std::span<const LocalPiece> list() const noexcept {
      return {pieces.data(), count};
    }
  };

  // As `PrepareSend`, or with `receive` as `PrepareReceive`, for a device that
  // takes `kMaxSegments` pieces: segments that the device can access stay in
  // place. The sum of the segments is below 2^32. With `in_place` nothing is
  // copied, however short it is.
  [[nodiscard]] Pieces PreparePieces(std::span<const Segment> segments,
                                     bool receive, bool in_place = false);

  // True when `ticket` holds data that `FinishReceive` moves to its owner.
  bool CopiesOut(Ticket ticket) const noexcept {
    return ticket != kNoTicket && leases_[ticket].target_count != 0;
  }

  // Releases what `ticket` holds; nothing for `kNoTicket`.
  // Precondition: the operation has completed on the device.
  void FinishSend(Ticket ticket) noexcept {
    if (ticket != kNoTicket) {
      Release(ticket);
    }
  }

  // As `FinishSend`, after moving the first `placed_bytes` received to the
  // user's segments; more than fits is not moved. 0 for a receive that ended
  // without data.
  void FinishReceive(Ticket ticket, size_t placed_bytes) noexcept {
    if (ticket != kNoTicket) {
      CopyOut(ticket, placed_bytes);
      Release(ticket);
    }
  }

  uint32_t free_tickets() const noexcept { return free_count_; }
  const SlabPool& slabs() const noexcept { return slabs_; }

 private:
  // Resources of one ticket: a slab, or memory.
  // Aligned so that an index takes fewer instructions to scale.
  struct alignas(16) Lease {
    Slab slab;
    std::unique_ptr<OperationMemory> memory;
    // Destination of received data; empty when the device placed them itself.
    std::array<Segment, kMaxSegments> targets;
    uint32_t target_count = 0;
    Ticket next = kNoTicket;  // Further resources of the operation.
  };

  Registrar() = default;

  Prepared Prepare(std::span<const Segment> segments, bool receive);
  Prepared Copy(std::span<const Segment> segments, Slab slab, bool receive);
  Prepared MapUser(const Segment& segment);
  // Each of the segments, none empty, by itself.
  Pieces MapEach(std::span<const Segment> segments);
  Prepared Gather(std::span<const Segment> segments, size_t bytes,
                  bool receive);
  // Memory whose `member` is made by `make`, which makes system calls, without
  // the caller's lock.
  template <typename Member, typename Make>
  Result<std::unique_ptr<OperationMemory>> MakeMemory(Member member, Make make);
  // Takes a ticket for `memory`, or ends it.
  Prepared Hold(std::unique_ptr<OperationMemory> memory, Iova iova);
  void End(std::unique_ptr<OperationMemory> memory) noexcept;
  Prepared Refused(Errno error, size_t bytes);
  Ticket TakeTicket() noexcept { return free_[--free_count_]; }
  void CopyOut(Ticket ticket, size_t placed_bytes) noexcept;
  void Release(Ticket ticket) noexcept;

  Device* device_ = nullptr;
  Lock lock_;
  uint32_t times_left_ = 0;
  EndedMemory ended_;
  uint32_t copy_limit_bytes_ = 0;
  uint32_t free_count_ = 0;
  std::unique_ptr<Ticket[]> free_;
  SlabPool slabs_;
  std::unique_ptr<Lease[]> leases_;
  MapRefusalListener on_refused_;  // Empty after its call.
};

}  // namespace heddle
