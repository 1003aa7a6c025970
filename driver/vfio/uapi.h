// SPDX-License-Identifier: Apache-2.0
// Kernel interfaces newer than the headers that this is built with: iommufd
// and the VFIO device cdev (Linux 6.2 and 6.6; include/uapi/linux/iommufd.h).
#pragma once

#include <linux/vfio.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace heddle::vfio::uapi {

struct DeviceBind {
  uint32_t argsz = sizeof(DeviceBind);
  uint32_t flags = 0;
  int32_t iommufd = -1;
  uint32_t out_devid = 0;
};
static_assert(sizeof(DeviceBind) == 16);

struct DeviceAttach {
  uint32_t argsz = sizeof(DeviceAttach);
  uint32_t flags = 0;
  uint32_t pt_id = 0;
};
static_assert(sizeof(DeviceAttach) == 12);

struct IoasAlloc {
  uint32_t size = sizeof(IoasAlloc);
  uint32_t flags = 0;
  uint32_t out_ioas_id = 0;
};
static_assert(sizeof(IoasAlloc) == 12);

struct IovaRange {
  uint64_t start = 0;
  uint64_t last = 0;
};

struct IoasIovaRanges {
  uint32_t size = sizeof(IoasIovaRanges);
  uint32_t ioas_id = 0;
  uint32_t num_iovas = 0;
  uint32_t reserved = 0;
  uint64_t allowed_iovas = 0;  // Address of IovaRange[num_iovas].
  uint64_t out_iova_alignment = 0;
};
static_assert(sizeof(IoasIovaRanges) == 32);

enum : uint32_t {
  kIoasMapFixedIova = 1u << 0,
  kIoasMapWriteable = 1u << 1,
  kIoasMapReadable = 1u << 2,
};

struct IoasMap {
  uint32_t size = sizeof(IoasMap);
  uint32_t flags = 0;
  uint32_t ioas_id = 0;
  uint32_t reserved = 0;
  uint64_t user_va = 0;
  uint64_t length = 0;
  uint64_t iova = 0;
};
static_assert(sizeof(IoasMap) == 40);

struct IoasUnmap {
  uint32_t size = sizeof(IoasUnmap);
  uint32_t ioas_id = 0;
  uint64_t iova = 0;
  uint64_t length = 0;
};
static_assert(sizeof(IoasUnmap) == 24);

inline constexpr unsigned long kDeviceBindIommufd =
    _IO(VFIO_TYPE, VFIO_BASE + 18);
inline constexpr unsigned long kDeviceAttachIommufd =
    _IO(VFIO_TYPE, VFIO_BASE + 19);
inline constexpr unsigned long kIoasAlloc = _IO(';', 0x81);
inline constexpr unsigned long kIoasIovaRanges = _IO(';', 0x84);
inline constexpr unsigned long kIoasMap = _IO(';', 0x85);
inline constexpr unsigned long kIoasUnmap = _IO(';', 0x86);

}  // namespace heddle::vfio::uapi
