// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/backend_device.h"

#include "host/lib/nic/endpoint.h"
#include "host/lib/nic/model.h"
#include "host/lib/nic/profile.h"
#include "host/lib/nic/registration.h"
#include "host/lib/nic/statistics.h"

namespace heddle::nic {
namespace {

// An object of this backend as one of any.
template <typename Base, typename Object>
Result<std::unique_ptr<Base>> AsBase(Result<std::unique_ptr<Object>> made) {
  if (!made.ok()) {
    return made.error();
  }
  return std::unique_ptr<Base>(std::move(made.value()));
}

}  // namespace

BackendDevice::BackendDevice(std::unique_ptr<Nic> nic,
                             std::chrono::nanoseconds rto)
    : nic_(std::move(nic)),
      profile_(ProfileOf(nic_->info())),
      departure_(*nic_, rto) {}

const backend::Backend& BackendDevice::backend() const noexcept {
  return kBackend;
}

Result<std::unique_ptr<backend::Counter>> BackendDevice::OpenCounter() {
  return AsBase<backend::Counter>(Counter::Create(*nic_));
}

Result<std::unique_ptr<backend::Peers>> BackendDevice::OpenPeers(
    size_t expected) {
  return AsBase<backend::Peers>(
      AddressTable::Create(nic_->device(), expected, &nic_->next_hops()));
}

Result<std::unique_ptr<backend::Endpoint>> BackendDevice::ClaimEndpoint(
    const backend::EndpointName& name, uint64_t* owner) {
  contract::AdminAnswer refusal;
  auto claimed =
      AsBase<backend::Endpoint>(Endpoint::Claim(*nic_, name, &refusal));
  *owner = refusal.detail;
  return claimed;
}

Result<std::unique_ptr<backend::Region>> BackendDevice::Register(
    std::span<const iovec> parts, size_t* refused_bytes) {
  return AsBase<backend::Region>(
      Registration::Create(*nic_, parts, refused_bytes));
}

Result<size_t> BackendDevice::AddStatistics(
    std::span<uint64_t> sums) const noexcept {
  return nic::AddStatistics(nic_->device(), sums);
}

}  // namespace heddle::nic
