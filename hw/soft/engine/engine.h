// SPDX-License-Identifier: Apache-2.0
// The soft device between the rings in host memory and the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/dma_port.h"
#include "hw/soft/transport/client.h"
#include "hw/soft/transport/message_carrier.h"

namespace heddle::soft::engine {

// Sizes, as BAR0 shows them.
struct EngineLimits {
  uint32_t tx_contexts = 1024;
  uint32_t rx_contexts = 1024;
  uint32_t cqs = 1024;
  uint32_t counters = 1024;
  uint32_t regions = 65536;  // A power of two of at most that.
  uint32_t messages = 4096;  // In flight as initiator; below 2^16.
  // Messages open as target; one more is refused and comes again.
  uint32_t open_messages = 4096;
  uint32_t next_hops = contract::kNextHops;
};

// Takes what an armed completion queue raises.
class InterruptSink {
 public:
  virtual void Raise(uint8_t vector) = 0;

 protected:
  ~InterruptSink() = default;
};

// Queues, messages and remote memory access of one function: what the tables,
// doorbells and rings of docs/contract.md ask for.
//
// Guarantees: host memory is touched through `DmaPort` only; a descriptor, a
// packet or a doorbell that is wrong has the effect that the contract defines
// and no other. A completion is written after what it reports, a counter's echo
// after what it counts. After `Drain` answered true nothing of the entry
// touches host memory.
//
// Construction allocates what all share; writing the table entry of a context,
// queue, counter or region for the first time what that one needs. Nothing else
// does.
//
// Thread safety: one thread at a time, which also drives the transport.
class Engine final : public transport::TransportClient {
 public:
  // `memory` and `interrupts` outlive the engine. `seed` hides which keys and
  // message names collide: random where peers are strangers. Throws
  // std::bad_alloc.
  Engine(const EngineLimits& limits, DmaPort* memory, InterruptSink* interrupts,
         uint64_t seed);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Before the first call but those of tables. The transport is built behind
  // the engine, being given it as client, and ends before it.
  void Connect(transport::MessageCarrier* transport);

  // -- tables (management bus, contract `table`)

  static constexpr size_t kEntryBytes = 64;
  using Entry = std::span<uint8_t, kEntryBytes>;
  using ConstEntry = std::span<const uint8_t, kEntryBytes>;

  // False: no such entry. Throws std::bad_alloc. Tables of the engine: tx_ctx,
  // rx_ctx, cq, next_hop, region, counter, and port, of which it takes
  // payload_mtu and ipv6, so that the caller writes `port` here and to the
  // transport.
  bool WriteTable(contract::Table table, uint32_t index, ConstEntry entry);
  // The entry as last written.
  bool ReadTable(contract::Table table, uint32_t index, Entry entry) const;

  enum class DrainState : uint8_t {
    kDone,     // Nothing that the entry started is under way.
    kPending,  // Ask again after progress.
    kNoEntry,
  };
  // For table_op `drain`: after the entry was disabled. May be asked as often
  // as one likes; has no effect of its own.
  DrainState Drain(contract::Table table, uint32_t index);

  // -- doorbells

  // A write of 8 bytes to BAR2. What no page or register is there for is
  // ignored, so are pushes: the ring holds each descriptor too. True if
  // `Progress` may have something to do now.
  bool Doorbell(uint32_t bar2_offset, uint64_t value);

  // -- progress

  // Takes descriptors from the rings, at most `descriptors`, and hands their
  // messages to the transport. True if there is more to do at once.
  bool Progress(uint32_t descriptors);
  // True if nothing waits for `Progress` and no operation is under way. What
  // only a peer or the host can move (a message without a buffer, a full
  // completion queue) counts as under way.
  bool idle() const;

  // Forgets everything, silently: tables, messages, counters but statistics.
  // The transport is reset by the caller, before.
  void Reset();
  // To be called when the host resets the function, before firmware clears the
  // tables: it listens again when a receive context is enabled.
  void StopListening();

  // Those that are the engine's; 0 for the others.
  uint64_t statistic(contract::Statistic which) const;

  // -- TransportClient

  Built BuildRequest(transport::MessageIndex message, uint32_t index,
                     std::span<uint8_t> out) override;
  void OnAcknowledged(transport::MessageIndex message,
                      uint32_t packets) override;
  void OnResponse(transport::MessageIndex message,
                  const contract::wire::SesResponse& response,
                  std::span<const uint8_t> data, uint32_t data_offset) override;
  bool OnRestart(transport::MessageIndex message) override;
  void OnAbandoned(transport::MessageIndex message, contract::Status status,
                   uint16_t detail, bool transmitted) override;
  transport::Verdict OnReturnData(const transport::Request& request) override;
  bool Listens(std::span<const uint8_t> ses) const override;
  transport::Verdict OnRequest(const transport::Request& request,
                               bool may_guarantee) override;
  Built BuildReturn(const transport::ReturnData& data,
                    std::span<uint8_t> out) override;
  void OnReturnRetired(const transport::ReturnData& data) override;
  void OnTargetClosed(const wire::FabricAddress& source, uint16_t spdcid,
                      bool in_error) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::soft::engine
