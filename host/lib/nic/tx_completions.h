// SPDX-License-Identifier: Apache-2.0
// What a transmit queue asks of the completion queue that tells of it.
#pragma once

#include <cstdint>

namespace heddle::nic {

class TxQueue;

class TxCompletions {
 public:
  TxCompletions(const TxCompletions&) = delete;
  TxCompletions& operator=(const TxCompletions&) = delete;

  // Entries read so far, which is the number of the oldest that is not. Under
  // the completion queue's lock.
  virtual uint64_t EntriesRead() const noexcept = 0;
  // At least so many have been written. Any thread.
  virtual uint64_t EntriesWritten() const noexcept = 0;
  // Retires the oldest entries, up to the first that somebody is to hear of;
  // none while another thread reads the queue. The lock of `caller` is held,
  // where the policy locks.
  virtual void DrainSilent(TxQueue* caller) noexcept = 0;

 protected:
  TxCompletions() = default;
  ~TxCompletions() = default;
};

}  // namespace heddle::nic
