// SPDX-License-Identifier: Apache-2.0
// What all libfabric objects share: recovery from `fid` and user counts.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <cstdint>

namespace heddle::base {

// Recovers our object from the `fid` that the application holds. `Object`
// derives from `Base` (fid_fabric, fid_eq, ...), whose first member `fid` is.
template <typename Object, typename Base>
Object* FromFid(struct fid* handle) noexcept {
  // Source: fi_fabric(3), every descriptor starts with struct fid.
  return static_cast<Object*>(reinterpret_cast<Base*>(handle));
}

// How many objects use another one, which cannot be closed meanwhile.
// Thread-safe.
class UserCount {
 public:
  void Add(uint32_t users = 1) noexcept {
    users_.fetch_add(users, std::memory_order_relaxed);
  }
  void Remove(uint32_t users = 1) noexcept {
    users_.fetch_sub(users, std::memory_order_release);
  }
  bool in_use() const noexcept {
    return users_.load(std::memory_order_acquire) != 0;
  }

 private:
  std::atomic<uint32_t> users_{0};
};

// `fi_control` command by which fi_trywait asks an object of ours, CQ or EQ,
// whether blocking is safe: 0, or -FI_EAGAIN when something is to be read.
inline constexpr int kControlTryWait =
    static_cast<int>(FI_PROV_SPECIFIC | 0x4801U);

}  // namespace heddle::base
