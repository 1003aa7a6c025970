// SPDX-License-Identifier: Apache-2.0
// What the halves of the transport share.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw/sim/base/random.h"
#include "hw/soft/transport/pdc_table.h"
#include "hw/soft/transport/settings.h"
#include "hw/soft/transport/timer_heap.h"
#include "hw/soft/transport/tombstones.h"
#include "hw/soft/transport/transport.h"

namespace heddle::soft::transport {

// A message of the client's on its way.
struct Message {
  uint32_t next = Pdc::kNoMessage;  // In its PDC's queue.
  uint32_t posted = 0;              // Packets, as the client said.
  uint32_t packets = 0;  // Of these, until the one that ended it early.
  uint32_t sent = 0;     // Of them, first transmissions.
  uint32_t acked = 0;    // Of them.
  uint32_t first_psn = 0;
  uint16_t pdc = 0;
  bool live = false;
  bool expects_data = false;
  bool finished = false;
  bool held = false;    // All acknowledged; waits for data, or is on hold.
  bool parked = false;  // It is on hold.
  bool failed = false;  // And held, but its PDC does not wait for the data.
};

struct Core {
  Core(const TransportLimits& the_limits, wire::DatagramWire* the_wire,
       TransportClient* the_client, uint64_t seed);

  void Count(contract::Statistic which, uint64_t by = 1) {
    statistics[static_cast<size_t>(which)] += by;
  }

  // What a PDC's timer finds out about the peer; `waits`: for an answer of it.
  enum class PeerState : uint8_t {
    kAlive,
    kHeldUp,  // The wire or the peer is: the PDC's time began anew.
    // Counted. Silent for DEAD_TIME; at a target also: it left the wire.
    kGone,
  };
  PeerState JudgePeer(Pdc* pdc, bool waits);

  // A free PDC with a PDCID, or null.
  Pdc* TakePdc(bool target);

  // Of those that have something to send, the one that waits for longest; null:
  // none. It waits no more.
  Pdc* PopReady();
  bool HasReady() const { return ready_first_ != PdcTable::kNone; }

  // Forgets all PDCs and messages: a new incarnation begins.
  void Clear();

  // To be called when something about the PDC changed: puts it among those that
  // have something to send, sets its timer.
  void Settle(Pdc* pdc);
  // To be called instead when nothing changed but that a message was queued.
  void NoteQueued(Pdc* pdc);

  TransportLimits limits;
  wire::DatagramWire* wire;
  TransportClient* client;
  Settings settings;
  sim::base::Random random;
  uint64_t now_ns = 0;
  uint32_t busy = 0;     // PDCs with something to send or to wait for.
  uint32_t closing = 0;  // PDCs whose Close Command is on its way.
  uint64_t retry_ns =
      rules::kNever;  // When the client may have more to `Post`.

  std::vector<Message> messages;
  PdcTable pdcs;
  TimerHeap timers;
  Tombstones tombstones;          // They outlive resets.
  std::vector<uint16_t> blocked;  // PDCs that the wire had no room for.
  std::array<uint64_t, contract::kBar0StatisticsCount> statistics = {};

 private:
  // `fresh`: `has_new` of the PDC.
  static bool HasWork(const Pdc& pdc, bool fresh);
  // `open`: it has unanswered packets.
  uint64_t DeadlineOf(const Pdc& pdc, bool open) const;
  void MakeReady(Pdc* pdc);

  uint16_t ready_first_ = PdcTable::kNone;
  uint16_t ready_last_ = PdcTable::kNone;
};

}  // namespace heddle::soft::transport
