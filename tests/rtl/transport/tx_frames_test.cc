// SPDX-License-Identifier: Apache-2.0
// Packets through builder, payload buffer and framer against whole frames of
// the reference encoder, for each encapsulation.
#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "Vtx_frames_probe.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/records/packed.h"
#include "tests/rtl/transport/frames.h"
#include "tests/rtl/transport/port.h"

namespace heddle::test {
namespace {

constexpr size_t kStrobe = HEDDLE_DATA_W / 8;
constexpr uint16_t kMtu = 8192;
constexpr uint64_t kMac = 0x02'00'00'00'00'01;
constexpr uint64_t kPeerMac = 0x02'00'00'00'00'02;
constexpr size_t kMinFrame = 60;

// What host memory holds, by address.
uint8_t MemoryByte(uint64_t address) {
  return static_cast<uint8_t>((address * 0x9e3779b97f4a7c15) >> 56);
}

// Each stack of headers.
class TxFramesTest : public testing::TestWithParam<int> {
 protected:
  TxFramesTest() {
    route_ = StackRoute(GetParam(), 0x123);
    route_.source_mac = kMac;
    route_.destination_mac = kPeerMac;
    route_.source = 0x0a000001;
    route_.destination = 0x0a000002;
    route_.source_hi = 0xfd00'0000'0000'0001;
    route_.destination_hi = 0xfd00'0000'0000'0002;
    route_.entropy = 0xc123;
    peer_.ipv6 = route_.ipv6;
    peer_.fa_hi = route_.destination_hi;
    peer_.fa_lo = route_.destination;
    peer_.entropy = route_.entropy;
    peer_.hop = 1;

    contract::PortCfg port = StandardPort();
    port.mac = kMac;
    port.local_fa_hi = route_.source_hi;
    port.local_fa_lo = route_.source;
    port.ipv6 = route_.ipv6;
    port.vlan = route_.vlan;
    port.crc = route_.crc;
    port.ip_protocol = route_.ip_protocol;
    port.payload_mtu = kMtu;
    rtl::Drive(dut_->port_i, port);
    dut_->tready_i = 1;
    dut_->rd_ready_i = 1;
    for (int i = 0; i < 1100; ++i) dut_.Tick();
    rtl::TableReq hop;
    hop.op = contract::TableOp::kWrite;
    hop.sel = contract::Table::kNextHop;
    hop.index = 1;
    hop.data[0] = kPeerMac;
    hop.data[1] = uint64_t{1} << 32 | route_.vlan;
    rtl::Drive(dut_->tbl_req_i, hop);
    dut_->tbl_valid_i = 1;
    dut_.Tick();
    dut_->tbl_valid_i = 0;
    dut_->pdc_valid_i = 1;
    rtl::Drive(dut_->pdc_data_i, peer_);
    dut_.Tick();
    dut_->pdc_valid_i = 0;
  }

  void WriteMessage(const rtl::MsgPacket& msg) {
    dut_->msg_valid_i = 1;
    rtl::Drive(dut_->msg_data_i, msg);
    Cycle();
    dut_->msg_valid_i = 0;
  }

  // Packet 0 of `msg`, with the payload it must carry.
  Bytes Expected(const rtl::TxPacket& pkt, const rtl::MsgPacket& msg,
                 const Bytes& payload) const {
    Bytes frame = RequestFrame(pkt, msg, peer_, route_, kMtu, false, payload);
    frame.resize(std::max(frame.size(), kMinFrame));
    return frame;
  }

  void Cycle() {
    if (!dut_->pkt_valid_i && !packets_.empty()) {
      dut_->pkt_valid_i = 1;
      rtl::Drive(dut_->pkt_i, packets_.front());
      packets_.pop_front();
    }
    dut_->rd_rsp_valid_i = !beats_.empty();
    if (!beats_.empty()) {
      std::copy_n(beats_.front().first.data(), kStrobe,
                  PinBytes(dut_->rd_rsp_data_i));
      dut_->rd_rsp_last_i = beats_.front().second;
    }
    dut_.Settle();
    const bool pkt = dut_->pkt_valid_i && dut_->pkt_ready_o;
    const bool beat = dut_->rd_rsp_valid_i && dut_->rd_rsp_ready_o;
    if (dut_->rd_valid_o) {
      const auto req = rtl::Sample<rtl::DmaReq>(dut_->rd_req_o);
      for (size_t at = 0; at < req.bytes; at += kStrobe) {
        Bytes data(kStrobe, 0xa5);  // Noise behind the end.
        for (size_t i = 0; i < kStrobe && at + i < req.bytes; ++i) {
          data[i] = MemoryByte(req.addr + at + i);
        }
        beats_.emplace_back(data, at + kStrobe >= req.bytes);
      }
    }
    if (dut_->tvalid_o) {
      const uint8_t* data = PinBytes(dut_->tdata_o);
      for (size_t i = 0; i < kStrobe; ++i) {
        if (GetBits(dut_->tkeep_o, i, 1) != 0) seen_.push_back(data[i]);
      }
      if (dut_->tlast_o) {
        frames_.push_back(std::move(seen_));
        seen_.clear();
      }
    }
    dut_.Tick();
    ++cycle_;
    if (pkt) dut_->pkt_valid_i = 0;
    if (beat) beats_.pop_front();
  }

  void RunUntil(size_t frames, uint64_t limit) {
    const uint64_t end = cycle_ + limit;
    while (frames_.size() < frames && cycle_ < end) Cycle();
    ASSERT_EQ(frames_.size(), frames);
  }

  sim::model::ClockedModel<Vtx_frames_probe> dut_;
  Route route_;
  rtl::PdcPeer peer_;
  std::deque<rtl::TxPacket> packets_;
  std::deque<std::pair<Bytes, bool>> beats_;
  std::vector<Bytes> frames_;
  Bytes seen_;
  uint64_t cycle_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Each, TxFramesTest, testing::Range(0, kStacks),
                         [](const auto& stack) {
                           return StackName(stack.param);
                         });

TEST_P(TxFramesTest, EveryPayloadLengthLeavesAsTheReferenceEncodesIt) {
  std::vector<uint32_t> lengths;
  for (uint32_t i = 0; i <= 2 * kStrobe + 9; ++i) lengths.push_back(i);
  for (const uint32_t i : {255u, 256u, 1023u, 4095u, 4096u, 8191u, 8192u}) {
    lengths.push_back(i);
  }
  for (const uint32_t length : lengths) {
    rtl::MsgPacket msg;
    msg.opcode = kSend;
    msg.length = length;
    msg.iova = 0x1000 + length * 3;
    WriteMessage(msg);
    rtl::TxPacket pkt;
    pkt.psn = length;
    pkt.last = 1;
    packets_.push_back(pkt);
    frames_.clear();
    ASSERT_NO_FATAL_FAILURE(RunUntil(1, 10000));
    Bytes payload;
    for (uint32_t i = 0; i < length; ++i) {
      payload.push_back(MemoryByte(msg.iova + i));
    }
    ASSERT_EQ(frames_[0], Expected(pkt, msg, payload)) << length;
  }
  Cycle();
  EXPECT_TRUE(dut_->idle_o);
}

TEST_P(TxFramesTest, EveryInlineLengthLeavesAsTheReferenceEncodesIt) {
  sim::base::Random random(1);
  for (uint32_t length = 0; length <= 16; ++length) {
    rtl::MsgPacket msg;
    msg.opcode = kSend;
    msg.flags = kFlagInline;
    msg.length = length;
    msg.inline_data_lo = random.Next();
    msg.inline_data_hi = random.Next();
    WriteMessage(msg);
    rtl::TxPacket pkt;
    pkt.last = 1;
    packets_.push_back(pkt);
    frames_.clear();
    ASSERT_NO_FATAL_FAILURE(RunUntil(1, 1000));
    Bytes payload;
    for (uint32_t i = 0; i < length; ++i) {
      payload.push_back(static_cast<uint8_t>(
          (i < 8 ? msg.inline_data_lo : msg.inline_data_hi) >> (8 * (i % 8))));
    }
    ASSERT_EQ(frames_[0], Expected(pkt, msg, payload)) << length;
  }
}

// Frames follow each other at the rate of the MAC, two cycles each for an
// 8-byte message in a beat of 64 bytes.
TEST_P(TxFramesTest, EightByteMessagesLeaveAtTheRateOfTheMac) {
  rtl::MsgPacket msg;
  msg.opcode = kSend;
  msg.flags = kFlagInline;
  msg.length = 8;
  WriteMessage(msg);
  constexpr size_t kFrames = 300;
  for (uint32_t i = 0; i < kFrames; ++i) {
    rtl::TxPacket pkt;
    pkt.psn = i;
    pkt.last = 1;
    packets_.push_back(pkt);
  }
  ASSERT_NO_FATAL_FAILURE(RunUntil(1, 100));
  const uint64_t start = cycle_;
  ASSERT_NO_FATAL_FAILURE(RunUntil(kFrames, 100000));
  const size_t beats = (frames_[0].size() + kStrobe - 1) / kStrobe;
  EXPECT_EQ(cycle_ - start, (kFrames - 1) * beats);
}

TEST_P(TxFramesTest, AnAnswersFirstBeatFollowsInFiveCycles) {
  rtl::Response rsp;
  rsp.ipv6 = route_.ipv6;
  rsp.fa_hi = route_.destination_hi;
  rsp.fa_lo = route_.destination;
  rsp.mac = kPeerMac;
  rsp.entropy = route_.entropy;
  rsp.kind = rtl::ResponseKind::kNone;
  rtl::Drive(dut_->rsp_i, rsp);
  dut_->rsp_valid_i = 1;
  const uint64_t start = cycle_;
  Cycle();
  dut_->rsp_valid_i = 0;
  while (seen_.empty() && frames_.empty() && cycle_ < start + 100) Cycle();
  EXPECT_EQ(cycle_ - start - 1, 5u);
  ASSERT_NO_FATAL_FAILURE(RunUntil(1, 100));
  Bytes frame = Frame(route_, ResponseDatagram(rsp));
  frame.resize(std::max(frame.size(), kMinFrame));
  EXPECT_EQ(frames_[0], frame);
}

}  // namespace
}  // namespace heddle::test
