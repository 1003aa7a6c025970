// SPDX-License-Identifier: Apache-2.0
// heddle_return_tx with its neighbours played.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "Vheddle_return_tx.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/rtl/transport/port.h"

namespace heddle::test {

inline constexpr uint32_t kReturnStart = 0xfffffff0;  // Wraps soon.

class ReturnTxBench {
 public:
  ReturnTxBench() {
    config.rto_ticks = 400;
    config.rto_max_ticks = 2000;
    config.backoff_ticks = 100;
    config.backoff_max_ticks = 400;
    config.dead_ticks = 20000;
    SetConfig();
    for (uint32_t i = 0; i < rtl::kNumPdc + 8; ++i) Cycle();
  }

  void SetConfig() {
    rtl::Drive(dut_->port_i, config);
    rtl::Drive(dut_->transport_i, transport);
  }

  // One clock cycle, which is a tick when `ticking`.
  void Cycle() {
    dut_->tick_i = ticking ? 1 : 0;
    dut_->now_ns_i = now_ns;
    now_ns += kCycleNs;
    dut_->job_valid_i = jobs.empty() ? 0 : 1;
    if (!jobs.empty()) rtl::Drive(dut_->job_i, jobs.front());
    dut_->ack_valid_i = acks.empty() ? 0 : 1;
    if (!acks.empty()) rtl::Drive(dut_->ack_i, acks.front());
    dut_->sweep_valid_i = sweeping ? 1 : 0;
    dut_->sweep_region_i = sweep_region;
    dut_->pkt_ready_i = stalled ? 0 : 1;
    dut_->pause_i = paused ? 1 : 0;
    dut_.Settle();
    if (dut_->wait_o)
      waits.push_back(rtl::Sample<rtl::ReadWait>(dut_->wait_info_o));
    if (dut_->over_o)
      overs.push_back(rtl::Sample<rtl::ReadOver>(dut_->over_info_o));
    EXPECT_FALSE(dut_->wait_o && dut_->over_o);
    if (dut_->job_ready_o && !jobs.empty()) jobs.pop_front();
    if (dut_->ack_ready_o && !acks.empty()) acks.pop_front();
    if (dut_->pkt_valid_o && !stalled) {
      sent.push_back(rtl::Sample<rtl::ReturnPacket>(dut_->pkt_o));
    }
    if (dut_->sweep_done_o) {
      sweeping = false;
      sent_before_sweep = sent.size();
    }
    dut_.Tick();
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) Cycle();
  }
  bool HasRoom(uint32_t pdc) {
    dut_.Settle();
    return GetBits(dut_->room_o, pdc, 1) != 0;
  }
  bool idle() {
    dut_.Settle();
    return dut_->idle_o != 0;
  }
  uint32_t deadline() {
    dut_.Settle();
    return dut_->deadline_valid_o != 0 ? dut_->deadline_o : 0;
  }
  void Sweep(uint16_t region) {
    sweep_region = region;
    sweeping = true;
    for (uint32_t i = 0; i < 20 * rtl::kNumPdc * rtl::kReturnWindow && sweeping;
         ++i) {
      Cycle();
    }
    ASSERT_FALSE(sweeping) << "the sweep does not end";
  }

  static constexpr uint32_t kCycleNs = 16;

  contract::PortCfg config = StandardPort();
  contract::TransportCfg transport;
  uint32_t now_ns = 0;
  bool ticking = false;
  bool stalled = false;
  bool paused = false;
  bool sweeping = false;
  uint16_t sweep_region = 0;
  size_t sent_before_sweep = 0;
  std::deque<rtl::ReturnJob> jobs;
  std::deque<rtl::AckEvent> acks;
  std::vector<rtl::ReturnPacket> sent;
  std::vector<rtl::ReadWait> waits;
  std::vector<rtl::ReadOver> overs;

 private:
  sim::model::ClockedModel<Vheddle_return_tx> dut_;
};

class ReturnTxTest : public testing::Test {
 protected:
  static rtl::ReturnRoute RouteOf(uint32_t pdc) {
    return {.fa_lo = uint64_t{0x0a000002} + pdc,
            .mac = uint64_t{0x020000000002} + pdc,
            .dscp = 9,
            .entropy = 0xc001,
            .spdcid = static_cast<uint16_t>(0x2400 | pdc),
            .dpdcid = static_cast<uint16_t>(0x5000 | pdc)};
  }
  static rtl::ReturnData DataOf(uint32_t pdc, uint32_t number) {
    return {.iova = uint64_t{pdc} << 32 | uint64_t{number} * 4096,
            .bytes = static_cast<uint16_t>(1 + number % 4096),
            .owner = 3,
            .region = static_cast<uint16_t>(number % 5),
            .message_id = static_cast<uint16_t>(number / 7 + 1),
            .message_offset = number * 64,
            .message_bytes = 1U << 20,
            .job_id = 0x42};
  }
  // Asks for the next data of `pdc`.
  void Ask(uint32_t pdc) {
    const uint32_t number = asked_[pdc]++;
    bench_.jobs.push_back({.open = number == 0,
                           .pdc = static_cast<uint8_t>(pdc),
                           .start_psn = kReturnStart,
                           .route = RouteOf(pdc),
                           .data = DataOf(pdc, number)});
  }
  static rtl::AckEvent Ack(uint32_t pdc, uint32_t cack) {
    return {.pdc = static_cast<uint8_t>(pdc),
            .dpdcid = RouteOf(pdc).spdcid,
            .spdcid = RouteOf(pdc).dpdcid,
            .fa_lo = RouteOf(pdc).fa_lo,
            .cack = cack,
            .psn = cack};
  }
  static rtl::AckEvent Nack(uint32_t pdc, uint32_t psn,
                            contract::NackCode code) {
    rtl::AckEvent nack = Ack(pdc, 0);
    nack.nack = 1;
    nack.psn = psn;
    nack.code = static_cast<uint8_t>(code);
    return nack;
  }
  // PSNs sent since the last call.
  std::vector<uint32_t> Sent() {
    std::vector<uint32_t> psns;
    for (const rtl::ReturnPacket& packet : bench_.sent) {
      psns.push_back(packet.psn - kReturnStart);
    }
    bench_.sent.clear();
    return psns;
  }
  using Psns = std::vector<uint32_t>;

  ReturnTxBench bench_;
  std::map<uint32_t, uint32_t> asked_;
};

}  // namespace heddle::test
