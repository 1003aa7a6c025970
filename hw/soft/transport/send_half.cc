// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/send_half.h"

#include <algorithm>

#include "hw/soft/rules/loss.h"

namespace heddle::soft::transport {

using contract::NackCode;

NackClass ClassOf(NackCode code) {
  switch (code) {
    case NackCode::kTrimmed:
    case NackCode::kTrimmedLasthop:
      return NackClass::kTrim;
    case NackCode::kTrimmedAck:
    case NackCode::kRodOoo:
    case NackCode::kPktNotRcvd:
    case NackCode::kAckWithData:
    case NackCode::kRcvrInferLoss:
      return NackClass::kLoss;
    case NackCode::kNoPdcAvail:
    case NackCode::kNoCccAvail:
    case NackCode::kNoBitmap:
    case NackCode::kNoPktBuffer:
    case NackCode::kNoGtdDelAvail:
    case NackCode::kNoSesMsgAvail:
    case NackCode::kNoResource:
    case NackCode::kPsnOorWindow:
    case NackCode::kRcvdSesProcg:
      return NackClass::kRefusal;
    case NackCode::kInvDpdcid:
    case NackCode::kInvalidSyn:
    case NackCode::kClosing:
    case NackCode::kPdcHdrMismatch:
      return NackClass::kReopen;
    case NackCode::kClosingInErr:
    case NackCode::kGtdDelRespUnavail:
    case NackCode::kPdcModeMismatch:
    case NackCode::kNewStartPsn:  // Of secured PDCs, which this device has not.
    case NackCode::kUnexpEvent:
      break;
  }
  return NackClass::kFatal;
}

void SendHalf::Open(uint32_t start, const Settings& settings, uint64_t now_ns) {
  window_.Open(start);
  congestion_.Open(settings);
  timer_ns_ = rules::kNever;
  heard_ns_ = now_ns;
  rtt_ns_ = min_rtt_ns_ = 0;
  probe_psn_ = start;
  waiting_ = probing_ = resent_ = asked_ = false;
  rto_.Reset();
  backoff_.Reset();
}

void SendHalf::NoteSent(uint32_t what, uint32_t bytes, const Settings& settings,
                        uint64_t now_ns) {
  if (window_.unanswered() == 0) {
    heard_ns_ = now_ns;  // Silence counts from here.
    resent_ = false;
    timer_ns_ = now_ns + settings.rto_ns;
  }
  window_.PushSent(what, bytes, now_ns);
}

void SendHalf::NoteResent(uint32_t psn, uint64_t now_ns) {
  window_.NoteResent(psn, now_ns);
  resent_ = true;
}

SendHalf::Validity SendHalf::Check(const AckFacts& ack) const {
  const uint32_t acked = ack.cack + 1 - window_.una();
  if (acked <= window_.top() - window_.una()) {
    return Validity::kCurrent;
  }
  return acked >= 0u - (1u << 15) ? Validity::kStale : Validity::kBeyond;
}

uint64_t SendHalf::MeasuredRtt(const AckFacts& ack, uint64_t now_ns) {
  if (!window_.Contains(ack.psn) || window_.Has(window_.answered(), ack.psn)) {
    return 0;
  }
  const uint8_t times = window_.packet(ack.psn).transmissions;
  if (!(times == 1 && !ack.retx) && !(times == 2 && ack.retx)) {
    return 0;  // Which copy is answered is not known.
  }
  const uint64_t age = window_.AgeNs(ack.psn, now_ns);
  const uint64_t rtt =
      std::max<uint64_t>(age > ack.service_ns ? age - ack.service_ns : 0, 1);
  min_rtt_ns_ = min_rtt_ns_ == 0 ? rtt : std::min(min_rtt_ns_, rtt);
  rtt_ns_ = rtt_ns_ == 0 ? rtt : (7 * rtt_ns_ + rtt) / 8;
  return rtt;
}

void SendHalf::TakeSack(const AckFacts& ack, uint64_t* bytes) {
  *bytes += window_.MarkArrived(
      rules::ArrivedBy(ack.sack, ack.sack_base, window_.una(), window_.sent()));
}

// Once per round trip.
void SendHalf::InferLosses(const Settings& settings, uint64_t now_ns) {
  const uint64_t arrived =
      (window_.arrived() | window_.answered()) & window_.sent();
  uint64_t late =
      window_.in_flight() & rules::PassedBy(arrived, settings.reorder);
  uint64_t lost = 0;
  const uint64_t rtt = rtt_ns_ == 0 ? settings.rto_ns : rtt_ns_ + rtt_ns_ / 4;
  for (; late != 0; late &= late - 1) {
    const uint32_t psn =
        window_.una() + static_cast<uint32_t>(std::countr_zero(late));
    if (window_.packet(psn).transmissions == 1 ||
        window_.AgeNs(psn, now_ns) >= rtt) {
      lost |= late & (0 - late);
    }
  }
  if (lost != 0) {
    congestion_.OnLoss(window_.MarkLost(lost), now_ns);
  }
}

void SendHalf::NoteProgress(const Settings& settings, uint64_t now_ns) {
  rto_.Reset();
  if (probing_ || waiting_) {
    const bool taken =
        !window_.Contains(probe_psn_) ||
        window_.Has(window_.answered() | window_.arrived(), probe_psn_);
    if (taken) {
      probing_ = waiting_ = false;
      backoff_.Reset();
    }
  }
  if (window_.unanswered() == 0) {
    timer_ns_ = window_.empty() ? rules::kNever : now_ns + settings.rto_ns;
    resent_ = false;
  } else if (!waiting_) {
    timer_ns_ = now_ns + settings.rto_ns;
  }
}

void SendHalf::NoteNack(const Settings& settings, uint64_t now_ns) {
  Heard(now_ns);
  if (!rto_.at_first() && !waiting_) {
    timer_ns_ = std::min(timer_ns_, now_ns + settings.rto_ns);
  }
  rto_.Reset();
}

bool SendHalf::OnLoss(uint32_t psn, bool not_received, bool ordered,
                      uint64_t now_ns) {
  if (!window_.Has(window_.unanswered(), psn)) {
    return false;
  }
  const bool known = window_.Has(window_.lost(), psn);
  if (not_received) {
    window_.MarkNotArrived(psn);
  }
  // Only about packets of the present pass: others were answered already.
  if (waiting_ || known) {
    return false;
  }
  // What is missing went again less than a round trip ago: the NACK cannot know
  // of it. Else each packet that a former pass left behind would start one
  // more.
  const uint32_t oldest = OldestUnanswered();
  if (ordered && window_.packet(oldest).transmissions > 1 &&
      window_.AgeNs(oldest, now_ns) + SendWindow::kTimeUnit < min_rtt_ns_) {
    return false;
  }
  const uint64_t bytes = window_.MarkLost(
      ordered ? window_.sent() : rules::Bit(psn - window_.una()));
  congestion_.OnLoss(bytes, now_ns);
  return true;
}

bool SendHalf::OnTrim(uint32_t psn, bool ordered, uint64_t now_ns) {
  if (waiting_ || !window_.Has(window_.in_flight(), psn)) {
    return false;
  }
  // The NACK is about the last transmission, however short ago that was: on ROD
  // nothing else may say that it is missing.
  window_.MarkLost(ordered ? window_.sent() : rules::Bit(psn - window_.una()));
  congestion_.OnTrim(window_.packet(psn).bytes, now_ns);
  return true;
}

bool SendHalf::OnRefusal(uint32_t psn, bool ordered, const Settings& settings,
                         uint64_t now_ns) {
  if (!window_.Has(window_.unanswered(), psn)) {
    return false;
  }
  const uint32_t index = psn - window_.una();
  window_.MarkLost(ordered ? ~rules::LowBits(index) : rules::Bit(index));
  if (waiting_) {
    // One wait for all that is refused meanwhile; the oldest ends it.
    probe_psn_ = rules::Before(psn, probe_psn_) ? psn : probe_psn_;
    return true;
  }
  waiting_ = probing_ = true;
  probe_psn_ = psn;
  timer_ns_ =
      now_ns + backoff_.Time(settings.backoff_ns, settings.backoff_max_ns);
  backoff_.NoteInVain();
  return true;
}

SendHalf::Timer SendHalf::OnTimer(const Settings& settings, uint64_t now_ns) {
  if (window_.empty()) {
    timer_ns_ = rules::kNever;
    return Timer::kNothing;
  }
  if (waiting_) {
    waiting_ = false;
    timer_ns_ = now_ns + rto_.Time(settings.rto_ns, settings.rto_max_ns);
    // No RTO ends while refusals arrive, and the target may refuse what follows
    // a packet because that one is lost.
    const uint32_t oldest = OldestUnanswered();
    if (rules::Before(oldest, probe_psn_) &&
        window_.AgeNs(oldest, now_ns) >= settings.rto_ns) {
      congestion_.OnLoss(window_.MarkLost(rules::Bit(oldest - window_.una())),
                         now_ns);
    }
    return Timer::kResume;
  }
  rto_.NoteInVain();
  timer_ns_ = now_ns + rto_.Time(settings.rto_ns, settings.rto_max_ns);
  if (window_.unanswered() == 0) {
    return Timer::kClear;
  }
  const uint32_t oldest = OldestUnanswered();
  const bool ask = window_.Has(window_.arrived(), oldest);
  window_.MarkLost(window_.sent());
  congestion_.OnTimeout();
  if (window_.lost() != 0) {
    probing_ = true;
    probe_psn_ = window_.first_lost();
  }
  return ask ? Timer::kAsk : Timer::kTimeout;
}

void SendHalf::Postpone(const Settings& settings, uint64_t now_ns) {
  timer_ns_ = now_ns + settings.rto_ns;
  heard_ns_ = now_ns;
}

}  // namespace heddle::soft::transport
