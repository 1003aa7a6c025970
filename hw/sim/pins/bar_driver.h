// SPDX-License-Identifier: Apache-2.0
// Master of the NIC's BAR slave: beats of 512 bits, in the order of PCI.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "hw/sim/pins/host_memory.h"

namespace heddle::sim::pins {

// Where the BARs are on the slave's address bus.
inline constexpr uint32_t kBar0Address = 0;
inline constexpr uint32_t kBar2Address = 0x100000;

// A beat of the slave's data bus, in words of 64 bits.
using BarBeat = std::array<uint64_t, 8>;

// Driven towards the NIC, one clock cycle.
struct BarToDevice {
  bool aw_valid = false;
  bool w_valid = false;
  bool ar_valid = false;
  uint32_t aw_address = 0;
  uint32_t ar_address = 0;
  BarBeat w_data = {};
  uint64_t w_strobe = 0;
};

// Driven by the NIC, one clock cycle.
struct BarFromDevice {
  bool aw_ready = false;
  bool w_ready = false;
  bool b_valid = false;
  bool ar_ready = false;
  bool r_valid = false;
  AxiResponse b_response = AxiResponse::kOkay;
  AxiResponse r_response = AxiResponse::kOkay;
  BarBeat r_data = {};
};

// Writes are posted and pipelined; a read waits until all writes before it
// were answered, as a read does that pushes posted writes on PCI Express.
// Thread safety: none.
class BarDriver {
 public:
  // Queues a write of `bytes` (4 or 8) at a naturally aligned address.
  void Write(uint32_t address, uint64_t value, uint32_t bytes);

  // Queues a write of words from an 8-byte aligned address on, as a 64-byte
  // store of the CPU arrives: one for each 64 bytes that they touch.
  void WriteWords(uint32_t address, std::span<const uint64_t> words);

  // Starts the read of the 8 bytes around `address`. One at a time.
  void StartRead(uint32_t address);
  // Its result, once.
  std::optional<uint64_t> TakeRead();

  bool quiet() const {
    return writes_.empty() && unanswered_ == 0 && !reading_;
  }
  // Writes and reads answered with an error.
  uint64_t errors() const { return errors_; }

  // Once per cycle: drive, then sample when outputs have settled. `b_ready` and
  // `r_ready` are always high.
  const BarToDevice& Drive();
  void Sample(const BarFromDevice& device);

 private:
  struct PendingWrite {
    uint32_t address;
    uint64_t strobe;
    BarBeat data;
  };

  std::deque<PendingWrite> writes_;  // The data of the front one come next.
  size_t addresses_taken_ = 0;       // One goes ahead of its data.
  bool data_taken_ = false;          // The front one lacks its address.
  uint32_t unanswered_ = 0;
  bool reading_ = false;      // From `StartRead` to the answer.
  bool read_on_bus_ = false;  // Address offered, not yet taken.
  bool read_taken_ = false;
  uint32_t read_address_ = 0;
  std::optional<uint64_t> read_data_;
  uint64_t errors_ = 0;
  BarToDevice out_;
};

}  // namespace heddle::sim::pins
