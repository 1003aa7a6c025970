// SPDX-License-Identifier: Apache-2.0
// The domain object: one opened device and everything on it.
#pragma once

#include <netinet/in.h>
#include <rdma/fi_domain.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "host/lib/core/settings.h"
#include "host/lib/fabric/event_queue.h"
#include "host/lib/fabric/fabric.h"
#include "host/lib/fabric/fid.h"
#include "host/lib/nic/nic.h"
#include "host/lib/ofi/fork_guard.h"

namespace heddle::ofi {

// Thread safety: any thread; close is the application's to serialize.
// Ownership: the application, until fi_close. Owns the device.
class Domain final : public fid_domain, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Open(fabric::Fabric* fabric, const fi_info* info,
                  fid_domain** domain, void* context);

  static Domain* From(fid_domain* handle) noexcept {
    return static_cast<Domain*>(handle);
  }
  static Domain* From(struct fid* handle) noexcept {
    return fabric::FromFid<Domain, fid_domain>(handle);
  }

  // Endpoints, queues, vectors and regions open on it; each adds itself.
  fabric::UserCount& users() noexcept { return users_; }

  nic::Nic& nic() noexcept { return *nic_; }
  const core::Settings& settings() const noexcept { return settings_; }
  in_addr address() const noexcept { return address_; }
  uint32_t api_version() const noexcept { return api_version_; }
  fi_av_type av_type() const noexcept { return av_type_; }
  // The data path takes locks: the threading model lets threads share objects.
  bool locked() const noexcept { return locked_; }
  // Keys of regions are chosen here, not by the application.
  bool provider_keys() const noexcept { return provider_keys_; }

  // Reserves a key for a region: `requested`, or one that nobody can guess
  // with `provider_keys`. 0 or -FI_ENOKEY. Throws std::bad_alloc.
  int TakeKey(uint64_t requested, uint64_t* key);
  void ReturnKey(uint64_t key) noexcept;

  // The calls of fi_domain(3).
  int Bind(struct fid* other, uint64_t flags) noexcept;
  // -FI_EBUSY, nothing changed, while it has users; else frees it.
  int Close() noexcept;

 private:
  void Disinherit() noexcept override;

  Domain(fabric::Fabric* fabric, const fi_info& info, void* context);
  ~Domain();

  int OpenDevice(const fi_info& info);

  fabric::Fabric* fabric_;
  const core::Settings& settings_;
  fabric::EventQueue* event_queue_ = nullptr;
  fabric::UserCount users_;
  in_addr address_ = {};
  uint32_t api_version_;
  fi_av_type av_type_;
  bool locked_;
  bool provider_keys_;
  std::unique_ptr<nic::Nic> nic_;
  std::mutex mutex_;  // The keys.
  std::unordered_set<uint64_t> keys_;
};

}  // namespace heddle::ofi
