// SPDX-License-Identifier: Apache-2.0
// The endpoint object (fid_ep) of type FI_EP_RDM.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "host/lib/backend/objects.h"
#include "host/lib/ofi/address_vector.h"
#include "host/lib/ofi/completion_queue.h"
#include "host/lib/ofi/counter.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/endpoint_alias.h"
#include "host/lib/ofi/endpoint_caps.h"
#include "host/lib/ofi/fork_guard.h"
#include "host/lib/ofi/transfer_handle.h"

namespace heddle::ofi {

class MemoryRegion;

// Data transfer calls are in message_ops.h, tagged_ops.h and rma_ops.h; their
// tables are chosen when the endpoint is enabled, by its capabilities and the
// threading model.
//
// Thread safety: data transfer by the domain's threading model; the rest is
// the application's to serialize (fi_endpoint(3)).
// Ownership: the application, until fi_close.
class Endpoint final : public TransferHandle, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Open(Domain* domain, const fi_info* info, fid_ep** endpoint,
                  void* context);

  // The calls of fi_endpoint(3) and fi_cm(3), which define their results.
  // `Enable` and `SetName` throw std::bad_alloc.
  int Bind(struct fid* other, uint64_t flags) noexcept;
  int Enable();
  int SetName(const void* address, size_t length);
  int GetName(void* address, size_t* length) const noexcept;
  ssize_t Cancel(void* context) noexcept;
  // FI_OPT_MIN_MULTI_RECV; -FI_ENOPROTOOPT without FI_MULTI_RECV.
  int GetMinMultiRecv(void* value, size_t* length) const noexcept;
  int SetMinMultiRecv(const void* value, size_t length) noexcept;
  // -FI_EBUSY, nothing changed, while it has aliases; else frees it.
  int Close() noexcept;

  // Aliases add and remove themselves. `Add` throws std::bad_alloc.
  void Add(EndpointAlias* alias);
  void Remove(EndpointAlias* alias) noexcept;

  // Regions that serve this endpoint only add and remove themselves, from any
  // thread. `Add` claims the port and tells the device's number of the
  // endpoint; 0 or a negative errno. Throws std::bad_alloc.
  int Add(MemoryRegion* region, uint32_t* number);
  void Remove(MemoryRegion* region) noexcept;
  Domain* domain() const noexcept { return domain_; }
  uint32_t job_id() const noexcept { return job_id_; }
  // Precondition: it has its port, as once it is enabled.
  uint16_t port() const noexcept { return backend_->port(); }

  // Tells the application, by the event queue, that the device has failed.
  void ReportFailure() noexcept;

 private:
  // Kinds of operation that counters are bound for.
  enum CounterKind : size_t {
    kSendCounter,
    kReceiveCounter,
    kReadCounter,
    kWriteCounter,
    kRemoteReadCounter,
    kRemoteWriteCounter,
    kCounterKinds,
  };
  static constexpr std::array<uint64_t, kCounterKinds> kCounterFlags = {
      FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};

  void Disinherit() noexcept override;

  Endpoint(Domain* domain, const fi_info& info, void* context);
  ~Endpoint();

  int BindCompletionQueue(CompletionQueue* queue, uint64_t flags) noexcept;
  int BindAddressVector(AddressVector* vector, uint64_t flags) noexcept;
  int BindEventQueue(ofi::EventQueue* queue, uint64_t flags) noexcept;
  int BindCounter(Counter* counter, uint64_t flags) noexcept;
  int ReadService(const fi_info& info) noexcept;
  int ClaimPort();
  int CheckBindings() const noexcept;
  backend::EndpointOptions BackendOptions() const noexcept;
  backend::ReceiveContexts ReceiveContexts() const noexcept;

  Domain* domain_;
  CompletionQueue* tx_cq_ = nullptr;
  CompletionQueue* rx_cq_ = nullptr;
  AddressVector* vector_ = nullptr;
  ofi::EventQueue* event_queue_ = nullptr;
  bool enabled_ = false;
  bool tx_selective_ = false;
  bool rx_selective_ = false;
  EndpointCaps caps_;
  bool name_senders_;
  bool refuse_strangers_;
  uint8_t dscp_ = 0;
  uint32_t job_id_;
  uint64_t msg_order_ = 0;
  uint8_t fence_ = 0;  // Each operation has it.
  size_t tx_size_;
  size_t rx_size_;
  size_t total_buffered_recv_;
  uint16_t port_ = 0;  // Wanted; 0: any.
  std::unique_ptr<backend::Endpoint> backend_;
  std::array<Counter*, kCounterKinds> counters_{};
  std::vector<EndpointAlias*> aliases_;
  std::mutex mutex_;  // The regions.
  std::vector<MemoryRegion*> regions_;
};

}  // namespace heddle::ofi
