// SPDX-License-Identifier: Apache-2.0
// One Verilated NIC with everything around its pins.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hw/sim/pins/bar_driver.h"
#include "hw/sim/pins/host_memory.h"
#include "hw/sim/pins/mac_link.h"

namespace heddle::sim::nic {

struct NicModelOptions {
  std::string trace;  // FST file, empty for none.
  uint64_t trace_from_cycle = 0;
};

// What crossed the pins in one clock cycle, for those who measure.
struct PinEvents {
  bool doorbell = false;       // A write of BAR2 was taken ...
  bool push = false;           // ... or one to a push window.
  bool tx_beat = false;        // A beat left for the wire.
  bool rx_last_beat = false;   // The last beat of a frame came in.
  bool write_address = false;  // A write to host memory was addressed ...
  uint64_t address = 0;        // ... here.
};

// Thread safety: none; the owner lets one thread at a time step it.
// Ownership: `memory` and `mac` outlive it.
class NicModel {
 public:
  using InterruptSink = std::function<void(uint32_t vector)>;

  NicModel(const NicModelOptions& options, pins::HostMemory* memory,
           pins::MacLink* mac, InterruptSink interrupt);
  ~NicModel();
  NicModel(const NicModel&) = delete;
  NicModel& operator=(const NicModel&) = delete;

  // Advances one clock cycle, with a pulse on the tick input or without.
  // False once the model has failed; then it stands still.
  bool Cycle(bool tick);

  uint64_t cycles() const { return cycles_; }
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  void Fail(const std::string& reason);

  pins::BarDriver& bar() { return bar_; }

  // Called at the end of each cycle; empty for nobody.
  using Observer = std::function<void(const PinEvents&)>;
  void Observe(Observer observer) { observer_ = std::move(observer); }

  // Starts an access on the management bus; one at a time.
  void StartManagement(bool write, uint32_t address, uint32_t value);
  // Its end, once; the value read.
  std::optional<uint32_t> TakeManagement();
  bool management_event() const { return management_event_; }

  // True if the NIC is idle, nothing went in during the last cycle and nothing
  // is on its way in host memory or the BARs: it may stand still, but for the
  // MAC link and the clock.
  bool quiet() const { return quiet_; }
  // Ticks until the NIC's next timer.
  std::optional<uint32_t> deadline_ticks() const { return deadline_; }

  // Writes buffered waveforms to the file.
  void FlushTrace();

  // Width of the NIC's data path in this build.
  static uint32_t BusBytes();

 private:
  struct Pins;  // The Verilated model.

  void Drive(bool tick);
  void Sample();
  void SampleMemory();
  void SampleStreams();
  void Report();

  pins::HostMemory* const memory_;
  pins::MacLink* const mac_;
  const InterruptSink interrupt_;
  Observer observer_;
  std::unique_ptr<Pins> pins_;
  pins::BarDriver bar_;
  uint64_t cycles_ = 0;
  std::string failure_;
  bool management_busy_ = false;
  std::optional<uint32_t> management_result_;
  bool management_event_ = false;
  bool active_ = false;  // Something crossed the pins in this cycle.
  bool quiet_ = false;
  std::optional<uint32_t> deadline_;
};

}  // namespace heddle::sim::nic
