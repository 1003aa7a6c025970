// SPDX-License-Identifier: Apache-2.0
// Order of messages, of remote access and of completions.
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t kLocal = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
constexpr uint64_t kRounds = 100;

// Operations follow each other without a wait for the one before. Node a
// initiates, node b is the target.
class OrderTest : public NodesTest {
 protected:
  bool OpenOrdered(uint64_t order, uint64_t caps, size_t count = 2) {
    NodeOptions options;
    options.caps = caps;
    options.hints = [order](fi_info& hints) {
      hints.tx_attr->msg_order = order;
      hints.rx_attr->msg_order = order;
    };
    if (!Open(options, count)) {
      return false;
    }
    EXPECT_EQ(a().info->tx_attr->msg_order & order, order);
    EXPECT_EQ(b().info->rx_attr->msg_order & order, order);
    return !HasFailure();
  }

  // False, with the verdict, if the order does not extend to data of 8 bytes.
  static bool Covers(size_t limit) {
    if (limit < 8) {
      NotOffered("order of data");
    }
    return limit >= 8;
  }

  void Write(Buffer& source, size_t index, Buffer& target) {
    ASSERT_EQ(Post([&] {
                return fi_write(a().ep, source.data() + 8 * index, 8,
                                source.desc(), to_b(), target.address(),
                                target.key(), NewContext());
              }),
              0);
  }

  void Read(Buffer& sink, size_t index, Buffer& target) {
    ASSERT_EQ(Post([&] {
                return fi_read(a().ep, sink.data() + 8 * index, 8, sink.desc(),
                               to_b(), target.address(), target.key(),
                               NewContext());
              }),
              0);
  }

  void ReadAfterRead(uint64_t order);
  void ReadAfterWrite(uint64_t order);
  void WriteAfterRead(uint64_t order);
  void WriteAfterWrite(uint64_t order);

  fi_context2 receive_context_ = {};
};

uint64_t ValueAt(const Buffer& buffer, size_t index) {
  uint64_t value = 0;
  std::memcpy(&value, buffer.bytes().data() + 8 * index, 8);
  return value;
}

// The values of memory that peers access at the same time.
__attribute__((no_sanitize("thread"))) uint64_t LoadValue(Buffer& buffer) {
  return *reinterpret_cast<const volatile uint64_t*>(buffer.data());
}

__attribute__((no_sanitize("thread"))) void StoreValue(Buffer& buffer,
                                                       uint64_t value) {
  *reinterpret_cast<volatile uint64_t*>(buffer.data()) = value;
}

// Values 1, 2, 3 and so on.
void Count(Buffer& buffer) {
  for (uint64_t i = 0; i < buffer.size() / 8; ++i) {
    const uint64_t value = i + 1;
    std::memcpy(buffer.data() + 8 * i, &value, 8);
  }
}

void OrderTest::ReadAfterRead(uint64_t order) {
  if (!OpenOrdered(order, FI_MSG | FI_RMA)) {
    return;
  }
  Buffer sink(a(), 8 * kRounds, kLocal);
  Buffer target(b(), 8, kRemote);
  // The value grows from read to read, and never shrinks.
  for (size_t i = 0; i < kRounds; ++i) {
    StoreValue(target, i);
    ASSERT_NO_FATAL_FAILURE(Read(sink, i, target));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectSent(kRounds));
  for (size_t i = 1; i < kRounds; ++i) {
    EXPECT_GE(ValueAt(sink, i), ValueAt(sink, i - 1)) << i;
  }
}

void OrderTest::ReadAfterWrite(uint64_t order) {
  if (!OpenOrdered(order, FI_MSG | FI_RMA) ||
      !Covers(a().info->ep_attr->max_order_raw_size)) {
    return;
  }
  Buffer source(a(), 8 * kRounds, kLocal);
  Buffer sink(a(), 8 * kRounds, kLocal);
  Buffer target(b(), 8, kRemote);
  Count(source);
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_NO_FATAL_FAILURE(Write(source, i, target));
    ASSERT_NO_FATAL_FAILURE(Read(sink, i, target));
    // Later writes do not come before this read.
    ASSERT_NO_FATAL_FAILURE(ExpectSent(2));
    ASSERT_EQ(ValueAt(sink, i), i + 1);
  }
}

void OrderTest::WriteAfterRead(uint64_t order) {
  if (!OpenOrdered(order, FI_MSG | FI_RMA) ||
      !Covers(a().info->ep_attr->max_order_war_size)) {
    return;
  }
  Buffer source(a(), 8 * kRounds, kLocal);
  Buffer sink(a(), 8 * kRounds, kLocal);
  Buffer target(b(), 8, kRemote);
  Count(source);
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_NO_FATAL_FAILURE(Read(sink, i, target));
    ASSERT_NO_FATAL_FAILURE(Write(source, i, target));
    ASSERT_NO_FATAL_FAILURE(ExpectSent(2));
    ASSERT_TRUE(WaitUntil([&] { return LoadValue(target) == i + 1; }));
    ASSERT_EQ(ValueAt(sink, i), i) << "the value before the write";
  }
}

void OrderTest::WriteAfterWrite(uint64_t order) {
  if (!OpenOrdered(order, FI_MSG | FI_RMA) ||
      !Covers(a().info->ep_attr->max_order_waw_size)) {
    return;
  }
  Buffer source(a(), 8 * kRounds, kLocal);
  Buffer target(b(), 8, kRemote);
  Count(source);
  uint64_t seen = 0;
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_NO_FATAL_FAILURE(Write(source, i, target));
    const uint64_t value = LoadValue(target);
    ASSERT_GE(value, seen);
    seen = value;
  }
  ASSERT_NO_FATAL_FAILURE(ExpectSent(kRounds));
  EXPECT_TRUE(WaitUntil([&] { return LoadValue(target) == kRounds; }));
  EXPECT_TRUE(StaysEmpty(a().tx));
  EXPECT_EQ(LoadValue(target), kRounds) << "the last write is the last";
}

// Overlapping ranges of one region, up to the size for which order of data is
// kept, at random places.
CONFORMANCE_TEST(OrderTest, OverlappingDataKeepTheirOrder, 207) {
  if (!OpenOrdered(FI_ORDER_WAW | FI_ORDER_RAW, FI_MSG | FI_RMA)) {
    return;
  }
  constexpr size_t kBytes = 20'000;
  constexpr size_t kWrites = 60;
  const fi_ep_attr& limits = *a().info->ep_attr;
  const size_t limit =
      std::min({limits.max_order_waw_size, limits.max_order_raw_size, kBytes});
  if (!Covers(limit)) {
    return;
  }
  std::mt19937 random(CurrentSettings().seed);
  Buffer source(a(), kWrites * kBytes, kLocal);
  Buffer sink(a(), kWrites * kBytes, kLocal);
  Buffer target(b(), kBytes, kRemote);
  std::vector<uint8_t> expected(kBytes);
  for (size_t i = 0; i < kWrites; ++i) {
    const size_t bytes = 1 + random() % limit;
    const size_t offset = random() % (kBytes - bytes + 1);
    uint8_t* const data = source.data() + i * kBytes;
    uint8_t* const place = sink.data() + i * kBytes;
    std::memset(data, static_cast<int>(i + 1), bytes);
    std::memset(expected.data() + offset, static_cast<int>(i + 1), bytes);
    ASSERT_EQ(Post([&] {
                return fi_write(a().ep, data, bytes, source.desc(), to_b(),
                                target.address() + offset, target.key(),
                                NewContext());
              }),
              0);
    ASSERT_EQ(Post([&] {
                return fi_read(a().ep, place, bytes, sink.desc(), to_b(),
                               target.address() + offset, target.key(),
                               NewContext());
              }),
              0);
    // Every third read is followed by a wait: a later write may be in it
    // otherwise.
    if (i % 3 == 2) {
      ASSERT_NO_FATAL_FAILURE(ExpectSent(6));
      EXPECT_EQ(std::memcmp(place, data, bytes), 0) << i;
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return target.bytes() == expected; }));
  EXPECT_TRUE(StaysEmpty(a().tx));
  EXPECT_EQ(target.bytes(), expected);
}

CONFORMANCE_TEST(OrderTest, ReadFollowsRead, 223) {
  ReadAfterRead(FI_ORDER_RAR);
}

CONFORMANCE_TEST(OrderTest, ReadFollowsWrite, 224) {
  ReadAfterWrite(FI_ORDER_RAW);
}

CONFORMANCE_TEST(OrderTest, WriteFollowsRead, 226) {
  WriteAfterRead(FI_ORDER_WAR);
}

CONFORMANCE_TEST(OrderTest, WriteFollowsWrite, 227, 234) {
  WriteAfterWrite(FI_ORDER_WAW);
}

CONFORMANCE_TEST(OrderTest, ReadFollowsReadOfRemoteAccessAlone, 232) {
  ReadAfterRead(FI_ORDER_RMA_RAR);
}

CONFORMANCE_TEST(OrderTest, ReadFollowsWriteOfRemoteAccessAlone, 232) {
  ReadAfterWrite(FI_ORDER_RMA_RAW);
}

CONFORMANCE_TEST(OrderTest, WriteFollowsReadOfRemoteAccessAlone, 232) {
  WriteAfterRead(FI_ORDER_RMA_WAR);
}

CONFORMANCE_TEST(OrderTest, WriteFollowsWriteOfRemoteAccessAlone, 232) {
  WriteAfterWrite(FI_ORDER_RMA_WAW);
}

CONFORMANCE_TEST(OrderTest, ReadFollowsSend, 225) {
  if (!OpenOrdered(FI_ORDER_RAS, FI_MSG | FI_RMA)) {
    return;
  }
  Buffer sent(a(), 8 * kRounds, kLocal);
  Buffer sink(a(), 8 * kRounds, kLocal);
  Buffer received(b(), 8, kRemote | FI_RECV);
  Count(sent);
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(Receive(received, &receive_context_), 0);
    ASSERT_EQ(Post([&] {
                return fi_send(a().ep, sent.data() + 8 * i, 8, sent.desc(),
                               to_b(), NewContext());
              }),
              0);
    ASSERT_NO_FATAL_FAILURE(Read(sink, i, received));
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &receive_context_));
    ASSERT_NO_FATAL_FAILURE(ExpectSent(2));
    ASSERT_EQ(ValueAt(sink, i), i + 1) << "what the message brought";
  }
}

CONFORMANCE_TEST(OrderTest, WriteFollowsSend, 228) {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA;
  options.hints = [](fi_info& hints) {
    hints.tx_attr->msg_order = FI_ORDER_WAS;
    hints.rx_attr->msg_order = FI_ORDER_WAS;
    // By it the entries show in which order the target processed them.
    hints.rx_attr->comp_order = FI_ORDER_STRICT;
    hints.domain_attr->cq_data_size = 4;
  };
  if (!Open(options)) {
    return;
  }
  Buffer sent(a(), 8, kLocal);
  Buffer received(b(), 8);
  Buffer target(b(), 8, kRemote);
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(Receive(received, &receive_context_), 0);
    ASSERT_EQ(Send(sent, 8, NewContext()), 0);
    ASSERT_EQ(Post([&] {
                return fi_writedata(a().ep, sent.data(), 8, sent.desc(), i,
                                    to_b(), target.address(), target.key(),
                                    NewContext());
              }),
              0);
    const auto first = Take(b().rx);
    const auto second = Take(b().rx);
    ASSERT_TRUE(first.has_value() && second.has_value());
    ASSERT_FALSE(first->error || second->error);
    ASSERT_EQ(first->entry.op_context, &receive_context_);
    ASSERT_NE(second->entry.flags & FI_REMOTE_WRITE, 0U);
    ASSERT_EQ(second->entry.data, i);
    ASSERT_NO_FATAL_FAILURE(ExpectSent(2));
  }
}

CONFORMANCE_TEST(OrderTest, SendFollowsRead, 229) {
  if (!OpenOrdered(FI_ORDER_SAR, FI_MSG | FI_RMA)) {
    return;
  }
  Buffer sent(a(), 8);
  Buffer sink(a(), 8 * kRounds, kLocal);
  Buffer received(b(), 8);
  Buffer target(b(), 8, kRemote);
  // The receiver of the message changes what is read.
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(Receive(received, &receive_context_), 0);
    ASSERT_NO_FATAL_FAILURE(Read(sink, i, target));
    ASSERT_EQ(Send(sent, 8, NewContext()), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &receive_context_));
    StoreValue(target, i + 1);
    ASSERT_NO_FATAL_FAILURE(ExpectSent(2));
    ASSERT_EQ(ValueAt(sink, i), i) << "the value before the message";
  }
}

CONFORMANCE_TEST(OrderTest, SendFollowsWrite, 230) {
  if (!OpenOrdered(FI_ORDER_SAW, FI_MSG | FI_RMA)) {
    return;
  }
  Buffer source(a(), 8 * kRounds, kLocal);
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  Buffer target(b(), 8, kRemote);
  Count(source);
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(Receive(received, &receive_context_), 0);
    ASSERT_NO_FATAL_FAILURE(Write(source, i, target));
    ASSERT_EQ(Send(sent, 8, NewContext()), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &receive_context_));
    ASSERT_EQ(LoadValue(target), i + 1) << "the value before the message";
    ASSERT_NO_FATAL_FAILURE(ExpectSent(2));
  }
}

// Lengths of which some take longer than those that follow.
constexpr std::array<size_t, 8> kLengths = {100'000, 8, 5000, 0,
                                            300'000, 1, 64,   20'000};

CONFORMANCE_TEST(OrderTest, SendFollowsSend, 231, 234, 237) {
  if (!OpenOrdered(FI_ORDER_SAS, FI_MSG)) {
    return;
  }
  // Data of a long message may come after a later one; it matches first. Half
  // of the receives are posted before the messages.
  std::array<fi_context2, kLengths.size()> contexts = {};
  std::vector<std::unique_ptr<Buffer>> sent;
  std::vector<std::unique_ptr<Buffer>> received;
  const auto receive = [&](size_t i) {
    received.push_back(std::make_unique<Buffer>(b(), 300'000));
    ASSERT_EQ(Receive(*received.back(), &contexts.at(i)), 0);
  };
  for (size_t i = 0; i < kLengths.size() / 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(receive(i));
  }
  for (size_t i = 0; i < kLengths.size(); ++i) {
    sent.push_back(std::make_unique<Buffer>(a(), kLengths.at(i) + 1));
    sent.back()->Fill(static_cast<uint32_t>(i));
    ASSERT_EQ(Send(*sent.back(), kLengths.at(i), NewContext()), 0);
  }
  for (size_t i = kLengths.size() / 2; i < kLengths.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(receive(i));
  }
  std::array<size_t, kLengths.size()> lengths = {};
  for (size_t i = 0; i < kLengths.size(); ++i) {
    const auto completion = Take(b().rx);
    ASSERT_TRUE(completion.has_value());
    ASSERT_FALSE(completion->error);
    const auto index = static_cast<size_t>(
        static_cast<fi_context2*>(completion->entry.op_context) -
        contexts.data());
    ASSERT_LT(index, kLengths.size());
    lengths.at(index) = completion->entry.len;
  }
  EXPECT_EQ(lengths, kLengths);
  for (size_t i = 0; i < kLengths.size(); ++i) {
    EXPECT_EQ(
        std::memcmp(received.at(i)->data(), sent.at(i)->data(), kLengths.at(i)),
        0)
        << i;
  }
  ExpectSent(kLengths.size());
}

CONFORMANCE_TEST(OrderTest, DestinationsDoNotWaitForEachOther, 236) {
  if (!OpenOrdered(FI_ORDER_SAS, FI_MSG, 3)) {
    return;
  }
  Buffer first(a(), 1'000'000);
  Buffer second(a(), 8);
  Buffer at_b(b(), 1'000'000);
  Buffer at_c(c(), 8);
  fi_context2 contexts[2] = {};
  ASSERT_EQ(fi_recv(c().ep, at_c.data(), 8, at_c.desc(), FI_ADDR_UNSPEC,
                    &contexts[0]),
            0);
  // Node b has no receive yet.
  ASSERT_EQ(Send(first, first.size(), NewContext()), 0);
  ASSERT_EQ(Post([&] {
              return fi_send(a().ep, second.data(), 8, second.desc(),
                             Address(0, 2), NewContext());
            }),
            0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(c().rx, &contexts[0]));
  EXPECT_TRUE(b().rx.taken.empty());
  ASSERT_EQ(Receive(at_b, &contexts[1]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[1]));
  ExpectSent(2);
}

uint64_t& Order(fi_info& info, bool transmit) {
  return transmit ? info.tx_attr->msg_order : info.rx_attr->msg_order;
}

CONFORMANCE_TEST(OrderTest, NoneIsAcceptedAndBitsMayBeCleared, 222) {
  const Answer answer = GetInfo(MakeHints(FI_MSG).get());
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    const InfoPointer cleared(fi_dupinfo(info));
    cleared->tx_attr->msg_order = FI_ORDER_NONE;
    cleared->rx_attr->msg_order = FI_ORDER_NONE;
    const Answer again = GetInfo(cleared.get());
    EXPECT_EQ(again.result, 0);
    EXPECT_FALSE(again.empty());
  }
}

CONFORMANCE_TEST(OrderTest, AnswerHasTheOrderOrThereIsNoData, 235) {
  constexpr uint64_t kUnknown = uint64_t{1} << 50U;
  for (const bool transmit : {true, false}) {
    for (const uint64_t order :
         {FI_ORDER_RAR, FI_ORDER_RAW, FI_ORDER_RAS, FI_ORDER_WAR, FI_ORDER_WAW,
          FI_ORDER_WAS, FI_ORDER_SAR, FI_ORDER_SAW, FI_ORDER_SAS,
          FI_ORDER_RMA_RAR, FI_ORDER_RMA_RAW, FI_ORDER_RMA_WAR,
          FI_ORDER_RMA_WAW, FI_ORDER_ATOMIC_RAR, FI_ORDER_ATOMIC_RAW,
          FI_ORDER_ATOMIC_WAR, FI_ORDER_ATOMIC_WAW}) {
      const InfoPointer hints = MakeHints(FI_MSG | FI_RMA);
      Order(*hints, transmit) = order;
      const Answer answer = GetInfo(hints.get());
      if (answer.result != 0) {
        EXPECT_EQ(answer.result, -FI_ENODATA) << std::hex << order;
      }
      for (const fi_info* info : answer.own()) {
        const InfoPointer copy(fi_dupinfo(info));
        EXPECT_EQ(Order(*copy, transmit) & order, order) << std::hex << order;
      }
    }
    const InfoPointer hints = MakeHints(FI_MSG);
    Order(*hints, transmit) = kUnknown;
    EXPECT_EQ(GetInfo(hints.get()).result, -FI_ENODATA) << "an unknown order";
  }
}

// Long reads and messages before short operations, of each kind: without the
// order the short ones complete first.
CONFORMANCE_TEST(OrderTest, OperationsCompleteInOrder, 238) {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA;
  options.hints = [](fi_info& hints) {
    hints.tx_attr->comp_order = FI_ORDER_STRICT;
  };
  if (!Open(options)) {
    return;
  }
  EXPECT_EQ(a().info->tx_attr->comp_order & FI_ORDER_STRICT, FI_ORDER_STRICT);
  constexpr size_t kLong = 300'000;
  Buffer local(a(), 2 * kLong, kLocal);
  Buffer received(b(), kLong);
  Buffer target(b(), kLong, kRemote);
  const auto send = [&](size_t bytes, void* context) {
    return fi_send(a().ep, local.data(), bytes, local.desc(), to_b(), context);
  };
  const auto write = [&](size_t bytes, void* context) {
    return fi_write(a().ep, local.data(), bytes, local.desc(), to_b(),
                    target.address(), target.key(), context);
  };
  const auto read = [&](size_t bytes, void* context) {
    return fi_read(a().ep, local.data() + kLong, bytes, local.desc(), to_b(),
                   target.address(), target.key(), context);
  };
  const std::function<ssize_t(void*)> calls[] = {
      [&](void* context) { return read(kLong, context); },
      [&](void* context) { return write(8, context); },
      [&](void* context) { return send(8, context); },
      [&](void* context) { return send(kLong, context); },
      [&](void* context) { return read(8, context); },
      [&](void* context) { return write(20'000, context); },
      [&](void* context) { return write(0, context); },
  };
  std::array<fi_context2, std::size(calls)> contexts = {};
  for (size_t round = 0; round < 10; ++round) {
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(Receive(received, NewContext()), 0);
    }
    for (size_t i = 0; i < std::size(calls); ++i) {
      ASSERT_EQ(Post([&] { return calls[i](&contexts.at(i)); }), 0) << i;
    }
    std::vector<ptrdiff_t> completed;
    for (size_t i = 0; i < std::size(calls); ++i) {
      const auto completion = Take(a().tx);
      ASSERT_TRUE(completion.has_value()) << i;
      completed.push_back(
          static_cast<fi_context2*>(completion->entry.op_context) -
          contexts.data());
    }
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(Take(b().rx).has_value());
    }
    ASSERT_TRUE(std::is_sorted(completed.begin(), completed.end()))
        << "round " << round << ": " << testing::PrintToString(completed);
  }
}

CONFORMANCE_TEST(OrderTest, CompletionOrderIsNoWeakerThanTheHints, 239) {
  struct Case {
    bool transmit;
    uint64_t order;
  };
  for (const auto& [transmit, order] :
       {Case{true, FI_ORDER_NONE}, Case{true, FI_ORDER_STRICT},
        Case{false, FI_ORDER_NONE}, Case{false, FI_ORDER_STRICT},
        Case{false, FI_ORDER_STRICT | FI_ORDER_DATA}}) {
    const InfoPointer hints = MakeHints(FI_MSG);
    (transmit ? hints->tx_attr->comp_order : hints->rx_attr->comp_order) =
        order;
    const Answer answer = GetInfo(hints.get());
    if (answer.result != 0) {
      EXPECT_EQ(answer.result, -FI_ENODATA) << order;
      EXPECT_NE(order, uint64_t{FI_ORDER_NONE}) << "any order is accepted";
    }
    for (const fi_info* info : answer.own()) {
      const uint64_t offered =
          transmit ? info->tx_attr->comp_order : info->rx_attr->comp_order;
      EXPECT_EQ(offered & order, order) << "transmit: " << transmit;
    }
  }
}

CONFORMANCE_TEST(OrderTest, ReceivesCompleteInOrder, 240) {
  NodeOptions options;
  options.hints = [](fi_info& hints) {
    hints.tx_attr->msg_order = FI_ORDER_SAS;
    hints.rx_attr->msg_order = FI_ORDER_SAS;
    hints.rx_attr->comp_order = FI_ORDER_STRICT;
  };
  if (!Open(options)) {
    return;
  }
  std::array<fi_context2, kLengths.size()> contexts = {};
  std::vector<std::unique_ptr<Buffer>> sent;
  std::vector<std::unique_ptr<Buffer>> received;
  for (size_t i = 0; i < kLengths.size(); ++i) {
    received.push_back(std::make_unique<Buffer>(b(), 300'000));
    ASSERT_EQ(Receive(*received.back(), &contexts.at(i)), 0);
  }
  for (const size_t bytes : kLengths) {
    sent.push_back(std::make_unique<Buffer>(a(), bytes + 1));
    ASSERT_EQ(Send(*sent.back(), bytes, NewContext()), 0);
  }
  for (size_t i = 0; i < kLengths.size(); ++i) {
    const auto completion = Take(b().rx);
    ASSERT_TRUE(completion.has_value());
    ASSERT_FALSE(completion->error);
    EXPECT_EQ(completion->entry.op_context, &contexts.at(i));
    EXPECT_EQ(completion->entry.len, kLengths.at(i));
  }
  ExpectSent(kLengths.size());
}

CONFORMANCE_TEST(OrderTest, BytesAreReceivedInOrder, 240) {
  NodeOptions options;
  options.hints = [](fi_info& hints) {
    hints.rx_attr->comp_order = FI_ORDER_STRICT | FI_ORDER_DATA;
  };
  if (!Open(options)) {
    return;
  }
  constexpr size_t kBytes = 200'000;
  Buffer sent(a(), kBytes);
  Buffer received(b(), kBytes);
  for (uint32_t round = 0; round < 5; ++round) {
    sent.Fill(round);
    ASSERT_EQ(Receive(received, &receive_context_), 0);
    ASSERT_EQ(Send(sent, kBytes, NewContext()), 0);
    const uint8_t last = sent.bytes().back();
    ASSERT_TRUE(
        WaitUntil([&] { return Load(&received.bytes().back()) == last; }));
    for (size_t i = 0; i < kBytes; ++i) {
      ASSERT_EQ(Load(&received.bytes().at(i)), sent.bytes().at(i)) << i;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &receive_context_));
    ASSERT_NO_FATAL_FAILURE(ExpectSent(1));
  }
}

}  // namespace
}  // namespace heddle::conformance
