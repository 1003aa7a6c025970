// SPDX-License-Identifier: Apache-2.0
// A message in flight at its initiator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "host/lib/semantics/index_list.h"
#include "host/lib/semantics/initiator_message.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/address_vector.h"
#include "hw/soft/engine/completion_queues.h"
#include "hw/soft/engine/descriptor.h"
#include "hw/soft/engine/host_access.h"
#include "hw/soft/engine/tx_rings.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::engine {

// Who sends, as the context said when the message was taken.
struct Sender {
  uint32_t job_id = 0;
  uint16_t pid = 0;
  uint16_t first_ri = 0;
  uint8_t traffic_class = 0;
  bool relative = false;

  uint32_t initiator() const noexcept {
    return uint32_t{pid} << contract::kPidBits | first_ri;
  }
};

struct TxMessage {
  enum class Stage : uint8_t {
    kFree,
    kUnposted,  // Waits for a PDC.
    kPosted,
    kDeferred,  // By its target; waits for DEFERRABLE_RTR.
    kHeld,      // Over; waits for the rest of its operation to complete.
    // Failed and completed, while return data may still come: the name must not
    // be another message's yet.
    kSettling,
  };

  TxMessage() noexcept {}  // Not `= default`, which may set what has no value.

  Stage stage = Stage::kFree;
  bool ordered = false;    // On a ROD PDC.
  bool collapsed = false;  // Its last packet says ie=1 and ends it early.
  bool failing = false;    // What was not built yet collapses.
  bool refused = false;    // By an answer of the target.
  bool holds = false;      // An ordered read that later operations wait for.
  bool expects_data = false;
  bool finished = false;  // The transport was told that all data came.
  bool abandoned = false;
  bool ready_request = false;  // DEFERRABLE_RTR: no context has it.
  bool deferrable = false;
  bool deferred = false;  // Its target does not take it now.
  bool cut = false;       // Deferred: its last packet ends it early.
  bool ready = false;     // Its target has requested the restart.
  uint8_t slots = 0;
  uint8_t attempts = 0;  // Posts that were taken.
  uint32_t mtu = 0;
  uint32_t packets = 0;  // To be sent.
  uint32_t planned = 0;  // Before any collapse.
  uint32_t built = 0;    // Of these, built at least once.
  uint32_t acknowledged = 0;
  uint32_t settled = 0;       // Packets of a read that have nothing to come.
  uint32_t target_token = 0;  // Once its target is ready.
  uint16_t life = 0;          // Part of its token.
  uint32_t generation = 0;
  uint32_t context = 0;
  uint16_t position = 0;
  uint32_t peer = semantics::kNone;
  uint32_t group = semantics::kNone;
  CqTicket ticket;
  VectorEntry to;
  Sender from;
  wire::Path back;  // DEFERRABLE_RTR: its way.
  contract::TxDesc descriptor;
  semantics::InitiatorMessage state{{}};
  Extension extension;        // As long as the descriptor specifies.
  semantics::ListLink order;  // Of free or of unposted ones.

  // A message of `fetched`, in packets of `mtu` bytes.
  void Begin(const Fetched& fetched, uint32_t packet_bytes) noexcept;

  // As initiator of a deferrable send, of the entry `index`.
  uint32_t TokenOf(uint32_t index) const noexcept {
    return uint32_t{life} << 16U | (index + 1);
  }

  // It goes again, whole, to another incarnation of its target.
  void Restart() noexcept;

  // The transport has nothing more to say of its packets.
  void EndOfPackets() noexcept;

  uint16_t target_ri() const noexcept {
    return static_cast<uint16_t>(to.first_ri + 1 + descriptor.rx_index);
  }
  // Whether one of its packets has exactly these bytes.
  bool IsPacket(uint64_t offset, uint64_t bytes) const noexcept {
    return offset % mtu == 0 && offset < descriptor.length &&
           bytes == std::min<uint64_t>(mtu, descriptor.length - offset);
  }
  bool in_line() const noexcept {
    return (descriptor.flags &
            (contract::kTxFlagInline | contract::kTxFlagInlineExt)) != 0;
  }
};

// Bytes of the message from `offset` on, from where the descriptor says. False:
// host memory refused.
[[nodiscard]] bool ReadPayload(const TxMessage& message, uint32_t offset,
                               std::span<uint8_t> out, HostAccess* host);
// The same the other way.
[[nodiscard]] bool WritePayload(const TxMessage& message, uint32_t offset,
                                std::span<const uint8_t> bytes,
                                HostAccess* host);

}  // namespace heddle::soft::engine
