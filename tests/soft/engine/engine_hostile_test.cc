// SPDX-License-Identifier: Apache-2.0
// Packets that no initiator of ours would send, one after another.
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_wire.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"

namespace heddle::soft::engine {

using transport::MessageIndex;
using transport::ReturnData;
using transport::Verdict;

namespace {

using contract::SesOpcode;
using contract::wire::SesStd;

// Stands for all peers and for their transport.
class EngineHostilePeerTest : public testing::Test,
                              public transport::MessageCarrier {
 protected:
  static constexpr uint32_t kPackets = 3;
  static constexpr uint32_t kBytes = kPackets * EngineNode::kMtu;

  EngineHostilePeerTest() { node_.engine().Connect(this); }

  PostOutcome Post(MessageIndex /*message*/, const transport::PdcName& /*name*/,
                   const wire::Path& /*path*/, uint32_t /*packets*/,
                   bool /*expects_data*/) override {
    return PostOutcome::kQueued;
  }
  void Finish(MessageIndex /*message*/) override {}
  void Fail(MessageIndex /*message*/) override {}
  void Hold(MessageIndex /*message*/) override {}
  void Resume(MessageIndex /*message*/) override {}
  bool Stuck(MessageIndex /*message*/) const override { return false; }
  bool PostReturn(uint16_t /*pdc*/, const ReturnData& data) override {
    asked_.push_back(data);
    return true;
  }

  // Packet `index` of a message of kPackets.
  SesStd Part(SesOpcode opcode, uint16_t message_id, uint32_t index) const {
    SesStd header;
    header.opcode = opcode;
    header.som = index == 0 ? 1 : 0;
    header.eom = index + 1 == kPackets ? 1 : 0;
    header.message_id = message_id;
    header.job_id = EngineNode::kJob;
    header.pid_on_fep = EngineNode::kPid;
    header.resource_index = 1;
    header.match_bits = region_.key;
    header.request_length = kBytes;
    header.message_offset = index * EngineNode::kMtu;
    if (index != 0) {
      header.payload_length = EngineNode::kMtu;
    }
    return header;
  }
  Verdict Offer(const SesStd& header) {
    const size_t payload =
        header.opcode == SesOpcode::kRead ? 0 : EngineNode::kMtu;
    std::vector<uint8_t> packet(SesStd::kBytes + payload);
    header.Encode(packet.data());
    transport::Request request;
    request.source = {9, 0, false};
    request.spdcid = 4;
    request.next_hdr = contract::NextHdr::kRequestStd;
    request.ses = packet;
    return node_.engine().OnRequest(request, true);
  }
  void RetireAll() {
    for (const ReturnData& data : asked_) {
      node_.engine().OnReturnRetired(data);
    }
    asked_.clear();
  }

  void ExpectWholeRead(uint16_t id) {
    for (uint32_t index = 0; index < kPackets; ++index) {
      EXPECT_EQ(Offer(Part(SesOpcode::kRead, id, index)).kind,
                Verdict::Kind::kAccepted);
    }
    EXPECT_EQ(asked_.size(), kPackets);
    RetireAll();
    const auto entry = node_.Poll(1);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->length, kBytes);
    EXPECT_FALSE(node_.Poll(1).has_value());
  }
  // As many reads as there may be, each with a place of its own and with an
  // entry of the queue.
  void ExpectRoomForAll() {
    const uint32_t most = Options().limits.open_messages;
    std::set<uint32_t> places;
    for (uint32_t i = 0; i <= most; ++i) {
      SesStd whole = Part(SesOpcode::kRead, static_cast<uint16_t>(10 + i), 0);
      whole.eom = 1;
      whole.request_length = 1000;
      ASSERT_EQ(Offer(whole).kind,
                i < most ? Verdict::Kind::kAccepted : Verdict::Kind::kRefused);
      ASSERT_EQ(places.insert(asked_.back().open_message).second, i < most)
          << i;
    }
    RetireAll();
    for (uint32_t i = 0; i < most; ++i) {
      const auto entry = node_.Poll(1);
      ASSERT_TRUE(entry.has_value()) << i;
      EXPECT_EQ(entry->length, 1000U);
    }
    EXPECT_FALSE(node_.Poll(1).has_value());
  }

  static EngineNode::Options Options() {
    EngineNode::Options options;
    options.rx_flags = contract::kRxCtxFlagRegionEvent;
    options.cq_log2 = 6;
    return options;
  }

  FakeFabric fabric_{TestSeed()};
  EngineNode node_{&fabric_, Options()};
  uint8_t* memory_ = node_.Allocate(kBytes);
  contract::RegionCfg region_ = node_.Region(
      1, memory_, kBytes,
      contract::kRegionFlagRemoteRead | contract::kRegionFlagRemoteWrite);
  std::vector<ReturnData> asked_;
};

TEST_F(EngineHostilePeerTest, AWriteInAReadsNameLeavesOtherReadsTheirPlaces) {
  Offer(Part(SesOpcode::kRead, 1, 0));
  ASSERT_EQ(asked_.size(), 1U);
  RetireAll();
  Offer(Part(SesOpcode::kWrite, 1, 1));
  Offer(Part(SesOpcode::kRead, 1, 1));
  Offer(Part(SesOpcode::kRead, 1, 2));
  RetireAll();
  EXPECT_FALSE(node_.Poll(1).has_value()) << "it was never whole";
  ExpectRoomForAll();
}

// Not hostile, but late: what is resent once the rest was given up.
TEST_F(EngineHostilePeerTest, ReadsThatWereGivenUpEndInAnyOrder) {
  Offer(Part(SesOpcode::kRead, 1, 0));
  for (const uint32_t index : {2U, 1U}) {
    SesStd given_up = Part(SesOpcode::kRead, 1, index);
    given_up.ie = 1;
    given_up.payload_length = 0;
    Offer(given_up);
  }
  RetireAll();
  EXPECT_FALSE(node_.Poll(1).has_value());
  ExpectWholeRead(1);
  ExpectRoomForAll();
}

TEST_F(EngineHostilePeerTest, ReadsOfARegionThatCameLateEnd) {
  for (const bool region_first : {true, false}) {
    SCOPED_TRACE(region_first);
    contract::RegionCfg cfg = region_;
    cfg.enable = region_first ? 1 : 0;
    ASSERT_TRUE(node_.Write(contract::Table::kRegion, 1, cfg));
    Offer(Part(SesOpcode::kRead, 1, 0));
    cfg.enable ^= 1;
    ASSERT_TRUE(node_.Write(contract::Table::kRegion, 1, cfg));
    EXPECT_EQ(Offer(Part(SesOpcode::kRead, 1, 1)).respond, region_first);
    ASSERT_TRUE(node_.Write(contract::Table::kRegion, 1, region_));
    Offer(Part(SesOpcode::kRead, 1, 2));
    RetireAll();
    EXPECT_FALSE(node_.Poll(1).has_value());
    ExpectWholeRead(1);
  }
  ExpectRoomForAll();
}

}  // namespace
}  // namespace heddle::soft::engine
