// SPDX-License-Identifier: Apache-2.0
// A stream of operations for two to eight sides, as generated, shrunk and kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::differential {

inline constexpr uint32_t kMaxSides = 8;
inline constexpr uint32_t kEndpoints = 2;  // Of each side.
inline constexpr uint32_t kMaxPlaces = kMaxSides * kEndpoints;
inline constexpr uint32_t kRegions = 2;  // Of each side.
inline constexpr uint32_t kRegionBytes = 32768;
// Memory of a side: its regions, one of the same size that others may only
// read, and one that they may only write.
inline constexpr uint32_t kReadOnly = kRegions;
inline constexpr uint32_t kWriteOnly = kRegions + 1;
inline constexpr uint32_t kAreas = kRegions + 2;
inline constexpr uint32_t kMaxMessageBytes = 100'000;
// FI_OPT_MIN_MULTI_RECV of every endpoint, its default.
inline constexpr uint32_t kMinFree = 64;

// An endpoint of a side.
struct Place {
  uint32_t side = 0;
  uint32_t endpoint = 0;

  uint32_t index() const { return side * kEndpoints + endpoint; }
  bool operator==(const Place&) const = default;
};

enum class Verb : uint8_t {
  kReceive,     // Posts a buffer of `bytes`; `many`: for many messages.
  kSend,        // `bytes` to `peer`.
  kSendData,    // The same with 8 bytes of remote completion data.
  kInject,      // `bytes` to `peer`, which no completion tells of.
  kInjectData,  // The same with remote completion data.
  kCancel,      // The receive posted `back` receives ago at this endpoint.
  kPeek,        // Looks for a tagged message, and waits for the result.
  kDiscard,     // The same, and drops it.
  kClaim,       // The same, and keeps it; `back` operations of this side later
                // it is received into a buffer of `bytes`, or, `dropped`.
  kWrite,       // `bytes` to `offset` of `region` of the peer's side.
  kWriteData,
  kInjectWrite,
  kRead,
  kDeregister,  // `region` of the own side, while it may be in use.
  kRegister,    // It again, with another key.
  kClose,       // The endpoint, while it may be in use.
  kOpen,        // It again, at the same address.
  kWait,        // Until what this side has posted is complete.
  kUnplug,      // Takes the side's link down for a moment.
  kKill,        // The side's process dies by SIGKILL; a new one follows.
  kReset,       // The side's NIC is reset; its process opens it again.
  kReopen,      // The side closes its domain and opens another one.
  kExit,        // The side's process closes all and exits; a new one follows.
  kInvalid,     // A call that must be refused: `fault` says which.
  kSync,        // All sides wait until nothing is pending.
};

// Calls that are refused, and accesses that are.
enum class Fault : uint8_t {
  kNone,
  kUnknownPeer,   // An address that nobody inserted.
  kLongInject,    // One byte more than inject takes.
  kManySegments,  // One more than iov_limit.
  kUnknownFlag,   // A flag that no transfer has.
  kStrayCancel,   // A context that was never posted.
  kBadKey,        // Of a region that never was.
  kBeyondRegion,  // The last byte is one behind the region's.
  kWithoutRight,  // Of a region that others may not access so.
};

// Not every verb uses every member; those it does not are 0.
struct Operation {
  Verb verb = Verb::kSync;
  Place at = {};
  Place peer = {};
  uint32_t bytes = 0;
  uint32_t segments = 1;  // Of the local buffer, 1 to 4.
  uint32_t pieces = 1;    // Of the peer's memory, 1 to 4.
  bool registered = false;
  bool silent = false;  // No completion is asked for.
  // Sends, receives and peeks use these five.
  bool tagged = false;
  uint32_t tag = 0;
  uint32_t ignore = 0;    // Bits of the tag that do not count.
  bool directed = false;  // From `peer` only.
  bool dropped = false;
  bool many = false;  // FI_MULTI_RECV.
  uint32_t back = 0;
  uint32_t region = 0;
  uint32_t offset = 0;
  Fault fault = Fault::kNone;

  bool operator==(const Operation&) const = default;
};

// Probabilities per frame, at each side.
struct WireFaults {
  double loss = 0;
  double reorder = 0;
  double duplicate = 0;
  double corrupt = 0;

  bool operator==(const WireFaults&) const = default;
};

// What the whole stream is run with.
struct Setup {
  uint32_t sides = 2;   // 2 to kMaxSides.
  uint64_t seed = 0;    // Of the devices' faults; the generator's, too.
  bool ordered = true;  // Sends are asked to arrive in order.
  bool selective = false;
  // A write is asked to come before later accesses of its endpoint to another.
  bool rma_ordered = false;
  bool idle_closes = false;  // Connections are closed when idle for a moment.
  bool short_rings = false;  // Endpoints have few transmit slots.
  // Of packets of reads that a device `soft` answers more often than asked, or
  // with the data of another: those reads may fail, and what is with them on a
  // connection. There is nothing else in such a stream.
  double read_again = 0;
  WireFaults faults = {};

  uint32_t places() const { return sides * kEndpoints; }
  bool operator==(const Setup&) const = default;
};

struct Stream {
  Setup setup;
  std::vector<Operation> operations;

  bool operator==(const Stream&) const = default;
};

bool IsSend(Verb verb);
// Looks for a tagged message that has arrived.
bool IsPeek(Verb verb);
// Whether receive or peek `operation` may have the message of `send`.
bool Matches(const Operation& operation, const Operation& send);
// Whether any operation of it is tagged, or a receive of many messages.
bool UsesTags(const Stream& stream);
bool UsesMany(const Stream& stream);
// Whether a buffer of many messages, with so many bytes free, takes another.
bool HasRoom(uint64_t free);
bool IsInject(Verb verb);  // Of any kind: no completion, no context.
bool IsRma(Verb verb);
bool HasData(Verb verb);
// The side begins anew: endpoints at the same addresses, memory that nobody has
// written, with other keys.
bool IsRenewal(Verb verb);
// The same, without notice to its peers: by a kill or a reset.
bool IsAbrupt(Verb verb);
bool Uses(const Stream& stream, bool (*uses)(Verb));

// What has been done to sides before an operation of a stream.
class History {
 public:
  explicit History(const Stream& stream);

  // How often `side` begins anew before operation `number`.
  uint32_t RenewalsBefore(uint32_t number, uint32_t side) const {
    return CountBefore(renewals_.at(side), number);
  }
  // How often a region of it is registered again.
  uint32_t RegistrationsBefore(uint32_t number, uint32_t side,
                               uint32_t region) const {
    return CountBefore(registrations_.at(side).at(region), number);
  }

 private:
  using Numbers = std::vector<uint32_t>;  // Of operations, ascending.

  static uint32_t CountBefore(const Numbers& numbers, uint32_t number);

  std::array<Numbers, kMaxSides> renewals_;
  std::array<std::array<Numbers, kRegions>, kMaxSides> registrations_;
};

// Whether sides begin anew, each in order and while neither has work, on a wire
// that loses nothing: then no peer may find out by itself.
bool RenewsInPeace(const Stream& stream);

// Whether a transfer that succeeds is reported at its initiator.
bool IsReported(const Setup& setup, const Operation& operation);

// Text form: `name value` lines of the setup, then a line per operation.
std::string ToText(const Operation& operation);
std::string ToText(const Stream& stream);

// Nothing when a line is no operation or one that no side could run.
std::optional<Operation> ParseOperation(std::string_view line);
std::optional<Stream> ParseStream(std::string_view text);

}  // namespace heddle::differential
