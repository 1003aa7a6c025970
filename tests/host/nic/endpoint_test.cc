// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/endpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/host/nic/loopback_device.h"

namespace heddle::nic {
namespace {

using test::LoopbackDevice;
using test::LoopbackWire;

// One endpoint with queues of its own. The device runs only in `Step`.
struct Node {
  Node(const std::shared_ptr<LoopbackWire>& wire, uint32_t ip,
       size_t cq_entries = 64)
      : ipv4(ip) {
    auto made = std::make_unique<LoopbackDevice>(
        wire, test::LoopbackOptions{.ipv4 = ip, .own_thread = false});
    device = made.get();
    std::string message;
    auto info = WaitReady(*made, kReadyLimit, message);
    auto adopted =
        Nic::Adopt({.device = std::move(made), .info = info.value()}, message);
    nic = std::move(adopted.value());
    cq = std::make_unique<Cq>(*nic);
    EXPECT_TRUE(cq->Open(cq_entries, false).ok());
    peers = std::move(AddressTable::Create(nic->device(), 0).value());
  }

  Result<bool> Open(uint16_t port, size_t operations = 16) {
    contract::AdminAnswer refusal;
    auto claimed = Endpoint::Claim(*nic, {.port = port, .job_id = 1}, &refusal);
    if (!claimed.ok()) {
      owner = refusal.detail;
      return claimed.error();
    }
    endpoint = std::move(claimed.value());
    return endpoint->Enable({.tx_cq = cq.get(),
                             .rx_cq = cq.get(),
                             .peers = peers.get(),
                             .name_senders = true,
                             .tx_operations = operations,
                             .rx_operations = operations,
                             .copy_limit_bytes = 65536,
                             .msg_order = 0});
  }

  uint32_t Insert(const Node& other) {
    return peers->Insert({.ipv4 = other.ipv4, .port = other.endpoint->port()})
        .value();
  }

  int Send(uint32_t peer, uint64_t context, const void* data, size_t bytes,
           bool completion = true) {
    const Segment segment = {.address = const_cast<void*>(data),
                             .bytes = bytes};
    return endpoint->transmit()->PostSegments<backend::Locked>(
        {.context = context,
         .peer = peer,
         .flags = completion ? contract::kTxFlagCompletion : uint8_t{0}},
        {&segment, 1});
  }

  int Receive(uint64_t context, void* data, size_t bytes) {
    const Segment segment = {.address = data, .bytes = bytes};
    return endpoint->rx()->PostSegments<backend::Locked>({.context = context},
                                                         {&segment, 1});
  }

  // The next completion; waits for a bounded number of steps.
  struct Taken {
    contract::Completion entry;
    Finished finished;
  };
  std::optional<Taken> Take() {
    for (int i = 0; i < 1000; ++i) {
      const Cq::ReadGuard<backend::Locked> guard(*cq);
      if (const contract::Completion* entry = cq->Peek(); entry != nullptr) {
        Taken taken = {.entry = *entry,
                       .finished = cq->Retire<backend::Locked>(*entry)};
        cq->Pop();
        return taken;
      }
      if (const backend::Progressor* progressor = nic->progressor()) {
        progressor->step(progressor->cookie);
      }
    }
    return std::nullopt;
  }

  uint32_t ipv4;
  uint32_t owner = 0;
  LoopbackDevice* device = nullptr;
  std::unique_ptr<Nic> nic;
  std::unique_ptr<Cq> cq;
  std::unique_ptr<AddressTable> peers;
  std::unique_ptr<Endpoint> endpoint;
};

struct EndpointTest : ::testing::Test {
  void SetUp() override {
    ASSERT_TRUE(a.Open(0).ok());
    ASSERT_TRUE(b.Open(0).ok());
    to_b = a.Insert(b);
  }
  void TearDown() override {
    EXPECT_FALSE(a.device->failed()) << a.device->failure();
    EXPECT_FALSE(b.device->failed()) << b.device->failure();
  }

  std::shared_ptr<LoopbackWire> wire = std::make_shared<LoopbackWire>();
  Node a{wire, 0x0a000001};
  Node b{wire, 0x0a000002};
  uint32_t to_b = 0;
};

std::vector<uint8_t> Pattern(size_t bytes) {
  std::vector<uint8_t> data(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<uint8_t>(i * 7 + bytes);
  }
  return data;
}

TEST_F(EndpointTest, CarriesEverySizeOnEachOfItsWays) {
  const uint32_t from_a = b.Insert(a);
  // In the descriptor, in extension slots, through slabs, mapped.
  for (const size_t bytes : {0, 1, 16, 17, 64, 65, 192, 193, 256, 257, 4096,
                             4097, 65536, 65537, 200000}) {
    SCOPED_TRACE(bytes);
    const std::vector<uint8_t> sent = Pattern(bytes);
    std::vector<uint8_t> received(bytes + 1, 0xee);
    ASSERT_EQ(b.Receive(11, received.data(), bytes), 0);
    ASSERT_EQ(a.Send(to_b, 22, sent.data(), bytes), 0);
    const auto at_b = b.Take();
    ASSERT_TRUE(at_b.has_value());
    EXPECT_EQ(at_b->entry.status, contract::Status::kOk);
    EXPECT_EQ(at_b->finished.context, 11U);
    EXPECT_EQ(at_b->finished.buffer, received.data());
    EXPECT_EQ(at_b->entry.length, bytes);
    EXPECT_EQ(
        b.peers->FindSource(static_cast<uint32_t>(at_b->entry.source_fa_lo),
                            at_b->entry.peer),
        from_a);
    const auto at_a = a.Take();
    ASSERT_TRUE(at_a.has_value());
    EXPECT_EQ(at_a->finished.context, 22U);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), received.begin()));
    EXPECT_EQ(received[bytes], 0xee);
  }
}

TEST_F(EndpointTest, MappingsEndWithTheirOperation) {
  std::vector<uint8_t> data = Pattern(100000);
  std::vector<uint8_t> buffer(100000);
  const size_t at_a = a.device->mapping_count();
  const size_t at_b = b.device->mapping_count();
  ASSERT_EQ(b.Receive(1, buffer.data(), buffer.size()), 0);
  ASSERT_EQ(a.Send(to_b, 2, data.data(), data.size()), 0);
  EXPECT_EQ(a.device->mapping_count(), at_a + 1);
  EXPECT_EQ(b.device->mapping_count(), at_b + 1);
  ASSERT_TRUE(b.Take().has_value());
  ASSERT_TRUE(a.Take().has_value());
  EXPECT_EQ(a.device->mapping_count(), at_a);
  EXPECT_EQ(b.device->mapping_count(), at_b);
}

bool IsFree(backend::SpinLock& lock) {
  const bool taken = lock.try_lock();
  if (taken) {
    lock.unlock();
  }
  return taken;
}

TEST_F(EndpointTest, MappingsEndOutsideTheLocks) {
  std::vector<uint8_t> data = Pattern(100000);
  std::vector<uint8_t> buffer(100000);
  int ended = 0;
  for (Node* node : {&a, &b}) {
    node->device->on_unmap = [&ended, node] {
      ++ended;
      EXPECT_TRUE(IsFree(node->cq->lock()));
      EXPECT_TRUE(IsFree(node->endpoint->transmit()->lock()));
      EXPECT_TRUE(IsFree(node->endpoint->receive()->lock()));
    };
  }
  ASSERT_EQ(b.Receive(1, buffer.data(), buffer.size()), 0);
  ASSERT_EQ(a.Send(to_b, 2, data.data(), data.size()), 0);
  ASSERT_TRUE(b.Take().has_value());
  ASSERT_TRUE(a.Take().has_value());
  EXPECT_EQ(ended, 2);
  // In error: a receive that is withdrawn.
  ASSERT_EQ(b.Receive(3, buffer.data(), buffer.size()), 0);
  ASSERT_TRUE(b.endpoint->Cancel(3));
  b.nic->progressor()->step(b.nic->progressor()->cookie);
  ASSERT_TRUE(b.cq->TakeError(/*failed=*/false).has_value());
  EXPECT_EQ(ended, 3);
  a.device->on_unmap = b.device->on_unmap = nullptr;
}

TEST_F(EndpointTest, GathersAndScattersSegments) {
  for (const size_t piece : {5, 50, 500, 50000}) {
    SCOPED_TRACE(piece);
    const std::vector<uint8_t> sent = Pattern(3 * piece);
    std::vector<uint8_t> received(3 * piece);
    std::vector<Segment> from;
    std::vector<Segment> to;
    for (size_t i = 0; i < 3; ++i) {
      from.push_back(
          {.address = const_cast<uint8_t*>(&sent[i * piece]), .bytes = piece});
      to.push_back({.address = &received[i * piece], .bytes = piece});
    }
    ASSERT_EQ(
        b.endpoint->rx()->PostSegments<backend::Locked>({.context = 1}, to), 0);
    ASSERT_EQ(a.endpoint->transmit()->PostSegments<backend::Locked>(
                  {.context = 2, .peer = to_b}, from),
              0);
    ASSERT_TRUE(b.Take().has_value());
    ASSERT_TRUE(a.Take().has_value());
    EXPECT_EQ(sent, received);
  }
}

TEST_F(EndpointTest, FullRingRefusesAndTakesAgainAfterACompletion) {
  const uint64_t data = 5;
  uint32_t posted = 0;
  while (a.Send(to_b, posted, &data, sizeof(data)) == 0) {
    ASSERT_LT(++posted, 5000U);
  }
  EXPECT_GE(posted, 16U);
  EXPECT_EQ(a.Send(to_b, 0, &data, sizeof(data)), EAGAIN);
  uint64_t buffer = 0;
  ASSERT_EQ(b.Receive(1, &buffer, sizeof(buffer)), 0);
  ASSERT_TRUE(b.Take().has_value());
  ASSERT_TRUE(a.Take().has_value());
  EXPECT_EQ(a.Send(to_b, 0, &data, sizeof(data)), 0);
}

TEST_F(EndpointTest, UnsignaledSendsRecycleTheRingWithoutCompletions) {
  const std::vector<uint8_t> data = Pattern(300);
  std::vector<uint8_t> buffer(300);
  for (uint32_t i = 0; i < 500; ++i) {
    ASSERT_EQ(b.Receive(i, buffer.data(), buffer.size()), 0);
    ASSERT_EQ(a.Send(to_b, i, data.data(), data.size(), false), 0) << i;
    ASSERT_TRUE(b.Take().has_value());
    EXPECT_EQ(a.cq->Peek(), nullptr);
  }
}

TEST_F(EndpointTest, FullReceiveRingRefuses) {
  uint64_t buffer = 0;
  uint32_t posted = 0;
  while (b.Receive(posted, &buffer, sizeof(buffer)) == 0) {
    ASSERT_LT(++posted, 5000U);
  }
  EXPECT_EQ(posted, 16U);
  EXPECT_EQ(b.Receive(0, &buffer, sizeof(buffer)), EAGAIN);
}

TEST_F(EndpointTest, SendsBeyondTheCompletionQueueAreRefused) {
  Node c(wire, 0x0a000003, 8);
  ASSERT_TRUE(c.Open(0, 1000).ok());
  const uint32_t peer = c.Insert(b);
  const uint64_t data = 5;
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(c.Send(peer, i, &data, sizeof(data)), 0);
  }
  EXPECT_EQ(c.Send(peer, 8, &data, sizeof(data)), EAGAIN);
  EXPECT_EQ(c.Send(peer, 8, &data, sizeof(data), false), 0);
  uint64_t buffer = 0;
  ASSERT_EQ(b.Receive(1, &buffer, sizeof(buffer)), 0);
  ASSERT_TRUE(c.Take().has_value());
  EXPECT_EQ(c.Send(peer, 8, &data, sizeof(data)), 0);
}

TEST_F(EndpointTest, TruncatedMessageFillsTheBufferAndTellsItsLength) {
  const std::vector<uint8_t> sent = Pattern(1000);
  std::vector<uint8_t> received(401, 0xee);
  ASSERT_EQ(b.Receive(1, received.data(), 400), 0);
  ASSERT_EQ(a.Send(to_b, 2, sent.data(), sent.size()), 0);
  const auto taken = b.Take();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->entry.status, contract::Status::kTruncated);
  EXPECT_EQ(taken->entry.length, 400U);
  EXPECT_EQ(taken->entry.message_length, 1000U);
  EXPECT_EQ(std::memcmp(sent.data(), received.data(), 400), 0);
  EXPECT_EQ(received[400], 0xee);
}

TEST_F(EndpointTest, CancelWithdrawsOneOfSeveralWithTheSameContext) {
  uint64_t buffers[3] = {};
  ASSERT_EQ(b.Receive(7, &buffers[0], 8), 0);
  ASSERT_EQ(b.Receive(8, &buffers[1], 8), 0);
  ASSERT_EQ(b.Receive(7, &buffers[2], 8), 0);
  EXPECT_FALSE(b.endpoint->rx()->Cancel<backend::Locked>(9));
  EXPECT_TRUE(b.endpoint->rx()->Cancel<backend::Locked>(7));
  const auto first = b.Take();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->entry.status, contract::Status::kCancelled);
  EXPECT_EQ(first->finished.context, 7U);
  EXPECT_EQ(first->finished.buffer, &buffers[0]);
  // The second 7 before its completion was read, then no third.
  EXPECT_TRUE(b.endpoint->rx()->Cancel<backend::Locked>(7));
  EXPECT_FALSE(b.endpoint->rx()->Cancel<backend::Locked>(7));
  const auto second = b.Take();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->finished.buffer, &buffers[2]);
  // What is left is still good.
  const uint64_t data = 42;
  ASSERT_EQ(a.Send(to_b, 1, &data, sizeof(data)), 0);
  const auto third = b.Take();
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->finished.context, 8U);
  EXPECT_EQ(buffers[1], 42U);
}

TEST_F(EndpointTest, ClosingDropsUnreadCompletionsAndFreesItsBuffers) {
  std::vector<uint8_t> data = Pattern(100000);
  const size_t mappings = b.device->mapping_count();
  Node c(wire, 0x0a000003);
  ASSERT_TRUE(c.Open(0).ok());
  const uint32_t peer = a.Insert(c);
  std::vector<uint8_t> buffer(100000);
  ASSERT_EQ(c.Receive(1, buffer.data(), buffer.size()), 0);
  ASSERT_EQ(c.Receive(2, buffer.data(), buffer.size()), 0);
  ASSERT_EQ(a.Send(peer, 3, data.data(), data.size()), 0);
  ASSERT_TRUE(a.Take().has_value());
  ASSERT_NE(c.cq->Peek(), nullptr);
  c.endpoint.reset();
  // The entry is still there, but of no endpoint, also not of the next one that
  // has its context.
  ASSERT_TRUE(c.Open(0).ok());
  ASSERT_NE(c.cq->Peek(), nullptr);
  EXPECT_FALSE(c.cq->Retire<backend::Locked>(*c.cq->Peek()).known);
  c.cq->Pop();
  EXPECT_EQ(c.cq->Peek(), nullptr);
  c.endpoint.reset();
  EXPECT_EQ(b.device->mapping_count(), mappings);
  // The context and the queue serve a new endpoint.
  ASSERT_TRUE(c.Open(0).ok());
  const uint32_t again = a.Insert(c);
  ASSERT_EQ(c.Receive(4, buffer.data(), buffer.size()), 0);
  ASSERT_EQ(a.Send(again, 5, data.data(), data.size()), 0);
  const auto taken = c.Take();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->finished.context, 4U);
  EXPECT_EQ(buffer, data);
}

TEST_F(EndpointTest, PortInUseNamesItsOwner) {
  Node c(wire, 0x0a000001);
  const auto opened = c.Open(a.endpoint->port());
  EXPECT_FALSE(opened.ok());
  auto again = c.Open(a.endpoint->port());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error(), Errno{EADDRINUSE});
  EXPECT_EQ(c.owner, static_cast<uint32_t>(getpid()));
}

TEST_F(EndpointTest, ReusedIndexReachesTheNewPeer) {
  Node c(wire, 0x0a000003);
  ASSERT_TRUE(c.Open(0).ok());
  uint64_t data = 1;
  uint64_t buffer = 0;
  ASSERT_EQ(b.Receive(1, &buffer, sizeof(buffer)), 0);
  ASSERT_EQ(a.Send(to_b, 1, &data, sizeof(data)), 0);
  ASSERT_TRUE(b.Take().has_value());
  ASSERT_TRUE(a.Take().has_value());
  ASSERT_TRUE(a.peers->Remove(to_b));
  ASSERT_EQ(a.Insert(c), to_b);
  ASSERT_EQ(c.Receive(1, &buffer, sizeof(buffer)), 0);
  ASSERT_EQ(a.Send(to_b, 1, &data, sizeof(data)), 0);
  EXPECT_TRUE(c.Take().has_value());
}

TEST_F(EndpointTest, UnmappedReceiveBufferIsAnErrorOfThatReceiveOnly) {
  const std::vector<uint8_t> data = Pattern(1000);
  std::vector<uint8_t> buffer(1000);
  {
    auto region = MappedRegion::Create(*b.device, buffer.data(), buffer.size());
    ASSERT_TRUE(region.ok());
    const Segment segment = {.address = buffer.data(),
                             .bytes = buffer.size(),
                             .region = &region.value()};
    ASSERT_EQ(b.endpoint->rx()->PostSegments<backend::Locked>({.context = 1},
                                                              {&segment, 1}),
              0);
  }
  ASSERT_EQ(b.Receive(2, buffer.data(), buffer.size()), 0);
  ASSERT_EQ(a.Send(to_b, 1, data.data(), data.size()), 0);
  ASSERT_EQ(a.Send(to_b, 2, data.data(), data.size()), 0);
  const auto first = b.Take();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->entry.status, contract::Status::kLocalAccess);
  const auto second = b.Take();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->entry.status, contract::Status::kOk);
  EXPECT_EQ(buffer, data);
}

TEST_F(EndpointTest, BufferOutsideItsRegionIsRefused) {
  std::vector<uint8_t> buffer(1000);
  auto region = MappedRegion::Create(*a.device, buffer.data(), 500);
  ASSERT_TRUE(region.ok());
  const Segment segment = {
      .address = buffer.data(), .bytes = 501, .region = &region.value()};
  EXPECT_EQ(a.endpoint->transmit()->PostSegments<backend::Locked>(
                {.context = 1, .peer = to_b}, {&segment, 1}),
            EINVAL);
  EXPECT_EQ(a.endpoint->rx()->PostSegments<backend::Locked>({.context = 1},
                                                            {&segment, 1}),
            EINVAL);
}

// Entries that end in the same word are taken without a look at their queue.
TEST_F(EndpointTest, FrequentEntriesAreOfTheAttachedQueueAndItsFlags) {
  std::array<uint8_t, 8> buffer{};
  auto region = MappedRegion::Create(*b.device, buffer.data(), buffer.size());
  ASSERT_TRUE(region.ok());
  backend::Completion last;
  const auto sink = [&last](const backend::Completion& done, auto /*source*/) {
    last = done;
  };
  const auto arrive = [&](uint64_t context, uint64_t data) {
    const Segment place = {.address = buffer.data(),
                           .bytes = buffer.size(),
                           .region = &region.value()};
    ASSERT_EQ(b.endpoint->rx()->PostSegments<backend::Locked>(
                  {.context = context}, {&place, 1}),
              0);
    const Segment message = {.address = &data, .bytes = sizeof(data)};
    ASSERT_EQ(a.endpoint->transmit()->PostSegments<backend::Locked>(
                  {.data = data,
                   .peer = to_b,
                   .flags = data != 0 ? backend::kCarryData : uint8_t{0}},
                  {&message, 1}),
              0);
    for (int i = 0; i < 1000 && b.cq->Peek() == nullptr; ++i) {
      b.nic->progressor()->step(b.nic->progressor()->cookie);
    }
    ASSERT_NE(b.cq->Peek(), nullptr);
  };
  for (const uint64_t context : {1, 2, 3}) {
    ASSERT_NO_FATAL_FAILURE(arrive(context, 0));
    const bool first = context == 1;
    EXPECT_EQ(b.cq->TryTake(b.cq->Poll(), sink), !first);
    EXPECT_TRUE(!first || b.cq->TryTakeOther(*b.cq->Peek(), sink));
    EXPECT_EQ(last.context, context);
    EXPECT_EQ(last.flags, FI_MSG | FI_RECV);
  }
  for (const uint64_t data : {42, 0}) {
    ASSERT_NO_FATAL_FAILURE(arrive(4, data));
    EXPECT_FALSE(b.cq->TryTake(b.cq->Poll(), sink)) << "other flags";
    ASSERT_TRUE(b.cq->TryTakeOther(*b.cq->Peek(), sink));
    EXPECT_EQ(last.flags,
              FI_MSG | FI_RECV | (data != 0 ? FI_REMOTE_CQ_DATA : 0));
    EXPECT_EQ(last.data(), data);
  }
  // The queue that these were of may be another one's by now.
  b.cq->Detach(*b.endpoint->receive());
  b.cq->Forget(*b.endpoint->receive());
  b.cq->Attach(*b.endpoint->receive());
  ASSERT_NO_FATAL_FAILURE(arrive(5, 0));
  EXPECT_FALSE(b.cq->TryTake(b.cq->Poll(), sink));
  const auto taken = b.Take();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->finished.context, 5U);
}

}  // namespace
}  // namespace heddle::nic
