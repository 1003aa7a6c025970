// SPDX-License-Identifier: Apache-2.0
// Next hops of fabric addresses, shared by everything on one NIC function.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "driver/control/admin_queue.h"
#include "driver/result.h"

namespace heddle::nic {

// One question to the device per address, however many address vectors and
// ports name it; the use is given back with the last of them.
//
// Thread safety: any thread; one that waits for a neighbour holds up nobody.
// Ownership: borrows the admin queue.
class NextHops {
 public:
  // Without `resolves` (a device that has no slow path) hop 0 stands for
  // everybody.
  NextHops(AdminQueue& admin, bool resolves)
      : admin_(admin), resolves_(resolves) {}
  NextHops(const NextHops&) = delete;
  NextHops& operator=(const NextHops&) = delete;

  // Next hop of `address`, for use until `Release`. Blocks until the
  // neighbour has answered, or has not: some tries of the device, each as long
  // as its retry time. Errors: those of `AdminQueue::ResolveNextHop`. Throws
  // std::bad_alloc, nothing taken.
  Result<uint16_t> Acquire(const FabricAddress& address);

  // Precondition: acquired as often.
  void Release(const FabricAddress& address) noexcept;

 private:
  struct Hash {
    size_t operator()(const FabricAddress& address) const noexcept;
  };
  struct Same {
    bool operator()(const FabricAddress& a,
                    const FabricAddress& b) const noexcept {
      return a.lo == b.lo && a.hi == b.hi && a.ipv6 == b.ipv6;
    }
  };
  struct Hop {
    uint16_t number = 0;
    uint32_t uses = 0;
  };

  void GiveBack(uint32_t hop) noexcept;

  AdminQueue& admin_;
  const bool resolves_;
  std::mutex mutex_;
  std::unordered_map<FabricAddress, Hop, Hash, Same> hops_;
};

}  // namespace heddle::nic
