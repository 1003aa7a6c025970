// SPDX-License-Identifier: Apache-2.0
// An endpoint of a device that sends to itself, over the wire.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "driver/control/admin_queue.h"
#include "driver/device.h"
#include "driver/dma/dma_buffer.h"
#include "driver/queue/completion_queue.h"
#include "driver/queue/recv_ring.h"
#include "driver/queue/send_ring.h"

namespace heddle::tool {

// A transmit and a receive context with the smallest rings, one completion
// queue each, and memory to send from and to.
//
// Thread safety: none. Ownership: borrows device and admin queue; the device
// has nothing of it any more when it is gone.
class SelfLoop {
 public:
  static constexpr uint32_t kBytes = 65536;  // In each direction.

  struct Options {
    uint8_t vector = 0;  // Interrupt of receive completions, when armed.
    std::chrono::milliseconds limit{10000};  // For each completion.
  };

  // Throws CommandError.
  SelfLoop(Device& device, AdminQueue& admin, const PortInfo& port,
           const Options& options);
  ~SelfLoop();
  SelfLoop(const SelfLoop&) = delete;
  SelfLoop& operator=(const SelfLoop&) = delete;

  // Sends one message of `bytes` with contents derived from `seed`, waits for
  // both completions and compares the contents. Returns the error, or an empty
  // string.
  std::string Exchange(uint32_t bytes, uint32_t seed);
  // The same, without waiting for the receive: it is to interrupt.
  void PostForInterrupt();
  std::string FinishInterrupted();

  uint32_t ring_slots() const { return tx_->capacity(); }

 private:
  void CreateQueues(uint8_t vector);
  void CreateContexts(const PortInfo& port);
  std::string Await(std::optional<CompletionQueue>& queue, const char* what,
                    contract::Completion* got);
  std::string Finish(uint32_t bytes);

  Device& device_;
  AdminQueue& admin_;
  const std::chrono::milliseconds limit_;
  EndpointGrant grant_;
  DmaBuffer av_, tx_slots_, rx_slots_, tx_entries_, rx_entries_, cells_, data_;
  std::optional<uint32_t> endpoint_, tx_cq_, rx_cq_, tx_number_, rx_number_;
  std::optional<SendRing> tx_;
  std::optional<RecvRing> rx_;
  std::optional<CompletionQueue> sent_, received_;
};

}  // namespace heddle::tool
