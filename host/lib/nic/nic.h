// SPDX-License-Identifier: Apache-2.0
// One opened NIC function with its admin queue.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/control/admin_queue.h"
#include "driver/control/open.h"
#include "driver/device.h"
#include "driver/result.h"
#include "host/lib/backend/progressor.h"
#include "host/lib/nic/next_hops.h"

namespace heddle::nic {

// Thread safety: any thread. Ownership: owns the device; outlives everything
// made on it.
class Nic {
 public:
  // Errors, with one line in `message`: those of `OpenDevice` and
  // `AdminQueue::Create`. Throws std::bad_alloc.
  static Result<std::unique_ptr<Nic>> Open(const std::string& kind,
                                           const SimulatorOptions& options,
                                           std::string& message);

  // Opens the function of PCI address `name`. Errors: those of `OpenFunction`,
  // and as above.
  static Result<std::unique_ptr<Nic>> OpenFunction(const std::string& name,
                                                   const std::string& vf_token,
                                                   std::string& message);

  // Takes an opened device over; for `Open` and tests. Errors as above.
  static Result<std::unique_ptr<Nic>> Adopt(OpenedDevice opened,
                                            std::string& message);

  Device& device() const noexcept { return *opened_.device; }
  const DeviceInfo& info() const noexcept { return opened_.info; }
  AdminQueue& admin() const noexcept { return *admin_; }
  // Address of the port, as text; empty when firmware does not tell. Errors:
  // EIO.
  Result<std::string> QueryIp() const;

  NextHops& next_hops() const noexcept { return *next_hops_; }

  // An interrupt vector for one owner. Errors: ENOSPC.
  Result<uint32_t> TakeVector() noexcept;
  void ReturnVector(uint32_t vector) noexcept;

  // Lends threads to a device that is not hardware; null for others.
  backend::Progressor* progressor() noexcept {
    return progressor_.step != nullptr ? &progressor_ : nullptr;
  }

 private:
  Nic() = default;

  backend::Progressor progressor_;
  OpenedDevice opened_;
  std::unique_ptr<AdminQueue> admin_;
  std::unique_ptr<NextHops> next_hops_;
  std::mutex mutex_;
  std::vector<bool> vector_taken_;
};

}  // namespace heddle::nic
