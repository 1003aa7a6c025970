// SPDX-License-Identifier: Apache-2.0
// Data of our READs: accepted in order or, on RUD, in any; placed where they
// belong, or nowhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "Vheddle_return_rx.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/rtl/transport/generations.h"
#include "tests/rtl/transport/port.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

using contract::CpType;
using contract::NackCode;
using contract::NextHdr;
using contract::PdsType;
using contract::ReturnCode;
using contract::SesResponse;
using contract::Statistic;

constexpr uint32_t kStart = 0xfffffff8;  // Wraps soon.
constexpr uint8_t kSlot = 9;
constexpr uint16_t kOurs = kSlot << 10 | 1 << 8 | 5;
constexpr uint16_t kTheirs = 0x1a2b;
constexpr uint32_t kPdc = 5;
constexpr uint16_t kMsg = 77;
constexpr uint8_t kCtx = 6;
constexpr uint8_t kGen = 3;
constexpr uint32_t kAckDelay = 8;

class ReturnRxTest : public testing::Test {
 protected:
  ReturnRxTest() {
    SetMtu(1024);
    for (uint32_t i = 0; i < rtl::kNumMsg + 4; ++i) dut_.Tick();
    dut_.Settle();
    EXPECT_EQ(dut_->ready_o, 1);
    SetAlive(kPdc, true);
    SetContext(true, kGen);
    Open(kPdc, kOurs);
  }

  void SetMtu(uint16_t mtu) {
    mtu_ = mtu;
    contract::PortCfg config = StandardPort();
    config.slot = kSlot;
    config.payload_mtu = mtu;
    config.ack_delay_ticks = kAckDelay;
    rtl::Drive(dut_->port_i, config);
  }
  void SetCongestion(bool on) {
    contract::TransportCfg config;
    config.congestion = on ? 1 : 0;
    rtl::Drive(dut_->transport_i, config);
  }
  void SetTime(uint32_t now_ns) { dut_->now_ns_i = now_ns; }
  // Ticks, and what is due then; none where nothing is.
  std::optional<rtl::ReturnLate> Late(uint32_t ticks) {
    dut_->tick_i = 1;
    for (uint32_t i = 0; i < ticks; ++i) dut_.Tick();
    dut_->tick_i = 0;
    for (int cycle = 0; cycle < 2; ++cycle) dut_.Tick();  // It is chosen.
    dut_.Settle();
    if (rtl::Sample<rtl::ReturnLate>(dut_->late_o).due == 0)
      return std::nullopt;
    dut_->late_look_i = 1;
    dut_.Tick();
    dut_->late_look_i = 0;
    dut_.Tick();
    dut_.Settle();
    const auto late = rtl::Sample<rtl::ReturnLate>(dut_->late_o);
    dut_->late_take_i = 1;
    dut_.Tick();
    dut_->late_take_i = 0;
    dut_.Tick();  // The debt is paid.
    return late;
  }
  bool pending() {
    dut_.Settle();
    return rtl::Sample<rtl::ReturnLate>(dut_->late_o).pending != 0;
  }
  rtl::RxPacket Quiet(uint32_t number) {
    rtl::RxPacket packet = Data(number, number * 1024, 1024);
    packet.ar = 0;
    return packet;
  }
  void SetContext(bool alive, uint8_t gen) {
    dut_->tx_alive_i = static_cast<uint16_t>(alive ? 1U << kCtx : 0U);
    DriveGens(dut_->tx_gen_i, {{kCtx, gen}});
  }

  void SetAlive(uint32_t pdc, bool alive) {
    PutAlive(dut_->alive_i, pdc, alive);
  }
  void Open(uint32_t pdc, uint16_t spdcid, bool rud = false) {
    spdcid_ = spdcid;
    rtl::Drive(dut_->open_info_i,
               rtl::ReturnOpen{.pdc = static_cast<uint8_t>(pdc),
                               .rud = rud,
                               .fa_lo = 0x0a000002,
                               .spdcid = spdcid,
                               .start_psn = kStart});
    dut_->open_i = 1;
    dut_.Tick();
    dut_->open_i = 0;
  }
  void Read(uint16_t msg, uint32_t length, uint64_t iova = 0x10000,
            bool segmented = false) {
    Write(msg, length, iova, segmented);
    const uint32_t packets = (length + mtu_ - 1) / mtu_;
    for (uint32_t i = 0; i < packets; ++i) {
      Asked(msg, spdcid_, kStart + 4 - packets + i, i + 1);
    }
  }
  void Write(uint16_t msg, uint32_t length, uint64_t iova,
             bool segmented = false) {
    rtl::Drive(dut_->read_info_i, rtl::ReturnRead{.ctx = kCtx,
                                                  .gen = kGen,
                                                  .owner = 3,
                                                  .length = length,
                                                  .segmented = segmented,
                                                  .iova = iova});
    dut_->read_msg_i = msg;
    dut_->read_i = 1;
    dut_.Tick();
    dut_->read_i = 0;
  }
  // The latest of `packets` requests left as `psn` of the PDC that was opened
  // as `spdcid`.
  void Asked(uint16_t msg, uint16_t spdcid, uint32_t psn,
             uint32_t packets = 1) {
    rtl::Drive(
        dut_->asked_as_i,
        rtl::ReturnAsked{.spdcid = spdcid, .psn = psn, .packets = packets});
    dut_->asked_msg_i = msg;
    dut_->asked_first_i = packets == 1;
    dut_->asked_i = 1;
    dut_.Tick();
    dut_->asked_i = 0;
  }
  void Cut(uint16_t msg, uint32_t packets) {
    dut_->cut_msg_i = msg;
    dut_->cut_packets_i = packets;
    dut_->cut_i = 1;
    dut_.Tick();
    dut_->cut_i = 0;
  }
  void End(uint16_t msg) {
    dut_->end_msg_i = msg;
    dut_->end_i = 1;
    dut_.Tick();
    dut_->end_i = 0;
  }

  bool Gap(uint32_t pdc) {
    dut_.Tick();
    dut_.Settle();
    return (dut_->gaps_o[pdc / 32] >> pdc % 32 & 1) != 0;
  }
  // On RUD: what came after the first `next`.
  static void ExpectSack(const rtl::ReturnVerdict& verdict, uint32_t next,
                         const std::set<uint32_t>& came) {
    ExpectAck(verdict, next - 1);
    EXPECT_EQ(verdict.rsp.cc, 1);
    uint64_t bitmap = 0;
    for (const uint32_t number : came) {
      bitmap |= uint64_t{1} << (number - next);
    }
    EXPECT_EQ(verdict.rsp.sack_bitmap, bitmap);
  }

  bool Answered(uint16_t msg) {
    dut_->answered_msg_i = msg;
    dut_.Settle();
    return dut_->answered_o != 0;
  }

  // Data [offset, offset + bytes) of READ `msg` in the packet `number`.
  static rtl::RxPacket Data(uint32_t number, uint32_t offset, uint16_t bytes,
                            uint16_t msg = kMsg) {
    rtl::RxPacket pkt = {};
    pkt.source_fa_lo = 0x0a000002;
    pkt.source_mac = 0x020000000002;
    pkt.source_port = 0xc123;
    pkt.dscp = 9;
    pkt.pds_type = PdsType::kRodReq;
    pkt.next_hdr = static_cast<uint8_t>(NextHdr::kResponseData);
    pkt.ar = 1;
    pkt.psn = kStart + number;
    pkt.spdcid = kTheirs;
    pkt.dpdcid = kOurs;
    pkt.message_id = static_cast<uint16_t>(msg + 1);
    pkt.message_offset = offset;
    pkt.response = static_cast<uint8_t>(SesResponse::kResponseWData);
    pkt.return_code = static_cast<uint8_t>(ReturnCode::kOk);
    pkt.payload_bytes = bytes;
    return pkt;
  }

  // Through the pipeline; with `wait` the packet stays that long in stage 2.
  rtl::ReturnVerdict Send(const rtl::RxPacket& packet, int wait = 0) {
    rtl::Drive(dut_->pkt_i, packet);
    dut_->look_i = 1;
    dut_->take_i = 0;
    dut_.Tick();
    dut_->look_i = 0;
    for (int i = 0; i < wait; ++i) dut_.Tick();
    dut_->take_i = 1;
    dut_.Settle();
    const auto verdict = rtl::Sample<rtl::ReturnVerdict>(dut_->verdict_o);
    dut_.Tick();
    dut_->take_i = 0;
    return verdict;
  }

  static bool Counted(const rtl::ReturnVerdict& verdict, Statistic statistic) {
    return (verdict.stat >> static_cast<unsigned>(statistic) & 1) != 0;
  }
  static void ExpectAck(const rtl::ReturnVerdict& verdict, uint32_t cack) {
    EXPECT_EQ(verdict.respond, 1);
    EXPECT_EQ(verdict.rsp.kind, rtl::ResponseKind::kNone);
    EXPECT_EQ(verdict.rsp.cack, kStart + cack);
    EXPECT_EQ(verdict.rsp.spdcid, kOurs);
    EXPECT_EQ(verdict.rsp.dpdcid, kTheirs);
  }
  static void ExpectNack(const rtl::ReturnVerdict& verdict, NackCode code,
                         uint32_t number) {
    EXPECT_EQ(verdict.respond, 1);
    EXPECT_EQ(verdict.rsp.kind, rtl::ResponseKind::kNack);
    EXPECT_EQ(verdict.rsp.code, static_cast<uint8_t>(code));
    EXPECT_EQ(verdict.rsp.nack_psn, kStart + number);
    EXPECT_EQ(verdict.bytes, 0);
  }
  // The data are placed, and others before them are missing.
  static void ExpectGap(const rtl::ReturnVerdict& verdict, NackCode code,
                        uint32_t number) {
    rtl::ReturnVerdict nack = verdict;
    nack.bytes = 0;
    ExpectNack(nack, code, number);
    EXPECT_EQ(verdict.bytes, 1024);
  }
  static void ExpectDropped(const rtl::ReturnVerdict& verdict) {
    EXPECT_EQ(verdict.place, 1) << "the payload has to leave its queue";
    EXPECT_EQ(verdict.bytes, 0);
    EXPECT_EQ(verdict.last, 0);
    EXPECT_EQ(verdict.fail, 0);
  }
  // Nothing to any READ: more of one than it asked for.
  static void ExpectSurplus(const rtl::ReturnVerdict& verdict, uint32_t cack) {
    ExpectAck(verdict, cack);
    EXPECT_EQ(verdict.bytes, 0);
    EXPECT_EQ(verdict.last, 0);
    EXPECT_EQ(verdict.fail, 0);
    EXPECT_EQ(verdict.settle, 0);
    EXPECT_TRUE(Counted(verdict, Statistic::kDropSes));
  }
  static rtl::RxPacket Error(uint32_t number, uint16_t msg = kMsg) {
    rtl::RxPacket error = Data(number, 0, 0, msg);
    error.next_hdr = static_cast<uint8_t>(NextHdr::kResponse);
    error.response = static_cast<uint8_t>(SesResponse::kResponse);
    error.return_code = static_cast<uint8_t>(ReturnCode::kBadMkey);
    return error;
  }

 private:
  template <typename Port>
  static void PutAlive(Port& port, uint32_t pdc, bool alive) {
    const Port bit = Port{1} << pdc;
    port = alive ? port | bit : port & ~bit;
  }
  template <size_t kWords>
  static void PutAlive(VlWide<kWords>& port, uint32_t pdc, bool alive) {
    const uint32_t bit = 1U << (pdc % 32);
    port[pdc / 32] = alive ? port[pdc / 32] | bit : port[pdc / 32] & ~bit;
  }

  sim::model::ClockedModel<Vheddle_return_rx> dut_;
  uint16_t spdcid_ = 0;  // Of the PDC opened last.
  uint32_t mtu_ = 0;
};

TEST_F(ReturnRxTest, DataGoToTheirPlaceAndTheLastSaysSo) {
  SetMtu(4096);
  Read(kMsg, 8192 + 100, 0x40000);
  rtl::ReturnVerdict verdict = Send(Data(0, 0, 4096));
  ExpectAck(verdict, 0);
  EXPECT_EQ(verdict.place, 1);
  EXPECT_EQ(verdict.stream, 4096);
  EXPECT_EQ(verdict.bytes, 4096);
  EXPECT_EQ(verdict.iova, 0x40000U);
  EXPECT_EQ(verdict.owner, 3);
  EXPECT_EQ(verdict.first, 1);
  EXPECT_EQ(verdict.last, 0);
  EXPECT_EQ(verdict.msg, kMsg);
  EXPECT_TRUE(Counted(verdict, Statistic::kRxReturnData));
  verdict = Send(Data(1, 4096, 4096), /*wait=*/3);
  EXPECT_EQ(verdict.iova, 0x41000U);
  EXPECT_EQ(verdict.first, 0);
  verdict = Send(Data(2, 8192, 100));
  EXPECT_EQ(verdict.bytes, 100);
  EXPECT_EQ(verdict.last, 1);
  // It has all: more of it belongs to nobody.
  ExpectDropped(Send(Data(3, 0, 100)));
}

TEST_F(ReturnRxTest, PiecesGetTheOffset) {
  SetMtu(4096);
  Read(kMsg, 5000, 0x40000, /*segmented=*/true);
  rtl::ReturnVerdict verdict = Send(Data(0, 0, 4096));
  EXPECT_EQ(verdict.segmented, 1);
  EXPECT_EQ(verdict.iova, 0U);
  verdict = Send(Data(1, 4096, 904));
  EXPECT_EQ(verdict.segmented, 1);
  EXPECT_EQ(verdict.iova, 4096U);
  EXPECT_EQ(verdict.last, 1);
}

TEST_F(ReturnRxTest, DuplicatesAreAcknowledgedAgainAndDropped) {
  Read(kMsg, 4096);
  Send(Data(0, 0, 1024));
  Send(Data(1, 1024, 1024));
  const rtl::ReturnVerdict verdict = Send(Data(0, 0, 1024));
  ExpectAck(verdict, 1);
  EXPECT_EQ(static_cast<int16_t>(verdict.rsp.ack_offset), -1);
  ExpectDropped(verdict);
  EXPECT_TRUE(Counted(verdict, Statistic::kRxDuplicates));
  EXPECT_EQ(Send(Data(2, 2048, 1024)).last, 0);
  EXPECT_EQ(Send(Data(3, 3072, 1024)).last, 1);
}

TEST_F(ReturnRxTest, OrderedDataAfterOneThatIsMissingAreTakenAndItIsNamed) {
  Read(kMsg, 6144);
  Send(Data(0, 0, 1024));
  ExpectGap(Send(Data(2, 2048, 1024)), NackCode::kPktNotRcvd, 1);
  const rtl::ReturnVerdict next = Send(Data(3, 3072, 1024));
  EXPECT_EQ(next.bytes, 1024);
  ExpectAck(next, 0);
  ExpectGap(Send(Data(5, 5120, 1024)), NackCode::kPktNotRcvd, 4);
  rtl::RxPacket again = Data(1, 1024, 1024);
  again.retx = 1;
  ExpectAck(Send(again), 3);
  again = Data(4, 4096, 1024);
  again.retx = 1;
  const rtl::ReturnVerdict last = Send(again);
  ExpectAck(last, 5);
  EXPECT_EQ(last.last, 1);
  ExpectNack(Send(Data(6 + 512, 0, 8)), NackCode::kPsnOorWindow, 518);
}

TEST_F(ReturnRxTest, SenderGoesBackForOrderedDataThatAreMissingTogether) {
  Read(kMsg, 5120);
  Send(Data(0, 0, 1024));
  const rtl::ReturnVerdict nack = Send(Data(3, 3072, 1024));
  ExpectGap(nack, NackCode::kRodOoo, 3);
  EXPECT_EQ(nack.rsp.cack, kStart + 1);
  const auto again = [](uint32_t i) {
    rtl::RxPacket pkt = Data(i, 1024 * i, 1024);
    pkt.retx = 1;
    return pkt;
  };
  // Its first one is lost again: the pass is reported once.
  ExpectGap(Send(again(2)), NackCode::kRodOoo, 2);
  ExpectNack(Send(again(3)), NackCode::kRodOoo, 3);
  ExpectAck(Send(Data(4, 4096, 1024)), 0);
  const rtl::ReturnVerdict filled = Send(again(1));
  ExpectAck(filled, 4);
  EXPECT_EQ(filled.last, 1);
}

TEST_F(ReturnRxTest, OrderedDataAfterAGapAreRefusedUntilTheTargetIsKnown) {
  Read(kMsg, 4096);
  const rtl::ReturnVerdict nack = Send(Data(1, 1024, 1024));
  ExpectNack(nack, NackCode::kRodOoo, 1);
  EXPECT_EQ(nack.rsp.cack, kStart);
  EXPECT_EQ(nack.bytes, 0);
  EXPECT_EQ(Send(Data(2, 2048, 1024)).respond, 0) << "one NACK a gap";
}

// Nothing behind the PDS header is known of it.
rtl::RxPacket Trimmed(rtl::RxPacket pkt, rtl::Trim trim = rtl::Trim::kPath) {
  pkt.trim = trim;
  pkt.dscp = 3;  // That of trimmed packets.
  pkt.message_id = 0;
  pkt.response = pkt.return_code = 0;
  pkt.message_offset = 0;
  pkt.payload_bytes = 0;
  return pkt;
}

TEST_F(ReturnRxTest, TrimmedDataAreNackedOnceForAGapOrWhenExpected) {
  Read(kMsg, 4096);
  const rtl::ReturnVerdict first = Send(Trimmed(Data(0, 0, 1024)));
  ExpectNack(first, NackCode::kTrimmed, 0);
  EXPECT_EQ(first.rsp.spdcid, kOurs);
  EXPECT_EQ(first.rsp.dpdcid, kTheirs);
  EXPECT_EQ(first.rsp.dscp, 0) << "none of the PDC came yet";
  EXPECT_EQ(first.place, 0);
  EXPECT_TRUE(Counted(first, Statistic::kRxTrimmed));
  EXPECT_EQ(Send(Data(1, 1024, 1024)).respond, 0);
  EXPECT_EQ(Send(Trimmed(Data(2, 2048, 1024))).respond, 0);
  rtl::RxPacket again = Trimmed(Data(0, 0, 1024), rtl::Trim::kLasthop);
  again.ce = again.retx = 1;
  const rtl::ReturnVerdict second = Send(again);
  ExpectNack(second, NackCode::kTrimmedLasthop, 0);
  EXPECT_EQ(second.rsp.m, 1);
  EXPECT_EQ(second.rsp.retx, 1);
  EXPECT_EQ(Send(Data(0, 0, 1024)).bytes, 1024);
  const rtl::ReturnVerdict ahead = Send(Trimmed(Data(3, 3072, 1024)));
  ExpectNack(ahead, NackCode::kTrimmed, 3);
  EXPECT_EQ(ahead.rsp.dscp, 9);
  EXPECT_EQ(Send(Data(1, 1024, 1024)).bytes, 1024);
}

// A retransmission that overtakes those before it, when no packet follows it.
TEST_F(ReturnRxTest, TrimmedTailOfAPassIsNackedWhenItIsExpected) {
  Read(kMsg, 4096);
  const auto again = [](rtl::RxPacket pkt) {
    pkt.retx = 1;
    return pkt;
  };
  ExpectNack(Send(Trimmed(Data(0, 0, 1024))), NackCode::kTrimmed, 0);
  EXPECT_EQ(Send(Data(1, 1024, 1024)).respond, 0);
  EXPECT_EQ(Send(Data(2, 2048, 1024)).respond, 0);
  EXPECT_EQ(
      Send(Trimmed(again(Data(2, 2048, 1024)), rtl::Trim::kLasthop)).respond,
      0);
  EXPECT_EQ(Send(again(Data(0, 0, 1024))).bytes, 1024);
  const rtl::ReturnVerdict second = Send(again(Data(1, 1024, 1024)));
  EXPECT_EQ(second.bytes, 1024);
  EXPECT_EQ(second.rsp.kind, rtl::ResponseKind::kNack);
  EXPECT_EQ(second.rsp.code, static_cast<uint8_t>(NackCode::kTrimmedLasthop));
  EXPECT_EQ(second.rsp.nack_psn, kStart + 2);
  EXPECT_EQ(second.rsp.retx, 1);
  ExpectAck(Send(Data(3, 3072, 1024)), 1);  // It is reported.
  EXPECT_EQ(Send(again(Data(2, 2048, 1024))).bytes, 1024);
}

TEST_F(ReturnRxTest, TrimmedDuplicateIsAcknowledgedAllElseDiscarded) {
  Read(kMsg, 4096);
  const auto discarded = [this](const rtl::RxPacket& packet) {
    const rtl::ReturnVerdict verdict = Send(packet);
    EXPECT_EQ(verdict.respond, 0);
    EXPECT_EQ(verdict.place, 0);
    EXPECT_EQ(verdict.settle, 0);
    return Counted(verdict, Statistic::kDropTrimmed);
  };
  EXPECT_TRUE(discarded(Trimmed(Data(uint32_t{0} - 1, 0, 1024))));
  Send(Data(0, 0, 1024));
  const rtl::ReturnVerdict verdict = Send(Trimmed(Data(0, 0, 1024)));
  ExpectAck(verdict, 0);
  EXPECT_TRUE(Counted(verdict, Statistic::kRxDuplicates));
  EXPECT_TRUE(discarded(Trimmed(Data(1 + 512, 0, 1024))));
  rtl::RxPacket packet = Trimmed(Data(1, 1024, 1024));
  packet.source_fa_lo ^= 1;
  EXPECT_TRUE(discarded(packet));
  packet = Trimmed(Data(1, 1024, 1024));
  packet.spdcid ^= 1;
  EXPECT_TRUE(discarded(packet));
  packet = Trimmed(Data(1, 1024, 1024));
  packet.dpdcid ^= 1 << 10;  // Another function's.
  EXPECT_TRUE(discarded(packet));
  SetAlive(kPdc, false);
  EXPECT_TRUE(discarded(Trimmed(Data(1, 1024, 1024))));
}

TEST_F(ReturnRxTest, LostRetransmissionIsReportedAgainOncePerPass) {
  Read(kMsg, 8192);
  const auto again = [](uint32_t i) {
    rtl::RxPacket pkt = Data(i, 1024 * i, 1024);
    pkt.retx = 1;
    return pkt;
  };
  ExpectNack(Send(Data(1, 1024, 1024)), NackCode::kRodOoo, 1);
  for (uint32_t i = 2; i < 8; ++i) {
    EXPECT_EQ(Send(Data(i, 1024 * i, 1024)).respond, 0);
  }
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(Send(again(1)).respond, 0);
    ExpectNack(Send(again(2)), NackCode::kRodOoo, 2);
    for (uint32_t i = 3; i < 8; ++i) EXPECT_EQ(Send(again(i)).respond, 0);
  }
  for (uint32_t i = 0; i < 8; ++i) ExpectAck(Send(again(i)), i);
}

TEST_F(ReturnRxTest, ControlPacketsAboutReturnPsnsAreAnswered) {
  const auto control = [](CpType type, uint32_t number) {
    rtl::RxPacket pkt = Data(number, 0, 0);
    pkt.pds_type = PdsType::kCp;
    pkt.next_hdr = static_cast<uint8_t>(type);
    pkt.message_id = 0;
    return pkt;
  };
  Read(kMsg, 4096);
  // Before any data nothing is acknowledged but what came before the first.
  ExpectAck(Send(control(CpType::kAckRequest, ~0U)), ~0U);
  Send(Data(0, 0, 1024));
  const rtl::ReturnVerdict ack = Send(control(CpType::kAckRequest, 0));
  ExpectAck(ack, 0);
  EXPECT_FALSE(Counted(ack, Statistic::kRxDuplicates));
  ExpectNack(Send(control(CpType::kAckRequest, 1)), NackCode::kPktNotRcvd, 1);
  ExpectNack(Send(control(CpType::kAckRequest, 2)), NackCode::kPktNotRcvd, 2);
  rtl::RxPacket probe = control(CpType::kProbe, 1);
  probe.offset = 0xbeef;
  const rtl::ReturnVerdict told = Send(probe);
  ExpectAck(told, 0);
  EXPECT_EQ(told.rsp.probe, 1);
  EXPECT_EQ(told.rsp.ack_offset, 0xbeef);
  // A Close Request takes a PSN, and is data of no READ.
  const rtl::ReturnVerdict close = Send(control(CpType::kCloseRequest, 1));
  ExpectAck(close, 1);
  EXPECT_EQ(close.settle, 0);
  EXPECT_FALSE(Counted(close, Statistic::kDropSes));
  EXPECT_EQ(Send(Data(2, 1024, 1024)).bytes, 1024);
  probe.spdcid = kTheirs + 1;
  ExpectNack(Send(probe), NackCode::kInvDpdcid, 1);
}

TEST_F(ReturnRxTest, AcksAreCoalescedUnlessAskedFor) {
  Read(kMsg, 1U << 20);
  int answers = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    rtl::RxPacket pkt = Data(i, i * 1024, 1024);
    pkt.ar = 0;
    answers += Send(pkt).respond;
  }
  EXPECT_EQ(answers, 2);
}

TEST_F(ReturnRxTest, AckThatWasPutOffLeavesInTimeAndOnce) {
  Read(kMsg, 1U << 20);
  EXPECT_EQ(Send(Quiet(0)).respond, 0);
  EXPECT_TRUE(pending());
  rtl::RxPacket moved = Quiet(1);
  moved.source_mac = 0x020000000077;
  moved.source_port = 0xc777;
  EXPECT_EQ(Send(moved).respond, 0);
  EXPECT_FALSE(Late(kAckDelay / 2 - 1).has_value());
  const auto late = Late(kAckDelay);
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->respond, 1);
  EXPECT_EQ(late->answer.kind, rtl::ResponseKind::kNone);
  EXPECT_EQ(late->answer.cack, kStart + 1);
  EXPECT_EQ(late->answer.ack_offset, 0);
  EXPECT_EQ(late->answer.spdcid, kOurs);
  EXPECT_EQ(late->answer.dpdcid, kTheirs);
  EXPECT_EQ(late->answer.fa_lo, 0x0a000002U);
  EXPECT_EQ(late->answer.mac, 0x020000000077U);
  EXPECT_EQ(late->answer.entropy, 0xc777);
  EXPECT_EQ(late->answer.dscp, 9);
  EXPECT_EQ(late->answer.cc, 0);
  EXPECT_FALSE(pending());
  EXPECT_FALSE(Late(4 * kAckDelay).has_value());
  // One that was sent pays the debt, and counting begins anew.
  EXPECT_EQ(Send(Quiet(2)).respond, 0);
  ExpectAck(Send(Data(3, 3 * 1024, 1024)), 3);
  EXPECT_FALSE(Late(4 * kAckDelay).has_value());
}

TEST_F(ReturnRxTest, NobodyIsOwedAnAckOfAPdcThatEnded) {
  for (const bool again : {false, true}) {
    Read(kMsg, 1U << 20);
    EXPECT_EQ(Send(Quiet(0)).respond, 0);
    SetAlive(kPdc, again);
    if (again) Open(kPdc, kOurs);
    const auto late = Late(2 * kAckDelay);
    ASSERT_TRUE(late.has_value());
    EXPECT_EQ(late->respond, 0);
    EXPECT_FALSE(Late(4 * kAckDelay).has_value());
    SetAlive(kPdc, true);
    Open(kPdc, kOurs);
  }
}

TEST_F(ReturnRxTest,
       UnderCongestionControlAcksSayHowMuchCameAndHowLongTheyWaited) {
  SetCongestion(true);
  Read(kMsg, 1U << 20);
  rtl::ReturnVerdict verdict = Send(Data(0, 0, 1024));
  ExpectAck(verdict, 0);
  EXPECT_EQ(verdict.rsp.cc, 1);
  EXPECT_EQ(verdict.rsp.service_time, 1);
  EXPECT_EQ(verdict.rsp.sack_bitmap, 0U);
  EXPECT_EQ(verdict.rsp.rcvd_bytes, 5U);  // Of 256: 1024, and 84 of headers.
  verdict = Send(Data(0, 0, 1024));
  EXPECT_EQ(verdict.rsp.rcvd_bytes, 5U) << "a duplicate is not news";
  SetTime(0xffff'fff0);
  EXPECT_EQ(Send(Quiet(1)).respond, 0);
  SetTime(128 * 300);
  const auto late = Late(2 * kAckDelay);
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->answer.cc, 1);
  EXPECT_EQ(late->answer.rcvd_bytes, 9U);
  EXPECT_EQ(late->answer.service_time, 301);
  SetCongestion(false);
  verdict = Send(Data(2, 2048, 1024));
  EXPECT_EQ(verdict.rsp.cc, 0);
  EXPECT_EQ(verdict.rsp.service_time, 0);
  EXPECT_EQ(verdict.rsp.rcvd_bytes, 0U);
}

TEST_F(ReturnRxTest, MarkedPacketIsAnsweredAtOnce) {
  Read(kMsg, 4096);
  rtl::RxPacket packet = Quiet(0);
  packet.ce = 1;
  const rtl::ReturnVerdict verdict = Send(packet);
  ExpectAck(verdict, 0);
  EXPECT_EQ(verdict.rsp.m, 1);
  EXPECT_EQ(Send(Quiet(1)).respond, 0);
}

TEST_F(ReturnRxTest, NothingIsPlacedThatIsNoPieceOfARead) {
  struct Case {
    const char* what;
    rtl::RxPacket packet;
  };
  uint32_t number = 0;
  const auto expect_malformed = [&](const char* what, rtl::RxPacket packet) {
    SCOPED_TRACE(what);
    Read(kMsg, 4096);
    packet.psn = kStart + number;
    const rtl::ReturnVerdict verdict = Send(packet);
    EXPECT_EQ(verdict.settle, 1);
    EXPECT_EQ(verdict.fail, 1);
    EXPECT_EQ(verdict.code, static_cast<uint8_t>(ReturnCode::kUncor));
    ExpectAck(verdict, number);
    EXPECT_EQ(verdict.bytes, 0);
    EXPECT_EQ(verdict.last, 0);
    EXPECT_TRUE(Counted(verdict, Statistic::kDropSes));
    ++number;
  };
  expect_malformed("between two pieces", Data(0, 512, 1024));
  expect_malformed("after the end", Data(0, 4096, 1024));
  expect_malformed("beyond the end", Data(0, 0, 4097));
  expect_malformed("no bytes", Data(0, 0, 0));
  expect_malformed("fewer than were asked for", Data(0, 0, 1023));
  expect_malformed("more than were asked for", Data(0, 0, 2048));
  rtl::RxPacket odd = Data(0, 0, 1024);
  odd.response = static_cast<uint8_t>(SesResponse::kResponse);
  expect_malformed("another response", odd);
  // It failed: the rest of its data go nowhere, but are counted.
  const rtl::ReturnVerdict rest = Send(Data(number++, 0, 1024));
  EXPECT_EQ(rest.bytes, 0);
  EXPECT_EQ(rest.settle, 1);
  End(kMsg);
  Read(kMsg, 4096);
  ExpectDropped(Send(Data(number++, 0, 1024, 78)));    // No READ.
  ExpectDropped(Send(Data(number++, 0, 1024, 1024)));  // No such message.
  rtl::RxPacket none = Data(number++, 0, 1024);
  none.message_id = 0;
  ExpectDropped(Send(none));
  Write(79, 4096, 0x20000);
  Asked(79, kOurs + 1, kStart);
  ExpectDropped(Send(Data(number++, 0, 1024, 79)));  // Of another PDC.
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(Send(Data(number++, i * 1024, 1024)).last, i == 3 ? 1 : 0)
        << "it is as it was";
  }
}

TEST_F(ReturnRxTest, EndedReadTakesNothing) {
  Read(kMsg, 4096);
  Send(Data(0, 0, 1024));
  End(kMsg);
  const rtl::ReturnVerdict verdict = Send(Data(1, 1024, 1024));
  ExpectAck(verdict, 1);
  ExpectDropped(verdict);
  EXPECT_FALSE(Counted(verdict, Statistic::kDropSes)) << "that is no fault";
  // The entry serves another READ, from its first byte.
  Read(kMsg, 512, 0x70000);
  const rtl::ReturnVerdict next = Send(Data(2, 0, 512));
  EXPECT_EQ(next.iova, 0x70000U);
  EXPECT_EQ(next.first, 1);
  EXPECT_EQ(next.last, 1);
}

TEST_F(ReturnRxTest, ErrorInsteadOfDataFailsTheRead) {
  Read(kMsg, 4096);
  Send(Data(0, 0, 1024));
  const rtl::ReturnVerdict verdict = Send(Error(1));
  ExpectAck(verdict, 1);
  EXPECT_EQ(verdict.fail, 1);
  EXPECT_EQ(verdict.msg, kMsg);
  EXPECT_EQ(verdict.code, static_cast<uint8_t>(ReturnCode::kBadMkey));
  EXPECT_EQ(verdict.settle, 1);
  const rtl::ReturnVerdict rest = Send(Data(2, 1024, 1024));
  EXPECT_EQ(rest.bytes, 0);
  EXPECT_EQ(rest.settle, 1) << "another packet that will not come again";
}

// Answers beyond what was asked for would count as those due to others.
TEST_F(ReturnRxTest, ReadHasNoMorePacketsThanWereAskedFor) {
  Read(kMsg, 2048);
  Read(kMsg + 1, 1024);
  EXPECT_EQ(Send(Data(0, 0, 1024)).bytes, 1024);
  // The same bytes once more, under a PSN of their own.
  const rtl::ReturnVerdict twice = Send(Data(1, 0, 1024));
  EXPECT_EQ(twice.bytes, 0);
  EXPECT_EQ(twice.settle, 1);
  EXPECT_EQ(twice.fail, 1);
  EXPECT_EQ(twice.code, static_cast<uint8_t>(ReturnCode::kUncor));
  ExpectSurplus(Send(Data(2, 1024, 1024)), 2);
  ExpectSurplus(Send(Data(3, 0, 1024)), 3);
  ExpectSurplus(Send(Error(4)), 4);
  EXPECT_EQ(Send(Data(5, 0, 1024, kMsg + 1)).last, 1);
  // Its last packet twice, and an error behind it.
  ExpectSurplus(Send(Data(6, 0, 1024, kMsg + 1)), 6);
  ExpectSurplus(Send(Error(7, kMsg + 1)), 7);
}

TEST_F(ReturnRxTest, ErrorsDoNotOutnumberTheRequestsEither) {
  Read(kMsg, 3072);
  for (uint32_t i = 0; i < 3; ++i) {
    const rtl::ReturnVerdict verdict = Send(Error(i));
    EXPECT_EQ(verdict.settle, 1);
    EXPECT_EQ(verdict.fail, 1);
  }
  ExpectSurplus(Send(Error(3)), 3);
}

TEST_F(ReturnRxTest, AnswersAheadOfTheirRequestsAreNotTaken) {
  Write(kMsg, 4096, 0x10000);
  Asked(kMsg, kOurs, kStart, 1);
  EXPECT_EQ(Send(Data(0, 0, 1024)).bytes, 1024);
  ExpectSurplus(Send(Data(1, 1024, 1024)), 1);
  Asked(kMsg, kOurs, kStart + 1, 2);
  Asked(kMsg, kOurs, kStart + 2, 3);
  EXPECT_EQ(Send(Data(2, 1024, 1024)).bytes, 1024);
  EXPECT_EQ(Send(Data(3, 2048, 1024)).bytes, 1024);
  ExpectSurplus(Send(Data(4, 3072, 1024)), 4);
}

// A request that asks for nothing ends a READ.
TEST_F(ReturnRxTest, RequestThatAsksForNothingIsNotAnswered) {
  Write(kMsg, 4096, 0x10000);
  Asked(kMsg, kOurs, kStart, 1);
  Asked(kMsg, kOurs, kStart + 1, 1);
  EXPECT_EQ(Send(Data(0, 0, 1024)).settle, 1);
  ExpectSurplus(Send(Data(1, 1024, 1024)), 1);
}

TEST_F(ReturnRxTest, RefusedReadHasNoMoreThanIsPromised) {
  Read(kMsg, 4096);
  EXPECT_EQ(Send(Data(0, 0, 1024)).settle, 1);
  Cut(kMsg, 2);
  EXPECT_EQ(Send(Data(1, 1024, 1024)).settle, 1);
  ExpectSurplus(Send(Data(2, 2048, 1024)), 2);
  End(kMsg);
  // The next READ of the entry has all of its own.
  Read(kMsg, 4096);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(Send(Data(3 + i, i * 1024, 1024)).settle, 1);
  }
  // Of another one more came before that was known.
  End(kMsg);
  Read(kMsg, 4096);
  EXPECT_EQ(Send(Data(7, 0, 1024)).settle, 1);
  Cut(kMsg, 0);
  ExpectSurplus(Send(Data(8, 1024, 1024)), 8);
}

// What a target had answered before it forgot the PDC does not count on the
// next opening.
TEST_F(ReturnRxTest, ReadThatIsAskedForAgainBeginsAnew) {
  constexpr uint16_t kAgain = kOurs ^ 1 << 8;
  Read(kMsg, 2048, 0x10000);
  EXPECT_EQ(Send(Data(0, 0, 1024)).bytes, 1024);
  EXPECT_EQ(Send(Data(1, 0, 1024)).fail, 1);
  Open(kPdc, kAgain);
  rtl::RxPacket packet = Data(0, 0, 1024);
  packet.dpdcid = kAgain;
  rtl::ReturnVerdict verdict = Send(packet);
  EXPECT_EQ(verdict.settle, 0);
  Asked(kMsg, kAgain, kStart, 1);
  Asked(kMsg, kAgain, kStart + 1, 2);
  packet.psn += 1;
  verdict = Send(packet);
  EXPECT_EQ(verdict.bytes, 1024);
  EXPECT_EQ(verdict.first, 1);
  EXPECT_EQ(verdict.spdcid, kAgain);
  packet.psn += 1;
  packet.message_offset = 1024;
  EXPECT_EQ(Send(packet).last, 1);
}

TEST_F(ReturnRxTest, OnRudDataAreTakenInAnyOrderOnce) {
  Open(kPdc, kOurs, /*rud=*/true);
  Read(kMsg, 5 * 1024 + 100);
  rtl::ReturnVerdict verdict = Send(Quiet(0));
  EXPECT_EQ(verdict.respond, 0) << "no gap, no ar";
  rtl::RxPacket ahead = Quiet(3);
  ahead.pds_type = PdsType::kRudReq;
  verdict = Send(ahead);
  ExpectSack(verdict, 1, {3});
  EXPECT_EQ(static_cast<int16_t>(verdict.rsp.ack_offset), 3);
  EXPECT_EQ(verdict.bytes, 1024);
  EXPECT_EQ(verdict.iova, 0x10000U + 3072);
  EXPECT_EQ(verdict.settle, 1);
  verdict = Send(Data(5, 5120, 100));
  ExpectSack(verdict, 1, {3, 5});
  EXPECT_EQ(verdict.bytes, 100);
  EXPECT_EQ(verdict.last, 0);
  verdict = Send(ahead);
  ExpectSack(verdict, 1, {3, 5});
  EXPECT_EQ(static_cast<int16_t>(verdict.rsp.ack_offset), 3);
  EXPECT_TRUE(Counted(verdict, Statistic::kRxDuplicates));
  EXPECT_EQ(verdict.settle, 0);
  ExpectDropped(verdict);
  ExpectSack(Send(Quiet(2)), 1, {2, 3, 5});
  verdict = Send(Quiet(1));
  ExpectSack(verdict, 4, {5});
  EXPECT_EQ(static_cast<int16_t>(verdict.rsp.ack_offset), -2);
  verdict = Send(Quiet(4));
  ExpectSack(verdict, 6, {});
  EXPECT_EQ(verdict.last, 1);
}

TEST_F(ReturnRxTest, OnRudTheWindowBoundsWhatIsTaken) {
  Open(kPdc, kOurs, /*rud=*/true);
  Read(kMsg, 1U << 20);
  for (uint32_t i = 0; i < 64; ++i) Asked(kMsg, kOurs, kStart + i, i + 1);
  EXPECT_EQ(Send(Data(63, 63 * 1024, 1024)).bytes, 1024);
  ExpectNack(Send(Data(64, 62 * 1024, 1024)), NackCode::kPsnOorWindow, 64);
  ExpectSack(Send(Data(0, 0, 1024)), 1, {63});
  EXPECT_EQ(Send(Data(64, 62 * 1024, 1024)).bytes, 1024);
}

TEST_F(ReturnRxTest, OnRudTrimmedDataAreNackedEachUnlessTheyCame) {
  Open(kPdc, kOurs, /*rud=*/true);
  Read(kMsg, 4096);
  ExpectNack(Send(Trimmed(Data(0, 0, 1024))), NackCode::kTrimmed, 0);
  ExpectNack(Send(Trimmed(Data(2, 0, 1024))), NackCode::kTrimmed, 2);
  EXPECT_EQ(Send(Data(1, 1024, 1024)).bytes, 1024);
  ExpectSack(Send(Trimmed(Data(1, 0, 1024))), 0, {1});
  ExpectNack(Send(Trimmed(Data(2, 0, 1024))), NackCode::kTrimmed, 2);
  ExpectSack(Send(Data(0, 0, 1024)), 2, {});
}

TEST_F(ReturnRxTest, OnRudAWideGapIsSignalledUntilItCloses) {
  constexpr uint32_t kAhead = rtl::kReturnAhead;
  Open(kPdc, kOurs, /*rud=*/true);
  Read(kMsg, 1U << 20);
  for (uint32_t i = 1; i < kAhead; ++i) Send(Data(i, i * 1024, 1024));
  EXPECT_FALSE(Gap(kPdc));
  Send(Data(kAhead, kAhead * 1024, 1024));
  EXPECT_TRUE(Gap(kPdc));
  Send(Data(0, 0, 1024));
  EXPECT_FALSE(Gap(kPdc));
  Send(Data(2 * kAhead + 1, 0, 1024));
  EXPECT_TRUE(Gap(kPdc));
  Open(kPdc, kOurs ^ 1 << 8, /*rud=*/true);
  EXPECT_FALSE(Gap(kPdc));
}

// As many pieces as were requested, but one of them twice.
TEST_F(ReturnRxTest, ReadWithAHoleFails) {
  Open(kPdc, kOurs, /*rud=*/true);
  Read(kMsg, 4096);
  Send(Data(3, 3072, 1024));
  EXPECT_EQ(Send(Data(2, 3072, 1024)).fail, 0);
  Send(Data(0, 0, 1024));
  const rtl::ReturnVerdict last = Send(Data(1, 1024, 1024));
  EXPECT_EQ(last.settle, 1);
  EXPECT_EQ(last.fail, 1);
  EXPECT_EQ(last.code, static_cast<uint8_t>(ReturnCode::kUncor));
  EXPECT_EQ(last.last, 0);
}

// As many pieces as were requested, and all that a READ of at most this many
// could have received instead: a sum of their indices alone would accept some.
TEST_F(ReturnRxTest, ReadOfAnyOtherPiecesFails) {
  constexpr uint32_t kMost = 5;
  Open(kPdc, kOurs, /*rud=*/true);
  uint32_t psn = 0;
  for (uint32_t pieces = 2; pieces <= kMost; ++pieces) {
    uint32_t combinations = 1;
    for (uint32_t i = 0; i < pieces; ++i) {
      combinations *= pieces;
    }
    for (uint32_t each = 0; each < combinations; ++each) {
      Read(kMsg, pieces * 1024);
      uint32_t seen = 0;
      uint32_t rest = each;
      rtl::ReturnVerdict verdict;
      for (uint32_t i = 0; i < pieces; ++i) {
        const uint32_t index = rest % pieces;
        rest /= pieces;
        seen |= 1u << index;
        verdict = Send(Data(psn++, index * 1024, 1024));
      }
      const bool whole = seen == (1u << pieces) - 1;
      ASSERT_EQ(verdict.last, whole) << pieces << " pieces, " << each;
      ASSERT_EQ(verdict.fail, !whole) << pieces << " pieces, " << each;
    }
  }
}

// The answer to a tail of a few bytes is its ACK, which may be first.
TEST_F(ReturnRxTest, TailInTheAckOfItsRequestIsTakenOnceBeforeTheRest) {
  for (const bool rud : {false, true}) {
    for (const bool tail_first : {false, true}) {
      Open(kPdc, kOurs, rud);
      Read(kMsg, 1024 + 16);
      rtl::RxPacket ack = Data(3, 1024, 16);
      ack.pds_type = rud ? PdsType::kAckCc : PdsType::kAck;
      const rtl::RxPacket rest = Data(0, 0, 1024);
      const rtl::ReturnVerdict first = Send(tail_first ? ack : rest);
      EXPECT_EQ(first.fail, 0);
      EXPECT_EQ(first.bytes, tail_first ? 16 : 1024);
      if (tail_first) {
        const rtl::ReturnVerdict repeated = Send(ack);
        ExpectDropped(repeated);
        EXPECT_EQ(repeated.settle, 0);
      }
      const rtl::ReturnVerdict last = Send(tail_first ? rest : ack);
      EXPECT_EQ(last.fail, 0);
      EXPECT_EQ(last.last, 1);
      EXPECT_EQ(last.bytes, tail_first ? 1024 : 16);
      End(kMsg);
    }
  }
}

TEST_F(ReturnRxTest, OnRudRandomOrderPlacesEachByteOnce) {
  const uint32_t seed = TestSeed();
  std::mt19937 random(seed);
  constexpr uint32_t kPackets = 200;
  constexpr uint32_t kLength = (kPackets - 1) * 1024 + 77;
  for (int round = 0; round < 20; ++round) {
    Open(kPdc, kOurs, /*rud=*/true);
    Read(kMsg, kLength);
    // The target's PSNs name the pieces in an order of its own.
    std::vector<uint32_t> pieces(kPackets);
    std::iota(pieces.begin(), pieces.end(), 0U);
    std::shuffle(pieces.begin(), pieces.end(), random);
    std::set<uint32_t> came;
    std::vector<int> placed(kPackets, 0);
    uint32_t next = 0;
    bool last = false;
    while (next < kPackets) {
      const uint32_t number =
          std::min<uint32_t>(kPackets - 1, next + random() % 64);
      const uint32_t piece = pieces[number];
      const rtl::ReturnVerdict verdict =
          Send(Data(number, piece * 1024, piece == kPackets - 1 ? 77 : 1024));
      const bool fresh = came.insert(number).second;
      ASSERT_EQ(verdict.settle, fresh ? 1 : 0) << "seed " << seed;
      ASSERT_EQ(verdict.bytes != 0, fresh) << "seed " << seed;
      placed[piece] += fresh ? 1 : 0;
      while (came.contains(next)) ++next;
      ASSERT_EQ(verdict.rsp.cack, kStart + next - 1) << "seed " << seed;
      ASSERT_FALSE(last) << "seed " << seed;
      last = verdict.last != 0;
    }
    ASSERT_TRUE(last) << "seed " << seed;
    for (const int count : placed) ASSERT_EQ(count, 1) << "seed " << seed;
    End(kMsg);
  }
}

// It ends if its target begins anew; a READ that was not asked for yet does
// not.
TEST_F(ReturnRxTest, ReadIsAnsweredFromItsFirstPacketUntilItEnds) {
  Read(kMsg, 2048);
  Read(kMsg + 1, 1024);
  EXPECT_FALSE(Answered(kMsg));
  Send(Data(0, 0, 1024));
  EXPECT_TRUE(Answered(kMsg));
  EXPECT_FALSE(Answered(kMsg + 1));
  Send(Error(1, kMsg + 1));
  EXPECT_TRUE(Answered(kMsg + 1));
  End(kMsg);
  End(kMsg + 1);
  Write(kMsg, 2048, 0x10000);
  EXPECT_FALSE(Answered(kMsg)) << "the next of its table entry";
  EXPECT_FALSE(Answered(kMsg + 1));
  Asked(kMsg, kOurs, kStart + 4);
  EXPECT_FALSE(Answered(kMsg));
  ExpectDropped(Send(Data(2, 2048, 1024, kMsg + 1)));
  EXPECT_FALSE(Answered(kMsg + 1)) << "matches no READ";
}

TEST_F(ReturnRxTest, ContextThatIsGoneGetsNoData) {
  Read(kMsg, 4096);
  EXPECT_EQ(Send(Data(0, 0, 1024)).bytes, 1024);
  SetContext(true, kGen + 1);
  rtl::ReturnVerdict verdict = Send(Data(1, 1024, 1024));
  EXPECT_EQ(verdict.bytes, 0);
  EXPECT_EQ(verdict.settle, 1);
  EXPECT_EQ(verdict.fail, 0);
  SetContext(false, kGen);
  Send(Data(2, 2048, 1024));
  verdict = Send(Data(3, 3072, 1024));
  EXPECT_EQ(verdict.bytes, 0);
  EXPECT_EQ(verdict.settle, 1);
  EXPECT_EQ(verdict.last, 1);
}

TEST_F(ReturnRxTest, SmallResultInTheAckIsPlacedOnceAndNotAnswered) {
  Read(kMsg, 16, 0x90000);
  rtl::RxPacket ack = Data(3, 0, 16);
  ack.pds_type = PdsType::kAck;
  const rtl::ReturnVerdict verdict = Send(ack);
  EXPECT_EQ(verdict.respond, 0);
  EXPECT_EQ(verdict.bytes, 16);
  EXPECT_EQ(verdict.iova, 0x90000U);
  EXPECT_EQ(verdict.last, 1);
  ExpectDropped(Send(ack));
  // Part of a READ in an ACK is no legal answer.
  Read(kMsg + 1, 17);
  ack = Data(3, 0, 16, kMsg + 1);
  ack.pds_type = PdsType::kAck;
  const rtl::ReturnVerdict part = Send(ack);
  EXPECT_EQ(part.bytes, 0);
  EXPECT_EQ(part.fail, 1);
  // The return direction's own numbers are where they were.
  Read(kMsg + 2, 64);
  EXPECT_EQ(Send(Data(0, 0, 64, kMsg + 2)).last, 1);
}

// A target repeats what it holds until it is cleared, and copies may be late.
TEST_F(ReturnRxTest, LateAnswerToAnEarlierReadIsNotThatOfTheNext) {
  Read(kMsg, 16, 0x90000);
  rtl::RxPacket ack = Data(3, 0, 16);
  ack.pds_type = PdsType::kAck;
  EXPECT_EQ(Send(ack).last, 1);
  End(kMsg);
  Write(kMsg, 16, 0xa0000);
  rtl::ReturnVerdict verdict = Send(ack);
  ExpectDropped(verdict);
  EXPECT_EQ(verdict.settle, 0);
  Asked(kMsg, kOurs, kStart + 4);
  verdict = Send(ack);
  ExpectDropped(verdict);
  EXPECT_EQ(verdict.settle, 0);
  // What the ACK answers is its CACK plus an offset.
  ack.psn = kStart + 5;
  ack.offset = static_cast<uint16_t>(-1);
  verdict = Send(ack);
  EXPECT_EQ(verdict.last, 1);
  EXPECT_EQ(verdict.iova, 0xa0000U);
}

TEST_F(ReturnRxTest, WhatAnEarlierOpeningOfThePdcAskedForIsNotAnswered) {
  Read(kMsg, 64);
  Open(kPdc, kOurs ^ 1 << 8);
  rtl::RxPacket packet = Data(0, 0, 64);
  packet.dpdcid = kOurs ^ 1 << 8;
  rtl::ReturnVerdict verdict = Send(packet);
  ExpectDropped(verdict);
  EXPECT_EQ(verdict.settle, 0);
  // Sent again on this one it is.
  Asked(kMsg, kOurs ^ 1 << 8, kStart);
  packet.psn += 1;
  EXPECT_EQ(Send(packet).last, 1);
}

TEST_F(ReturnRxTest, StrangersAreRefusedAndChangeNothing) {
  Read(kMsg, 4096);
  Send(Data(0, 0, 1024));
  const auto expect_unknown = [&](rtl::RxPacket packet) {
    const rtl::ReturnVerdict verdict = Send(packet);
    EXPECT_EQ(verdict.respond, 1);
    EXPECT_EQ(verdict.rsp.kind, rtl::ResponseKind::kNack);
    EXPECT_EQ(verdict.rsp.spdcid, 0);
    EXPECT_EQ(verdict.rsp.code, static_cast<uint8_t>(NackCode::kInvDpdcid));
    ExpectDropped(verdict);
  };
  rtl::RxPacket packet = Data(1, 1024, 1024);
  packet.source_fa_lo ^= 1;
  expect_unknown(packet);
  packet = Data(1, 1024, 1024);
  packet.ipv6 = 1;
  expect_unknown(packet);
  packet = Data(1, 1024, 1024);
  packet.spdcid ^= 1;
  expect_unknown(packet);
  packet = Data(1, 1024, 1024);
  packet.dpdcid ^= 1 << 8;
  expect_unknown(packet);
  packet = Data(1, 1024, 1024);
  packet.dpdcid ^= 1 << 10;
  const rtl::ReturnVerdict foreign = Send(packet);
  EXPECT_EQ(foreign.respond, 0) << "another function's";
  ExpectDropped(foreign);
  SetAlive(kPdc, false);
  expect_unknown(Data(1, 1024, 1024));
  SetAlive(kPdc, true);
  ExpectAck(Send(Data(1, 1024, 1024)), 1);
}

// What a target still sends to who had address and PDCID before does not make
// it ours.
TEST_F(ReturnRxTest, OnlyDataThatAreAcceptedNameTheTarget) {
  Read(kMsg, 4096);
  rtl::RxPacket stale = Data(3, 0, 1024);
  stale.spdcid = 0x7777;
  EXPECT_EQ(Send(stale).rsp.code, static_cast<uint8_t>(NackCode::kRodOoo));
  stale.psn = kStart - 9;
  const rtl::ReturnVerdict older = Send(stale);
  EXPECT_EQ(older.rsp.code, static_cast<uint8_t>(NackCode::kInvDpdcid));
  EXPECT_EQ(older.rsp.dpdcid, 0x7777);
  EXPECT_EQ(Send(Data(0, 0, 1024)).bytes, 1024);
  stale.psn = kStart + 1;
  stale.message_offset = 1024;
  EXPECT_EQ(Send(stale).rsp.code, static_cast<uint8_t>(NackCode::kInvDpdcid));
  EXPECT_EQ(Send(Data(1, 1024, 1024)).bytes, 1024);
}

TEST_F(ReturnRxTest, NextOpeningBeginsAnewWhoeverAnswers) {
  Read(kMsg, 4096);
  Send(Data(0, 0, 1024));
  Send(Data(1, 1024, 1024));
  End(kMsg);
  Open(kPdc, kOurs ^ 1 << 8);
  Read(kMsg, 64);
  rtl::RxPacket packet = Data(0, 0, 64);
  packet.dpdcid = kOurs ^ 1 << 8;
  packet.spdcid = 0x7777;
  const rtl::ReturnVerdict verdict = Send(packet);
  EXPECT_EQ(verdict.last, 1);
  EXPECT_EQ(verdict.rsp.dpdcid, 0x7777);
}

TEST_F(ReturnRxTest, RandomPacketsPlaceEachByteOnceAndNoneOutside) {
  const uint32_t seed = TestSeed();
  std::mt19937 random(seed);
  const auto below = [&](uint32_t limit) {
    return static_cast<uint32_t>(random() % limit);
  };
  constexpr uint32_t kLength = 5000;
  for (int round = 0; round < 30; ++round) {
    Open(kPdc, kOurs);
    Read(kMsg, kLength, 0x100000);
    std::vector<int> placed(kLength, 0);
    bool done = false;
    uint32_t number = 0;
    uint32_t offset = 0;
    for (int i = 0; i < 4000 && !done; ++i) {
      rtl::RxPacket packet = Data(number + below(4), below(6000),
                                  static_cast<uint16_t>(below(900)));
      if (random() % 4 == 0) packet.psn = kStart + number;
      if (random() % 2 == 0) {
        packet.message_offset = offset;
        packet.payload_bytes =
            static_cast<uint16_t>(std::min<uint32_t>(1024, kLength - offset));
      } else if (random() % 64 != 0) {
        packet.message_id = kMsg + 2;
      }
      // The first tells whose PDC it is.
      if (number > 0 && random() % 16 == 0)
        packet.spdcid ^= static_cast<uint16_t>(random());
      packet.retx = random() & 1;
      packet.ar = random() & 1;
      const rtl::ReturnVerdict verdict =
          Send(packet, static_cast<int>(random() % 2));
      ASSERT_EQ(verdict.stream, packet.payload_bytes);
      for (uint32_t at = 0; at < verdict.bytes; ++at) {
        const uint64_t byte = verdict.iova - 0x100000 + at;
        ASSERT_LT(byte, kLength) << "seed " << seed;
        ++placed[byte];
      }
      offset += verdict.bytes;
      if (verdict.fail) {  // It was no next packet of the READ: begin again.
        Read(kMsg, kLength, 0x100000);
        placed.assign(kLength, 0);
        offset = 0;
      }
      if (packet.psn == kStart + number && packet.spdcid == kTheirs) ++number;
      done = verdict.last != 0;
    }
    ASSERT_TRUE(done) << "seed " << seed;
    for (const int count : placed) ASSERT_EQ(count, 1) << "seed " << seed;
    End(kMsg);
  }
}

}  // namespace
}  // namespace heddle::test
