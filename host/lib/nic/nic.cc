// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/nic.h"

#include <cerrno>
#include <utility>

#include "driver/control/function.h"
#include "host/lib/nic/peer_address.h"

namespace heddle::nic {

Result<std::unique_ptr<Nic>> Nic::Open(const std::string& kind,
                                       const SimulatorOptions& options,
                                       std::string& message) {
  auto opened = OpenDevice(kind, options, message);
  if (!opened.ok()) {
    return opened.error();
  }
  return Adopt(std::move(opened.value()), message);
}

Result<std::unique_ptr<Nic>> Nic::OpenFunction(const std::string& name,
                                               const std::string& vf_token,
                                               std::string& message) {
  auto opened = heddle::OpenFunction(name, {.vf_token = vf_token}, message);
  if (!opened.ok()) {
    return opened.error();
  }
  return Adopt(std::move(opened.value()), message);
}

Result<std::string> Nic::QueryIp() const {
  const auto port = admin_->QueryPort();
  if (port.ok()) {
    return PeerAddress::OfSender(port.value().address, 0).IpText();
  }
  if (port.error() == Errno{EOPNOTSUPP}) {
    return std::string();
  }
  return port.error();
}

Result<std::unique_ptr<Nic>> Nic::Adopt(OpenedDevice opened,
                                        std::string& message) {
  std::unique_ptr<Nic> nic(new Nic());
  nic->opened_ = std::move(opened);
  const ProgressHook hook = nic->device().progress_hook();
  nic->progressor_.step = hook.step;
  nic->progressor_.cookie = hook.cookie;
  nic->vector_taken_.resize(nic->info().interrupt_vectors);
  auto admin = AdminQueue::Create(nic->device());
  if (!admin.ok()) {
    message = nic->device().name() + ": admin queue: " +
              nic->device().Explain(admin.error(), AdminQueue::kMemoryBytes);
    return admin.error();
  }
  nic->admin_ = std::move(admin.value());
  nic->next_hops_ = std::make_unique<NextHops>(
      *nic->admin_, nic->info().Has(contract::kCapabilitySlowPath));
  return nic;
}

Result<uint32_t> Nic::TakeVector() noexcept {
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < vector_taken_.size(); ++i) {
    // The machine may have had fewer than the device has.
    if (!vector_taken_[i] && device().interrupt_fd(i) >= 0) {
      vector_taken_[i] = true;
      return i;
    }
  }
  return Errno{ENOSPC};
}

void Nic::ReturnVector(uint32_t vector) noexcept {
  const std::lock_guard lock(mutex_);
  vector_taken_[vector] = false;
}

}  // namespace heddle::nic
