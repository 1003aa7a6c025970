// SPDX-License-Identifier: Apache-2.0
// An endpoint of the device: its port, its transmit and receive contexts.
#pragma once

#include <cstdint>
#include <memory>

#include "host/lib/backend/device.h"
#include "host/lib/nic/address_table.h"
#include "host/lib/nic/counter_cell.h"
#include "host/lib/nic/cq.h"
#include "host/lib/nic/match_queue.h"
#include "host/lib/nic/nic.h"
#include "host/lib/nic/rx_queue.h"
#include "host/lib/nic/tx_queue.h"

namespace heddle::nic {

// Thread safety: made and ended by one thread; tx and rx as documented there.
// Ownership: owns the device's objects; borrows NIC, queues and address table,
// which outlive it.
class Endpoint final : public backend::Endpoint {
 public:
  // The queues, peers and counters that they name are of this backend.
  using Options = backend::EndpointOptions;
  using Name = backend::EndpointName;
  // Errors: EADDRINUSE (`refusal->detail` is the owner's process id), ENOSPC,
  // EIO.
  static Result<std::unique_ptr<Endpoint>> Claim(
      Nic& nic, const Name& name, contract::AdminAnswer* refusal);

  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  // Discards what is outstanding. Afterwards the device touches none of its
  // buffers, and no completion of it is left in a queue.
  ~Endpoint() override;

  // Creates the contexts. On failure nothing is left but the port. Errors:
  // ENOSPC, ENOMEM, EIO. Throws std::bad_alloc.
  Result<bool> Enable(const Options& options) override;

  uint16_t port() const noexcept override {
    return static_cast<uint16_t>(grant_.port);
  }
  // The device's.
  uint32_t number() const noexcept override { return grant_.endpoint; }
  TxQueue* transmit() const noexcept override { return tx_.get(); }
  RxContext* receive() const noexcept override {
    return rx_ != nullptr ? static_cast<RxContext*>(rx_.get()) : match_.get();
  }
  MatchQueue* tagged_receive() const noexcept override { return tagged_.get(); }
  bool Cancel(uint64_t context) noexcept override {
    const auto cancel = [context](auto& queue) {
      return queue != nullptr &&
             queue->template Cancel<backend::Locked>(context);
    };
    return cancel(rx_) || cancel(match_) || cancel(tagged_);
  }
  TxQueue* tx() const noexcept { return tx_.get(); }
  RxQueue* rx() const noexcept { return rx_.get(); }

 private:
  explicit Endpoint(Nic& nic) : nic_(nic) {}

  Cq* tx_cq() const noexcept { return static_cast<Cq*>(options_.tx_cq); }
  Cq* rx_cq() const noexcept { return static_cast<Cq*>(options_.rx_cq); }
  AddressTable* peers() const noexcept {
    return static_cast<AddressTable*>(options_.peers);
  }
  Result<bool> EnableTx();
  Result<bool> EnableRx();
  uint8_t TxFlags() const noexcept;
  RxOptions MakeRxOptions() const;
  // The command of an untagged context, or of a tagged one.
  contract::AdminCreateRx RxCommand(bool tagged) const noexcept;
  template <typename Queue>
  Result<bool> CreateRx(const RxOptions& options,
                        contract::AdminCreateRx command,
                        std::unique_ptr<Queue>* queue);
  template <typename Queue>
  void DestroyRx(std::unique_ptr<Queue>* queue) noexcept;
  void Disable() noexcept;

  Nic& nic_;
  EndpointGrant grant_;
  Options options_;
  std::unique_ptr<TxQueue> tx_;
  std::unique_ptr<RxQueue> rx_;        // Untagged messages: this
  std::unique_ptr<MatchQueue> match_;  // or this; and of tagged ones.
  std::unique_ptr<MatchQueue> tagged_;
  bool claimed_ = false;
  bool tx_created_ = false;
};

}  // namespace heddle::nic
