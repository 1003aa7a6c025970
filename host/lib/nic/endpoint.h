// SPDX-License-Identifier: Apache-2.0
// An endpoint of the device: its port, its transmit and receive contexts.
#pragma once

#include <cstdint>
#include <memory>

#include "host/lib/nic/address_table.h"
#include "host/lib/nic/counter.h"
#include "host/lib/nic/cq.h"
#include "host/lib/nic/nic.h"
#include "host/lib/nic/rx_queue.h"
#include "host/lib/nic/tx_queue.h"

namespace heddle::nic {

// What counts an endpoint's operations by kind; null: nothing.
struct EndpointCounters {
  const Counter* send = nullptr;
  const Counter* receive = nullptr;
  const Counter* read = nullptr;
  const Counter* write = nullptr;
  const Counter* remote_read = nullptr;
  const Counter* remote_write = nullptr;
};

// Thread safety: made and ended by one thread; tx and rx as documented there.
// Ownership: owns the device's objects; borrows NIC, queues and address table,
// which outlive it.
class Endpoint {
 public:
  struct Options {
    Cq* tx_cq = nullptr;  // Null: the endpoint does not send.
    Cq* rx_cq = nullptr;  // Null: it neither receives nor is reached by RMA.
    AddressTable* peers = nullptr;
    bool name_senders = false;      // FI_SOURCE.
    bool refuse_strangers = false;  // FI_SOURCE_ERR, with `name_senders`.
    size_t tx_operations = 0;
    size_t rx_operations = 0;
    uint32_t copy_limit_bytes = 0;
    uint8_t dscp = 0;  // Of what it sends.
    uint64_t msg_order = 0;
    EndpointCounters counters = {};
    bool region_events = false;  // Every RMA operation of a peer is reported.
    bool report_targets = true;  // False: none is, with data or not.
    uint64_t owner_context = 0;  // Of errors that no operation belongs to.
    MapRefusalListener on_refused = {};  // Once for each direction.
  };

  // Whose port it claims. With `relative` it is the job's, else the address'.
  struct Name {
    uint16_t port = 0;  // 0: any free one.
    uint32_t job_id = 0;
    bool relative = false;  // Where the device has the capability.
  };
  // Errors: EADDRINUSE (`refusal->detail` is the owner's process id), ENOSPC,
  // EIO.
  static Result<std::unique_ptr<Endpoint>> Claim(
      Nic& nic, const Name& name, contract::AdminAnswer* refusal);

  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  // Discards what is outstanding. Afterwards the device touches none of its
  // buffers, and no completion of it is left in a queue.
  ~Endpoint();

  // Creates the contexts. On failure nothing is left but the port. Errors:
  // ENOSPC, ENOMEM, EIO. Throws std::bad_alloc.
  Result<bool> Enable(const Options& options);

  uint16_t port() const noexcept { return static_cast<uint16_t>(grant_.port); }
  // The device's number, for what serves this endpoint only.
  uint32_t number() const noexcept { return grant_.endpoint; }
  TxQueue* tx() const noexcept { return tx_.get(); }
  RxQueue* rx() const noexcept { return rx_.get(); }

 private:
  explicit Endpoint(Nic& nic) : nic_(nic) {}

  Result<bool> EnableTx();
  Result<bool> EnableRx();
  void Disable() noexcept;

  Nic& nic_;
  EndpointGrant grant_;
  Options options_;
  std::unique_ptr<TxQueue> tx_;
  std::unique_ptr<RxQueue> rx_;
  bool claimed_ = false;
  bool tx_created_ = false;
  bool rx_created_ = false;
};

}  // namespace heddle::nic
