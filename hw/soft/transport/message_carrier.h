// SPDX-License-Identifier: Apache-2.0
// What the client of the transport may ask of it.
#pragma once

#include <cstdint>

#include "hw/soft/transport/client.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::transport {

// Which PDC a message travels on. Ordered ones are of an endpoint pair (UET
// 2.13), unordered ones of a pair of functions: the target's endpoint names its
// function, since several share an address.
struct PdcName {
  wire::FabricAddress peer;
  uint32_t job_id = 0;      // ROD or `relative`, else 0.
  uint16_t source_pid = 0;  // ROD only, else 0.
  uint16_t target_pid = 0;
  uint16_t target_ri = 0;  // ROD: the RI; RUD: first RI of its block.
  uint8_t traffic_class = 0;
  bool ordered = false;
  bool relative = false;  // The endpoint is named in its job.

  bool operator==(const PdcName&) const = default;
};

// Implemented by `Transport`; an interface so that its client can be tested
// alone.
//
// Thread safety: one thread at a time.
class MessageCarrier {
 public:
  enum class PostOutcome : uint8_t {
    kQueued,
    kFull,  // No PDC is free and none can be evicted now: try again.
  };
  // Hands over a message of `packets` requests (at least 1). Messages of one
  // PDC are sent whole, in the order of the calls. `path` is the way to the
  // peer; its entropy is the transport's. A message that `expects_data` (a
  // read, a fetching atomic) stays known after its last acknowledgement until
  // `Finish`: its PDC is watched so long, and ends when the peer dies.
  virtual PostOutcome Post(MessageIndex message, const PdcName& name,
                           const wire::Path& path, uint32_t packets,
                           bool expects_data) = 0;

  // All that a message posted with `expects_data` waited for has come, data or
  // an error. Exactly once for each that was not abandoned; the index is free
  // when its packets are acknowledged as well.
  virtual void Finish(MessageIndex message) = 0;

  // A message that was posted without `expects_data`, and is not completely
  // acknowledged, will be retransmitted as a whole when its target requests it.
  // After its last acknowledgement it stays known until `Resume`, `Finish`, or
  // the end of its PDC, however long that takes: its PDC does not close, and is
  // watched. When the target's incarnation is gone, `OnRestart` decides about
  // the message as about one in flight. Idempotent.
  virtual void Hold(MessageIndex message) = 0;

  // Retransmits a message on hold, which is completely acknowledged, on its
  // PDC, whole, as if posted now.
  virtual void Resume(MessageIndex message) = 0;

  // The target has refused a message posted with `expects_data`, or part of it,
  // and all its packets are acknowledged. How much of the data will arrive is
  // unknown, so the PDC does not wait for it: it closes when it is idle, and
  // the message is abandoned then unless `Finish` was called before.
  // Idempotent.
  virtual void Fail(MessageIndex message) = 0;

  // Nothing of the message gets through: its PDC was refused, or silent for an
  // RTO, and sends at most one packet at a time since.
  virtual bool Stuck(MessageIndex message) const = 0;

  // Queues return data on the return direction of target PDC `pdc`; from within
  // `OnRequest` only. False: no record is free, refuse the request.
  virtual bool PostReturn(uint16_t pdc, const ReturnData& data) = 0;

  // The way back to the initiator of target PDC `pdc`, for a message to it;
  // from within `OnRequest` only.
  virtual wire::Path ReturnPath(uint16_t /*pdc*/) const { return {}; }

 protected:
  ~MessageCarrier() = default;
};

}  // namespace heddle::soft::transport
