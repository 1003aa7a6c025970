// SPDX-License-Identifier: Apache-2.0
// Peers that take nothing, on a device that gives up slots of stuck operations.
#include <arpa/inet.h>
#include <rdma/fi_ext_heddle.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

#include "hw/sim/frame/wire_address.h"
#include "hw/sim/wire/wire_control.h"
#include "tests/host/ofi/ip_name.h"
#include "tests/host/ofi/spill_fixture.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

using Kind = StuckOperations::Kind;

// There is no room for more when there was none for as long.
constexpr std::chrono::milliseconds kWhile{300};

// These take more slots than the sender's ring has, and fewer than the device
// holds with the spill area.
constexpr int kMany = 150;

// By what the application is told of.
class SpillModeTest : public SpillTest,
                      public ::testing::WithParamInterface<uint64_t> {
 protected:
  // Many operations to b, which takes none of them.
  void OpenAndSpill() {
    NodeOptions options = Options();
    options.bind_flags = GetParam();
    ASSERT_NO_FATAL_FAILURE(OpenThree(options));
    ASSERT_NO_FATAL_FAILURE(SpillMany());
  }
  void SpillMany() {
    const uint64_t before = Spilled();
    ASSERT_EQ(stuck->PostSend(8, /*inject=*/false), 0);
    ASSERT_NO_FATAL_FAILURE(PostMany(kMany, [&] { return stuck->PostAny(); }));
    // The device may still be at it when the last one is posted.
    EXPECT_TRUE(WaitUntil([&] { return Spilled() > before; }));
  }
  int MessagesFailed() const {
    int failed = stuck->failed_injects;
    for (const auto& operation : stuck->all) {
      failed += operation.kind == Kind::kSend ? operation.failed : 0;
    }
    return failed;
  }
  // Numbers of those that asked and have not ended.
  std::string Unfinished() const {
    std::string text = "without an end:";
    for (size_t i = 0; i < stuck->all.size(); ++i) {
      const auto& each = stuck->all[i];
      if (each.asked && each.done + each.failed == 0) {
        text += ' ' + std::to_string(i) + '/' +
                std::to_string(static_cast<int>(each.kind));
      }
    }
    return text;
  }
  // Each operation has ended, once; those that asked for nothing, silently if
  // they were done.
  void ExpectEachEnded() {
    ASSERT_TRUE(WaitUntil([&] {
      stuck->Poll();
      return std::all_of(stuck->all.begin(), stuck->all.end(),
                         [](const StuckOperations::Operation& each) {
                           return !each.asked || each.done + each.failed != 0;
                         });
    })) << Unfinished();
    int injects = 0;
    for (const auto& operation : stuck->all) {
      injects += operation.kind == Kind::kInject ? 1 : 0;
      ASSERT_EQ(operation.done + operation.failed,
                operation.asked ? 1 : operation.failed);
      ASSERT_LE(operation.failed, 1);
    }
    EXPECT_LE(stuck->failed_injects, injects);
    EXPECT_TRUE(stuck->others.empty());
  }
};

TEST_P(SpillModeTest, OthersGoOnAndAllArrivesInOrderInTheEnd) {
  ASSERT_NO_FATAL_FAILURE(OpenAndSpill());
  for (int round = 0; round < 3; ++round) {
    // It has to be posted while the others are still stuck.
    ASSERT_NO_FATAL_FAILURE(PostMany(1, [&] { return stuck->PostLast(); }));
    ASSERT_NO_FATAL_FAILURE(TakeAllAtB());
    ASSERT_NO_FATAL_FAILURE(ExpectAllDone());
    if (round != 2) {
      ASSERT_NO_FATAL_FAILURE(SpillMany());
    }
  }
  ASSERT_NO_FATAL_FAILURE(ExchangeWithC());
}

TEST_P(SpillModeTest, PeerThatLeavesEndsEachInErrorAndOthersGoOn) {
  fences = false;
  ASSERT_NO_FATAL_FAILURE(OpenAndSpill());
  target_region.reset();
  source_region.reset();
  b.reset();
  // Operations to somebody who is not there.
  ASSERT_NO_FATAL_FAILURE(PostMany(32, [&] { return stuck->PostAny(); }));
  ASSERT_NO_FATAL_FAILURE(ExpectEachEnded());
  // b took none, so that none was a success.
  EXPECT_TRUE(WaitUntil([&] {
    stuck->Poll();
    return MessagesFailed() == static_cast<int>(stuck->sends);
  })) << MessagesFailed();
  for (int i = 0; i < 100; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExchangeWithC());
  }
}

TEST_P(SpillModeTest, ResetOfTheNicEndsEachInError) {
  ASSERT_NO_FATAL_FAILURE(OpenAndSpill());
  const sockaddr_in name = IpName(*a);
  std::array<char, INET_ADDRSTRLEN> text;
  ASSERT_NE(inet_ntop(AF_INET, &name.sin_addr, text.data(), text.size()),
            nullptr);
  std::string message;
  auto wire =
      sim::wire::WireControl::Open(std::getenv("FI_HEDDLE_WIRE"), &message);
  ASSERT_TRUE(wire.ok()) << message;
  sim::frame::WireAddress address;
  ASSERT_TRUE(sim::frame::ParseWireAddress(text.data(), &address));
  ASSERT_GE(wire.value().Reset(address, std::nullopt), 1U);
  ssize_t result = 0;
  ASSERT_TRUE(WaitUntil([&] {
    stuck->Poll();
    result = stuck->PostSend(8, /*inject=*/false);
    return result != 0 && result != -FI_EAGAIN;
  }));
  EXPECT_EQ(result, -FI_EIO);
  ASSERT_NO_FATAL_FAILURE(ExpectEachEnded());
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_read(a->tx_cq, &entry, 1), -FI_EIO);
}

TEST_P(SpillModeTest, ClosedEndpointIsSilentAndTheNextIsAsNew) {
  ASSERT_NO_FATAL_FAILURE(OpenAndSpill());
  ASSERT_EQ(fi_close(&a->ep->fid), 0);
  // What the operations sent is gone as well.
  stuck->all.clear();
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
  a->ep = a->OpenEndpoint();
  ASSERT_NO_FATAL_FAILURE(ExchangeWithC());
  // Nothing of the former arrives in the middle of a message of the next.
  for (int i = 0; i < 300; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExchangeWithC());
  }
}

INSTANTIATE_TEST_SUITE_P(, SpillModeTest,
                         ::testing::Values(0, FI_SELECTIVE_COMPLETION));

// Full is an answer, and no state for ever.
TEST_F(SpillTest, FullIsRefusedUntilThePeerTakesMore) {
  NodeOptions options = Options();
  options.bind_flags = FI_SELECTIVE_COMPLETION;
  ASSERT_NO_FATAL_FAILURE(OpenThree(options));
  for (int round = 0; round < 3; ++round) {
    uint32_t posted = 0;
    while (WaitUntil([&] { return stuck->PostAny() == 0; }, kWhile)) {
      ++posted;
    }
    EXPECT_GT(posted, 64U);
    ASSERT_NO_FATAL_FAILURE(TakeAllAtB());
    ASSERT_NO_FATAL_FAILURE(PostMany(1, [&] { return stuck->PostLast(); }));
    ASSERT_NO_FATAL_FAILURE(TakeAllAtB());
    ASSERT_NO_FATAL_FAILURE(ExpectAllDone());
  }
  ASSERT_NO_FATAL_FAILURE(ExchangeWithC());
}

// The queue tells of nothing that anybody asked for, so nobody reads it.
TEST_F(SpillTest, QueueThatIsNeverReadStopsNothing) {
  NodeOptions options = Options();
  options.bind_flags = FI_SELECTIVE_COMPLETION;
  options.tx_size = 32;
  options.cq_size = 256;
  options.enable = false;
  options.progress = FI_PROGRESS_AUTO;
  NodeOptions of_b = options;
  of_b.bind_flags = 0;
  ASSERT_NO_FATAL_FAILURE(Open(options, of_b));
  fi_cntr_attr attr = {};
  attr.events = FI_CNTR_EVENTS_COMP;
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(a->domain, &attr, &counter, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(a->ep, &counter->fid, FI_SEND), 0);
  ASSERT_EQ(fi_enable(a->ep), 0);
  ASSERT_EQ(fi_enable(b->ep), 0);
  stuck.emplace(a.get(), a->Insert(*b), TestSeed());
  reads_queue = false;
  constexpr uint32_t kMessages = 3000;
  const auto post = [&] {
    return stuck->PostSend(8 + stuck->sends % 185,
                           /*inject=*/stuck->sends % 3 != 0);
  };
  // All are spilled that may be, however fast the device is.
  while (WaitUntil([&] { return post() == 0; }, kWhile)) {
  }
  EXPECT_GT(Spilled(), options.tx_size);
  while (stuck->sends < kMessages) {
    const ssize_t result = post();
    if (result != 0) {
      ASSERT_EQ(result, -FI_EAGAIN);
      // b takes some when there is no room for more.
      ASSERT_NO_FATAL_FAILURE(TakeAtB(std::min(stuck->sends, taken + 40)));
    }
  }
  // The sender makes no more calls.
  ASSERT_NO_FATAL_FAILURE(TakeAllAtB());
  EXPECT_TRUE(WaitUntil([&] { return fi_cntr_read(counter) == kMessages; }));
  EXPECT_EQ(fi_cntr_readerr(counter), 0U);
  // Only now: there was nothing to be told.
  EXPECT_TRUE(StaysEmpty(a->tx_cq));
  EXPECT_EQ(fi_close(&a->ep->fid), 0);
  a->ep = nullptr;
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

// A node in a process of its own that takes nothing.
class ChildNode {
 public:
  ChildNode() {
    std::array<int, 2> pipe_ends;
    EXPECT_EQ(pipe(pipe_ends.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      Live(pipe_ends[1]);
    }
    EXPECT_EQ(read(pipe_ends[0], &name_, sizeof(name_)),
              static_cast<ssize_t>(sizeof(name_)));
    (void)close(pipe_ends[0]);
    (void)close(pipe_ends[1]);
  }
  ChildNode(const ChildNode&) = delete;
  ChildNode& operator=(const ChildNode&) = delete;
  ~ChildNode() { Kill(); }
  void Kill() {
    if (pid_ > 0) {
      EXPECT_EQ(kill(pid_, SIGKILL), 0);
      EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
      pid_ = -1;
    }
  }
  const sockaddr_in& name() const { return name_; }

 private:
  [[noreturn]] static void Live(int out) {
    NodeOptions options = RmaOptions();
    options.progress = FI_PROGRESS_AUTO;  // It answers, while it lives.
    const Node node(options);
    if (node.ok()) {
      const sockaddr_in name = IpName(node);
      (void)!write(out, &name, sizeof(name));
    }
    for (;;) {
      (void)pause();
    }
  }

  pid_t pid_ = -1;
  sockaddr_in name_ = {};
};

TEST_P(SpillModeTest, KilledPeerEndsEachInErrorAndOthersGoOn) {
  ChildNode child;
  NodeOptions options = Options();
  options.bind_flags = GetParam();
  a = std::make_unique<Node>(options);
  ASSERT_TRUE(a->ok());
  c = std::make_unique<Node>(RmaOptions());
  ASSERT_TRUE(c->ok());
  to_c = a->Insert(*c);
  ASSERT_EQ(fi_av_insert(a->av, &child.name(), 1, &to_b, 0, nullptr), 1);
  stuck.emplace(a.get(), to_b, TestSeed());
  stuck->WithoutFences();
  if (GetParam() == 0) {
    stuck->ReportAll();
  }
  ASSERT_NO_FATAL_FAILURE(SpillMany());
  child.Kill();
  ASSERT_NO_FATAL_FAILURE(PostMany(16, [&] { return stuck->PostAny(); }));
  ASSERT_NO_FATAL_FAILURE(ExpectEachEnded());
  EXPECT_TRUE(WaitUntil([&] {
    stuck->Poll();
    return MessagesFailed() == static_cast<int>(stuck->sends);
  })) << MessagesFailed();
  ASSERT_NO_FATAL_FAILURE(ExchangeWithC());
}

}  // namespace
}  // namespace heddle::test
