// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/memory_region.h"

#include "host/lib/boundary/guard.h"
#include "host/lib/boundary/status.h"
#include "host/lib/fabric/unsupported.h"
#include "host/lib/ofi/inherited_ops.h"

namespace heddle::ofi {
namespace {

constexpr uint64_t kAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

int CloseRegion(struct fid* handle) noexcept {
  return MemoryRegion::From(handle)->Close();
}

int RegisterAttr(struct fid* handle, const fi_mr_attr* attr, uint64_t flags,
                 fid_mr** region) noexcept {
  return boundary::Guard([&] {
    return MemoryRegion::Register(Domain::From(handle), *attr, flags, region);
  });
}

// The two calls have the API's parameters.
// NOLINTBEGIN(readability-function-size)
int RegisterVector(struct fid* handle, const iovec* parts, size_t count,
                   uint64_t access, uint64_t offset, uint64_t requested_key,
                   uint64_t flags, fid_mr** region, void* context) noexcept {
  fi_mr_attr attr = {};
  attr.mr_iov = parts;
  attr.iov_count = count;
  attr.access = access;
  attr.offset = offset;
  attr.requested_key = requested_key;
  attr.context = context;
  return RegisterAttr(handle, &attr, flags, region);
}

int RegisterBuffer(struct fid* handle, const void* buffer, size_t bytes,
                   uint64_t access, uint64_t offset, uint64_t requested_key,
                   uint64_t flags, fid_mr** region, void* context) noexcept {
  const iovec part = {.iov_base = const_cast<void*>(buffer), .iov_len = bytes};
  return RegisterVector(handle, &part, 1, access, offset, requested_key, flags,
                        region, context);
}
// NOLINTEND(readability-function-size)

// Regions bind to nothing: neither FI_MR_ENDPOINT nor FI_RMA_EVENT is asked.
fi_ops region_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseRegion,
    .bind = fabric::RefuseBind,
    .control = fabric::RefuseControl,
    .ops_open = fabric::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = fabric::RefuseSetOps,
};

}  // namespace

fi_ops_mr domain_mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = RegisterBuffer,
    .regv = RegisterVector,
    .regattr = RegisterAttr,
};

int MemoryRegion::Register(Domain* domain, const fi_mr_attr& attr,
                           uint64_t flags, fid_mr** region) {
  if (flags != 0) {
    return -FI_EBADFLAGS;
  }
  if (attr.mr_iov == nullptr || attr.iov_count == 0 ||
      attr.iov_count > core::kMrIovLimit || (attr.access & ~kAccess) != 0) {
    return -FI_EINVAL;
  }
  std::unique_ptr<MemoryRegion> made(new MemoryRegion(domain));
  for (size_t i = 0; i < attr.iov_count; ++i) {
    auto part =
        nic::Region::Create(domain->nic().device(), attr.mr_iov[i].iov_base,
                            attr.mr_iov[i].iov_len);
    if (!part.ok()) {
      return boundary::ToReturnCode(part.error());
    }
    made->parts_[i] = std::move(part.value());
  }
  made->part_count_ = attr.iov_count;
  const int result = domain->TakeKey(attr.requested_key, &made->key);
  if (result != 0) {
    return result;
  }
  made->fid = {
      .fclass = FI_CLASS_MR, .context = attr.context, .ops = &region_fid_ops};
  made->mem_desc = made.get();
  domain->users().Add();
  *region = made.release();
  return 0;
}

int MemoryRegion::Close() noexcept {
  domain_->ReturnKey(key);
  domain_->users().Remove();
  delete this;
  return 0;
}

void MemoryRegion::Disinherit() noexcept {
  fid.ops = &inherited_fid_ops;
}

}  // namespace heddle::ofi
