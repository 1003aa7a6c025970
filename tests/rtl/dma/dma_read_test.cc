// SPDX-License-Identifier: Apache-2.0
// Random requests of all clients against a host that returns beats of different
// ids in any order.
#include <array>
#include <cstdint>
#include <deque>
#include <iostream>
#include <set>
#include <vector>

#include "Vheddle_dma_read.h"
#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/dma/dma_pins.h"

namespace heddle::test {
namespace {

constexpr size_t kClients = rtl::kNumRd;
constexpr std::array<uint32_t, kClients> kRing = {32768, 16384, 4096,
                                                  4096,  4096,  4096};

struct Burst {
  uint64_t addr = 0;
  uint32_t id = 0;
  uint32_t beats = 0;
  uint32_t sent = 0;
  int64_t born = 0;
};

struct Expected {
  Request request;
  uint32_t seen = 0;  // Bytes returned.
};

// The engine, its clients and the host.
class Bench {
 public:
  explicit Bench(uint64_t seed) : rng_(seed) {
    std::cout << "seed " << seed << ", " << HEDDLE_DATA_W << " bits\n";
    dut_->req_valid_i = 0;
    dut_->m_axi_rvalid_i = 0;
    dut_->m_axi_arready_i = 0;
    dut_->rsp_ready_i = 0;
    for (int i = 0; i < 1000 && !Idle(); ++i) Step();
    EXPECT_TRUE(Idle());
  }

  // Settings of the run.
  double offer = 0.5;   // Chance that a client offers its next request.
  double take = 0.7;    // Chance that a client takes a beat.
  double answer = 0.9;  // Chance that the host returns a beat.
  double arready = 0.8;
  int64_t latency = 0;    // Cycles before a burst's first beat.
  bool in_order = false;  // The host answers bursts in order of arrival.
  uint32_t frozen = 0;    // Clients that take nothing.

  void Post(size_t client, const Request& request) {
    todo_[client].push_back(request);
  }

  void Step() {
    for (size_t c = 0; c < kClients; ++c) {
      const uint32_t bit = 1u << c;
      // An offer stays until it is taken.
      if (!(dut_->req_valid_i & bit) && !todo_[c].empty() &&
          rng_.Chance(offer)) {
        PutRequest(dut_->req_i, c, todo_[c].front());
        dut_->req_valid_i |= static_cast<uint8_t>(bit);
      }
      const bool ready = !(frozen & bit) && rng_.Chance(take);
      dut_->rsp_ready_i =
          static_cast<uint8_t>((dut_->rsp_ready_i & ~bit) | (ready ? bit : 0));
    }
    dut_->m_axi_arready_i = rng_.Chance(arready);
    DriveReturn();
    dut_.Settle();
    Watch();
    dut_.Tick();
    ++cycle_;
    dut_->req_valid_i &= static_cast<uint8_t>(~taken_);
    taken_ = 0;
  }

  bool Idle() { return dut_->idle_o; }
  bool Done() const {
    for (size_t c = 0; c < kClients; ++c) {
      if (!todo_[c].empty() || !waiting_[c].empty()) return false;
    }
    return true;
  }
  void RunToEnd(int64_t limit) {
    const int64_t end = cycle_ + limit;
    while (!Done() && cycle_ < end) {
      Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_TRUE(Done()) << "not finished after " << limit << " cycles";
    for (int i = 0; i < 300; ++i) Step();
    EXPECT_TRUE(Idle());
    EXPECT_EQ(errors_reported, errors_returned);
  }

  sim::base::Random& rng() { return rng_; }
  int64_t cycle() const { return cycle_; }

  uint64_t finished = 0;
  std::array<uint64_t, kClients> finished_by{};
  uint64_t errors_reported = 0;
  uint64_t errors_returned = 0;
  uint64_t reordered = 0;
  uint64_t answered = 0;                      // Beats.
  std::array<int64_t, kClients> beats_out{};  // On the bus, not returned.

 private:
  void DriveReturn() {
    dut_->m_axi_rvalid_i = 0;
    if (bursts_.empty() || !rng_.Chance(answer)) return;
    size_t pick =
        in_order ? 0 : rng_.Below(static_cast<uint32_t>(bursts_.size()));
    // Same id: oldest first.
    for (size_t i = 0; i < pick; ++i) {
      if (bursts_[i].id == bursts_[pick].id) pick = i;
    }
    Burst& burst = bursts_[pick];
    if (cycle_ - burst.born < latency) return;
    if (pick != 0) ++reordered;
    const uint64_t base =
        (burst.addr & ~uint64_t{kStrobe - 1}) + uint64_t{burst.sent} * kStrobe;
    for (uint32_t i = 0; i < kStrobe; ++i) {
      PinBytes(dut_->m_axi_rdata_i)[i] = HostByte(base + i);
    }
    // Any one beat of a refused burst carries the error.
    const bool refuse = Refused(burst.addr) &&
                        (burst.sent + 1 == burst.beats || rng_.Chance(0.3));
    dut_->m_axi_rvalid_i = 1;
    dut_->m_axi_rid_i = static_cast<uint16_t>(burst.id);
    dut_->m_axi_rresp_i = refuse ? 2 : 0;
    ++burst.sent;
    ++answered;
    dut_->m_axi_rlast_i = burst.sent == burst.beats;
    if (dut_->m_axi_rlast_i)
      bursts_.erase(bursts_.begin() + static_cast<std::ptrdiff_t>(pick));
  }

  void Watch() {
    taken_ = dut_->req_valid_i & dut_->req_ready_o;
    for (size_t c = 0; c < kClients; ++c) {
      if (taken_ >> c & 1) {
        waiting_[c].push_back({todo_[c].front()});
        to_issue_[c].push_back(todo_[c].front());
        todo_[c].pop_front();
      }
    }
    if (dut_->m_axi_arvalid_o && dut_->m_axi_arready_i) WatchBurst();
    for (size_t c = 0; c < kClients; ++c) WatchResponse(c);
    errors_reported += dut_->error_o;
    ASSERT_EQ(dut_->m_axi_rready_o, 1);
  }

  // Bursts come in order of each client's requests and split where they must.
  void WatchBurst() {
    const uint32_t id = dut_->m_axi_arid_o;
    // Payload has two more numbers.
    const size_t client = id >> 6 >= 6 ? 0 : id >> 6;
    ASSERT_LT(client, kClients);
    ASSERT_FALSE(to_issue_[client].empty());
    Request& request = to_issue_[client].front();
    ASSERT_EQ(dut_->m_axi_araddr_o, request.addr);
    ASSERT_EQ(dut_->m_axi_aruser_o, request.owner);
    ASSERT_EQ(1u << dut_->m_axi_arsize_o, kStrobe);
    ASSERT_EQ(dut_->m_axi_arburst_o, 1);
    const uint32_t room = kSplit - static_cast<uint32_t>(request.addr % kSplit);
    const uint32_t bytes = std::min(request.bytes, room);
    const uint32_t beats =
        (static_cast<uint32_t>(request.addr % kStrobe) + bytes + kStrobe - 1) /
        kStrobe;
    ASSERT_EQ(dut_->m_axi_arlen_o + 1u, beats);
    bursts_.push_back({request.addr, id, beats, 0, cycle_});
    beats_out[client] += beats;
    // Two beats may have left the ring and wait behind it.
    ASSERT_LE((beats_out[client] - 2) * int64_t{kStrobe}, kRing[client])
        << "not Reserved";
    request.addr += bytes;
    request.bytes -= bytes;
    if (request.bytes == 0) to_issue_[client].pop_front();
  }

  void WatchResponse(size_t client) {
    if (!(dut_->rsp_valid_o >> client & 1) ||
        !(dut_->rsp_ready_i >> client & 1)) {
      return;
    }
    ASSERT_FALSE(waiting_[client].empty());
    Expected& expected = waiting_[client].front();
    const Request& request = expected.request;
    const bool refused = Refused(request);
    const uint8_t* data = PinBytes(dut_->rsp_data_o) + client * kStrobe;
    const uint32_t count = std::min(kStrobe, request.bytes - expected.seen);
    for (uint32_t i = 0; !refused && i < count; ++i) {
      ASSERT_EQ(data[i], HostByte(request.addr + expected.seen + i))
          << "client " << client << " address " << std::hex << request.addr
          << std::dec << " bytes " << request.bytes << " byte "
          << expected.seen + i;
    }
    expected.seen += count;
    --beats_out[client];
    const bool last = dut_->rsp_last_o >> client & 1;
    ASSERT_EQ(last, expected.seen == request.bytes);
    if (!last) return;
    ASSERT_EQ(static_cast<bool>(dut_->rsp_error_o >> client & 1), refused);
    // An unaligned request may have one beat more on the bus.
    beats_out[client] -=
        (request.addr % kStrobe + request.bytes + kStrobe - 1) / kStrobe -
        (request.bytes + kStrobe - 1) / kStrobe;
    errors_returned += refused;
    ++finished;
    ++finished_by[client];
    waiting_[client].pop_front();
  }

  sim::model::ClockedModel<Vheddle_dma_read> dut_;
  sim::base::Random rng_;
  int64_t cycle_ = 0;
  uint32_t taken_ = 0;
  std::array<std::deque<Request>, kClients> todo_;
  std::array<std::deque<Request>, kClients> to_issue_;
  std::array<std::deque<Expected>, kClients> waiting_;
  std::deque<Burst> bursts_;
};

Request RandomRequest(sim::base::Random& rng, uint32_t most) {
  Request request;
  request.addr = rng.Next() & 0xffffffffff;
  const uint32_t kind = rng.Below(4);
  request.bytes = 1 + rng.Below(kind == 0 ? 8 : kind == 1 ? 2 * kStrobe : most);
  if (rng.Chance(0.3)) request.addr &= ~uint64_t{kStrobe - 1};
  if (rng.Chance(0.1)) {  // Up to, or just over, a 4 KiB boundary.
    request.addr = (request.addr | 4095) + 1 - request.bytes + rng.Below(2);
  }
  request.owner = static_cast<uint8_t>(rng.Next());
  return request;
}

void RunRandom(uint64_t seed, double refused) {
  Bench bench(seed);
  bench.offer = 0.2 + 0.2 * static_cast<double>(seed % 5);
  bench.take = 0.3 + 0.35 * static_cast<double>(seed % 3);
  bench.latency = static_cast<int64_t>(seed % 4) * 50;
  for (size_t c = 0; c < kClients; ++c) {
    const int count = c == 0 ? 500 : 200;
    for (int i = 0; i < count; ++i) {
      Request request = RandomRequest(bench.rng(), c == 0 ? 8192 : 2048);
      if (bench.rng().Chance(refused)) request.addr |= kRefusedBit;
      bench.Post(c, request);
    }
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(4000000));
  EXPECT_EQ(bench.finished, 300 + 200 * kClients);
  EXPECT_GT(bench.reordered, 1000u);
}

TEST(DmaReadTest, DataIsOrderedAndAlignedWhateverTheHostReorders) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    ASSERT_NO_FATAL_FAILURE(RunRandom(seed, 0));
  }
}

TEST(DmaReadTest, ErrorsMarkTheirRequestsAndNoOthers) {
  for (uint64_t seed = 11; seed <= 13; ++seed) {
    ASSERT_NO_FATAL_FAILURE(RunRandom(seed, 0.2));
  }
}

// Clients do not wait for each other; what a blocked one asks stays Reserved.
TEST(DmaReadTest, AClientThatTakesNothingHoldsUpNoOther) {
  Bench bench(21);
  bench.frozen = 1;
  for (size_t c = 0; c < kClients; ++c) {
    for (int i = 0; i < 100; ++i) {
      bench.Post(c, RandomRequest(bench.rng(), 2048));
    }
  }
  for (int i = 0; i < 200000; ++i) {
    bench.Step();
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(bench.finished_by[0], 0u);
  for (size_t c = 1; c < kClients; ++c) EXPECT_EQ(bench.finished_by[c], 100u);
  bench.frozen = 0;
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000000));
}

TEST(DmaReadTest, SmallReadsAreSustainedEveryTwoCyclesAt150CyclesLatency) {
  Bench bench(31);
  bench.offer = bench.take = bench.answer = bench.arready = 1;
  bench.latency = 150;
  bench.in_order = true;
  for (int i = 0; i < 2000; ++i) {
    bench.Post(0, {uint64_t{0x1000} + 64u * static_cast<uint32_t>(i), 8, 1});
  }
  const int64_t start = bench.cycle();
  while (bench.finished < 2000 && bench.cycle() < start + 100000) bench.Step();
  const double per =
      static_cast<double>(bench.cycle() - start - bench.latency) / 2000;
  RecordProperty("millicycles_per_request", static_cast<int>(per * 1000));
  std::cout << per << " cycles per request\n";
  EXPECT_LE(per, 2.0);
}

TEST(DmaReadTest, LongReadsReturnABeatPerCycle) {
  Bench bench(41);
  bench.offer = bench.take = bench.answer = bench.arready = 1;
  bench.latency = 40;
  bench.in_order = true;
  for (uint32_t i = 0; i < 100; ++i) {
    bench.Post(0, {uint64_t{0x10000} * i + i, 4096, 1});
  }
  const int64_t start = bench.cycle();
  while (bench.finished < 100 && bench.cycle() < start + 1000000) bench.Step();
  // The first burst is returned when it is complete.
  const int64_t fill = bench.latency + kSplit / kStrobe + 10;
  const double per = static_cast<double>(bench.cycle() - start - fill) / 100;
  std::cout << per << " cycles per 4 KiB\n";
  // An unaligned request has one beat more on the bus.
  EXPECT_LE(per, 4096.0 / kStrobe + 1.5);
}

// Also of a host that answers all it has at the same time.
TEST(DmaReadTest, FirstOfManyLongReadsDoesNotWaitForTheOthersBeats) {
  constexpr uint32_t kBytes = 4096;
  Bench bench(51);
  bench.offer = bench.take = bench.answer = bench.arready = 1;
  bench.latency = 40;
  for (uint32_t i = 0; i < 8; ++i) {
    bench.Post(0, {uint64_t{0x10000} * i, kBytes, 1});
  }
  while (bench.finished == 0 && bench.cycle() < 10000) bench.Step();
  EXPECT_EQ(bench.finished, 1u);
  EXPECT_LT(bench.answered, 3 * kBytes / kStrobe);
}

}  // namespace
}  // namespace heddle::test
