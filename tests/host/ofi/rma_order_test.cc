// SPDX-License-Identifier: Apache-2.0
// Orders between operations of different kinds (libfabric, fi_endpoint(3),
// msg_order), as far as an application can tell them apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/host/ofi/rma_fixture.h"

namespace heddle::test {
namespace {

// Whole packets and not; those that are copied into the descriptor, too.
constexpr std::array<size_t, 5> kPieces = {8, 5000, 192, 20000, 4096};
constexpr uint32_t kRounds = 40;

struct OrderTest : PairTest {
  void OpenWith(uint64_t order, uint64_t caps = 0) {
    NodeOptions options = RmaOptions();
    options.caps |= caps;
    options.msg_order = order;
    ASSERT_NO_FATAL_FAILURE(Open(options));
    ASSERT_EQ(a->info->tx_attr->msg_order, order);
  }
  void Write(const std::vector<uint8_t>& data, const Region& target,
             uint64_t offset) {
    ASSERT_EQ(fi_write(a->ep, data.data(), data.size(), nullptr, to_b, offset,
                       target.key(), nullptr),
              0);
  }
  // Until its completion `message_` is the device's.
  void Send(uint64_t message, uint64_t flags = 0) {
    message_ = message;
    const iovec from = {&message_, sizeof(message_)};
    fi_msg call = {};
    call.msg_iov = &from;
    call.iov_count = 1;
    call.addr = to_b;
    ASSERT_EQ(fi_sendmsg(a->ep, &call, flags), 0);
  }
  void PostReceive() {
    received_ = ~uint64_t{0};
    ASSERT_EQ(fi_recv(b->ep, &received_, sizeof(received_), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
  }
  void ExpectReceived(uint64_t message) {
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b->rx_cq, FI_MSG | FI_RECV, nullptr));
    ASSERT_EQ(received_, message);
  }
  // A message that was sent before anybody would take it.
  void Receive(uint64_t message) {
    ASSERT_NO_FATAL_FAILURE(PostReceive());
    ASSERT_NO_FATAL_FAILURE(ExpectReceived(message));
    ExpectDone(a->tx_cq, FI_MSG | FI_SEND, nullptr);
  }

 private:
  uint64_t message_ = 0;
  uint64_t received_ = 0;
};

// Rounds of writes and a message with `flags`, which tells its receiver that
// what was written before it is there.
struct MessageOrderTest : OrderTest {
  void WriteAndSend(uint64_t flags) {
    std::vector<uint8_t> memory(kPieces.size() * kStride);
    const Region target(*b, memory.data(), memory.size());
    for (uint32_t round = 0; round < kRounds; ++round) {
      ASSERT_NO_FATAL_FAILURE(PostReceive());
      std::vector<std::vector<uint8_t>> pieces;
      for (uint32_t i = 0; i < kPieces.size(); ++i) {
        pieces.push_back(Pattern(kPieces.at(i), round + 10 * i));
        ASSERT_NO_FATAL_FAILURE(Write(pieces.back(), target, i * kStride));
      }
      ASSERT_NO_FATAL_FAILURE(Send(round, flags));
      ASSERT_NO_FATAL_FAILURE(ExpectReceived(round));
      for (size_t i = 0; i < pieces.size(); ++i) {
        ASSERT_EQ(std::memcmp(pieces[i].data(), &memory[i * kStride],
                              pieces[i].size()),
                  0)
            << "round " << round << ", write " << i;
      }
      for (size_t i = 0; i < pieces.size(); ++i) {
        ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
      }
      ExpectDone(a->tx_cq, FI_MSG | FI_SEND, nullptr);
    }
  }

 private:
  static constexpr size_t kStride = 20000;
};

TEST_F(MessageOrderTest, ComesBehindTheWritesBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(FI_ORDER_SAW));
  WriteAndSend(0);
}

// No order binds these writes.
TEST_F(MessageOrderTest, FencedOneComesBehindTheWritesBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(FI_ORDER_SAS, FI_FENCE));
  WriteAndSend(FI_FENCE);
}

// Injected ones, which have no completion level of their own.
TEST_F(OrderTest, MessageComesBehindTheInjectedWritesBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(FI_ORDER_SAW));
  std::array<uint64_t, 4> memory = {};
  const Region target(*b, memory.data(), sizeof(memory));
  for (uint64_t round = 1; round <= 200; ++round) {
    ASSERT_NO_FATAL_FAILURE(PostReceive());
    for (size_t i = 0; i < memory.size(); ++i) {
      ASSERT_EQ(fi_inject_write(a->ep, &round, sizeof(round), to_b, i * 8,
                                target.key()),
                0);
    }
    ASSERT_EQ(fi_inject(a->ep, &round, sizeof(round), to_b), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectReceived(round));
    for (const uint64_t cell : memory) {
      ASSERT_EQ(cell, round);
    }
  }
}

// While nobody takes the message, nothing behind it is done.
TEST_F(OrderTest, WriteWaitsForTheMessageBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(FI_ORDER_WAS));
  uint64_t memory = 0;
  const Region target(*b, &memory, sizeof(memory));
  for (uint64_t round = 1; round <= 5; ++round) {
    ASSERT_NO_FATAL_FAILURE(Send(round));
    ASSERT_EQ(fi_inject_writedata(a->ep, &round, sizeof(round), round, to_b, 0,
                                  target.key()),
              0);
    ASSERT_TRUE(StaysEmpty(b->rx_cq));
    ASSERT_EQ(memory, round - 1);
    ASSERT_NO_FATAL_FAILURE(Receive(round));
    ASSERT_NO_FATAL_FAILURE(ExpectDone(
        b->rx_cq, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, nullptr));
    ASSERT_EQ(memory, round);
  }
}

TEST_F(OrderTest, ReadWaitsForTheMessageBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(FI_ORDER_RAS));
  uint64_t memory = 0;
  const Region target(*b, &memory, sizeof(memory));
  for (uint64_t round = 1; round <= 5; ++round) {
    uint64_t back = 0;
    ASSERT_NO_FATAL_FAILURE(Send(round));
    ASSERT_EQ(fi_read(a->ep, &back, sizeof(back), nullptr, to_b, 0,
                      target.key(), nullptr),
              0);
    ASSERT_TRUE(StaysEmpty(a->tx_cq));
    memory = round;  // Nobody reads it before the message has been received.
    ASSERT_NO_FATAL_FAILURE(Receive(round));
    ExpectDone(a->tx_cq, FI_RMA | FI_READ, nullptr);
    ASSERT_EQ(back, round);
  }
}

// Of two writes to one place the later one stays.
TEST_F(OrderTest, WritesToOnePlaceLandInOrder) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(FI_ORDER_WAW));
  std::vector<uint8_t> memory(20000);
  const Region target(*b, memory.data(), memory.size());
  const std::vector<uint8_t> last = {1};
  for (uint32_t round = 0; round < kRounds; ++round) {
    const std::vector<uint8_t> first = Pattern(memory.size(), round);
    const std::vector<uint8_t> second = Pattern(9000, round + 1);
    ASSERT_NO_FATAL_FAILURE(Write(first, target, 0));
    ASSERT_NO_FATAL_FAILURE(Write(second, target, 3000));
    ASSERT_EQ(fi_writedata(a->ep, last.data(), 1, nullptr, round, to_b, 0,
                           target.key(), nullptr),
              0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(
        b->rx_cq, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, nullptr));
    std::vector<uint8_t> expected = first;
    std::copy(second.begin(), second.end(), expected.begin() + 3000);
    expected[0] = last[0];
    ASSERT_EQ(memory, expected) << round;
    for (int i = 0; i < 3; ++i) {
      ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr);
    }
  }
}

TEST_F(OrderTest, ReadSeesTheWritesBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(OpenWith(FI_ORDER_RAW));
  std::vector<uint8_t> memory(20000);
  const Region target(*b, memory.data(), memory.size());
  for (uint32_t round = 0; round < kRounds; ++round) {
    const std::vector<uint8_t> data = Pattern(memory.size(), round);
    std::vector<uint8_t> back(memory.size());
    ASSERT_NO_FATAL_FAILURE(Write(data, target, 0));
    ASSERT_EQ(fi_read(a->ep, back.data(), back.size(), nullptr, to_b, 0,
                      target.key(), nullptr),
              0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a->tx_cq, FI_RMA | FI_WRITE, nullptr));
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a->tx_cq, FI_RMA | FI_READ, nullptr));
    ASSERT_EQ(back, data) << round;
  }
}

#if !defined(__SANITIZE_THREAD__)
// An order that was not requested is not kept: on a lossy wire one of two
// operations soon overtakes the other. These tests look at memory, and change
// it, while operations access it: a data race for ThreadSanitizer.
struct OvertakingTest : OrderTest {
  // Opens with `order`, of no class of operation that `round` posts, and calls
  // `round`, which answers whether something was overtaken, until it was.
  template <typename Round>
  void ExpectOvertaken(uint64_t order, Round round) {
    constexpr uint64_t kMost = 2000;
    ASSERT_NO_FATAL_FAILURE(OpenWith(order));
    const Region region(*b, &memory, sizeof(memory));
    key = region.key();
    descriptor = region.descriptor();
    for (uint64_t i = 1; i <= kMost; ++i) {
      const bool overtaken = round(i);
      ASSERT_FALSE(HasFailure()) << i;
      if (overtaken) {
        return;
      }
    }
    FAIL() << "in order, " << kMost << " times";
  }

  void Receive() {
    ASSERT_EQ(fi_recv(b->ep, &memory, sizeof(memory), descriptor,
                      FI_ADDR_UNSPEC, nullptr),
              0);
  }
  void SendValue(uint64_t value) {
    ASSERT_EQ(fi_inject(a->ep, &value, sizeof(value), to_b), 0);
  }
  void Write(const uint64_t& value) {
    ASSERT_EQ(
        fi_write(a->ep, &value, sizeof(value), nullptr, to_b, 0, key, nullptr),
        0);
  }
  void Read(uint64_t* value) {
    ASSERT_EQ(
        fi_read(a->ep, value, sizeof(*value), nullptr, to_b, 0, key, nullptr),
        0);
  }
  Outcome Next(fid_cq* queue) {
    const auto next = Take(queue);
    EXPECT_TRUE(next.has_value() && !next->error);
    return next.value_or(Outcome{});
  }
  void Ended(size_t operations) {
    for (size_t i = 0; i < operations; ++i) {
      (void)Next(a->tx_cq);
    }
  }

  uint64_t memory = 0;
  uint64_t key = 0;
  void* descriptor = nullptr;
};

TEST_F(OvertakingTest, MessageOvertakesMessage) {
  ExpectOvertaken(FI_ORDER_RMA_RAR, [this](uint64_t round) {
    Receive();
    Receive();
    SendValue(2 * round);
    SendValue(2 * round + 1);
    (void)Next(b->rx_cq);
    const bool second = memory == 2 * round + 1;
    (void)Next(b->rx_cq);
    return second;
  });
}

TEST_F(OvertakingTest, WriteOvertakesWrite) {
  ExpectOvertaken(FI_ORDER_SAS, [this](uint64_t round) {
    const uint64_t values[] = {2 * round, 2 * round + 1};
    Write(values[0]);
    Write(values[1]);
    Ended(2);
    return memory == values[0];
  });
}

TEST_F(OvertakingTest, ReadOvertakesWrite) {
  ExpectOvertaken(FI_ORDER_SAS, [this](uint64_t round) {
    uint64_t back = 0;
    Write(round);
    Read(&back);
    Ended(2);
    return back != round;
  });
}

TEST_F(OvertakingTest, WriteOvertakesRead) {
  ExpectOvertaken(FI_ORDER_SAS, [this](uint64_t round) {
    uint64_t back = 0;
    Read(&back);
    Write(round);
    Ended(2);
    return back == round;
  });
}

TEST_F(OvertakingTest, ReadOvertakesRead) {
  ExpectOvertaken(FI_ORDER_SAS, [this](uint64_t /*round*/) {
    uint64_t back[2] = {};
    Read(&back[0]);
    Read(&back[1]);
    for (size_t ended = 0; ended < 2;) {
      fi_cq_tagged_entry entry;
      ended += fi_cq_read(a->tx_cq, &entry, 1) == 1 ? 1 : 0;
      ++memory;  // Each read gets another value.
    }
    return back[0] > back[1];
  });
}

TEST_F(OvertakingTest, MessageOvertakesWrite) {
  ExpectOvertaken(FI_ORDER_RMA_RAR, [this](uint64_t round) {
    uint64_t taken = 0;
    EXPECT_EQ(
        fi_recv(b->ep, &taken, sizeof(taken), nullptr, FI_ADDR_UNSPEC, nullptr),
        0);
    Write(round);
    SendValue(round);
    (void)Next(b->rx_cq);
    const bool overtaken = memory != round;
    Ended(1);
    return overtaken;
  });
}

TEST_F(OvertakingTest, WriteOvertakesMessage) {
  ExpectOvertaken(FI_ORDER_RMA_RAR, [this](uint64_t round) {
    Receive();
    SendValue(round);
    EXPECT_EQ(
        fi_inject_writedata(a->ep, &round, sizeof(round), round, to_b, 0, key),
        0);
    const Outcome first = Next(b->rx_cq);
    (void)Next(b->rx_cq);
    return (first.entry.flags & FI_REMOTE_WRITE) != 0;
  });
}

TEST_F(OvertakingTest, ReadOvertakesMessage) {
  ExpectOvertaken(FI_ORDER_WAW, [this](uint64_t round) {
    uint64_t back = 0;
    Receive();
    SendValue(round);
    Read(&back);
    Ended(1);
    (void)Next(b->rx_cq);
    return back != round;
  });
}

TEST_F(OvertakingTest, MessageOvertakesRead) {
  ExpectOvertaken(FI_ORDER_WAW, [this](uint64_t round) {
    uint64_t back = 0;
    Receive();
    Read(&back);
    SendValue(round);
    (void)Next(b->rx_cq);
    Ended(1);
    return back == round;
  });
}

// Without FI_ORDER_STRICT.
TEST_F(OvertakingTest, CompletionOvertakesCompletion) {
  ExpectOvertaken(FI_ORDER_SAS, [this](uint64_t round) {
    uint64_t back = 0;
    Read(&back);
    Write(round);
    const Outcome first = Next(a->tx_cq);
    Ended(1);
    return (first.entry.flags & FI_WRITE) != 0;
  });
}

#endif

}  // namespace
}  // namespace heddle::test
