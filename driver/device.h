// SPDX-License-Identifier: Apache-2.0
// The driver's view of a NIC function, on hardware or simulated.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "driver/result.h"

namespace heddle {

// Version of this interface: the driver refuses a library of devices
// (driver/sim_factory.h) of another version. Raise it with any change to this
// file (CHANGELOG, heading ABI).
inline constexpr uint32_t kDeviceAbi = 5;

// An address as the device sees host memory.
enum class Iova : uint64_t {};

// Address of a doorbell. Copyable; valid as long as its Device.
struct Doorbell {
  // Mapped register, or null when `notify` is set.
  volatile uint64_t* address = nullptr;
  // Set by devices that are not hardware: delivers `value` to `bar2_offset`.
  // Thread-safe, never blocks on the device's progress.
  void (*notify)(void* cookie, uint32_t bar2_offset, uint64_t value) = nullptr;
  void* cookie = nullptr;
  uint32_t bar2_offset = 0;
};

// The push window of a transmit page, to which a descriptor is copied ahead of
// its doorbell. Copyable; valid as long as its Device. Without `address` and
// `copy` there is none.
struct PushWindow {
  // Mapped window, 64-byte aligned.
  volatile uint64_t* address = nullptr;
  // Stores to `address` may be gathered (write-combining); else it is uncached.
  bool gathers = false;
  // Set by devices that are not hardware: delivers the 64 bytes at `slot` to
  // `bar2_offset`. Thread-safe, never blocks on the device's progress.
  void (*copy)(void* cookie, uint32_t bar2_offset, const void* slot) = nullptr;
  void* cookie = nullptr;
  uint32_t bar2_offset = 0;
};

// Runs a device that is not hardware on a polling thread.
struct ProgressHook {
  // Null for hardware. Called by a thread that found a queue empty; advances
  // the device by a bounded amount of work, or returns at once when another
  // thread does so. Thread-safe.
  void (*step)(void* cookie) = nullptr;
  void* cookie = nullptr;
};

// Learns that a device has failed.
struct FailureHook {
  // Takes no lock under which its device is called.
  void (*report)(void* cookie) = nullptr;
  void* cookie = nullptr;
};

// One function of a NIC, owned by one process.
//
// Thread safety: any thread may call every member.
// Ownership: the caller that opened it; it outlives all rings, mappings and
// doorbells made from it. Destruction stops the device: afterwards it accesses
// no memory.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  // Domain name, e.g. `rtl0`.
  virtual const std::string& name() const = 0;

  // BAR0 registers by their contract offset. A read of a lost device is all
  // ones.
  virtual uint32_t ReadRegister32(uint32_t offset) = 0;
  virtual uint64_t ReadRegister64(uint32_t offset) = 0;
  virtual void WriteRegister32(uint32_t offset, uint32_t value) = 0;
  virtual void WriteRegister64(uint32_t offset, uint64_t value) = 0;

  // Doorbell at `bar2_offset` (page x doorbell_page_bytes + register offset).
  virtual Doorbell doorbell(uint32_t bar2_offset) = 0;

  // Push window at `bar2_offset`, as this mapping of the BAR allows. Call only
  // if the capability register has `push`.
  virtual PushWindow push_window(uint32_t /*bar2_offset*/) { return {}; }

  virtual ProgressHook progress_hook() = 0;

  // Lets the device read and write [address, address + bytes).
  // Errors: EINVAL for an empty or wrapping range, ENOMEM. Ranges may overlap;
  // each is unmapped on its own.
  virtual Result<Iova> Map(void* address, size_t bytes) = 0;

  // Explains in one line why `Map` of `bytes` (0: an unknown number) failed
  // with `error`, with the remedy if the user has one.
  virtual std::string Explain(Errno error, size_t /*bytes*/) const {
    return std::strerror(static_cast<int>(error));
  }

  // Ends the mapping that `Map` returned for exactly this range. When it
  // returns, the device no longer accesses the range (unless another mapping
  // has it).
  virtual void Unmap(Iova iova, size_t bytes) = 0;

  // Eventfd of an MSI-X vector, owned by the Device; -1 if there is no such
  // vector. Readable once per interrupt raised.
  virtual int interrupt_fd(uint32_t vector) = 0;

  // Returns the function to its power-on state; all objects created on it are
  // gone. Errors: EIO when the device does not respond.
  virtual Result<bool> Reset() = 0;

  // Reserves device addresses for [address, address + bytes), whole pages, of
  // which `MapReserved` maps parts, so that memory can grow in place. Errors:
  // EINVAL, ENOSPC. By default, addresses of the device are those of the
  // process.
  virtual Result<Iova> Reserve(void* address, size_t /*bytes*/) {
    return Iova{reinterpret_cast<uintptr_t>(address)};
  }

  // As `Map`, at `iova`, which has the same offset in the reservation as
  // `address`; whole pages. `Unmap` ends it; the reservation stays.
  virtual Result<Iova> MapReserved(Iova iova, void* address, size_t bytes) {
    Result<Iova> mapped = Map(address, bytes);
    if (mapped.ok() && mapped.value() != iova) {
      Unmap(mapped.value(), bytes);
      return Errno{ENOMEM};
    }
    return mapped;
  }

  // Ends a reservation. Precondition: nothing is mapped in it.
  virtual void Release(Iova /*iova*/, size_t /*bytes*/) {}

  // Monotonic time in nanoseconds, by which the driver and the library limit
  // and pace waits for this device: the host's, except for devices whose time
  // is simulated.
  virtual uint64_t now_ns() const {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::steady_clock::now().time_since_epoch())
            .count());
  }

  // True once the device has failed (simulation assertion, lost PCI device) or
  // was reset by another. Nothing completes any more; `failure()` gives the
  // reason, in one line.
  virtual bool failed() const = 0;
  virtual std::string failure() const = 0;

  // `hook` is called when the device has failed, on any thread, or here if it
  // already has; perhaps twice. One hook per device, valid as long as it. A
  // device that wraps another passes the hook on.
  virtual void WatchFailure(FailureHook hook) {
    {
      const std::lock_guard lock(hook_mutex_);
      hook_ = hook;
    }
    if (failed()) {
      hook.report(hook.cookie);
    }
  }

 protected:
  // Each device calls it once `failed()`.
  void ReportFailure() {
    const std::lock_guard lock(hook_mutex_);
    if (hook_.report != nullptr) {
      hook_.report(hook_.cookie);
    }
  }

 private:
  std::mutex hook_mutex_;
  FailureHook hook_;
};

}  // namespace heddle
