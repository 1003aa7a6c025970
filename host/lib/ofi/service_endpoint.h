// SPDX-License-Identifier: Apache-2.0
// An endpoint that the library itself has on a domain, for what it does by
// messages of its own. Made of the objects that applications have; what it
// completes is in no queue of theirs.
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "host/lib/backend/progressor.h"
#include "host/lib/base/socket_address.h"

namespace heddle::ofi {

class Domain;

// Thread safety: any thread. Ownership: the domain (`Domain::OpenService`).
// Results are those of the call of libfabric that a member is named after.
class ServiceEndpoint {
 public:
  // The threads that poll the domain report completions to it, one at a time.
  // It may use the endpoint.
  class Handler {
   public:
    // `source` is the index of who sent a message, or FI_ADDR_NOTAVAIL.
    virtual void OnCompletion(const fi_cq_data_entry& entry,
                              fi_addr_t source) noexcept = 0;
    // Once the device has failed, of each operation that is outstanding.
    virtual void OnError(const fi_cq_err_entry& error) noexcept = 0;

   protected:
    ~Handler() = default;
  };
  struct Options {
    uint64_t caps = FI_MSG;   // As in fi_info, and FI_SOURCE.
    uint16_t port = 0;        // 0: any free one.
    size_t operations = 256;  // At a time, each way.
  };
  // Users that it is for its domain.
  static constexpr uint32_t kUsers = 3;

  // 0 or a negative errno. Throws std::bad_alloc.
  static int Open(Domain* domain, const Options& options, Handler* handler,
                  std::unique_ptr<ServiceEndpoint>* service);
  ServiceEndpoint(const ServiceEndpoint&) = delete;
  ServiceEndpoint& operator=(const ServiceEndpoint&) = delete;
  // Discards what is outstanding; the handler is called no more.
  ~ServiceEndpoint();

  base::SocketAddress name() const noexcept;
  int Insert(const base::SocketAddress& peer, fi_addr_t* index) noexcept;
  ssize_t SendMsg(const fi_msg& message, uint64_t flags) noexcept;
  ssize_t RecvMsg(const fi_msg& message, uint64_t flags) noexcept;
  ssize_t ReadMsg(const fi_msg_rma& message, uint64_t flags) noexcept;
  ssize_t WriteMsg(const fi_msg_rma& message, uint64_t flags) noexcept;

  // Takes completions and reports them.
  backend::Progressor* progressor() noexcept { return &progressor_; }

 private:
  struct Closer {
    void operator()(auto* object) const noexcept { fi_close(&object->fid); }
  };

  explicit ServiceEndpoint(Handler* handler) noexcept;
  int OpenObjects(Domain* domain, const Options& options);
  void Step() noexcept;

  Handler* handler_;
  backend::Progressor progressor_;
  std::atomic<bool> stepping_ = false;
  std::mutex mutex_;  // The objects: the threading model is the application's.
  std::unique_ptr<fid_cq, Closer> queue_;
  std::unique_ptr<fid_av, Closer> peers_;
  std::unique_ptr<fid_ep, Closer> endpoint_;
};

}  // namespace heddle::ofi
