// SPDX-License-Identifier: Apache-2.0
// The NIC's network port: addresses, transport times.
#pragma once

#include <stdint.h>

#include "firmware/base/hal.h"
#include "firmware/base/status.h"
#include "firmware/mgmt/table_port.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

inline constexpr uint64_t kMacMask = (uint64_t{1} << 48) - 1;

// The longest time that the NIC measures: it compares moments by the sign of
// their difference.
inline constexpr uint32_t kMaxTicks = INT32_MAX;

// Ticks that last at least `ns`, at least 1. False for more than `kMaxTicks`.
bool TicksOf(uint64_t ns, uint64_t tick_ns, uint32_t& ticks);

// Keeps table `port` at what the board and the host asked for.
//
// Thread safety: none; the control program is single-threaded.
class Port {
 public:
  // Status code: a fact of the board is out of range.
  static constexpr uint8_t kBadBoard = 1;

  Port(RegisterBus& bus, TablePort& tables, const Board& board)
      : bus_(bus), tables_(tables), board_(board) {}

  // Writes the port with the board's times, and lets frames pass. Also brings
  // it back to this state after a reset.
  Status Start(uint32_t payload_mtu_max_bytes);

  enum class Timing : uint8_t { kSet, kBadRto, kBadDead, kFailed };

  // Sets the first retransmission time-out and DEAD_TIME; 0 keeps the present
  // one. The longest time-out is raised where the first exceeds it. Changes
  // nothing for a bad time. kFailed: a table was not written, `status` says
  // why.
  Timing SetTiming(uint64_t rto_ns, uint64_t dead_ns, Status& status);

  // Starts to close the PDCs of both directions (`close` of `transport_cfg`);
  // does not wait for peers.
  Status ClosePdcs();
  // PDCs of both roles that are open or being closed.
  uint32_t CountOpenPdcs();

  // The port as the NIC has it.
  const contract::PortCfg& config() const { return config_; }

 private:
  bool BoardIsValid(uint32_t payload_mtu_max_bytes) const;
  // DEAD_TIME bounds the time after which idle PDCs are closed.
  Status WriteTransport(uint32_t dead_ticks, bool close = false);

  RegisterBus& bus_;
  TablePort& tables_;
  const Board board_;
  contract::PortCfg config_;
};

}  // namespace heddle::firmware
