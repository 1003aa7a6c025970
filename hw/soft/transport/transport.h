// SPDX-License-Identifier: Apache-2.0
// UET's packet delivery sublayer: PDCs, both sides, over any datagram wire.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/transport/client.h"
#include "hw/soft/transport/message_carrier.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::transport {

struct TransportLimits {
  static constexpr uint32_t kMaxPdcs = 2048;

  // As initiator, and as many as target; at most kMaxPdcs. Both share the
  // PDCIDs that the wire grants with those that rest (`safety_ticks`).
  uint32_t pdcs = kMaxPdcs;
  uint32_t messages = 4096;      // MessageIndex is below.
  uint32_t guaranteed = 8;       // Stored responses per target PDC.
  uint32_t return_records = 64;  // Per target PDC, at most pdc_window.
  // Start_PSN of PDCIDs used for the first time, for tests of its wrap; else
  // random.
  std::optional<uint32_t> first_psn;
};

// Guarantees: section 2 of docs/uet.md; `hw/soft/transport/README.md` lists
// the rules. Nothing allocates after
// construction but the growth of tables within their limits.
//
// Thread safety: one thread at a time.
class Transport final : public MessageCarrier {
 public:
  // `tick_ns`: length of the ticks of `Configure`, at least 1.
  Transport(const TransportLimits& limits, wire::DatagramWire* wire,
            TransportClient* client, uint64_t seed, uint64_t tick_ns);
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  ~Transport();

  // Times and rules, as firmware wrote them to tables `port` and `transport`.
  // Each call with `transport.close` closes the PDCs that are open by then.
  void Configure(const contract::PortCfg& port,
                 const contract::TransportCfg& transport);

  PostOutcome Post(MessageIndex message, const PdcName& name,
                   const wire::Path& path, uint32_t packets,
                   bool expects_data) override;
  void Finish(MessageIndex message) override;
  void Hold(MessageIndex message) override;
  void Resume(MessageIndex message) override;
  void Fail(MessageIndex message) override;
  bool Stuck(MessageIndex message) const override;
  bool PostReturn(uint16_t pdc, const ReturnData& data) override;
  wire::Path ReturnPath(uint16_t pdc) const override;

  // A datagram from the wire. `now_ns` is monotonic.
  void Receive(const wire::Datagram& datagram, uint64_t now_ns);
  // Sends what windows and the wire allow, at most `packets`, and runs timers.
  // True if something is left to send at once.
  bool Progress(uint64_t now_ns, uint32_t packets);
  // When `Progress` has to be called again without news; UINT64_MAX: never.
  uint64_t deadline_ns() const;
  // True if no PDC has anything to send, to be acknowledged or to answer.
  bool idle() const;

  // PDCs that are open or being closed.
  struct OpenPdcs {
    uint16_t initiator = 0;
    uint16_t target = 0;
  };
  OpenPdcs open_pdcs() const;

  // Forgets everything, silently (reset of the function): a new incarnation of
  // the function begins, which has executed nothing yet. Of the former one only
  // the names of target PDCs are kept, so that their late SYNs open nothing.
  void Reset();

  uint64_t statistic(contract::Statistic which) const;
  // Bytes of memory per PDC, both sides.
  static size_t bytes_per_pdc();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::soft::transport
