// SPDX-License-Identifier: Apache-2.0
// Two RDM endpoints of one provider in one process, through the public API.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle::bench {

// One endpoint with its queue and buffers.
struct Side {
  fid_ep* endpoint = nullptr;
  fid_cq* queue = nullptr;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  std::byte* buffers = nullptr;  // One of `buffer_bytes` per operation.
  fid_mr* region = nullptr;      // All of them, registered.
  void* descriptor = nullptr;    // `region`'s; null where none is needed.
};

// The kind of messages that the endpoints of a pair exchange.
enum class PairKind : uint8_t {
  kMessages,
  kTagged,  // Also untagged messages, which nothing here sends.
  kRemote,  // Messages, and access to the receiver's buffers.
};

// Sender and receiver, connected, with FI_THREAD_DOMAIN and manual progress:
// the minimum work of a provider per call. Errors end the process with status 2
// and a line that names the call.
//
// Thread safety: none.
class FabricPair {
 public:
  static constexpr size_t kMaxBatch = 64;

  // Every tagged message has it.
  static constexpr uint64_t kTag = 7;

  // `provider`: as FI_PROVIDER names it. `buffer_bytes`: at least 64.
  FabricPair(const std::string& provider, size_t buffer_bytes, PairKind kind);
  ~FabricPair();
  FabricPair(const FabricPair&) = delete;
  FabricPair& operator=(const FabricPair&) = delete;

  Side& sender() { return sender_; }
  Side& receiver() { return receiver_; }
  std::byte* Buffer(const Side& side, size_t i) const {
    return side.buffers + i * buffer_bytes_;
  }
  size_t buffer_bytes() const { return buffer_bytes_; }
  // Where the receiver's buffers are to a peer. Precondition: `kRemote`.
  uint64_t remote_key() const { return fi_mr_key(receiver_.region); }
  uint64_t RemoteAddress(size_t i) const {
    return remote_base_ + i * buffer_bytes_;
  }
  fi_context2* Context(size_t i) { return &contexts_.at(i); }
  const fi_info& info() const { return *info_; }

  bool tagged() const { return kind_ == PairKind::kTagged; }

  // Lets the provider work without taking completions.
  void Progress();
  // Waits for and takes so many completions.
  void Drain(size_t sent, size_t received);
  // Messages are of the pair's kind, 8 bytes each.
  void PostReceives(size_t count);
  void InjectMessages(size_t count);

 private:
  bool remote() const { return kind_ == PairKind::kRemote; }
  void Open(Side& side);
  // Lets a stepped device work; false when the provider needs none.
  static bool Step();
  static size_t Poll(const Side& side);

  const size_t buffer_bytes_;
  const PairKind kind_;
  uint64_t remote_base_ = 0;
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* addresses_ = nullptr;
  Side sender_;
  Side receiver_;
  std::array<fi_context2, 2 * kMaxBatch> contexts_{};
};

// Ends the process: `what` answered `error`, negative.
[[noreturn]] void Fail(const char* what, long error);

}  // namespace heddle::bench
