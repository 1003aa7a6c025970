// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/region.h"

#include <linux/vfio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "driver/vfio/info_capabilities.h"

namespace heddle::vfio {
namespace {

struct Span {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// The parts of the region that may be mapped.
std::vector<Span> Mappable(const std::vector<std::byte>& info,
                           const vfio_region_info& head) {
  if ((head.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) {
    return {};
  }
  std::vector<Span> spans;
  bool sparse = false;
  const uint32_t first =
      (head.flags & VFIO_REGION_INFO_FLAG_CAPS) != 0 ? head.cap_offset : 0;
  ForEachCapability(info, first, [&](uint16_t id, size_t offset) {
    vfio_region_info_cap_sparse_mmap capability{};
    if (id != VFIO_REGION_INFO_CAP_SPARSE_MMAP ||
        !ReadAt(info, offset, &capability)) {
      return;
    }
    sparse = true;
    for (uint32_t i = 0; i < capability.nr_areas; ++i) {
      vfio_region_sparse_mmap_area area{};
      if (!ReadAt(info, offset + sizeof(capability) + i * sizeof(area),
                  &area)) {
        return;
      }
      spans.push_back({.offset = area.offset, .bytes = area.size});
    }
  });
  if (!sparse) {
    spans.push_back({.offset = 0, .bytes = head.size});
  }
  return spans;
}

}  // namespace

Result<Region> Region::Open(Kernel& kernel, int device_fd, uint32_t index,
                            uint64_t bytes, std::string& message) {
  const std::string name = "region " + std::to_string(index);
  const auto failed = [&](const char* call, Errno error) {
    message =
        name + ": " + call + ": " + std::strerror(static_cast<int>(error));
    return error;
  };
  vfio_region_info head{};
  head.index = index;
  std::vector<std::byte> info;
  const Result<bool> asked =
      ReadInfo(kernel, device_fd, VFIO_DEVICE_GET_REGION_INFO, head, info);
  if (!asked.ok()) {
    return failed("VFIO_DEVICE_GET_REGION_INFO", asked.error());
  }
  std::memcpy(&head, info.data(), sizeof(head));
  constexpr uint32_t kReadWrite =
      VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
  if (head.size < bytes || head.size == 0 ||
      (head.flags & kReadWrite) != kReadWrite) {
    message = name + ": has " + std::to_string(head.size) +
              " bytes, the driver needs " + std::to_string(bytes) +
              ", to read and to write; not this NIC, or another contract";
    return Errno{ENXIO};
  }
  Region region;
  region.kernel_ = &kernel;
  region.fd_ = device_fd;
  region.offset_ = head.offset;
  region.bytes_ = head.size;
  const uint64_t wanted = bytes == 0 ? 0 : head.size;
  for (const Span& span : Mappable(info, head)) {
    if (span.offset >= wanted || span.bytes == 0) {
      continue;
    }
    const uint64_t length = std::min(span.bytes, wanted - span.offset);
    const Result<void*> mapped =
        kernel.MapFile(device_fd, head.offset + span.offset, length);
    if (!mapped.ok()) {
      return failed("mmap", mapped.error());
    }
    region.areas_.push_back(
        {.offset = span.offset, .bytes = length, .address = mapped.value()});
  }
  return region;
}

Region::~Region() {
  for (const Area& area : areas_) {
    kernel_->UnmapFile(area.address, area.bytes);
  }
}

void Region::Swap(Region& other) noexcept {
  std::swap(kernel_, other.kernel_);
  std::swap(fd_, other.fd_);
  std::swap(offset_, other.offset_);
  std::swap(bytes_, other.bytes_);
  std::swap(areas_, other.areas_);
}

volatile std::byte* Region::Mapped(uint64_t offset, uint64_t bytes) const {
  for (const Area& area : areas_) {
    if (offset >= area.offset && bytes <= area.bytes &&
        offset - area.offset <= area.bytes - bytes) {
      return static_cast<std::byte*>(area.address) + (offset - area.offset);
    }
  }
  return nullptr;
}

}  // namespace heddle::vfio
