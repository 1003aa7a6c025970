// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/virtual_run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "hw/sim/base/random.h"
#include "hw/sim/frame/wire_address.h"
#include "hw/sim/wire/wire_control.h"
#include "tests/differential/content.h"
#include "tests/differential/executor.h"
#include "tests/differential/settings.h"
#include "tests/differential/settlement.h"
#include "tests/virtual_time/fibers.h"
#include "tests/virtual_time/world.h"

namespace heddle::differential {
namespace {

using std::chrono::nanoseconds;

// A side was killed: what is left of it unwinds.
class Killed : public std::exception {};
// The run has failed: a side that continues would report nothing new.
class Stopped : public std::exception {};

// The headers of a frame: Ethernet, IP, UDP, PDS and SES.
constexpr size_t kLoggedBytes = 104;

std::string Hex(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4U]);
    text.push_back(kDigits[byte & 15U]);
  }
  return text;
}

// Order counts.
class Hash {
 public:
  void Add(uint64_t value) {
    value_ = (value_ ^ value) * 0x9fb21c651e98df25U;
    value_ ^= value_ >> 32U;
  }
  void Add(uint32_t side, const Event& event) {
    for (const uint64_t value :
         {uint64_t{side}, static_cast<uint64_t>(event.kind), event.time_ns,
          uint64_t{event.number}, uint64_t{event.endpoint},
          uint64_t{event.region}, static_cast<uint64_t>(event.result),
          event.bytes, event.beyond, event.offset, event.data,
          uint64_t{event.has_data}, static_cast<uint64_t>(event.source),
          event.digest, uint64_t{event.clean}}) {
      Add(value);
    }
    Add(Digest(event.content));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

class VirtualRun {
 public:
  VirtualRun(const Stream& stream, const VirtualOptions& options,
             const std::string& wire)
      : stream_(stream),
        options_(options),
        wire_(wire),
        settlement_(stream, Time::kVirtual),
        world_(wire) {
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      Settings settings = SettingsOf(side, stream, "soft", Time::kVirtual);
      sim::base::Random random(stream.setup.seed * stream.setup.sides + side);
      settings.emplace_back(
          "rx_delay_ns",
          std::to_string(kDelaysNs.at(random.Below(kDelaysNs.size()))));
      world_.Set(AddressOf(side), std::move(settings));
    }
    world_.set_observer(
        [this](const test::World::Frame& frame) { Observe(frame); });
    started_ns_ = said_ns_ = world_.now_ns();
  }

  VirtualOutcome Run() {
    test::Fibers fibers(&world_);
    fibers_ = &fibers;
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      fibers.Add([this, side] { RunSide(side); });
    }
    fibers.Run();
    outcome_.trace = std::move(settlement_.trace());
    outcome_.hash = hash_.value();
    outcome_.virtual_ns = world_.now_ns() - started_ns_;
    return std::move(outcome_);
  }

 private:
  static constexpr std::array<uint32_t, 4> kDelaysNs = {500, 2'000, 10'000,
                                                        100'000};

  void Observe(const test::World::Frame& frame) {
    outcome_.frames += frame.received ? 0 : 1;
    hash_.Add(frame.time_ns);
    hash_.Add(frame.device * 2 + (frame.received ? 1 : 0));
    hash_.Add(Digest(frame.bytes));
    if (options_.log) {
      options_.log(
          std::to_string(frame.time_ns) + " device " +
          std::to_string(frame.device) +
          (frame.received ? " received " : " sent ") +
          std::to_string(frame.bytes.size()) + " bytes, digest " +
          std::to_string(Digest(frame.bytes)) + ", " +
          Hex(frame.bytes.first(std::min(frame.bytes.size(), kLoggedBytes))));
    }
  }

  void Tell(uint32_t side, const Event& event) {
    if (stopped()) {
      throw Stopped();
    }
    said_ns_ = world_.now_ns();
    hash_.Add(side, event);
    if (options_.log) {
      options_.log(std::to_string(world_.now_ns()) + " side " +
                   std::to_string(side) + " " + ToText(event));
    }
    settlement_.Feed(side, event);
  }

  bool MayGoOn(uint32_t side) {
    if (stopped()) {
      throw Stopped();
    }
    const nanoseconds silence(world_.now_ns() - said_ns_);
    if (settlement_.LetGoOn(silence)) {
      said_ns_ = world_.now_ns();
      may_go_on_.fill(true);
      for (uint32_t other = 0; other < stream_.setup.sides; ++other) {
        fibers_->Wake(other);
      }
    } else if (silence > options_.silence) {
      for (uint32_t other = 0; other < stream_.setup.sides; ++other) {
        Fail(other, settlement_.settling(other)
                        ? "waits for what is owed to a side"
                        : "does nothing");
      }
      throw Stopped();
    }
    return std::exchange(may_go_on_.at(side), false);
  }

  // The poll before waited already; the rest of the silence passes at once.
  void Rest() {
    const uint64_t until_ns =
        said_ns_ + settlement_.quiet().value_or(nanoseconds(0)).count();
    if (until_ns > world_.now_ns()) {
      fibers_->Rest(until_ns);
    }
  }

  void Fail(uint32_t side, const std::string& what) {
    settlement_.trace().failure +=
        "side " + std::to_string(side) + " " + what + "\n";
  }
  bool stopped() { return !settlement_.trace().failure.empty(); }

  // What is done to the functions at a side's address.
  void Control(uint32_t side,
               const std::function<void(sim::wire::WireControl*,
                                        const sim::frame::WireAddress&)>& act) {
    std::string message;
    if (!control_) {
      auto control = sim::wire::WireControl::Open(wire_, &message);
      control_.emplace(std::move(control.value()));
    }
    sim::frame::WireAddress address;
    if (sim::frame::ParseWireAddress(AddressOf(side), &address)) {
      act(&*control_, address);
    }
  }

  Surroundings SurroundingsOf(uint32_t side) {
    return {.tell = [this, side](const Event& event) { Tell(side, event); },
            .may_go_on = [this, side] { return MayGoOn(side); },
            .say_settling =
                [this, side] {
                  said_ns_ = world_.now_ns();
                  settlement_.SaySettling(side);
                },
            .set_link =
                [this, side](bool up) {
                  Control(side, [up](auto* wire, const auto& address) {
                    (void)wire->SetLink(address, std::nullopt, up);
                  });
                },
            .reset_nic =
                [this, side] {
                  Control(side, [](auto* wire, const auto& address) {
                    (void)wire->Reset(address, std::nullopt);
                  });
                },
            .now_ns = [this] { return world_.now_ns(); },
            .rest = [this] { Rest(); },
            .die =
                [this, side] {
                  world_.Kill(AddressOf(side));
                  throw Killed();
                }};
  }

  // The lives of a side, one after the other.
  void RunSide(uint32_t side) {
    uint32_t first = 0;
    while (true) {
      try {
        Executor executor(side, stream_, first, SurroundingsOf(side));
        executor.Run();
      } catch (const Killed&) {
      } catch (const Stopped&) {
        return;
      } catch (const std::exception& error) {
        Fail(side, error.what());
        return;
      }
      const auto& events = settlement_.trace().sides.at(side);
      if (events.empty() || events.back().kind != EventKind::kCalled) {
        return;
      }
      const uint32_t last = events.back().number;
      const Verb verb = stream_.operations.at(last).verb;
      if (verb != Verb::kKill && verb != Verb::kExit) {
        return;
      }
      first = last + 1;
    }
  }

  const Stream& stream_;
  const VirtualOptions& options_;
  const std::string wire_;
  Settlement settlement_;
  VirtualOutcome outcome_;
  Hash hash_;
  test::World world_;
  test::Fibers* fibers_ = nullptr;
  std::optional<sim::wire::WireControl> control_;
  std::array<bool, kMaxSides> may_go_on_ = {};
  uint64_t started_ns_ = 0;
  uint64_t said_ns_ = 0;  // When a side last said something.
};

}  // namespace

VirtualOutcome RunVirtually(const Stream& stream,
                            const VirtualOptions& options) {
  static uint32_t runs = 0;
  (void)setenv("FI_HEDDLE_DEVICE", "soft", /*replace=*/1);
  (void)setenv("FI_HEDDLE_SIM_PATH", HEDDLE_WORLD, /*replace=*/1);
  // Each kill and reset is logged, as it should be, but thousands of times.
  (void)setenv("FI_LOG_PROV", "none", /*replace=*/0);
  const std::string wire =
      "virtual-" + std::to_string(getpid()) + "-" + std::to_string(runs++);
  return VirtualRun(stream, options, wire).Run();
}

}  // namespace heddle::differential
