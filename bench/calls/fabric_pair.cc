// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/fabric_pair.h"

#include <dlfcn.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::bench {
namespace {

void Check(const char* what, long result) {
  if (result != 0) {
    Fail(what, result);
  }
}

// The step of our provider's device; null for other providers.
void (*FindStep())() {
  const char* path = std::getenv("FI_HEDDLE_SIM_PATH");
  if (path == nullptr) {
    return nullptr;
  }
  void* module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  return module == nullptr
             ? nullptr
             : reinterpret_cast<void (*)()>(dlsym(module, "heddle_bench_step"));
}

fi_info* FindInfo(const std::string& provider, PairKind kind) {
  fi_info* hints = fi_allocinfo();
  if (hints == nullptr) {
    Fail("fi_allocinfo", -FI_ENOMEM);
  }
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  hints->ep_attr->type = FI_EP_RDM;
  const bool remote = kind == PairKind::kRemote;
  hints->caps = FI_MSG | (remote ? FI_RMA : 0) |
                (kind == PairKind::kTagged ? FI_TAGGED : 0);
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
                                FI_MR_ALLOCATED | FI_MR_PROV_KEY |
                                (remote ? 0 : FI_MR_ENDPOINT);
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  // TCP would take the first interface's address, which may not be reachable.
  const bool named = provider.starts_with("tcp");
  fi_info* info = nullptr;
  Check("fi_getinfo",
        fi_getinfo(FI_VERSION(1, 17), named ? "127.0.0.1" : nullptr, nullptr,
                   named ? FI_SOURCE : 0, hints, &info));
  fi_freeinfo(hints);
  return info;
}

}  // namespace

void Fail(const char* what, long error) {
  (void)std::fprintf(stderr, "%s: %s (%ld)\n", what,
                     fi_strerror(static_cast<int>(-error)), error);
  std::_Exit(2);
}

FabricPair::FabricPair(const std::string& provider, size_t buffer_bytes,
                       PairKind kind)
    : buffer_bytes_((buffer_bytes + 63) / 64 * 64),
      kind_(kind),
      info_(FindInfo(provider, kind)) {
  Check("fi_fabric", fi_fabric(info_->fabric_attr, &fabric_, nullptr));
  Check("fi_domain", fi_domain(fabric_, info_, &domain_, nullptr));
  fi_av_attr attr = {};
  attr.type = FI_AV_TABLE;
  attr.count = 8;
  Check("fi_av_open", fi_av_open(domain_, &attr, &addresses_, nullptr));
  Open(sender_);
  Open(receiver_);
  if ((info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0) {
    remote_base_ = reinterpret_cast<uint64_t>(receiver_.buffers);
  }
  std::array<char, 512> name = {};
  for (auto [from, to] :
       {std::pair(&receiver_, &sender_), std::pair(&sender_, &receiver_)}) {
    size_t bytes = name.size();
    Check("fi_getname", fi_getname(&from->endpoint->fid, name.data(), &bytes));
    if (fi_av_insert(addresses_, name.data(), 1, &to->peer, 0, nullptr) != 1) {
      Fail("fi_av_insert", -FI_EINVAL);
    }
  }
  // Connect, and touch what is touched once.
  for (int i = 0; i < 4; ++i) {
    PostReceives(8);
    InjectMessages(8);
    Drain(0, 8);
  }
  Progress();
}

FabricPair::~FabricPair() {
  for (const Side* side : {&sender_, &receiver_}) {
    if (side->region != nullptr) {
      (void)fi_close(&side->region->fid);
    }
    (void)fi_close(&side->endpoint->fid);
    (void)fi_close(&side->queue->fid);
    std::free(side->buffers);
  }
  (void)fi_close(&addresses_->fid);
  (void)fi_close(&domain_->fid);
  (void)fi_close(&fabric_->fid);
  fi_freeinfo(info_);
}

void FabricPair::Open(Side& side) {
  const size_t bytes = kMaxBatch * buffer_bytes_;
  constexpr size_t kPage = 4096;
  side.buffers = static_cast<std::byte*>(
      std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage));
  if (side.buffers == nullptr) {
    Fail("aligned_alloc", -FI_ENOMEM);
  }
  std::memset(side.buffers, 1, bytes);
  fi_cq_attr attr = {};
  attr.size = 4096;
  attr.format = FI_CQ_FORMAT_TAGGED;
  attr.wait_obj = FI_WAIT_NONE;
  Check("fi_endpoint", fi_endpoint(domain_, info_, &side.endpoint, nullptr));
  Check("fi_cq_open", fi_cq_open(domain_, &attr, &side.queue, nullptr));
  Check("fi_ep_bind", fi_ep_bind(side.endpoint, &addresses_->fid, 0));
  Check("fi_ep_bind",
        fi_ep_bind(side.endpoint, &side.queue->fid, FI_TRANSMIT | FI_RECV));
  Check("fi_enable", fi_enable(side.endpoint));
  constexpr uint64_t kLocal = FI_SEND | FI_RECV;
  constexpr uint64_t kRemote =
      FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if (fi_mr_reg(domain_, side.buffers, bytes,
                remote() ? kLocal | kRemote : kLocal, 0,
                &side == &sender_ ? 1 : 2, 0, &side.region, nullptr) == 0) {
    side.descriptor = fi_mr_desc(side.region);
  }
}

bool FabricPair::Step() {
  static void (*const step)() = FindStep();
  if (step == nullptr) {
    return false;
  }
  step();
  return true;
}

void FabricPair::Progress() {
  if (Step()) {
    return;
  }
  for (int i = 0; i < 100; ++i) {
    (void)fi_cq_read(sender_.queue, nullptr, 0);
    (void)fi_cq_read(receiver_.queue, nullptr, 0);
  }
}

size_t FabricPair::Poll(const Side& side) {
  std::array<fi_cq_tagged_entry, 16> entries;
  const ssize_t result = fi_cq_read(side.queue, entries.data(), entries.size());
  if (result == -FI_EAGAIN) {
    return 0;
  }
  if (result == -FI_EAVAIL) {
    fi_cq_err_entry error = {};
    (void)fi_cq_readerr(side.queue, &error, 0);
    Fail("a completion", -error.err);
  }
  if (result < 0) {
    Fail("fi_cq_read", result);
  }
  return static_cast<size_t>(result);
}

void FabricPair::Drain(size_t sent, size_t received) {
  while (sent > 0 || received > 0) {
    (void)Step();
    sent -= Poll(sender_);
    received -= Poll(receiver_);
  }
}

void FabricPair::PostReceives(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::byte* const buffer = Buffer(receiver_, i);
    Check("a receive",
          tagged() ? fi_trecv(receiver_.endpoint, buffer, buffer_bytes_,
                              receiver_.descriptor, FI_ADDR_UNSPEC, kTag, 0,
                              Context(i))
                   : fi_recv(receiver_.endpoint, buffer, buffer_bytes_,
                             receiver_.descriptor, FI_ADDR_UNSPEC, Context(i)));
  }
}

void FabricPair::InjectMessages(size_t count) {
  constexpr size_t kBytes = 8;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const buffer = Buffer(sender_, i);
    const auto inject = [&] {
      return tagged()
                 ? fi_tinject(sender_.endpoint, buffer, kBytes, sender_.peer,
                              kTag)
                 : fi_inject(sender_.endpoint, buffer, kBytes, sender_.peer);
    };
    ssize_t result = 0;
    while ((result = inject()) == -FI_EAGAIN) {
      Progress();
    }
    Check("an injected message", result);
  }
}

}  // namespace heddle::bench
