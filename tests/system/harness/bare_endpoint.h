// SPDX-License-Identifier: Apache-2.0
// An endpoint made from driver primitives alone: what system tests and
// performance programs put on a device, without a host library above it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/control/admin_queue.h"
#include "driver/device.h"
#include "driver/dma/dma_buffer.h"
#include "driver/queue/completion_queue.h"
#include "driver/queue/recv_ring.h"
#include "driver/queue/send_ring.h"
#include "hw/sim/frame/wire_address.h"

namespace heddle {

struct BareEndpointOptions {
  uint32_t port = 0;
  uint32_t job_id = 1;
  bool relative = false;  // Named in its job.
  uint8_t tx_log2 = 8;
  uint8_t rx_log2 = 8;
  uint8_t cq_log2 = 10;
  uint32_t av_entries = 64;
  bool ordered = true;  // Every class of operations: all go on ROD.
  bool push = true;     // Lone sends go through the push window.
  bool sends = true;    // False: it has no transmit context.
  bool receives =
      true;  // False: the port is claimed, but no context serves it.
  bool counters = false;       // One for each class of operations.
  bool events = false;         // Completions of peers' RMA operations.
  bool spill = false;          // The transmit context has a spill area.
  uint64_t spill_iova = 0;     // Instead of the endpoint's own.
  bool early_release = false;  // Without one: the NIC may use its memory.
  uint8_t traffic_class = 0;   // DSCP of its transmit context.
};

// Counters of a bare endpoint, in the order of its cells.
enum class Counted : uint8_t {
  kSend,
  kRead,
  kWrite,
  kRecv,
  kRemoteRead,
  kRemoteWrite
};
inline constexpr size_t kCounted = 6;

// One transmit and one receive context, a completion queue each, and an
// address vector.
//
// Thread safety: none. Ownership: borrows device and admin queue, which
// outlive it; destroys what it created.
class BareEndpoint {
 public:
  // Null with a reason in `*error`.
  static std::unique_ptr<BareEndpoint> Create(
      Device& device, AdminQueue& admin, const BareEndpointOptions& options,
      std::string* error);
  ~BareEndpoint();
  BareEndpoint(const BareEndpoint&) = delete;
  BareEndpoint& operator=(const BareEndpoint&) = delete;

  // Adds `{address, grant}` to the address vector; its index. Throws
  // std::runtime_error when its next hop is not found.
  uint32_t AddPeer(const sim::frame::WireAddress& address,
                   const EndpointGrant& grant);

  const EndpointGrant& grant() const { return grant_; }
  SendRing& tx() { return *tx_; }
  RecvRing& rx() { return *rx_; }
  CompletionQueue& tx_cq() { return *tx_cq_; }
  CompletionQueue& rx_cq() { return *rx_cq_; }

  // With `counters`.
  const contract::CounterCell& Cell(Counted counted) const;
  uint32_t counter(Counted counted) const {
    return counters_[static_cast<size_t>(counted)];
  }

  // Descriptor pushed last, for tests that spoil it before it is published.
  contract::TxDesc& LastTxDesc();

  // Takes the oldest completion and releases its ring slots.
  std::optional<contract::Completion> PollTx();
  std::optional<contract::Completion> PollRx();

  // After a reset of the device: the objects on it are gone.
  void Forget();

 private:
  BareEndpoint(Device& device, AdminQueue& admin)
      : device_(device), admin_(admin) {}
  bool CreateCounters();
  bool CreateQueues(const BareEndpointOptions& options);
  bool CreateTx(const BareEndpointOptions& options, uint64_t spill_iova);
  bool CreateRx(const BareEndpointOptions& options);
  // As contexts name it: 0 without counters.
  uint8_t Reference(Counted counted) const;

  Device& device_;
  AdminQueue& admin_;
  EndpointGrant grant_;
  DmaBuffer av_, tx_slots_, rx_slots_, tx_entries_, rx_entries_, cells_, spill_;
  DmaBuffer counter_cells_;
  std::vector<uint32_t> counters_;
  size_t tx_slots_count_ = 0;
  uint32_t peers_ = 0;
  std::optional<uint32_t> endpoint_, tx_cq_number_, rx_cq_number_, tx_number_,
      rx_number_;
  std::optional<SendRing> tx_;
  std::optional<RecvRing> rx_;
  std::optional<CompletionQueue> tx_cq_, rx_cq_;
};

}  // namespace heddle
