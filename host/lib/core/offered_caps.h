// SPDX-License-Identifier: Apache-2.0
// What a device's capabilities mean in libfabric's terms.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>

#include "host/lib/backend/device_profile.h"
#include "host/lib/core/limits.h"

namespace heddle::core {

// Source: fi_getinfo(3), list of modifiers; fi_endpoint(3), capabilities of
// each direction.
inline constexpr uint64_t kMessageModifiers = FI_SEND | FI_RECV;
inline constexpr uint64_t kRmaModifiers =
    FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr uint64_t kTransmitOnly =
    FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
inline constexpr uint64_t kReceiveOnly =
    FI_RECV | FI_SOURCE | FI_SOURCE_ERR | FI_REMOTE_READ | FI_REMOTE_WRITE |
    FI_RMA_EVENT | FI_MULTI_RECV | FI_DIRECTED_RECV;
// Kinds of message, whose modifiers are the same.
inline constexpr uint64_t kMessages = FI_MSG | FI_TAGGED;

class OfferedCaps {
 public:
  constexpr explicit OfferedCaps(
      const backend::DeviceCapabilities& device) noexcept
      : has_(device) {}

  constexpr bool reads() const noexcept { return has_.reads; }
  constexpr bool writes() const noexcept { return has_.writes; }
  constexpr bool rma() const noexcept { return reads() || writes(); }

  // Primary capabilities with their modifiers.
  constexpr uint64_t primary() const noexcept {
    return FI_MSG | kMessageModifiers | If(has_.tagged, FI_TAGGED) |
           If(has_.matching, FI_DIRECTED_RECV) | If(rma(), FI_RMA) |
           If(reads(), FI_READ | FI_REMOTE_READ) |
           If(writes(), FI_WRITE | FI_REMOTE_WRITE);
  }
  constexpr uint64_t secondary() const noexcept {
    return FI_SOURCE | FI_SOURCE_ERR | kDomainCaps | If(has_.fences, FI_FENCE) |
           If(has_.multi_recv, FI_MULTI_RECV) |
           If(rma() && has_.region_events, FI_RMA_EVENT);
  }
  constexpr uint64_t all() const noexcept { return primary() | secondary(); }

  // Flags that an endpoint's default `op_flags` may hold. A completion is
  // written when the target has acknowledged, so the levels below
  // FI_DELIVERY_COMPLETE hold on every device.
  constexpr uint64_t tx_op_flags() const noexcept {
    return FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
           FI_TRANSMIT_COMPLETE |
           If(has_.delivery_complete, FI_DELIVERY_COMPLETE);
  }

  // Operations that have to keep an order share a connection that delivers in
  // order. Most devices fetch data that a peer reads when they send them, so
  // that later writes and messages may change them.
  constexpr uint64_t msg_order() const noexcept {
    return FI_ORDER_SAS |
           If(writes(),
              FI_ORDER_SAW | FI_ORDER_WAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW) |
           If(reads(), FI_ORDER_RAS | FI_ORDER_RAR | FI_ORDER_RMA_RAR) |
           If(reads() && writes(), FI_ORDER_RAW | FI_ORDER_RMA_RAW) |
           If(reads() && has_.write_after_read, FI_ORDER_SAR) |
           If(reads() && writes() && has_.write_after_read,
              FI_ORDER_WAR | FI_ORDER_RMA_WAR);
  }

  // Orders of completions for an endpoint with `caps`. With FI_ORDER_STRICT
  // each operation is fenced: it starts when those before it to the same peer
  // are complete. A tagged message must not wait for one whose receive comes
  // later.
  constexpr uint64_t tx_comp_order(uint64_t caps) const noexcept {
    return If(has_.fences && (caps & FI_TAGGED) == 0, FI_ORDER_STRICT);
  }
  // Messages of an ordered connection arrive and complete one after another,
  // unless their context may defer one. Their bytes are written in no order, so
  // that FI_ORDER_DATA is never offered.
  static constexpr uint64_t rx_comp_order(uint64_t caps) noexcept {
    return If((caps & (FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV)) == 0,
              FI_ORDER_STRICT);
  }

  constexpr size_t rma_iov_limit() const noexcept {
    return !rma() ? 0 : has_.remote_segments ? kIovLimit : 1;
  }
  constexpr bool counters() const noexcept { return has_.counters; }
  constexpr bool matching() const noexcept { return has_.matching; }

 private:
  static constexpr uint64_t If(bool condition, uint64_t bits) noexcept {
    return condition ? bits : 0;
  }

  backend::DeviceCapabilities has_;
};

}  // namespace heddle::core
