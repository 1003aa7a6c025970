// SPDX-License-Identifier: Apache-2.0
// A Heddle device as a backend's.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "host/lib/backend/device.h"
#include "host/lib/nic/departure.h"
#include "host/lib/nic/nic.h"

namespace heddle::nic {

// Thread safety and ownership: as `backend::Device`. Owns the NIC, and leaves
// its peers in order.
class BackendDevice final : public backend::Device {
 public:
  // `rto` is the retransmission time-out, by which it waits for peers at the
  // end. Throws std::bad_alloc.
  BackendDevice(std::unique_ptr<Nic> nic, std::chrono::nanoseconds rto);

  Nic& nic() noexcept { return *nic_; }

  const backend::Backend& backend() const noexcept override;
  const std::string& name() const noexcept override {
    return nic_->device().name();
  }
  const backend::DeviceProfile& profile() const noexcept override {
    return profile_;
  }
  bool failed() const noexcept override { return nic_->device().failed(); }
  std::string failure() const override { return nic_->device().failure(); }
  void WatchFailure(void (*report)(void* cookie), void* cookie) override {
    nic_->device().WatchFailure({.report = report, .cookie = cookie});
  }
  std::string Explain(Errno error, size_t bytes) const override {
    return nic_->device().Explain(error, bytes);
  }
  backend::Progressor* progressor() noexcept override {
    return nic_->progressor();
  }
  Result<std::unique_ptr<backend::Counter>> OpenCounter() override;
  Result<std::unique_ptr<backend::Peers>> OpenPeers(size_t expected) override;
  Result<std::unique_ptr<backend::Endpoint>> ClaimEndpoint(
      const backend::EndpointName& name, uint64_t* owner) override;
  Result<std::unique_ptr<backend::Region>> Register(
      std::span<const iovec> parts, size_t* refused_bytes) override;
  Result<size_t> AddStatistics(
      std::span<uint64_t> sums) const noexcept override;

 private:
  std::unique_ptr<Nic> nic_;
  backend::DeviceProfile profile_;
  Departure departure_;
};

}  // namespace heddle::nic
