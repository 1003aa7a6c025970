// SPDX-License-Identifier: Apache-2.0
#include "tests/rtl/initiator/initiator_bench.h"

#include <algorithm>

namespace heddle {

using contract::AckReq;
using contract::NackCode;
using contract::Status;

template <typename T>
bool InitiatorBench::Transmit(std::deque<T>& line, T item) {
  if (Chance(network.loss)) {
    return false;
  }
  item.due = cycle + network.delay_cycles;
  const int copies = Chance(network.duplicate) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    line.push_back(item);
    if (Chance(network.reorder) && line.size() > 1) {
      std::swap(line[line.size() - 1], line[line.size() - 2]);
    }
  }
  return true;
}

void InitiatorBench::Send(Packet p) {
  if (network.bottleneck_cycles != 0) {
    const auto queued = static_cast<uint32_t>(bottleneck_.size());
    if (queued >= network.queue_packets) {
      ++packets_lost;
      return;
    }
    most_queued = std::max(most_queued, queued + 1);
    p.marked = queued > network.marking_packets;
    packets_marked += p.marked;
    bottleneck_.push_back(p);
    return;
  }
  if (lose.contains(packets_seen - 1) || !Transmit(to_target_, p)) {
    ++packets_lost;
  }
}

void InitiatorBench::Reply(const Packet& p, const TargetPdc& pdc, Answer a) {
  if (targets[p.peer].mute) {
    return;
  }
  a.dpdcid = p.spdcid;
  a.spdcid = pdc.tpdcid;
  a.peer = p.peer;
  a.marked = p.marked;
  a.retx = p.retx;
  const uint8_t range = targets[p.peer].mp_range;
  if ((pdc.rud || range != 0) && !a.nack && !plain_acks) {
    a.sack = true;
    a.range = range;
    a.sack_base = a.cack + 1;
    for (uint32_t i = 0; i < 64; ++i) {
      const uint32_t psn = a.sack_base + i;
      const bool have = static_cast<int32_t>(psn - pdc.expected) < 0 ||
                        pdc.ahead.contains(psn);
      a.sack_bitmap |= uint64_t{have} << i;
    }
  }
  Transmit(to_initiator_, a);
}

void InitiatorBench::Ask(uint32_t peer, AckReq req) {
  for (const auto& [key, pdc] : pdcs_) {
    if (key.first == peer) {
      Transmit(to_initiator_, Answer{.nack = true,
                                     .control = true,
                                     .dpdcid = key.second,
                                     .spdcid = pdc.tpdcid,
                                     .peer = peer,
                                     .req = req});
    }
  }
}

void InitiatorBench::RefuseControl(uint32_t peer, std::optional<uint32_t> psn) {
  for (const auto& [key, pdc] : pdcs_) {
    if (key.first == peer) {
      Transmit(to_initiator_,
               Answer{.nack = true,
                      .dpdcid = key.second,
                      .peer = peer,
                      .psn = psn.value_or(pdc.expected - 1),
                      .code = static_cast<uint8_t>(NackCode::kUnexpEvent)});
    }
  }
}

// No PDC has the TPDCID. What had it may have executed the packet.
void InitiatorBench::AnswerUnknown(const Packet& p) {
  if (p.clear) {
    return;
  }
  const bool ended = used_.contains({p.peer, p.tpdcid});
  Reply(p, TargetPdc{},
        {.nack = true,
         .psn = p.psn,
         .code = static_cast<uint8_t>(ended ? NackCode::kClosing
                                            : NackCode::kInvDpdcid)});
}

void InitiatorBench::Restart(uint32_t peer) {
  down_until_[peer] = cycle + kDownCycles;
  std::erase_if(pdcs_,
                [&](const auto& pdc) { return pdc.first.first == peer; });
  std::erase_if(used_, [&](const auto& id) { return id.first == peer; });
  accepted_[peer] = 0;
  for (PostedMessage& m : messages) {
    if (m.peer == peer && m.completions == 0) {
      m.met_restart = true;
      m.had_whole |= m.delivered() == m.packets;
      m.received.clear();
    }
  }
}

void InitiatorBench::Reset(uint32_t peer) {
  for (const auto& [key, pdc] : pdcs_) {
    if (key.first == peer) {
      former_.insert(key);
    }
  }
  Restart(peer);
  down_until_[peer] = cycle;
}

// Reference of a target, UET 2.12 to 2.17.
void InitiatorBench::Receive(const Packet& p) {
  Target& target = targets[p.peer];
  if (cycle < down_until_[p.peer] || target.silent ||
      (target.loses_closes && p.close)) {
    return;
  }
  const auto key = std::make_pair(p.peer, p.spdcid);
  auto it = pdcs_.find(key);
  if (p.syn && it == pdcs_.end()) {
    if (target.syn_answer && refused_syn_.empty()) {
      refused_syn_ = {key};
    }
    if (target.syn_answer && refused_syn_.contains(key)) {
      const TargetPdc none{};
      Reply(p, none,
            {.nack = true,
             .psn = p.psn,
             .code = static_cast<uint8_t>(*target.syn_answer)});
      return;
    }
    if (former_.contains(key)) {
      Reply(p, TargetPdc{},
            {.nack = true,
             .psn = p.psn,
             .code = static_cast<uint8_t>(NackCode::kInvalidSyn)});
      return;
    }
    it = pdcs_
             .emplace(key, TargetPdc{.tpdcid = next_tpdcid_++,
                                     .start_psn = p.start_psn,
                                     .expected = p.start_psn,
                                     .rud = p.rud})
             .first;
    used_.emplace(p.peer, it->second.tpdcid);
  }
  if (it == pdcs_.end()) {
    AnswerUnknown(p);
    return;
  }
  TargetPdc& pdc = it->second;
  if (p.syn ? p.start_psn != pdc.start_psn : p.tpdcid != pdc.tpdcid) {
    // A SYN that came late may have opened another one.
    if (!loses_pdcs) {
      Broken("packet of another PDC");
    }
    if (!p.syn) {
      AnswerUnknown(p);
      return;
    }
    Reply(p, TargetPdc{},
          {.nack = true,
           .psn = p.psn,
           .code = static_cast<uint8_t>(NackCode::kInvalidSyn)});
    return;
  }
  if (p.ask) {
    if (p.psn != pdc.expected - 1) {
      Broken("ACK Request of another PSN than the newest");
    }
    Stand(p, pdc);
    return;
  }
  Clear(p, pdc);
  if (p.clear) {
    return;
  }
  const auto ahead = static_cast<int32_t>(p.psn - pdc.expected);
  if (ahead < 0 || pdc.ahead.contains(p.psn)) {
    Stand(p, pdc);
    return;
  }
  if (ahead > 0 && pdc.rud) {
    ReceiveAhead(p, pdc);
    return;
  }
  if (ahead > 0 && ahead < 64 && target.reorders && !pdc.refused) {
    Keep(p, pdc);
    return;
  }
  if (ahead > 0) {
    if (!pdc.gap || p.retx) {
      Reply(p, pdc,
            {.nack = true,
             .psn = p.psn,
             .code = static_cast<uint8_t>(NackCode::kRodOoo)});
    }
    pdc.gap = true;
    return;
  }
  if (p.close) {
    if (!p.ar) {
      Broken("Close Command without ar");
    }
    if (target.refuses_closes) {
      Reply(p, pdc,
            {.nack = true,
             .psn = p.psn,
             .code = static_cast<uint8_t>(NackCode::kNoResource)});
      return;
    }
    Reply(p, pdc, {.cack = p.psn, .psn = p.psn});
    pdcs_.erase(it);
    ended_at[p.spdcid] = cycle;
    ++closes;
    return;
  }
  if (target.strange_nack) {
    TargetPdc other = pdc;
    ++other.tpdcid;
    Reply(p, other,
          {.nack = true,
           .psn = p.psn,
           .code = static_cast<uint8_t>(*target.strange_nack)});
    target.strange_nack.reset();
  }
  if (target.refusal) {
    Reply(p, pdc,
          {.nack = true,
           .psn = p.psn,
           .code = static_cast<uint8_t>(*target.refusal)});
    target.refusal.reset();
    pdcs_.erase(it);
    return;
  }
  if (target.refuses || target.refuses_message == p.context) {
    pdc.gap = pdc.refused = true;
    Reply(p, pdc,
          {.nack = true,
           .psn = p.psn,
           .code = static_cast<uint8_t>(NackCode::kNoPktBuffer)});
    return;
  }
  if (Refuse(p, pdc)) {
    return;
  }
  Advance(pdc);
  pdc.latest = p.context;
  if (pdc.discards == p.context) {
    if (p.last) {
      pdc.discards.reset();
    }
  } else {
    Accept(p);
  }
  if (p.ar || p.syn || p.retx || p.marked || !pdc.ahead.empty() ||
      ++pdc.unanswered >= 16) {
    pdc.unanswered = 0;
    Stand(p, pdc);
  }
  const auto kept = pdc.kept.find(pdc.expected);
  if (kept != pdc.kept.end()) {
    const Packet next = kept->second;
    pdc.kept.erase(kept);
    Receive(next);
  }
}

// A NACK names the packet that is missing alone; for more, and for each pass
// over what was kept before, the sender goes back.
void InitiatorBench::Keep(const Packet& p, TargetPdc& pdc) {
  const bool first = pdc.kept.empty();
  const uint32_t next = first ? pdc.expected : pdc.kept.rbegin()->first + 1;
  const auto missing = static_cast<int32_t>(p.psn - next);
  const bool again = !pdc.kept.emplace(p.psn, p).second;
  if (missing == 1) {
    Reply(p, pdc,
          {.nack = true,
           .psn = next,
           .code = static_cast<uint8_t>(NackCode::kPktNotRcvd)});
  } else if (missing > 1 || again) {
    Reply(p, pdc,
          {.nack = true,
           .psn = p.psn,
           .code = static_cast<uint8_t>(NackCode::kRodOoo)});
  }
}

// What is acknowledged now, or the next error, is told at once.
void InitiatorBench::Clear(const Packet& p, TargetPdc& pdc) {
  std::optional<uint32_t> cleared;
  while (!pdc.stored.empty() &&
         static_cast<int32_t>(p.clear_psn - pdc.stored.front().psn) >= 0) {
    cleared = pdc.stored.front().psn;
    pdc.stored.pop_front();
  }
  if (cleared && pdc.expected - 1 != *cleared) {
    Stand(p, pdc);
  }
}

// The expected packet was accepted.
void InitiatorBench::Advance(TargetPdc& pdc) {
  pdc.gap = pdc.refused = false;
  do {
    pdc.ahead.erase(pdc.expected);
    ++pdc.expected;
  } while (pdc.ahead.contains(pdc.expected));
}

// Behind a gap of a RUD PDC. Errors and closes are judged in order.
void InitiatorBench::ReceiveAhead(const Packet& p, TargetPdc& pdc) {
  if (p.psn - pdc.expected >= 64) {
    Broken("packet beyond the window");
    return;
  }
  const Target& target = targets[p.peer];
  if (target.refuses && !target.one_message) {
    Reply(p, pdc,
          {.nack = true,
           .psn = p.psn,
           .code = static_cast<uint8_t>(NackCode::kNoPktBuffer)});
    return;
  }
  const bool judged = p.close || target.refuses ||
                      messages[p.context].error.has_value() ||
                      (target.one_message && p.context != pdc.latest);
  if (judged || target.refusal || Chance(target.drops_ahead)) {
    if (!pdc.gap || p.retx) {
      Reply(p, pdc,
            {.nack = true,
             .psn = pdc.expected,
             .code = static_cast<uint8_t>(NackCode::kPktNotRcvd)});
    }
    pdc.gap = true;
    return;
  }
  pdc.ahead.insert(p.psn);
  Accept(p);
  Stand(p, pdc);
}

// What any ACK says: a stored error holds the acknowledgement below its PSN.
void InitiatorBench::Stand(const Packet& p, const TargetPdc& pdc) {
  if (!pdc.stored.empty()) {
    const TargetPdc::Stored& first = pdc.stored.front();
    Reply(p, pdc,
          {.cack = first.psn - 1,
           .psn = first.psn,
           .return_code = static_cast<uint8_t>(first.code)});
  } else {
    Reply(p, pdc, {.cack = pdc.expected - 1, .psn = p.psn});
  }
}

// The expected packet is refused semantically, or has to wait until the error
// before it was cleared.
bool InitiatorBench::Refuse(const Packet& p, TargetPdc& pdc) {
  const PostedMessage& m = messages[p.context];
  if (m.read && m.error && p.index >= m.error_at && !p.failed &&
      targets[p.peer].answers_refused) {
    Return(p);
  }
  if (!m.error || p.index < m.error_at || pdc.discards == p.context) {
    return false;
  }
  const bool each = targets[p.peer].refuses_each;
  if (!pdc.stored.empty() && !each) {
    pdc.gap = true;
    Reply(p, pdc,
          {.nack = true,
           .psn = p.psn,
           .code = static_cast<uint8_t>(NackCode::kNoGtdDelAvail)});
    return true;
  }
  Advance(pdc);
  pdc.stored.push_back({.psn = p.psn, .code = *m.error});
  if (!p.last && !each) {
    pdc.discards = p.context;
  }
  Reply(p, pdc,
        {.cack = pdc.stored.front().psn - 1,
         .psn = p.psn,
         .return_code = static_cast<uint8_t>(*m.error)});
  return true;
}

void InitiatorBench::AskToClose(uint32_t peer) {
  for (const auto& [key, pdc] : pdcs_) {
    if (key.first == peer) {
      Packet to_answer{.peer = peer, .spdcid = key.second};
      Reply(to_answer, pdc,
            {.cack = pdc.expected - 1, .psn = pdc.expected - 1, .asks = true});
    }
  }
}

void InitiatorBench::Accept(const Packet& p) {
  PostedMessage& m = messages[p.context];
  if (m.peer != p.peer) {
    Broken("packet of another peer's message");
  }
  if (m.rud != p.rud) {
    Broken("message on a PDC of the other mode");
  }
  if (!p.rud) {
    if (p.context < accepted_[p.peer]) {
      Broken("message accepted behind a later one");
    }
    accepted_[p.peer] = p.context;
    if (p.index != m.delivered()) {
      Broken("packet " + std::to_string(p.index) + " of message " +
             std::to_string(p.context) + " accepted instead of " +
             std::to_string(m.delivered()));
    }
  }
  if (!m.received.insert(p.index).second) {
    Broken("packet " + std::to_string(p.index) + " of message " +
           std::to_string(p.context) + " has two PSNs");
  }
  if (m.read && m.length != 0 && !p.failed) {
    Return(p);
  }
  const bool complete = p.index + 1 == m.packets;
  if (p.last != complete && !(p.failed && (m.failed || m.met_restart))) {
    Broken("eom on the wrong packet");
  }
}

void InitiatorBench::Return(const Packet& p) {
  const PostedMessage& m = messages[p.context];
  if (targets[p.peer].withholds_data || m.withheld) {
    return;
  }
  data_at_ =
      std::max(cycle + data_delay_cycles, data_at_ + data_spacing_cycles);
  data_.push_back({.due = data_at_,
                   .pdc = p.pdc,
                   .msg = p.msg,
                   .spdcid = p.spdcid,
                   .start_psn = p.start_psn,
                   .context = p.context,
                   .code = static_cast<uint8_t>(
                       m.data_error.value_or(contract::ReturnCode::kNull))});
}

void InitiatorBench::SettleStray(uint64_t message) {
  const PostedMessage& m = messages[message];
  ++back_decided_;
  placing_.emplace_front(
      cycle, Data{.pdc = m.pdc,
                  .msg = m.entry,
                  .spdcid = static_cast<uint16_t>(open_[m.pdc].spdcid ^ 1 << 8),
                  .context = message,
                  .stray = true});
}

// As heddle_return_rx takes them: of a PDC and a READ that did not end, and no
// more than were asked for.
bool InitiatorBench::Takes(const Data& d) {
  const auto context = context_of_.find(d.msg);
  const bool alive = (dut_->alive_o[d.pdc / 32] >> d.pdc % 32 & 1) != 0;
  if (!alive || open_[d.pdc].spdcid != d.spdcid ||
      open_[d.pdc].start_psn != d.start_psn || context == context_of_.end() ||
      context->second != d.context) {
    return false;
  }
  const PostedMessage& m = messages[d.context];
  const auto cut = cut_.find(d.msg);
  return m.taken <
         (cut == cut_.end() ? m.asked : std::min(m.asked, cut->second));
}

// As heddle_return_rx takes them, and heddle_place reports them.
void InitiatorBench::Settle() {
  dut_->taken_i = 0;
  dut_->settle_i = 0;
  dut_->back_decided_i = back_decided_;
  dut_->back_done_i = back_done_;
  if (!data_.empty() && data_.front().due <= cycle) {
    const Data d = data_.front();
    data_.pop_front();
    if (Takes(d)) {
      placing_.emplace_back(cycle + place_cycles, d);
      ++messages[d.context].taken;
      ++back_decided_;
      dut_->taken_i = 1;
      dut_->taken_msg_i = static_cast<uint16_t>(d.msg);
    }
  }
  if (placing_.empty() || placing_.front().first > cycle) {
    return;
  }
  const Data d = placing_.front().second;
  placing_.pop_front();
  ++back_done_;
  if (!d.stray) {
    ++messages[d.context].settled;
    --due_[d.pdc];
  }
  dut_->settle_i = 1;
  dut_->settle_spdcid_i = d.spdcid;
  dut_->settle_msg_i = static_cast<uint16_t>(d.msg);
  dut_->settle_fail_i = d.code != 0;
  dut_->settle_code_i = d.code;
}

void InitiatorBench::TakePacket() {
  const uint32_t pdc = dut_->pkt_pdc_o;
  const OpenPdc& open = open_[pdc];
  const uint32_t msg = dut_->pkt_msg_o;
  Packet p{.peer = open.peer,
           .spdcid = open.spdcid,
           .tpdcid = dut_->pkt_tpdcid_o,
           .start_psn = open.start_psn,
           .rud = open.rud};
  const auto send_control = [&] {
    reading_.emplace_back(cycle + 1, UINT32_MAX);
    Send(p);
  };
  ++packets_seen;
  if (dut_->pkt_ask_o) {
    ++asks_seen;
    p.psn = dut_->pkt_psn_o;
    p.syn = dut_->pkt_syn_o != 0;
    p.ask = true;
    send_control();
    return;
  }
  ++packets_to[open.peer];
  retransmissions_seen += dut_->pkt_retx_o;
  if (dut_->pkt_clear_o) {
    ++clears_seen;
    p.clear = true;
    p.clear_psn = dut_->pkt_clear_psn_o;
    send_control();
    return;
  }
  p.psn = dut_->pkt_psn_o;
  p.syn = dut_->pkt_syn_o != 0;
  p.retx = dut_->pkt_retx_o != 0;
  p.ar = dut_->pkt_ar_o != 0;
  acks_requested += p.ar;
  unasked_ = p.ar ? 0 : unasked_ + 1;
  longest_unasked = std::max(longest_unasked, unasked_);
  if (dut_->pkt_close_o) {
    ++closes_seen;
    p.close = true;
    send_control();
    return;
  }
  if (!context_of_.contains(msg)) {
    Broken("packet of a table entry that is not in use");
    return;
  }
  p.msg = msg;
  p.context = context_of_[msg];
  p.index = dut_->pkt_index_o;
  p.last = dut_->pkt_last_o != 0;
  p.failed = dut_->pkt_failed_o != 0;
  p.clear_psn = dut_->pkt_clear_psn_o;
  p.pdc = pdc;
  wraps_seen += p.psn == 0;
  const PostedMessage& m = messages[p.context];
  messages[p.context].pdc = pdc;
  messages[p.context].entry = msg;
  if (p.index == 0 && !p.retx) {  // Perhaps again, on another opening.
    messages[p.context].asked = 0;
    messages[p.context].taken = 0;
    messages[p.context].settled = 0;
  }
  if (m.read && m.length != 0 && !p.failed && !p.retx) {
    ++messages[p.context].asked;
    most_due = std::max(most_due, ++due_[pdc]);
  }
  reading_.emplace_back(cycle + payload_delay_cycles, msg);
  if ((Chance(withdraw) || m.withdrawn_at == p.index) && !m.failed) {
    messages[p.context].failed = true;
    dut_->fail_i = 1;
    dut_->fail_msg_i = dut_->pkt_msg_o;
  }
  Send(p);
}

void InitiatorBench::TakeDone() {
  const uint32_t msg = dut_->done_msg_o;
  if (dut_->done_token_o) {
    return;
  }
  if (!context_of_.contains(msg)) {
    Broken("completion of a table entry that is not in use");
    return;
  }
  for (const auto& [due, reading] : reading_) {
    if (reading == msg) {
      Broken("message ended while its payload was being read");
    }
  }
  PostedMessage& m = messages[context_of_[msg]];
  ++m.completions;
  m.status = static_cast<Status>(dut_->done_status_o);
  m.detail = dut_->done_detail_o;
  // While a PDC opens, data of a former target are taken beside those of the
  // new one: of these heddle_return_rx takes one target's only.
  if (m.read && m.status == Status::kOk && m.length != 0 &&
      (m.settled < m.packets || (m.settled != m.packets && !m.met_restart))) {
    Broken("READ succeeded before its data came");
  }
  if (!loses_pdcs && m.read && m.settled != m.taken) {
    Broken("READ ended before what was taken of it was in memory");
  }
  cut_.erase(msg);
  if (!loses_pdcs && !m.met_restart && m.read &&
      m.status == Status::kRemoteError && m.settled < m.delivered()) {
    Broken("READ ended while data of it were to come");
  }
  if (m.status == Status::kOk && m.delivered() != m.packets && !m.had_whole) {
    Broken("message succeeded before its target had it");
  }
  context_of_.erase(msg);
  to_free_.push_back(msg);
}

void InitiatorBench::Cycle() {
  dut_->tick_i = cycle % tick_cycles == 0;
  dut_->idle_ticks_i = idle_ticks;
  dut_->safety_ticks_i = safety_ticks;
  dut_->cwnd_bytes_i = cwnd_bytes;
  dut_->base_rtt_ns_i = base_rtt_ns;
  dut_->pdc_seed_i = pdc_seed;
  dut_->now_ns_i = static_cast<uint32_t>(kCycleNs * cycle);
  dut_->op_valid_i = !to_post_.empty();
  if (!to_post_.empty()) {
    const PostedMessage& m = messages[to_post_.front()];
    dut_->op_opcode_i =
        static_cast<uint8_t>(m.read    ? contract::Opcode::kRead
                             : m.write ? contract::Opcode::kWrite
                                       : contract::Opcode::kSend);
    dut_->op_peer_i = m.peer;
    dut_->op_length_i = m.length;
    dut_->op_context_i = to_post_.front();
    dut_->op_rud_i = m.rud;
    dut_->op_rel_i = m.endpoints.relative;
    dut_->op_rx_index_i = m.endpoints.rx_index;
    dut_->op_source_ri_i = m.endpoints.source_ri;
    dut_->op_job_id_i = m.endpoints.job_id;
  }
  dut_->pkt_ready_i = Chance(ready);
  dut_->done_ready_i = Chance(ready);
  dut_->fail_i = 0;
  dut_->free_i = !to_free_.empty();
  dut_->free_msg_i =
      static_cast<uint16_t>(to_free_.empty() ? 0 : to_free_.front());
  if (!to_free_.empty()) {
    to_free_.pop_front();
  }
  while (!reading_.empty() && reading_.front().first <= cycle) {  // In order.
    reading_.pop_front();
    ++seq_done_;
  }
  dut_->seq_done_i = seq_done_;
  const bool answer =
      !to_initiator_.empty() && to_initiator_.front().due <= cycle;
  dut_->ack_valid_i = answer;
  if (answer) {
    const Answer& a = to_initiator_.front();
    dut_->ack_nack_i = a.nack;
    dut_->ack_ask_i = a.control;
    dut_->ack_dpdcid_i = a.dpdcid;
    dut_->ack_spdcid_i = a.spdcid;
    dut_->ack_fa_i = a.peer;
    dut_->ack_cack_i = a.cack;
    dut_->ack_psn_i = a.psn;
    dut_->ack_code_i = a.code;
    dut_->ack_return_code_i = a.return_code;
    dut_->ack_req_i = static_cast<uint8_t>(a.asks ? AckReq::kClose : a.req);
    dut_->ack_sack_i = a.sack;
    dut_->ack_range_i = a.range;
    dut_->ack_sack_base_i = a.sack_base;
    dut_->ack_sack_bitmap_i = a.sack_bitmap;
    dut_->ack_data_i = a.data;
    dut_->ack_m_i = a.marked;
    dut_->ack_retx_i = a.retx;
  }
  Settle();
  dut_.Settle();
  const auto strobe = [this](contract::Statistic statistic) {
    return dut_->stat_o >> static_cast<uint32_t>(statistic) & 1;
  };
  timeouts_seen += strobe(contract::Statistic::kTimeouts);
  restarts_seen += strobe(contract::Statistic::kPdcRestarts);
  if (dut_->open_o) {
    ++opened;
    const auto ended = ended_at.find(dut_->open_spdcid_o);
    if (ended != ended_at.end() &&
        cycle - ended->second < uint64_t{safety_ticks} * tick_cycles) {
      Broken("PDCID used again too early");
    }
    due_[dut_->open_pdc_o] = 0;
    open_[dut_->open_pdc_o] = {.peer = dut_->open_fa_o,
                               .spdcid = dut_->open_spdcid_o,
                               .start_psn = dut_->open_psn_o,
                               .rud = dut_->open_rud_o != 0};
  }
  if (dut_->cut_o) {
    cut_[dut_->cut_msg_o] = dut_->cut_packets_o;
  }
  if (dut_->wr_o) {
    if (context_of_.contains(dut_->wr_msg_o)) {
      Broken("table entry given out twice");
    }
    context_of_[dut_->wr_msg_o] = dut_->wr_context_o;
  }
  if (answer && dut_->ack_ready_o) {
    to_initiator_.pop_front();
  }
  if (dut_->op_valid_i && dut_->op_ready_o) {
    to_post_.pop_front();
  }
  if (dut_->done_valid_o && dut_->done_ready_i) {
    TakeDone();
  }
  if (dut_->pkt_valid_o && dut_->pkt_ready_i) {
    TakePacket();
  }
  dut_.Tick();
  if (!bottleneck_.empty() && bottleneck_free_ <= cycle) {
    bottleneck_free_ = cycle + network.bottleneck_cycles;
    Transmit(to_target_, bottleneck_.front());
    bottleneck_.pop_front();
  }
  while (!to_target_.empty() && to_target_.front().due <= cycle) {
    Receive(to_target_.front());
    to_target_.pop_front();
  }
  ++cycle;
}

}  // namespace heddle
