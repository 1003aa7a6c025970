// SPDX-License-Identifier: Apache-2.0
// Messages of the vfio-user protocol, version 0.0 (QEMU, docs/interop/
// vfio-user.rst). Little-endian on the hosts that we serve; structures of the
// kernel's VFIO keep their layout.
#pragma once

#include <bit>
#include <cstdint>

namespace heddle::sim::vfio_user {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint16_t kMajor = 0;
inline constexpr uint16_t kMinor = 0;

enum class Command : uint16_t {
  kVersion = 1,
  kDmaMap = 2,
  kDmaUnmap = 3,
  kDeviceGetInfo = 4,
  kDeviceGetRegionInfo = 5,
  kDeviceGetRegionIoFds = 6,
  kDeviceGetIrqInfo = 7,
  kDeviceSetIrqs = 8,
  kRegionRead = 9,
  kRegionWrite = 10,
  kDmaRead = 11,
  kDmaWrite = 12,
  kDeviceReset = 13,
};

enum : uint32_t {
  kFlagTypeMask = 0xf,
  kFlagReply = 0x1,
  kFlagNoReply = 0x10,
  kFlagError = 0x20,
};

struct Header {
  uint16_t id = 0;
  Command command{};
  uint32_t bytes = 0;  // Of the message, this header included.
  uint32_t flags = 0;
  uint32_t error = 0;  // A positive errno, with kFlagError.
};
static_assert(sizeof(Header) == 16);

// Followed by a JSON object as text, its end a zero byte.
struct Version {
  uint16_t major = 0;
  uint16_t minor = 0;
};
static_assert(sizeof(Version) == 4);

enum : uint32_t { kDmaReadable = 1u << 0, kDmaWritable = 1u << 1 };

struct DmaMap {
  uint32_t argsz = 0;
  uint32_t flags = 0;
  uint64_t offset = 0;  // In the file that comes along.
  uint64_t address = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(DmaMap) == 32);

enum : uint32_t { kUnmapDirtyPages = 1u << 0, kUnmapAll = 1u << 1 };

struct DmaUnmap {
  uint32_t argsz = 0;
  uint32_t flags = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(DmaUnmap) == 24);

// Followed by the data of a write, or of the answer to a read.
struct RegionAccess {
  uint64_t offset = 0;
  uint32_t region = 0;
  uint32_t count = 0;
};
static_assert(sizeof(RegionAccess) == 16);

// Longest data of one access, as we tell the client. BARs and configuration
// space are accessed by registers.
inline constexpr uint32_t kMaxTransferBytes = 4096;
// Longest message that we take.
inline constexpr uint32_t kMaxMessageBytes = 16384;
// QEMU takes no larger number.
inline constexpr uint32_t kMaxMessageFds = 16;

}  // namespace heddle::sim::vfio_user
