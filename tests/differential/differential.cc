// SPDX-License-Identifier: Apache-2.0
// Runs random streams of operations between devices and checks what all sides
// see. Ends with 0 when everything was allowed.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/differential/checker.h"
#include "tests/differential/generator.h"
#include "tests/differential/run.h"
#include "tests/differential/shrink.h"
#include "tests/differential/virtual_run.h"

namespace heddle::differential {
namespace {

using std::chrono::steady_clock;

// More than a stream without a fault may be silent for: targets that forget.
constexpr std::chrono::seconds kBriefSilence{12};
constexpr int kKeptBytes = 1 << 30;

struct Options {
  RunOptions run;
  Profile profile;
  uint64_t seed = std::random_device{}();
  uint64_t operations = 0;  // Budget: at least one of the two is given.
  uint64_t seconds = 0;
  std::string corpus;
  std::string keep;
  std::vector<std::string> replay;
  uint32_t shrink_runs = 60;
  bool shows_trace = false;
  bool is_virtual = false;
  std::string log;
};

class Campaign {
 public:
  explicit Campaign(const Options& options) : options_(options) {}

  int Run() {
    for (const std::string& file : Replayed()) {
      std::printf("replaying %s\n", file.c_str());
      Try(Load(file), /*shrinks=*/false);
    }
    std::printf("HEDDLE_TEST_SEED=%llu devices %s\n",
                static_cast<unsigned long long>(options_.seed),
                Devices().c_str());
    uint64_t seed = options_.seed;
    while (failures_ == 0 && !SpentBudget()) {
      Try(Generate(seed++, options_.profile), /*shrinks=*/true);
      ShowProgress();
    }
    PrintFigures("total");
    if (options_.is_virtual) {
      std::printf(
          "traces %016llx, %llu frames, %llu s of virtual time, %llu s of "
          "processor time\n",
          static_cast<unsigned long long>(hash_),
          static_cast<unsigned long long>(frames_),
          static_cast<unsigned long long>(virtual_ns_ / 1'000'000'000),
          static_cast<unsigned long long>(std::clock() / CLOCKS_PER_SEC));
    }
    return failures_ == 0 ? 0 : 1;
  }

 private:
  std::string Devices() const {
    std::string names = options_.run.devices.front();
    for (size_t i = 1; i < options_.run.devices.size(); ++i) {
      names += "-" + options_.run.devices[i];
    }
    return names + (options_.is_virtual ? "-virtual" : "");
  }

  std::vector<std::string> Replayed() const {
    std::vector<std::string> files = options_.replay;
    if (!options_.corpus.empty()) {
      for (const auto& entry :
           std::filesystem::directory_iterator(options_.corpus)) {
        if (entry.path().extension() == ".txt") {
          files.push_back(entry.path().string());
        }
      }
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  static Stream Load(const std::string& file) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto stream = ParseStream(text);
    if (!in.is_open() || !stream) {
      throw std::runtime_error(file + " is no stream of operations");
    }
    return *stream;
  }

  Trace RunOnce(const Stream& stream, const RunOptions& run) {
    if (!options_.is_virtual) {
      return differential::Run(stream, run);
    }
    VirtualOptions options;
    std::ofstream log;
    if (!options_.log.empty()) {
      log.open(options_.log);
      options.log = [&log](const std::string& line) { log << line << '\n'; };
    }
    VirtualOutcome outcome = RunVirtually(stream, options);
    hash_ = hash_ * 31 + outcome.hash;
    frames_ += outcome.frames;
    virtual_ns_ += outcome.virtual_ns;
    return std::move(outcome.trace);
  }

  bool SpentBudget() const {
    const auto spent = steady_clock::now() - start_;
    return (options_.operations != 0 &&
            figures_.operations >= options_.operations) ||
           (options_.seconds != 0 &&
            spent >= std::chrono::seconds(options_.seconds)) ||
           (options_.operations == 0 && options_.seconds == 0);
  }

  void Try(const Stream& stream, bool shrinks) {
    const Trace trace = RunOnce(stream, options_.run);
    const Verdict verdict = Check(stream, trace);
    figures_.Add(verdict.figures);
    ++streams_;
    if (verdict.violations.empty()) {
      return;
    }
    ++failures_;
    std::printf("FAILED: seed %llu, devices %s, %zu operations\n",
                static_cast<unsigned long long>(stream.setup.seed),
                Devices().c_str(), stream.operations.size());
    Print(verdict);
    if (options_.shows_trace) {
      Print(trace);
    }
    if (shrinks) {
      Keep(stream);
    }
  }

  static void Print(const Verdict& verdict) {
    constexpr size_t kShown = 10;
    for (size_t i = 0; i < verdict.violations.size() && i < kShown; ++i) {
      std::printf("  %s\n", verdict.violations[i].c_str());
    }
    if (verdict.violations.size() > kShown) {
      std::printf("  and %zu more\n", verdict.violations.size() - kShown);
    }
  }

  static void Print(const Trace& trace) {
    for (uint32_t side = 0; side < trace.sides.size(); ++side) {
      for (const Event& event : trace.sides.at(side)) {
        std::printf("  side %u: %s\n", side, ToText(event).c_str());
      }
    }
  }

  void Keep(const Stream& stream) {
    // A frame that was lost may not be lost again: a candidate gets two runs.
    const auto fails = [this](const Stream& candidate) {
      for (int run = 0; run < 2; ++run) {
        RunOptions brief = options_.run;
        brief.silence = std::min(brief.silence, kBriefSilence);
        if (!Check(candidate, RunOnce(candidate, brief)).violations.empty()) {
          return true;
        }
      }
      return false;
    };
    const Stream small = Shrink(stream, fails, options_.shrink_runs);
    const std::string text =
        "# SPDX-License-Identifier: Apache-2.0\n# devices " + Devices() + "\n" +
        ToText(small);
    std::printf("shrunk to %zu operations:\n%s", small.operations.size(),
                text.c_str());
    if (!options_.keep.empty()) {
      std::filesystem::create_directories(options_.keep);
      const std::string file = options_.keep + "/" + Devices() + "-" +
                               std::to_string(stream.setup.seed) + ".txt";
      std::ofstream(file) << text;
      std::printf("kept as %s; --replay repeats it\n", file.c_str());
    }
  }

  void ShowProgress() {
    const auto now = steady_clock::now();
    if (now - last_shown_ >= std::chrono::seconds(10)) {
      last_shown_ = now;
      PrintFigures("so far");
    }
  }

  void PrintFigures(const char* what) const {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                             steady_clock::now() - start_)
                             .count();
    std::printf(
        "%s, %s: %llu s, %llu streams, %llu operations, %llu messages, %llu "
        "accesses, %llu lost, %llu duplicated, %llu corrupted, %llu streams "
        "failed\n",
        Devices().c_str(), what, static_cast<unsigned long long>(seconds),
        static_cast<unsigned long long>(streams_),
        static_cast<unsigned long long>(figures_.operations),
        static_cast<unsigned long long>(figures_.messages),
        static_cast<unsigned long long>(figures_.accesses),
        static_cast<unsigned long long>(figures_.lost),
        static_cast<unsigned long long>(figures_.duplicated),
        static_cast<unsigned long long>(figures_.corrupted),
        static_cast<unsigned long long>(failures_));
    (void)std::fflush(stdout);
  }

  const Options& options_;
  Figures figures_;
  uint64_t streams_ = 0;
  uint64_t failures_ = 0;
  // With --virtual: of all traces, in the order of the runs.
  uint64_t hash_ = 0;
  uint64_t frames_ = 0;
  uint64_t virtual_ns_ = 0;
  const steady_clock::time_point start_ = steady_clock::now();
  steady_clock::time_point last_shown_ = steady_clock::now();
};

int Main(int argc, char** argv) {
  CLI::App app("Differential test of devices at the libfabric API.");
  Options options;
  std::vector<std::string> devices;
  std::vector<uint32_t> sides;
  std::vector<std::string> variables;
  bool writes = false;
  Profile& profile = options.profile;
  app.add_option("--devices", devices, "Device of each side")
      ->delimiter(',')
      ->expected(1, kMaxSides);
  app.add_option("--sides", sides,
                 "How many there are, from the first to the last of two "
                 "numbers; with more than --devices names, these again")
      ->delimiter(',')
      ->expected(1, 2)
      ->check(CLI::Range(2U, kMaxSides));
  app.add_option("--operations", options.operations, "Calls to make");
  app.add_option("--seconds", options.seconds, "Time to go on for");
  app.add_option("--stream", profile.operations, "Operations of a stream");
  app.add_option("--max-bytes", profile.max_bytes, "Longest message")
      ->check(CLI::Range(0U, kMaxMessageBytes));
  app.add_option("--seed", options.seed, "Of the first stream")
      ->envname("HEDDLE_TEST_SEED");
  app.add_option("--loss", profile.faults.loss, "Probability per frame");
  app.add_option("--reorder", profile.faults.reorder, "Probability per frame");
  app.add_option("--duplicate", profile.faults.duplicate,
                 "Probability per frame");
  app.add_option("--corrupt", profile.faults.corrupt, "Probability per frame");
  app.add_option("--read-again", profile.read_again,
                 "Streams of reads; probability per packet that a device soft "
                 "answers it more often than asked, or as another");
  app.add_flag("--rma", profile.rma, "Reads and writes, too");
  app.add_flag("--writes", writes, "Writes, too, but no reads");
  app.add_flag("--tagged", profile.tagged, "Tagged messages, too");
  app.add_flag("--unordered", profile.unordered, "Streams without order, too");
  app.add_flag("--closes", profile.closes, "Close endpoints under traffic");
  app.add_flag("--unplugs", profile.unplugs, "Take links down");
  app.add_flag("--kills", profile.kills, "Kill processes under traffic");
  app.add_flag("--resets", profile.resets, "Reset NICs under traffic");
  app.add_flag("--leaves", profile.leaves,
               "Close and exit in order, and come back");
  app.add_flag("--virtual", options.is_virtual,
               "Devices soft in virtual time, in this process");
  app.add_option("--corpus", options.corpus, "Replay its streams first");
  app.add_option("--keep", options.keep, "Write shrunk failures here");
  app.add_option("--replay", options.replay, "Replay these files");
  app.add_option("--shrink-runs", options.shrink_runs, "At most; 0: none");
  app.add_option("--log", options.log,
                 "With --virtual: frames and events of the last stream");
  app.add_flag("--show-trace", options.shows_trace, "Of failures");
  app.add_option("--capture", options.run.capture,
                 "Frames of the first side, of the last stream");
  app.add_option("--set", variables, "NAME=VALUE for all sides");
  CLI11_PARSE(app, argc, argv);
  if (writes) {
    profile.rma = true;
    profile.reads = false;
  }
  if (options.is_virtual) {
    // Devices come and go with megabytes each: the heap keeps their pages.
    (void)mallopt(M_MMAP_THRESHOLD, kKeptBytes);
    (void)mallopt(M_TRIM_THRESHOLD, kKeptBytes);
    options.run.devices = {"soft", "soft"};
    if (std::any_of(devices.begin(), devices.end(),
                    [](const auto& name) { return name != "soft"; })) {
      throw std::runtime_error("--virtual is for devices soft");
    }
  }
  if (!devices.empty()) {
    options.run.devices = devices;
  }
  const auto named = static_cast<uint32_t>(options.run.devices.size());
  profile.sides = {std::max(named, 2U), std::max(named, 2U)};
  if (!sides.empty()) {
    profile.sides = {sides.front(), std::max(sides.front(), sides.back())};
  }
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) {
      throw std::runtime_error(variable + " is not NAME=VALUE");
    }
    options.run.environment.emplace_back(variable.substr(0, equals),
                                         variable.substr(equals + 1));
  }
  return Campaign(options).Run();
}

}  // namespace
}  // namespace heddle::differential

int main(int argc, char** argv) try {
  return heddle::differential::Main(argc, argv);
} catch (const std::exception& e) {
  std::fprintf(stderr, "heddle_differential: %s\n", e.what());
  return 2;
} catch (...) {
  return 2;
}
