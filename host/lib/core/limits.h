// SPDX-License-Identifier: Apache-2.0
// The numbers that fi_getinfo advertises and that the objects enforce, whatever
// the device: how many objects it has is in `DeviceLimits`.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "host/lib/backend/operation.h"

namespace heddle::core {

// Transmit. `fi_inject` and FI_INJECT take up to `kInjectBytes`.
inline constexpr size_t kInjectBytes = backend::kInjectBytes;
inline constexpr size_t kIovLimit = backend::kMaxSegments;
inline constexpr size_t kMaxMessageBytes = backend::kMaxMessageBytes;
inline constexpr size_t kCqDataBytes = 8;

// Depth of a transmit or receive queue, in operations.
inline constexpr size_t kDefaultQueueSize = 256;
inline constexpr size_t kMaxQueueSize = 2048;

// Depth of a completion queue when the application names none, and the most
// it can have, in entries.
inline constexpr size_t kDefaultCqSize = 1024;
inline constexpr size_t kMaxCqSize = 32768;

// Memory regions. Those that peers may reach are the device's, of one part, and
// keys of the application's choice are shorter than the device's. What no peer
// reaches is no object of the device: the number stands for any.
inline constexpr size_t kMrKeyBytes = 8;
inline constexpr size_t kMrUserKeyBytes = 6;
inline constexpr size_t kMrIovLimit = kIovLimit;
inline constexpr size_t kMrCount = 65536;

// 64 fields of one bit: the application uses a tag as it likes
// (FI_TAG_GENERIC of later headers).
inline constexpr uint64_t kTagFormat = 0xaaaaaaaaaaaaaaaa;

// FI_OPT_MIN_MULTI_RECV until it is set.
inline constexpr uint32_t kDefaultMinMultiRecv = 64;

// Memory for the payload of unexpected messages of one receive context: the
// setting, or more if the application requested more; whole pages.
inline constexpr size_t kMaxUnexpectedBytes = size_t{1} << 30;
constexpr uint32_t UnexpectedBytes(size_t setting, size_t total_buffered_recv) {
  constexpr size_t kPage = 4096;
  const size_t wanted = total_buffered_recv < kMaxUnexpectedBytes
                            ? total_buffered_recv
                            : kMaxUnexpectedBytes;
  const size_t bytes = setting < wanted ? wanted : setting;
  return static_cast<uint32_t>((bytes + kPage - 1) / kPage * kPage);
}

// Bytes of `err_data` in an error entry: the peer's address.
inline constexpr size_t kMaxErrDataBytes = 28;

// UET over UDP/IPv4, absolute addressing, the project's own profile.
inline constexpr uint32_t kProtocol = FI_PROV_SPECIFIC | 0x4845;  // "HE"
inline constexpr uint32_t kProtocolVersion = 1;

// Where an endpoint reaches: this machine and others.
inline constexpr uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;

inline constexpr uint64_t kRxOpFlags = FI_COMPLETION;

// The order that an endpoint keeps when the application asks for none: sends
// from one endpoint to another arrive in order.
inline constexpr uint64_t kDefaultMessageOrder = FI_ORDER_SAS;

}  // namespace heddle::core
