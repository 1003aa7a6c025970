// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "Vheddle_tx_pushed.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/dma_models.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

constexpr size_t kBeat = sizeof(std::declval<Vheddle_tx_pushed&>().out_data_o);
constexpr uint32_t kPlaces = rtl::kNumPushed;
constexpr uint32_t kRow = contract::kDescBytes;

struct Request {
  uint64_t number = 0;
  uint64_t address = 0;
  uint32_t bytes = 0;
};

struct Answer {
  std::vector<uint8_t> data;
  bool error = false;
  uint64_t cycle = 0;  // Its first beat came then.
};

// A slot that leaves the push window, or the cycle before the first.
struct Put {
  bool begin = false;
  std::array<uint8_t, kRow> row{};
  bool last = false;
  bool ok = true;
};

class Bench {
 public:
  explicit Bench(uint32_t seed)
      : rng(seed), reads(&*dut.operator->(), &memory) {
    Tick();
  }

  sim::model::ClockedModel<Vheddle_tx_pushed> dut;
  Rng rng;
  Memory memory;
  DmaReadModel<Vheddle_tx_pushed, rtl::GatherReq> reads;
  uint64_t cycle = 0;
  uint32_t stall_percent = 0;
  std::deque<Request> requests;
  std::deque<Put> puts;
  std::vector<Answer> answers;
  std::vector<uint64_t> shown;  // Cycle in which a request was first there.
  uint64_t kept = 0;            // Answers from here; statistic.
  uint64_t next_number = 1;

  // Payload that is in memory and comes pushed, as the NIC takes it. Its
  // number.
  uint64_t PutPayload(uint64_t address, uint32_t bytes, bool ok = true) {
    std::vector<uint8_t> data(bytes);
    memory.Read(address, data.data(), bytes);
    puts.push_back({.begin = true});
    for (uint32_t at = 0; at < bytes; at += kRow) {
      Put put;
      std::memcpy(put.row.data(), &data[at], std::min(kRow, bytes - at));
      put.last = at + kRow >= bytes;
      put.ok = ok;
      if (!ok) {
        put.row[rng() % 4] ^= 1;
      }
      puts.push_back(put);
    }
    return next_number++;
  }
  void FillMemory(uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += 8) {
      const uint64_t word = (uint64_t{rng()} << 32) | rng();
      memory.Write(i, &word, sizeof word);
    }
  }

  void Tick() {
    reads.Drive(cycle, &rng);
    dut->out_ready_i = rng() % 100 >= stall_percent;
    dut->put_begin_i = 0;
    dut->put_valid_i = 0;
    if (!puts.empty()) {
      const Put& put = puts.front();
      dut->put_begin_i = put.begin;
      dut->put_valid_i = !put.begin;
      dut->put_last_i = put.last;
      dut->put_ok_i = put.ok;
      std::memcpy(&dut->put_i, put.row.data(), kRow);
    }
    dut->req_valid_i = !requests.empty();
    if (!requests.empty()) {
      const Request& r = requests.front();
      rtl::Drive(
          dut->req_i,
          rtl::PayloadReq{
              .pushed = r.number,
              .gather = {.read = {.addr = r.address,
                                  .bytes = static_cast<uint16_t>(r.bytes),
                                  .owner = 7}}});
      if (!is_shown_) {
        shown.push_back(cycle);
        is_shown_ = true;
      }
    }
    dut.Settle();
    reads.Sample(cycle);
    if (!puts.empty()) {
      if (puts.front().begin) {
        EXPECT_EQ(dut->put_tag_o, ++begun_);
      }
      puts.pop_front();
    }
    if (dut->req_valid_i && dut->req_ready_o) {
      requests.pop_front();
      is_shown_ = false;
    }
    if (dut->out_valid_o && dut->out_ready_i) {
      const size_t at = open_.data.size();
      if (at == 0) {
        open_.cycle = cycle;
      }
      open_.data.resize(at + kBeat);
      std::memcpy(open_.data.data() + at, &dut->out_data_o, kBeat);
      if (dut->out_last_o) {
        open_.error = dut->out_error_o;
        answers.push_back(open_);
        open_ = {};
      }
    }
    kept += dut->stat_o >> uint32_t(contract::Statistic::kTxPushedPayloads) & 1;
    dut.Tick();
    ++cycle;
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) {
      Tick();
    }
  }
  [[nodiscard]] bool WaitForAnswers(size_t count, int limit = 200000) {
    for (int i = 0; i < limit && answers.size() < count; ++i) {
      Tick();
    }
    return answers.size() >= count;
  }
  void ExpectData(const Answer& answer, uint64_t address, uint32_t bytes) {
    std::vector<uint8_t> data(bytes);
    memory.Read(address, data.data(), bytes);
    ASSERT_EQ(answer.data.size(), (bytes + kBeat - 1) / kBeat * kBeat);
    ASSERT_EQ(std::memcmp(answer.data.data(), data.data(), bytes), 0);
  }

 private:
  uint64_t begun_ = 0;
  bool is_shown_ = false;
  Answer open_;
};

TEST(TxPushedTest, PushedPayloadComesACycleAfterItsRequestAndWithoutARead) {
  Bench b(1);
  b.FillMemory(0x1000);
  std::vector<Request> sent;
  for (uint32_t bytes = 1; bytes <= contract::kInjectBytes; ++bytes) {
    const Request r = {
        .number = b.PutPayload(bytes, bytes), .address = bytes, .bytes = bytes};
    b.Run(6);
    b.requests.push_back(r);
    ASSERT_TRUE(b.WaitForAnswers(bytes));
    ASSERT_NO_FATAL_FAILURE(b.ExpectData(b.answers.back(), bytes, bytes));
    EXPECT_EQ(b.answers.back().cycle, b.shown.back() + 1);
    EXPECT_EQ(b.cycle, b.answers.back().cycle + (bytes + kBeat - 1) / kBeat);
    sent.push_back(r);
  }
  EXPECT_TRUE(b.reads.requests.empty());
  EXPECT_EQ(b.kept, sent.size());
  b.Tick();
  EXPECT_TRUE(b.dut->idle_o);
}

TEST(TxPushedTest, RequestWithoutANumberIsReadInTheCycleItComes) {
  Bench b(1);
  b.reads.latency = 20;
  b.PutPayload(0, 64);
  for (uint32_t i = 0; i < 40; ++i) {
    b.requests.push_back(
        {.address = 0x1000, .bytes = static_cast<uint32_t>(8 * kBeat)});
  }
  const uint64_t start = b.cycle;
  ASSERT_TRUE(b.WaitForAnswers(40));
  EXPECT_LE(b.cycle - start, 40U * 8 + 20 + 2);
  EXPECT_EQ(b.kept, 0U);
}

TEST(TxPushedTest, TheLatestAreKeptAndTheOthersRead) {
  Bench b(1);
  b.FillMemory(0x10000);
  std::vector<Request> pushed;
  for (uint32_t i = 0; i < kPlaces + 10; ++i) {
    const uint64_t address = uint64_t{i} * 256;
    pushed.push_back({.number = b.PutPayload(address, 192),
                      .address = address,
                      .bytes = 192});
  }
  b.Run(200);
  for (const int round : {0, 1}) {  // A packet may be retransmitted.
    for (const Request& r : pushed) {
      b.requests.push_back(r);
      const size_t count = b.answers.size() + 1;
      ASSERT_TRUE(b.WaitForAnswers(count));
      ASSERT_NO_FATAL_FAILURE(
          b.ExpectData(b.answers.back(), r.address, r.bytes));
    }
    EXPECT_EQ(b.reads.requests.size(), 10U * (round + 1));
  }
  EXPECT_EQ(b.kept, 2 * kPlaces);
}

// None of these may be answered by what happens to be in the place.
TEST(TxPushedTest, OtherNumberOfThePlaceOrDamagedPayloadIsRead) {
  Bench b(1);
  b.FillMemory(0x10000);
  const uint64_t damaged = b.PutPayload(0x100, 128, false);
  const uint64_t good = b.PutPayload(0x200, 128);
  b.Run(20);
  for (const uint64_t number :
       {damaged, good + kPlaces, good + (uint64_t{1} << 32),
        good + (uint64_t{1} << 63), good + 1, ~uint64_t{0}}) {
    b.requests.push_back({.number = number, .address = 0x1000, .bytes = 128});
  }
  ASSERT_TRUE(b.WaitForAnswers(6));
  for (const Answer& answer : b.answers) {
    ASSERT_NO_FATAL_FAILURE(b.ExpectData(answer, 0x1000, 128));
  }
  EXPECT_EQ(b.kept, 0U);
  b.requests.push_back({.number = good, .address = 0x200, .bytes = 128});
  ASSERT_TRUE(b.WaitForAnswers(7));
  EXPECT_EQ(b.kept, 1U);
}

// Whatever the cycles between the two: one that comes and a request for it, and
// one that takes the place of what is being read out.
TEST(TxPushedTest, PayloadIsWholeOrReadInWhicheverCycle) {
  for (uint32_t gap = 0; gap < 12; ++gap) {
    Bench b(1);
    b.FillMemory(0x10000);
    const uint64_t number = b.PutPayload(0x100, 192);
    b.Run(static_cast<int>(gap));
    b.requests.push_back({.number = number, .address = 0x100, .bytes = 192});
    ASSERT_TRUE(b.WaitForAnswers(1));
    ASSERT_NO_FATAL_FAILURE(b.ExpectData(b.answers[0], 0x100, 192));
    EXPECT_EQ(b.kept, gap > 2 ? 1U : 0U) << gap;
  }
  for (uint32_t gap = 0; gap < 24; ++gap) {
    Bench b(gap);
    b.FillMemory(0x10000);
    const uint64_t number = b.PutPayload(0x100, 192);
    for (uint32_t i = 1; i < kPlaces; ++i) {
      b.PutPayload(0x1000, 64);
    }
    b.Run(100);
    b.stall_percent = gap % 3 * 50;
    b.requests.push_back({.number = number, .address = 0x100, .bytes = 192});
    b.Run(static_cast<int>(gap));
    const uint64_t over = b.PutPayload(0x2000, 192);
    b.requests.push_back({.number = over, .address = 0x2000, .bytes = 192});
    b.Run(10);
    b.stall_percent = 0;
    ASSERT_TRUE(b.WaitForAnswers(2));
    ASSERT_NO_FATAL_FAILURE(b.ExpectData(b.answers[0], 0x100, 192));
    ASSERT_NO_FATAL_FAILURE(b.ExpectData(b.answers[1], 0x2000, 192));
  }
}

TEST(TxPushedTest, AnswersStayInOrderAfterOutstandingReads) {
  Bench b(1);
  b.FillMemory(0x10000);
  b.reads.latency = 100;
  const uint64_t number = b.PutPayload(0x100, 100);
  b.Run(10);
  b.requests.push_back({.address = 0x4000, .bytes = 1000});
  b.requests.push_back({.number = number, .address = 0x100, .bytes = 100});
  ASSERT_TRUE(b.WaitForAnswers(2));
  ASSERT_NO_FATAL_FAILURE(b.ExpectData(b.answers[0], 0x4000, 1000));
  ASSERT_NO_FATAL_FAILURE(b.ExpectData(b.answers[1], 0x100, 100));
  EXPECT_EQ(b.reads.requests.size(), 2U);
}

TEST(TxPushedTest, WhateverIsPushedAnswersAreThoseOfMemory) {
  const uint64_t seed = TestSeed();
  uint64_t kept = 0;
  for (uint64_t run = 0; run < 20; ++run) {
    Bench b(static_cast<uint32_t>(seed + run));
    Rng& rng = b.rng;
    b.FillMemory(0x10000);
    b.reads.refuse_from = 0xf000;
    b.reads.refuse_to = 0xf100;
    std::deque<Request> expected;
    std::vector<Request> pushed;
    size_t seen = 0;
    uint32_t pause = 1;
    for (int round = 0; round < 20000; ++round) {
      if (round % 256 == 0) {
        b.stall_percent = rng() % 3 * 30;
        b.reads.stall_percent = rng() % 3 * 30;
        b.reads.latency = rng() % 3 == 0 ? 100 : 1 + rng() % 8;
        pause = 1 + rng() % (30 * (kRow / uint32_t(kBeat)));
      }
      if (b.puts.empty() && rng() % 4 == 0) {
        Request r = {.address = rng() % 0xe000,
                     .bytes = 1 + rng() % contract::kInjectBytes};
        r.number = b.PutPayload(r.address, r.bytes, rng() % 8 != 0);
        pushed.push_back(r);
      }
      if (b.requests.size() < 3 && rng() % pause == 0) {
        Request r = {.address = rng() % 0xf200, .bytes = 1 + rng() % 500};
        if (!pushed.empty() && rng() % 8 != 0) {
          const size_t back = std::min<size_t>(
              pushed.size(), 1 + rng() % (rng() % 2 ? 3 : 2 * kPlaces));
          r = pushed[pushed.size() - back];
        }
        b.requests.push_back(r);
        expected.push_back(r);
      }
      b.Tick();
      for (; seen < b.answers.size(); ++seen) {
        const Request r = expected.front();
        expected.pop_front();
        const Answer& answer = b.answers[seen];
        const bool refused = r.address < 0xf100 && r.address + r.bytes > 0xf000;
        ASSERT_EQ(answer.error, refused);
        if (!refused) {
          ASSERT_NO_FATAL_FAILURE(b.ExpectData(answer, r.address, r.bytes));
        }
      }
    }
    ASSERT_TRUE(b.WaitForAnswers(seen + expected.size()));
    EXPECT_EQ(b.kept + b.reads.requests.size(), b.answers.size());
    kept += b.kept;
  }
  EXPECT_GT(kept, 500U);
}

}  // namespace
}  // namespace heddle::test
