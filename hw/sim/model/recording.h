// SPDX-License-Identifier: Apache-2.0
// What a repeated failing test is asked to leave behind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

class VerilatedFstC;

namespace heddle::sim::model {

// Set by the test harness in the process that repeats a failed test, read by
// the models of that process:
//   HEDDLE_RECORD_DIRECTORY   where files go
//   HEDDLE_RECORD_FROM_CYCLE  first cycle of each model to record (0)
struct Recording {
  std::string directory;
  uint64_t from_cycle = 0;

  // Empty if nothing is to be recorded.
  static std::optional<Recording> FromEnvironment();

  // A file of its own for each call: DIRECTORY/NAME-NUMBER.SUFFIX.
  std::string NextFile(const std::string& name,
                       const std::string& suffix) const;
};

// Clock cycles that the model which ticked last has had: where a failing test
// was. One variable of the process, as a test's models are known to nobody
// else; tests drive models from one thread.
inline uint64_t latest_cycle = 0;

// A waveform file of one model.
class Waveform {
 public:
  // Empty if nothing is to be recorded.
  static std::unique_ptr<Waveform> OfRecording(const std::string& name);

  Waveform(const std::string& path, uint64_t from_cycle);
  ~Waveform();
  Waveform(const Waveform&) = delete;
  Waveform& operator=(const Waveform&) = delete;

  // For the model's `trace`, before `Open`.
  VerilatedFstC* fst() { return fst_.get(); }
  void Open();

  // The model's state at `time`, in half cycles.
  void Dump(uint64_t time) {
    if (time >= from_time_) {
      DumpNow(time);
    }
  }

 private:
  void DumpNow(uint64_t time);

  const std::string path_;
  const uint64_t from_time_;
  const std::unique_ptr<VerilatedFstC> fst_;
};

}  // namespace heddle::sim::model
