// SPDX-License-Identifier: Apache-2.0
#include "driver/dma/registrar.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace heddle {
namespace {

Prepared Failed(Errno error) {
  return {.status = Prepared::Status::kFailed, .error = error};
}

Prepared Full() {
  return {.status = Prepared::Status::kFull};
}

// False when the sum does not fit.
bool TotalBytes(std::span<const Segment> segments, size_t& total) {
  total = 0;
  for (const Segment& segment : segments) {
    if (__builtin_add_overflow(total, segment.bytes, &total)) {
      return false;
    }
  }
  return true;
}

void CopyIn(std::span<const Segment> segments, std::byte* to) {
  for (const Segment& segment : segments) {
    if (segment.bytes != 0) {
      std::memcpy(to, segment.address, segment.bytes);
      to += segment.bytes;
    }
  }
}

}  // namespace

Result<MappedRegion> MappedRegion::Create(Device& device, void* address,
                                          size_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(address);
  if (bytes == 0 || start > UINTPTR_MAX - bytes) {
    return Errno{EINVAL};
  }
  Result<Iova> mapped = device.Map(address, bytes);
  if (!mapped.ok()) {
    return mapped.error();
  }
  MappedRegion region;
  region.device_ = &device;
  region.reach_ = {
      .start = start,
      .bytes = bytes,
      .longest = std::min<size_t>(bytes, contract::kMaxMessageBytes),
      .shift = ToInteger(mapped.value()) - start};
  return region;
}

MappedRegion::~MappedRegion() {
  if (device_ != nullptr) {
    device_->Unmap(Iova{reach_.start + reach_.shift}, reach_.bytes);
  }
}

Result<Registrar> Registrar::Create(Device& device, const Options& options) {
  if (options.copy_limit_bytes > SlabPool::kMaxSlabBytes ||
      options.tickets == 0 || options.tickets > kNoTicket) {
    return Errno{EINVAL};
  }
  Result<SlabPool> slabs = SlabPool::Create(device, options.slabs);
  if (!slabs.ok()) {
    return slabs.error();
  }
  Registrar registrar;
  registrar.device_ = &device;
  registrar.copy_limit_bytes_ = options.copy_limit_bytes;
  registrar.slabs_ = std::move(slabs.value());
  registrar.on_refused_ = options.on_refused;
  registrar.leases_ = std::make_unique<Lease[]>(options.tickets);
  registrar.free_ = std::make_unique<Ticket[]>(options.tickets);
  registrar.free_count_ = options.tickets;
  for (uint32_t i = 0; i < options.tickets; ++i) {
    registrar.free_[i] = static_cast<Ticket>(options.tickets - 1 - i);
  }
  return registrar;
}

Prepared Registrar::Prepare(std::span<const Segment> segments, bool receive) {
  size_t bytes = 0;
  if (segments.size() > kMaxSegments || !TotalBytes(segments, bytes)) {
    return Failed(Errno{EINVAL});
  }
  if (bytes == 0) {
    return {.status = Prepared::Status::kOk};
  }
  if (segments.size() == 1 && segments[0].region != nullptr) {
    const Segment& segment = segments[0];
    if (!segment.region->Covers(segment.address, segment.bytes)) {
      return Failed(Errno{EINVAL});
    }
    return {.status = Prepared::Status::kOk,
            .iova = segment.region->iova_of(segment.address)};
  }
  if (free_count_ == 0) {
    return Full();
  }
  Slab slab;
  if (bytes <= copy_limit_bytes_ &&
      slabs_.TryTake(static_cast<uint32_t>(bytes), slab)) {
    return Copy(segments, slab, receive);
  }
  if (segments.size() == 1) {
    return MapUser(segments[0]);
  }
  return Gather(segments, bytes, receive);
}

Registrar::Pieces Registrar::PreparePieces(std::span<const Segment> segments,
                                           bool receive, bool in_place) {
  if (segments.size() > kMaxSegments) {
    return {.error = Errno{EINVAL}, .pieces = {}};
  }
  std::array<Segment, kMaxSegments> full;
  size_t count = 0;
  size_t bytes = 0;
  bool registered = true;
  for (const Segment& segment : segments) {
    if (segment.bytes != 0) {
      full[count++] = segment;
      bytes += segment.bytes;
      registered = registered && segment.region != nullptr;
    }
  }
  const std::span<const Segment> used(full.data(), count);
  if (in_place || (count >= 2 && (registered || bytes > copy_limit_bytes_))) {
    return MapEach(used);
  }
  const Prepared prepared = Prepare(used, receive);
  Pieces made{.status = prepared.status,
              .ticket = prepared.ticket,
              .error = prepared.error,
              .count = bytes == 0 ? 0U : 1U,
              .pieces = {}};
  made.pieces[0] = {prepared.iova, static_cast<uint32_t>(bytes)};
  return made;
}

Prepared Registrar::PrepareInPlace(std::span<const Segment> segments) {
  const Pieces pieces =
      PreparePieces(segments, /*receive=*/true, /*in_place=*/true);
  if (pieces.count > 1) {
    FinishSend(pieces.ticket);
    return Failed(Errno{EOPNOTSUPP});
  }
  return {.status = pieces.status,
          .ticket = pieces.ticket,
          .error = pieces.error,
          .iova = pieces.count == 0 ? Iova{} : pieces.pieces[0].iova};
}

Registrar::Pieces Registrar::MapEach(std::span<const Segment> segments) {
  Pieces made;
  made.status = Prepared::Status::kOk;
  for (const Segment& segment : segments) {
    // One segment by itself is in place or mapped, so that this is enough for
    // both directions.
    Prepared prepared;
    if (segment.region != nullptr) {
      prepared = Prepare({&segment, 1}, /*receive=*/false);
    } else if (free_count_ == 0) {
      prepared = Full();
    } else {
      prepared = MapUser(segment);
    }
    if (prepared.status != Prepared::Status::kOk) {
      FinishSend(made.ticket);
      return {.status = prepared.status, .error = prepared.error, .pieces = {}};
    }
    if (prepared.ticket != kNoTicket) {
      leases_[prepared.ticket].next = made.ticket;
      made.ticket = prepared.ticket;
    }
    made.pieces[made.count++] = {prepared.iova,
                                 static_cast<uint32_t>(segment.bytes)};
  }
  return made;
}

Prepared Registrar::Copy(std::span<const Segment> segments, Slab slab,
                         bool receive) {
  const Ticket ticket = TakeTicket();
  Lease& lease = leases_[ticket];
  lease.slab = slab;
  if (receive) {
    std::copy(segments.begin(), segments.end(), lease.targets.begin());
    lease.target_count = static_cast<uint32_t>(segments.size());
  } else {
    CopyIn(segments, slab.address);
  }
  return {.status = Prepared::Status::kOk, .ticket = ticket, .iova = slab.iova};
}

template <typename Member, typename Make>
Result<std::unique_ptr<OperationMemory>> Registrar::MakeMemory(Member member,
                                                               Make make) {
  const Lock lock = lock_;
  if (lock.lock != nullptr) {
    lock.leave(lock.lock);
  }
  Errno error{ENOMEM};
  std::unique_ptr<OperationMemory> memory(new (std::nothrow) OperationMemory);
  if (memory != nullptr) {
    auto made = make();
    error = made.ok() ? Errno{0} : made.error();
    if (made.ok()) {
      *memory.*member = std::move(made.value());
    }
  }
  if (lock.lock != nullptr) {
    lock.enter(lock.lock);
    ++times_left_;
  }
  if (error != Errno{0}) {
    return error;
  }
  return memory;
}

Prepared Registrar::MapUser(const Segment& segment) {
  auto memory = MakeMemory(&OperationMemory::region, [&] {
    return MappedRegion::Create(*device_, segment.address, segment.bytes);
  });
  if (!memory.ok()) {
    return Refused(memory.error(), segment.bytes);
  }
  const Iova iova = memory.value()->region.iova_of(segment.address);
  return Hold(std::move(memory.value()), iova);
}

Prepared Registrar::Hold(std::unique_ptr<OperationMemory> memory, Iova iova) {
  if (free_count_ == 0) {
    End(std::move(memory));
    return Full();
  }
  const Ticket ticket = TakeTicket();
  leases_[ticket].memory = std::move(memory);
  return {.status = Prepared::Status::kOk, .ticket = ticket, .iova = iova};
}

Prepared Registrar::Gather(std::span<const Segment> segments, size_t bytes,
                           bool receive) {
  auto memory = MakeMemory(&OperationMemory::memory,
                           [&] { return DmaBuffer::Create(*device_, bytes); });
  if (!memory.ok()) {
    return Refused(memory.error(), bytes);
  }
  DmaBuffer& buffer = memory.value()->memory;
  std::byte* const data = buffer.data();
  const Prepared prepared = Hold(std::move(memory.value()), buffer.iova());
  if (prepared.status == Prepared::Status::kOk && receive) {
    Lease& lease = leases_[prepared.ticket];
    std::copy(segments.begin(), segments.end(), lease.targets.begin());
    lease.target_count = static_cast<uint32_t>(segments.size());
  } else if (prepared.status == Prepared::Status::kOk) {
    CopyIn(segments, data);
  }
  return prepared;
}

void Registrar::End(std::unique_ptr<OperationMemory> memory) noexcept {
  if (lock_.lock != nullptr && memory != nullptr) {
    ended_.Add(std::move(memory));
  }
}

Prepared Registrar::Refused(Errno error, size_t bytes) {
  if (on_refused_) {
    std::exchange(on_refused_, {})(error, bytes);
  }
  return Failed(error);
}

void Registrar::CopyOut(Ticket ticket, size_t placed_bytes) noexcept {
  const Lease& lease = leases_[ticket];
  const std::byte* from = lease.slab.address != nullptr ? lease.slab.address
                          : lease.memory != nullptr
                              ? lease.memory->memory.data()
                              : nullptr;
  for (uint32_t i = 0; i < lease.target_count && placed_bytes != 0; ++i) {
    const size_t part = std::min(placed_bytes, lease.targets[i].bytes);
    if (part != 0) {
      std::memcpy(lease.targets[i].address, from, part);
      from += part;
      placed_bytes -= part;
    }
  }
}

void Registrar::Release(Ticket ticket) noexcept {
  while (ticket != kNoTicket) {
    Lease& lease = leases_[ticket];
    if (lease.slab.address != nullptr) {
      slabs_.Return(lease.slab);
      lease.slab.address = nullptr;
    } else {
      End(std::move(lease.memory));
    }
    lease.target_count = 0;
    free_[free_count_++] = ticket;
    ticket = std::exchange(lease.next, kNoTicket);
  }
}

}  // namespace heddle
