// SPDX-License-Identifier: Apache-2.0
// What is written can be read again.
#include "tests/differential/stream.h"

#include <gtest/gtest.h>

#include "tests/differential/generator.h"
#include "tests/differential/ideal.h"
#include "tests/differential/trace.h"
#include "tests/seed.h"

namespace heddle::differential {
namespace {

Profile Everything() {
  return {.sides = {.least = 2, .most = 8},
          .operations = 200,
          .rma = true,
          .unordered = true,
          .closes = true,
          .unplugs = true,
          .kills = true,
          .resets = true,
          .leaves = true,
          .faults = {.loss = 0.05, .corrupt = 0.001}};
}

TEST(StreamTest, TextOfAStreamIsTheStream) {
  const uint32_t seed = TestSeed();
  for (uint32_t i = 0; i < 20; ++i) {
    const Stream stream = Generate(seed + i, Everything());
    const auto again = ParseStream(ToText(stream));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, stream);
  }
}

TEST(StreamTest, AgainstAWrongTargetThereAreReadsAlone) {
  const Stream stream = Generate(TestSeed(), {.read_again = 0.125});
  EXPECT_EQ(stream.setup.read_again, 0.125);
  EXPECT_EQ(*ParseStream(ToText(stream)), stream);
  EXPECT_FALSE(Uses(stream, [](Verb verb) {
    return verb != Verb::kRead && verb != Verb::kWait && verb != Verb::kSync;
  }));
}

TEST(StreamTest, TheSeedDecidesTheStream) {
  EXPECT_EQ(Generate(5, Everything()), Generate(5, Everything()));
  EXPECT_NE(Generate(5, Everything()), Generate(6, Everything()));
}

TEST(StreamTest, WhatNoSideCanRunIsNoOperation) {
  for (const char* const line :
       {"", "jump 0.0", "send", "send 8.0 to=0.0 bytes=1", "send 0.0 to=0.9",
        "send 0.0 to=1.0 bytes=100001", "send 0.0 to=1.0 segments=5",
        "write 0.0 to=1.0 offset=32768 bytes=1", "send 0.0 to=1.0 colour=red",
        "receive 0.0 bytes=x", "invalid 0.0 fault=rain", "read 0.0 region=2"}) {
    EXPECT_FALSE(ParseOperation(line).has_value()) << line;
  }
  EXPECT_FALSE(ParseStream("seed 1\nfly 0.0\n").has_value());
  EXPECT_FALSE(ParseStream("sides 9\n").has_value());
  const std::string to_a_third = "send 0.0 to=2.0 bytes=1\n";
  EXPECT_FALSE(ParseStream(to_a_third).has_value());
  EXPECT_TRUE(ParseStream("sides 3\n" + to_a_third).has_value());
}

TEST(TraceTest, TextOfAnEventIsTheEvent) {
  const Stream stream = Generate(TestSeed(), Everything());
  for (const auto& side : RunIdeally(stream, 1).sides) {
    for (const Event& event : side) {
      const auto again = ParseEvent(ToText(event));
      ASSERT_TRUE(again.has_value()) << ToText(event);
      EXPECT_EQ(*again, event);
    }
  }
  EXPECT_FALSE(ParseEvent("completed 1 2 3").has_value());
  EXPECT_FALSE(ParseEvent("slept 0 0 0 0 0 0 0 0 0 0 -1 0 1 -").has_value());
  EXPECT_FALSE(ParseEvent("called 0 0 0 0 0 0 0 0 0 0 -1 0 1 0g").has_value());
}

}  // namespace
}  // namespace heddle::differential
