// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire/wire_segment.h"

#include <linux/futex.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <new>
#include <sstream>
#include <string_view>
#include <vector>

#include "hw/sim/base/clock.h"

namespace heddle::sim::wire {
namespace {

constexpr uint64_t kMagic = 0x4552495748454448;
constexpr mode_t kMode = S_IRUSR | S_IWUSR;
constexpr mode_t kAllAccess = S_IRWXU | S_IRWXG | S_IRWXO;
// Every layout's size has this remainder, so that other segments of the user
// need not be attached to see what they are.
constexpr size_t kPageBytes = 4096;
constexpr size_t kSizeTag = 1239;
constexpr size_t kSegmentBytes =
    (sizeof(WireMemory) + kPageBytes - 1) / kPageBytes * kPageBytes + kSizeTag;
constexpr int kKeys = 8;
constexpr uint64_t kOpenTimeoutNs = 5000000000;
constexpr time_t kStaleSeconds = 2;

uint64_t HashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325 ^ geteuid();
  for (const char c : name) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

WireMemory* Attach(int id) {
  void* const address = shmat(id, nullptr, 0);
  // NOLINTNEXTLINE: the error value of shmat is (void*)-1.
  if (address == reinterpret_cast<void*>(-1)) {
    return nullptr;
  }
  return static_cast<WireMemory*>(address);
}

// As shmdt, which ThreadSanitizer does not follow: it took what another thread
// had done to a segment that was at the same address before for a race.
void Detach(WireMemory* memory, size_t bytes) {
  munmap(memory, bytes);
}

// Bits of the keys of ports and addresses, see WirePort and WireAddressMemory.
constexpr uint64_t kAttached = 1;
constexpr uint64_t kIpv6 = 2;
constexpr uint64_t kTap = 4;

using AddressHalves = std::array<std::atomic<uint64_t>, 2>;

// The address under `key`, which is stored in it last and taken away first; 0:
// there is none now.
uint64_t ReadKeyed(const std::atomic<uint64_t>& key,
                   const AddressHalves& halves, frame::WireAddress* address) {
  const uint64_t value = key.load(std::memory_order_acquire);
  address->hi = halves[0].load(std::memory_order_acquire);
  address->lo = halves[1].load(std::memory_order_acquire);
  address->ipv6 = (value & kIpv6) != 0;
  return (value & kAttached) != 0 && key.load() == value ? value : 0;
}

void WriteKeyed(std::atomic<uint64_t>& key, AddressHalves& halves,
                const frame::WireAddress& address, uint64_t value) {
  key.store(0);
  halves[0].store(address.hi, std::memory_order_release);
  halves[1].store(address.lo, std::memory_order_release);
  key.store(value | (address.ipv6 ? kIpv6 : 0) | kAttached,
            std::memory_order_release);
}

bool Matches(const WireMemory* memory, size_t bytes, std::string_view name) {
  return (bytes == kSegmentBytes ||
          memory->layout_version != kWireLayoutVersion) &&
         memory->initialised.load(std::memory_order_acquire) != 0 &&
         memory->magic == kMagic &&
         strnlen(memory->name.data(), kWireNameBytes) == name.size() &&
         std::memcmp(memory->name.data(), name.data(), name.size()) == 0;
}

struct Found {
  int id = -1;
  WireMemory* memory = nullptr;
  size_t bytes = 0;
};

// A segment that another user made could be changed by that user, also when
// it was given to this one; so owner and creator count.
bool IsOwn(unsigned int owner, unsigned int creator) {
  return owner == geteuid() && creator == geteuid();
}

// A row of /proc/sysvipc/shm.
struct Segment {
  int id = -1;
  mode_t mode = 0;
  size_t bytes = 0;
  uint64_t attached = 0;
  time_t changed = 0;
};

// The segments of this user that are wires, or are becoming one.
std::vector<Segment> OwnSegments() {
  std::vector<Segment> own;
  std::ifstream list("/proc/sysvipc/shm");
  std::string line;
  std::getline(list, line);  // Column titles.
  while (std::getline(list, line)) {
    std::istringstream row(line);
    Segment segment;
    int64_t skipped = 0;  // Key, processes, groups, other times.
    unsigned int owner = 0;
    unsigned int creator = 0;
    row >> skipped >> segment.id >> std::oct >> segment.mode >> std::dec >>
        segment.bytes >> skipped >> skipped >> segment.attached >> owner >>
        skipped >> creator >> skipped >> skipped >> skipped >> segment.changed;
    if (row && IsOwn(owner, creator) &&
        segment.bytes % kPageBytes == kSizeTag &&
        (segment.mode & kAllAccess) == kMode) {
      own.push_back(segment);
    }
  }
  return own;
}

// Attaches to the finished segment of `name`, if there is one. Removes what
// makers left that died on the way.
Found Search(std::string_view name) {
  for (const Segment& segment : OwnSegments()) {
    if ((segment.mode & SHM_DEST) == 0) {
      if (segment.attached == 0 &&
          std::time(nullptr) - segment.changed > kStaleSeconds) {
        shmctl(segment.id, IPC_RMID, nullptr);
      }
      continue;
    }
    WireMemory* const memory = Attach(segment.id);
    if (memory == nullptr) {
      continue;  // Its last process just left.
    }
    if (Matches(memory, segment.bytes, name)) {
      return {segment.id, memory, segment.bytes};
    }
    Detach(memory, segment.bytes);
  }
  return {};
}

// Makes and initialises the segment. `id` -1 with errno EEXIST: another
// process is doing so.
Found Make(std::string_view name) {
  for (int attempt = 0; attempt < kKeys; ++attempt) {
    const key_t key = WireSegment::Key(name, attempt);
    const int id =
        shmget(key, kSegmentBytes,
               static_cast<int>(IPC_CREAT | IPC_EXCL | SHM_NORESERVE | kMode));
    if (id >= 0) {
      WireMemory* const memory = Attach(id);
      if (memory == nullptr) {
        const int error = errno;
        shmctl(id, IPC_RMID, nullptr);
        errno = error;
        return {};
      }
      return {id, memory, kSegmentBytes};
    }
    if (errno != EEXIST) {
      return {};
    }
    struct shmid_ds status {};
    const int other = shmget(key, 0, 0);
    if (other < 0 || shmctl(other, IPC_STAT, &status) != 0) {
      if (errno == EACCES || errno == EPERM) {
        continue;  // Another user's, accidental or intended.
      }
      errno = EEXIST;
      return {};
    }
    if (!IsOwn(status.shm_perm.uid, status.shm_perm.cuid)) {
      continue;
    }
    errno = EEXIST;
    return {};
  }
  errno = EACCES;
  return {};
}

void Initialise(WireMemory* memory, std::string_view name) {
  memory->magic = kMagic;
  memory->layout_version = kWireLayoutVersion;
  std::memcpy(memory->name.data(), name.data(), name.size());
  memory->initialised.store(1, std::memory_order_release);
}

}  // namespace

key_t WireSegment::Key(std::string_view name, int attempt) {
  const auto key = static_cast<uint32_t>(HashName(name) >> 16) +
                   static_cast<uint32_t>(attempt);
  return static_cast<key_t>(key == static_cast<uint32_t>(IPC_PRIVATE) ? 1
                                                                      : key);
}

size_t WireSegment::Bytes() {
  return kSegmentBytes;
}

std::string WireSegment::DefaultName() {
  struct stat status {};
  const uint64_t space =
      stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
  return "net-" + std::to_string(space);
}

std::optional<PortOwner> ReadPort(const WirePort& port) {
  PortOwner owner;
  const uint64_t key = ReadKeyed(port.key, port.address, &owner.address);
  owner.epoch = static_cast<uint32_t>(key >> kOwnerEpochShift);
  owner.tap = (key & kTap) != 0;
  return key == 0 ? std::nullopt : std::optional(owner);
}

void WriteOwner(WirePort& port, const PortOwner& owner) {
  WriteKeyed(
      port.key, port.address, owner.address,
      uint64_t{owner.epoch} << kOwnerEpochShift | (owner.tap ? kTap : 0));
}

std::optional<frame::WireAddress> ReadAddress(const WireAddressMemory& entry) {
  frame::WireAddress address;
  return ReadKeyed(entry.key, entry.address, &address) == 0
             ? std::nullopt
             : std::optional(address);
}

void WriteAddress(WireAddressMemory& entry, const frame::WireAddress& address) {
  WriteKeyed(entry.key, entry.address, address, 0);
}

void WakePort(WirePort& port) {
  port.wake.fetch_add(1);
  // The caller that wakes it clears the flag: until the sleeper runs, others
  // need not.
  if (port.sleeping.load() != 0 && port.sleeping.exchange(0) != 0) {
    syscall(SYS_futex, &port.wake, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

Result<std::unique_ptr<WireSegment>> WireSegment::Adopt(WireMemory* memory,
                                                        size_t bytes,
                                                        const std::string& name,
                                                        std::string* message) {
  if (memory->layout_version != kWireLayoutVersion) {
    *message = "wire " + name + " has layout version " +
               std::to_string(memory->layout_version) + ", this library has " +
               std::to_string(kWireLayoutVersion) +
               "; end the processes of the other release first";
    Detach(memory, bytes);
    return Errno{EPROTO};
  }
  // A child must not keep the wire alive, or take part in it.
  madvise(memory, kSegmentBytes, MADV_DONTFORK);
  // A core file has no use for it.
  madvise(memory, kSegmentBytes, MADV_DONTDUMP);
  return std::unique_ptr<WireSegment>(new WireSegment(memory));
}

Result<std::unique_ptr<WireSegment>> WireSegment::Find(const std::string& name,
                                                       std::string* message) {
  const Found found = Search(name);
  if (found.memory == nullptr) {
    *message = "no function is on wire " + name;
    return Errno{ENOENT};
  }
  return Adopt(found.memory, found.bytes, name, message);
}

Result<std::unique_ptr<WireSegment>> WireSegment::Open(const std::string& name,
                                                       std::string* message) {
  if (name.empty() || name.size() >= kWireNameBytes) {
    *message = "wire name must have 1 to 64 characters";
    return Errno{EINVAL};
  }
  const uint64_t deadline = base::MonotonicNs() + kOpenTimeoutNs;
  for (;;) {
    Found found = Search(name);
    if (found.memory != nullptr) {
      return Adopt(found.memory, found.bytes, name, message);
    }
    found = Make(name);
    if (found.memory == nullptr) {
      if (errno != EEXIST || base::MonotonicNs() > deadline) {
        const int error = errno;
        *message = "wire " + name + ": shared memory: " + strerror(error);
        return Errno{error};
      }
      base::SleepNs(1000000);
      continue;
    }
    // Another process may have finished one since the search.
    const Found other = Search(name);
    if (other.memory == nullptr) {
      Initialise(found.memory, name);
    }
    shmctl(found.id, IPC_RMID, nullptr);
    if (other.memory != nullptr) {
      Detach(found.memory, found.bytes);
      found = other;
    }
    return Adopt(found.memory, found.bytes, name, message);
  }
}

WireSegment::~WireSegment() {
  Detach(memory_, kSegmentBytes);
}

WireSegment::Lock::Lock(WireMemory* memory) : memory_(memory) {
  const base::ProcessId self = base::ProcessId::Self();
  self_ = uint64_t{self.pid} << 32 | self.start;
  const uint64_t deadline = base::MonotonicNs() + kLockTimeoutNs;
  for (;;) {
    uint64_t owner = 0;
    if (memory_->lock.compare_exchange_strong(owner, self_,
                                              std::memory_order_acquire)) {
      held_ = true;
      return;
    }
    base::ProcessId holder = self;
    holder.pid = static_cast<uint32_t>(owner >> 32);
    holder.start = static_cast<uint32_t>(owner);
    if (!holder.Alive() && memory_->lock.compare_exchange_strong(
                               owner, self_, std::memory_order_acquire)) {
      held_ = true;
      return;
    }
    if (base::MonotonicNs() > deadline) {
      holder_ = holder.pid;
      return;
    }
    base::SleepNs(200000);
  }
}

WireSegment::Lock::~Lock() {
  uint64_t owner = self_;
  if (held_) {
    memory_->lock.compare_exchange_strong(owner, 0, std::memory_order_release);
  }
}

}  // namespace heddle::sim::wire
