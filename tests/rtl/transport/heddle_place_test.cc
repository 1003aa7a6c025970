// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <vector>

#include "Vheddle_place.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"
#include "tests/rtl/transport/port.h"

namespace heddle::test {
namespace {

constexpr unsigned kBeatBytes = sizeof(Vheddle_place::pay_data_i);
using contract::Status;

using Bytes = std::vector<uint8_t>;

struct Written {
  rtl::DmaReq req;
  bool segmented = false;
  uint32_t msg = 0;
  Bytes data;
};

// The block with payload queue, write engine and completion queue around it.
class Placement {
 public:
  explicit Placement(bool write_errors) {
    contract::PortCfg cfg = StandardPort();
    cfg.write_errors = write_errors;
    rtl::Drive(dut_->port_i, cfg);
  }

  // A record and the packet's payload; bytes are a function of `seed`.
  void Push(const rtl::Place& record, const Bytes& payload) {
    records_.push_back(record);
    for (size_t at = 0; at < payload.size(); at += kBeatBytes) {
      Bytes beat(kBeatBytes, 0xee);
      std::copy_n(payload.begin() + static_cast<long>(at),
                  std::min<size_t>(kBeatBytes, payload.size() - at),
                  beat.begin());
      beats_.push_back(beat);
    }
  }
  void Cycle();
  // Until `events` events were taken and all is quiet.
  void RunUntilIdle(int limit) {
    for (int i = 0; i < limit; ++i) {
      Cycle();
      if (records_.empty() && dut_->idle_o) return;
    }
    FAIL() << "not idle";
  }
  Vheddle_place* operator->() { return dut_.operator->(); }

  struct Event {
    rtl::CqEvent event;
    size_t requests;  // Write requests taken before it.
    size_t answers;   // Writes answered before it.
  };
  std::vector<Event> events;
  struct Shown {
    uint8_t pdc;
    uint32_t psn;
    size_t answers;  // Writes answered before it.
  };
  std::vector<Shown> shown;
  std::vector<size_t> jobs;  // Writes answered before each.
  struct Settled {
    rtl::ReturnSettle record;
    size_t answers;
  };
  std::vector<Settled> settled;
  std::vector<Written> writes;
  size_t answers = 0;
  size_t most_outstanding = 0;
  size_t beats_left() const { return beats_.size(); }

  unsigned latency = 10;
  double stall = 0;
  bool hold_events = false;
  sim::base::Random* random = nullptr;
  std::map<uint64_t, bool> refused;  // Writes to these addresses fail.

 private:
  bool Stalls() { return stall > 0 && random->Chance(stall); }

  sim::model::ClockedModel<Vheddle_place> dut_;
  std::deque<rtl::Place> records_;
  std::deque<Bytes> beats_;
  std::deque<uint64_t> pending_;  // Cycle of the answer, per complete write.
  size_t unfilled_ = 0;           // First write whose data is not complete.
  uint64_t cycle_ = 0;
};

void Placement::Cycle() {
  ++cycle_;
  if (!dut_->place_valid_i && !records_.empty() && !Stalls()) {
    dut_->place_valid_i = 1;
    rtl::Drive(dut_->place_i, records_.front());
  }
  if (!dut_->pay_valid_i && !beats_.empty() && !Stalls()) {
    dut_->pay_valid_i = 1;
    std::memcpy(PinBytes(dut_->pay_data_i), beats_.front().data(), kBeatBytes);
  }
  dut_->wr_ready_i = !Stalls();
  dut_->wr_data_ready_i = unfilled_ < writes.size() && !Stalls();
  dut_->ev_ready_i = !hold_events && !Stalls();
  dut_->job_ready_i = !Stalls();
  const bool answer = !pending_.empty() && pending_.front() <= cycle_;
  dut_->wr_rsp_valid_i = answer;
  dut_->wr_rsp_error_i = answer && refused.count(writes[answers].req.addr) != 0;
  dut_.Settle();

  const bool place_taken = dut_->place_valid_i && dut_->place_ready_o;
  const bool pay_taken = dut_->pay_valid_i && dut_->pay_ready_o;
  if (dut_->ev_valid_o && dut_->ev_ready_i) {
    events.push_back(
        {rtl::Sample<rtl::CqEvent>(dut_->ev_o), writes.size(), answers});
  }
  if (dut_->visible_o) {
    shown.push_back({dut_->visible_pdc_o, dut_->visible_psn_o, answers});
  }
  if (dut_->job_valid_o && dut_->job_ready_i) jobs.push_back(answers);
  if (dut_->settle_o) {
    settled.push_back({rtl::Sample<rtl::ReturnSettle>(dut_->settled_o),
                       answers + (answer ? 1 : 0)});
  }
  if (dut_->wr_data_valid_o) {
    EXPECT_LT(unfilled_, writes.size()) << "data before its request";
  }
  if (dut_->wr_data_valid_o && dut_->wr_data_ready_i) {
    Written& write = writes[unfilled_];
    const uint8_t* beat = PinBytes(dut_->wr_data_o);
    const size_t left = write.req.bytes - write.data.size();
    write.data.insert(write.data.end(), beat,
                      beat + std::min<size_t>(left, kBeatBytes));
    if (write.data.size() == write.req.bytes) {
      ++unfilled_;
      pending_.push_back(cycle_ + latency);
    }
  }
  if (dut_->wr_valid_o && dut_->wr_ready_i) {
    writes.push_back({rtl::Sample<rtl::DmaReq>(dut_->wr_req_o),
                      dut_->wr_segmented_o != 0,
                      dut_->wr_msg_o,
                      {}});
    EXPECT_GT(writes.back().req.bytes, 0);
  }
  if (answer) {
    pending_.pop_front();
    ++answers;
  }
  most_outstanding = std::max(most_outstanding, writes.size() - answers);
  dut_.Tick();
  if (place_taken) {
    records_.pop_front();
    dut_->place_valid_i = 0;
  }
  if (pay_taken) {
    beats_.pop_front();
    dut_->pay_valid_i = 0;
  }
}

rtl::Place Record(uint16_t stream, uint16_t bytes, uint64_t iova, uint8_t tpdc,
                  bool first, bool complete) {
  rtl::Place record = {};
  record.stream = stream;
  record.bytes = bytes;
  record.iova = iova;
  record.tpdc = tpdc;
  record.first = first;
  record.complete = complete;
  record.ev.write = complete;
  record.ev.credit = complete;
  record.ev.owner = 0x21;
  record.ev.cq = 3;
  record.ev.entry.length = bytes;
  record.ev.entry.op_context = iova;
  return record;
}

Bytes Payload(size_t size, uint8_t first) {
  Bytes out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(first + i);
  return out;
}

TEST(PlaceTest, CompletesBehindTheWriteRequestWithoutWaitingForItsAnswer) {
  Placement dut(false);
  dut.latency = 500;
  dut.Push(Record(100, 100, 0x1000, 1, true, true), Payload(100, 7));
  for (int i = 0; i < 50; ++i) dut.Cycle();
  ASSERT_EQ(dut.events.size(), 1u);
  EXPECT_EQ(dut.events[0].requests, 1u);
  EXPECT_EQ(dut.events[0].answers, 0u);
  EXPECT_EQ(dut.writes[0].req, (rtl::DmaReq{0x1000, 100, 0x21}));
  EXPECT_EQ(dut.writes[0].data, Payload(100, 7));
}

TEST(PlaceTest, CompletesAfterTheAnswersWhereTheBridgeReportsErrors) {
  Placement dut(true);
  dut.latency = 80;
  dut.Push(Record(64, 64, 0x1000, 1, true, false), Payload(64, 1));
  dut.Push(Record(64, 64, 0x1040, 1, false, true), Payload(64, 65));
  dut.RunUntilIdle(400);
  ASSERT_EQ(dut.events.size(), 1u);
  EXPECT_EQ(dut.events[0].answers, 2u);
  EXPECT_EQ(dut.events[0].event.entry.status, Status::kOk);
}

TEST(PlaceTest, VisibleIsReportedBehindTheAnswersAlsoWhereTheBridgeOnlyPosts) {
  for (bool write_errors : {false, true}) {
    Placement dut(write_errors);
    dut.latency = 80;
    dut.Push(Record(64, 64, 0x1000, 1, true, false), Payload(64, 1));
    rtl::Place last = Record(64, 64, 0x1040, 1, false, false);
    last.visible = 1;
    last.psn = 77;
    dut.Push(last, Payload(64, 65));
    // Nothing to write, but behind what was.
    rtl::Place empty = Record(0, 0, 0, 2, true, true);
    empty.visible = 1;
    empty.psn = 78;
    dut.Push(empty, {});
    dut.Push(Record(64, 64, 0x2000, 1, true, true), Payload(64, 1));
    dut.RunUntilIdle(400);
    ASSERT_EQ(dut.shown.size(), 2u);
    EXPECT_EQ(dut.shown[0].pdc, 1);
    EXPECT_EQ(dut.shown[0].psn, 77u);
    EXPECT_GE(dut.shown[0].answers, 2u);
    EXPECT_EQ(dut.shown[1].pdc, 2);
    EXPECT_EQ(dut.shown[1].psn, 78u);
    ASSERT_EQ(dut.events.size(), 2u);
    EXPECT_GE(dut.events[0].answers, 2u);
  }
}

// A READ sees the writes before it, and does not wait for those behind it.
TEST(PlaceTest, ReturnJobGoesOnBehindTheAnswersOfTheWritesBeforeIt) {
  for (bool write_errors : {false, true}) {
    Placement dut(write_errors);
    dut.latency = 80;
    rtl::Place job = Record(0, 0, 0, 1, false, false);
    job.job = 1;
    dut.Push(job, {});
    for (int i = 0; i < 20; ++i) dut.Cycle();
    ASSERT_EQ(dut.jobs.size(), 1u);
    dut.Push(Record(64, 64, 0x1000, 1, true, false), Payload(64, 1));
    dut.Push(Record(64, 64, 0x1040, 1, false, true), Payload(64, 65));
    dut.Push(job, {});
    for (int i = 0; i < 10; ++i) {
      dut.Push(Record(64, 64, 0x2000, 1, true, true), Payload(64, 1));
    }
    rtl::Place last = Record(0, 0, 0, 1, false, true);
    last.job = 1;
    dut.Push(last, {});
    dut.RunUntilIdle(2000);
    ASSERT_EQ(dut.jobs.size(), 3u);
    EXPECT_GE(dut.jobs[1], 2u);
    EXPECT_LT(dut.jobs[1], 12u);
    EXPECT_EQ(dut.jobs[2], 12u);
    EXPECT_EQ(dut.events.size(), 12u);
  }
}

TEST(PlaceTest, DataOfReadsAreSettledWhenTheirWriteWasAnswered) {
  Placement dut(false);
  dut.latency = 80;
  dut.refused[0x1040] = true;
  const auto back = [](uint64_t iova, uint16_t msg) {
    rtl::Place record = Record(64, 64, iova, 5, false, false);
    record.back = 1;
    record.spdcid = 0x2405;
    record.settle = 1;
    record.msg = msg;
    return record;
  };
  dut.Push(back(0x1000, 77), Payload(64, 1));
  dut.Push(back(0x1040, 77), Payload(64, 1));
  rtl::Place error = back(0, 78);
  error.stream = error.bytes = 0;
  error.fail = 1;
  error.code = 0x1c;
  dut.Push(error, {});
  rtl::Place unclaimed = back(0x9000, 79);  // Dropped: no READ is outstanding.
  unclaimed.bytes = 0;
  unclaimed.settle = 0;
  dut.Push(unclaimed, Payload(64, 1));
  rtl::Place pieces = back(4096, 80);  // An offset.
  pieces.segmented = 1;
  dut.Push(pieces, Payload(64, 1));
  // The error of a READ is none of the target PDC of the same index.
  dut.Push(Record(64, 64, 0x5000, 5, false, true), Payload(64, 1));
  dut.RunUntilIdle(500);
  ASSERT_EQ(dut.writes.size(), 4u);
  EXPECT_FALSE(dut.writes[1].segmented);
  EXPECT_TRUE(dut.writes[2].segmented);
  EXPECT_EQ(dut.writes[2].msg, 80u);
  EXPECT_EQ(dut.writes[2].req.addr, 4096u);
  ASSERT_EQ(dut.settled.size(), 4u);
  EXPECT_EQ(dut.settled[0].record,
            (rtl::ReturnSettle{.spdcid = 0x2405, .msg = 77}));
  EXPECT_GE(dut.settled[0].answers, 1u);
  EXPECT_EQ(dut.settled[1].record,
            (rtl::ReturnSettle{.spdcid = 0x2405, .msg = 77, .refused = 1}));
  EXPECT_GE(dut.settled[1].answers, 2u);
  EXPECT_EQ(dut.settled[2].record,
            (rtl::ReturnSettle{
                .spdcid = 0x2405, .msg = 78, .fail = 1, .code = 0x1c}));
  EXPECT_EQ(dut->back_done_o, 5);
  ASSERT_EQ(dut.events.size(), 1u);
  EXPECT_EQ(dut.events[0].event.entry.status, Status::kOk);
}

TEST(PlaceTest, RefusedWriteFailsItsMessageAndNoOther) {
  Placement dut(true);
  dut.hold_events = true;
  dut.refused[0x1040] = true;
  dut.refused[0x3000] = true;
  // Message A of PDC 1: its second packet is refused; B of the same PDC is
  // good; C of PDC 2 meanwhile; D of PDC 1 is refused in its only packet.
  dut.Push(Record(64, 64, 0x1000, 1, true, false), Payload(64, 1));
  dut.Push(Record(64, 64, 0x5000, 2, true, false), Payload(64, 1));
  dut.Push(Record(64, 64, 0x1040, 1, false, false), Payload(64, 1));
  dut.Push(Record(64, 64, 0x1080, 1, false, true), Payload(64, 1));
  dut.Push(Record(0, 0, 0x2000, 1, true, true), {});
  dut.Push(Record(64, 64, 0x5040, 2, false, true), Payload(64, 1));
  dut.Push(Record(64, 64, 0x3000, 1, true, true), Payload(64, 1));
  dut.Push(Record(64, 64, 0x4000, 1, true, true), Payload(64, 1));
  for (int i = 0; i < 100; ++i) dut.Cycle();
  dut.hold_events = false;
  dut.RunUntilIdle(400);
  std::vector<std::pair<uint64_t, Status>> got;
  for (const auto& event : dut.events) {
    got.emplace_back(event.event.entry.op_context, event.event.entry.status);
  }
  EXPECT_EQ(got, (std::vector<std::pair<uint64_t, Status>>{
                     {0x1080, Status::kLocalAccess},
                     {0x2000, Status::kOk},
                     {0x5040, Status::kOk},
                     {0x3000, Status::kLocalAccess},
                     {0x4000, Status::kOk}}));
}

// Messages of a PDC that are open together.
TEST(PlaceTest, RefusedWriteFailsItsMessageOfTheTableAndNoOther) {
  Placement dut(true);
  const auto tabled = [](uint8_t place, uint64_t iova, bool first,
                         bool complete) {
    rtl::Place record = Record(64, 64, iova, 1, first, complete);
    record.tabled = 1;
    record.place = place;
    return record;
  };
  for (const uint64_t iova : {0x2000, 0x4040}) dut.refused[iova] = true;
  dut.Push(Record(64, 64, 0x1000, 1, true, false), Payload(64, 1));
  dut.Push(tabled(2, 0x2000, true, false), Payload(64, 1));
  dut.Push(tabled(3, 0x3000, true, false), Payload(64, 1));
  dut.Push(tabled(2, 0x2040, false, false), Payload(64, 1));
  dut.Push(tabled(3, 0x3040, false, true), Payload(64, 1));
  dut.Push(Record(64, 64, 0x1040, 1, false, true), Payload(64, 1));
  dut.Push(tabled(2, 0x2080, false, true), Payload(64, 1));
  // The same place again, and then an error of the last packet.
  dut.Push(tabled(2, 0x5000, true, true), Payload(64, 1));
  dut.Push(tabled(2, 0x4000, true, false), Payload(64, 1));
  dut.Push(tabled(2, 0x4040, false, true), Payload(64, 1));
  dut.RunUntilIdle(400);
  std::vector<std::pair<uint64_t, Status>> got;
  for (const auto& event : dut.events) {
    got.emplace_back(event.event.entry.op_context, event.event.entry.status);
  }
  EXPECT_EQ(got, (std::vector<std::pair<uint64_t, Status>>{
                     {0x3040, Status::kOk},
                     {0x1040, Status::kOk},
                     {0x2080, Status::kLocalAccess},
                     {0x5000, Status::kOk},
                     {0x4040, Status::kLocalAccess}}));
}

// It has nothing to write, but covers what was written before it.
TEST(PlaceTest, VisibleWithoutAWriteWaitsForThoseBeforeIt) {
  Placement dut(false);
  dut.latency = 80;
  dut.Push(Record(64, 64, 0x1000, 1, true, false), Payload(64, 1));
  rtl::Place empty = Record(0, 0, 0, 1, false, false);
  empty.visible = 1;
  empty.psn = 78;
  dut.Push(empty, {});
  dut.RunUntilIdle(400);
  ASSERT_EQ(dut.shown.size(), 1u);
  EXPECT_GE(dut.shown[0].answers, 1u);
}

// Messages of one packet complete between the packets of the one that is open.
TEST(PlaceTest, ErrorsOfAPacketAloneAreItsOwn) {
  Placement dut(true);
  const auto alone = [](uint64_t iova, bool complete) {
    rtl::Place record = Record(64, 64, iova, 1, false, complete);
    record.alone = 1;
    return record;
  };
  for (const uint64_t iova : {0x1000, 0x5040, 0x6080}) dut.refused[iova] = true;
  // An error of the open message survives both; theirs do not reach it.
  dut.Push(Record(64, 64, 0x1000, 1, true, false), Payload(64, 1));
  dut.Push(alone(0x2000, true), Payload(64, 1));
  dut.Push(Record(64, 64, 0x1040, 1, false, true), Payload(64, 1));
  dut.Push(Record(64, 64, 0x5000, 1, true, false), Payload(64, 1));
  dut.Push(alone(0x5040, true), Payload(64, 1));
  dut.Push(alone(0x6080, false), Payload(64, 1));
  dut.Push(Record(64, 64, 0x5080, 1, false, true), Payload(64, 1));
  dut.RunUntilIdle(400);
  std::vector<std::pair<uint64_t, Status>> got;
  for (const auto& event : dut.events) {
    got.emplace_back(event.event.entry.op_context, event.event.entry.status);
  }
  EXPECT_EQ(got, (std::vector<std::pair<uint64_t, Status>>{
                     {0x2000, Status::kOk},
                     {0x1040, Status::kLocalAccess},
                     {0x5040, Status::kLocalAccess},
                     {0x5080, Status::kOk}}));
}

TEST(PlaceTest, DiscardsWhatIsNotToBeWritten) {
  Placement dut(false);
  dut.Push(Record(1000, 0, 0x1000, 1, true, false), Payload(1000, 1));
  dut.Push(Record(1000, 70, 0x2000, 1, false, false), Payload(1000, 9));
  dut.Push(Record(5, 5, 0x3000, 1, false, true), Payload(5, 42));
  dut.RunUntilIdle(400);
  ASSERT_EQ(dut.writes.size(), 2u);
  Bytes head = Payload(1000, 9);
  head.resize(70);
  EXPECT_EQ(dut.writes[0].data, head);
  EXPECT_EQ(dut.writes[1].data, Payload(5, 42));
  EXPECT_EQ(dut.beats_left(), 0u);
}

TEST(PlaceTest, TokenWaitsForAnswersOfEveryWriteBeforeIt) {
  for (bool write_errors : {false, true}) {
    Placement dut(write_errors);
    dut.latency = 60;
    dut.Push(Record(64, 64, 0x1000, 1, true, true), Payload(64, 1));
    rtl::Place token = {};
    token.token = 1;
    dut.Push(token, {});
    dut.Push(Record(64, 64, 0x2000, 1, true, true), Payload(64, 1));
    dut.RunUntilIdle(400);
    ASSERT_EQ(dut.events.size(), 3u);
    const size_t at = dut.events[1].event.token != 0 ? 1 : 2;
    EXPECT_EQ(dut.events[0].event.token, 0);
    EXPECT_EQ(dut.events[at].event.token, 1);
    EXPECT_GE(dut.events[at].answers, 1u);
    // The record after it does not wait for the answer.
    EXPECT_EQ(dut.events[at].requests, 2u);
    if (!write_errors) {
      EXPECT_EQ(at, 2u);
    }
  }
}

TEST(PlaceTest, KeepsAtLeast32WritesOutstandingAndOnePacketPerTwoCycles) {
  Placement dut(true);
  dut.latency = 70;
  for (uint64_t i = 0; i < 300; ++i) {
    dut.Push(Record(8, 8, i * 64, 1, true, true), Payload(8, 1));
  }
  dut.RunUntilIdle(2 * 300 + 150);
  EXPECT_EQ(dut.events.size(), 300u);
  EXPECT_GE(dut.most_outstanding, 32u);
}

TEST(PlaceTest, RandomMessagesArePlacedInOrderAndCompleteBehindTheirWrites) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    std::printf("seed %lu\n", static_cast<unsigned long>(seed));
    SCOPED_TRACE(seed);
    sim::base::Random random(seed);
    const bool write_errors = random.Chance(0.6);
    Placement dut(write_errors);
    dut.random = &random;
    dut.stall = 0.1 * random.Below(6);
    dut.latency = 1 + random.Below(150);

    struct Expected {
      uint64_t op_context;
      bool error;
      size_t writes;
    };
    struct Token {
      size_t events;  // Before it; later ones may precede it too.
      size_t writes;
    };
    std::vector<Expected> expected;
    std::vector<Token> tokens;
    std::vector<Written> writes;
    std::map<uint8_t, std::pair<bool, bool>> open;  // tpdc: open, error.
    uint64_t next = 0x1000;
    for (int i = 0; i < 400; ++i) {
      if (random.Chance(0.02)) {
        rtl::Place token = {};
        token.token = 1;
        dut.Push(token, {});
        tokens.push_back({expected.size(), writes.size()});
        continue;
      }
      const uint8_t tpdc = static_cast<uint8_t>(random.Below(4));
      auto& [is_open, error] = open[tpdc];
      uint16_t stream = static_cast<uint16_t>(
          random.Chance(0.5) ? random.Below(80) : random.Below(2000));
      uint16_t bytes = stream;
      if (random.Chance(0.3)) {
        bytes = static_cast<uint16_t>(random.Below(stream + 1u));
      }
      const bool first = !is_open;
      const bool complete = random.Chance(0.4);
      const rtl::Place record =
          Record(stream, bytes, next, tpdc, first, complete);
      const Bytes payload = Payload(stream, static_cast<uint8_t>(next >> 3));
      if (first) error = false;
      if (bytes != 0) {
        writes.push_back(
            {.req = {next, bytes, 0x21},
             .data = Bytes(payload.begin(), payload.begin() + bytes)});
        if (random.Chance(0.1)) {
          dut.refused[next] = true;
          error = true;
        }
      }
      is_open = !complete;
      if (complete) {
        expected.push_back({next, error && write_errors, writes.size()});
      }
      dut.Push(record, payload);
      next += 0x1003;
    }
    dut.RunUntilIdle(200000);
    ASSERT_EQ(dut.writes.size(), writes.size());
    for (size_t i = 0; i < writes.size(); ++i) {
      ASSERT_EQ(dut.writes[i].req, writes[i].req) << i;
      ASSERT_EQ(dut.writes[i].data, writes[i].data) << i;
    }
    ASSERT_EQ(dut.events.size(), expected.size() + tokens.size());
    size_t events = 0;
    size_t passed = 0;
    for (const auto& got : dut.events) {
      if (got.event.token != 0) {
        ASSERT_LT(passed, tokens.size());
        EXPECT_GE(events, tokens[passed].events) << passed;
        EXPECT_GE(got.answers, tokens[passed].writes) << passed;
        ++passed;
        continue;
      }
      ASSERT_LT(events, expected.size());
      const Expected& want = expected[events];
      ASSERT_EQ(got.event.entry.op_context, want.op_context) << events;
      ASSERT_EQ(got.event.entry.status,
                want.error ? Status::kLocalAccess : Status::kOk)
          << events;
      EXPECT_GE(got.requests, want.writes);
      if (write_errors) {
        EXPECT_GE(got.answers, want.writes);
      }
      ++events;
    }
    EXPECT_EQ(dut.beats_left(), 0u);
  }
}

}  // namespace
}  // namespace heddle::test
