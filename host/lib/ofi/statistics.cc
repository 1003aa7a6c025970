// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/statistics.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_ext_heddle.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "host/lib/base/guard.h"
#include "host/lib/base/status.h"
#include "host/lib/core/open_objects.h"
#include "host/lib/ofi/data_path.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/fabric.h"

namespace heddle::ofi {
namespace {

// Those that a fabric and its domains have: of the devices of our own.
const backend::StatisticTable& Table() noexcept {
  return FirstDataPath().backend->statistics;
}

size_t Count(struct fid* /*handle*/) noexcept {
  return Table().count();
}

const char* Name(struct fid* /*handle*/, size_t index) noexcept {
  return Table().name(index);
}

const char* Help(struct fid* /*handle*/, size_t index) noexcept {
  return Table().help(index);
}

ssize_t AddDomain(Domain* domain, std::span<uint64_t> sums) {
  if (&domain->device().backend().statistics != &Table()) {
    return static_cast<ssize_t>(sums.size());
  }
  const auto added = domain->device().AddStatistics(sums);
  return added.ok() ? static_cast<ssize_t>(added.value())
                    : base::ToReturnCode(added.error());
}

// The values that are to be read, zeroed; empty if there is no room for any.
std::span<uint64_t> Cleared(uint64_t* values, size_t count) noexcept {
  const std::span<uint64_t> sums(values, std::min(count, Table().count()));
  std::fill(sums.begin(), sums.end(), 0);
  return sums;
}

ssize_t ReadDomain(struct fid* handle, uint64_t* values,
                   size_t count) noexcept {
  if (values == nullptr) {
    return -FI_EINVAL;
  }
  return base::Guard(
      [&] { return AddDomain(Domain::From(handle), Cleared(values, count)); });
}

ssize_t ReadFabric(struct fid* handle, uint64_t* values,
                   size_t count) noexcept {
  if (values == nullptr) {
    return -FI_EINVAL;
  }
  return base::Guard([&] {
    const std::span<uint64_t> sums = Cleared(values, count);
    auto result = static_cast<ssize_t>(sums.size());
    core::ForEachOpenDomain(ofi::Fabric::From(handle), [&](fid_domain* domain) {
      const ssize_t added = AddDomain(Domain::From(domain), sums);
      result = added < 0 ? added : result;
    });
    return result;
  });
}

fi_heddle_ops_statistics domain_statistics = {
    .size = sizeof(fi_heddle_ops_statistics),
    .count = Count,
    .name = Name,
    .help = Help,
    .read = ReadDomain,
};

fi_heddle_ops_statistics fabric_statistics = {
    .size = sizeof(fi_heddle_ops_statistics),
    .count = Count,
    .name = Name,
    .help = Help,
    .read = ReadFabric,
};

int Open(const char* name, uint64_t flags, fi_heddle_ops_statistics* table,
         void** ops) noexcept {
  if (name == nullptr || ops == nullptr) {
    return -FI_EINVAL;
  }
  if (strcmp(name, FI_HEDDLE_STATISTICS) != 0) {
    return -FI_ENOSYS;
  }
  if (flags != 0) {
    return -FI_EBADFLAGS;
  }
  *ops = table;
  return FI_SUCCESS;
}

}  // namespace

int OpenDomainOps(struct fid* /*handle*/, const char* name, uint64_t flags,
                  void** ops, void* /*context*/) noexcept {
  return Open(name, flags, &domain_statistics, ops);
}

int OpenFabricOps(struct fid* /*handle*/, const char* name, uint64_t flags,
                  void** ops, void* /*context*/) noexcept {
  return Open(name, flags, &fabric_statistics, ops);
}

}  // namespace heddle::ofi
