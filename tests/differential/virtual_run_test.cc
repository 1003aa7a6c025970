// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/virtual_run.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/differential/checker.h"
#include "tests/differential/generator.h"
#include "tests/seed.h"

namespace heddle::differential {
namespace {

Profile EverythingOnABadWire() {
  return {
      .sides = {.least = 2, .most = 8},
      .operations = 150,
      .rma = true,
      .unordered = true,
      .closes = true,
      .unplugs = true,
      .kills = true,
      .resets = true,
      .leaves = true,
      .faults = {
          .loss = 0.05, .reorder = 0.05, .duplicate = 0.01, .corrupt = 0.001}};
}

struct Logged {
  VirtualOutcome outcome;
  std::vector<std::string> lines;
};

Logged RunLogged(const Stream& stream) {
  Logged run;
  VirtualOptions options;
  options.log = [&run](const std::string& line) { run.lines.push_back(line); };
  run.outcome = RunVirtually(stream, options);
  return run;
}

TEST(VirtualRunTest, TheSameSeedGivesTheSameTrace) {
  const uint32_t seed = TestSeed();
  for (uint32_t i = 0; i < 12; ++i) {
    const Stream stream = Generate(seed + i, EverythingOnABadWire());
    const Logged one = RunLogged(stream);
    // The heap is another by now.
    const std::vector<uint8_t> ballast(4096 * (i + 1));
    const Logged other = RunLogged(stream);
    ASSERT_TRUE(one.outcome.trace.failure.empty())
        << "seed " << seed + i << ": " << one.outcome.trace.failure;
    ASSERT_EQ(one.lines, other.lines) << "seed " << seed + i;
    EXPECT_EQ(one.outcome.hash, other.outcome.hash);
    EXPECT_EQ(one.outcome.trace.sides, other.outcome.trace.sides);
    EXPECT_EQ(one.outcome.virtual_ns, other.outcome.virtual_ns);
    EXPECT_GT(one.outcome.frames, 0U);
    const Verdict verdict = Check(stream, one.outcome.trace);
    EXPECT_TRUE(verdict.violations.empty())
        << "seed " << seed + i << ": " << verdict.violations.front();
  }
}

TEST(VirtualRunTest, AnotherSeedOfTheWireGivesAnotherTrace) {
  Stream stream = Generate(TestSeed(), EverythingOnABadWire());
  stream.setup.faults = EverythingOnABadWire().faults;
  const uint64_t hash = RunVirtually(stream, {}).hash;
  ++stream.setup.seed;
  EXPECT_NE(RunVirtually(stream, {}).hash, hash);
}

// Each frame is lost once in two times, so that time-outs of 20 ms and more
// follow each other; a peer is dead after 60 s.
TEST(VirtualRunTest, TimeOutsPassInVirtualTime) {
  const Stream stream = *ParseStream(
      "seed 5\n"
      "faults 0.5 0 0 0\n"
      "receive 1.0 bytes=64\n"
      "send 0.0 to=1.0 bytes=64\n"
      "receive 1.0 bytes=20000\n"
      "send 0.0 to=1.0 bytes=20000\n"
      "sync\n");
  const VirtualOutcome outcome = RunVirtually(stream, {});
  EXPECT_TRUE(Check(stream, outcome.trace).violations.empty());
  EXPECT_GT(outcome.virtual_ns, 20'000'000U);
}

}  // namespace
}  // namespace heddle::differential
