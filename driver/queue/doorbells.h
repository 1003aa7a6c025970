// SPDX-License-Identifier: Apache-2.0
// Offsets of each queue's doorbells in BAR2.
#pragma once

#include <cstdint>

#include "driver/device.h"
#include "driver/queue/push_window.h"
#include "hw/contract/doorbell_page.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

inline Doorbell PageDoorbell(Device& device, uint32_t page, uint32_t offset) {
  return device.doorbell(page * contract::kDoorbellPageBytes + offset);
}

// Doorbell of object `number` of the kind whose pages begin at `first` in each
// bank.
inline Doorbell ObjectDoorbell(Device& device, uint32_t first, uint32_t number,
                               uint32_t offset) {
  return PageDoorbell(device, contract::DoorbellPageOf(first, number), offset);
}

inline Doorbell TxTailDoorbell(Device& device, uint32_t context) {
  return ObjectDoorbell(device, contract::kTxPageFirst, context,
                        contract::kDoorbellTailOffset);
}

inline Doorbell TxOpDoorbell(Device& device, uint32_t context) {
  return ObjectDoorbell(device, contract::kTxPageFirst, context,
                        contract::kDoorbellOpOffset);
}

// None where the device does not claim pushes.
inline PushTarget TxPushTarget(Device& device, uint32_t context) {
  const uint64_t capability =
      device.ReadRegister64(contract::kBar0CapabilityOffset);
  if ((capability & contract::kCapabilityPush) == 0) {
    return {};
  }
  return {
      .window = device.push_window(
          contract::DoorbellPageOf(contract::kTxPageFirst, context) *
              contract::kDoorbellPageBytes +
          contract::kPushWindowOffset),
      .extensions = (capability & contract::kCapabilityPushExtensions) != 0};
}

inline Doorbell RxTailDoorbell(Device& device, uint32_t context) {
  return ObjectDoorbell(device, contract::kRxPageFirst, context,
                        contract::kDoorbellTailOffset);
}

inline Doorbell RxOpDoorbell(Device& device, uint32_t context) {
  return ObjectDoorbell(device, contract::kRxPageFirst, context,
                        contract::kDoorbellOpOffset);
}

inline Doorbell CqConsumerDoorbell(Device& device, uint32_t cq) {
  return ObjectDoorbell(device, contract::kCqPageFirst, cq,
                        contract::kDoorbellCqConsumerOffset);
}

// `offset`: `contract::kDoorbellCounter*Offset`.
inline Doorbell CounterDoorbell(Device& device, uint32_t counter,
                                uint32_t offset) {
  return ObjectDoorbell(device, contract::kCounterPageFirst, counter, offset);
}

}  // namespace heddle
