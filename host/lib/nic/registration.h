// SPDX-License-Identifier: Apache-2.0
// Registered memory, and the pieces of a message.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "driver/dma/registrar.h"
#include "host/lib/backend/objects.h"
#include "host/lib/backend/operation.h"
#include "host/lib/nic/remote_access.h"

namespace heddle::nic {

using Segment = heddle::Segment;
using Region = heddle::MappedRegion;
using LocalPiece = heddle::LocalPiece;

// Most pieces of one message.
inline constexpr size_t kMaxSegments = Registrar::kMaxSegments;
static_assert(kMaxSegments == backend::kMaxSegments);

// Memory of the application that stays mapped. Peers reach the first part.
//
// Thread safety and ownership: as `backend::Region`; borrows NIC and memory.
class Registration final : public backend::Region {
 public:
  // As `backend::Device::Register`.
  static Result<std::unique_ptr<Registration>> Create(
      Nic& nic, std::span<const iovec> parts, size_t* refused_bytes);

  // Data path: the part that holds [address, address + bytes) of the memory
  // that `descriptor` stands for. Null for a null descriptor; any part, which
  // the post then refuses, when none holds it.
  static const nic::Region* Find(const void* descriptor, const void* address,
                                 size_t bytes) noexcept {
    if (descriptor == nullptr) {
      return nullptr;
    }
    const Registration& region = From(descriptor);
    size_t i = 0;
    while (i + 1 < region.count_ && !region.parts_[i].Covers(address, bytes)) {
      ++i;
    }
    return &region.parts_[i];
  }

  // Data path: the same of memory of one part; of other memory, what covers
  // nothing but 0 bytes. Null for a null descriptor.
  static const Reach* ReachOf(const void* descriptor) noexcept {
    return descriptor != nullptr ? &From(descriptor).whole_ : nullptr;
  }

  Result<uint64_t> Grant(const Access& access) override;
  bool Revoke() noexcept override { return access_.End(); }
  bool granted() const noexcept override { return access_.granted(); }

 private:
  explicit Registration(Nic& nic) : nic_(nic) {}

  // A descriptor is the `backend::Region`.
  static const Registration& From(const void* descriptor) noexcept {
    return static_cast<const Registration&>(
        *static_cast<const backend::Region*>(descriptor));
  }

  Reach whole_;
  size_t count_ = 0;
  std::array<nic::Region, kMaxSegments> parts_;
  // Above: every post. Below: cold.
  Nic& nic_;
  RemoteAccess access_;
};

// As `Locking::Guard`, for posts that may map memory: the registrar leaves the
// lock for that, and memory of operations that ended is unmapped after it.
template <typename Locking>
class MappingGuard {
 public:
  MappingGuard(backend::SpinLock& lock, Registrar& registrar) noexcept
      : lock_(lock), registrar_(registrar) {
    if constexpr (Locking::kLocks) {
      lock.lock();
      registrar.LeaveToMap(
          {.leave =
               [](void* held) {
                 static_cast<backend::SpinLock*>(held)->unlock();
               },
           .enter =
               [](void* left) {
                 static_cast<backend::SpinLock*>(left)->lock();
               },
           .lock = &lock});
    }
  }
  ~MappingGuard() {
    if constexpr (Locking::kLocks) {
      const EndedMemory ended = std::move(registrar_.ended());
      lock_.unlock();
    }
  }
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

 private:
  backend::SpinLock& lock_;
  Registrar& registrar_;
};

// A payload with the registrations that its descriptors stand for.
class Segments {
 public:
  explicit Segments(const backend::Payload& payload) noexcept
      : count_(payload.count) {
    for (size_t i = 0; i < count_; ++i) {
      segments_[i] = Of({.address = payload.parts[i].iov_base,
                         .bytes = payload.parts[i].iov_len,
                         .descriptor = payload.descriptors == nullptr
                                           ? nullptr
                                           : payload.descriptors[i]});
    }
  }

  static Segment Of(const backend::Buffer& buffer) noexcept {
    return {.address = const_cast<void*>(buffer.address),
            .bytes = buffer.bytes,
            .region = Registration::Find(buffer.descriptor, buffer.address,
                                         buffer.bytes)};
  }

  std::span<const Segment> list() const noexcept {
    return {segments_.data(), count_};
  }

 private:
  std::array<Segment, kMaxSegments> segments_;
  size_t count_;
};

}  // namespace heddle::nic
