// SPDX-License-Identifier: Apache-2.0
// Random requests of all clients against a model of the bus and of host memory.
#include <array>
#include <cstdint>
#include <deque>
#include <iostream>
#include <vector>

#include "Vheddle_dma_write.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/dma/dma_pins.h"

namespace heddle::test {
namespace {

constexpr size_t kClients = 3;

// A request whose bytes are a function of its number.
struct Write {
  Request request;
  uint64_t key = 0;
  bool refused = false;
};

struct Burst {
  uint64_t addr = 0;
  uint32_t beats = 0;
  uint32_t seen = 0;
  uint8_t owner = 0;
  bool refused = false;
};

uint8_t DataByte(const Write& write, uint32_t index) {
  return HostByte(write.key * 8192 + index);
}

class Bench {
 public:
  explicit Bench(uint64_t seed) : rng_(seed) {
    std::cout << "seed " << seed << ", " << HEDDLE_DATA_W << " bits\n";
    dut_->req_valid_i = 0;
    dut_->data_valid_i = 0;
    dut_->m_axi_bvalid_i = 0;
  }

  double offer = 0.7;
  double data = 0.8;   // Chance that a client has its next beat.
  double ready = 0.7;  // Of the bus.
  double answer = 0.7;
  int64_t latency = 0;

  void Post(size_t client, const Write& write) {
    todo_[client].push_back(write);
    ++posted_;
  }

  void Step() {
    for (size_t c = 0; c < kClients; ++c) {
      const auto bit = static_cast<uint8_t>(1u << c);
      if (!(dut_->req_valid_i & bit) && !todo_[c].empty() &&
          rng_.Chance(offer)) {
        PutRequest(dut_->req_i, c, todo_[c].front().request);
        dut_->req_valid_i |= bit;
      }
      // A client may have its data before its request is taken.
      if (!(dut_->data_valid_i & bit) && rng_.Chance(data)) PutData(c);
    }
    dut_->m_axi_awready_i = rng_.Chance(ready);
    dut_->m_axi_wready_i = rng_.Chance(ready);
    dut_->m_axi_bvalid_i = 0;
    if (!answers_.empty() && cycle_ >= answers_.front().second &&
        rng_.Chance(answer)) {
      dut_->m_axi_bvalid_i = 1;
      dut_->m_axi_bresp_i = answers_.front().first ? 2 : 0;
      answers_.pop_front();
    }
    dut_.Settle();
    Watch();
    const uint32_t taken = dut_->req_valid_i & dut_->req_ready_o;
    const uint32_t used = dut_->data_valid_i & dut_->data_ready_o;
    dut_.Tick();
    ++cycle_;
    dut_->req_valid_i = static_cast<uint8_t>(dut_->req_valid_i & ~taken);
    dut_->data_valid_i = static_cast<uint8_t>(dut_->data_valid_i & ~used);
  }

  void RunToEnd(int64_t limit) {
    const int64_t end = cycle_ + limit;
    while (answered < posted_ && cycle_ < end) {
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_EQ(answered, posted_) << "after " << limit << " cycles";
    for (int i = 0; i < 20; ++i) Step();
    EXPECT_TRUE(dut_->idle_o);
    EXPECT_EQ(errors_seen, errors_due);
    EXPECT_EQ(answered, posted_);
  }

  sim::base::Random& rng() { return rng_; }
  int64_t cycle() const { return cycle_; }
  uint64_t answered = 0;
  uint64_t errors_seen = 0;  // On error_o.
  uint64_t errors_due = 0;
  std::vector<size_t> order;  // Clients in the order their requests were taken.

 private:
  // Offers the next beat of the client's oldest request with data to come.
  void PutData(size_t c) {
    if (sending_[c] == nullptr) {
      if (unsent_[c].empty()) {
        if (todo_[c].empty()) return;
        current_[c] = todo_[c].front();
        early_[c] = true;
      } else {
        current_[c] = unsent_[c].front();
        unsent_[c].pop_front();
        early_[c] = false;
      }
      sending_[c] = &current_[c];
      sent_[c] = 0;
    }
    const Write& write = *sending_[c];
    uint8_t* out = PinBytes(dut_->data_i) + c * kStrobe;
    for (uint32_t i = 0; i < kStrobe; ++i) {
      out[i] = sent_[c] + i < write.request.bytes
                   ? DataByte(write, sent_[c] + i)
                   : static_cast<uint8_t>(rng_.Next());
    }
    sent_[c] += kStrobe;
    if (sent_[c] >= write.request.bytes) sending_[c] = nullptr;
    dut_->data_valid_i |= static_cast<uint8_t>(1u << c);
  }

  void Watch() {
    for (size_t c = 0; c < kClients; ++c) {
      if (dut_->rsp_valid_o >> c & 1) {
        ASSERT_FALSE(unanswered_[c].empty());
        const Write write = unanswered_[c].front();
        unanswered_[c].pop_front();
        ASSERT_EQ(static_cast<bool>(dut_->rsp_error_o >> c & 1), write.refused);
        errors_due += write.refused;
        ASSERT_GT(written_[c], 0u) << "answered before it was written";
        --written_[c];
        ++answered;
      }
    }
    errors_seen += dut_->error_o;
    if (dut_->m_axi_bvalid_i) {
      ASSERT_TRUE(dut_->m_axi_bready_o);
      if (--bursts_left_[b_request_] == 0) {
        ++written_[taken_by_[b_request_]];
        ++b_request_;
      }
    }
    if (dut_->m_axi_awvalid_o && dut_->m_axi_awready_i) WatchAddress();
    if (dut_->m_axi_wvalid_o && dut_->m_axi_wready_i) {
      Beat beat;
      for (uint32_t i = 0; i < kStrobe; ++i) {
        beat.data[i] = PinBytes(dut_->m_axi_wdata_o)[i];
        beat.strobe[i] = static_cast<bool>(GetBits(dut_->m_axi_wstrb_o, i, 1));
      }
      beat.last = dut_->m_axi_wlast_o;
      beats_.push_back(beat);
    }
    Match();
    // Taken this cycle: on the bus from the next on.
    const uint32_t taken = dut_->req_valid_i & dut_->req_ready_o;
    ASSERT_TRUE((taken & (taken - 1)) == 0);
    for (size_t c = 0; c < kClients; ++c) {
      if (!(taken >> c & 1)) continue;
      const Write write = todo_[c].front();
      todo_[c].pop_front();
      if (!(early_[c] && IsCurrent(c, write))) unsent_[c].push_back(write);
      early_[c] = false;
      unanswered_[c].push_back(write);
      order.push_back(c);
      taken_by_.push_back(c);
      uint32_t bursts = 0;
      Request rest = write.request;
      while (rest.bytes > 0) {
        const uint32_t bytes = std::min(
            rest.bytes, kSplit - static_cast<uint32_t>(rest.addr % kSplit));
        due_bursts_.push_back({rest.addr,
                               (static_cast<uint32_t>(rest.addr % kStrobe) +
                                bytes + kStrobe - 1) /
                                   kStrobe,
                               0, rest.owner, Refused(rest.addr)});
        rest.addr += bytes;
        rest.bytes -= bytes;
        ++bursts;
      }
      bursts_left_.push_back(bursts);
      for (uint32_t i = 0; i < write.request.bytes; ++i) {
        due_bytes_.push_back({write.request.addr + i, DataByte(write, i)});
      }
    }
  }

  bool IsCurrent(size_t c, const Write& write) const {
    return current_[c].key == write.key;
  }

  void WatchAddress() {
    ASSERT_FALSE(due_bursts_.empty());
    const Burst burst = due_bursts_.front();
    due_bursts_.pop_front();
    ASSERT_EQ(dut_->m_axi_awid_o, 0);
    ASSERT_EQ(dut_->m_axi_awaddr_o, burst.addr);
    ASSERT_EQ(dut_->m_axi_awlen_o + 1u, burst.beats);
    ASSERT_EQ(dut_->m_axi_awuser_o, burst.owner);
    ASSERT_EQ(1u << dut_->m_axi_awsize_o, kStrobe);
    ASSERT_EQ(dut_->m_axi_awburst_o, 1);
    bursts_.push_back(burst);
  }

  // Data beats belong to address bursts in order.
  void Match() {
    while (!bursts_.empty() && !beats_.empty()) {
      Burst& burst = bursts_.front();
      const Beat& beat = beats_.front();
      const uint64_t base = (burst.addr & ~uint64_t{kStrobe - 1}) +
                            uint64_t{burst.seen} * kStrobe;
      bool any = false;
      for (uint32_t i = 0; i < kStrobe; ++i) {
        if (!beat.strobe[i]) continue;
        any = true;
        ASSERT_FALSE(due_bytes_.empty());
        ASSERT_EQ(base + i, due_bytes_.front().first);
        ASSERT_EQ(beat.data[i], due_bytes_.front().second);
        due_bytes_.pop_front();
      }
      ASSERT_TRUE(any);
      ++burst.seen;
      ASSERT_EQ(beat.last, burst.seen == burst.beats);
      if (beat.last) {
        answers_.push_back({burst.refused, cycle_ + latency});
        bursts_.pop_front();
      }
      beats_.pop_front();
    }
  }

  struct Beat {
    std::array<uint8_t, kStrobe> data;
    std::array<bool, kStrobe> strobe;
    bool last;
  };

  sim::model::ClockedModel<Vheddle_dma_write> dut_;
  sim::base::Random rng_;
  int64_t cycle_ = 0;
  uint64_t posted_ = 0;
  std::array<std::deque<Write>, kClients> todo_;
  std::array<std::deque<Write>, kClients> unsent_;  // Taken, data to come.
  std::array<std::deque<Write>, kClients> unanswered_;
  std::array<Write, kClients> current_;
  std::array<const Write*, kClients> sending_{};
  std::array<bool, kClients> early_{};  // Data of a request not taken yet.
  std::array<uint32_t, kClients> sent_{};
  std::array<uint64_t, kClients> written_{};  // All answers in, not reported.
  std::deque<Burst> due_bursts_;
  std::deque<Burst> bursts_;
  std::deque<Beat> beats_;
  std::deque<std::pair<uint64_t, uint8_t>> due_bytes_;
  std::deque<std::pair<bool, int64_t>> answers_;
  std::vector<uint32_t> bursts_left_;
  std::vector<size_t> taken_by_;
  size_t b_request_ = 0;
};

Write RandomWrite(sim::base::Random& rng, uint64_t key) {
  Write write;
  write.key = key;
  write.request.addr = rng.Next() & 0xffffffffff;
  const uint32_t kind = rng.Below(4);
  write.request.bytes = 1 + rng.Below(kind == 0   ? 8
                                      : kind == 1 ? 2 * kStrobe
                                      : kind == 2 ? 300
                                                  : 8192);
  if (rng.Chance(0.3)) write.request.addr &= ~uint64_t{kStrobe - 1};
  if (rng.Chance(0.1)) {
    write.request.addr =
        (write.request.addr | 4095) + 1 - write.request.bytes + rng.Below(2);
  }
  write.request.owner = static_cast<uint8_t>(rng.Next());
  return write;
}

void RunRandom(uint64_t seed, double refused) {
  Bench bench(seed);
  bench.latency = static_cast<int64_t>(seed % 4) * 40;
  bench.ready = seed % 2 ? 0.5 : 1;
  uint64_t key = 0;
  for (size_t c = 0; c < kClients; ++c) {
    for (int i = 0; i < 300; ++i) {
      Write write = RandomWrite(bench.rng(), ++key);
      if (bench.rng().Chance(refused)) {
        write.request.addr |= kRefusedBit;
        write.refused = Refused(write.request);
      }
      bench.Post(c, write);
    }
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(3000000));
}

TEST(DmaWriteTest, RequestsAreOrderedOnTheBusAndAnsweredOnce) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    ASSERT_NO_FATAL_FAILURE(RunRandom(seed, 0));
  }
}

TEST(DmaWriteTest, ErrorsAreAnsweredToTheirRequest) {
  for (uint64_t seed = 11; seed <= 13; ++seed) {
    ASSERT_NO_FATAL_FAILURE(RunRandom(seed, 0.2));
  }
}

TEST(DmaWriteTest, ClientsThatAllWaitAreServedInTurn) {
  Bench bench(21);
  bench.offer = bench.data = bench.ready = bench.answer = 1;
  uint64_t key = 0;
  for (size_t c = 0; c < kClients; ++c) {
    for (uint32_t i = 0; i < 100; ++i) {
      bench.Post(
          c, {{uint64_t{0x1000} * ++key, c == 0 ? 4096u : 64u, 1}, key, false});
    }
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000000));
  for (size_t i = 0; i + 3 < bench.order.size(); ++i) {
    EXPECT_EQ(bench.order[i], bench.order[i + 3]) << "request " << i;
  }
}

TEST(DmaWriteTest, OneBeatRequestsGoOutEveryTwoCyclesAt150CyclesLatency) {
  Bench bench(31);
  bench.offer = bench.data = bench.ready = bench.answer = 1;
  bench.latency = 150;
  for (uint32_t i = 0; i < 2000; ++i) {
    bench.Post(i % 2, {{uint64_t{64} * i, 8, 1}, i, false});
  }
  const int64_t start = bench.cycle();
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(100000));
  const double per =
      static_cast<double>(bench.cycle() - start - 150 - 30) / 2000;
  std::cout << per << " cycles per request\n";
  EXPECT_LE(per, 2.0);
}

TEST(DmaWriteTest, LongRequestsSendABeatPerCycle) {
  Bench bench(41);
  bench.offer = bench.data = bench.ready = bench.answer = 1;
  for (uint32_t i = 0; i < 100; ++i) {
    bench.Post(0, {{uint64_t{0x10000} * i + 1, 4096, 1}, i, false});
  }
  const int64_t start = bench.cycle();
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000000));
  const double per = static_cast<double>(bench.cycle() - start - 30) / 100;
  std::cout << per << " cycles per 4 KiB\n";
  EXPECT_LE(per, 4096.0 / kStrobe + 1.2);
}

}  // namespace
}  // namespace heddle::test
