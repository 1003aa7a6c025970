// SPDX-License-Identifier: Apache-2.0
// What data transfer calls see of an endpoint or of an alias of one.
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>

#include "host/lib/backend/objects.h"
#include "host/lib/backend/operation.h"
#include "host/lib/base/fid.h"
#include "host/lib/ofi/transfer_call.h"

namespace heddle::ofi {

// Of an endpoint: its transmit and its receive context.
inline constexpr uint64_t kDirections = FI_TRANSMIT | FI_RECV;

class Endpoint;
struct DataPath;

// Handles of one endpoint share its queues and differ in their default
// operation flags only, by which their tables of calls are chosen.
//
// Thread safety: data transfer by the domain's threading model; the rest is
// the application's to serialize (fi_endpoint(3)).
class TransferHandle : public fid_ep {
 public:
  // How calls without flags behave, and what the application's flags mean.
  struct Transmit {
    backend::TransmitContext* context = nullptr;
    const backend::Peers* peers = nullptr;
    uint64_t message_flags = 0;  // That calls with flags take.
    bool selective = false;      // Success is reported only with FI_COMPLETION.
    uint8_t fence = 0;  // Each operation has it: kFence with FI_ORDER_STRICT.
    // Calls without flags: an operation's flags, and FI_INJECT.
    uint8_t flags = backend::kReportSuccess;
    bool copy_now = false;
  };
  struct Receive {
    backend::ReceiveContext* context = nullptr;
    backend::ReceiveContext* tagged_context = nullptr;
    bool selective = false;
    bool report = true;
    bool directed = false;        // FI_DIRECTED_RECV.
    bool multi_recv = false;      // FI_MULTI_RECV,
    uint32_t min_multi_recv = 0;  // and FI_OPT_MIN_MULTI_RECV.
  };

  static TransferHandle* From(fid_ep* handle) noexcept {
    return static_cast<TransferHandle*>(handle);
  }
  static TransferHandle* From(struct fid* handle) noexcept {
    return base::FromFid<TransferHandle, fid_ep>(handle);
  }

  const Transmit& transmit() const noexcept { return queues_.transmit; }
  const Receive& receive() const noexcept { return queues_.receive; }

  // The endpoint; of an alias, the one it stands for.
  Endpoint& endpoint() const noexcept { return *endpoint_; }

  // FI_GETOPSFLAG and FI_SETOPSFLAG of fi_endpoint(3). `*flags` holds exactly
  // one of FI_TRANSMIT and FI_RECV: else -FI_EINVAL. -FI_EBADFLAGS for flags
  // that are not offered.
  int ReadOpFlags(uint64_t* flags) const noexcept;
  int ReplaceOpFlags(uint64_t flags) noexcept;

  // Operation flags by direction, and those that may be set for transmission.
  struct OpFlags {
    uint64_t tx = 0;
    uint64_t rx = 0;
    uint64_t tx_offered = 0;
  };
  const OpFlags& op_flags() const noexcept { return op_flags_; }

  // All handles of an enabled endpoint have them in common.
  struct Queues {
    Transmit transmit;
    Receive receive;
    const DataPath* path = nullptr;
    CallTraits traits;
  };
  const Queues& queues() const noexcept { return queues_; }
  // Opens the data transfer calls.
  void UseQueues(const Queues& queues) noexcept;
  // Holds for receives posted from now on.
  void SetMinMultiRecv(uint32_t bytes) noexcept {
    queues_.receive.min_multi_recv = bytes;
  }

 protected:
  TransferHandle(Endpoint* endpoint, const OpFlags& flags) noexcept;
  ~TransferHandle() = default;

  // Data transfer calls answer -FI_EOPBADSTATE from now on.
  void DisableCalls() noexcept;

 private:
  void ApplyOpFlags() noexcept;

  Queues queues_;
  // Above: every post. Below: cold.
  Endpoint* endpoint_;
  OpFlags op_flags_;
  fi_ops_msg message_ops_;
  fi_ops_tagged tagged_ops_;
  fi_ops_rma rma_ops_;
};

}  // namespace heddle::ofi
