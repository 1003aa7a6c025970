// SPDX-License-Identifier: Apache-2.0
// heddle_tx_build with the payload buffer, framer and host memory around it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "Vheddle_tx_build.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/rtl/transport/frames.h"
#include "tests/rtl/transport/generations.h"
#include "tests/rtl/transport/port.h"

namespace heddle::test {

inline constexpr uint64_t kMac = 0x02'00'00'00'00'01;
inline constexpr uint64_t kGatewayMac = 0x02'00'00'00'00'fe;
inline constexpr uint64_t kPeerMac = 0x02'00'00'00'00'02;
inline constexpr uint32_t kAddress = 0x0a000001;

// What host memory holds, by address.
inline uint8_t MemoryByte(uint64_t address) {
  return static_cast<uint8_t>((address * 0x9e3779b97f4a7c15) >> 56);
}

struct SentFrame {
  Bytes bytes;  // Headers, payload and trailer.
  size_t header = 0;
};

class TxBuild {
 public:
  TxBuild() {
    cfg_.mac = kMac;
    cfg_.local_fa_lo = kAddress;
    SetConfig();
    dut_->alive_i = 0xffff;
    dut_->head_ready_i = 1;
    dut_->rd_ready_i = 1;
    dut_->len_ready_i = 1;
    for (int i = 0; i < 1100; ++i) Cycle();
  }

  contract::PortCfg& config() { return cfg_; }
  void SetConfig() { rtl::Drive(dut_->port_i, cfg_); }
  Vheddle_tx_build* operator->() { return dut_.operator->(); }

  void WriteHop(uint16_t index, uint64_t mac, uint8_t valid,
                uint16_t vlan = 0) {
    rtl::TableReq req = {};
    req.op = contract::TableOp::kWrite;
    req.sel = contract::Table::kNextHop;
    req.index = index;
    req.data[0] = mac;
    req.data[1] = uint64_t{valid} << 32 | uint64_t{4096} << 16 | vlan;
    EXPECT_EQ(TableAccess(req).error, 0);
  }
  rtl::TableRsp TableAccess(const rtl::TableReq& req) {
    rtl::Drive(dut_->tbl_req_i, req);
    dut_->tbl_valid_i = 1;
    rtl::TableRsp rsp = {};
    for (int i = 0; i < 10 && !rsp.done; ++i) {
      dut_->eval();
      rsp = rtl::Sample<rtl::TableRsp>(dut_->tbl_rsp_o);
      Cycle();
    }
    EXPECT_EQ(rsp.done, 1);
    dut_->tbl_valid_i = 0;
    return rsp;
  }
  void WriteMessage(uint16_t index, const rtl::MsgPacket& msg) {
    dut_->msg_valid_i = 1;
    dut_->msg_index_i = index;
    rtl::Drive(dut_->msg_data_i, msg);
    Cycle();
    dut_->msg_valid_i = 0;
  }
  void WritePdc(uint8_t index, const rtl::PdcPeer& peer) {
    dut_->pdc_valid_i = 1;
    dut_->pdc_index_i = index;
    rtl::Drive(dut_->pdc_data_i, peer);
    Cycle();
    dut_->pdc_valid_i = 0;
  }
  void Push(const rtl::TxPacket& packet) { packets_.push_back(packet); }
  void Push(const rtl::Response& rsp) { responses_.push_back(rsp); }
  void Push(const rtl::ReturnPacket& packet) { returns_.push_back(packet); }

  // Runs until `frames` frames left or the limit is reached.
  void RunUntil(size_t frames, int limit) {
    for (int i = 0; i < limit && sent_.size() < frames; ++i) Cycle();
    ASSERT_GE(sent_.size(), frames);
  }
  void Cycle();

  std::deque<SentFrame>& sent() { return sent_; }
  std::vector<rtl::DmaReq>& reads() { return reads_; }
  const std::vector<rtl::GatherReq>& gathers() const { return gathers_; }
  struct Failure {
    uint16_t msg;
    uint8_t ctx;
    uint32_t gen;
  };
  std::vector<Failure>& failures() { return failures_; }
  uint64_t cycle() const { return cycle_; }
  std::array<int, 64>& stats() { return stats_; }

  int latency = 20;
  double stall = 0;          // Probability for each ready signal.
  double packet_chance = 1;  // That a queued packet is offered in a cycle.
  sim::base::Random* random = nullptr;   // Needed for the two above.
  std::optional<uint64_t> refused_page;  // Reads of this 4 KiB page fail.

 private:
  struct Read {
    rtl::DmaReq req;
    uint64_t ready;
    bool error;
  };
  bool Stalls() { return stall > 0 && random->Chance(stall); }

  sim::model::ClockedModel<Vheddle_tx_build> dut_;
  contract::PortCfg cfg_ = StandardPort();
  std::deque<rtl::TxPacket> packets_;
  std::deque<rtl::Response> responses_;
  std::deque<rtl::ReturnPacket> returns_;
  std::deque<Read> in_flight_;  // Requested, record not taken.
  std::deque<rtl::DmaReq>
      stored_;  // Record taken without error, payload not sent.
  std::deque<uint16_t> lengths_;
  std::vector<rtl::DmaReq> reads_;
  std::vector<rtl::GatherReq> gathers_;
  std::deque<SentFrame> sent_;
  std::vector<Failure> failures_;
  std::array<int, 64> stats_ = {};
  uint64_t cycle_ = 0;
};

inline void TxBuild::Cycle() {
  ++cycle_;
  if (!dut_->pkt_valid_i && !packets_.empty() &&
      (packet_chance >= 1 || random->Chance(packet_chance))) {
    dut_->pkt_valid_i = 1;
    rtl::Drive(dut_->pkt_i, packets_.front());
  }
  if (!dut_->rsp_valid_i && !responses_.empty()) {
    dut_->rsp_valid_i = 1;
    rtl::Drive(dut_->rsp_i, responses_.front());
  }
  if (!dut_->back_valid_i && !returns_.empty()) {
    dut_->back_valid_i = 1;
    rtl::Drive(dut_->back_i, returns_.front());
  }
  dut_->rd_ready_i = !Stalls();
  dut_->len_ready_i = !Stalls();
  dut_->head_ready_i = !Stalls();
  const bool record = !in_flight_.empty() && in_flight_.front().ready <= cycle_;
  dut_->rec_valid_i = record;
  if (record) {
    const Read& read = in_flight_.front();
    Bytes data;
    for (unsigned i = 0; i < read.req.bytes; ++i) {
      data.push_back(MemoryByte(read.req.addr + i));
    }
    dut_->rec_error_i = read.error;
    dut_->rec_crc_i = Crc32cState(0, data);
  }
  dut_.Settle();

  if (dut_->fail_o) {
    failures_.push_back({dut_->fail_msg_o, dut_->fail_ctx_o, dut_->fail_gen_o});
  }
  for (size_t i = 0; i < stats_.size(); ++i) {
    stats_[i] += static_cast<int>((dut_->stat_o >> i) & 1);
  }
  if (dut_->head_valid_o && dut_->head_ready_i) {
    const auto head = rtl::Sample<rtl::FrameHead>(dut_->head_o);
    SentFrame frame;
    frame.header = head.length;
    frame.bytes = head.bytes.WireBytes();
    for (size_t i = head.length; i < frame.bytes.size(); ++i) {
      EXPECT_EQ(frame.bytes[i], 0) << "after the headers";
    }
    frame.bytes.resize(head.length);
    if (head.payload_bytes != 0) {
      EXPECT_FALSE(stored_.empty());
      if (!stored_.empty()) {
        EXPECT_EQ(stored_.front().bytes, head.payload_bytes);
        for (unsigned i = 0; i < head.payload_bytes; ++i) {
          frame.bytes.push_back(MemoryByte(stored_.front().addr + i));
        }
        stored_.pop_front();
      }
    }
    EXPECT_EQ(head.trailer, cfg_.crc != contract::CrcOrder::kNone);
    for (size_t i = 0; i < kCrcBytes && head.trailer; ++i) {
      frame.bytes.push_back(static_cast<uint8_t>(head.crc >> (8 * i)));
    }
    sent_.push_back(frame);
  }
  const bool record_taken = dut_->rec_ready_o;
  EXPECT_TRUE(!record_taken || record);
  if (dut_->rd_valid_o && dut_->rd_ready_i) {
    gathers_.push_back(rtl::Sample<rtl::PayloadReq>(dut_->rd_req_o).gather);
    const rtl::DmaReq req = gathers_.back().read;
    EXPECT_GT(req.bytes, 0);
    reads_.push_back(req);
    const bool error = refused_page && req.addr >> 12 == *refused_page;
    in_flight_.push_back({req, cycle_ + static_cast<uint64_t>(latency), error});
  }
  if (dut_->len_valid_o && dut_->len_ready_i) {
    lengths_.push_back(dut_->len_bytes_o);
  }
  const bool pkt_taken = dut_->pkt_valid_i && dut_->pkt_ready_o;
  const bool rsp_taken = dut_->rsp_valid_i && dut_->rsp_ready_o;
  const bool back_taken = dut_->back_valid_i && dut_->back_ready_o;
  dut_.Tick();
  if (record_taken && record) {
    if (!in_flight_.front().error) stored_.push_back(in_flight_.front().req);
    EXPECT_FALSE(lengths_.empty());
    if (!lengths_.empty()) {
      EXPECT_EQ(lengths_.front(), in_flight_.front().req.bytes);
      lengths_.pop_front();
    }
    in_flight_.pop_front();
  }
  if (pkt_taken) {
    packets_.pop_front();
    dut_->pkt_valid_i = 0;
  }
  if (back_taken) {
    returns_.pop_front();
    dut_->back_valid_i = 0;
  }
  if (rsp_taken) {
    responses_.pop_front();
    dut_->rsp_valid_i = 0;
  }
}

inline rtl::PdcPeer SomePeer() {
  rtl::PdcPeer peer = {};
  peer.fa_lo = 0x0a000002;
  peer.hop = 1;
  peer.dscp = 9;
  peer.spdcid = 0x11;
  peer.start_psn = 0x12345;
  peer.entropy = 0xc123;
  peer.pid_on_fep = 3;
  return peer;
}

inline Route RouteTo(const rtl::PdcPeer& peer, uint64_t mac) {
  return {kMac, mac, kAddress, peer.fa_lo, peer.dscp, peer.entropy};
}

inline rtl::MsgPacket InlineMessage(const std::string& payload) {
  rtl::MsgPacket msg = {};
  msg.opcode = kSend;
  msg.flags = kFlagInline;
  msg.job_id = 0x42;
  msg.source_pid = 0;
  msg.source_ri = 7;
  msg.resource_index = 5;
  msg.length = static_cast<uint32_t>(payload.size());
  for (size_t i = 0; i < payload.size(); ++i) {
    (i < 8 ? msg.inline_data_lo : msg.inline_data_hi) |=
        uint64_t{static_cast<uint8_t>(payload[i])} << (8 * (i % 8));
  }
  return msg;
}

inline rtl::ReturnPacket SomeReturn(const Route& route) {
  rtl::ReturnPacket pkt = {};
  pkt.pdc = 7;
  pkt.psn = 0x1000;
  pkt.ar = 1;
  pkt.retx = 1;
  pkt.clear_psn = 0x0ffe;
  pkt.route = {.ipv6 = route.ipv6,
               .fa_hi = route.destination_hi,
               .fa_lo = route.destination,
               .mac = route.destination_mac,
               .dscp = route.dscp,
               .entropy = route.entropy,
               .spdcid = 0x222,
               .dpdcid = 0x111};
  pkt.data = {.iova = 0x5003,
              .bytes = 1000,
              .owner = 6,
              .message_id = 0xabc,
              .message_offset = 8192,
              .message_bytes = 9192,
              .job_id = 0x42};
  return pkt;
}

class TxBuildTest : public testing::Test {
 protected:
  TxBuildTest() {
    dut_.WriteHop(0, kGatewayMac, 1);
    dut_.WriteHop(1, kPeerMac, 1);
  }
  TxBuild dut_;
};

}  // namespace heddle::test
