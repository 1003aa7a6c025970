// SPDX-License-Identifier: Apache-2.0
// Go-back-N initiators over a path that drops, duplicates and reorders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/transport/accept_path.h"

namespace heddle::test {
namespace {

constexpr uint16_t kMtu = 1024;
constexpr uint32_t kWindow = 64;
constexpr uint64_t kTimeout = 600;  // Cycles.
constexpr int kContexts = 3;

struct Message {
  uint32_t length = 0;
  bool fails = false;     // Collapses into a packet with ie=1.
  bool given_up = false;  // That is its first packet.
};

// One initiator with all packets it will ever send.
struct Sender {
  uint32_t fa = 0;
  uint16_t spdcid = 0;
  uint32_t start = 0;
  uint16_t tpdcid = 0;
  std::vector<Message> messages;
  std::vector<rtl::RxPacket> packets;
  uint32_t una = 0;  // Index of the oldest packet not acknowledged.
  uint32_t next = 0;
  uint32_t top = 0;  // Sent so far.
  uint64_t wait_until = 0;
  uint64_t heard = 0;
  size_t completed = 0;  // Messages seen complete at the target.
};

Sender MakeSender(sim::base::Random& random, uint32_t index) {
  Sender sender;
  sender.fa = 0x0a000000 + random.Below(4);
  sender.spdcid = static_cast<uint16_t>(0x40 + index);
  sender.start = static_cast<uint32_t>(random.Next());
  const uint32_t count = 10 + random.Below(20);
  for (uint32_t m = 0; m < count; ++m) {
    Message message;
    message.length =
        random.Chance(0.6) ? random.Below(200) : random.Below(8 * kMtu);
    message.fails = random.Chance(0.1);
    sender.messages.push_back(message);
    const uint32_t pieces = std::max(1u, (message.length + kMtu - 1) / kMtu);
    const uint32_t collapse = message.fails ? random.Below(pieces) : pieces;
    const uint32_t context = random.Below(kContexts);
    sender.messages.back().given_up = collapse == 0;
    for (uint32_t p = 0; p < pieces && p <= collapse; ++p) {
      rtl::RxPacket pkt = {};
      pkt.source_fa_lo = sender.fa;
      pkt.pds_type = contract::PdsType::kRodReq;
      pkt.next_hdr = 3;
      pkt.psn = sender.start + static_cast<uint32_t>(sender.packets.size());
      pkt.spdcid = sender.spdcid;
      pkt.opcode = 5;
      pkt.eom = p == pieces - 1 || p == collapse;
      pkt.ie = p == collapse;
      pkt.hd = 1;
      pkt.message_id = static_cast<uint16_t>(m + 1);
      pkt.pid_on_fep = 7;
      pkt.resource_index = static_cast<uint16_t>(context);
      pkt.initiator = index;
      SetPiece(&pkt, p, kMtu, message.length, m);
      pkt.ar = random.Chance(0.2) || pkt.eom;
      sender.packets.push_back(pkt);
    }
  }
  return sender;
}

TEST(AcceptRandomTest, EveryMessageIsDeliveredOnceAndInOrder) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    std::printf("seed %lu\n", static_cast<unsigned long>(seed));
    SCOPED_TRACE(seed);
    sim::base::Random random(seed);
    AcceptBench bench;
    bench.random = &random;
    bench.stall = 0.25 * random.Below(4);
    const double trouble = 0.03 * random.Below(4);
    Path path(bench, random, trouble);
    for (size_t c = 0; c < kContexts; ++c) {
      Context context = {};
      context.pid = 7;
      context.ri = static_cast<uint16_t>(c);
      bench.contexts[c] = context;
    }
    std::vector<Sender> senders;
    size_t total = 0;
    for (uint32_t i = 0; i < 5; ++i) {
      senders.push_back(MakeSender(random, i));
      total += senders.back().messages.size();
    }

    std::map<uint64_t, rtl::RxBuffer> posted;  // By op_context.
    struct Open {
      bool active = false;
      uint64_t iova = 0;
      uint32_t placed = 0;
    };
    std::map<uint8_t, Open> open;  // By target PDC.
    uint64_t next_context = 1;
    uint64_t streamed = 0;
    size_t completed = 0, discarded = 0, seen_responses = 0, seen_places = 0;
    const auto acknowledged = [](const Sender& s) {
      return s.una == s.packets.size();
    };
    int quiet = 0;  // Cycles since everything was acknowledged.

    for (int i = 0; i < 400000 && quiet < 100; ++i) {
      quiet = std::ranges::all_of(senders, acknowledged) ? quiet + 1 : 0;
      if (random.Chance(0.03)) {
        const size_t c = random.Below(kContexts);
        if (bench.contexts[c].buffers.size() < 4) {
          const uint64_t id = next_context++;
          bench.AddBuffer(c, random.Below(7000), id << 20, id);
          posted[id] = bench.contexts[c].buffers.back();
        }
      }
      bench.credit_ok = random.Chance(0.1) ? ~(1u << 4) : 0xffffffff;

      for (Sender& sender : senders) {
        if (sender.una < sender.top && bench.cycle > sender.heard + kTimeout) {
          sender.heard = bench.cycle;
          sender.next = sender.una;
        }
        if (bench.cycle < sender.wait_until || !random.Chance(0.2)) continue;
        if (sender.next >= sender.packets.size() ||
            sender.next >= sender.una + kWindow) {
          continue;
        }
        rtl::RxPacket pkt = sender.packets[sender.next];
        pkt.retx = sender.next < sender.top;
        pkt.ar = pkt.ar || pkt.retx;
        pkt.syn = sender.tpdcid == 0;
        pkt.dpdcid = sender.tpdcid;
        pkt.psn_offset =
            pkt.syn ? static_cast<uint16_t>(sender.next) : uint16_t{0};
        if (sender.una == sender.top) sender.heard = bench.cycle;
        ++sender.next;
        sender.top = std::max(sender.top, sender.next);
        path.Submit(pkt);
        if (random.Chance(trouble)) bench.SendSquashed(pkt);
      }
      path.Deliver();
      bench.Cycle();

      for (; seen_responses < bench.responses.size(); ++seen_responses) {
        const rtl::Response& rsp = bench.responses[seen_responses];
        if (random.Chance(trouble)) continue;
        auto sender =
            std::find_if(senders.begin(), senders.end(), [&](Sender& s) {
              return s.spdcid == rsp.dpdcid && s.fa == rsp.fa_lo;
            });
        ASSERT_NE(sender, senders.end());
        if (rsp.kind == rtl::ResponseKind::kNack) {
          // Nothing here ever justifies a fatal one.
          ASSERT_TRUE(rsp.code == 7 || rsp.code == 10 || rsp.code == 13)
              << int{rsp.code};
          sender->next = sender->una;
          sender->heard = bench.cycle;
          sender->wait_until = bench.cycle + (rsp.code == 13 ? 10 : 100);
          continue;
        }
        ASSERT_LE(rsp.return_code, 1);
        const uint32_t acked = rsp.cack + 1 - sender->start;
        ASSERT_LE(acked, sender->top);
        sender->tpdcid = rsp.spdcid;
        if (acked > sender->una) {
          sender->una = acked;
          sender->next = std::max(sender->next, acked);
          sender->heard = bench.cycle;
        }
      }
      for (; seen_places < bench.places.size(); ++seen_places) {
        const rtl::Place& record = bench.places[seen_places];
        streamed += record.stream;
        ASSERT_LE(record.bytes, record.stream);
        Open& message = open[record.tpdc];
        if (record.first) {
          ASSERT_FALSE(message.active);
          message = {true, record.iova, 0};
        }
        if (record.bytes != 0) {
          ASSERT_TRUE(message.active);
          ASSERT_EQ(record.iova, message.iova + message.placed);
          message.placed += record.bytes;
        }
        if (!record.complete) continue;
        // An ie=1 som packet leaves no record that opens the message.
        const contract::Completion& entry = record.ev.entry;
        ASSERT_LT(entry.peer, senders.size());
        Sender& sender = senders[entry.peer];
        ASSERT_EQ(entry.source_fa_lo, sender.fa);
        // A message given up before its first packet may find no buffer.
        while (sender.completed < entry.header_data &&
               sender.messages[sender.completed].given_up) {
          ++sender.completed;
          ++discarded;
        }
        ASSERT_EQ(entry.header_data, sender.completed) << "once, in order";
        const Message& sent = sender.messages[sender.completed++];
        ASSERT_EQ(posted.count(entry.op_context), 1u);
        const rtl::RxBuffer buffer = posted[entry.op_context];
        posted.erase(entry.op_context);
        ASSERT_EQ(entry.message_length, sent.length);
        ASSERT_EQ(record.ev.write, 1);
        ASSERT_EQ(record.ev.credit, 1);
        if (sent.fails) {
          ASSERT_EQ(entry.status, contract::Status::kInitiatorError);
          ASSERT_LE(message.placed, buffer.length);
        } else {
          ASSERT_EQ(entry.status, sent.length > buffer.length
                                      ? contract::Status::kTruncated
                                      : contract::Status::kOk);
          ASSERT_EQ(entry.length, std::min(sent.length, buffer.length));
          ASSERT_EQ(message.placed, entry.length);
          if (message.placed != 0) {
            ASSERT_EQ(message.iova, buffer.iova);
          }
        }
        message = {};
        ++completed;
      }
    }
    for (const Sender& sender : senders) {
      for (size_t m = sender.completed; m < sender.messages.size(); ++m) {
        EXPECT_TRUE(sender.messages[m].given_up);
        ++discarded;
      }
    }
    EXPECT_EQ(completed + discarded, total);
    EXPECT_EQ(bench.credits_taken.size(), completed);
    for (int i = 0; i < 300; ++i) {
      path.Deliver();
      bench.Cycle();
    }
    for (; seen_places < bench.places.size(); ++seen_places) {
      streamed += bench.places[seen_places].stream;
      EXPECT_EQ(bench.places[seen_places].complete, 0);
    }
    EXPECT_EQ(streamed, path.payload_bytes) << "every payload byte accounted";
    EXPECT_EQ(bench->deadline_valid_o, 0) << "a message counts as open";
  }
}

}  // namespace
}  // namespace heddle::test
