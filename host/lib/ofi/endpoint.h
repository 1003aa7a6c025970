// SPDX-License-Identifier: Apache-2.0
// The endpoint object (fid_ep) of type FI_EP_RDM.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "host/lib/nic/endpoint.h"
#include "host/lib/ofi/address_vector.h"
#include "host/lib/ofi/completion_queue.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/fork_guard.h"

namespace heddle::ofi {

// Data transfer calls are in message_ops.h; the table of them is chosen when
// the endpoint is enabled, by its capabilities and the threading model.
//
// Thread safety: data transfer by the domain's threading model; the rest is
// the application's to serialize (fi_endpoint(3)).
// Ownership: the application, until fi_close.
class Endpoint final : public fid_ep, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Open(Domain* domain, const fi_info* info, fid_ep** endpoint,
                  void* context);

  static Endpoint* From(fid_ep* handle) noexcept {
    return static_cast<Endpoint*>(handle);
  }
  static Endpoint* From(struct fid* handle) noexcept {
    return fabric::FromFid<Endpoint, fid_ep>(handle);
  }

  // How calls without flags behave, and what the application's flags mean.
  struct Transmit {
    nic::TxQueue* queue = nullptr;
    const nic::AddressTable* peers = nullptr;
    bool selective = false;  // Success is reported only with FI_COMPLETION.
    bool report = true;      // Calls without flags: report success.
    bool copy_now = false;   // Calls without flags: FI_INJECT.
  };
  struct Receive {
    nic::RxQueue* queue = nullptr;
    bool selective = false;
    bool report = true;
  };
  const Transmit& transmit() const noexcept { return transmit_; }
  const Receive& receive() const noexcept { return receive_; }

  // The calls of fi_endpoint(3) and fi_cm(3), which define their results.
  // `Enable` and `SetName` throw std::bad_alloc.
  int Bind(struct fid* other, uint64_t flags) noexcept;
  int Enable();
  int SetName(const void* address, size_t length);
  int GetName(void* address, size_t* length) const noexcept;
  ssize_t Cancel(void* context) noexcept;
  int Control(int command, void* argument);
  int Close() noexcept;

 private:
  void Disinherit() noexcept override;

  Endpoint(Domain* domain, const fi_info& info, void* context);
  ~Endpoint();

  int BindCompletionQueue(CompletionQueue* queue, uint64_t flags) noexcept;
  int BindAddressVector(AddressVector* vector, uint64_t flags) noexcept;
  int BindEventQueue(fabric::EventQueue* queue, uint64_t flags) noexcept;
  int ClaimPort();
  int CheckBindings() const noexcept;
  void ApplyOpFlags() noexcept;
  int AccessOpFlags(uint64_t* flags, bool set) noexcept;

  Transmit transmit_;
  Receive receive_;
  // Above: every post. Below: cold.
  Domain* domain_;
  CompletionQueue* tx_cq_ = nullptr;
  CompletionQueue* rx_cq_ = nullptr;
  AddressVector* vector_ = nullptr;
  fabric::EventQueue* event_queue_ = nullptr;
  bool enabled_ = false;
  bool sends_;
  bool receives_;
  bool name_senders_;
  uint64_t tx_op_flags_ = 0;
  uint64_t rx_op_flags_ = 0;
  uint64_t msg_order_ = 0;
  size_t tx_size_;
  size_t rx_size_;
  uint16_t port_ = 0;  // Wanted; 0: any.
  std::unique_ptr<nic::Endpoint> backend_;
  fi_ops_msg message_ops_;
};

}  // namespace heddle::ofi
