// SPDX-License-Identifier: Apache-2.0
// The shared memory of a one-machine wire: found by name, gone with its last
// process.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "driver/result.h"
#include "hw/sim/base/process_id.h"
#include "hw/sim/frame/route.h"
#include "hw/sim/frame/wire_address.h"
#include "hw/sim/wire/frame_ring.h"

namespace heddle::sim::wire {

inline constexpr uint32_t kWireLayoutVersion = 10;
inline constexpr uint32_t kMaxPorts = 2048;
inline constexpr uint32_t kMaxAddresses = 1024;
inline constexpr uint32_t kMaxRings = 32768;     // Pairs that ever exchanged.
inline constexpr uint32_t kPortNumbers = 65536;  // libfabric ports.
inline constexpr uint32_t kMaxJobNames = 4096;   // Of one address; 2^n.
inline constexpr uint32_t kWordBits = 64;
inline constexpr size_t kWireNameBytes = 65;  // With a zero byte.

// A function attached to the wire. Written under the wire's lock, except what
// says otherwise.
struct WirePort {
  // {epoch, tap, ipv6, attached}, 0 while free; it and the address are read
  // without the lock, see `ReadPort`.
  alignas(64) std::atomic<uint64_t> key;
  std::array<std::atomic<uint64_t>, 2> address;  // High and low half.
  std::atomic<uint32_t> link_down;               // Set from outside.
  std::atomic<uint32_t> reset_wanted;            // Likewise.
  std::atomic<uint32_t> takes_unchecked;         // As SharedWireOptions says.
  // Written by all who send.
  alignas(64) std::atomic<uint32_t> wake;  // Futex: raised for each news.
  std::atomic<uint32_t> sleeping;  // A thread of the owner may wait on `wake`.
  // Ports that have pushed frames since the owner looked, one bit each, and
  // the words of that which are not 0.
  std::atomic<uint32_t> news_words;
  std::array<std::atomic<uint64_t>, kMaxPorts / kWordBits> news;
  // Written by the owner.
  // Time at which it has something to do next, monotonic; 0: now.
  alignas(64) std::atomic<uint64_t> work_at_ns;
  std::atomic<uint64_t> work_done;  // As `SharedWire::NoteWork` counts it.
  base::ProcessId process;
};
static_assert(kMaxPorts / kWordBits <= 32, "a bit of `news_words` for each");

// An attachment to the wire: {epoch, port}. No other has the same number, and
// none has 0.
using FunctionId = uint64_t;

// Who is attached to a port.
struct PortOwner {
  frame::WireAddress address;
  uint32_t epoch = 0;  // Of this attachment, never 0.
  bool tap = false;    // It has all of its address.

  FunctionId id(uint32_t port) const { return uint64_t{epoch} << 32 | port; }
};
// `WirePort::key` has the epoch of its owner above these bits.
inline constexpr uint32_t kOwnerEpochShift = 32;
inline uint32_t PortOf(FunctionId id) {
  return static_cast<uint32_t>(id);
}
// Whether that is the attachment that has the port.
inline bool IsOwnedBy(const WirePort& port, FunctionId id) {
  const uint64_t epoch = id >> kOwnerEpochShift;
  return epoch != 0 &&
         port.key.load(std::memory_order_acquire) >> kOwnerEpochShift == epoch;
}

// A libfabric port in the space of a job. `owner` is 0 while `name` changes; an
// entry that had a name never loses it but to another one.
struct WireJobName {
  std::atomic<uint64_t> name;  // {space, port}; 0: not used yet.
  std::atomic<FunctionId> owner;
};

// An address that functions have, or had. Names whose owner is no longer
// attached are free.
struct WireAddressMemory {
  // {ipv6, used}, 0 while free; read like a port's.
  alignas(64) std::atomic<uint64_t> key;
  std::array<std::atomic<uint64_t>, 2> address;  // High and low half.
  std::atomic<uint32_t> next_block;  // Where the search for one begins.
  std::atomic<uint32_t> next_slot;   // Likewise.
  std::atomic<FunctionId> tap;       // Whose all of the address is; or 0.
  // Owners of blocks of PDCIDs and of libfabric ports in the address' space.
  std::array<std::atomic<FunctionId>, frame::kPdcidBlocks> blocks;
  std::array<std::atomic<FunctionId>, kPortNumbers> ports;
  // Those in spaces of jobs: a hash table by port, probed linearly.
  std::array<WireJobName, kMaxJobNames> job_names;
};

// Empty if the port is free, or just changes hands. Any thread.
std::optional<PortOwner> ReadPort(const WirePort& port);
// Under the wire's lock.
void WriteOwner(WirePort& port, const PortOwner& owner);
// Empty if the entry is free, or just becomes another's. Any thread.
std::optional<frame::WireAddress> ReadAddress(const WireAddressMemory& entry);
// Under the wire's lock.
void WriteAddress(WireAddressMemory& entry, const frame::WireAddress& address);
// Tells the owner of news, and wakes it. Any thread.
void WakePort(WirePort& port);

// What the segment holds. Zero-filled memory plus the first five members is an
// empty wire. Pages that nothing was written to cost no memory, so the tables
// are as large as they may ever have to be.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): laid out by use.
struct WireMemory {
  uint64_t magic;
  uint32_t layout_version;
  std::atomic<uint32_t> payload_mtu;
  std::array<char, kWireNameBytes> name;
  std::atomic<uint32_t> initialised;

  alignas(64) std::atomic<uint64_t> lock;  // {pid, start} of its holder, or 0.
  std::atomic<uint32_t> port_count;        // Ports used so far.
  std::atomic<uint32_t> address_count;     // Addresses used so far.
  std::atomic<uint32_t> ring_count;        // Rings given out so far.
  std::atomic<uint32_t> next_epoch;        // Of the next function to attach.
  alignas(64) std::array<WirePort, kMaxPorts> ports;
  std::array<WireAddressMemory, kMaxAddresses> addresses;
  // Ring of {destination, source}, plus 1; 0 is none. A ring stays with its
  // pair for good, so that it can never be taken from under a live sender.
  std::array<std::array<std::atomic<uint32_t>, kMaxPorts>, kMaxPorts> ring_of;
  std::array<FrameRingMemory, kMaxRings> rings;
};

// One attachment of this process to the memory.
//
// The segment is System V shared memory that is marked for removal as soon as
// it is initialised: the kernel frees it with the last process, however that
// process ends, and newcomers find it in /proc/sysvipc/shm, which on Linux
// still lets them attach.
class WireSegment {
 public:
  // Finds the wire `name` of this user, or makes it. A segment counts only if
  // this user made it and owns it.
  // Errors: EPROTO when its layout version differs, `*message` names both;
  // otherwise those of shmget and shmat.
  static Result<std::unique_ptr<WireSegment>> Open(const std::string& name,
                                                   std::string* message);
  // As `Open`, but ENOENT if nobody is on that wire.
  static Result<std::unique_ptr<WireSegment>> Find(const std::string& name,
                                                   std::string* message);
  ~WireSegment();
  WireSegment(const WireSegment&) = delete;
  WireSegment& operator=(const WireSegment&) = delete;

  WireMemory* operator->() const { return memory_; }

  // The wire used when none is named: one per user and network namespace.
  static std::string DefaultName();

  // The `attempt`-th key under which the segment is made, and its size.
  static key_t Key(std::string_view name, int attempt);
  static size_t Bytes();

  // Lock over attaching and claiming; taken over from a holder that died.
  // False when a live process holds it for `kLockTimeoutNs`.
  class Lock {
   public:
    explicit Lock(WireMemory* memory);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    bool held() const { return held_; }
    uint32_t holder() const { return holder_; }  // When not held.

   private:
    WireMemory* memory_;
    uint64_t self_;
    uint32_t holder_ = 0;
    bool held_ = false;
  };
  static constexpr uint64_t kLockTimeoutNs = 5000000000;

 private:
  explicit WireSegment(WireMemory* memory) : memory_(memory) {}

  static Result<std::unique_ptr<WireSegment>> Adopt(WireMemory* memory,
                                                    size_t bytes,
                                                    const std::string& name,
                                                    std::string* message);

  WireMemory* memory_;
};

}  // namespace heddle::sim::wire
