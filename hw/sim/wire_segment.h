// SPDX-License-Identifier: Apache-2.0
// The shared memory of a one-machine wire: found by name, gone with its last
// process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "driver/result.h"
#include "hw/sim/frame_ring.h"
#include "hw/sim/process_id.h"

namespace heddle::sim {

inline constexpr uint32_t kWireLayoutVersion = 1;
inline constexpr uint32_t kMaxPorts = 256;
inline constexpr uint32_t kMaxRings = 2048;
inline constexpr uint32_t kPortNumbers = 65536;  // libfabric ports.
inline constexpr uint32_t kWordBits = 64;
inline constexpr size_t kWireNameBytes = 65;  // With a zero byte.

// A function attached to the wire. Written under the wire's lock, except what
// says otherwise.
struct WirePort {
  // {ip, slot, 1} while attached, else 0; read without the lock.
  std::atomic<uint64_t> key;
  std::atomic<uint32_t> wake;      // Futex: raised by whoever has news.
  std::atomic<uint32_t> sleeping;  // Threads of the owner that wait on `wake`.
  std::atomic<uint32_t> working;   // The function has something to do.
  ProcessId process;
  // Claimed libfabric ports, one bit each; read without the lock.
  std::array<std::atomic<uint64_t>, kPortNumbers / kWordBits> claims;
};

// What the segment holds. Zero-filled memory plus the first five members is an
// empty wire.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): laid out by use.
struct WireMemory {
  uint64_t magic;
  uint32_t layout_version;
  std::atomic<uint32_t> payload_mtu;
  std::array<char, kWireNameBytes> name;
  std::atomic<uint32_t> initialised;

  alignas(64) std::atomic<uint64_t> lock;  // {pid, start} of its holder, or 0.
  std::atomic<uint32_t> port_count;        // Ports used so far.
  std::atomic<uint32_t> ring_count;        // Rings given out so far.
  std::atomic<uint32_t> next_slot;         // Where the search for one begins.
  alignas(64) std::array<WirePort, kMaxPorts> ports;
  // Ring of {source, destination}, plus 1; 0 is none. A ring stays with its
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
  // Finds the wire `name` of this user, or makes it.
  // Errors: EPROTO when its layout version differs, `*message` names both;
  // otherwise those of shmget and shmat.
  static Result<std::unique_ptr<WireSegment>> Open(const std::string& name,
                                                   std::string* message);
  ~WireSegment();
  WireSegment(const WireSegment&) = delete;
  WireSegment& operator=(const WireSegment&) = delete;

  WireMemory* operator->() const { return memory_; }

  // The wire used when none is named: one per network namespace.
  static std::string DefaultName();

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
  WireSegment(WireMemory* memory, int id) : memory_(memory), id_(id) {}

  WireMemory* memory_;
  int id_;
};

}  // namespace heddle::sim
