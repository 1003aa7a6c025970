// SPDX-License-Identifier: Apache-2.0
// The checker finds nothing in what is right, and every bug put into it.
#include "tests/differential/checker.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

#include "tests/differential/content.h"
#include "tests/differential/generator.h"
#include "tests/differential/ideal.h"
#include "tests/seed.h"

namespace heddle::differential {
namespace {

Profile Everything() {
  return {.operations = 150, .rma = true, .unordered = true, .closes = true};
}

// Ordered sends of endpoints that stay open: everything is owed.
Profile Plain() {
  return {.operations = 150};
}

TEST(CheckerTest, WhatIsRightIsAllowed) {
  const uint32_t seed = TestSeed();
  for (uint32_t i = 0; i < 100; ++i) {
    const Stream stream = Generate(seed + i, Everything());
    const Verdict verdict = Check(stream, RunIdeally(stream, i));
    ASSERT_TRUE(verdict.violations.empty())
        << "seed " << seed + i << ": " << verdict.violations.front();
    EXPECT_EQ(verdict.figures.lost + verdict.figures.duplicated +
                  verdict.figures.corrupted,
              0U);
  }
}

// The bugs below each change one thing of a trace that was right.
class SeededBugTest : public ::testing::Test {
 protected:
  using Bug = std::function<bool(const Stream&, Trace*, std::mt19937_64*)>;

  // Puts the bug into many runs; it must be found in each that it fits, and it
  // must fit most.
  static void ExpectFound(const Profile& profile, const Bug& bug,
                          const std::string& words) {
    const uint32_t seed = TestSeed();
    uint32_t fitting = 0;
    for (uint32_t i = 0; i < 40; ++i) {
      const Stream stream = Generate(seed + i, profile);
      Trace trace = RunIdeally(stream, i);
      std::mt19937_64 random(seed + i);
      if (!bug(stream, &trace, &random)) {
        continue;
      }
      ++fitting;
      const Verdict verdict = Check(stream, trace);
      ASSERT_FALSE(verdict.violations.empty()) << "seed " << seed + i;
      const bool named =
          std::any_of(verdict.violations.begin(), verdict.violations.end(),
                      [&](const std::string& violation) {
                        return violation.find(words) != std::string::npos;
                      });
      EXPECT_TRUE(named) << "seed " << seed + i << ": "
                         << verdict.violations.front();
    }
    EXPECT_GT(fitting, 20U);
  }

  struct At {
    uint32_t side;
    size_t index;
  };

  // A random event that `wanted` likes.
  static std::optional<At> Pick(
      const Trace& trace, std::mt19937_64* random,
      const std::function<bool(const Event&)>& wanted) {
    std::vector<At> all;
    for (uint32_t side = 0; side < kSides; ++side) {
      for (size_t i = 0; i < trace.sides.at(side).size(); ++i) {
        if (wanted(trace.sides.at(side)[i])) {
          all.push_back({side, i});
        }
      }
    }
    return all.empty() ? std::nullopt
                       : std::optional(all.at((*random)() % all.size()));
  }

  static Event& EventAt(Trace* trace, const At& at) {
    return trace->sides.at(at.side).at(at.index);
  }

  static void Erase(Trace* trace, const At& at) {
    auto& events = trace->sides.at(at.side);
    events.erase(events.begin() + static_cast<ptrdiff_t>(at.index));
  }

  static bool IsReceived(const Event& event) {
    return event.kind == EventKind::kCompleted && event.source >= 0;
  }
};

TEST_F(SeededBugTest, DoubledMessage) {
  ExpectFound(
      Plain(),
      [](const Stream& stream, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [&](const Event& event) {
          return IsReceived(event) && event.bytes >= 8 &&
                 event.number < stream.operations.size();
        });
        if (!at) {
          return false;
        }
        // In a receive of its own, right behind.
        Event again = EventAt(trace, *at);
        const Event spare = {
            .kind = EventKind::kSpare,
            .number = kSpareBase + 500'000,
            .endpoint = stream.operations[again.number].at.endpoint,
            .bytes = kMaxMessageBytes};
        again.number = spare.number;
        auto& events = trace->sides.at(at->side);
        events.insert(events.begin() + static_cast<ptrdiff_t>(at->index) + 1,
                      {spare, again});
        return true;
      },
      "once more");
}

TEST_F(SeededBugTest, LostMessage) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, IsReceived);
        if (at) {
          Erase(trace, *at);
        }
        return at.has_value();
      },
      "did not arrive");
}

TEST_F(SeededBugTest, CorruptedByte) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [](const Event& event) {
          return IsReceived(event) && event.bytes > 0;
        });
        if (at) {
          EventAt(trace, *at).digest ^= uint64_t{1} << ((*random)() % 64);
        }
        return at.has_value();
      },
      "other bytes");
}

TEST_F(SeededBugTest, ByteBehindTheMessage) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, IsReceived);
        if (at) {
          EventAt(trace, *at).clean = false;
        }
        return at.has_value();
      },
      "behind the message");
}

TEST_F(SeededBugTest, WrongRemoteData) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [](const Event& event) {
          return IsReceived(event) && event.has_data;
        });
        if (at) {
          EventAt(trace, *at).data ^= 1;
        }
        return at.has_value();
      },
      "other bytes or data");
}

// Two messages of one sender trade places.
bool SwapMessages(const Stream& stream, std::vector<Event>* events) {
  const auto receive = [&](const Event& event) -> const Operation* {
    return event.kind == EventKind::kCompleted && event.source >= 0 &&
                   event.bytes >= 8 && event.number < stream.operations.size()
               ? &stream.operations[event.number]
               : nullptr;
  };
  for (size_t i = 0; i < events->size(); ++i) {
    for (size_t j = i + 1; j < events->size(); ++j) {
      Event& first = (*events)[i];
      Event& second = (*events)[j];
      if (second.kind == EventKind::kSettled) {
        break;
      }
      const Operation* const one = receive(first);
      const Operation* const other = receive(second);
      if (one != nullptr && other != nullptr && one->at == other->at &&
          first.source == second.source && first.digest != second.digest &&
          one->bytes >= second.bytes && other->bytes >= first.bytes) {
        std::swap(first, second);
        std::swap(first.number, second.number);
        return true;
      }
    }
  }
  return false;
}

TEST_F(SeededBugTest, SwappedOrder) {
  ExpectFound(
      Plain(),
      [](const Stream& stream, Trace* trace, std::mt19937_64*) {
        return SwapMessages(stream, &trace->sides[0]) ||
               SwapMessages(stream, &trace->sides[1]);
      },
      "sent later");
}

// The buffer's bytes come only after its completion.
TEST_F(SeededBugTest, CompletionBeforeItsPayload) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [](const Event& event) {
          return IsReceived(event) && event.bytes > 0;
        });
        if (!at) {
          return false;
        }
        Event& early = EventAt(trace, *at);
        early.digest = Digest(std::vector<uint8_t>(early.bytes, kUntouched));
        const Event changed = {.kind = EventKind::kChanged,
                               .number = early.number};
        auto& events = trace->sides.at(at->side);
        const auto settled = std::find_if(
            events.begin() + static_cast<ptrdiff_t>(at->index), events.end(),
            [](const Event& e) { return e.kind == EventKind::kSettled; });
        events.insert(settled, changed);
        return true;
      },
      "changed after its completion");
}

TEST_F(SeededBugTest, DoubledCompletion) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [](const Event& event) {
          return event.kind == EventKind::kCompleted;
        });
        if (at) {
          auto& events = trace->sides.at(at->side);
          const Event again = EventAt(trace, *at);
          events.insert(events.begin() + static_cast<ptrdiff_t>(at->index),
                        again);
        }
        return at.has_value();
      },
      "completed twice");
}

TEST_F(SeededBugTest, MissingCompletion) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [](const Event& event) {
          return event.kind == EventKind::kCompleted && event.source < 0;
        });
        if (at) {
          Erase(trace, *at);
        }
        return at.has_value();
      },
      "did not complete");
}

TEST_F(SeededBugTest, ErrorWithoutACause) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [](const Event& event) {
          return event.kind == EventKind::kCompleted;
        });
        if (at) {
          EventAt(trace, *at).kind = EventKind::kFailed;
          EventAt(trace, *at).result = FI_EHOSTUNREACH;
        }
        return at.has_value();
      },
      "failed");
}

TEST_F(SeededBugTest, AcceptedInvalidCall) {
  ExpectFound(
      Plain(),
      [](const Stream& stream, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [&](const Event& event) {
          return event.kind == EventKind::kCalled &&
                 stream.operations.at(event.number).verb == Verb::kInvalid;
        });
        if (at) {
          EventAt(trace, *at).result = 0;
        }
        return at.has_value();
      },
      "answered 0");
}

TEST_F(SeededBugTest, CompletionOfNobody) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64*) {
        trace->sides[0].insert(
            trace->sides[0].begin(),
            {.kind = EventKind::kCompleted, .number = kNobody});
        return true;
      },
      "completion of nobody");
}

Profile WithRma() {
  return {.operations = 150, .rma = true};
}

// A resend answers a read with what is there now.
TEST_F(SeededBugTest, StaleResendOfARead) {
  const Stream stream = *ParseStream(
      "seed 7\n"
      "write 0.0 to=1.0 bytes=64\n"
      "read 0.0 to=1.0 bytes=64\n"
      "sync\n");
  Trace trace = RunIdeally(stream, 1);
  ASSERT_TRUE(Check(stream, trace).violations.empty());
  for (Event& event : trace.sides[0]) {
    if (event.kind == EventKind::kResult) {
      event.content.assign(64, kUntouched);  // As before the write.
    }
  }
  const Verdict verdict = Check(stream, trace);
  ASSERT_EQ(verdict.violations.size(), 1U);
  EXPECT_NE(verdict.violations[0].find("as no write left it"),
            std::string::npos);
}

// The frames of a write come once more, behind those of a later one.
TEST_F(SeededBugTest, StaleResendOfAWrite) {
  const Stream stream = *ParseStream(
      "seed 7\n"
      "write 0.0 to=1.0 bytes=64\n"
      "write 0.0 to=1.0 bytes=64\n"
      "sync\n");
  Trace trace = RunIdeally(stream, 1);
  ASSERT_TRUE(Check(stream, trace).violations.empty());
  const std::vector<uint8_t> old = Content(7, 0, 64);
  for (Event& event : trace.sides[1]) {
    if (event.kind == EventKind::kMemory) {
      std::copy(old.begin(), old.end(), event.content.begin());
    }
  }
  const Verdict verdict = Check(stream, trace);
  ASSERT_EQ(verdict.violations.size(), 1U);
  EXPECT_NE(verdict.violations[0].find("last write"), std::string::npos);
}

TEST_F(SeededBugTest, StrayByteInARegion) {
  ExpectFound(
      WithRma(),
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [](const Event& event) {
          return event.kind == EventKind::kMemory;
        });
        if (at) {
          Event& memory = EventAt(trace, *at);
          memory.content.at((*random)() % memory.content.size()) ^= 0x10;
        }
        return at.has_value();
      },
      "last write");
}

TEST_F(SeededBugTest, RefusedAccessThatSucceeds) {
  ExpectFound(
      {.operations = 400, .rma = true},
      [](const Stream& stream, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [&](const Event& event) {
          return event.kind == EventKind::kFailed &&
                 event.number < stream.operations.size() &&
                 stream.operations[event.number].fault != Fault::kNone;
        });
        if (at) {
          EventAt(trace, *at).kind = EventKind::kCompleted;
        }
        return at.has_value();
      },
      "must not");
}

TEST_F(SeededBugTest, DoubledNotice) {
  ExpectFound(
      {.operations = 400, .rma = true},
      [](const Stream&, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [](const Event& event) {
          return event.kind == EventKind::kNotified;
        });
        if (at) {
          auto& events = trace->sides.at(at->side);
          const Event again = EventAt(trace, *at);
          events.insert(events.begin() + static_cast<ptrdiff_t>(at->index),
                        again);
        }
        return at.has_value();
      },
      "heard 2 times");
}

}  // namespace
}  // namespace heddle::differential
