// SPDX-License-Identifier: Apache-2.0
// What the data transfer calls of all kinds have in common.
#pragma once

#include <rdma/fi_endpoint.h>

#include <cstdint>

#include "host/lib/backend/locking.h"
#include "host/lib/backend/operation.h"
#include "host/lib/ofi/endpoint_caps.h"

namespace heddle::ofi {

inline uint64_t FromContext(void* context) noexcept {
  return reinterpret_cast<uint64_t>(context);
}

// An operation's flags, of a call with flags. Levels of completion below
// FI_DELIVERY_COMPLETE need none: a completion is written when the target has
// acknowledged.
inline uint8_t OperationFlags(uint64_t flags, bool selective) noexcept {
  unsigned made = !selective || (flags & FI_COMPLETION) != 0
                      ? unsigned{backend::kReportSuccess}
                      : 0U;
  made |= (flags & FI_REMOTE_CQ_DATA) != 0 ? unsigned{backend::kCarryData} : 0U;
  made |= (flags & FI_FENCE) != 0 ? unsigned{backend::kFence} : 0U;
  made |= (flags & FI_DELIVERY_COMPLETE) != 0
              ? unsigned{backend::kDeliveryComplete}
              : 0U;
  return static_cast<uint8_t>(made);
}

inline backend::Operation WithData(backend::Operation operation,
                                   uint64_t data) noexcept {
  operation.data = data;
  operation.flags |= backend::kCarryData;
  return operation;
}

// Choose the tables of calls of a handle, at fi_enable and when its operation
// flags change.
struct CallTraits {
  bool locked = true;  // Threads may share the endpoint or its queues.
  EndpointCaps caps;
  bool plain_transmit = false;  // `kPlain` of transmit_calls.h,
  bool plain_receive = false;   // and of ReceiveOps.
};

// Calls `fill` as a template of lock policy and `kPlain`.
template <typename Fill>
void ChooseCalls(bool locked, bool plain, Fill fill) noexcept {
  if (locked && plain) {
    fill.template operator()<backend::Locked, true>();
  } else if (locked) {
    fill.template operator()<backend::Locked, false>();
  } else if (plain) {
    fill.template operator()<backend::Unlocked, true>();
  } else {
    fill.template operator()<backend::Unlocked, false>();
  }
}

}  // namespace heddle::ofi
