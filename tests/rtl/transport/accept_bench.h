// SPDX-License-Identifier: Apache-2.0
// heddle_accept with the receive contexts, credits and queues around it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "Vheddle_accept.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/rtl/transport/generations.h"
#include "tests/rtl/transport/port.h"

namespace heddle::test {

// Counters of a receive context plus 1; 0: none.
// A receive context that {pid, ri} leads to, or with `relative` {job, pid, ri}.
struct Context {
  uint16_t pid = 0;
  uint16_t ri = 0;
  uint32_t job = 0;
  bool relative = false;
  bool event = false;  // Reports every RMA operation.
  bool alive = true;
  uint8_t gen = 1;
  std::deque<rtl::RxBuffer> buffers;
  uint16_t popped = 0;
  rtl::RxCounters counters;
};

class AcceptBench {
 public:
  AcceptBench() {
    SetConfig();
    dut_->back_ready_i = 1;
    dut_->report_room_i = 1;
    dut_->listens_i = 1;
    SetRoom(true);
    for (int i = 0; i < 300; ++i) Cycle();  // Memories initialise themselves.
  }

  Vheddle_accept* operator->() { return dut_.operator->(); }
  void SetConfig() {
    rtl::Drive(dut_->port_i, config);
    rtl::Drive(dut_->transport_i, transport);
  }
  void Send(const rtl::RxPacket& packet) { packets_.push_back({packet}); }
  // One that is void two cycles after it was taken.
  void SendSquashed(const rtl::RxPacket& packet) {
    packets_.push_back({packet, true});
  }
  size_t waiting() const { return packets_.size(); }
  void Drain() { drain_ = true; }
  bool draining() const { return drain_; }

  void Cycle();
  void RunUntilIdle(int limit = 2000) {
    for (int i = 0; i < limit; ++i) {
      Cycle();
      if (packets_.empty() && !drain_ && dut_->idle_o) return;
    }
    FAIL() << "not idle";
  }

  // Sends one packet and returns its answer; fails unless there is just one.
  rtl::Response Answer(const rtl::RxPacket& packet) {
    const size_t before = responses.size();
    Send(packet);
    RunUntilIdle();
    EXPECT_EQ(responses.size(), before + 1);
    return responses.size() > before ? responses.back() : rtl::Response{};
  }
  // Sends one packet that nobody answers.
  void Quiet(const rtl::RxPacket& packet) {
    const size_t before = responses.size();
    Send(packet);
    RunUntilIdle();
    EXPECT_EQ(responses.size(), before);
  }
  // The record of the last packet.
  rtl::Place TakeRecord() {
    EXPECT_EQ(places.size(), 1u);
    const rtl::Place record = places.empty() ? rtl::Place{} : places.back();
    places.clear();
    return record;
  }

  void AddBuffer(size_t ctx, uint32_t length, uint64_t iova,
                 uint64_t op_context) {
    rtl::RxBuffer buffer = NoBuffer(ctx);
    buffer.position = static_cast<uint16_t>(op_context);
    buffer.length = length;
    buffer.iova = iova;
    buffer.op_context = op_context;
    contexts[ctx].buffers.push_back(buffer);
  }

  // heddle_return_tx has room for each PDC, or for none.
  void SetRoom(bool room) {
    for (int i = 0; i < 8; ++i) dut_->return_room_i[i] = room ? ~0U : 0U;
  }

  // heddle_place reports that the messages up to `psn` are visible.
  void Show(uint8_t pdc, uint32_t psn) {
    dut_->visible_i = 1;
    dut_->visible_pdc_i = pdc;
    dut_->visible_psn_i = psn;
    Cycle();
    dut_->visible_i = 0;
  }

  contract::PortCfg config = StandardPort();
  contract::TransportCfg transport;
  std::map<size_t, Context> contexts;
  rtl::RmaAnswer region;  // Answer to every request, its address moved on by
                          // the offsets.
  uint64_t bad_key = 0;   // No region has this key; 0: unused.
  // Answer of heddle_rx_queue for names without a context.
  contract::ReturnCode miss = contract::ReturnCode::kBadIndex;
  uint32_t credit_ok = 0xffffffff;
  uint32_t credit_spare = 0xffffffff;
  size_t spare_buffers = 1;  // From so many on a context has enough.
  std::vector<uint8_t> credits_taken;
  std::vector<rtl::Response> responses;
  std::vector<rtl::Place> places;
  std::vector<rtl::AckEvent> acks;
  std::vector<rtl::ReturnJob> jobs;
  rtl::ReturnVerdict back;  // heddle_return_rx's on every packet.
  int back_takes = 0;
  rtl::ReturnLate late;  // The deferred answer of heddle_return_rx.
  int late_looks = 0, late_takes = 0;
  std::array<int, 64> stats = {};
  uint64_t cycle = 0;
  double stall = 0;
  sim::base::Random* random = nullptr;

 private:
  bool Stalls() { return stall > 0 && random->Chance(stall); }
  // What is known of a context without one.
  rtl::RxBuffer NoBuffer(size_t ctx) {
    rtl::RxBuffer buffer = {};
    buffer.ctx = static_cast<uint8_t>(ctx);
    buffer.gen = contexts[ctx].gen;
    buffer.owner = 0x21;
    buffer.cq = static_cast<uint8_t>(ctx + 3);
    buffer.cq_gen = 6;
    return buffer;
  }

  sim::model::ClockedModel<Vheddle_accept> dut_;
  rtl::RmaRequest asked_;
  struct Sent {
    rtl::RxPacket packet;
    bool squashed = false;
  };
  std::deque<Sent> packets_;
  unsigned squash_ = 0;  // Bit i: in i cycles.
  bool drain_ = false;
  size_t head_ctx_ = 0;
};

inline void AcceptBench::Cycle() {
  ++cycle;
  if (!dut_->pkt_valid_i && !packets_.empty() && !Stalls()) {
    dut_->pkt_valid_i = 1;
    rtl::Drive(dut_->pkt_i, packets_.front().packet);
  }
  dut_->pkt_squash_i = squash_ & 1;
  squash_ >>= 1;
  dut_->drain_valid_i = drain_;
  dut_->drain_rx_i = drain_;
  dut_->credit_ok_i = credit_ok;
  dut_->credit_spare_i = credit_ok & credit_spare;
  uint16_t alive = 0;
  std::map<size_t, uint32_t> gens;
  for (const auto& [index, ctx] : contexts) {
    alive = static_cast<uint16_t>(alive | ctx.alive << index);
    gens[index] = ctx.gen;
  }
  dut_->rx_alive_i = alive;
  DriveGens(dut_->rx_gen_i, gens);
  for (size_t i = 0; i < rtl::kNumRx; ++i) {
    const auto ctx = contexts.find(i);
    rtl::DriveElement(
        dut_->rx_counters_i, i,
        ctx == contexts.end() ? rtl::RxCounters{} : ctx->second.counters);
  }
  dut_->rsp_ready_i = !Stalls();
  dut_->place_ready_i = !Stalls();
  dut_->ack_ready_i = !Stalls();
  dut_->job_ready_i = !Stalls();
  rtl::Drive(dut_->back_i, back);
  rtl::Drive(dut_->back_late_i, late);

  const auto shown = contexts.find(head_ctx_);
  const bool valid = shown != contexts.end() && shown->second.alive &&
                     !shown->second.buffers.empty();
  dut_->head_valid_i = valid;
  dut_->head_spare_i = valid && shown->second.buffers.size() >= spare_buffers;
  if (shown != contexts.end()) {
    rtl::Drive(dut_->head_i,
               valid ? shown->second.buffers.front() : NoBuffer(head_ctx_));
    dut_->head_released_i = static_cast<uint16_t>(shown->second.popped + 1);
  }
  dut_->region_ready_i = !Stalls();
  rtl::RmaAnswer answer = region;
  answer.iova += asked_.offset + asked_.message_offset;
  if (bad_key != 0 && asked_.key == bad_key) {
    answer.code = contract::ReturnCode::kBadMkey;
  }
  rtl::Drive(dut_->region_i, answer);
  dut_.Settle();
  dut_->look_hit_i = 0;
  dut_->look_miss_i = static_cast<uint8_t>(miss);
  for (const auto& [index, ctx] : contexts) {
    if (ctx.alive && ctx.relative == (dut_->look_rel_o != 0) &&
        (!ctx.relative || ctx.job == dut_->look_job_o) &&
        ctx.pid == dut_->look_pid_o && ctx.ri == dut_->look_ri_o) {
      dut_->look_hit_i = 1;
      dut_->look_miss_i = static_cast<uint8_t>(contract::ReturnCode::kBadIndex);
      dut_->look_ctx_i = static_cast<uint8_t>(index);
      dut_->look_job_i = ctx.job;
      dut_->look_event_i = ctx.event;
    }
  }
  dut_.Settle();

  for (size_t i = 0; i < stats.size(); ++i) {
    stats[i] += static_cast<int>((dut_->stat_o >> i) & 1);
  }
  if (dut_->pop_o) {
    EXPECT_TRUE(valid);
    if (valid) {
      shown->second.buffers.pop_front();
      ++shown->second.popped;
    }
  }
  EXPECT_TRUE(dut_->credit_take_o || !dut_->pop_o);
  if (dut_->credit_take_o) {
    EXPECT_TRUE((credit_ok >> dut_->credit_cq_o) & 1);
    credits_taken.push_back(dut_->credit_cq_o);
  }
  if (dut_->rsp_valid_o && dut_->rsp_ready_i) {
    responses.push_back(rtl::Sample<rtl::Response>(dut_->rsp_o));
  }
  if (dut_->place_valid_o && dut_->place_ready_i) {
    places.push_back(rtl::Sample<rtl::Place>(dut_->place_o));
  }
  if (dut_->ack_valid_o && dut_->ack_ready_i) {
    acks.push_back(rtl::Sample<rtl::AckEvent>(dut_->ack_o));
  }
  if (dut_->job_valid_o && dut_->job_ready_i) {
    jobs.push_back(rtl::Sample<rtl::ReturnJob>(dut_->job_o));
  }
  back_takes += dut_->back_take_o;
  late_looks += dut_->back_late_look_o;
  late_takes += dut_->back_late_take_o;
  EXPECT_TRUE(late.due != 0 || !dut_->back_late_look_o);
  if (dut_->back_late_take_o) late.due = 0;
  const bool drained = drain_ && dut_->drain_ready_o;
  const bool taken = dut_->pkt_valid_i && dut_->pkt_ready_o;
  asked_ = rtl::Sample<rtl::RmaRequest>(dut_->region_o);
  head_ctx_ = dut_->head_ctx_o;
  dut_.Tick();
  if (drained) drain_ = false;
  if (taken) {
    if (packets_.front().squashed) squash_ |= 1U << 1;
    packets_.pop_front();
    dut_->pkt_valid_i = 0;
  }
}

}  // namespace heddle::test
