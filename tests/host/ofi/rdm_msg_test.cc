// SPDX-License-Identifier: Apache-2.0
// Message transfer between RDM endpoints, on the device that FI_HEDDLE_DEVICE
// names.
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <thread>

#include "tests/host/ofi/ip_name.h"
#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

class MessageTest : public PairTest {};

TEST_F(MessageTest, CarriesEverySizeUnchanged) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const size_t bytes :
       {0,    1,    7,    8,    15,   16,    17,    63,    64,    65,
        128,  191,  192,  193,  255,  256,   257,   1023,  1024,  1025,
        4095, 4096, 4097, 8192, 9000, 16384, 65535, 65536, 65537, 70000}) {
    SCOPED_TRACE(bytes);
    const std::vector<uint8_t> sent = Pattern(bytes);
    std::vector<uint8_t> received(bytes);
    ASSERT_NO_FATAL_FAILURE(Exchange(sent, received));
    ASSERT_EQ(sent, received);
  }
}

TEST_F(MessageTest, ShorterMessageLeavesTheRestOfTheBuffer) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const size_t bytes : {0, 10, 100, 1000, 10000}) {
    SCOPED_TRACE(bytes);
    const std::vector<uint8_t> sent = Pattern(bytes);
    std::vector<uint8_t> received(100000, 0xee);
    ASSERT_NO_FATAL_FAILURE(Exchange(sent, received));
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), received.begin()));
    EXPECT_EQ(
        static_cast<size_t>(std::count(
            received.begin() + static_cast<int>(bytes), received.end(), 0xee)),
        received.size() - bytes);
  }
}

TEST_F(MessageTest, MessagesOfOnePairArriveInOrder) {
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr uint32_t kMessages = 200;
  std::vector<std::array<uint32_t, 200>> received(kMessages);
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(fi_recv(b->ep, received[i].data(), sizeof(received[i]), nullptr,
                      FI_ADDR_UNSPEC, &received[i]),
              0);
  }
  uint32_t done = 0;
  for (uint32_t i = 0; i < kMessages; ++i) {
    // Sizes on each side of every limit, so that all ways are mixed.
    std::array<uint32_t, 200> sent;
    sent.fill(i);
    const size_t bytes = 4 + i % 200 * 4;
    ASSERT_TRUE(WaitUntil([&] {
      Outcome ignored;
      (void)fi_cq_read(a->tx_cq, &ignored.entry, 1);
      return fi_send(a->ep, sent.data(), bytes, nullptr, to_b, nullptr) == 0;
    }));
    // Unregistered data of this size may be changed at once.
    sent.fill(0xdead);
  }
  for (; done < kMessages; ++done) {
    const auto outcome = Take(b->rx_cq);
    ASSERT_TRUE(outcome.has_value());
    ASSERT_EQ(outcome->entry.op_context, &received[done]);
    ASSERT_EQ(outcome->entry.len, 4 + done % 200 * 4);
    ASSERT_EQ(received[done][0], done);
    ASSERT_EQ(received[done][done % 200], done);
  }
}

TEST_F(MessageTest, BothDirectionsAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr size_t kMessages = 64;
  constexpr size_t kBytes = 3000;
  struct Side {
    Node* node;
    fi_addr_t peer;
    std::vector<uint8_t> data;
    std::vector<std::vector<uint8_t>> buffers;
  };
  Side sides[] = {{a.get(), to_b, Pattern(kBytes, 1), {}},
                  {b.get(), to_a, Pattern(kBytes, 2), {}}};
  for (Side& side : sides) {
    side.buffers.assign(kMessages, std::vector<uint8_t>(kBytes));
    for (auto& buffer : side.buffers) {
      ASSERT_EQ(fi_recv(side.node->ep, buffer.data(), kBytes, nullptr,
                        FI_ADDR_UNSPEC, nullptr),
                0);
    }
  }
  for (size_t i = 0; i < kMessages; ++i) {
    for (const Side& side : sides) {
      ASSERT_EQ(fi_send(side.node->ep, side.data.data(), kBytes, nullptr,
                        side.peer, nullptr),
                0);
    }
  }
  for (size_t i = 0; i < kMessages; ++i) {
    for (const Side& side : sides) {
      ASSERT_TRUE(Take(side.node->rx_cq).has_value());
      ASSERT_TRUE(Take(side.node->tx_cq).has_value());
    }
  }
  for (size_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(sides[0].buffers[i], sides[1].data);
    EXPECT_EQ(sides[1].buffers[i], sides[0].data);
  }
}

// ----------------------------------------------------------------- vectors

TEST_F(MessageTest, GathersAndScattersUpToTheLimit) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_EQ(a->info->tx_attr->iov_limit, 4U);
  ASSERT_EQ(a->info->rx_attr->iov_limit, 4U);
  for (const size_t piece : {0, 3, 40, 700, 20000}) {
    SCOPED_TRACE(piece);
    const std::vector<uint8_t> sent = Pattern(4 * piece);
    std::vector<uint8_t> received(4 * piece);
    iovec from[4];
    iovec to[4];
    for (size_t i = 0; i < 4; ++i) {
      from[i] = {.iov_base = const_cast<uint8_t*>(sent.data() + i * piece),
                 .iov_len = piece};
      to[i] = {.iov_base = received.data() + i * piece, .iov_len = piece};
    }
    ASSERT_EQ(fi_recvv(b->ep, to, nullptr, 4, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_sendv(a->ep, from, nullptr, 4, to_b, nullptr), 0);
    // Vectors may be reused at once (no FI_ASYNC_IOV).
    std::memset(static_cast<void*>(from), 0, sizeof(from));
    std::memset(static_cast<void*>(to), 0, sizeof(to));
    ASSERT_TRUE(Take(b->rx_cq).has_value());
    ASSERT_TRUE(Take(a->tx_cq).has_value());
    EXPECT_EQ(sent, received);
  }
}

TEST_F(MessageTest, TooManySegmentsAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Open());
  uint8_t byte = 0;
  iovec parts[5];
  for (iovec& part : parts) {
    part = {.iov_base = &byte, .iov_len = 1};
  }
  EXPECT_EQ(fi_sendv(a->ep, parts, nullptr, 5, to_b, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_recvv(a->ep, parts, nullptr, 5, FI_ADDR_UNSPEC, nullptr),
            -FI_EINVAL);
}

TEST_F(MessageTest, MessageFormsCarryFlagsAndData) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const std::vector<uint8_t> sent = Pattern(50);
  std::vector<uint8_t> received(50);
  iovec from = {.iov_base = const_cast<uint8_t*>(sent.data()), .iov_len = 50};
  iovec to = {.iov_base = received.data(), .iov_len = 50};
  int context = 0;
  fi_msg receive = {};
  receive.msg_iov = &to;
  receive.iov_count = 1;
  receive.addr = FI_ADDR_UNSPEC;
  receive.context = &context;
  fi_msg send = receive;
  send.msg_iov = &from;
  send.addr = to_b;
  send.data = 0x1122334455667788;
  ASSERT_EQ(fi_recvmsg(b->ep, &receive, 0), 0);
  ASSERT_EQ(
      fi_sendmsg(a->ep, &send,
                 FI_REMOTE_CQ_DATA | FI_TRANSMIT_COMPLETE | FI_COMPLETION),
      0);
  const auto at_b = Take(b->rx_cq);
  ASSERT_TRUE(at_b.has_value());
  EXPECT_EQ(at_b->entry.flags, uint64_t{FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA});
  EXPECT_EQ(at_b->entry.data, 0x1122334455667788U);
  EXPECT_EQ(at_b->entry.op_context, &context);
  ASSERT_TRUE(Take(a->tx_cq).has_value());
  EXPECT_EQ(sent, received);
}

TEST_F(MessageTest, RemoteDataArrivesWithAndWithoutPayload) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const size_t bytes : {0, 8, 100, 1000}) {
    SCOPED_TRACE(bytes);
    const std::vector<uint8_t> sent = Pattern(bytes);
    std::vector<uint8_t> received(bytes);
    const uint64_t data = 0xfedcba9876543210 + bytes;
    ASSERT_EQ(fi_recv(b->ep, received.data(), bytes, nullptr, FI_ADDR_UNSPEC,
                      nullptr),
              0);
    ASSERT_EQ(
        fi_senddata(a->ep, sent.data(), bytes, nullptr, data, to_b, nullptr),
        0);
    const auto at_b = Take(b->rx_cq);
    ASSERT_TRUE(at_b.has_value());
    EXPECT_EQ(at_b->entry.data, data);
    EXPECT_NE(at_b->entry.flags & FI_REMOTE_CQ_DATA, 0U);
    ASSERT_TRUE(Take(a->tx_cq).has_value());
    EXPECT_EQ(sent, received);
  }
}

// ------------------------------------------------------------------ inject

TEST_F(MessageTest, InjectedBufferIsTheCallersAtReturn) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const size_t limit = a->info->tx_attr->inject_size;
  ASSERT_GE(limit, 64U);
  for (size_t bytes = 0; bytes <= limit; bytes += bytes < 70 ? 1 : 13) {
    SCOPED_TRACE(bytes);
    std::vector<uint8_t> data = Pattern(bytes);
    std::vector<uint8_t> received(bytes);
    ASSERT_EQ(fi_inject(a->ep, data.data(), bytes, to_b), 0);
    std::fill(data.begin(), data.end(), 0);
    ASSERT_EQ(fi_recv(b->ep, received.data(), bytes, nullptr, FI_ADDR_UNSPEC,
                      nullptr),
              0);
    const auto at_b = Take(b->rx_cq);
    ASSERT_TRUE(at_b.has_value());
    EXPECT_EQ(at_b->entry.len, bytes);
    EXPECT_EQ(received, Pattern(bytes));
  }
  // Inject calls write no completion.
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
}

TEST_F(MessageTest, InjectBeyondTheLimitIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const std::vector<uint8_t> data(a->info->tx_attr->inject_size + 1);
  EXPECT_EQ(fi_inject(a->ep, data.data(), data.size(), to_b), -FI_EMSGSIZE);
  EXPECT_EQ(fi_injectdata(a->ep, data.data(), data.size(), 1, to_b),
            -FI_EMSGSIZE);
  iovec part = {.iov_base = const_cast<uint8_t*>(data.data()),
                .iov_len = data.size()};
  fi_msg message = {};
  message.msg_iov = &part;
  message.iov_count = 1;
  message.addr = to_b;
  EXPECT_EQ(fi_sendmsg(a->ep, &message, FI_INJECT), -FI_EMSGSIZE);
}

TEST_F(MessageTest, InjectFlagCopiesAndStillCompletes) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::vector<uint8_t> data = Pattern(180);
  std::vector<uint8_t> received(180);
  iovec part = {.iov_base = data.data(), .iov_len = data.size()};
  int context = 0;
  fi_msg message = {};
  message.msg_iov = &part;
  message.iov_count = 1;
  message.addr = to_b;
  message.context = &context;
  ASSERT_EQ(fi_sendmsg(a->ep, &message, FI_INJECT), 0);
  std::fill(data.begin(), data.end(), 0);
  ASSERT_EQ(fi_recv(b->ep, received.data(), received.size(), nullptr,
                    FI_ADDR_UNSPEC, nullptr),
            0);
  ASSERT_TRUE(Take(b->rx_cq).has_value());
  const auto at_a = Take(a->tx_cq);
  ASSERT_TRUE(at_a.has_value());
  EXPECT_EQ(at_a->entry.op_context, &context);
  EXPECT_EQ(received, Pattern(180));
}

TEST_F(MessageTest, InjectedDataArrives) {
  ASSERT_NO_FATAL_FAILURE(Open());
  uint64_t value = 77;
  uint64_t received = 0;
  ASSERT_EQ(fi_injectdata(a->ep, &value, sizeof(value), 99, to_b), 0);
  value = 0;
  ASSERT_EQ(fi_recv(b->ep, &received, sizeof(received), nullptr, FI_ADDR_UNSPEC,
                    nullptr),
            0);
  const auto at_b = Take(b->rx_cq);
  ASSERT_TRUE(at_b.has_value());
  EXPECT_EQ(at_b->entry.data, 99U);
  EXPECT_EQ(received, 77U);
}

// -------------------------------------------------------------- truncation

TEST_F(MessageTest, TruncationIsTheReceiversErrorOnly) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const size_t room : {0, 10, 100, 1000, 5000}) {
    SCOPED_TRACE(room);
    const std::vector<uint8_t> sent = Pattern(6000);
    std::vector<uint8_t> received(6000, 0xee);
    int context = 0;
    ASSERT_EQ(fi_recv(b->ep, received.data(), room, nullptr, FI_ADDR_UNSPEC,
                      &context),
              0);
    ASSERT_EQ(fi_send(a->ep, sent.data(), sent.size(), nullptr, to_b, nullptr),
              0);
    const auto at_b = Take(b->rx_cq);
    ASSERT_TRUE(at_b.has_value());
    ASSERT_TRUE(at_b->error);
    EXPECT_EQ(at_b->failure.err, FI_ETRUNC);
    EXPECT_EQ(at_b->failure.op_context, &context);
    EXPECT_EQ(at_b->failure.len, room);
    EXPECT_EQ(at_b->failure.olen, sent.size() - room);
    EXPECT_EQ(at_b->failure.flags, uint64_t{FI_RECV | FI_MSG});
    const auto at_a = Take(a->tx_cq);
    ASSERT_TRUE(at_a.has_value());
    EXPECT_FALSE(at_a->error);
    EXPECT_TRUE(std::equal(received.begin(),
                           received.begin() + static_cast<int>(room),
                           sent.begin()));
    EXPECT_EQ(received[room], 0xee);
  }
  // The endpoints go on.
  const std::vector<uint8_t> sent = Pattern(100);
  std::vector<uint8_t> received(100);
  ASSERT_NO_FATAL_FAILURE(Exchange(sent, received));
  EXPECT_EQ(sent, received);
}

TEST_F(MessageTest, ErrorBlocksTheHeadUntilItIsRead) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const std::vector<uint8_t> sent = Pattern(100);
  std::vector<uint8_t> received(100);
  int contexts[3];
  const size_t rooms[] = {100, 50, 100};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(fi_recv(b->ep, received.data(), rooms[i], nullptr, FI_ADDR_UNSPEC,
                      &contexts[i]),
              0);
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(fi_send(a->ep, sent.data(), sent.size(), nullptr, to_b, nullptr),
              0);
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Take(a->tx_cq).has_value());
  }
  fi_cq_tagged_entry entries[3];
  fi_cq_err_entry error = {};
  ssize_t result = 0;
  ASSERT_TRUE(WaitUntil([&] {
    result = fi_cq_read(b->rx_cq, entries, 3);
    return result != -FI_EAGAIN;
  }));
  ASSERT_EQ(result, 1);
  EXPECT_EQ(entries[0].op_context, &contexts[0]);
  ASSERT_TRUE(WaitUntil(
      [&] { return fi_cq_read(b->rx_cq, entries, 3) != -FI_EAGAIN; }));
  EXPECT_EQ(fi_cq_read(b->rx_cq, entries, 3), -FI_EAVAIL);
  EXPECT_EQ(fi_cq_read(b->rx_cq, nullptr, 0), -FI_EAVAIL);
  EXPECT_EQ(fi_cq_readerr(b->rx_cq, &error, 0), 1);
  EXPECT_EQ(error.op_context, &contexts[1]);
  EXPECT_EQ(error.err, FI_ETRUNC);
  error = {};
  ASSERT_TRUE(WaitUntil([&] {
    result = fi_cq_read(b->rx_cq, entries, 3);
    return result != -FI_EAGAIN;
  }));
  EXPECT_EQ(result, 1);
  EXPECT_EQ(entries[0].op_context, &contexts[2]);
  EXPECT_EQ(fi_cq_readerr(b->rx_cq, &error, 0), -FI_EAGAIN);
}

// ------------------------------------------------------------------ cancel

TEST_F(MessageTest, CancelledReceiveEndsWithItsContext) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::vector<uint8_t> buffer(1000);
  int first = 0;
  int second = 0;
  int unknown = 0;
  ASSERT_EQ(fi_recv(b->ep, buffer.data(), buffer.size(), nullptr,
                    FI_ADDR_UNSPEC, &first),
            0);
  ASSERT_EQ(fi_recv(b->ep, buffer.data(), buffer.size(), nullptr,
                    FI_ADDR_UNSPEC, &second),
            0);
  EXPECT_EQ(fi_cancel(&b->ep->fid, &unknown), -FI_ENOENT);
  EXPECT_EQ(fi_cancel(&b->ep->fid, &first), 0);
  const auto cancelled = Take(b->rx_cq);
  ASSERT_TRUE(cancelled.has_value());
  ASSERT_TRUE(cancelled->error);
  EXPECT_EQ(cancelled->failure.err, FI_ECANCELED);
  EXPECT_EQ(cancelled->failure.op_context, &first);
  EXPECT_EQ(fi_cancel(&b->ep->fid, &first), -FI_ENOENT);
  // The next message takes the receive that is left.
  const std::vector<uint8_t> sent = Pattern(1000);
  ASSERT_EQ(fi_send(a->ep, sent.data(), sent.size(), nullptr, to_b, nullptr),
            0);
  const auto received = Take(b->rx_cq);
  ASSERT_TRUE(received.has_value());
  EXPECT_FALSE(received->error);
  EXPECT_EQ(received->entry.op_context, &second);
  EXPECT_EQ(buffer, sent);
  ASSERT_TRUE(Take(a->tx_cq).has_value());
}

// ------------------------------------------------------------ full queues

TEST_F(MessageTest, FullTransmitQueueRefusesAndLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(Open({.tx_size = 32}));
  uint32_t posted = 0;
  ssize_t result = 0;
  while (result == 0) {
    ASSERT_LT(posted, 100000U);
    result = fi_send(a->ep, &posted, sizeof(posted), nullptr, to_b, nullptr);
    posted += result == 0 ? 1 : 0;
  }
  EXPECT_EQ(result, -FI_EAGAIN);
  EXPECT_GE(posted, 32U);
  for (uint32_t i = 0; i < posted; ++i) {
    uint32_t value = ~0U;
    ASSERT_EQ(
        fi_recv(b->ep, &value, sizeof(value), nullptr, FI_ADDR_UNSPEC, nullptr),
        0);
    const auto received = Take(b->rx_cq);
    ASSERT_TRUE(received.has_value());
    ASSERT_EQ(value, i);
  }
  for (uint32_t i = 0; i < posted; ++i) {
    ASSERT_TRUE(Take(a->tx_cq).has_value());
  }
  EXPECT_EQ(fi_send(a->ep, &posted, sizeof(posted), nullptr, to_b, nullptr), 0);
}

TEST_F(MessageTest, FullReceiveQueueRefuses) {
  ASSERT_NO_FATAL_FAILURE(Open({.rx_size = 32}));
  uint32_t buffer = 0;
  uint32_t posted = 0;
  ssize_t result = 0;
  while (result == 0) {
    ASSERT_LT(posted, 100000U);
    result = fi_recv(b->ep, &buffer, sizeof(buffer), nullptr, FI_ADDR_UNSPEC,
                     nullptr);
    posted += result == 0 ? 1 : 0;
  }
  EXPECT_EQ(result, -FI_EAGAIN);
  EXPECT_GE(posted, 32U);
}

TEST_F(MessageTest, SmallCompletionQueueLosesNothing) {
  NodeOptions small;
  small.cq_size = 8;
  ASSERT_NO_FATAL_FAILURE(Open(small));
  constexpr uint32_t kMessages = 100;
  std::vector<uint32_t> buffers(kMessages);
  for (uint32_t& buffer : buffers) {
    ASSERT_EQ(fi_recv(b->ep, &buffer, sizeof(buffer), nullptr, FI_ADDR_UNSPEC,
                      &buffer),
              0);
  }
  uint32_t sent = 0;
  uint32_t completed = 0;
  uint32_t received = 0;
  // The receiver reads only when the sender cannot go on.
  const bool finished = WaitUntil([&] {
    fi_cq_tagged_entry entry;
    bool moved = false;
    if (sent < kMessages &&
        fi_send(a->ep, &sent, sizeof(sent), nullptr, to_b, nullptr) == 0) {
      ++sent;
      moved = true;
    }
    if (!moved && fi_cq_read(a->tx_cq, &entry, 1) == 1) {
      ++completed;
      moved = true;
    }
    if (!moved && fi_cq_read(b->rx_cq, &entry, 1) == 1) {
      EXPECT_EQ(entry.op_context, &buffers[received]);
      EXPECT_EQ(buffers[received], received);
      ++received;
    }
    return completed == kMessages && received == kMessages;
  });
  EXPECT_TRUE(finished) << sent << " " << completed << " " << received;
}

// --------------------------------------------------- selective completion

TEST_F(MessageTest, SelectiveCompletionReportsOnlyWhatWasAsked) {
  NodeOptions options;
  options.bind_flags = FI_SELECTIVE_COMPLETION;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  uint64_t value = 2;
  uint64_t silent = 0;
  uint64_t buffer = 0;
  iovec from = {.iov_base = &value, .iov_len = sizeof(value)};
  iovec to = {.iov_base = &buffer, .iov_len = sizeof(buffer)};
  int context = 0;
  fi_msg send = {};
  send.msg_iov = &from;
  send.iov_count = 1;
  send.addr = to_b;
  send.context = &context;
  fi_msg receive = send;
  receive.msg_iov = &to;
  receive.addr = FI_ADDR_UNSPEC;

  // Neither side asks, then both: the first message arrives before the second.
  ASSERT_EQ(
      fi_recv(b->ep, &silent, sizeof(silent), nullptr, FI_ADDR_UNSPEC, nullptr),
      0);
  uint64_t first = 1;
  ASSERT_EQ(fi_send(a->ep, &first, sizeof(first), nullptr, to_b, nullptr), 0);
  ASSERT_EQ(fi_recvmsg(b->ep, &receive, FI_COMPLETION), 0);
  ASSERT_EQ(fi_sendmsg(a->ep, &send, FI_COMPLETION), 0);
  const auto at_b = Take(b->rx_cq);
  ASSERT_TRUE(at_b.has_value());
  EXPECT_EQ(at_b->entry.op_context, &context);
  EXPECT_EQ(silent, 1U);
  EXPECT_EQ(buffer, 2U);
  const auto at_a = Take(a->tx_cq);
  ASSERT_TRUE(at_a.has_value());
  EXPECT_EQ(at_a->entry.op_context, &context);
  // Failure is reported in any case.
  ASSERT_EQ(fi_recv(b->ep, &buffer, 4, nullptr, FI_ADDR_UNSPEC, &context), 0);
  ASSERT_EQ(fi_send(a->ep, &value, sizeof(value), nullptr, to_b, nullptr), 0);
  const auto failed = Take(b->rx_cq);
  ASSERT_TRUE(failed.has_value());
  ASSERT_TRUE(failed->error);
  EXPECT_EQ(failed->failure.err, FI_ETRUNC);
  EXPECT_EQ(failed->failure.op_context, &context);
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
}

// ------------------------------------------------------------------ source

TEST_F(MessageTest, SourceIsTheSendersIndex) {
  NodeOptions options;
  options.caps = FI_MSG | FI_SOURCE;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  // Fillers, so that the sender's index differs from the receiver's own.
  sockaddr_in filler = IpName(*b);
  for (uint16_t i = 0; i < 10; ++i) {
    filler.sin_port = htons(static_cast<uint16_t>(100 + i));
    ASSERT_EQ(fi_av_insert(b->av, &filler, 1, nullptr, 0, nullptr), 1);
  }
  uint64_t value = 3;
  for (const fi_addr_t expected : {to_a, fi_addr_t{FI_ADDR_NOTAVAIL}}) {
    if (expected == FI_ADDR_NOTAVAIL) {
      ASSERT_EQ(fi_av_remove(b->av, &to_a, 1, 0), 0);
    }
    ASSERT_EQ(
        fi_recv(b->ep, &value, sizeof(value), nullptr, FI_ADDR_UNSPEC, nullptr),
        0);
    ASSERT_EQ(fi_inject(a->ep, &value, sizeof(value), to_b), 0);
    const auto received = Take(b->rx_cq);
    ASSERT_TRUE(received.has_value());
    EXPECT_EQ(received->source, expected);
  }
}

// ------------------------------------------------------------ registration

TEST_F(MessageTest, RegisteredBuffersAreUsedInPlace) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::vector<uint8_t> sent = Pattern(100000);
  std::vector<uint8_t> received(100000);
  fid_mr* from = nullptr;
  fid_mr* to = nullptr;
  ASSERT_EQ(fi_mr_reg(a->domain, sent.data(), sent.size(), FI_SEND, 0, 1, 0,
                      &from, nullptr),
            0);
  ASSERT_EQ(fi_mr_reg(b->domain, received.data(), received.size(), FI_RECV, 0,
                      1, 0, &to, nullptr),
            0);
  // A part in the middle.
  ASSERT_EQ(fi_recv(b->ep, &received[1000], 90000, fi_mr_desc(to),
                    FI_ADDR_UNSPEC, nullptr),
            0);
  ASSERT_EQ(fi_send(a->ep, &sent[1000], 90000, fi_mr_desc(from), to_b, nullptr),
            0);
  ASSERT_TRUE(Take(b->rx_cq).has_value());
  ASSERT_TRUE(Take(a->tx_cq).has_value());
  EXPECT_TRUE(std::equal(&sent[1000], &sent[91000], &received[1000]));
  EXPECT_EQ(received[999], 0);
  EXPECT_EQ(received[91000], 0);
  EXPECT_EQ(fi_close(&from->fid), 0);
  EXPECT_EQ(fi_close(&to->fid), 0);
}

TEST_F(MessageTest, RemappedMemoryIsReadAnew) {
  ASSERT_NO_FATAL_FAILURE(Open());
  // Copied and mapped for the operation.
  for (const size_t bytes : {4096, 262144}) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    for (const uint32_t seed : {1, 2}) {
      const std::vector<uint8_t> data = Pattern(bytes, seed);
      std::vector<uint8_t> received(bytes);
      std::memcpy(memory, data.data(), bytes);
      ASSERT_EQ(fi_recv(b->ep, received.data(), bytes, nullptr, FI_ADDR_UNSPEC,
                        nullptr),
                0);
      ASSERT_EQ(fi_send(a->ep, memory, bytes, nullptr, to_b, nullptr), 0);
      ASSERT_TRUE(Take(b->rx_cq).has_value());
      ASSERT_TRUE(Take(a->tx_cq).has_value());
      EXPECT_EQ(received, data);
      ASSERT_EQ(munmap(memory, bytes), 0);
      ASSERT_EQ(mmap(memory, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                memory);
    }
    ASSERT_EQ(munmap(memory, bytes), 0);
  }
}

// --------------------------------------------------------- shared and threads

TEST_F(MessageTest, EndpointsMayShareOneQueue) {
  NodeOptions options;
  options.caps = FI_MSG | FI_SOURCE;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  fid_ep* more = a->OpenEndpoint();
  sockaddr_in name = {};
  size_t length = sizeof(name);
  ASSERT_EQ(fi_getname(&more->fid, &name, &length), 0);
  fi_addr_t from_more = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(b->av, &name, 1, &from_more, 0, nullptr), 1);
  for (uint32_t i = 0; i < 20; ++i) {
    fid_ep* sender = i % 2 == 0 ? a->ep : more;
    const std::vector<uint8_t> sent = Pattern(400 + i);
    std::vector<uint8_t> received(sent.size());
    ASSERT_EQ(fi_recv(b->ep, received.data(), received.size(), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_EQ(fi_send(sender, sent.data(), sent.size(), nullptr, to_b, sender),
              0);
    const auto at_b = Take(b->rx_cq);
    ASSERT_TRUE(at_b.has_value());
    EXPECT_EQ(at_b->source, i % 2 == 0 ? to_a : from_more);
    const auto at_a = Take(a->tx_cq);
    ASSERT_TRUE(at_a.has_value());
    EXPECT_EQ(at_a->entry.op_context, sender);
    EXPECT_EQ(sent, received);
  }
  EXPECT_EQ(fi_close(&more->fid), 0);
}

TEST_F(MessageTest, ThreadsMayShareAnEndpointAndItsQueues) {
  NodeOptions options;
  options.threading = FI_THREAD_SAFE;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  constexpr size_t kThreads = 3;
  constexpr size_t kEach = 60;
  std::atomic<uint32_t> completed{0};
  std::atomic<uint32_t> received{0};
  std::atomic<uint64_t> sum{0};
  std::vector<std::array<uint32_t, 100>> buffers(kThreads * kEach);
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  const auto late = [&] { return std::chrono::steady_clock::now() > deadline; };
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kEach && !late(); ++i) {
        auto& buffer = buffers[t * kEach + i];
        while (fi_recv(b->ep, buffer.data(), sizeof(buffer), nullptr,
                       FI_ADDR_UNSPEC, &buffer) != 0 &&
               !late()) {
        }
        std::array<uint32_t, 100> sent;
        sent.fill(static_cast<uint32_t>(t * kEach + i));
        while (fi_send(a->ep, sent.data(), sizeof(sent), nullptr, to_b,
                       nullptr) != 0 &&
               !late()) {
        }
      }
      fi_cq_tagged_entry entry;
      while ((completed < kThreads * kEach || received < kThreads * kEach) &&
             !late()) {
        if (fi_cq_read(a->tx_cq, &entry, 1) == 1) {
          ++completed;
        }
        if (fi_cq_read(b->rx_cq, &entry, 1) == 1) {
          sum +=
              (*static_cast<std::array<uint32_t, 100>*>(entry.op_context))[99];
          ++received;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  constexpr uint64_t kAll = kThreads * kEach;
  EXPECT_EQ(completed, kAll);
  EXPECT_EQ(received, kAll);
  EXPECT_EQ(sum, kAll * (kAll - 1) / 2);
}

TEST_F(MessageTest, QueueMayBeReadWhileEndpointsComeAndGo) {
  NodeOptions options;
  options.threading = FI_THREAD_SAFE;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    fi_cq_tagged_entry entry;
    while (!stop) {
      for (fid_cq* cq : {a->tx_cq, a->rx_cq}) {
        const ssize_t result = fi_cq_read(cq, &entry, 1);
        if (result == -FI_EAVAIL) {
          // A message whose sender was closed may end so; nothing else fails.
          fi_cq_err_entry error = {};
          EXPECT_EQ(fi_cq_readerr(cq, &error, 0), 1);
          EXPECT_EQ(cq, a->rx_cq);
          EXPECT_EQ(error.err, FI_EREMOTEIO);
        } else {
          EXPECT_TRUE(result == 1 || result == -FI_EAGAIN) << result;
        }
      }
    }
  });
  const fi_addr_t self = a->Insert(*a);
  const uint64_t sent = 1;
  uint64_t received = 0;
  for (int i = 0; i < 10; ++i) {
    fid_ep* more = a->OpenEndpoint();
    EXPECT_EQ(fi_recv(a->ep, &received, sizeof(received), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    EXPECT_EQ(fi_send(more, &sent, sizeof(sent), nullptr, self, nullptr), 0);
    EXPECT_EQ(fi_close(&more->fid), 0);
  }
  stop = true;
  reader.join();
}

// The receiver makes no call at all until its buffer is full.
TEST_F(MessageTest, AutoProgressNeedsNoCallOfTheReceiver) {
  NodeOptions options;
  options.progress = FI_PROGRESS_AUTO;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  const std::vector<uint8_t> sent = Pattern(20000);
  std::vector<uint8_t> received(20000);
  ASSERT_EQ(fi_recv(b->ep, received.data(), received.size(), nullptr,
                    FI_ADDR_UNSPEC, nullptr),
            0);
  ASSERT_EQ(fi_send(a->ep, sent.data(), sent.size(), nullptr, to_b, nullptr),
            0);
  ASSERT_TRUE(Take(a->tx_cq).has_value());
  ASSERT_TRUE(Take(b->rx_cq).has_value());
  EXPECT_EQ(sent, received);
}

}  // namespace
}  // namespace heddle::test
