// SPDX-License-Identifier: Apache-2.0
// One of two sides that measure a provider through the public API.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::bench {

struct PeerOptions {
  size_t bytes = 8;  // Length of a message.
  bool writes = false;
};

// Pipes to the other side.
struct Link {
  int in = -1;
  int out = -1;
};

// An RDM endpoint with the minimum work of a provider: FI_THREAD_DOMAIN, manual
// progress, registered memory. Errors end the process with status 2 and a line
// that names the call.
//
// Thread safety: none.
class Peer {
 public:
  static constexpr size_t kMaxWindow = 256;

  // Opens, and sends its name to the other side. FI_PROVIDER names the
  // provider.
  Peer(const PeerOptions& options, const Link& link);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Blocks until the other side has written the same. To be called once, before
  // what follows.
  void Meet();

  const char* provider() const { return info_->fabric_attr->prov_name; }

  // Each retries while the provider is full. A message of up to inject size is
  // injected and counts as sent at once.
  void PostReceive();
  void Send(size_t bytes);
  // The same once; false: the provider is full.
  bool TrySend(size_t bytes);
  void Write();

  // Until all that was posted so far is complete.
  void WaitForReceives() { WaitUntilReceived(posted_receives_); }
  // Until so many messages have come, counted from the first.
  void WaitUntilReceived(uint64_t count);
  void WaitForTransmits();
  // Takes completions; whether there were any.
  bool Poll();
  bool complete() const {
    return received_ >= posted_receives_ && transmitted_ >= posted_transmits_;
  }

  // Goes on working for the other side until that has come here, too.
  void Finish();

 private:
  void Open(const PeerOptions& options);
  void Register(const PeerOptions& options);
  void Introduce();
  void Idle();

  const size_t bytes_;
  const Link link_;
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_cq* transmits_ = nullptr;
  fid_cq* receives_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fid_mr* region_ = nullptr;
  void* descriptor_ = nullptr;
  fi_addr_t other_ = FI_ADDR_UNSPEC;
  uint64_t remote_address_ = 0;
  uint64_t remote_key_ = 0;
  std::vector<std::byte> memory_;
  std::byte* send_buffer_ = nullptr;
  std::byte* receive_buffer_ = nullptr;
  std::array<fi_context2, 2 * kMaxWindow> contexts_ = {};
  uint64_t posted_receives_ = 0;
  uint64_t posted_transmits_ = 0;
  uint64_t received_ = 0;
  uint64_t transmitted_ = 0;
  uint32_t idle_polls_ = 0;
};

}  // namespace heddle::bench
