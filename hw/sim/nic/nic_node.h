// SPDX-License-Identifier: Apache-2.0
// A simulated NIC with its host memory and its control program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "firmware/base/hal.h"
#include "firmware/control_program.h"
#include "hw/sim/device/object_heap.h"
#include "hw/sim/nic/nic_model.h"
#include "hw/sim/pins/host_memory.h"
#include "hw/sim/pins/mac_link.h"

namespace heddle::sim::nic {

struct NicNodeOptions {
  device::MemoryOptions memory;
  NicModelOptions model;
  firmware::Board board;
};

// Everything that waits for the NIC advances time through `advance`, one clock
// cycle of whatever the NIC is part of.
// Thread safety: as of its parts.
class NicNode : private firmware::RegisterBus {
 public:
  NicNode(const NicNodeOptions& options, pins::MacLink* mac,
          firmware::Switch* ports, NicModel::InterruptSink interrupt,
          std::function<void()> advance);
  virtual ~NicNode() = default;

  NicModel& model() { return model_; }
  const NicModel& model() const { return model_; }
  pins::HostMemory& memory() { return memory_; }

  // Brings the control program up.
  void Start();
  // Tells the control program of a change of the link.
  void SetLink(bool up);
  bool link_up() const { return link_up_; }
  // Lets the control program look at its events, if there are any.
  void ServeFirmware();

  // BAR accesses by address on the slave, 4 or 8 bytes; all ones from a NIC
  // that failed. A write returns when the NIC has answered it.
  uint64_t ReadBar(uint32_t address, uint32_t bytes);
  void WriteBar(uint32_t address, uint64_t value, uint32_t bytes);

  // PDCs that are open or being closed, of both roles; none in a NIC that
  // failed.
  uint32_t CountOpenPdcs();

  // A `name value` line for each statistic of the contract.
  std::string StatisticsText();

  // A NIC that keeps a bus waiting for longer has failed.
  static constexpr uint32_t kAccessLimitCycles = 200000;

 private:
  uint32_t Read(uint32_t offset) override;
  void Write(uint32_t offset, uint32_t value) override;
  uint32_t Access(bool write, uint32_t offset, uint32_t value);
  // Advances until `done()`; false once the NIC has failed.
  bool AdvanceUntil(const std::function<bool()>& done, const char* what);

  pins::HostMemory memory_;
  NicModel model_;
  const std::function<void()> advance_;
  device::ObjectHeap object_heap_;
  firmware::ControlProgram firmware_;
  bool link_up_ = true;
};

}  // namespace heddle::sim::nic
