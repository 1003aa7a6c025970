// SPDX-License-Identifier: Apache-2.0
// Drives the initiator half of the transport against reference targets behind
// a network that delays, loses, doubles and reorders.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "Vinitiator_probe.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle {

// Endpoints of a message, apart from the address of its target.
struct Endpoints {
  uint32_t job_id = 0;
  uint16_t source_ri = 0;
  uint16_t rx_index = 0;
  bool relative = false;
};

// A message as the test posted it, and what became of it.
struct PostedMessage {
  uint32_t peer = 0;
  uint32_t length = 0;
  uint32_t packets = 0;
  bool rud = false;
  Endpoints endpoints = {};
  int completions = 0;
  contract::Status status = contract::Status::kOk;
  uint16_t detail = 0;
  bool failed = false;                        // The test withdrew its payload.
  std::optional<uint32_t> withdrawn_at = {};  // It does so at this packet.
  std::optional<contract::ReturnCode> error = {};  // Its target refuses it,
  uint32_t error_at = 0;                           // at this packet.
  std::set<uint32_t> received = {};  // Packets the target accepted.
  uint32_t delivered() const { return static_cast<uint32_t>(received.size()); }
  bool met_restart = false;  // Its target began anew,
  bool had_whole = false;    // and had all of it before.
  bool write = false;
  bool read = false;  // A READ: the target answers each with data,
  std::optional<contract::ReturnCode> data_error = {};  // or once with this.
  uint32_t pdc = 0;       // Its packets left on it,
  uint32_t entry = 0;     // as this table entry's.
  bool withheld = false;  // Its data never come.
  uint32_t asked = 0;     // Packets of it that ask for data.
  uint32_t taken = 0;     // Answers on their way to memory, or there.
  uint32_t settled = 0;   // Of these, there.
};

// Probabilities per packet and direction.
struct Network {
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;
  uint32_t delay_cycles = 20;
  // Of all packets to targets together, 0: none. A packet that finds more than
  // `marking_packets` before it is marked, one that finds `queue_packets` lost.
  uint32_t bottleneck_cycles = 0;
  uint32_t queue_packets = 0;
  uint32_t marking_packets = 0;
};

// One target. Of a ROD PDC it accepts only the next PSN, of a RUD PDC any in
// the window.
struct Target {
  bool refuses = false;  // No receive buffer: NACK NO_PKT_BUFFER.
  std::optional<uint64_t> refuses_message = {};  // The same, of this alone.
  bool silent = false;                           // Answers nothing.
  bool mute = false;                             // Its ACKs and NACKs are lost.
  bool withholds_data = false;  // Of READs, though it acknowledges them.
  bool loses_closes = false;    // Close Commands never arrive.
  bool refuses_closes = false;  // No room for a tombstone.
  // Before it accepts the next request, once: a NACK with another spdcid.
  std::optional<contract::NackCode> strange_nack;
  // Answer to the next request, once; the PDC is gone then.
  std::optional<contract::NackCode> refusal;
  std::optional<contract::NackCode> syn_answer;  // Refuses a first PDC so.
  double drops_ahead = 0;     // RUD: has no room for packets behind a gap,
  bool one_message = false;   // but for those of the message it is receiving.
  bool refuses_each = false;  // Each packet of a refused message by itself.
  bool answers_refused = false;  // READs also, as if they were not refused.
  uint8_t mp_range = 0;          // UET 2.14, in its ACKs; 0: it states none.
  bool reorders = false;         // ROD: keeps up to 64 packets after a gap.
};

class InitiatorBench {
 public:
  static constexpr uint16_t kTargetPdcid = 0x4400;
  static constexpr uint64_t kCycleNs = 4;
  // Longer than a frame lives, in the NIC too.
  static constexpr uint64_t kDownCycles = 150;

  explicit InitiatorBench(uint32_t seed) : rng_(seed) {
    // Memories initialise themselves.
    for (int i = 0; i < 1100; ++i) {
      Cycle();
    }
  }

  Vinitiator_probe* operator->() { return dut_.operator->(); }

  void Post(uint32_t peer, uint32_t length, bool read = false) {
    const uint32_t packets = length == 0 ? 1 : (length + 1023) / 1024;
    messages.push_back({.peer = peer,
                        .length = length,
                        .packets = packets,
                        .rud = rud,
                        .endpoints = endpoints,
                        .read = read});
    to_post_.push_back(messages.size() - 1);
  }

  bool AllDone() const {
    for (const PostedMessage& m : messages) {
      if (m.completions == 0) {
        return false;
      }
    }
    return true;
  }

  // Returns whether all messages completed within `cycles`.
  bool Run(uint64_t cycles) {
    for (uint64_t i = 0; i < cycles; ++i) {
      if (AllDone()) {
        return true;
      }
      Cycle();
    }
    return AllDone();
  }

  void Cycle();

  std::vector<PostedMessage> messages;
  std::map<uint32_t, Target> targets;
  bool rud = false;         // The messages posted next need no order,
  Endpoints endpoints;      // and have these.
  bool plain_acks = false;  // Of RUD PDCs also.
  bool loses_pdcs = false;  // PDCs end, and with them what was to come by them.
  Network network;
  std::set<uint64_t> lose;  // These packets, counted from 0, are lost as well.
  std::vector<std::string> errors;  // Broken promises, with the cycle.
  uint64_t cycle = 0;
  // The target sends a Clear or Close Request by each of its PDCs;
  void Ask(uint32_t peer, contract::AckReq req);
  // or refuses a control packet about `psn`, without it the newest one
  // accepted, that it does not know.
  void RefuseControl(uint32_t peer, std::optional<uint32_t> psn);
  // The targets forget every PDC they know, but not that there was one.
  void ForgetPdcs() { pdcs_.clear(); }
  // A new target of `peer` begins: all that the former had is gone. No frame to
  // the former one lives as long as that takes; its answers do.
  void Restart(uint32_t peer);
  // The same at once and without a gap: the target is reset, and answers SYNs
  // of the PDCs that it had with INVALID_SYN.
  void Reset(uint32_t peer);

  // An answer to the READ settles that came by an earlier opening of its PDC.
  void SettleStray(uint64_t message);

  // Asks the initiators of `peer` to close, as targets short of PDCs do.
  void AskToClose(uint32_t peer);
  // PDCs that the targets know.
  size_t known_pdcs() const { return pdcs_.size(); }

  uint64_t opened = 0;       // PDCs opened, again or for the first time.
  uint64_t closes = 0;       // Close Commands that a target executed.
  uint64_t closes_seen = 0;  // Issued, retransmissions included.
  uint32_t idle_ticks = 0;
  uint32_t safety_ticks = 0;
  uint32_t cwnd_bytes = 0;
  uint32_t base_rtt_ns = 0;               // With `cwnd_bytes`: NSCC.
  uint32_t pdc_seed = 0x12345671;         // The first Start_PSN ^ 1.
  std::map<uint16_t, uint64_t> ended_at;  // By PDCID: cycle of its close.
  uint64_t packets_seen = 0;
  uint64_t wraps_seen = 0;  // Packets with PSN 0.
  uint64_t retransmissions_seen = 0;
  uint64_t clears_seen = 0;
  uint64_t asks_seen = 0;
  uint32_t longest_unasked = 0;  // Packets in a row that request no ACK.
  uint64_t packets_lost = 0;
  uint64_t packets_marked = 0;
  uint32_t most_queued = 0;  // At the bottleneck.
  uint64_t timeouts_seen = 0;
  uint64_t restarts_seen = 0;
  uint32_t payload_delay_cycles = 5;
  uint32_t tick_cycles = 16;
  uint32_t data_delay_cycles = 40;   // Until an answer to a READ comes,
  uint32_t data_spacing_cycles = 0;  // at least so long after the one before,
  uint32_t place_cycles = 10;        // and then until it is in memory.
  uint32_t most_due = 0;             // Packets requested and not answered.
  uint32_t acks_requested = 0;       // Packets with `ar`.
  double ready = 0.75;  // Probability that what follows takes a record.
  double withdraw = 0;  // Probability that a packet's payload cannot be read.
  std::map<uint32_t, uint64_t> packets_to;  // By peer, without ACK Requests.

 private:
  struct Packet {
    uint64_t due = 0;
    uint32_t peer = 0;
    uint16_t spdcid = 0;
    uint16_t tpdcid = 0;
    uint32_t start_psn = 0;
    uint32_t psn = 0;
    uint32_t msg = 0;
    uint64_t context = 0;
    uint32_t index = 0;
    bool last = false, syn = false, retx = false, ar = false, failed = false;
    bool clear = false;
    uint32_t clear_psn = 0;
    bool close = false;
    bool ask = false;
    bool rud = false;
    uint32_t pdc = 0;
    bool marked = false;
  };
  // Data of a READ on their way to memory.
  struct Data {
    uint64_t due = 0;
    uint32_t pdc = 0, msg = 0;
    uint16_t spdcid = 0;
    uint32_t start_psn = 0;  // PDCIDs are used again; their PSNs are others.
    uint64_t context = 0;
    uint8_t code = 0;  // Not data, but this error.
    bool stray = false;
  };
  struct Answer {
    uint64_t due = 0;
    bool nack = false;
    bool control = false;  // With nack: a control packet that asks for `req`.
    uint16_t dpdcid = 0, spdcid = 0;
    uint32_t peer = 0, cack = 0, psn = 0;
    uint8_t code = 0, return_code = 0;
    bool asks = false;
    contract::AckReq req = contract::AckReq::kNone;
    bool sack = false;
    uint8_t range = 0;
    uint32_t sack_base = 0;
    uint64_t sack_bitmap = 0;
    bool data = false;  // Of a small READ.
    bool marked = false;
    bool retx = false;
  };
  struct TargetPdc {
    uint16_t tpdcid = 0;
    uint32_t start_psn = 0;
    uint32_t expected = 0;
    bool rud = false;
    std::set<uint32_t> ahead = {};         // RUD: accepted after a gap.
    std::map<uint32_t, Packet> kept = {};  // ROD: not accepted yet.
    uint64_t latest = 0;                   // Message of the last one before it.
    bool gap = false;
    bool refused = false;  // The expected packet was.
    uint32_t unanswered = 0;
    struct Stored {
      uint32_t psn;
      contract::ReturnCode code;
    };
    std::deque<Stored> stored = {};         // Error answers, UET 2.15, by PSN.
    std::optional<uint64_t> discards = {};  // The rest of this message.
  };
  struct OpenPdc {
    uint32_t peer = 0;
    uint16_t spdcid = 0;
    uint32_t start_psn = 0;
    bool rud = false;
  };

  bool Chance(double p) {
    return p > 0 && std::uniform_real_distribution<>(0, 1)(rng_) < p;
  }
  void Broken(const std::string& what) {
    errors.push_back("cycle " + std::to_string(cycle) + ": " + what);
  }
  template <typename T>
  bool Transmit(std::deque<T>& line, T item);
  void Send(Packet p);
  void Receive(const Packet& p);
  void AnswerUnknown(const Packet& p);
  void Accept(const Packet& p);
  void ReceiveAhead(const Packet& p, TargetPdc& pdc);
  void Keep(const Packet& p, TargetPdc& pdc);
  void Clear(const Packet& p, TargetPdc& pdc);
  void Advance(TargetPdc& pdc);
  void Reply(const Packet& p, const TargetPdc& pdc, Answer a);
  void Stand(const Packet& p, const TargetPdc& pdc);
  bool Refuse(const Packet& p, TargetPdc& pdc);
  void TakePacket();
  void Return(const Packet& p);
  bool Takes(const Data& d);
  void Settle();
  void TakeDone();

  sim::model::ClockedModel<Vinitiator_probe> dut_;
  std::mt19937 rng_;
  std::deque<size_t> to_post_;
  std::deque<Packet> bottleneck_;
  uint64_t bottleneck_free_ = 0;
  std::deque<Packet> to_target_;
  std::deque<Answer> to_initiator_;
  std::deque<std::pair<uint64_t, uint32_t>> reading_;  // Due cycle, message.
  std::deque<uint32_t> to_free_;
  std::deque<Data> data_;
  std::deque<std::pair<uint64_t, Data>> placing_;  // Due cycle.
  uint16_t back_decided_ = 0;
  uint16_t back_done_ = 0;
  std::map<uint32_t, uint32_t> cut_;         // No more answers, by table entry.
  std::map<uint32_t, uint32_t> due_;         // By PDC.
  uint64_t data_at_ = 0;                     // When the last data come.
  std::map<uint32_t, uint64_t> context_of_;  // Table entry -> message.
  uint32_t unasked_ = 0;
  std::map<uint32_t, OpenPdc> open_;
  std::map<std::pair<uint32_t, uint16_t>, TargetPdc> pdcs_;
  std::set<std::pair<uint32_t, uint16_t>> refused_syn_;
  std::set<std::pair<uint32_t, uint16_t>>
      former_;  // Of targets before a reset.
  uint16_t next_tpdcid_ = kTargetPdcid;
  std::map<uint32_t, uint64_t> down_until_;       // Cycle, by peer.
  std::set<std::pair<uint32_t, uint16_t>> used_;  // {peer, TPDCID}.
  uint16_t seq_done_ = 0;
  std::map<uint32_t, uint64_t> accepted_;  // Latest message, by peer.
};

}  // namespace heddle
