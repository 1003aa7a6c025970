// SPDX-License-Identifier: Apache-2.0
// What a call of the data path asks of a backend.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace heddle::backend {

// Numbered so that a Heddle device's descriptor takes them as they are;
// host/lib/nic asserts that.
enum class Opcode : uint8_t {
  kWrite = 1,
  kRead = 2,
  kSend = 5,
  kTaggedSend = 9
};

// Bits of `Operation::flags`, likewise.
inline constexpr uint8_t kReportSuccess = 0x01;  // Failure always is.
inline constexpr uint8_t kCarryData = 0x08;      // `data` goes to the target.
inline constexpr uint8_t kFence = 0x10;          // FI_FENCE.
inline constexpr uint8_t kDeliveryComplete = 0x20;

// Most pieces of a message, of either side.
inline constexpr size_t kMaxSegments = 4;
// Longest payload that any operation may leave to the library at once.
inline constexpr size_t kInjectBytes = 192;
inline constexpr size_t kMaxMessageBytes = 0xffffffff;

// One operation of a transmit context. The payload is given beside it.
struct Operation {
  uint64_t context = 0;
  uint64_t data = 0;  // With `kCarryData`.
  uint64_t peer = 0;  // Index in the endpoint's address vector.
  uint8_t flags = kReportSuccess;
  bool copy_now = false;  // The payload is the caller's again at return.
  bool more = false;      // The device may learn of it with the next one.
  Opcode opcode = Opcode::kSend;
  // The peer's memory, for what is no message: key, and what its owner says,
  // an offset or a virtual address. The key of a tagged message is its tag.
  uint64_t key = 0;
  uint64_t address = 0;
};

// Use of the message that a receive matches, numbered likewise. All
// but `kReceive` end at once; those of a claim name it by the context of the
// receive that made it.
enum class MatchOp : uint8_t {
  kReceive = 0,
  kPeek = 1,            // FI_PEEK: reports it.
  kClaim = 2,           // FI_PEEK | FI_CLAIM: keeps it as well.
  kDiscard = 3,         // FI_PEEK | FI_DISCARD: drops it.
  kReceiveClaimed = 4,  // FI_CLAIM.
  kDiscardClaimed = 5,  // FI_CLAIM | FI_DISCARD.
};

inline constexpr uint64_t kAnySource = UINT64_MAX;  // FI_ADDR_UNSPEC.

// One receive. The buffer is given beside it.
struct ReceiveOperation {
  uint64_t context = 0;
  bool report = true;  // Report success; failure always is.
  bool more = false;   // As in `Operation`.
};

// One receive of a context that matches; only `kReceive` and `kReceiveClaimed`
// have a buffer.
struct MatchOperation {
  uint64_t context = 0;
  bool report = true;
  bool more = false;
  MatchOp match = MatchOp::kReceive;
  bool many = false;             // FI_MULTI_RECV, for `kReceive`,
  uint32_t min_free = 0;         // and FI_OPT_MIN_MULTI_RECV with it.
  uint64_t source = kAnySource;  // Index in the endpoint's address vector.
  uint64_t tag = 0;              // With tagged receives.
  uint64_t ignore = 0;           // Bits of the tag that match any.
};

// A piece of the peer's memory.
struct RemoteSegment {
  uint64_t address = 0;
  uint64_t key = 0;
  size_t bytes = 0;
};

// A local buffer of one piece. `descriptor` is what fi_mr_desc answered for
// the memory, or null.
struct Buffer {
  const void* address = nullptr;
  size_t bytes = 0;
  const void* descriptor = nullptr;
};

// A local buffer in pieces, as the vector calls have it. `descriptors` is null
// or has one for each piece. Precondition: `count` <= `kMaxSegments`.
struct Payload {
  const iovec* parts = nullptr;
  void* const* descriptors = nullptr;
  size_t count = 0;
};

}  // namespace heddle::backend
