// SPDX-License-Identifier: Apache-2.0
// Memory that peers may reach.
#pragma once

#include <cstdint>
#include <utility>

#include "host/lib/nic/nic.h"

namespace heddle::nic {

// A region of the device's. When it ends, no peer's operation touches the
// memory any more: those under way are waited for.
//
// Thread safety: one thread at a time. Ownership: borrows NIC and memory, which
// outlive it, as do the endpoint and the counter that it names.
class RemoteAccess {
 public:
  // `command` but for opcode and id. Errors: those of
  // `AdminQueue::RegisterRegion`.
  static Result<RemoteAccess> Grant(
      Nic& nic, const contract::AdminRegisterRegion& command) {
    auto granted = nic.admin().RegisterRegion(command);
    if (!granted.ok()) {
      return granted.error();
    }
    return RemoteAccess(nic, granted.value());
  }

  RemoteAccess() = default;
  RemoteAccess(RemoteAccess&& other) noexcept { Swap(other); }
  RemoteAccess& operator=(RemoteAccess&& other) noexcept {
    Swap(other);
    return *this;
  }
  RemoteAccess(const RemoteAccess&) = delete;
  RemoteAccess& operator=(const RemoteAccess&) = delete;
  ~RemoteAccess() { End(); }

  // Takes the access away; nothing the second time. False when the device did
  // not answer: it is lost, and unmapping the memory keeps it off.
  bool End() noexcept {
    Nic* const nic = std::exchange(nic_, nullptr);
    return nic == nullptr || nic->admin().DeregisterRegion(grant_.region).ok();
  }

  bool granted() const noexcept { return nic_ != nullptr; }
  uint64_t key() const noexcept { return grant_.key; }

 private:
  RemoteAccess(Nic& nic, const RegionGrant& grant)
      : nic_(&nic), grant_(grant) {}
  void Swap(RemoteAccess& other) noexcept {
    std::swap(nic_, other.nic_);
    std::swap(grant_, other.grant_);
  }

  Nic* nic_ = nullptr;
  RegionGrant grant_;
};

}  // namespace heddle::nic
