// SPDX-License-Identifier: Apache-2.0
// The events that the sides saw, in each side's own order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/differential/stream.h"

namespace heddle::differential {

// Operations are known by their place in the stream. Receives that a side posts
// of itself, so that nothing waits for ever, are numbered from `kSpareBase`.
inline constexpr uint32_t kSpareBase = 1'000'000;
// The same of tagged messages: they match any.
inline constexpr uint32_t kTaggedSpareBase = 500'000'000;
// The receive of the message that claim `number` kept is `kClaimBase + number`.
inline constexpr uint32_t kClaimBase = 1'000'000'000;
// Of a completion whose context is nobody's, or an endpoint's.
inline constexpr uint32_t kNobody = UINT32_MAX;

enum class EventKind : uint8_t {
  kCalled,      // `number` was called, `result` is what the call returned.
  kSpare,       // A spare receive of `bytes` was posted at `endpoint`.
  kClaimed,     // The receive `number` of a claimed message, of `bytes`, was
                // posted at `endpoint`.
  kCompleted,   // A completion of `number`.
  kFailed,      // A completion in error: `result` is the FI_* error.
  kFound,       // Peek `number` found a message of `beyond` bytes.
  kChanged,     // The buffer of `number` changed after its completion.
  kMemory,      // `content` at `offset` of `region`, the rest is as before.
  kResult,      // `content` is what read `number` brought.
  kNotified,    // Remote completion data came with a write of a peer.
  kMiscounted,  // A counter of `endpoint` says `result`, not `bytes`.
  kRestarted,   // The NIC has opened `bytes` PDCs again to a new incarnation.
  kSettled,     // Nothing is under way any more; one per sync and side.
};

// Not every kind uses every member; those it does not are 0.
struct Event {
  EventKind kind = EventKind::kCalled;
  // Monotonic, the same clock for all sides. A call has the time before it.
  uint64_t time_ns = 0;
  uint32_t number = 0;
  uint32_t endpoint = 0;
  uint32_t region = 0;
  int64_t result = 0;
  // Of the message as far as it was placed; of a cancel, what it cancels.
  uint64_t bytes = 0;
  uint64_t beyond = 0;  // Bytes of the message that found no room.
  // The place of a message in a buffer of many, too.
  uint64_t offset = 0;
  bool held = false;  // That buffer takes further messages.
  uint64_t data = 0;
  bool has_data = false;
  int32_t source = -1;  // Index of the sender's place, -1: none was named.
  uint64_t tag = 0;     // The message has it, if it is tagged.
  // Of a buffer: what was placed, and whether all behind it is untouched.
  uint64_t digest = 0;
  bool clean = true;
  std::vector<uint8_t> content = {};

  bool operator==(const Event&) const = default;
};

// Whether an error that a receive reports is that of a message in its buffer.
bool EndsMessage(int64_t error);

struct Trace {
  std::array<std::vector<Event>, kMaxSides> sides;
  // Why the run ended before the stream did: a side crashed, hung or could not
  // open. Empty: it did not.
  std::string failure;
};

// One line per event, without the end of the line.
std::string ToText(const Event& event);
std::optional<Event> ParseEvent(std::string_view line);

}  // namespace heddle::differential
