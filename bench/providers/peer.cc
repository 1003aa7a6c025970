// SPDX-License-Identifier: Apache-2.0
#include "bench/providers/peer.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace heddle::bench {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kCqEntries = 4096;
constexpr uint32_t kPollsBeforeYield = 4000;
// How long a side goes on working for one that may not be through.
constexpr std::chrono::milliseconds kGrace{20};

[[noreturn]] void Fail(const char* call, int64_t result) {
  std::fprintf(stderr, "%s: %s\n", call,
               fi_strerror(static_cast<int>(-result)));
  std::_Exit(2);
}

void Check(const char* call, int64_t result) {
  if (result != 0) {
    Fail(call, result);
  }
}

// Each side's message to the other.
struct Introduction {
  std::array<char, 256> name = {};
  size_t name_bytes = sizeof(name);
  uint64_t address = 0;
  uint64_t key = 0;
};

fi_info* FindInfo(bool writes) {
  fi_info* const hints = fi_allocinfo();
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | (writes ? FI_RMA : 0);
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
                                FI_MR_ALLOCATED | FI_MR_PROV_KEY |
                                FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  // TCP would take the first interface's address, which may not be reachable.
  const char* const name = std::getenv("FI_PROVIDER");
  const bool tcp = name != nullptr && std::string_view(name).starts_with("tcp");
  fi_info* info = nullptr;
  Check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), tcp ? "127.0.0.1" : nullptr,
                                 nullptr, tcp ? FI_SOURCE : 0, hints, &info));
  fi_freeinfo(hints);
  return info;
}

}  // namespace

Peer::Peer(const PeerOptions& options, const Link& link)
    : bytes_(options.bytes), link_(link) {
  Open(options);
  Register(options);
  Introduce();
}

void Peer::Open(const PeerOptions& options) {
  info_ = FindInfo(options.writes);
  fi_cq_attr queue = {};
  queue.size = kCqEntries;
  queue.format = FI_CQ_FORMAT_CONTEXT;
  fi_av_attr vector = {};
  vector.type = info_->domain_attr->av_type;
  Check("fi_fabric", fi_fabric(info_->fabric_attr, &fabric_, nullptr));
  Check("fi_domain", fi_domain(fabric_, info_, &domain_, nullptr));
  Check("fi_av_open", fi_av_open(domain_, &vector, &addresses_, nullptr));
  Check("fi_cq_open", fi_cq_open(domain_, &queue, &transmits_, nullptr));
  Check("fi_cq_open", fi_cq_open(domain_, &queue, &receives_, nullptr));
  Check("fi_endpoint", fi_endpoint(domain_, info_, &endpoint_, nullptr));
  Check("fi_ep_bind", fi_ep_bind(endpoint_, &addresses_->fid, 0));
  Check("fi_ep_bind", fi_ep_bind(endpoint_, &transmits_->fid, FI_TRANSMIT));
  Check("fi_ep_bind", fi_ep_bind(endpoint_, &receives_->fid, FI_RECV));
  Check("fi_enable", fi_enable(endpoint_));
}

void Peer::Register(const PeerOptions& options) {
  const size_t slot = (bytes_ + kPage - 1) / kPage * kPage;
  memory_.resize(2 * slot + 2 * kPage);
  void* start = memory_.data();
  size_t room = memory_.size();
  send_buffer_ =
      static_cast<std::byte*>(std::align(kPage, 2 * slot, start, room));
  receive_buffer_ = send_buffer_ + slot;
  const uint64_t access =
      FI_SEND | FI_RECV |
      (options.writes ? FI_WRITE | FI_REMOTE_WRITE : uint64_t{0});
  Check("fi_mr_reg", fi_mr_reg(domain_, send_buffer_, 2 * slot, access, 0, 1, 0,
                               &region_, nullptr));
  if ((info_->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
    Check("fi_mr_bind", fi_mr_bind(region_, &endpoint_->fid, 0));
    Check("fi_mr_enable", fi_mr_enable(region_));
  }
  descriptor_ = fi_mr_desc(region_);
}

void Peer::Introduce() {
  Introduction mine;
  const bool by_address =
      (info_->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC)) != 0;
  Check("fi_getname",
        fi_getname(&endpoint_->fid, mine.name.data(), &mine.name_bytes));
  mine.key = fi_mr_key(region_);
  mine.address = by_address
                     ? reinterpret_cast<uint64_t>(receive_buffer_)
                     : static_cast<uint64_t>(receive_buffer_ - send_buffer_);
  if (write(link_.out, &mine, sizeof(mine)) != sizeof(mine)) {
    Fail("introduction", -FI_EIO);
  }
}

void Peer::Meet() {
  Introduction others;
  if (read(link_.in, &others, sizeof(others)) != sizeof(others)) {
    Fail("introduction of the other side", -FI_EIO);
  }
  if (fi_av_insert(addresses_, others.name.data(), 1, &other_, 0, nullptr) !=
      1) {
    Fail("fi_av_insert", -FI_EADDRNOTAVAIL);
  }
  remote_address_ = others.address;
  remote_key_ = others.key;
}

Peer::~Peer() {
  fid* const objects[] = {&region_->fid,    &endpoint_->fid,  &receives_->fid,
                          &transmits_->fid, &addresses_->fid, &domain_->fid,
                          &fabric_->fid};
  for (fid* const object : objects) {
    (void)fi_close(object);
  }
  fi_freeinfo(info_);
}

bool Peer::Poll() {
  bool any = false;
  for (const auto& [queue, count] : {std::pair(transmits_, &transmitted_),
                                     std::pair(receives_, &received_)}) {
    std::array<fi_cq_entry, 16> entries;
    const ssize_t result = fi_cq_read(queue, entries.data(), entries.size());
    if (result > 0) {
      *count += static_cast<uint64_t>(result);
      any = true;
    } else if (result == -FI_EAVAIL) {
      fi_cq_err_entry error = {};
      (void)fi_cq_readerr(queue, &error, 0);
      Fail("completion", -error.err);
    } else if (result != -FI_EAGAIN) {
      Fail("fi_cq_read", result);
    }
  }
  return any;
}

void Peer::Idle() {
  if (++idle_polls_ == kPollsBeforeYield) {
    idle_polls_ = 0;
    sched_yield();
  }
}

void Peer::PostReceive() {
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN) {
    result =
        fi_recv(endpoint_, receive_buffer_, bytes_, descriptor_, FI_ADDR_UNSPEC,
                &contexts_.at(kMaxWindow + posted_receives_ % kMaxWindow));
    if (result == -FI_EAGAIN) {
      (void)Poll();
    }
  }
  Check("fi_recv", result);
  ++posted_receives_;
}

bool Peer::TrySend(size_t bytes) {
  const bool injects = bytes <= info_->tx_attr->inject_size;
  const ssize_t result =
      injects ? fi_inject(endpoint_, send_buffer_, bytes, other_)
              : fi_send(endpoint_, send_buffer_, bytes, descriptor_, other_,
                        &contexts_.at(posted_transmits_ % kMaxWindow));
  if (result == -FI_EAGAIN) {
    return false;
  }
  Check("fi_send", result);
  posted_transmits_ += injects ? 0 : 1;
  return true;
}

void Peer::Send(size_t bytes) {
  while (!TrySend(bytes)) {
    if (!Poll()) {
      Idle();
    }
  }
}

void Peer::Write() {
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN) {
    result = fi_write(endpoint_, send_buffer_, bytes_, descriptor_, other_,
                      remote_address_, remote_key_,
                      &contexts_.at(posted_transmits_ % kMaxWindow));
    if (result == -FI_EAGAIN && !Poll()) {
      Idle();
    }
  }
  Check("fi_write", result);
  ++posted_transmits_;
}

void Peer::WaitUntilReceived(uint64_t count) {
  while (received_ < count) {
    if (!Poll()) {
      Idle();
    }
  }
}

void Peer::WaitForTransmits() {
  while (transmitted_ < posted_transmits_) {
    if (!Poll()) {
      Idle();
    }
  }
}

void Peer::Finish() {
  const auto end = std::chrono::steady_clock::now() + kGrace;
  while (std::chrono::steady_clock::now() < end) {
    (void)Poll();
  }
  char through = 0;
  if (write(link_.out, &through, 1) != 1 || read(link_.in, &through, 1) != 1) {
    Fail("end of the other process", -FI_EIO);
  }
}

}  // namespace heddle::bench
