// SPDX-License-Identifier: Apache-2.0
// Linked into every program that tests RTL: a failing test is repeated at once
// in a process of its own, which leaves waveform, capture and trace of the last
// cycles before the failure; where they are is printed with the failure.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "hw/sim/model/recording.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

// How far before the failure a recording begins.
constexpr uint64_t kLastCycles = 2000;
// A test that fails because it hangs would do so again.
constexpr std::chrono::seconds kRepeatLimit{60};
constexpr const char* kLog = "log.txt";

// One component of a path.
std::string FileName(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

std::string ProgramName() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).filename().string();
}

// Where recordings go: HEDDLE_FAILURES, else the build's own place.
fs::path Root() {
  const char* const given = std::getenv("HEDDLE_FAILURES");
  return given != nullptr && *given != '\0' ? given : HEDDLE_FAILURES_DEFAULT;
}

// In the child: this program again, with one test and its output in a file.
[[noreturn]] void RunRepetition(const std::string& test, const fs::path& where,
                                uint64_t from_cycle) {
  const int log = open((where / kLog).c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                       S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  if (log >= 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  setenv("HEDDLE_RECORD_DIRECTORY", where.c_str(), 1);
  setenv("HEDDLE_RECORD_FROM_CYCLE", std::to_string(from_cycle).c_str(), 1);
  // Else GoogleTest would write its report and shard anew.
  unsetenv("GTEST_OUTPUT");
  unsetenv("GTEST_TOTAL_SHARDS");
  if (latest_test_seed.has_value()) {
    setenv("HEDDLE_TEST_SEED", std::to_string(*latest_test_seed).c_str(), 1);
  }
  const std::string filter = "--gtest_filter=" + test;
  execl("/proc/self/exe", ProgramName().c_str(), filter.c_str(),
        "--gtest_also_run_disabled_tests", static_cast<char*>(nullptr));
  _exit(127);
}

enum class Outcome { kFailedAgain, kPassed, kHung, kNotRun };

Outcome Await(pid_t child) {
  const auto end = std::chrono::steady_clock::now() + kRepeatLimit;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (ended == 0) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return Outcome::kHung;
  }
  if (ended < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    return Outcome::kNotRun;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Outcome::kPassed
                                                       : Outcome::kFailedAgain;
}

void Say(const std::string& text) {
  std::printf("[ RECORDED ] %s\n", text.c_str());
}

// Names of what a recording left, log last.
std::vector<std::string> FilesIn(const fs::path& where) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(where, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return (a != kLog && b == kLog) || ((a == kLog) == (b == kLog) && a < b);
  });
  return names;
}

void Report(const fs::path& where, const std::string& test, Outcome outcome,
            uint64_t from, uint64_t to) {
  if (outcome == Outcome::kNotRun) {
    Say("nothing: the test could not be repeated");
    return;
  }
  Say(where.string() + ", cycles " + std::to_string(from) + " to " +
      std::to_string(to) + ":");
  bool waveform = false;
  for (const std::string& name : FilesIn(where)) {
    waveform = waveform || name.ends_with(".fst");
    Say("  " + name);
  }
  if (outcome == Outcome::kPassed) {
    Say("the test passed when it was repeated: the files show that run");
  } else if (outcome == Outcome::kHung) {
    Say("the repetition was ended after " +
        std::to_string(kRepeatLimit.count()) + " s");
  }
  if (!waveform) {
    Say("models of units are built without waveforms; for this one: "
        "scripts/waveform " +
        ProgramName() + " '" + test + "'");
  }
}

class FailureRecorder : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo& /*info*/) override {
    sim::model::latest_cycle = 0;
    failed_at_.reset();
    latest_test_seed.reset();
  }

  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.failed() && !failed_at_.has_value()) {
      failed_at_ = sim::model::latest_cycle;
    }
  }

  void OnTestEnd(const ::testing::TestInfo& info) override {
    if (!info.result()->Failed()) {
      return;
    }
    const std::string test =
        std::string(info.test_suite_name()) + "." + info.name();
    const fs::path where = Root() / FileName(ProgramName() + "." + test);
    const uint64_t to = failed_at_.value_or(0);
    const uint64_t from = to > kLastCycles ? to - kLastCycles : 0;
    std::error_code error;
    fs::remove_all(where, error);
    fs::create_directories(where, error);
    if (error) {
      Say("nothing: " + where.string() + " cannot be made: " + error.message());
      return;
    }
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      RunRepetition(test, where, from);
    }
    Report(where, test, child < 0 ? Outcome::kNotRun : Await(child), from, to);
    std::fflush(stdout);
  }

 private:
  std::optional<uint64_t> failed_at_;
};

// Before main: GoogleTest owns the listener. The process that records must not
// record itself.
[[maybe_unused]] const bool kInstalled = [] {
  if (!sim::model::Recording::FromEnvironment().has_value()) {
    ::testing::UnitTest::GetInstance()->listeners().Append(
        new FailureRecorder);  // NOLINT
  }
  return true;
}();

}  // namespace
}  // namespace heddle::test
