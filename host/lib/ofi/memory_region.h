// SPDX-License-Identifier: Apache-2.0
// The memory region object (fid_mr).
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "host/lib/backend/objects.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/fork_guard.h"

namespace heddle::ofi {

class Counter;
class Endpoint;

extern fi_ops_mr domain_mr_ops;

// Memory that stays mapped for the device until closed, so that operations
// which name it by its descriptor copy nothing, and that peers may reach, if
// they have its key and it was registered for that.
//
// The descriptor is the backend's region, so that posts look at nothing else.
//
// A region that peers may reach has one entry of the device's from the moment
// that it is enabled until it is closed; no peer's operation touches the memory
// afterwards.
//
// Thread safety: immutable once enabled; binding, enabling and closing are the
// application's to serialize.
// Ownership: the application, until fi_close.
class MemoryRegion final : public fid_mr, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Register(Domain* domain, const fi_mr_attr& attr, uint64_t flags,
                      fid_mr** region);

  static MemoryRegion* From(struct fid* handle) noexcept {
    return base::FromFid<MemoryRegion, fid_mr>(handle);
  }

  // The calls of fi_mr(3), which defines their results. `Bind` and `Enable`
  // throw std::bad_alloc.
  int Bind(struct fid* other, uint64_t flags);
  int Enable();
  // Answers when the memory is touched no more.
  int Close() noexcept;

  // The endpoint that the region serves ends: so does the access.
  void LoseEndpoint() noexcept;

 private:
  void Disinherit() noexcept override;

  explicit MemoryRegion(Domain* domain) : fid_mr{}, domain_(domain) {}
  ~MemoryRegion();

  bool is_target() const noexcept { return is_read_ || is_written_; }
  // Each answers 0 or a negative errno.
  int Map(const fi_mr_attr& attr);
  int ReadService(const fi_mr_attr& attr, uint64_t flags) noexcept;
  int ChooseKey(uint64_t requested);
  int BindEndpoint(Endpoint* endpoint, uint64_t flags);
  int BindCounter(Counter* counter, uint64_t flags);
  int Grant();

  Domain* domain_;
  bool is_read_ = false;  // By peers.
  bool is_written_ = false;
  uint64_t start_ = 0;     // Address of the first part.
  bool own_key_ = false;   // `key` is taken in the domain.
  bool deferred_ = false;  // Begins disabled, until fi_mr_enable.
  std::optional<uint32_t> job_id_;
  Endpoint* endpoint_ = nullptr;
  uint32_t endpoint_number_ = 0;
  Counter* counter_ = nullptr;
  std::unique_ptr<backend::Region> backend_;
};

}  // namespace heddle::ofi
