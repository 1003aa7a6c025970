// SPDX-License-Identifier: Apache-2.0
// The checker finds what devices can do wrong with tags.
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <functional>
#include <string>

#include "tests/differential/checker.h"
#include "tests/differential/generator.h"
#include "tests/differential/ideal.h"
#include "tests/seed.h"

namespace heddle::differential {
namespace {

TEST(TagCheckerTest, WhatIsRightIsAllowed) {
  const uint32_t seed = TestSeed();
  uint64_t messages = 0;
  uint32_t found = 0;
  uint32_t held = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    const Stream stream = Generate(seed + i, {.sides = {2, 8},
                                              .operations = 300,
                                              .rma = true,
                                              .tagged = true,
                                              .unordered = true,
                                              .closes = true,
                                              .kills = true,
                                              .resets = true,
                                              .leaves = true});
    const Trace trace = RunIdeally(stream, i);
    const Verdict verdict = Check(stream, trace);
    ASSERT_TRUE(verdict.violations.empty())
        << "seed " << seed + i << ": " << verdict.violations.front();
    messages += verdict.figures.messages;
    for (const auto& events : trace.sides) {
      for (const Event& event : events) {
        found += event.kind == EventKind::kFound ? 1 : 0;
        held += event.held ? 1 : 0;
      }
    }
  }
  EXPECT_GT(messages, 1000U);
  EXPECT_GT(found, 100U) << "peeks have to find something";
  EXPECT_GT(held, 100U) << "buffers have to take several messages";
}

// One tagged message of 64 bytes and what waits for it at place 1.0, whose
// trace the bug changes.
class SeededTagTest : public ::testing::Test {
 protected:
  using Bug = std::function<void(std::vector<Event>*)>;

  static void ExpectFound(const std::string& operations, const Bug& bug,
                          const std::string& words) {
    const auto stream = ParseStream("seed 7\n" + operations + "sync\n");
    ASSERT_TRUE(stream.has_value());
    Trace trace = RunIdeally(*stream, 0);
    const Verdict before = Check(*stream, trace);
    ASSERT_TRUE(before.violations.empty()) << before.violations.front();
    bug(&trace.sides[1]);
    const Verdict verdict = Check(*stream, trace);
    const bool named =
        std::any_of(verdict.violations.begin(), verdict.violations.end(),
                    [&](const std::string& violation) {
                      return violation.find(words) != std::string::npos;
                    });
    EXPECT_TRUE(named) << (verdict.violations.empty()
                               ? "nothing was found"
                               : verdict.violations.front());
  }

  static Event& Find(std::vector<Event>* events, EventKind kind) {
    return *std::find_if(
        events->begin(), events->end(),
        [kind](const Event& event) { return event.kind == kind; });
  }

  // Operation `to` receives the message of `from`.
  static Bug Moved(uint32_t from, uint32_t to) {
    return [from, to](std::vector<Event>* events) {
      for (Event& event : *events) {
        if (event.kind == EventKind::kCompleted && event.number == from) {
          event.number = to;
          return;
        }
      }
    };
  }
  // The first two messages are in each other's receives, and complete at the
  // end, when both are posted.
  static void SwapReceived(std::vector<Event>* events) {
    std::vector<Event> received;
    for (const Event& event : *events) {
      if (event.kind == EventKind::kCompleted) {
        received.push_back(event);
      }
    }
    std::erase_if(*events, [](const Event& event) {
      return event.kind == EventKind::kCompleted;
    });
    ASSERT_GE(received.size(), 2U);
    std::swap(received[0].number, received[1].number);
    events->insert(events->end() - 1, received.begin(), received.end());
  }

  static constexpr char kSend[] = "send 0.0 to=1.0 bytes=64 tagged tag=1\n";
  static constexpr char kSendAnother[] =
      "send 0.0 to=1.0 bytes=65 tagged tag=1\n";
};

TEST_F(SeededTagTest, YoungerReceiveMatched) {
  ExpectFound(std::string("receive 1.0 bytes=99 tagged tag=1\n"
                          "receive 1.0 bytes=99 tagged tag=1\n") +
                  kSend,
              Moved(0, 1), "before an older receive");
}

TEST_F(SeededTagTest, WildcardOvertaken) {
  ExpectFound(std::string("receive 1.0 bytes=99 tagged ignore=4294967295\n"
                          "receive 1.0 bytes=99 tagged tag=1\n") +
                  kSend + kSendAnother,
              SwapReceived, "which the older receive");
}

// A receive that has matched a deferred message of an endpoint that was closed
// ends later; until then it takes no other message.
TEST(TagCheckerTest, ADeferredMessageOfAClosedEndpointKeepsItsReceive) {
  for (const bool closed : {false, true}) {
    const auto stream = ParseStream(
        std::string("seed 7\nsend 0.1 to=1.0 bytes=200 tag=1 tagged\n"
                    "send 0.1 to=1.0 bytes=64 tag=1 tagged\n"
                    "receive 1.0 bytes=200 tag=1 tagged\n") +
        (closed ? "close 0.1\n" : "receive 0.0 bytes=64\n") + "sync\n");
    ASSERT_TRUE(stream.has_value());
    Trace trace = RunIdeally(*stream, 0);
    for (auto& events : trace.sides) {
      std::erase_if(events, [](const Event& event) {
        return event.kind == EventKind::kCompleted &&
               (event.number == 0 || event.number == 2);
      });
    }
    const Verdict verdict = Check(*stream, trace);
    EXPECT_EQ(std::any_of(verdict.violations.begin(), verdict.violations.end(),
                          [](const std::string& violation) {
                            return violation.find("an older receive") !=
                                   std::string::npos;
                          }),
              !closed);
    EXPECT_EQ(verdict.violations.empty(), closed);
  }
}

TEST_F(SeededTagTest, EarlierMessageOvertaken) {
  ExpectFound(std::string(kSend) + kSendAnother +
                  "receive 1.0 bytes=99 tagged tag=1\n"
                  "receive 1.0 bytes=99 tagged tag=1\n",
              SwapReceived, "which the older receive");
}

TEST_F(SeededTagTest, TagThatDoesNotMatch) {
  ExpectFound(std::string("receive 1.0 bytes=99 tagged tag=1\n"
                          "receive 1.0 bytes=99 tagged tag=2\n") +
                  kSend,
              Moved(0, 1), "does not match");
}

TEST_F(SeededTagTest, IgnoredBitsThatCount) {
  ExpectFound(std::string("receive 1.0 bytes=99 tagged ignore=1\n"
                          "receive 1.0 bytes=99 tagged tag=4 ignore=2\n") +
                  kSend,
              Moved(0, 1), "does not match");
}

TEST_F(SeededTagTest, MessageOfAnotherSender) {
  ExpectFound(
      std::string("receive 1.0 bytes=99 tagged tag=1\n"
                  "receive 1.0 bytes=99 tagged tag=1 to=0.1 directed\n") +
          kSend,
      Moved(0, 1), "does not match");
}

TEST_F(SeededTagTest, TagThatIsReportedWrong) {
  ExpectFound(
      std::string("receive 1.0 bytes=99 tagged ignore=4294967295\n") + kSend,
      [](std::vector<Event>* events) {
        Find(events, EventKind::kCompleted).tag = 5;
      },
      "other bytes or data");
}

TEST_F(SeededTagTest, MessageMatchedTwice) {
  ExpectFound(
      std::string("receive 1.0 bytes=99 tagged tag=1\n"
                  "receive 1.0 bytes=99 tagged tag=1\n") +
          kSend,
      [](std::vector<Event>* events) {
        Event again = Find(events, EventKind::kCompleted);
        again.number = 1;
        events->insert(events->end() - 1, again);
      },
      "once more");
}

constexpr char kClaim[] = "claim 1.0 bytes=99 tagged tag=1 back=1\n";

TEST_F(SeededTagTest, ClaimLost) {
  ExpectFound(
      std::string(kSend) + "wait 0.0\n" + kClaim,
      [](std::vector<Event>* events) {
        Event& received = Find(events, EventKind::kCompleted);
        received.kind = EventKind::kFailed;
        received.result = FI_ENOMSG;
        received.bytes = 0;
      },
      "failed with error");
}

TEST_F(SeededTagTest, ClaimedMessageThatAReceiveTakes) {
  ExpectFound(
      std::string(kSend) + "wait 0.0\n" + kClaim +
          "receive 1.0 bytes=99 tagged tag=1\n",
      [](std::vector<Event>* events) {
        Event again = Find(events, EventKind::kCompleted);
        again.number = 3;
        events->insert(events->end() - 1, again);
      },
      "once more");
}

TEST_F(SeededTagTest, DiscardedMessageThatIsReceived) {
  ExpectFound(
      std::string(kSend) +
          "wait 0.0\n"
          "discard 1.0 tagged tag=1\n"
          "receive 1.0 bytes=99 tagged tag=1\n",
      [](std::vector<Event>* events) {
        const Stream same = *ParseStream("seed 7\n" + std::string(kSend) +
                                         "receive 1.0 bytes=99 "
                                         "tagged tag=1\nsync\n");
        Event received =
            Find(&RunIdeally(same, 0).sides[1], EventKind::kCompleted);
        received.number = 3;
        events->insert(events->end() - 1, received);
      },
      "that was not there");
}

TEST_F(SeededTagTest, PeekThatFindsWhatWasNotSent) {
  ExpectFound(
      std::string(kSend) +
          "wait 0.0\n"
          "peek 1.0 tagged tag=1\n",
      [](std::vector<Event>* events) {
        Find(events, EventKind::kFound).beyond = 63;
      },
      "that was not there");
}

// An equal message that an earlier life may have had is not meant.
TEST_F(SeededTagTest, DiscardedMessageThatEqualsALostOne) {
  const auto stream =
      ParseStream("seed 7\n" + std::string(kSend) + "exit 1.0\nsync\n" + kSend +
                  "wait 0.0\n"
                  "discard 1.0 tagged tag=1\nsync\n");
  ASSERT_TRUE(stream.has_value());
  uint32_t found = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    const Trace trace = RunIdeally(*stream, i);
    const Verdict verdict = Check(*stream, trace);
    ASSERT_TRUE(verdict.violations.empty())
        << i << ": " << verdict.violations.front();
    found += static_cast<uint32_t>(std::count_if(
        trace.sides[1].begin(), trace.sides[1].end(),
        [](const Event& event) { return event.kind == EventKind::kFound; }));
  }
  EXPECT_GT(found, 0U);
}

TEST_F(SeededTagTest, PeekThatFails) {
  ExpectFound(
      "peek 1.0 tagged tag=1\n",
      [](std::vector<Event>* events) {
        Find(events, EventKind::kFailed).result = FI_EINVAL;
      },
      "not with a message or without");
}

// -- a buffer of many messages

constexpr char kMany[] = "receive 1.0 bytes=250 tagged tag=1 many\n";

TEST_F(SeededTagTest, BufferReleasedTooEarly) {
  ExpectFound(
      std::string(kMany) + kSend,
      [](std::vector<Event>* events) {
        Find(events, EventKind::kCompleted).held = false;
      },
      "was released with 186 bytes free");
}

TEST_F(SeededTagTest, CancelledBufferReleasedWithItsLastMessage) {
  const auto of_message = [](const Event& event) {
    return event.kind == EventKind::kCompleted && event.number == 0;
  };
  for (const bool cancelled : {false, true}) {
    const auto stream =
        ParseStream("seed 7\n" + std::string(kMany) + kSend +
                    (cancelled ? "cancel 1.0\nsync\n" : "sync\n"));
    ASSERT_TRUE(stream.has_value());
    // A run in which the message is faster.
    Trace trace;
    std::vector<Event>::iterator message;
    for (uint32_t i = 0; i < 100; ++i) {
      trace = RunIdeally(*stream, i);
      message = std::find_if(trace.sides[1].begin(), trace.sides[1].end(),
                             of_message);
      if (message != trace.sides[1].end()) {
        break;
      }
    }
    ASSERT_NE(message, trace.sides[1].end());
    message->held = false;
    std::erase_if(trace.sides[1], [](const Event& event) {
      return event.kind == EventKind::kFailed && event.number == 0;
    });
    EXPECT_EQ(Check(*stream, trace).violations.empty(), cancelled);
  }
}

TEST_F(SeededTagTest, FullBufferNotReleased) {
  ExpectFound(
      std::string(kMany) + kSend + kSend + kSend,
      [](std::vector<Event>* events) {
        for (Event& event : *events) {
          event.held = true;
        }
      },
      "was not released with 58 bytes free");
}

TEST_F(SeededTagTest, BufferThatTakesAMessageAfterItsRelease) {
  ExpectFound(
      std::string(kMany) + kSend + kSend + kSend,
      [](std::vector<Event>* events) {
        Find(events, EventKind::kCompleted).held = false;
      },
      "completed twice");
}

TEST_F(SeededTagTest, OverlappingMessages) {
  ExpectFound(
      std::string(kMany) + kSend + kSendAnother,
      [](std::vector<Event>* events) {
        for (Event& event : *events) {
          event.offset -= event.offset != 0 ? 1 : 0;
        }
      },
      "overlap at byte 63");
}

TEST_F(SeededTagTest, MessageBeyondItsBuffer) {
  ExpectFound(
      std::string(kMany) + kSend,
      [](std::vector<Event>* events) {
        Find(events, EventKind::kCompleted).offset = 200;
      },
      "ends at byte 264");
}

TEST_F(SeededTagTest, BufferWithTooLittleFree) {
  ExpectFound(
      std::string(kMany) + kSend + kSend + kSend +
          "send 0.0 to=1.0 bytes=20 tagged tag=1\n",
      [](std::vector<Event>* events) {
        // The spare receive of the last one.
        Event& last = *std::find_if(
            events->rbegin(), events->rend(), [](const Event& event) {
              return event.kind == EventKind::kCompleted;
            });
        last.number = 0;
        last.offset = 192;
        for (Event& event : *events) {
          event.held = event.kind == EventKind::kCompleted && event != last;
        }
      },
      "with too little free");
}

TEST_F(SeededTagTest, MessagePlacedTwice) {
  ExpectFound(
      std::string(kMany) + kSend,
      [](std::vector<Event>* events) {
        Event again = Find(events, EventKind::kCompleted);
        again.offset = 64;
        events->insert(events->end() - 1, again);
      },
      "once more");
}

TEST_F(SeededTagTest, MessagesOfABufferOutOfOrder) {
  ExpectFound(
      std::string(kMany) + kSend + kSendAnother,
      [](std::vector<Event>* events) {
        for (Event& event : *events) {
          if (event.kind == EventKind::kCompleted) {
            event.offset = event.bytes == 65 ? 0 : 65;
          }
        }
      },
      "which the older receive");
}

TEST_F(SeededTagTest, BufferOfManyPassedOver) {
  ExpectFound(std::string(kMany) + "receive 1.0 bytes=99 tagged tag=1\n" +
                  kSend + kSendAnother,
              Moved(0, 1), "before an older receive");
}

TEST_F(SeededTagTest, CancelledBufferThatWasNot) {
  ExpectFound(
      std::string(kMany) + kSend,
      [](std::vector<Event>* events) {
        events->insert(
            events->end() - 1,
            {.kind = EventKind::kFailed, .number = 0, .result = FI_ECANCELED});
      },
      "failed with error");
}

TEST_F(SeededTagTest, UnexpectedMessageLost) {
  ExpectFound(
      kSend,
      [](std::vector<Event>* events) {
        std::erase_if(*events, [](const Event& event) {
          return event.kind == EventKind::kCompleted;
        });
      },
      "did not arrive");
}

}  // namespace
}  // namespace heddle::differential
