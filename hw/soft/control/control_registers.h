// SPDX-License-Identifier: Apache-2.0
// BAR0 and the management bus: the seam between host, firmware and data path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "firmware/base/hal.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/control/slow_path_queue.h"
#include "hw/soft/control/tables.h"
#include "hw/soft/engine/dma_port.h"
#include "hw/soft/transport/transport.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::control {

// Read-only registers: what the device is.
struct DeviceShape {
  uint64_t capability = 0;
  uint32_t context_limits = 0;
  uint32_t transport_limits = 0;
  uint32_t datapath = 0;
  uint32_t region_limits = 0;
  uint32_t context_counts = 0;
  uint32_t queue_counts = 0;
  uint32_t region_count = 0;
};

// Register spaces `bar0` and `mgmt` of the contract, as docs/rtl/bar.md and
// docs/rtl/mgmt.md describe them, but that a mailbox DMA and a table access are
// done when the write that starts them returns; a drain may take longer.
//
// Thread safety: none.
class ControlRegisters final : public firmware::RegisterBus {
 public:
  // What they reach; all of it outlives them.
  struct Parts {
    engine::DmaPort* memory;
    Tables* tables;
    SlowPathQueue* slow_path;
    wire::DatagramWire* wire;
    std::function<uint64_t()> now_ns;  // Monotonic.
    std::function<uint64_t(contract::Statistic)> statistic;
    std::function<transport::Transport::OpenPdcs()> open_pdcs;
    std::function<void()> on_reset;  // The host asks for one.
  };
  ControlRegisters(const DeviceShape& shape, uint64_t tick_ns, Parts parts);

  // A register of BAR0 that says what a device is; 0 where that of `offset`
  // does not.
  static uint32_t ReadIdentity(const DeviceShape& shape, uint32_t offset);

  // -- BAR0; `bytes` is 4 or 8. What there is no register for reads as 0 and
  // takes no write, nor does half of a register of 64 bits.
  uint64_t ReadBar(uint32_t offset, uint32_t bytes) const;
  void WriteBar(uint32_t offset, uint64_t value, uint32_t bytes);

  // -- management bus
  uint32_t Read(uint32_t offset) override;
  void Write(uint32_t offset, uint32_t value) override;

  // True while firmware has something to look at.
  bool event() const {
    return admin_tail_ != admin_head_ || reset_ || parts_.slow_path->waits() ||
           TimerIsUp();
  }
  // When the event `timer` comes; UINT64_MAX: never.
  uint64_t deadline_ns() const { return timer_at_ns_; }

  uint64_t slow_path_sent() const { return slow_path_sent_; }

 private:
  static constexpr size_t kMailboxWords =
      contract::kMailboxBytes / sizeof(uint32_t);

  uint32_t ReadBar32(uint32_t offset) const;
  void WriteBar32(uint32_t offset, uint32_t value);
  uint64_t Statistic(uint32_t offset) const;
  uint32_t Events() const;
  bool TimerIsUp() const {
    return timer_at_ns_ != UINT64_MAX && parts_.now_ns() >= timer_at_ns_;
  }
  uint32_t ReadMirror(uint32_t offset) const;
  uint32_t ReadSlowPathWord(uint32_t index) const;
  void SendSlowPath(uint32_t control);
  void RunMailbox(uint32_t control);
  void StartTableAccess(uint32_t control);
  void PollDrain();

  const DeviceShape shape_;
  const uint64_t tick_ns_;
  const uint64_t start_ns_;
  const Parts parts_;

  // Of the host.
  uint64_t admin_command_base_ = 0;
  uint64_t admin_answer_base_ = 0;
  uint32_t admin_size_ = 0;
  uint32_t admin_tail_ = 0;
  bool reset_ = false;
  // Of firmware.
  uint32_t status_ = 0;
  uint32_t fatal_cause_ = 0;
  uint32_t admin_head_ = 0;
  uint64_t mailbox_address_ = 0;
  uint32_t mailbox_control_ = 0;
  uint32_t table_control_ = 0;
  uint64_t timer_at_ns_ = UINT64_MAX;
  std::array<uint32_t, kMailboxWords> mailbox_{};
  std::array<uint32_t, contract::kMgmtTableDataCount> table_data_{};
  std::array<uint32_t, contract::kMgmtSlowPathTxDataCount> slow_path_tx_{};
  uint64_t slow_path_sent_ = 0;
};

}  // namespace heddle::soft::control
