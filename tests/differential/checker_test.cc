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
#include "tests/differential/right.h"
#include "tests/seed.h"

namespace heddle::differential {
namespace {

constexpr Profile::Sides kTwoToEight = {.least = 2, .most = 8};

Profile Everything() {
  return {.sides = kTwoToEight,
          .operations = 150,
          .rma = true,
          .unordered = true,
          .closes = true,
          .kills = true,
          .resets = true,
          .leaves = true};
}

// Ordered sends of endpoints that stay open: everything is owed.
Profile Plain() {
  return {.sides = kTwoToEight, .operations = 150};
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

  // Puts the bug into 40 runs; it must be found in each that it fits, and it
  // must fit more than `least`.
  static void ExpectFound(const Profile& profile, const Bug& bug,
                          const std::string& words, uint32_t least = 20) {
    const uint32_t seed = TestSeed();
    uint32_t fitting = 0;
    for (uint32_t i = 0; i < 40; ++i) {
      const Stream stream = Generate(seed + i, profile);
      Trace trace = RunRight(stream, i);
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
    EXPECT_GT(fitting, least);
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
    for (uint32_t side = 0; side < kMaxSides; ++side) {
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

  static void Insert(Trace* trace, const At& at, const Event& event) {
    auto& events = trace->sides.at(at.side);
    events.insert(events.begin() + static_cast<ptrdiff_t>(at.index), event);
  }

  // Bugs of one random event that `wanted` likes; they do not fit a run that
  // has none.
  using Wanted = std::function<bool(const Stream&, const Event&)>;
  static Bug OfOne(const Wanted& wanted,
                   const std::function<void(Trace*, const At&)>& change) {
    return [wanted, change](const Stream& stream, Trace* trace,
                            std::mt19937_64* random) {
      const auto at = Pick(*trace, random, [&](const Event& event) {
        return wanted(stream, event);
      });
      if (at) {
        change(trace, *at);
      }
      return at.has_value();
    };
  }
  static Bug Changed(const Wanted& wanted,
                     const std::function<void(Event*)>& change) {
    return OfOne(wanted, [change](Trace* trace, const At& at) {
      change(&EventAt(trace, at));
    });
  }
  static Bug Lost(const Wanted& wanted) {
    return OfOne(wanted, [](Trace* trace, const At& at) {
      auto& events = trace->sides.at(at.side);
      events.erase(events.begin() + static_cast<ptrdiff_t>(at.index));
    });
  }
  static Bug Doubled(const Wanted& wanted) {
    return OfOne(wanted, [](Trace* trace, const At& at) {
      Insert(trace, at, Event(EventAt(trace, at)));
    });
  }

  static bool IsReceived(const Stream& /*stream*/, const Event& event) {
    return event.kind == EventKind::kCompleted && event.source >= 0;
  }
  static bool HasBytes(const Stream& stream, const Event& event) {
    return IsReceived(stream, event) && event.bytes > 0;
  }
  static bool IsCompletion(const Stream& /*stream*/, const Event& event) {
    return event.kind == EventKind::kCompleted;
  }
};

TEST_F(SeededBugTest, DoubledMessage) {
  ExpectFound(
      Plain(),
      [](const Stream& stream, Trace* trace, std::mt19937_64* random) {
        const auto at = Pick(*trace, random, [&](const Event& event) {
          return IsReceived(stream, event) && event.bytes >= 8 &&
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
        Insert(trace, {at->side, at->index + 1}, again);
        Insert(trace, {at->side, at->index + 1}, spare);
        return true;
      },
      "once more");
}

// Renewals in every third stream or so.
Profile WithRenewals() {
  return {.sides = kTwoToEight,
          .operations = 400,
          .rma = true,
          .kills = true,
          .resets = true};
}

bool IsRenewalOf(const Stream& stream, const Event& event, Verb verb) {
  return event.kind == EventKind::kCalled &&
         stream.operations.at(event.number).verb == verb;
}

// Whether a completion of `number` has to come.
bool IsOwed(const Stream& stream, uint32_t number) {
  return number != kNobody &&
         (number >= kSpareBase ||
          stream.operations.at(number).verb == Verb::kReceive ||
          IsReported(stream.setup, stream.operations.at(number)));
}

// What a reset ended and reports right before it is told of.
TEST_F(SeededBugTest, ResetThatEndsSomethingWithoutAWord) {
  const auto forget = [](const Stream& stream, Trace* trace, std::mt19937_64*) {
    for (auto& events : trace->sides) {
      for (size_t i = 1; i < events.size(); ++i) {
        if (IsRenewalOf(stream, events[i], Verb::kReset) &&
            events[i - 1].result == FI_EIO &&
            IsOwed(stream, events[i - 1].number)) {
          events.erase(events.begin() + static_cast<ptrdiff_t>(i) - 1);
          return true;
        }
      }
    }
    return false;
  };
  ExpectFound(WithRenewals(), forget, "without a word", 3);
}

// The last message of a side's life arrives again in the next. Streams without
// one do not fit.
bool RepeatInTheNextLife(const Stream& stream, Verb end, Trace* trace) {
  for (auto& events : trace->sides) {
    const Event* last = nullptr;
    for (size_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      if (event.kind == EventKind::kCompleted && event.source >= 0 &&
          event.number < stream.operations.size()) {
        last = &event;
      } else if (event.kind == EventKind::kSettled) {
        last = nullptr;
      } else if (last != nullptr && IsRenewalOf(stream, event, end)) {
        Event again = *last;
        const Event spare = {
            .kind = EventKind::kSpare,
            .number = kSpareBase + 500'000,
            .endpoint = stream.operations[last->number].at.endpoint,
            .bytes = kMaxMessageBytes};
        again.number = spare.number;
        events.insert(events.begin() + static_cast<ptrdiff_t>(i) + 1,
                      {spare, again});
        return true;
      } else if (IsRenewalOf(stream, event, Verb::kKill) ||
                 IsRenewalOf(stream, event, Verb::kReset)) {
        last = nullptr;  // Of a life before the one that ends so.
      }
    }
  }
  return false;
}

// No sender has seen its message complete when the receiver ends.
void AcknowledgeLate(const Stream& stream, Trace* trace) {
  for (auto& events : trace->sides) {
    for (Event& event : events) {
      const bool sent = event.kind == EventKind::kCompleted &&
                        event.number < stream.operations.size() &&
                        IsSend(stream.operations[event.number].verb);
      event.time_ns = sent ? UINT64_MAX : event.time_ns;
    }
  }
}

TEST(CheckerTest, ASuccessorMayGetWhatTheDeadGot) {
  const uint32_t seed = TestSeed();
  for (uint32_t i = 0; i < 80; ++i) {
    const Stream stream = Generate(seed + i, WithRenewals());
    Trace trace = RunIdeally(stream, i);
    (void)RepeatInTheNextLife(stream, i % 2 == 0 ? Verb::kKill : Verb::kReset,
                              &trace);
    AcknowledgeLate(stream, &trace);
    const Verdict verdict = Check(stream, trace);
    ASSERT_TRUE(verdict.violations.empty())
        << "seed " << seed + i << ": " << verdict.violations.front();
  }
}

// What must not be in `stream` after `change` of its ideal trace.
void ExpectOneFound(const std::string& stream_text,
                    const std::function<void(Trace*)>& change,
                    const std::string& words) {
  const Stream stream = *ParseStream(stream_text);
  Trace trace = RunIdeally(stream, 1);
  ASSERT_TRUE(Check(stream, trace).violations.empty());
  change(&trace);
  const Verdict verdict = Check(stream, trace);
  ASSERT_EQ(verdict.violations.size(), 1U);
  EXPECT_NE(verdict.violations[0].find(words), std::string::npos)
      << verdict.violations[0];
}

std::vector<Event>::iterator Find(std::vector<Event>* events, EventKind kind,
                                  uint32_t number) {
  return std::find_if(events->begin(), events->end(), [&](const Event& event) {
    return event.kind == kind && event.number == number;
  });
}

// `message` completes receive `number`, right after that is posted.
void CompleteLater(std::vector<Event>* events, Event message, uint32_t number) {
  const auto posted = Find(events, EventKind::kCalled, number);
  message.number = number;
  message.time_ns = posted->time_ns;
  events->insert(posted + 1, message);
}

// The former process got and acknowledged it.
TEST(SeededRenewalTest, MessageThatBothIncarnationsExecute) {
  const auto execute_again = [](Trace* trace) {
    auto& events = trace->sides[1];
    CompleteLater(&events, *Find(&events, EventKind::kCompleted, 0), 4);
  };
  for (const std::string end : {"kill", "reset"}) {
    ExpectOneFound(
        "seed 7\n"
        "receive 1.0 bytes=64\n"
        "send 0.0 to=1.0 bytes=64\n"
        "sync\n" +
            end +
            " 1.0\n"
            "receive 1.0 bytes=64\n"
            "sync\n",
        execute_again, "though it was acknowledged before");
  }
}

// The same, but the former process ended before it saw the message.
TEST(SeededRenewalTest, AcknowledgedMessageThatTheNextIncarnationExecutes) {
  const auto execute_late = [](Trace* trace) {
    auto& events = trace->sides[1];
    const auto got = Find(&events, EventKind::kCompleted, 1);
    const Event late = *got;
    events.erase(got);
    CompleteLater(&events, late, 3);
  };
  ExpectOneFound(
      "seed 7\n"
      "send 0.0 to=1.0 bytes=64\n"
      "receive 1.0 bytes=64\n"
      "kill 1.0\n"
      "receive 1.0 bytes=64\n"
      "sync\n",
      execute_late, "the incarnation before had acknowledged");
}

// The NACK that says that the former process has ended was ignored.
TEST(SeededRenewalTest, MessageAfterARestartThatFails) {
  const auto fail = [](Trace* trace) {
    for (Event& event : trace->sides[0]) {
      if (event.kind == EventKind::kCompleted && event.number == 3) {
        event.kind = EventKind::kFailed;
        event.result = FI_EHOSTUNREACH;
      }
    }
    std::erase_if(trace->sides[1], [](const Event& event) {
      return event.kind == EventKind::kCompleted && event.number == 2;
    });
  };
  ExpectOneFound(
      "seed 7\n"
      "kill 1.0\n"
      "sync\n"
      "receive 1.0 bytes=64\n"
      "send 0.0 to=1.0 bytes=64\n"
      "sync\n",
      fail, "failed without a cause");
}

TEST(SeededRenewalTest, AccessAfterARestartThatFails) {
  ExpectOneFound(
      "seed 7\n"
      "kill 1.0\n"
      "sync\n"
      "write 0.0 to=1.0 bytes=64\n"
      "sync\n",
      [](Trace* trace) {
        for (Event& event : trace->sides[0]) {
          if (event.kind == EventKind::kCompleted) {
            event.kind = EventKind::kFailed;
            event.result = FI_EHOSTUNREACH;
          }
        }
        std::erase_if(trace->sides[1], [](const Event& event) {
          return event.kind == EventKind::kMemory;
        });
      },
      "failed without a cause");
}

// A close that ends the PDCs of one direction only: the peer finds out by the
// NACK to its next packet.
TEST(SeededRenewalTest, OrderlyCloseThatForgetsADirection) {
  for (const char* const leave : {"reopen 1.0\n", "exit 1.0\n"}) {
    ExpectOneFound(
        std::string("seed 7\n"
                    "send 0.0 to=1.0 bytes=64\n"
                    "sync\n") +
            leave +
            "sync\n"
            "send 0.0 to=1.0 bytes=64\n"
            "sync\n",
        [](Trace* trace) {
          auto& events = trace->sides[0];
          events.insert(events.end() - 1,
                        {.kind = EventKind::kRestarted, .bytes = 1});
        },
        "had left in order");
  }
}

// Where a peer may have to find out by itself, it may.
TEST(CheckerTest, RestartsAreAllowedWhereALeaveIsDisturbed) {
  for (const char* const text : {"kill 1.0\nsync\n", "reset 1.0\nsync\n",
                                 "faults 0.1 0 0 0\nreopen 1.0\nsync\n",
                                 "send 0.0 to=1.0 bytes=64\nreopen 1.0\nsync\n",
                                 "close 1.0\nsync\nreopen 1.0\nsync\n"}) {
    const Stream stream = *ParseStream(text);
    Trace trace = RunIdeally(stream, 1);
    auto& events = trace.sides[0];
    events.insert(events.end() - 1,
                  {.kind = EventKind::kRestarted, .bytes = 1});
    EXPECT_TRUE(Check(stream, trace).violations.empty()) << text;
  }
}

TEST_F(SeededBugTest, LostMessage) {
  ExpectFound(Plain(), Lost(IsReceived), "did not arrive");
}

TEST_F(SeededBugTest, CorruptedByte) {
  ExpectFound(Plain(),
              Changed(HasBytes, [](Event* event) { event->digest ^= 0x400; }),
              "other bytes");
}

TEST_F(SeededBugTest, ByteBehindTheMessage) {
  ExpectFound(Plain(),
              Changed(IsReceived, [](Event* event) { event->clean = false; }),
              "behind the message");
}

TEST_F(SeededBugTest, WrongRemoteData) {
  ExpectFound(Plain(),
              Changed(
                  [](const Stream& stream, const Event& event) {
                    return IsReceived(stream, event) && event.has_data;
                  },
                  [](Event* event) { event->data ^= 1; }),
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
        return std::any_of(
            trace->sides.begin(), trace->sides.end(),
            [&](auto& events) { return SwapMessages(stream, &events); });
      },
      "sent later", 10);
}

// The buffer's bytes come only after its completion.
TEST_F(SeededBugTest, CompletionBeforeItsPayload) {
  const auto hurry = [](Trace* trace, const At& at) {
    Event& early = EventAt(trace, at);
    early.digest = Digest(std::vector<uint8_t>(early.bytes, kUntouched));
    const Event changed = {.kind = EventKind::kChanged, .number = early.number};
    auto& events = trace->sides.at(at.side);
    const auto settled = std::find_if(
        events.begin() + static_cast<ptrdiff_t>(at.index), events.end(),
        [](const Event& e) { return e.kind == EventKind::kSettled; });
    events.insert(settled, changed);
  };
  ExpectFound(Plain(), OfOne(HasBytes, hurry), "changed after its completion");
}

TEST_F(SeededBugTest, DoubledCompletion) {
  ExpectFound(Plain(), Doubled(IsCompletion), "completed twice");
}

TEST_F(SeededBugTest, MissingCompletion) {
  ExpectFound(Plain(), Lost([](const Stream& stream, const Event& event) {
                return IsCompletion(stream, event) && event.source < 0;
              }),
              "did not complete");
}

TEST_F(SeededBugTest, ErrorWithoutACause) {
  ExpectFound(Plain(),
              Changed(IsCompletion,
                      [](Event* event) {
                        event->kind = EventKind::kFailed;
                        event->result = FI_EHOSTUNREACH;
                      }),
              "failed");
}

// A wrong target may fail a read, but not keep it from its end.
TEST(CheckerTest, AReadThatAWrongTargetAnswersMayFail) {
  const uint32_t seed = TestSeed();
  for (uint32_t i = 0; i < 20; ++i) {
    const Stream stream = Generate(seed + i, {.read_again = 0.1});
    Trace trace = RunIdeally(stream, i);
    for (auto& side : trace.sides) {
      for (Event& event : side) {
        if (event.kind == EventKind::kCompleted && event.number % 3 == 0) {
          event.kind = EventKind::kFailed;
          event.result = FI_EIO;
        }
      }
    }
    const Verdict verdict = Check(stream, trace);
    EXPECT_TRUE(verdict.violations.empty())
        << "seed " << seed + i << ": " << verdict.violations.front();
  }
}

TEST_F(SeededBugTest, ReadThatAWrongTargetKeepsFromItsEnd) {
  ExpectFound({.read_again = 0.1},
              Lost([](const Stream& stream, const Event& event) {
                return IsCompletion(stream, event) && event.source < 0;
              }),
              "did not complete");
}

TEST_F(SeededBugTest, AcceptedInvalidCall) {
  ExpectFound(Plain(),
              Changed(
                  [](const Stream& stream, const Event& event) {
                    return event.kind == EventKind::kCalled &&
                           stream.operations.at(event.number).verb ==
                               Verb::kInvalid;
                  },
                  [](Event* event) { event->result = 0; }),
              "answered 0");
}

TEST_F(SeededBugTest, CompletionOfNobody) {
  ExpectFound(
      Plain(),
      [](const Stream&, Trace* trace, std::mt19937_64*) {
        Insert(trace, {0, 0},
               {.kind = EventKind::kCompleted, .number = kNobody});
        return true;
      },
      "completion of nobody");
}

Profile WithRma() {
  return {.sides = kTwoToEight, .operations = 150, .rma = true};
}

void SetContent(std::vector<Event>* events, EventKind kind,
                const std::vector<uint8_t>& content) {
  for (Event& event : *events) {
    if (event.kind == kind) {
      event.content = content;
    }
  }
}

// As before the write: the read was answered again, or before its turn.
void ReadStale(Trace* trace) {
  SetContent(&trace->sides[0], EventKind::kResult,
             std::vector<uint8_t>(64, kUntouched));
}

// Of two writes of 64 bytes at the front of a region the first is left.
void WriteStale(Trace* trace) {
  std::vector<uint8_t> memory(kRegionBytes, kUntouched);
  std::ranges::copy(Content(7, 0, 64), memory.begin());
  SetContent(&trace->sides[1], EventKind::kMemory, memory);
}

TEST(SeededOrderTest, StaleResendOfARead) {
  ExpectOneFound(
      "seed 7\n"
      "write 0.0 to=1.0 bytes=64\n"
      "read 0.0 to=1.0 bytes=64\n"
      "sync\n",
      ReadStale, "as no write left it");
}

// The frames of a write come once more, behind those of a later one.
TEST(SeededOrderTest, StaleResendOfAWrite) {
  ExpectOneFound(
      "seed 7\n"
      "write 0.0 to=1.0 bytes=64\n"
      "write 0.0 to=1.0 bytes=64\n"
      "sync\n",
      WriteStale, "last write");
}

// Nobody saw the first write complete: its order is all there is.
constexpr char kTwoOrderedWrites[] =
    "seed 7\n"
    "rma-ordered 1\n"
    "injectwrite 0.0 to=1.0 bytes=64\n"
    "injectwrite 0.0 to=1.0 bytes=64\n"
    "sync\n";
constexpr char kOrderedReadAfterWrite[] =
    "seed 7\n"
    "rma-ordered 1\n"
    "injectwrite 0.0 to=1.0 bytes=64\n"
    "read 0.0 to=1.0 bytes=64\n"
    "sync\n";

// What was meant for the memory of a dead process.
TEST(SeededRenewalTest, WriteThatReachesTheNextLife) {
  ExpectOneFound(
      "seed 7\n"
      "injectwrite 0.0 to=1.0 bytes=64\n"
      "kill 1.0\n"
      "write 0.0 to=1.0 bytes=64 offset=100\n"
      "sync\n",
      WriteStale, "last write");
}

TEST(SeededRenewalTest, ReportedMessageOfADeadSenderThatDidNotArrive) {
  ExpectOneFound(
      "seed 7\n"
      "receive 1.0 bytes=64\n"
      "send 0.0 to=1.0 bytes=64\n"
      "sync\n"
      "receive 1.0 bytes=64\n"
      "send 0.0 to=1.0 bytes=64\n"
      "wait 0.0\n"
      "kill 0.0\n"
      "sync\n",
      [](Trace* trace) {
        // The sender's word comes before its end, the message not at all.
        auto& sender = trace->sides[0];
        const auto told = [](const Event& event) {
          return event.number == 4 && event.kind == EventKind::kCompleted;
        };
        std::erase_if(sender, told);
        const auto killed =
            std::find_if(sender.begin(), sender.end(), [](const Event& event) {
              return event.number == 6 && event.kind == EventKind::kCalled;
            });
        sender.insert(killed, {.kind = EventKind::kCompleted, .number = 4});
        std::erase_if(trace->sides[1], [](const Event& event) {
          return event.kind == EventKind::kCompleted && event.number == 3;
        });
      },
      "did not arrive");
}

TEST(SeededOrderTest, OrderedWriteThatIsOvertaken) {
  ExpectOneFound(kTwoOrderedWrites, WriteStale, "last write");
}

TEST(SeededOrderTest, OrderedReadThatOvertakesAWrite) {
  ExpectOneFound(kOrderedReadAfterWrite, ReadStale, "as no write left it");
}

TEST(SeededOrderTest, WithoutOrderBothAreAllowed) {
  struct Case {
    const char* text;
    void (*change)(Trace*);
  };
  for (const Case& one : {Case{kTwoOrderedWrites, WriteStale},
                          Case{kOrderedReadAfterWrite, ReadStale}}) {
    Stream stream = *ParseStream(one.text);
    stream.setup.rma_ordered = false;
    Trace trace = RunIdeally(stream, 1);
    one.change(&trace);
    EXPECT_TRUE(Check(stream, trace).violations.empty()) << one.text;
  }
}

TEST_F(SeededBugTest, StrayByteInARegion) {
  ExpectFound(WithRma(),
              Changed(
                  [](const Stream&, const Event& event) {
                    return event.kind == EventKind::kMemory;
                  },
                  [](Event* memory) {
                    memory->content.at(memory->content.size() / 2) ^= 0x10;
                  }),
              "last write");
}

TEST_F(SeededBugTest, WriteWithoutRightThatLeavesAByte) {
  const auto leave = [](Trace* trace, const At& at) {
    Insert(trace, at,
           {.kind = EventKind::kMemory, .region = kReadOnly, .content = {1}});
  };
  ExpectFound(WithRma(),
              OfOne(
                  [](const Stream&, const Event& event) {
                    return event.kind == EventKind::kSettled;
                  },
                  leave),
              "region 2");
}

void SucceedAfterAll(Event* event) {
  event->kind = EventKind::kCompleted;
}

TEST_F(SeededBugTest, RefusedAccessThatSucceedsOrFailsOtherwise) {
  for (const Fault fault :
       {Fault::kBadKey, Fault::kBeyondRegion, Fault::kWithoutRight}) {
    const auto refused = [fault](const Stream& stream, const Event& event) {
      return event.kind == EventKind::kFailed &&
             event.number < stream.operations.size() &&
             stream.operations[event.number].fault == fault;
    };
    const Profile profile = {.operations = 800, .rma = true};
    ExpectFound(profile, Changed(refused, SucceedAfterAll), "must not");
  }
  ExpectOneFound(
      "seed 7\n"
      "write 0.0 to=1.0 bytes=64 fault=bad-key\n"
      "sync\n",
      [](Trace* trace) {
        for (Event& event : trace->sides[0]) {
          if (event.kind == EventKind::kFailed) {
            event.result = FI_EIO;
          }
        }
      },
      "refused with error");
}

TEST_F(SeededBugTest, DoubledNotice) {
  ExpectFound({.operations = 400, .rma = true},
              Doubled([](const Stream&, const Event& event) {
                return event.kind == EventKind::kNotified;
              }),
              "heard 2 times");
}

}  // namespace
}  // namespace heddle::differential
