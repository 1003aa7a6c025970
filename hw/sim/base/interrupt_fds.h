// SPDX-License-Identifier: Apache-2.0
// The eventfds behind a simulated NIC's MSI-X vectors.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace heddle::sim::base {

// Thread safety: all members from any thread.
// Ownership: of the file descriptors, closed at destruction.
class InterruptFds {
 public:
  InterruptFds() { fds_.fill(-1); }
  ~InterruptFds();
  InterruptFds(const InterruptFds&) = delete;
  InterruptFds& operator=(const InterruptFds&) = delete;

  // Made at the first call; interrupts raised before are not lost. -1 if there
  // is no such vector or no descriptor to be had.
  int Fd(uint32_t vector);
  void Raise(uint32_t vector);
  void RaiseAll();

  static constexpr uint32_t kVectors = 32;

 private:
  std::mutex mutex_;
  std::array<int, kVectors> fds_;
  std::array<uint32_t, kVectors> early_{};  // Raised before there was an fd.
};

}  // namespace heddle::sim::base
