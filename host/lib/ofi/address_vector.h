// SPDX-License-Identifier: Apache-2.0
// The address vector object (fid_av).
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <memory>

#include "host/lib/backend/objects.h"
#include "host/lib/base/socket_address.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/fork_guard.h"

namespace heddle::ofi {

// fi_addr_t is the index in the device's table for both types, FI_AV_TABLE
// and FI_AV_MAP. Addresses are sockaddr_in or sockaddr_in6, as the device's is.
//
// Thread safety: any thread. Ownership: the application, until fi_close.
class AddressVector final : public fid_av, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Open(Domain* domain, fi_av_attr* attr, fid_av** vector,
                  void* context);

  static AddressVector* From(fid_av* handle) noexcept {
    return static_cast<AddressVector*>(handle);
  }
  static AddressVector* From(struct fid* handle) noexcept {
    return base::FromFid<AddressVector, fid_av>(handle);
  }

  // Endpoints bound to it; each adds itself.
  base::UserCount& users() noexcept { return users_; }
  backend::Peers& peers() noexcept { return *peers_; }
  Domain* domain() const noexcept { return domain_; }

  // The calls of fi_av(3): numbers inserted, or a negative errno. Those that
  // insert throw std::bad_alloc.
  int Insert(const void* addresses, size_t count, fi_addr_t* indices,
             uint64_t flags, void* context);
  int InsertService(const char* node, const char* service, fi_addr_t* index,
                    uint64_t flags, void* context);
  // `nodes` x `services` addresses from a first one counted upwards, the
  // service fastest.
  struct Range {
    const char* node;
    size_t nodes;
    const char* service;
    size_t services;
  };
  int InsertRange(const Range& range, fi_addr_t* indices, uint64_t flags,
                  void* context);
  int Remove(const fi_addr_t* indices, size_t count, uint64_t flags) noexcept;
  int Lookup(fi_addr_t index, void* address, size_t* length) const noexcept;
  int Close() noexcept;

 private:
  void Disinherit() noexcept override;

  explicit AddressVector(Domain* domain) : fid_av{}, domain_(domain) {}

  // Inserts one address. 0 or a negative errno.
  int InsertOne(const base::SocketAddress& given, fi_addr_t* index);
  int CheckInsert(const fi_addr_t* indices, uint64_t flags,
                  const void* context) const noexcept;

  Domain* domain_;
  fi_av_type type_ = FI_AV_TABLE;
  base::UserCount users_;
  std::unique_ptr<backend::Peers> peers_;
};

}  // namespace heddle::ofi
