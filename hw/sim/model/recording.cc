// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/model/recording.h"

#include <atomic>
#include <cstdlib>

#include "verilated_fst_c.h"

namespace heddle::sim::model {

std::optional<Recording> Recording::FromEnvironment() {
  const char* const directory = secure_getenv("HEDDLE_RECORD_DIRECTORY");
  if (directory == nullptr || *directory == '\0') {
    return std::nullopt;
  }
  const char* const from = secure_getenv("HEDDLE_RECORD_FROM_CYCLE");
  return Recording{
      .directory = directory,
      .from_cycle = from == nullptr ? 0 : std::strtoull(from, nullptr, 10)};
}

std::string Recording::NextFile(const std::string& name,
                                const std::string& suffix) const {
  static std::atomic<unsigned> count{0};
  return directory + "/" + name + "-" + std::to_string(count++) + "." + suffix;
}

std::unique_ptr<Waveform> Waveform::OfRecording(const std::string& name) {
  const auto recording = Recording::FromEnvironment();
  if (!recording.has_value()) {
    return nullptr;
  }
  return std::make_unique<Waveform>(recording->NextFile(name, "fst"),
                                    recording->from_cycle);
}

Waveform::Waveform(const std::string& path, uint64_t from_cycle)
    : path_(path),
      from_time_(2 * from_cycle),
      fst_(std::make_unique<VerilatedFstC>()) {}

Waveform::~Waveform() {
  fst_->close();
}

void Waveform::Open() {
  fst_->open(path_.c_str());
}

void Waveform::DumpNow(uint64_t time) {
  fst_->dump(time);
}

}  // namespace heddle::sim::model
