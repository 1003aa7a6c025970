// SPDX-License-Identifier: Apache-2.0
// Remote memory access, regions, counters.
#include <rdma/fi_rma.h>

#include <array>
#include <cstring>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t kLocal = FI_SEND | FI_RECV | FI_READ | FI_WRITE;

// Node a is the initiator, node b the target.
class RemoteTest : public NodesTest {
 protected:
  bool OpenRemote(NodeOptions options = {}) {
    options.caps |= FI_RMA;
    return Open(options);
  }

  ssize_t Write(Buffer& source, size_t bytes, uint64_t address, uint64_t key) {
    return Post([&] {
      return fi_write(a().ep, source.data(), bytes, source.desc(), to_b(),
                      address, key, &context_);
    });
  }

  ssize_t Read(Buffer& sink, size_t bytes, uint64_t address, uint64_t key) {
    return Post([&] {
      return fi_read(a().ep, sink.data(), bytes, sink.desc(), to_b(), address,
                     key, &context_);
    });
  }

  // The operation that was just posted ends in error.
  void ExpectFailure(const char* what) {
    const auto completion = Take(a().tx);
    ASSERT_TRUE(completion.has_value()) << what;
    ASSERT_TRUE(completion->error) << what;
    EXPECT_GT(completion->failure.err, 0) << what;
    EXPECT_EQ(completion->failure.op_context, &context_) << what;
  }

  fi_context2 context_ = {};
};

class CounterTest : public RemoteTest {
 protected:
  // Two nodes whose endpoints count each kind of operation by a counter of
  // its own; false, with the verdict, where that cannot be.
  bool OpenCounters(uint64_t caps) {
    NodeOptions options;
    options.caps = caps;
    options.enable = false;
    if (!Open(options)) {
      return false;
    }
    for (Node* const node : {&a(), &b()}) {
      for (const uint64_t kind : {FI_SEND, FI_RECV, FI_READ, FI_WRITE}) {
        if ((kind & (FI_READ | FI_WRITE)) != 0 && (caps & FI_RMA) == 0) {
          continue;
        }
        fi_cntr_attr attr = {};
        fid_cntr* counter = nullptr;
        const int result = fi_cntr_open(node->domain, &attr, &counter, nullptr);
        if (result == -FI_ENOSYS) {
          NotOffered("counters");
          return false;
        }
        EXPECT_EQ(result, 0);
        counters_.push_back({node, kind, counter});
        EXPECT_EQ(fi_ep_bind(node->ep, &counter->fid, kind), 0);
      }
    }
    return !HasFailure() && Enable();
  }

  void TearDown() override {
    for (const Counter& counter : counters_) {
      // An endpoint goes before its counters.
      if (counter.node->ep != nullptr) {
        EXPECT_EQ(fi_close(&counter.node->ep->fid), 0);
        counter.node->ep = nullptr;
      }
      EXPECT_EQ(fi_close(&counter.counter->fid), 0);
    }
    NodesTest::TearDown();
  }

  fid_cntr* Of(const Node& node, uint64_t kind) const {
    for (const Counter& counter : counters_) {
      if (counter.node == &node && counter.kind == kind) {
        return counter.counter;
      }
    }
    return nullptr;
  }

  // Waits for the value and then expects no more than it.
  void ExpectCount(const Node& node, uint64_t kind, uint64_t value) {
    fid_cntr* const counter = Of(node, kind);
    EXPECT_TRUE(WaitUntil([&] { return fi_cntr_read(counter) >= value; }))
        << "counter of " << fi_tostr(&kind, FI_TYPE_CAPS);
    EXPECT_EQ(fi_cntr_read(counter), value) << fi_tostr(&kind, FI_TYPE_CAPS);
  }

 private:
  struct Counter {
    Node* node;
    uint64_t kind;
    fid_cntr* counter;
  };
  std::vector<Counter> counters_;
};

CONFORMANCE_TEST(RemoteTest, WriteWithDataTakesNoReceive, 76, 161) {
  if (!OpenRemote()) {
    return;
  }
  if (a().info->domain_attr->cq_data_size == 0 ||
      (b().info->mode & FI_RX_CQ_DATA) != 0) {
    return NotOffered("remote completion data without receives");
  }
  Buffer source(a(), 64, kLocal);
  Buffer target(b(), 64, kRemote);
  Buffer received(b(), 64);
  source.Fill();
  fi_context2 receive = {};
  ASSERT_EQ(Receive(received, &receive), 0);
  ASSERT_EQ(Post([&] {
              return fi_writedata(a().ep, source.data(), 64, source.desc(),
                                  0xabcd, to_b(), target.address(),
                                  target.key(), &context_);
            }),
            0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_FALSE(completion->error);
  EXPECT_NE(completion->entry.flags & FI_REMOTE_WRITE, 0U);
  EXPECT_NE(completion->entry.flags & FI_REMOTE_CQ_DATA, 0U);
  EXPECT_EQ(completion->entry.data, 0xabcdU);
  EXPECT_EQ(target.bytes(), source.bytes());
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
  // The receive is still there.
  EXPECT_TRUE(StaysEmpty(b().rx));
  ASSERT_EQ(Send(source, 64, &context_), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &receive));
  EXPECT_EQ(received.bytes(), source.bytes());
}

CONFORMANCE_TEST(RemoteTest, AccessOutsideARegionFailsAtTheInitiator, 117) {
  if (!OpenRemote()) {
    return;
  }
  Buffer source(a(), 64, kLocal);
  source.Fill();
  const std::vector<uint8_t> zero(64);
  Buffer target(b(), 64, kRemote);
  ASSERT_EQ(Write(source, 64, target.address(), target.key() ^ 0x5a5a), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectFailure("a write by an unknown key"));
  EXPECT_EQ(target.bytes(), zero);
  ASSERT_EQ(Write(source, 64, target.address() + 32, target.key()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectFailure("a write beyond the region"));
  EXPECT_EQ(target.bytes(), zero);
  Buffer sink(a(), 64, kLocal);
  ASSERT_EQ(Read(sink, 64, target.address() + 32, target.key()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectFailure("a read beyond the region"));
  // Others go on.
  ASSERT_EQ(Write(source, 64, target.address(), target.key()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
}

CONFORMANCE_TEST(RemoteTest, AddressesAreOffsets, 127) {
  NodeOptions options;
  options.mr_mode &= ~FI_MR_VIRT_ADDR;
  if (!OpenRemote(options)) {
    return;
  }
  ASSERT_EQ(b().info->domain_attr->mr_mode & FI_MR_VIRT_ADDR, 0);
  Buffer source(a(), 16, kLocal);
  Buffer target(b(), 256, kRemote);
  source.Fill();
  ASSERT_EQ(Write(source, 16, 100, target.key()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
  EXPECT_TRUE(WaitUntil([&] {
    return std::memcmp(target.data() + 100, source.data(), 16) == 0;
  }));
  Buffer sink(a(), 16, kLocal);
  ASSERT_EQ(Read(sink, 16, 100, target.key()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
  EXPECT_EQ(sink.bytes(), source.bytes());
  std::vector<uint8_t> expected(256);
  std::memcpy(expected.data() + 100, source.data(), 16);
  EXPECT_EQ(target.bytes(), expected);
}

CONFORMANCE_TEST(RemoteTest, KeysAreThoseOfTheApplication, 128) {
  NodeOptions options;
  options.mr_mode &= ~FI_MR_PROV_KEY;
  options.caps |= FI_RMA;
  if (!Open(options, 1)) {
    return;
  }
  ASSERT_EQ(a().info->domain_attr->mr_mode & FI_MR_PROV_KEY, 0);
  std::array<uint8_t, 128> memory = {};
  constexpr uint64_t kKey = 0x7a;
  fid_mr* first = nullptr;
  fid_mr* second = nullptr;
  ASSERT_EQ(fi_mr_reg(a().domain, memory.data(), 64, kRemote, 0, kKey, 0,
                      &first, nullptr),
            0);
  EnableRegion(a(), first);
  EXPECT_EQ(fi_mr_key(first), kKey);
  const int result = fi_mr_reg(a().domain, memory.data() + 64, 64, kRemote, 0,
                               kKey, 0, &second, nullptr);
  EXPECT_EQ(result, -FI_ENOKEY);
  if (result == 0) {
    EXPECT_EQ(fi_close(&second->fid), 0);
  }
  EXPECT_EQ(fi_close(&first->fid), 0);
  ASSERT_EQ(fi_mr_reg(a().domain, memory.data(), 64, kRemote, 0, kKey, 0,
                      &first, nullptr),
            0)
      << "a key is free again after the close";
  EXPECT_EQ(fi_close(&first->fid), 0);
}

CONFORMANCE_TEST(RemoteTest, KeysOfTheProviderAreUnique, 129) {
  NodeOptions options;
  options.caps |= FI_RMA;
  if (!Open(options, 1)) {
    return;
  }
  if ((a().info->domain_attr->mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC)) == 0) {
    return NotOffered("FI_MR_PROV_KEY");
  }
  std::array<uint8_t, 128> memory = {};
  std::array<fid_mr*, 2> regions = {};
  for (size_t i = 0; i < regions.size(); ++i) {
    ASSERT_EQ(fi_mr_reg(a().domain, memory.data() + 64 * i, 64, kRemote, 0, 7,
                        0, &regions.at(i), nullptr),
              0);
    EnableRegion(a(), regions.at(i));
  }
  EXPECT_NE(fi_mr_key(regions[0]), fi_mr_key(regions[1]));
  for (fid_mr* const region : regions) {
    EXPECT_EQ(fi_close(&region->fid), 0);
  }
}

CONFORMANCE_TEST(RemoteTest, DeliveredWriteIsInTheMemoryOfItsTarget, 260) {
  NodeOptions options;
  options.tx_op_flags = FI_DELIVERY_COMPLETE;
  const InfoPointer hints = MakeHints(FI_MSG | FI_RMA);
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  if (GetInfo(hints.get()).result == -FI_ENODATA &&
      GetInfo(MakeHints(FI_MSG | FI_RMA).get()).result == 0) {
    return Refused("FI_DELIVERY_COMPLETE among the hints", -FI_ENODATA);
  }
  if (!OpenRemote(options)) {
    return;
  }
  for (const size_t bytes : {8U, 3000U, 50'000U, 500'000U}) {
    Buffer source(a(), bytes, kLocal);
    Buffer target(b(), bytes, kRemote);
    source.Fill();
    ASSERT_EQ(Write(source, bytes, target.address(), target.key()), 0);
    ASSERT_TRUE(WaitUntil([&] { return !a().tx.taken.empty(); }));
    EXPECT_EQ(target.bytes(), source.bytes()) << bytes;
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
  }
}

CONFORMANCE_TEST(RemoteTest, RightsOfARegionAreEnforced, 292) {
  if (!OpenRemote()) {
    return;
  }
  Buffer source(a(), 64, kLocal);
  source.Fill();
  Buffer readable(b(), 64, FI_REMOTE_READ);
  Buffer writable(b(), 64, FI_REMOTE_WRITE);
  ASSERT_EQ(Write(source, 64, readable.address(), readable.key()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectFailure("a write into a region for reads"));
  EXPECT_EQ(readable.bytes(), std::vector<uint8_t>(64));
  Buffer sink(a(), 64, kLocal);
  writable.Fill(3);
  ASSERT_EQ(Read(sink, 64, writable.address(), writable.key()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectFailure("a read of a region for writes"));
  EXPECT_EQ(sink.bytes(), std::vector<uint8_t>(64));
  ASSERT_EQ(Read(sink, 64, readable.address(), readable.key()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
  ASSERT_EQ(Write(source, 64, writable.address(), writable.key()), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
}

CONFORMANCE_TEST(CounterTest, MessagesCountOnBothSides, 175, 176) {
  if (!OpenCounters(FI_MSG)) {
    return;
  }
  for (uint64_t i = 1; i <= 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(Exchange(64));
    ExpectCount(a(), FI_SEND, i);
    ExpectCount(b(), FI_RECV, i);
  }
  EXPECT_EQ(fi_cntr_read(Of(a(), FI_RECV)), 0U);
  EXPECT_EQ(fi_cntr_read(Of(b(), FI_SEND)), 0U);
  EXPECT_EQ(fi_cntr_readerr(Of(a(), FI_SEND)), 0U);
  EXPECT_EQ(fi_cntr_readerr(Of(b(), FI_RECV)), 0U);
}

CONFORMANCE_TEST(CounterTest, RemoteAccessCountsAtItsInitiator, 177, 178) {
  if (!OpenCounters(FI_MSG | FI_RMA)) {
    return;
  }
  Buffer source(a(), 64, kLocal);
  Buffer target(b(), 64, kRemote);
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(Write(source, 64, target.address(), target.key()), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
    ExpectCount(a(), FI_WRITE, i);
  }
  for (uint64_t i = 1; i <= 2; ++i) {
    ASSERT_EQ(Read(source, 64, target.address(), target.key()), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context_));
    ExpectCount(a(), FI_READ, i);
  }
  EXPECT_EQ(fi_cntr_read(Of(a(), FI_WRITE)), 3U);
  EXPECT_EQ(fi_cntr_read(Of(a(), FI_SEND)), 0U);
}

CONFORMANCE_TEST(CounterTest, FailureCountsAsErrorAndHasItsEntry, 180) {
  if (!OpenCounters(FI_MSG)) {
    return;
  }
  Buffer sent(a(), 64);
  Buffer received(b(), 40);
  fi_context2 context = {};
  ASSERT_EQ(Receive(received, &context), 0);
  ASSERT_EQ(Send(sent, 64, &context_), 0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  if (!completion->error) {
    return NotOffered("truncation as an error");  // 116 judges that.
  }
  EXPECT_TRUE(
      WaitUntil([&] { return fi_cntr_readerr(Of(b(), FI_RECV)) == 1; }));
  EXPECT_EQ(fi_cntr_read(Of(b(), FI_RECV)), 0U);
}

// fi_cntr(3) leaves open whether the error value grows.
CONFORMANCE_TEST(CounterTest, CanceledReceiveIsNoSuccess, 180) {
  if (!OpenCounters(FI_MSG)) {
    return;
  }
  Buffer canceled(b(), 64);
  fi_context2 context = {};
  ASSERT_EQ(Receive(canceled, &context), 0);
  ASSERT_EQ(fi_cancel(&b().ep->fid, &context), 0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_TRUE(completion->error);
  EXPECT_LE(fi_cntr_readerr(Of(b(), FI_RECV)), 1U);
  EXPECT_EQ(fi_cntr_read(Of(b(), FI_RECV)), 0U);
}

}  // namespace
}  // namespace heddle::conformance
