// SPDX-License-Identifier: Apache-2.0
// The numbers that fi_getinfo advertises and that the objects enforce.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

namespace heddle::core {

// Transmit. `fi_inject` and FI_INJECT take up to `kInjectBytes`.
inline constexpr size_t kInjectBytes = 192;
inline constexpr size_t kIovLimit = 4;
inline constexpr size_t kMaxMessageBytes = 0xffffffff;
inline constexpr size_t kCqDataBytes = 8;

// Depth of a transmit or receive queue, in operations.
inline constexpr size_t kDefaultQueueSize = 256;
inline constexpr size_t kMaxQueueSize = 2048;

// Depth of a completion queue when the application names none, and the most
// it can have, in entries.
inline constexpr size_t kDefaultCqSize = 1024;
inline constexpr size_t kMaxCqSize = 32768;

// Memory regions.
inline constexpr size_t kMrKeyBytes = 8;
inline constexpr size_t kMrIovLimit = kIovLimit;
inline constexpr size_t kMrCount = 65536;

// Objects of one domain.
inline constexpr size_t kCqCount = 16;
inline constexpr size_t kEndpointCount = 16;
inline constexpr size_t kTxContextCount = 16;
inline constexpr size_t kRxContextCount = 16;

// Bytes of `err_data` in an error entry: the peer's address.
inline constexpr size_t kMaxErrDataBytes = 28;

// UET over UDP/IPv4, absolute addressing, the project's own profile.
inline constexpr uint32_t kProtocol = FI_PROV_SPECIFIC | 0x4845;  // "HE"
inline constexpr uint32_t kProtocolVersion = 1;

// Capabilities that may be asked for.
inline constexpr uint64_t kPrimaryCaps = FI_MSG;
inline constexpr uint64_t kModifierCaps = FI_SEND | FI_RECV;
inline constexpr uint64_t kSecondaryCaps =
    FI_SOURCE | FI_SOURCE_ERR | FI_LOCAL_COMM | FI_REMOTE_COMM;
inline constexpr uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
inline constexpr uint64_t kTxCaps = FI_MSG | FI_SEND;
inline constexpr uint64_t kRxCaps =
    FI_MSG | FI_RECV | FI_SOURCE | FI_SOURCE_ERR;

// Flags that an endpoint's default `op_flags` may hold. A completion is
// written when the target has acknowledged, so the two weaker levels hold too.
inline constexpr uint64_t kTxOpFlags =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE;
inline constexpr uint64_t kRxOpFlags = FI_COMPLETION;

// Sends from one endpoint to another arrive in order.
inline constexpr uint64_t kMessageOrder = FI_ORDER_SAS;

}  // namespace heddle::core
