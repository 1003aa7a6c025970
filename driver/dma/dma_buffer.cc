// SPDX-License-Identifier: Apache-2.0
#include "driver/dma/dma_buffer.h"

#include <linux/mman.h>
#include <sys/mman.h>

#include <cerrno>

namespace heddle {
namespace {

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::byte* MapPages(size_t bytes, int flags) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

}  // namespace

Result<DmaBuffer> DmaBuffer::Create(Device& device, size_t bytes) {
  if (bytes == 0 || bytes > SIZE_MAX - kHugePageBytes) {
    return Errno{EINVAL};
  }
  DmaBuffer buffer;
  if (bytes >= kHugePageBytes) {
    buffer.bytes_ = RoundUp(bytes, kHugePageBytes);
    // This size, also if the system's default differs.
    buffer.address_ = MapPages(buffer.bytes_, MAP_HUGETLB | MAP_HUGE_2MB);
  }
  if (buffer.address_ == nullptr) {
    buffer.bytes_ = RoundUp(bytes, kPageBytes);
    buffer.address_ = MapPages(buffer.bytes_, 0);
  }
  if (buffer.address_ == nullptr) {
    return Errno{ENOMEM};
  }
  // From here on the destructor returns the pages.
  if (madvise(buffer.address_, buffer.bytes_, MADV_DONTFORK) != 0) {
    return Errno{errno};
  }
  Result<Iova> mapped = device.Map(buffer.address_, buffer.bytes_);
  if (!mapped.ok()) {
    return mapped.error();
  }
  buffer.iova_ = mapped.value();
  buffer.device_ = &device;
  return buffer;
}

DmaBuffer::~DmaBuffer() {
  if (device_ != nullptr) {
    device_->Unmap(iova_, bytes_);
  }
  if (address_ != nullptr) {
    munmap(address_, bytes_);
  }
}

}  // namespace heddle
