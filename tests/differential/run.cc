// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/run.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "hw/sim/base/clock.h"
#include "hw/sim/frame/wire_address.h"
#include "hw/sim/wire/wire_control.h"
#include "tests/differential/executor.h"
#include "tests/differential/patience.h"
#include "tests/differential/settings.h"
#include "tests/differential/settlement.h"

namespace heddle::differential {
namespace {

using std::chrono::steady_clock;

constexpr char kGoOn = 'g';
// A line of a side that is no event.
constexpr char kSettlingLine[] = "settling";
constexpr char kErrorMark = '!';
void WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written <= 0) {
      _exit(1);  // The parent has gone.
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
}

bool HasInput(int file) {
  pollfd waiting = {.fd = file, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, 0) == 1;
}

// What is done to the functions at an address.
using WireAct = uint32_t(sim::wire::WireControl*,
                         const sim::frame::WireAddress&);

void Control(const std::string& wire, uint32_t side, WireAct* act) {
  std::string message;
  auto control = sim::wire::WireControl::Open(wire, &message);
  sim::frame::WireAddress address;
  if (control.ok() && sim::frame::ParseWireAddress(AddressOf(side), &address)) {
    (void)act(&control.value(), address);
  }
}

uint32_t PlugIn(sim::wire::WireControl* wire,
                const sim::frame::WireAddress& address) {
  return wire->SetLink(address, std::nullopt, true);
}
uint32_t Unplug(sim::wire::WireControl* wire,
                const sim::frame::WireAddress& address) {
  return wire->SetLink(address, std::nullopt, false);
}
uint32_t Reset(sim::wire::WireControl* wire,
               const sim::frame::WireAddress& address) {
  return wire->Reset(address, std::nullopt);
}

// The child's life, to the end of the stream or to an orderly exit.
void RunSide(uint32_t side, const Stream& stream, uint32_t first,
             const std::string& wire, int in, int out) {
  try {
    Executor executor(
        side, stream, first,
        {.tell =
             [out](const Event& event) { WriteAll(out, ToText(event) + "\n"); },
         .may_go_on =
             [in] {
               char byte = 0;
               return HasInput(in) && read(in, &byte, 1) == 1;
             },
         .say_settling =
             [out] { WriteAll(out, std::string(kSettlingLine) + "\n"); },
         .set_link =
             [&](bool up) { Control(wire, side, up ? PlugIn : Unplug); },
         .reset_nic = [&] { Control(wire, side, Reset); },
         .now_ns = sim::base::MonotonicNs,
         .rest = [] { std::this_thread::yield(); },
         .die = [] { (void)raise(SIGKILL); }});
    executor.Run();
  } catch (const std::exception& error) {
    WriteAll(out, kErrorMark + std::string(error.what()) + "\n");
  }
}

void SetEnvironment(uint32_t side, const Stream& stream,
                    const RunOptions& options, const std::string& wire) {
  const auto set = [](const std::string& name, const std::string& value) {
    (void)setenv(name.c_str(), value.c_str(), /*replace=*/1);
  };
  set("FI_HEDDLE_DEVICE", options.DeviceOf(side));
  set("FI_HEDDLE_IP", AddressOf(side));
  set("FI_HEDDLE_WIRE", wire);
  if (side == 0 && !options.capture.empty()) {
    set("FI_HEDDLE_CAPTURE", options.capture);
  }
  for (auto [name, value] :
       SettingsOf(side, stream, options.DeviceOf(side), Time::kReal)) {
    std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
      return static_cast<char>(std::toupper(static_cast<uint8_t>(letter)));
    });
    set("FI_HEDDLE_" + name, value);
  }
  for (const auto& [name, value] : options.environment) {
    set(name, value);
  }
}

// A child and its pipes, killed and reaped with this.
class SideProcess {
 public:
  // It begins with operation `first`.
  SideProcess(uint32_t side, const Stream& stream, uint32_t first,
              const RunOptions& options, const std::string& wire) {
    std::array<int, 2> to_child{};
    std::array<int, 2> from_child{};
    errors_ = memfd_create("stderr", MFD_CLOEXEC);
    if (pipe(to_child.data()) != 0 || pipe(from_child.data()) != 0) {
      throw SetupFailure("no pipes");
    }
    (void)fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)dup2(errors_, STDERR_FILENO);
      (void)close(to_child[1]);
      (void)close(from_child[0]);
      SetEnvironment(side, stream, options, wire);
      RunSide(side, stream, first, wire, to_child[0], from_child[1]);
      // As a program ends, so that leak checkers have their say.
      std::exit(0);
    }
    (void)close(to_child[0]);
    (void)close(from_child[1]);
    in_ = to_child[1];
    out_ = from_child[0];
  }
  ~SideProcess() {
    if (pid_ > 0) {
      (void)kill(pid_, SIGKILL);
      (void)waitpid(pid_, nullptr, 0);
    }
    (void)close(in_);
    (void)close(out_);
    (void)close(errors_);
  }
  SideProcess(const SideProcess&) = delete;
  SideProcess& operator=(const SideProcess&) = delete;

  pid_t pid() const { return pid_; }
  int output() const { return out_; }
  bool ended() const { return ended_; }
  // The child's status once it ended, as of waitpid.
  int status() const { return status_; }

  void GoOn() const { (void)!write(in_, &kGoOn, 1); }

  // Whole lines that have come; marks the end when there are no more.
  std::vector<std::string> Lines() {
    std::array<char, 65536> chunk{};
    const ssize_t bytes = read(out_, chunk.data(), chunk.size());
    if (bytes <= 0) {
      ended_ = true;
      (void)waitpid(pid_, &status_, 0);
      pid_ = -1;
      return {};
    }
    partial_.append(chunk.data(), static_cast<size_t>(bytes));
    std::vector<std::string> lines;
    size_t from = 0;
    for (size_t end = partial_.find('\n'); end != std::string::npos;
         end = partial_.find('\n', from)) {
      lines.push_back(partial_.substr(from, end - from));
      from = end + 1;
    }
    partial_.erase(0, from);
    return lines;
  }

  std::string ErrorText() const {
    std::array<char, 8192> text{};
    const ssize_t bytes = pread(errors_, text.data(), text.size(), 0);
    return bytes <= 0 ? ""
                      : std::string(text.data(), static_cast<size_t>(bytes));
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int errors_ = -1;
  int status_ = 0;
  bool ended_ = false;
  std::string partial_;
};

// The parent's half of a run.
class Conductor {
 public:
  Conductor(const Stream& stream, const RunOptions& options,
            const std::string& wire)
      : stream_(stream),
        options_(options),
        wire_(wire),
        settlement_(stream, Time::kReal),
        silence_(options.silence, steady_clock::now()) {
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      Start(side, 0);
    }
  }

  Trace Conduct() {
    while (!Ended()) {
      if (WaitForOutput()) {
        silence_.Restart(steady_clock::now());
      } else if (silence_.IsOver(steady_clock::now(), WaitedForCpus())) {
        for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
          Fail(side, settlement_.settling(side)
                         ? "waits for what is owed to a side"
                         : "does nothing");
        }
      }
      LetGoOn();
    }
    return std::move(trace());
  }

 private:
  void Start(uint32_t side, uint32_t first) {
    sides_.at(side) =
        std::make_unique<SideProcess>(side, stream_, first, options_, wire_);
  }

  // The successor of a side that killed itself or left begins behind that.
  void Revive(uint32_t side) {
    const SideProcess& process = *sides_.at(side);
    const auto& events = trace().sides.at(side);
    if (!process.ended() || events.empty() ||
        events.back().kind != EventKind::kCalled) {
      return;
    }
    const bool killed =
        WIFSIGNALED(process.status()) && WTERMSIG(process.status()) == SIGKILL;
    const uint32_t last = events.back().number;
    const Verb verb = stream_.operations.at(last).verb;
    if ((killed && verb == Verb::kKill) ||
        (process.status() == 0 && verb == Verb::kExit)) {
      Start(side, last + 1);
    }
  }

  // Whether all sides have ended, or one as it should not.
  bool Ended() {
    bool all = true;
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      Revive(side);
      const SideProcess& process = *sides_.at(side);
      all = all && process.ended();
      if (process.ended() && process.status() != 0) {
        Fail(side, "ended with status " + std::to_string(process.status()));
      }
    }
    return all || !trace().failure.empty();
  }

  Patience::Waited WaitedForCpus() const {
    Patience::Waited waited{};
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      waited.at(side) = WaitedForCpu(sides_.at(side)->pid());
    }
    return waited;
  }

  Trace& trace() { return settlement_.trace(); }

  void Fail(uint32_t side, const std::string& what) {
    trace().failure += "side " + std::to_string(side) + " " + what + "\n" +
                       sides_.at(side)->ErrorText();
  }

  // Takes what the sides say; false when they were silent for a moment.
  bool WaitForOutput() {
    std::array<pollfd, kMaxSides> waiting{};
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      const SideProcess& process = *sides_.at(side);
      waiting.at(side) = {.fd = process.ended() ? -1 : process.output(),
                          .events = POLLIN,
                          .revents = 0};
    }
    (void)poll(waiting.data(), stream_.setup.sides, 10);
    bool any = false;
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      if (waiting.at(side).revents != 0) {
        any = true;
        for (const std::string& line : sides_.at(side)->Lines()) {
          Take(side, line);
        }
      }
    }
    return any;
  }

  void Take(uint32_t side, const std::string& line) {
    if (line == kSettlingLine) {
      settlement_.SaySettling(side);
      return;
    }
    if (!line.empty() && line.front() == kErrorMark) {
      Fail(side, line.substr(1));
      return;
    }
    const auto event = ParseEvent(line);
    if (!event) {
      Fail(side, "said something else than an event: " + line);
      return;
    }
    settlement_.Feed(side, *event);
  }

  void LetGoOn() {
    if (!settlement_.LetGoOn(steady_clock::now() - silence_.since())) {
      return;
    }
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      sides_.at(side)->GoOn();
    }
    silence_.Restart(steady_clock::now());
  }

  const Stream& stream_;
  const RunOptions& options_;
  const std::string wire_;
  Settlement settlement_;
  std::array<std::unique_ptr<SideProcess>, kMaxSides> sides_;
  Patience silence_;
};

}  // namespace

Trace Run(const Stream& stream, const RunOptions& options) {
  static uint32_t runs = 0;
  const std::string wire =
      "differential-" + std::to_string(getpid()) + "-" + std::to_string(runs++);
  return Conductor(stream, options, wire).Conduct();
}

}  // namespace heddle::differential
