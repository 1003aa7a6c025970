// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/settings.h"

namespace heddle::differential {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kIdle{2};
constexpr milliseconds kDead{3000};
constexpr milliseconds kDeadWithRenewals{1500};
// In virtual time a peer is never taken for dead by chance.
constexpr milliseconds kDeadWithoutHaste{10'000};
// A side that leaves in order waits for a few of these for its peer, which may
// have to wait for a CPU.
constexpr milliseconds kPeacefulRto{250};

// How long injected messages may still be in flight.
constexpr milliseconds kUnderWay{300};
// A side that ended is silent for good: those who still send to it say so a
// little later than they take it for dead.
constexpr milliseconds kLittleLater{1000};

std::string Text(nanoseconds time) {
  return std::to_string(time.count());
}

}  // namespace

Settings SettingsOf(uint32_t side, const Stream& stream,
                    const std::string& device, Time time) {
  const Setup& setup = stream.setup;
  // A frame that its sender's port holds back may reach another function than
  // it was sent to, one that attaches meanwhile (ADR 0012): where no chance is
  // to be in it, the receiver's port holds it, and ends with the receiver.
  const std::string port = time == Time::kVirtual ? "rx_" : "";
  Settings settings = {
      {port + "loss", std::to_string(setup.faults.loss)},
      {port + "reorder", std::to_string(setup.faults.reorder)},
      {port + "duplicate", std::to_string(setup.faults.duplicate)},
      {port + "corrupt", std::to_string(setup.faults.corrupt)},
      {"seed", std::to_string(setup.seed * setup.sides + side)},
  };
  if (setup.read_again > 0 && device == "soft") {
    settings.emplace_back("read_again", std::to_string(setup.read_again));
  }
  if (setup.idle_closes) {
    settings.emplace_back("pdc_idle_ns", Text(kIdle));
  }
  // A peer whose endpoint was closed says nothing, nor does one that takes a
  // read for answered; the default is too long to wait to be sure of that.
  if (RenewsInPeace(stream)) {
    if (time == Time::kReal) {
      settings.emplace_back("rto_ns", Text(kPeacefulRto));
    }
  } else if (Uses(stream, IsRenewal) || setup.read_again > 0) {
    settings.emplace_back(
        "dead_ns",
        Text(time == Time::kReal ? kDeadWithRenewals : kDeadWithoutHaste));
  } else if (Uses(stream, [](Verb verb) { return verb == Verb::kClose; })) {
    settings.emplace_back(
        "dead_ns", Text(time == Time::kReal ? kDead : kDeadWithoutHaste));
  }
  return settings;
}

nanoseconds QuietAfterCloses() {
  return kUnderWay;
}

nanoseconds QuietAfterRenewals(Time time) {
  // A target reclaims what a broken-off message holds after three times that.
  return kLittleLater +
         (time == Time::kReal ? kDeadWithRenewals : 3 * kDeadWithoutHaste);
}

}  // namespace heddle::differential
