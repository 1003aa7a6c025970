// SPDX-License-Identifier: Apache-2.0
// Unordered initiators with selective retransmission over a path that drops,
// duplicates and reorders.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/transport/accept_path.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

using contract::NackCode;
using contract::ReturnCode;

constexpr uint16_t kMtu = 1024;
constexpr uint32_t kWindow = 64;
constexpr uint32_t kReorder = 3;
constexpr uint64_t kTimeout = 800;  // Cycles.
constexpr uint64_t kRoundTrip = 250;
constexpr int kContexts = 2;
constexpr uint64_t kBadKey = 0xbad;
constexpr uint64_t kRegion = uint64_t{1} << 40;

enum class Kind : uint8_t { kSend, kWrite, kReportingWrite, kBadWrite };

struct Message {
  Kind kind = Kind::kSend;
  uint32_t length = 0;
  uint32_t first = 0;  // Packet.
  uint32_t count = 0;
  bool dc = false;
  bool fails = false;  // Collapses into a packet with ie=1, its last.
  bool begun = false;
  bool completed = false;
  bool refused = false;  // The initiator knows.
  bool shown = false;    // Its data is visible.
  uint64_t base = 0;     // Where its first byte was placed.
  uint32_t placed = 0;

  bool completes() const {
    return kind == Kind::kSend || kind == Kind::kReportingWrite;
  }
};

struct Sent {
  rtl::RxPacket packet;
  size_t message = 0;
  bool arrived = false;  // The target said so.
  bool placed = false;
  bool lost = false;
  int times = 0;
  uint64_t at = 0;
};

struct Sender {
  uint32_t fa = 0;
  uint16_t spdcid = 0;
  uint32_t start = 0;
  uint16_t tpdcid = 0;
  std::vector<Message> messages;
  std::vector<Sent> packets;
  uint32_t una = 0;
  uint32_t top = 0;
  uint32_t clear = 0;  // Answers up to this PSN came.
  bool owes_clear = false;
  uint64_t heard = 0;
  uint64_t wait_until = 0;
};

class RudRun {
 public:
  explicit RudRun(uint64_t seed)
      : random_(seed),
        trouble_(0.03 * random_.Below(4)),
        path_(bench_, random_, trouble_) {
    bench_.random = &random_;
    bench_.stall = 0.25 * random_.Below(4);
    bench_.region.code = ReturnCode::kOk;
    bench_.region.iova = kRegion;
    bench_.region.owner = 0x21;
    bench_.bad_key = kBadKey;
    bench_.spare_buffers = 1 + random_.Below(3);
    for (size_t c = 0; c < kContexts; ++c) {
      bench_.contexts[c].pid = 7;
      bench_.contexts[c].ri = static_cast<uint16_t>(c);
    }
    for (uint32_t i = 0; i < 4; ++i) AddSender(i);
  }

  void Run();

 private:
  void AddSender(uint32_t index);
  void AddMessage(Sender& sender, uint32_t index);
  void PostBuffers();
  void Send(Sender& sender);
  void Submit(Sender& sender, uint32_t index);
  void Take(const rtl::Response& rsp);
  void TakeNack(Sender& sender, const rtl::Response& rsp);
  void TakeAck(Sender& sender, const rtl::Response& rsp);
  void Take(const rtl::Place& record);
  void Complete(const rtl::Place& record);
  void CheckEnd();
  bool AllAcknowledged() const {
    return std::ranges::all_of(senders_, [](const Sender& s) {
      return s.una == s.packets.size() && !s.owes_clear;
    });
  }

  sim::base::Random random_;
  double trouble_;
  AcceptBench bench_;
  Path path_;
  std::vector<Sender> senders_;
  std::map<uint64_t, rtl::RxBuffer> posted_;  // By op_context.
  struct Report {  // That what a PDC placed until then is visible.
    uint8_t pdc = 0;
    uint32_t psn = 0;
    std::vector<Message*> whole;  // Messages that were placed by then.
  };
  std::deque<Report> to_show_;
  std::map<uint8_t, uint32_t> sender_of_;  // By PDC.
  uint64_t next_buffer_ = 1;
  size_t responses_ = 0;
  size_t places_ = 0;
  size_t credits_ = 0;
};

void RudRun::AddSender(uint32_t index) {
  Sender sender;
  sender.fa = 0x0a000000 + random_.Below(4);
  sender.spdcid = static_cast<uint16_t>(0x40 + index);
  sender.start = random_.Chance(0.3) ? 0u - random_.Below(50)
                                     : static_cast<uint32_t>(random_.Next());
  sender.clear = sender.start - 1;
  const uint32_t count = 15 + random_.Below(25);
  for (uint32_t m = 0; m < count; ++m) AddMessage(sender, index);
  senders_.push_back(sender);
}

void RudRun::AddMessage(Sender& sender, uint32_t index) {
  Message message;
  const uint32_t kind = random_.Below(20);
  message.kind = kind < 8    ? Kind::kSend
                 : kind < 15 ? Kind::kWrite
                 : kind < 18 ? Kind::kReportingWrite
                             : Kind::kBadWrite;
  message.length =
      random_.Chance(0.5) ? random_.Below(200) : random_.Below(8 * kMtu);
  message.dc = random_.Chance(0.2);
  message.fails = message.kind != Kind::kBadWrite && random_.Chance(0.08);
  message.first = static_cast<uint32_t>(sender.packets.size());
  const uint32_t pieces = std::max(1u, (message.length + kMtu - 1) / kMtu);
  message.count = message.fails ? random_.Below(pieces) + 1 : pieces;
  const size_t number = sender.messages.size();
  const uint32_t context = random_.Below(kContexts);
  for (uint32_t p = 0; p < message.count; ++p) {
    rtl::RxPacket pkt = {};
    pkt.source_fa_lo = sender.fa;
    pkt.pds_type = contract::PdsType::kRudReq;
    pkt.next_hdr = 3;
    pkt.psn = sender.start + static_cast<uint32_t>(sender.packets.size());
    pkt.spdcid = sender.spdcid;
    pkt.opcode = message.kind == Kind::kSend ? 5 : 1;
    pkt.eom = p + 1 == message.count;
    pkt.ie = message.fails && pkt.eom;
    pkt.dc = message.dc;
    pkt.hd = message.completes();
    pkt.message_id = static_cast<uint16_t>(number % 200 + 1);
    pkt.pid_on_fep = 7;
    pkt.resource_index = static_cast<uint16_t>(context);
    pkt.initiator = index;
    if (message.kind != Kind::kSend) {
      pkt.match_bits = message.kind == Kind::kBadWrite ? kBadKey : 5;
      pkt.buffer_offset = (uint64_t{index} << 24) + (number << 16);
    }
    SetPiece(&pkt, p, kMtu, message.length, number);
    pkt.ar = random_.Chance(0.2) || pkt.eom;
    sender.packets.push_back({.packet = pkt, .message = number});
  }
  sender.messages.push_back(message);
}

void RudRun::PostBuffers() {
  if (!random_.Chance(0.03)) return;
  const size_t c = random_.Below(kContexts);
  if (bench_.contexts[c].buffers.size() >= 4) return;
  const uint64_t id = next_buffer_++;
  bench_.AddBuffer(c, random_.Below(9000), id << 20, id);
  posted_[id] = bench_.contexts[c].buffers.back();
}

void RudRun::Submit(Sender& sender, uint32_t index) {
  Sent& sent = sender.packets[index];
  rtl::RxPacket pkt = sent.packet;
  pkt.retx = sent.times > 0;
  pkt.ar = pkt.ar || pkt.retx;
  pkt.syn = sender.tpdcid == 0;
  pkt.dpdcid = sender.tpdcid;
  pkt.psn_offset = pkt.syn ? static_cast<uint16_t>(index) : uint16_t{0};
  pkt.offset = static_cast<uint16_t>(sender.clear - pkt.psn);
  ++sent.times;
  sent.lost = false;
  sent.at = bench_.cycle;
  path_.Submit(pkt);
  if (random_.Chance(trouble_)) bench_.SendSquashed(pkt);
}

void RudRun::Send(Sender& sender) {
  if (sender.una < sender.top && bench_.cycle > sender.heard + kTimeout) {
    sender.heard = bench_.cycle;
    for (uint32_t i = sender.una; i < sender.top; ++i) {
      Sent& sent = sender.packets[i];
      sent.lost = !sent.arrived;
    }
    // All came, and yet it stands: an error is not cleared, or an ACK lost.
    sender.packets[sender.una].lost = true;
  }
  if (bench_.cycle < sender.wait_until || !random_.Chance(0.2)) return;
  for (uint32_t i = sender.una; i < sender.top; ++i) {
    if (sender.packets[i].lost) return Submit(sender, i);
  }
  if (sender.owes_clear) {
    rtl::RxPacket command = sender.packets[0].packet;
    command.pds_type = contract::PdsType::kCp;
    command.next_hdr = static_cast<uint8_t>(contract::CpType::kClearCommand);
    command.dpdcid = sender.tpdcid;
    command.payload_bytes = 0;
    command.pds_payload = sender.clear;
    path_.Submit(command);
    sender.owes_clear = false;
    return;
  }
  if (sender.top < sender.packets.size() && sender.top < sender.una + kWindow) {
    if (sender.una == sender.top) sender.heard = bench_.cycle;
    Submit(sender, sender.top++);
  }
}

void RudRun::TakeNack(Sender& sender, const rtl::Response& rsp) {
  const auto code = static_cast<NackCode>(rsp.code);
  // Nothing here ever justifies a fatal one.
  ASSERT_TRUE(code == NackCode::kNoPktBuffer || code == NackCode::kNoResource ||
              code == NackCode::kPktNotRcvd || code == NackCode::kNoGtdDelAvail)
      << int{rsp.code};
  const uint32_t index = rsp.nack_psn - sender.start;
  ASSERT_LT(index, sender.top);
  sender.heard = bench_.cycle;
  if (code != NackCode::kPktNotRcvd) sender.wait_until = bench_.cycle + 100;
  for (uint32_t i = std::max(index, sender.una); i < sender.top; ++i) {
    Sent& sent = sender.packets[i];
    if (!sent.arrived && sent.at + kRoundTrip < bench_.cycle) sent.lost = true;
  }
}

void RudRun::TakeAck(Sender& sender, const rtl::Response& rsp) {
  ASSERT_EQ(rsp.cc, 1);
  const uint32_t acked = rsp.cack + 1 - sender.start;
  ASSERT_LE(acked, sender.top) << "acknowledges what was never sent";
  sender.tpdcid = rsp.spdcid;
  if (acked < sender.una) return;
  if (rsp.req == contract::AckReq::kClear) {
    ASSERT_EQ(rsp.ack_offset, 1);
    const Sent& sent = sender.packets[acked];
    ASSERT_EQ(sender.messages[sent.message].kind, Kind::kBadWrite);
    ASSERT_EQ(rsp.return_code, static_cast<uint8_t>(ReturnCode::kBadMkey));
    sender.messages[sent.message].refused = true;
    if (static_cast<int32_t>(rsp.cack + 1 - sender.clear) > 0) {
      sender.clear = rsp.cack + 1;
    }
    sender.owes_clear = true;
  } else if (static_cast<int32_t>(rsp.cack - sender.clear) > 0) {
    sender.clear = rsp.cack;
  }
  for (uint32_t i = sender.una; i < acked; ++i) {
    sender.packets[i].arrived = true;
    sender.packets[i].lost = false;
    const Message& message = sender.messages[sender.packets[i].message];
    if (message.dc && !message.fails && message.kind != Kind::kBadWrite &&
        i + 1 == message.first + message.count) {
      EXPECT_TRUE(message.shown) << "acknowledged before it was visible";
    }
  }
  if (acked > sender.una) sender.heard = bench_.cycle;
  sender.una = acked;
  uint32_t above = 0;
  for (uint32_t bit = kWindow; bit-- > 0;) {
    const uint32_t i = acked + bit;
    if (i >= sender.top) {
      ASSERT_EQ((rsp.sack_bitmap >> bit) & 1, 0u) << "never sent";
      continue;
    }
    Sent& sent = sender.packets[i];
    if ((rsp.sack_bitmap >> bit) & 1) {
      sent.arrived = true;
      sent.lost = false;
      ++above;
    } else if (above >= kReorder && !sent.arrived &&
               sent.at + kRoundTrip < bench_.cycle) {
      sent.lost = true;
    }
  }
}

void RudRun::Take(const rtl::Response& rsp) {
  if (random_.Chance(trouble_)) return;
  const auto sender = std::ranges::find_if(senders_, [&](const Sender& s) {
    return s.spdcid == rsp.dpdcid && s.fa == rsp.fa_lo;
  });
  ASSERT_NE(sender, senders_.end());
  if (rsp.kind == rtl::ResponseKind::kNack) {
    TakeNack(*sender, rsp);
  } else {
    TakeAck(*sender, rsp);
  }
}

void RudRun::Complete(const rtl::Place& record) {
  const contract::Completion& entry = record.ev.entry;
  ++credits_;
  ASSERT_EQ(record.ev.credit, 1);
  if (!record.ev.write) return;  // Of a WRITE that failed.
  ASSERT_LT(entry.peer, senders_.size());
  Sender& sender = senders_[entry.peer];
  ASSERT_LT(entry.header_data, sender.messages.size());
  Message& message = sender.messages[entry.header_data];
  ASSERT_TRUE(message.completes());
  ASSERT_FALSE(message.completed) << "once";
  message.completed = true;
  ASSERT_EQ(entry.message_length, message.length);
  if (message.fails) {
    ASSERT_EQ(entry.status, contract::Status::kInitiatorError);
    if (message.kind == Kind::kSend) posted_.erase(entry.op_context);
    return;
  }
  uint32_t room = message.length;
  if (message.kind == Kind::kSend) {
    ASSERT_EQ(posted_.count(entry.op_context), 1u);
    const rtl::RxBuffer buffer = posted_[entry.op_context];
    posted_.erase(entry.op_context);
    room = buffer.length;
    if (message.placed != 0) {
      ASSERT_EQ(message.base, buffer.iova);
    }
  }
  ASSERT_EQ(entry.status, message.length > room ? contract::Status::kTruncated
                                                : contract::Status::kOk);
  ASSERT_EQ(entry.length, std::min(message.length, room));
  ASSERT_EQ(message.placed, entry.length) << "complete before all is placed";
}

void RudRun::Take(const rtl::Place& record) {
  if (record.stream != 0) {
    ASSERT_FALSE(path_.delivered.empty());
    const rtl::RxPacket pkt = path_.delivered.front();
    path_.delivered.pop_front();
    ASSERT_EQ(record.stream, pkt.payload_bytes);
    if (record.bytes != 0) sender_of_[record.tpdc] = pkt.initiator;
    Sender& sender = senders_[pkt.initiator];
    Sent& sent = sender.packets[pkt.psn - sender.start];
    Message& message = sender.messages[sent.message];
    if (record.bytes != 0) {
      ASSERT_FALSE(sent.placed) << "placed twice";
      ASSERT_NE(message.kind, Kind::kBadWrite);
      const uint64_t base = record.iova - pkt.message_offset;
      if (message.placed == 0) message.base = base;
      ASSERT_EQ(base, message.base);
      if (message.kind == Kind::kSend) {
        ASSERT_LE(record.bytes, pkt.payload_bytes);
      } else {
        ASSERT_EQ(base, kRegion + pkt.buffer_offset);
        ASSERT_EQ(record.bytes, pkt.payload_bytes);
      }
      sent.placed = true;
      message.placed += record.bytes;
    }
  } else {
    ASSERT_EQ(record.bytes, 0);
  }
  if (record.complete) {
    ASSERT_NO_FATAL_FAILURE(Complete(record));
  }
  if (record.visible) {
    const auto known = sender_of_.find(record.tpdc);
    const uint32_t initiator =
        known == sender_of_.end() ? record.ev.entry.peer : known->second;
    ASSERT_LT(initiator, senders_.size());
    Sender& sender = senders_[initiator];
    ASSERT_LT(record.psn - sender.start, sender.packets.size());
    Report report{record.tpdc, record.psn, {}};
    for (Message& message : sender.messages) {
      if (message.kind == Kind::kSend ? message.completed
                                      : message.placed == message.length) {
        report.whole.push_back(&message);
      }
    }
    to_show_.push_back(std::move(report));
  }
}

void RudRun::CheckEnd() {
  for (const Sender& sender : senders_) {
    for (const Message& message : sender.messages) {
      const bool given_up = message.fails && message.count == 1;
      if (message.kind == Kind::kBadWrite) {
        EXPECT_TRUE(message.refused) << "an error was lost";
        EXPECT_EQ(message.placed, 0u);
      } else if (message.kind == Kind::kSend) {
        EXPECT_TRUE(message.completed || given_up);
      } else if (message.kind == Kind::kReportingWrite) {
        EXPECT_EQ(message.completed, !message.fails);
      } else if (!message.fails) {
        EXPECT_EQ(message.placed, message.length);
      }
    }
  }
  EXPECT_EQ(bench_.credits_taken.size(), credits_);
  EXPECT_TRUE(path_.delivered.empty()) << "every payload has its record";
  EXPECT_EQ(bench_->deadline_valid_o, 0) << "a message counts as open";
}

void RudRun::Run() {
  int quiet = 0;  // Cycles since everything was acknowledged.
  for (int i = 0; i < 600000 && quiet < 600; ++i) {
    quiet = AllAcknowledged() ? quiet + 1 : 0;
    PostBuffers();
    bench_.credit_ok = random_.Chance(0.1) ? ~(1u << 4) : 0xffffffff;
    for (Sender& sender : senders_) Send(sender);
    path_.Deliver();
    if (!to_show_.empty() && random_.Chance(0.03)) {
      const Report report = to_show_.front();
      to_show_.pop_front();
      for (Message* message : report.whole) message->shown = true;
      bench_.Show(report.pdc, report.psn);
    } else {
      bench_.Cycle();
    }
    for (; responses_ < bench_.responses.size(); ++responses_) {
      ASSERT_NO_FATAL_FAILURE(Take(bench_.responses[responses_]));
    }
    for (; places_ < bench_.places.size(); ++places_) {
      ASSERT_NO_FATAL_FAILURE(Take(bench_.places[places_]));
    }
  }
  ASSERT_TRUE(AllAcknowledged());
  CheckEnd();
}

TEST(AcceptRudRandomTest, EveryMessageIsDeliveredOnceAndWhole) {
  const uint32_t first = TestSeed();
  for (uint32_t seed = first; seed < first + 12; ++seed) {
    SCOPED_TRACE(seed);
    RudRun run(seed);
    ASSERT_NO_FATAL_FAILURE(run.Run());
  }
}

}  // namespace
}  // namespace heddle::test
