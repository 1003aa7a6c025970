// SPDX-License-Identifier: Apache-2.0
#include "tests/system/harness/recording.h"

namespace heddle {

std::unique_ptr<WorldRecording> WorldRecording::Prepare(
    sim::nic::LockstepOptions* options) {
  const auto recording = sim::model::Recording::FromEnvironment();
  if (!recording.has_value()) {
    return nullptr;
  }
  options->capture = recording->NextFile("wire", "pcap");
  options->trace = recording->NextFile("nic", "fst");
  options->trace_from_cycle = recording->from_cycle;
  return std::unique_ptr<WorldRecording>(new WorldRecording(*recording));
}

WorldRecording::WorldRecording(const sim::model::Recording& recording)
    : from_cycle_(recording.from_cycle),
      events_(recording.NextFile("events", "txt")) {}

void WorldRecording::Observe(sim::nic::LockstepWorld& world, size_t nics) {
  for (size_t i = 0; i < nics; ++i) {
    sim::nic::NicModel& model = world.model(i);
    model.Observe([this, &model, i](const sim::nic::PinEvents& events) {
      if (model.cycles() < from_cycle_) {
        return;
      }
      const auto line = [&]() -> std::ostream& {
        return events_ << model.cycles() << " nic" << i << ' ';
      };
      if (events.doorbell) {
        line() << "doorbell\n";
      }
      if (events.tx_beat) {
        line() << "beat to the wire\n";
      }
      if (events.rx_last_beat) {
        line() << "last beat of a frame from the wire\n";
      }
      if (events.write_address) {
        line() << "write to host memory at 0x" << std::hex << events.address
               << std::dec << '\n';
      }
    });
  }
}

}  // namespace heddle
