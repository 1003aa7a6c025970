// SPDX-License-Identifier: Apache-2.0
// What a device's capability register means in libfabric's terms.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>

#include "host/lib/core/limits.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::core {

// Source: fi_getinfo(3), list of modifiers; fi_endpoint(3), capabilities of
// each direction.
inline constexpr uint64_t kMessageModifiers = FI_SEND | FI_RECV;
inline constexpr uint64_t kRmaModifiers =
    FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr uint64_t kTransmitOnly =
    FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
inline constexpr uint64_t kReceiveOnly = FI_RECV | FI_SOURCE | FI_SOURCE_ERR |
                                         FI_REMOTE_READ | FI_REMOTE_WRITE |
                                         FI_RMA_EVENT;

class OfferedCaps {
 public:
  // `capability`: bits of contract `capability`.
  constexpr explicit OfferedCaps(uint64_t capability) noexcept
      : capability_(capability) {}

  constexpr bool reads() const noexcept {
    return Has(contract::kCapabilityRead);
  }
  constexpr bool writes() const noexcept {
    return Has(contract::kCapabilityWrite);
  }
  constexpr bool rma() const noexcept { return reads() || writes(); }

  // Primary capabilities with their modifiers.
  constexpr uint64_t primary() const noexcept {
    return FI_MSG | kMessageModifiers | If(rma(), FI_RMA) |
           If(reads(), FI_READ | FI_REMOTE_READ) |
           If(writes(), FI_WRITE | FI_REMOTE_WRITE);
  }
  constexpr uint64_t secondary() const noexcept {
    return FI_SOURCE | FI_SOURCE_ERR | kDomainCaps |
           If(Has(contract::kCapabilityFence), FI_FENCE) |
           If(rma() && Has(contract::kCapabilityRegionEvent), FI_RMA_EVENT);
  }
  constexpr uint64_t all() const noexcept { return primary() | secondary(); }

  // Flags that an endpoint's default `op_flags` may hold. A completion is
  // written when the target has acknowledged, so the levels below
  // FI_DELIVERY_COMPLETE hold on every device.
  constexpr uint64_t tx_op_flags() const noexcept {
    return FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
           FI_TRANSMIT_COMPLETE |
           If(Has(contract::kCapabilityDeliveryComplete), FI_DELIVERY_COMPLETE);
  }

  // Operations that have to keep an order share a connection that delivers in
  // order. Data that a peer reads are fetched when they are sent, so that no
  // later write or message waits for them.
  constexpr uint64_t msg_order() const noexcept {
    return FI_ORDER_SAS |
           If(writes(),
              FI_ORDER_SAW | FI_ORDER_WAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW) |
           If(reads(), FI_ORDER_RAS | FI_ORDER_RAR | FI_ORDER_RMA_RAR) |
           If(reads() && writes(), FI_ORDER_RAW | FI_ORDER_RMA_RAW);
  }

  constexpr size_t rma_iov_limit() const noexcept {
    return !rma() ? 0 : Has(contract::kCapabilityMore) ? kIovLimit : 1;
  }
  constexpr bool counters() const noexcept {
    return Has(contract::kCapabilityCounters);
  }

 private:
  constexpr bool Has(uint64_t bits) const noexcept {
    return (capability_ & bits) == bits;
  }
  static constexpr uint64_t If(bool condition, uint64_t bits) noexcept {
    return condition ? bits : 0;
  }

  uint64_t capability_;
};

}  // namespace heddle::core
