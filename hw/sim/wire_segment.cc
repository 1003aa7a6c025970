// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire_segment.h"

#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <new>
#include <string_view>
#include <vector>

#include "hw/sim/clock.h"

namespace heddle::sim {
namespace {

constexpr uint64_t kMagic = 0x4552495748454448;
constexpr mode_t kMode = S_IRUSR | S_IWUSR;
// Every layout's size has this remainder, so that other segments of the user
// need not be attached to see what they are.
constexpr size_t kPage = 4096;
constexpr size_t kSizeTag = 1239;
constexpr size_t kSegmentBytes =
    (sizeof(WireMemory) + kPage - 1) / kPage * kPage + kSizeTag;
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

key_t Key(std::string_view name, int attempt) {
  const auto key = static_cast<uint32_t>(HashName(name) >> 16) +
                   static_cast<uint32_t>(attempt);
  return static_cast<key_t>(key == static_cast<uint32_t>(IPC_PRIVATE) ? 1
                                                                      : key);
}

WireMemory* Attach(int id) {
  void* const address = shmat(id, nullptr, 0);
  // NOLINTNEXTLINE: the error value of shmat is (void*)-1.
  if (address == reinterpret_cast<void*>(-1)) {
    return nullptr;
  }
  return static_cast<WireMemory*>(address);
}

bool Matches(const WireMemory* memory, std::string_view name) {
  return memory->initialised.load(std::memory_order_acquire) != 0 &&
         memory->magic == kMagic &&
         strnlen(memory->name.data(), kWireNameBytes) == name.size() &&
         std::memcmp(memory->name.data(), name.data(), name.size()) == 0;
}

struct Found {
  int id = -1;
  WireMemory* memory = nullptr;
};

// Attaches to the finished segment of `name`, if there is one.
Found Find(std::string_view name) {
  std::ifstream list("/proc/sysvipc/shm");
  std::string line;
  std::getline(list, line);  // Column titles.
  while (std::getline(list, line)) {
    int id = 0;
    unsigned int mode = 0;
    size_t bytes = 0;
    unsigned int owner = 0;
    if (std::sscanf(line.c_str(), "%*d %d %o %zu %*u %*u %*u %u", &id, &mode,
                    &bytes, &owner) != 4 ||
        owner != geteuid() || bytes % kPage != kSizeTag ||
        (mode & SHM_DEST) == 0) {
      continue;
    }
    WireMemory* const memory = Attach(id);
    if (memory == nullptr) {
      continue;  // Its last process just left.
    }
    if (Matches(memory, name)) {
      return {id, memory};
    }
    shmdt(memory);
  }
  return {};
}

// Makes and initialises the segment. `id` -1 with errno EEXIST: another
// process is doing so.
Found Make(std::string_view name) {
  for (int attempt = 0; attempt < kKeys; ++attempt) {
    const key_t key = Key(name, attempt);
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
      return {id, memory};
    }
    if (errno != EEXIST) {
      return {};
    }
    struct shmid_ds status {};
    const int other = shmget(key, 0, 0);
    if (other < 0 || shmctl(other, IPC_STAT, &status) != 0) {
      if (errno == EACCES || errno == EPERM) {
        continue;  // Another user's, by chance or on purpose.
      }
      errno = EEXIST;
      return {};
    }
    if (status.shm_perm.uid != geteuid()) {
      continue;
    }
    if (status.shm_nattch == 0 &&
        std::time(nullptr) - status.shm_ctime > kStaleSeconds) {
      shmctl(other, IPC_RMID, nullptr);  // Its maker died on the way.
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

std::string WireSegment::DefaultName() {
  struct stat status {};
  const uint64_t space =
      stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
  return "net-" + std::to_string(space);
}

Result<std::unique_ptr<WireSegment>> WireSegment::Open(const std::string& name,
                                                       std::string* message) {
  if (name.empty() || name.size() >= kWireNameBytes) {
    *message = "wire name must have 1 to 64 characters";
    return Errno{EINVAL};
  }
  const uint64_t deadline = MonotonicNs() + kOpenTimeoutNs;
  for (;;) {
    Found found = Find(name);
    if (found.memory == nullptr) {
      found = Make(name);
      if (found.memory != nullptr) {
        // Another process may have finished one since the search.
        const Found other = Find(name);
        if (other.memory != nullptr) {
          shmctl(found.id, IPC_RMID, nullptr);
          shmdt(found.memory);
          found = other;
        } else {
          Initialise(found.memory, name);
          shmctl(found.id, IPC_RMID, nullptr);
        }
      } else if (errno != EEXIST || MonotonicNs() > deadline) {
        const int error = errno;
        *message = "wire " + name + ": shared memory: " + strerror(error);
        return Errno{error};
      }
    }
    if (found.memory == nullptr) {
      SleepNs(1000000);
      continue;
    }
    if (found.memory->layout_version != kWireLayoutVersion) {
      *message = "wire " + name + " has layout version " +
                 std::to_string(found.memory->layout_version) +
                 ", this library has " + std::to_string(kWireLayoutVersion) +
                 "; end the processes of the other release first";
      shmdt(found.memory);
      return Errno{EPROTO};
    }
    // A child must not keep the wire alive, or take part in it.
    madvise(found.memory, kSegmentBytes, MADV_DONTFORK);
    return std::unique_ptr<WireSegment>(
        new WireSegment(found.memory, found.id));
  }
}

WireSegment::~WireSegment() {
  shmdt(memory_);
}

WireSegment::Lock::Lock(WireMemory* memory) : memory_(memory) {
  const ProcessId self = ProcessId::Self();
  self_ = uint64_t{self.pid} << 32 | self.start;
  const uint64_t deadline = MonotonicNs() + kLockTimeoutNs;
  for (;;) {
    uint64_t owner = 0;
    if (memory_->lock.compare_exchange_strong(owner, self_,
                                              std::memory_order_acquire)) {
      held_ = true;
      return;
    }
    ProcessId holder = self;
    holder.pid = static_cast<uint32_t>(owner >> 32);
    holder.start = static_cast<uint32_t>(owner);
    if (!holder.Alive() && memory_->lock.compare_exchange_strong(
                               owner, self_, std::memory_order_acquire)) {
      held_ = true;
      return;
    }
    if (MonotonicNs() > deadline) {
      holder_ = holder.pid;
      return;
    }
    SleepNs(200000);
  }
}

WireSegment::Lock::~Lock() {
  uint64_t owner = self_;
  if (held_) {
    memory_->lock.compare_exchange_strong(owner, 0, std::memory_order_release);
  }
}

}  // namespace heddle::sim
