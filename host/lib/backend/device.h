// SPDX-License-Identifier: Apache-2.0
// One opened device of any backend: the control path.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "host/lib/backend/device_profile.h"
#include "host/lib/backend/objects.h"
#include "host/lib/backend/progressor.h"

namespace heddle::backend {

// The statistics that devices of a backend have. An index keeps its meaning
// from version to version.
struct StatisticTable {
  size_t (*count)() noexcept = nullptr;
  // Static text; null from the count on.
  const char* (*name)(size_t index) noexcept = nullptr;
  const char* (*help)(size_t index) noexcept = nullptr;
};

// Whose port an endpoint claims. With `relative` it is the job's, else the
// address'.
struct EndpointName {
  uint16_t port = 0;  // 0: any free one.
  uint32_t job_id = 0;
  bool relative = false;  // Where the device has the capability.
};

// A kind of devices with a data path of its own; compared by address.
struct Backend {
  const char* name = nullptr;
  StatisticTable statistics;
};

// Thread safety: any thread. Ownership: the domain; outlives everything made
// on it. Errors are positive errno numbers; what makes objects throws
// std::bad_alloc.
class Device {
 public:
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  // Whose data path its objects have.
  virtual const Backend& backend() const noexcept = 0;
  virtual const std::string& name() const noexcept = 0;
  virtual const DeviceProfile& profile() const noexcept = 0;

  // True once the device has failed. Nothing completes any more; `failure()`
  // says why, in one line.
  virtual bool failed() const noexcept = 0;
  virtual std::string failure() const = 0;
  // `report` is called when the device has failed, on any thread, perhaps
  // twice; it takes no lock under which the device is called. Once per device.
  virtual void WatchFailure(void (*report)(void* cookie), void* cookie) = 0;
  // Why an object of it was not made, or memory of `bytes` (0: an unknown
  // number) not made reachable; where the user can do something, with what.
  virtual std::string Explain(Errno error, size_t bytes) const = 0;

  // By which polls lend the device their thread; its own. Null: it is hardware.
  virtual Progressor* progressor() noexcept = 0;

  // Errors: ENOSPC, EOPNOTSUPP, ENOMEM, EIO.
  virtual Result<std::unique_ptr<Counter>> OpenCounter() = 0;
  // Room for `expected` peers from the start; it grows. Errors: ENOMEM, EIO.
  virtual Result<std::unique_ptr<Peers>> OpenPeers(size_t expected) = 0;
  // Errors: EADDRINUSE (`*owner` is the process that has the port, or 0),
  // ENOSPC, EIO.
  virtual Result<std::unique_ptr<Endpoint>> ClaimEndpoint(
      const EndpointName& name, uint64_t* owner) = 0;
  // `parts`: 1 to `kMaxSegments`. Errors: EINVAL for an empty or wrapping one;
  // `*refused_bytes` is its length.
  virtual Result<std::unique_ptr<Region>> Register(std::span<const iovec> parts,
                                                   size_t* refused_bytes) = 0;

  // Adds the first `sums.size()` statistics of the backend's table to `sums`;
  // how many. Errors: EIO,
  // `sums` unchanged, when the device has failed.
  virtual Result<size_t> AddStatistics(
      std::span<uint64_t> sums) const noexcept = 0;

 protected:
  Device() = default;
};

}  // namespace heddle::backend
