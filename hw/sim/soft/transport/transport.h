// SPDX-License-Identifier: Apache-2.0
// UET's packet delivery sublayer: PDCs, both sides, over any datagram wire.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/soft/transport/client.h"
#include "hw/sim/soft/transport/message_carrier.h"
#include "hw/sim/soft/wire/datagram_wire.h"

namespace heddle::sim::soft {

struct TransportLimits {
  static constexpr uint32_t kMaxPdcs = 511;

  // As initiator, and as many as target; at most kMaxPdcs. Both share the 1023
  // PDCIDs of a function with those that rest (`safety_ticks`).
  uint32_t pdcs = 384;
  uint32_t messages = 4096;      // MessageIndex is below.
  uint32_t guaranteed = 8;       // Stored responses per target PDC.
  uint32_t return_records = 64;  // Per target PDC, at most pdc_window.
  // Start_PSN of PDCIDs used for the first time, for tests of its wrap; else
  // random.
  std::optional<uint32_t> first_psn;
};

// Guarantees: UET §2 as profiled by design §3;
// `hw/sim/soft/transport/README.md` lists the rules. Nothing allocates after
// construction but the growth of tables within their limits.
//
// Thread safety: one thread at a time.
class Transport final : public MessageCarrier {
 public:
  // `tick_ns`: length of the ticks of `Configure`, at least 1.
  Transport(const TransportLimits& limits, DatagramWire* wire,
            TransportClient* client, uint64_t seed, uint64_t tick_ns);
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  ~Transport();

  // Times and rules, as firmware wrote them to tables `port` and `transport`.
  void Configure(const contract::PortCfg& port,
                 const contract::TransportCfg& transport);

  PostOutcome Post(MessageIndex message, const PdcName& name, const Path& path,
                   uint32_t packets, bool expects_data) override;
  void Finish(MessageIndex message) override;
  bool Stuck(MessageIndex message) const override;
  bool PostReturn(uint16_t pdc, const ReturnData& data) override;

  // A datagram from the wire. `now_ns` is monotonic.
  void Receive(const Datagram& datagram, uint64_t now_ns);
  // Sends what windows and the wire allow, at most `packets`, and runs timers.
  // True if something is left to send at once.
  bool Progress(uint64_t now_ns, uint32_t packets);
  // When `Progress` has to be called again without news; UINT64_MAX: never.
  uint64_t deadline_ns() const;
  // True if no PDC has anything to send, to be acknowledged or to answer.
  bool idle() const;

  // Forgets everything, silently (reset of the function), but for the names of
  // target PDCs: what their initiators send again is refused.
  void Reset();

  uint64_t statistic(contract::Statistic which) const;
  // Bytes of memory per PDC, both sides.
  static size_t bytes_per_pdc();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::sim::soft
