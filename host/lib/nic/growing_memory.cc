// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/growing_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "driver/dma/dma_buffer.h"

namespace heddle::nic {
namespace {

size_t RoundUp(size_t bytes) {
  return (bytes + DmaBuffer::kPageBytes - 1) & ~(DmaBuffer::kPageBytes - 1);
}

}  // namespace

Result<GrowingMemory> GrowingMemory::Create(Device& device, size_t limit_bytes,
                                            size_t first_bytes) {
  if (first_bytes == 0 || first_bytes > limit_bytes) {
    return Errno{EINVAL};
  }
  GrowingMemory memory;
  memory.device_ = &device;
  memory.limit_bytes_ = RoundUp(limit_bytes);
  memory.first_bytes_ = RoundUp(first_bytes);
  void* base = mmap(nullptr, memory.limit_bytes_, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return Errno{ENOMEM};
  }
  memory.base_ = static_cast<std::byte*>(base);
  (void)madvise(base, memory.limit_bytes_, MADV_DONTFORK);
  auto reserved = device.Reserve(base, memory.limit_bytes_);
  if (!reserved.ok()) {
    return reserved.error();
  }
  memory.iova_ = reserved.value();
  memory.reserved_ = true;
  if (auto grown = memory.Grow(memory.first_bytes_); !grown.ok()) {
    return grown.error();
  }
  return memory;
}

Result<bool> GrowingMemory::Grow(size_t bytes) {
  while (bytes_ < bytes) {
    const size_t part = bytes_ == 0 ? first_bytes_ : bytes_;
    if (part > limit_bytes_ - bytes_) {
      return Errno{ENOMEM};
    }
    std::byte* start = base_ + bytes_;
    if (mprotect(start, part, PROT_READ | PROT_WRITE) != 0) {
      return Errno{ENOMEM};
    }
    auto mapped = device_->MapReserved(iova_ + bytes_, start, part);
    if (!mapped.ok()) {
      return mapped.error();
    }
    bytes_ += part;
  }
  return true;
}

GrowingMemory::~GrowingMemory() {
  if (base_ == nullptr) {
    return;
  }
  // The parts, newest first: each but the first is as long as all before it.
  while (bytes_ > 0) {
    const size_t part = bytes_ == first_bytes_ ? bytes_ : bytes_ / 2;
    bytes_ -= part;
    device_->Unmap(iova_ + bytes_, part);
  }
  if (reserved_) {
    device_->Release(iova_, limit_bytes_);
  }
  (void)munmap(base_, limit_bytes_);
}

void GrowingMemory::Swap(GrowingMemory& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(base_, other.base_);
  std::swap(limit_bytes_, other.limit_bytes_);
  std::swap(first_bytes_, other.first_bytes_);
  std::swap(bytes_, other.bytes_);
  std::swap(iova_, other.iova_);
  std::swap(reserved_, other.reserved_);
}

}  // namespace heddle::nic
