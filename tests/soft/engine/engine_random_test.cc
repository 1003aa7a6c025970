// SPDX-License-Identifier: Apache-2.0
// Random streams between three engines against a naive model.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"
#include "tests/soft/engine/lossy_fabric.h"

namespace heddle::soft::engine {

using contract::wire::SesStd;
using transport::MessageIndex;
using transport::ReturnData;

namespace {

using contract::Completion;
using contract::CompletionKind;
using contract::Opcode;
using contract::Status;
using contract::TxDesc;

// Every operation has memory of its own at its target, so that the outcome does
// not depend on the order: bytes written, bytes read, and what each side is
// told are known when it is posted. Sends to a node carry a number in
// header_data, and on an ordered context come in the order of posting.
class Stream {
 public:
  // The fabric outlives the stream; `fake`: it is a FakeFabric.
  Stream(uint32_t seed, bool ordered, TestFabric* fabric, bool fake)
      : random_(seed), fabric_(*fabric), fake_(fake) {
    EngineNode::Options options;
    options.ordered = ordered ? 0xff : 0;
    options.spill = Chance(2);
    options.cq_log2 = Chance(2) ? 10 : 4;
    options.rx_flags = contract::kRxCtxFlagRegionEvent;
    ordered_ = ordered;
    for (size_t i = 0; i < kNodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(&fabric_, options));
      Node& node = *nodes_.back();
      for (size_t byte = 0; byte < kRegion; ++byte) {
        node.region[byte] = static_cast<uint8_t>(random_());
        node.local[byte] = static_cast<uint8_t>(random_());
      }
      node.expected_region.assign(node.region, node.region + kRegion);
      node.expected_local.assign(node.local, node.local + kRegion);
    }
  }

  void Run(int operations) {
    int left = operations;
    // Goes on a while when all is done: nothing may come then.
    int after = 0;
    for (int i = 0; i < 2'000'000 && after < 500; ++i) {
      if (left > 0 && Chance(3)) {
        left -= PostOne() ? 1 : 0;
      }
      for (auto& node : nodes_) {
        if (Chance(3)) {
          Receive(*node);
        }
        if (Chance(2)) {
          node->host.engine().Progress(1 + Number(8));
        }
        Poll(*node);
      }
      for (uint32_t steps = Number(30); steps != 0; --steps) {
        fabric_.Step();
      }
      after = left == 0 && Done() ? after + 1 : 0;
    }
    Check();
  }

 private:
  static constexpr size_t kNodes = 3;
  static constexpr size_t kRegion = size_t{1} << 20U;
  static constexpr uint32_t kBuffer = 6000;

  struct Operation {
    TxDesc descriptor;
    Status status = Status::kOk;
    bool told = false;  // Wants a completion.
  };
  struct Node {
    Node(TestFabric* fabric, const EngineNode::Options& options)
        : host(fabric, options),
          region(host.Allocate(kRegion)),
          local(host.Allocate(kRegion)),
          buffers(host.Allocate(EngineNode::kRing * kBuffer)) {
      key = host.Region(1, region, kRegion, 3).key;
    }
    EngineNode host;
    uint8_t* region;
    uint8_t* local;
    uint8_t* buffers;
    uint64_t key = 0;
    size_t region_used = 0;
    size_t local_used = 0;
    std::vector<uint8_t> expected_region;
    std::vector<uint8_t> expected_local;
    std::map<uint64_t, Operation> posted;  // By op_context.
    // Sends to this node that did not come yet, by sender and number.
    std::map<uint64_t, std::vector<uint8_t>> coming;
    uint32_t next_number = 1;                // Of its own sends.
    std::array<uint64_t, kNodes> seen = {};  // Ordered: by sender.
    uint32_t rma_reports = 0;                // To come.
    uint16_t rx_head = 0;
  };

  bool Chance(uint32_t n) { return Number(n) == 0; }
  uint32_t Number(uint32_t n) {
    return std::uniform_int_distribution<uint32_t>(0, n - 1)(random_);
  }

  void Receive(Node& node) {
    EngineNode& host = node.host;
    if (static_cast<uint16_t>(host.rx_tail() - node.rx_head) >=
        EngineNode::kRing) {
      return;
    }
    const uint32_t slot = host.rx_tail() % EngineNode::kRing;
    host.Receive(node.buffers + slot * kBuffer, kBuffer, slot);
  }

  bool PostOne() {
    Node& from = *nodes_[Number(kNodes)];
    const uint32_t to = Number(kNodes);
    EngineNode& host = from.host;
    if (static_cast<uint16_t>(host.tx_tail() - host.released()) >
        EngineNode::kRing - 8) {
      return false;
    }
    const uint32_t length = Chance(3)   ? Number(20)
                            : Chance(2) ? Number(1200)
                                        : Number(kBuffer);
    Node& target = *nodes_[to];
    if (from.local_used + length > kRegion ||
        target.region_used + length > kRegion) {
      return false;
    }
    Operation operation;
    TxDesc& descriptor = operation.descriptor;
    descriptor = EngineNode::Send(to, from.local + from.local_used, length);
    descriptor.op_context = ++contexts_;
    operation.told = Chance(2);
    descriptor.flags = operation.told ? contract::kTxFlagCompletion : 0;
    if (Chance(5)) {
      descriptor.flags |= contract::kTxFlagFence;
    }
    if (Chance(5)) {
      descriptor.flags |= contract::kTxFlagDeliveryComplete;
    }
    switch (Number(4)) {
      case 0:
        Rma(from, target, Opcode::kWrite, &operation);
        break;
      case 1:
        Rma(from, target, Opcode::kRead, &operation);
        break;
      default: {
        const uint64_t number = from.next_number++;
        const auto sender =
            static_cast<uint64_t>(&from == nodes_[0].get()   ? 0
                                  : &from == nodes_[1].get() ? 1
                                                             : 2);
        descriptor.flags |= contract::kTxFlagHeaderData;
        descriptor.header_data = number;
        target.coming[sender << 32U | number] = {
            from.local + from.local_used,
            from.local + from.local_used + length};
        break;
      }
    }
    from.local_used += length;
    from.posted[descriptor.op_context] = operation;
    PostSplit(host, descriptor);
    return true;
  }

  // In one piece, or two.
  void PostSplit(EngineNode& host, TxDesc descriptor) {
    if (descriptor.length < 2 || !Chance(3)) {
      host.Post(descriptor);
      return;
    }
    std::array<contract::TxSegment, 4> segments = {};
    const uint32_t first = 1 + Number(descriptor.length - 1);
    segments[0] = {descriptor.local_iova, first, 0};
    segments[1] = {descriptor.local_iova + first, descriptor.length - first, 0};
    descriptor.segments = 2;
    descriptor.ext_slots = 1;
    descriptor.local_iova = 0;
    descriptor.local_length = 0;
    host.Post(descriptor, {reinterpret_cast<uint8_t*>(segments.data()), 64});
  }

  void Rma(Node& from, Node& target, Opcode opcode, Operation* operation) {
    TxDesc& descriptor = operation->descriptor;
    descriptor.opcode = opcode;
    descriptor.match_bits = target.key;
    const uint32_t length = descriptor.length;
    const size_t at = target.region_used;
    descriptor.remote_offset = at;
    if (Chance(6)) {
      operation->status = Status::kRemoteError;
      (Chance(2) ? descriptor.match_bits : descriptor.remote_offset) ^=
          uint64_t{1} << 40U;
      return;
    }
    target.region_used += length;
    ++target.rma_reports;
    const bool write = opcode == Opcode::kWrite;
    const uint8_t* const source =
        write ? from.local + from.local_used : target.region + at;
    std::copy_n(
        source, length,
        write ? target.expected_region.begin() + static_cast<ptrdiff_t>(at)
              : from.expected_local.begin() +
                    static_cast<ptrdiff_t>(from.local_used));
  }

  bool Done() const {
    for (const auto& node : nodes_) {
      if (!node->coming.empty() || node->rma_reports != 0 ||
          !node->host.engine().idle()) {
        return false;
      }
      for (const auto& [context, operation] : node->posted) {
        if (operation.told || operation.status != Status::kOk) {
          return false;
        }
      }
    }
    return true;
  }

  void Poll(Node& node) {
    if (Chance(2)) {
      while (const auto entry = node.host.Poll(0)) {
        Transmitted(node, *entry);
      }
    }
    if (Chance(2)) {
      while (const auto entry = node.host.Poll(1)) {
        Received(node, *entry);
      }
    }
  }

  void Transmitted(Node& node, const Completion& entry) {
    const auto at = node.posted.find(entry.op_context);
    ASSERT_NE(at, node.posted.end()) << "completed twice or never posted";
    const Operation& operation = at->second;
    EXPECT_EQ(entry.status, operation.status) << "detail " << entry.detail;
    const bool silent = !operation.told && operation.status == Status::kOk;
    EXPECT_EQ(entry.kind,
              silent ? CompletionKind::kTxSilent : CompletionKind::kTx);
    EXPECT_EQ(entry.opcode, operation.descriptor.opcode);
    if (entry.status == Status::kOk) {
      EXPECT_EQ(entry.length, operation.descriptor.length);
    }
    node.posted.erase(at);
  }

  void Received(Node& node, const Completion& entry) {
    if (entry.kind == CompletionKind::kTarget) {
      ASSERT_GT(node.rma_reports, 0u);
      --node.rma_reports;
      EXPECT_EQ(entry.match_bits, node.key);
      return;
    }
    ASSERT_EQ(entry.kind, CompletionKind::kRx);
    node.rx_head = entry.queue_head;
    EXPECT_EQ(entry.status, Status::kOk);
    const uint64_t name = entry.source_fa_lo << 32U | entry.header_data;
    const auto at = node.coming.find(name);
    ASSERT_NE(at, node.coming.end()) << "came twice or was never sent";
    ASSERT_EQ(entry.length, at->second.size());
    EXPECT_TRUE(std::equal(at->second.begin(), at->second.end(),
                           node.buffers + entry.op_context * kBuffer));
    if (ordered_) {
      EXPECT_GT(entry.header_data, node.seen[entry.source_fa_lo]);
      node.seen[entry.source_fa_lo] = entry.header_data;
    }
    node.coming.erase(at);
  }

  void Check() {
    for (auto& node : nodes_) {
      EXPECT_TRUE(node->coming.empty()) << node->coming.size() << " lost";
      EXPECT_EQ(node->rma_reports, 0u);
      for (const auto& [context, operation] : node->posted) {
        EXPECT_TRUE(!operation.told && operation.status == Status::kOk)
            << "operation " << context << " never completed";
      }
      EXPECT_TRUE(std::equal(node->expected_region.begin(),
                             node->expected_region.end(), node->region));
      EXPECT_TRUE(std::equal(node->expected_local.begin(),
                             node->expected_local.end(), node->local));
      EXPECT_TRUE(node->host.engine().idle());
      EXPECT_EQ(node->host.released(), node->host.tx_tail());
      EXPECT_TRUE(!fake_ || node->host.carrier().known.empty());
      EXPECT_EQ(node->host.dma().blocked_reads(), 0u);
      EXPECT_EQ(node->host.dma().blocked_writes(), 0u);
      EXPECT_EQ(node->host.engine().statistic(contract::Statistic::kDropSes),
                0u);
    }
  }

  std::mt19937 random_;
  TestFabric& fabric_;
  bool fake_;
  bool ordered_ = false;
  uint64_t contexts_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
};

class EngineRandomTest : public testing::TestWithParam<bool> {};

TEST_P(EngineRandomTest, EveryOperationHappensOnceAsTheModelSays) {
  const uint32_t seed = TestSeed();
  for (uint32_t round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    FakeFabric fabric(seed + round);
    Stream stream(seed + 17 * round, GetParam(), &fabric, true);
    stream.Run(150);
    if (testing::Test::HasFailure()) {
      break;
    }
  }
}

TEST_P(EngineRandomTest, TransportsOverABadNetworkChangeNothingOfThat) {
  const uint32_t seed = TestSeed();
  for (uint32_t round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    LossyFabric fabric(seed + round,
                       round == 0 ? LossyFabric::Weather{}
                                  : LossyFabric::Weather{.loss = 0.05,
                                                         .duplication = 0.02,
                                                         .reordering = 0.05});
    Stream stream(seed + 17 * round, GetParam(), &fabric, false);
    stream.Run(150);
    if (testing::Test::HasFailure()) {
      break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineRandomTest, testing::Bool(),
                         [](const auto& mode) {
                           return mode.param ? "Ordered" : "Unordered";
                         });

// Packets that no legal peer sends: whatever they say, only memory that the
// region or the buffer grants is touched.
TEST(EngineHostileTest, RandomPacketsTouchNothingTheyMayNot) {
  const uint32_t seed = TestSeed();
  std::mt19937 random(seed);
  FakeFabric fabric(seed);
  EngineNode::Options options;
  options.rx_flags = contract::kRxCtxFlagRegionEvent;
  EngineNode node(&fabric, options);
  uint8_t* const region = node.Allocate(4096);
  const contract::RegionCfg cfg = node.Region(1, region + 1024, 2048, 3);
  uint8_t* const buffers = node.Allocate(4096);
  std::fill_n(region, 4096, uint8_t{0x5a});
  const auto any = [&](uint32_t n) {
    return std::uniform_int_distribution<uint32_t>(0, n - 1)(random);
  };
  SesStd header;
  std::vector<uint8_t> packet(2048, 0x77);
  for (int i = 0; i < 200000; ++i) {
    header.opcode = static_cast<contract::SesOpcode>(
        any(8) == 0 ? any(64) : std::array{1U, 2U, 5U}[any(3)]);
    header.ver = any(50) == 0;
    header.ie = any(10) == 0;
    header.rel = any(50) == 0;
    header.dc = any(2) == 0;
    header.hd = any(4) == 0;
    header.som = any(2) == 0;
    header.eom = any(2) == 0;
    header.message_id = static_cast<uint16_t>(any(6));
    header.job_id = any(20) == 0 ? 1 : EngineNode::kJob;
    header.pid_on_fep = EngineNode::kPid;
    header.resource_index = any(20) == 0 ? 2 : 1;
    header.match_bits = any(20) == 0 ? random() : cfg.key;
    header.buffer_offset = any(10) == 0 ? ~uint64_t{0} - any(4000) : any(2100);
    header.request_length = any(20) == 0 ? 0xffffffff - any(9) : any(4000);
    header.message_offset =
        any(20) == 0 ? static_cast<uint32_t>(random()) : 1024 * any(4);
    const uint32_t bytes =
        any(3) == 0 ? header.request_length % 1100 : any(3) * 512;
    header.payload_length = static_cast<uint16_t>(bytes);
    header.Encode(packet.data());
    transport::Request request;
    request.source = {any(2), 0, false};
    request.spdcid = static_cast<uint16_t>(1 + any(2));
    request.pdc = 1;
    request.ordered = any(2) == 0;
    request.next_hdr = any(50) == 0 ? static_cast<contract::NextHdr>(any(8))
                                    : contract::NextHdr::kRequestStd;
    const size_t room = SesStd::kBytes + bytes;
    request.ses = std::span(packet).first(
        any(50) == 0 ? any(static_cast<uint32_t>(room)) : room);
    class Sink final : public transport::MessageCarrier {
     public:
      PostOutcome Post(MessageIndex, const transport::PdcName&,
                       const wire::Path&, uint32_t, bool) override {
        return PostOutcome::kQueued;
      }
      void Finish(MessageIndex) override {}
      void Fail(MessageIndex) override {}
      void Hold(MessageIndex) override {}
      void Resume(MessageIndex) override {}
      bool Stuck(MessageIndex) const override { return false; }
      bool PostReturn(uint16_t, const ReturnData& data) override {
        last = data;
        return true;
      }
      ReturnData last;
    } sink;
    node.engine().Connect(&sink);
    node.engine().OnRequest(request, any(4) != 0);
    if (sink.last.total != 0) {
      EXPECT_GE(sink.last.address, EngineNode::Iova(region + 1024));
      EXPECT_LE(sink.last.address + sink.last.length,
                EngineNode::Iova(region + 3072));
      if (any(2) == 0) {
        node.engine().OnReturnRetired(sink.last);
      }
    }
    if (any(100) == 0) {
      node.engine().OnTargetClosed({any(2), 0, false},
                                   static_cast<uint16_t>(1 + any(2)), true);
    }
    if (any(4) == 0 && i % 3 == 0) {
      node.Receive(buffers + 1024, any(2048));
    }
    while (node.Poll(1).has_value()) {
    }
  }
  EXPECT_EQ(std::count(region, region + 1024, 0x5a), 1024);
  EXPECT_EQ(std::count(region + 3072, region + 4096, 0x5a), 1024);
  EXPECT_EQ(std::count(buffers, buffers + 1024, 0), 1024);
  EXPECT_EQ(std::count(buffers + 3072, buffers + 4096, 0), 1024);
  EXPECT_EQ(node.dma().blocked_writes(), 0u);
  EXPECT_EQ(node.dma().blocked_reads(), 0u);
  EXPECT_GT(node.engine().statistic(contract::Statistic::kRxMessages), 100u);
}

}  // namespace
}  // namespace heddle::soft::engine
