// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/service_endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <array>
#include <new>

#include "host/lib/core/info_memory.h"
#include "host/lib/ofi/address_vector.h"
#include "host/lib/ofi/completion_queue.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/endpoint.h"

namespace heddle::ofi {
namespace {

// Completions of one step.
constexpr size_t kBatch = 16;

}  // namespace

ServiceEndpoint::ServiceEndpoint(Handler* handler) noexcept
    : handler_(handler) {
  progressor_.step = [](void* cookie) {
    static_cast<ServiceEndpoint*>(cookie)->Step();
  };
  progressor_.cookie = this;
  progressor_.by_polls_only = true;
}

ServiceEndpoint::~ServiceEndpoint() = default;

int ServiceEndpoint::Open(Domain* domain, const Options& options,
                          Handler* handler,
                          std::unique_ptr<ServiceEndpoint>* service) {
  std::unique_ptr<ServiceEndpoint> opened(new ServiceEndpoint(handler));
  const int result = opened->OpenObjects(domain, options);
  if (result == 0) {
    *service = std::move(opened);
  }
  return result;
}

int ServiceEndpoint::OpenObjects(Domain* domain, const Options& options) {
  const core::InfoPointer info(core::AllocateInfo());
  if (info == nullptr) {
    return -FI_ENOMEM;
  }
  const base::SocketAddress name = domain->address().WithPort(options.port);
  info->caps = options.caps | FI_SOURCE;
  info->ep_attr->type = FI_EP_RDM;
  info->tx_attr->size = info->rx_attr->size = options.operations;
  info->src_addr = core::DuplicateBytes(name.data(), name.size());
  info->src_addrlen = name.size();
  if (info->src_addr == nullptr) {
    return -FI_ENOMEM;
  }
  fi_cq_attr queue_attr = {};
  queue_attr.size = 2 * options.operations;
  queue_attr.format = FI_CQ_FORMAT_DATA;
  fi_av_attr peers_attr = {};
  fid_cq* queue = nullptr;
  fid_av* peers = nullptr;
  fid_ep* endpoint = nullptr;
  int result = CompletionQueue::Open(domain, &queue_attr, &queue, nullptr);
  queue_.reset(queue);
  if (result == 0) {
    result = AddressVector::Open(domain, &peers_attr, &peers, nullptr);
    peers_.reset(peers);
  }
  if (result == 0) {
    result = Endpoint::Open(domain, info.get(), &endpoint, nullptr);
    endpoint_.reset(endpoint);
  }
  if (result != 0) {
    return result;
  }
  CompletionQueue::From(queue)->StepNone();
  auto* mine = static_cast<Endpoint*>(endpoint);
  domain->Hide(mine);
  result = mine->Bind(&queue->fid, FI_TRANSMIT | FI_RECV);
  if (result == 0) {
    result = mine->Bind(&peers->fid, 0);
  }
  return result == 0 ? mine->Enable() : result;
}

base::SocketAddress ServiceEndpoint::name() const noexcept {
  const auto* endpoint = static_cast<const Endpoint*>(endpoint_.get());
  return endpoint->domain()->address().WithPort(endpoint->port());
}

int ServiceEndpoint::Insert(const base::SocketAddress& peer,
                            fi_addr_t* index) noexcept {
  const std::lock_guard lock(mutex_);
  const int inserted =
      fi_av_insert(peers_.get(), peer.data(), 1, index, 0, nullptr);
  return inserted == 1 ? 0 : inserted == 0 ? -FI_EINVAL : inserted;
}

ssize_t ServiceEndpoint::SendMsg(const fi_msg& message,
                                 uint64_t flags) noexcept {
  const std::lock_guard lock(mutex_);
  return fi_sendmsg(endpoint_.get(), &message, flags);
}

ssize_t ServiceEndpoint::RecvMsg(const fi_msg& message,
                                 uint64_t flags) noexcept {
  const std::lock_guard lock(mutex_);
  return fi_recvmsg(endpoint_.get(), &message, flags);
}

ssize_t ServiceEndpoint::ReadMsg(const fi_msg_rma& message,
                                 uint64_t flags) noexcept {
  const std::lock_guard lock(mutex_);
  return fi_readmsg(endpoint_.get(), &message, flags);
}

ssize_t ServiceEndpoint::WriteMsg(const fi_msg_rma& message,
                                  uint64_t flags) noexcept {
  const std::lock_guard lock(mutex_);
  return fi_writemsg(endpoint_.get(), &message, flags);
}

// The handler is called without the lock, so that it can post.
void ServiceEndpoint::Step() noexcept {
  if (stepping_.exchange(true, std::memory_order_acquire)) {
    return;
  }
  std::array<fi_cq_data_entry, kBatch> entries;
  std::array<fi_addr_t, kBatch> sources;
  fi_cq_err_entry error = {};
  ssize_t taken;
  {
    const std::lock_guard lock(mutex_);
    taken =
        fi_cq_readfrom(queue_.get(), entries.data(), kBatch, sources.data());
    if (taken == -FI_EAVAIL && fi_cq_readerr(queue_.get(), &error, 0) != 1) {
      taken = -FI_EAGAIN;
    }
  }
  for (ssize_t i = 0; i < taken; ++i) {
    handler_->OnCompletion(entries[static_cast<size_t>(i)],
                           sources[static_cast<size_t>(i)]);
  }
  if (taken == -FI_EAVAIL) {
    handler_->OnError(error);
  }
  stepping_.store(false, std::memory_order_release);
}

}  // namespace heddle::ofi
