// SPDX-License-Identifier: Apache-2.0
// Sending side of one direction of a PDC: window, loss, refusal, timers.
#pragma once

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/rules/backoff.h"
#include "hw/soft/rules/psn.h"
#include "hw/soft/transport/congestion.h"
#include "hw/soft/transport/send_window.h"
#include "hw/soft/transport/settings.h"

namespace heddle::soft::transport {

// What an ACK says about PSNs.
struct AckFacts {
  uint32_t cack = 0;
  uint32_t psn = 0;  // That triggered it.
  bool marked = false;
  bool retx = false;
  bool selective = false;  // The next two are there.
  uint32_t sack_base = 0;
  uint64_t sack = 0;
  uint64_t service_ns = 0;  // 0: unknown.
};

// What a NACK asks of the sender (UET 2.17).
enum class NackClass : uint8_t {
  kTrim,     // Send this one again.
  kLoss,     // Send again.
  kRefusal,  // Send again after a while.
  kReopen,   // The peer has no such PDC.
  kFatal,
};

NackClass ClassOf(contract::NackCode code);

// At least each so many PSNs one asks for its ACK.
inline constexpr uint32_t kAckRequestEvery = 16;

// Initiator's and target's half alike; what the packets are is the owner's.
class SendHalf {
 public:
  void Open(uint32_t start, const Settings& settings, uint64_t now_ns);

  SendWindow& window() { return window_; }
  const SendWindow& window() const { return window_; }

  // May a packet leave: one that is lost, or a new one?
  bool MayResend() const {
    return window_.lost() != 0 && MaySend() &&
           (!probing_ ||
            rules::MovedUp(window_.in_flight(),
                           window_.first_lost() - window_.una()) == 0);
  }
  bool MaySendNew() const {
    return MaySend() && !probing_ && window_.lost() == 0 && !window_.full();
  }
  // The window will be closed by the packet after which this is asked.
  bool Asks(uint32_t bytes) const {
    return window_.top() + 1 - window_.una() >= rules::kWindow ||
           !congestion_.Allows(window_.flight_bytes() + bytes);
  }

  void NoteSent(uint32_t what, uint32_t bytes, const Settings& settings,
                uint64_t now_ns);
  void NoteResent(uint32_t psn, uint64_t now_ns);

  enum class Validity : uint8_t { kBeyond, kStale, kCurrent };
  // An ACK beyond what was sent must change nothing. A stale one may still
  // carry an answer of its own.
  Validity Check(const AckFacts& ack) const;
  // Takes what a valid ACK says. Calls `answered(psn)` for each PSN answered by
  // it, in order; the window is changed before the first call.
  template <typename Answered>
  void OnAck(const AckFacts& ack, const Settings& settings, uint64_t now_ns,
             Answered&& answered);

  // NACK of class kLoss or kRefusal for a PSN in the window. False: it was
  // answered already, or says nothing new.
  bool OnLoss(uint32_t psn, bool not_received, bool ordered, uint64_t now_ns);
  // The network trimmed a transmission of `psn`. False: it was not in flight.
  bool OnTrim(uint32_t psn, bool ordered, uint64_t now_ns);
  bool OnRefusal(uint32_t psn, bool ordered, const Settings& settings,
                 uint64_t now_ns);

  // An ACK Request about `psn` left.
  void NoteAsked(uint32_t psn) {
    asked_ = true;
    asked_psn_ = psn;
  }
  // Is a NACK no error of the PDC, but what a peer answers to a control packet
  // that it does not know: to the last ACK Request, once, or to a Clear
  // Command? What was asked about may not have arrived then.
  [[nodiscard]] bool RefusesControl(contract::NackCode code, uint32_t psn,
                                    uint16_t spdcid) {
    if (code != contract::NackCode::kUnexpEvent) {
      return false;
    }
    if (asked_ && psn == asked_psn_) {
      asked_ = false;
      return true;
    }
    return psn == 0 && spdcid == 0;
  }

  // The peer lives.
  void Heard(uint64_t now_ns) { heard_ns_ = now_ns; }
  // The peer sent a NACK of an unanswered packet. It lives, so the next
  // time-out is one RTO away; else a few losses would take until DEAD_TIME.
  void NoteNack(const Settings& settings, uint64_t now_ns);
  uint64_t heard_ns() const { return heard_ns_; }

  // When OnTimer has to be called; rules::kNever: not.
  uint64_t timer_ns() const { return timer_ns_; }
  enum class Timer : uint8_t {
    kResume,   // A wait after a refusal is over.
    kTimeout,  // Packets count as lost now.
    kAsk,      // The oldest arrived but was never answered: ask for that.
    kClear,    // All is answered, but CACK stands: clear again, and ask.
    kNothing,
  };
  Timer OnTimer(const Settings& settings, uint64_t now_ns);
  // The wire holds packets back: the timer starts again, nothing is lost.
  void Postpone(const Settings& settings, uint64_t now_ns);
  // Starts the timer where nothing is out, to watch the peer.
  void Watch(uint64_t at_ns) { timer_ns_ = at_ns; }

  bool waiting() const { return waiting_; }
  // Refused, or silent for an RTO, and nothing was taken since.
  bool stuck() const { return waiting_ || probing_; }
  // Something was sent twice since all was answered.
  bool resent() const { return resent_; }
  uint64_t cwnd_bytes() const { return congestion_.cwnd_bytes(); }

 private:
  bool MaySend() const {
    return !waiting_ && congestion_.Allows(window_.flight_bytes());
  }
  uint32_t OldestUnanswered() const {
    return window_.una() +
           static_cast<uint32_t>(std::countr_zero(window_.unanswered()));
  }
  void TakeSack(const AckFacts& ack, uint64_t* bytes);
  void InferLosses(const Settings& settings, uint64_t now_ns);
  uint64_t MeasuredRtt(const AckFacts& ack, uint64_t now_ns);
  // Ends a wait or a probe whose packet was taken, restarts the timer.
  void NoteProgress(const Settings& settings, uint64_t now_ns);
  // A set of those of `fresh`, base `una`, in order.
  template <typename Answered>
  static void ForEach(uint32_t una, uint64_t fresh, Answered& answered) {
    for (; fresh != 0; fresh &= fresh - 1) {
      answered(una + static_cast<uint32_t>(std::countr_zero(fresh)));
    }
  }

  SendWindow window_;
  Congestion congestion_;
  uint64_t timer_ns_ = rules::kNever;
  uint64_t heard_ns_ = 0;
  uint64_t rtt_ns_ = 0;      // Smoothed; 0: none yet.
  uint64_t min_rtt_ns_ = 0;  // Shortest.
  uint32_t probe_psn_ = 0;
  uint32_t asked_psn_ = 0;
  bool asked_ = false;    // asked_psn_, by an ACK Request.
  bool waiting_ = false;  // After a refusal, until the timer.
  bool probing_ = false;  // One packet at a time, until probe_psn_ is taken.
  bool resent_ = false;
  rules::Backoff rto_;
  rules::Backoff backoff_;  // After refusals.
};

template <typename Answered>
void SendHalf::OnAck(const AckFacts& ack, const Settings& settings,
                     uint64_t now_ns, Answered&& answered) {
  heard_ns_ = now_ns;
  const uint64_t rtt = MeasuredRtt(ack, now_ns);
  uint64_t bytes = 0;
  const uint32_t una = window_.una();
  uint64_t fresh = 0;
  if (window_.Contains(ack.psn) && window_.Answer(ack.psn, &bytes)) {
    fresh = rules::Bit(ack.psn - una);
  }
  if (!rules::Before(ack.cack + 1, una)) {
    fresh |= window_.Cumulate(ack.cack + 1, &bytes);
  }
  const uint64_t arrived = window_.arrived();
  if (ack.selective) {
    TakeSack(ack, &bytes);
  }
  if (fresh != 0 || window_.arrived() != arrived) {
    NoteProgress(settings, now_ns);
  }
  congestion_.OnAck(bytes, rtt, ack.marked, now_ns);
  if (ack.selective) {
    InferLosses(settings, now_ns);
  }
  ForEach(una, fresh, answered);
}

}  // namespace heddle::soft::transport
