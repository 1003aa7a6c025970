// SPDX-License-Identifier: Apache-2.0
// How a function leaves its peers.
#pragma once

#include <chrono>

namespace heddle::nic {

class Nic;

// Ends the PDCs of a function in both directions before it goes: at the end of
// this object, or when the process exits without that. A peer that sends to the
// function's address afterwards opens a new PDC, to its owner by then, rather
// than on one that ended unnoticed.
//
// Bounded: waits as long as PDCs end, and four retransmission time-outs after
// the last one; peers that are silent, or have work on their PDC, are left to
// find out by themselves. At most two seconds; three if the process exits from
// a signal handler that has stopped a call of the library, whose locks the call
// then keeps.
//
// Thread safety: any thread. Ownership: borrows the NIC, which outlives it. In
// a child after fork it does nothing.
class Departure {
 public:
  // Throws std::bad_alloc.
  Departure(Nic& nic, std::chrono::nanoseconds rto);
  ~Departure();
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;

 private:
  friend class Departures;

  void Leave() noexcept;
  void ClosePdcs();

  Nic& nic_;
  const std::chrono::nanoseconds rto_;
};

}  // namespace heddle::nic
