// SPDX-License-Identifier: Apache-2.0
// Which fabrics and domains are open in this process.
#pragma once

#include <rdma/fi_domain.h>

#include <functional>
#include <optional>
#include <string>

#include "host/lib/base/socket_address.h"

namespace heddle::core {

// Keeps an open fabric known to fi_getinfo for as long as it lives.
//
// Thread safety: any thread. Ownership: the fabric; `handle` outlives it.
class OpenFabric {
 public:
  // `name` is that of `fi_fabric_attr`. Throws std::bad_alloc.
  OpenFabric(fid_fabric* handle, std::string name);
  OpenFabric(const OpenFabric&) = delete;
  OpenFabric& operator=(const OpenFabric&) = delete;
  ~OpenFabric();

 private:
  friend class OpenObjects;

  fid_fabric* handle_;
  std::string name_;
  OpenFabric* next_ = nullptr;
};

// Keeps an open domain known, likewise. A child process does not inherit it.
class OpenDomain {
 public:
  // `name` is that of `fi_domain_attr`, `address` that of its endpoints. Throws
  // std::bad_alloc.
  OpenDomain(fid_domain* handle, fid_fabric* fabric, std::string name,
             const base::SocketAddress& address);
  OpenDomain(const OpenDomain&) = delete;
  OpenDomain& operator=(const OpenDomain&) = delete;
  ~OpenDomain();

 private:
  friend class OpenObjects;

  fid_domain* handle_;
  fid_fabric* fabric_;
  std::string name_;
  base::SocketAddress address_;
  OpenDomain* next_ = nullptr;
};

// Null for what is not there.
struct FoundObjects {
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  // Of the domain; the port is 0.
  std::optional<base::SocketAddress> address = std::nullopt;
};

// The domain opened first of those named `domain` on a fabric named `fabric`,
// with its fabric, else the fabric of that name opened first. With `wanted`,
// only these pointers are looked for; what is not open is not dereferenced.
// Names are compared without regard to case. Thread-safe.
FoundObjects FindOpenObjects(const std::string& fabric,
                             const std::string& domain,
                             const FoundObjects& wanted);

// Calls `visit` for each domain open on `fabric`; none is closed meanwhile.
// `visit` opens and closes nothing. Thread-safe.
void ForEachOpenDomain(const fid_fabric* fabric,
                       const std::function<void(fid_domain*)>& visit);

}  // namespace heddle::core
