// SPDX-License-Identifier: Apache-2.0
// Between the sides of the engine: messages deferred by their target.
#pragma once

#include <cstdint>

#include "hw/soft/transport/message_carrier.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::engine {

// Where a deferred message came from.
struct Deferral {
  wire::FabricAddress source;
  uint16_t spdcid = 0;  // PDC of the sender.
  wire::Path path;      // Back to it.
  uint32_t job_id = 0;
  uint32_t initiator = 0;
  uint32_t token = 0;  // The initiator's.
  bool relative = false;
};

// Sends DEFERRABLE_RTR.
class ReadySender {
 public:
  // The target of the message is ready for it, under `target_token`. False: no
  // entry is free, try again.
  virtual bool SendReady(const Deferral& deferral, uint32_t target_token) = 0;

 protected:
  ~ReadySender() = default;
};

// Learns what became of it.
class ReadySink {
 public:
  // The initiator has accepted the request to restart, or never will.
  virtual void OnReadyEnded(uint32_t target_token, bool accepted) = 0;

 protected:
  ~ReadySink() = default;
};

}  // namespace heddle::soft::engine
