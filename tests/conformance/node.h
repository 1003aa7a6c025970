// SPDX-License-Identifier: Apache-2.0
// Reliable datagram endpoints of this process, by the public API alone.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/info.h"
#include "tests/conformance/registry.h"
#include "tests/conformance/runner.h"

namespace heddle::conformance {

// Properties of a node; zero leaves the choice to the provider.
struct NodeOptions {
  uint64_t caps = FI_MSG;
  fi_threading threading = FI_THREAD_UNSPEC;
  fi_progress progress = FI_PROGRESS_UNSPEC;
  fi_cq_format format = FI_CQ_FORMAT_TAGGED;
  fi_wait_obj wait_object = FI_WAIT_NONE;
  uint64_t mode = kModes;
  int mr_mode = kMrModes;
  uint64_t tx_op_flags = 0;
  uint64_t tx_bind_flags = 0;  // FI_SELECTIVE_COMPLETION.
  uint64_t rx_bind_flags = 0;
  size_t cq_data_size = 0;
  fi_av_type av_type = FI_AV_TABLE;
  size_t tx_cq_size = 0;
  size_t rx_cq_size = 0;
  uint32_t version = kVersion;
  bool enable = true;
  // Further changes of the hints.
  std::function<void(fi_info&)> hints = {};
};

// An entry of a completion queue, or an error.
struct Completion {
  bool error = false;
  fi_cq_tagged_entry entry = {};
  fi_cq_err_entry failure = {};
};

// A completion queue of format FI_CQ_FORMAT_TAGGED.
struct Queue {
  // Moves what has completed to `taken`, an entry at a time.
  void Poll();

  fid_cq* cq = nullptr;
  std::deque<Completion> taken;
};

// Fabric, domain, queues, vector and endpoint. Closes them in order and
// expects each close to succeed.
class Node {
 public:
  explicit Node(const NodeOptions& options);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  std::vector<uint8_t> Name() const;
  // Puts `other` into the vector of this node.
  fi_addr_t Insert(const Node& other);
  // One more endpoint in this domain, bound to nothing.
  fid_ep* OpenBareEndpoint();
  fid_cq* OpenQueue(fi_cq_format format);

  int result = 0;  // The first call that failed returned it.
  std::string failed;
  InfoPointer info;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_ep* ep = nullptr;
  Queue tx;
  Queue rx;

 private:
  bool Step(const char* call, int outcome);
};

// Memory of a node, registered if the node needs that or peers access it.
class Buffer {
 public:
  // `access` as of fi_mr_reg.
  Buffer(Node& node, size_t bytes, uint64_t access = FI_SEND | FI_RECV);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  uint8_t* data() { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  // Writes the pattern of `salt` in place, where the memory is registered.
  void Fill(uint32_t salt = 0);
  void* desc() const { return mr == nullptr ? nullptr : fi_mr_desc(mr); }
  uint64_t key() const { return fi_mr_key(mr); }
  // Peers address the first byte by it.
  uint64_t address() const { return address_; }

  fid_mr* mr = nullptr;

 private:
  std::vector<uint8_t> bytes_;
  uint64_t address_ = 0;
};

// Makes a region usable where the provider needs that (FI_MR_ENDPOINT).
void EnableRegion(const Node& node, fid_mr* mr);

// Reads memory that a peer may write at the same time.
uint8_t Load(const volatile uint8_t* byte);

// Bytes that depend on position and `salt`.
std::vector<uint8_t> Pattern(size_t bytes, uint32_t salt = 0);

// The end of a wait that begins with this object: see Settings::wait. That of
// the test comes later, so that the test states what it waits for.
class Deadline {
 public:
  Deadline();
  bool HasPassed() const;

 private:
  std::chrono::nanoseconds start_processor_;
  std::chrono::steady_clock::time_point end_;
};

// Up to three nodes that have each other in their vectors.
class NodesTest : public ::testing::Test {
 protected:
  // Opens `count` nodes; false, with the verdict, if that cannot be.
  bool Open(const NodeOptions& options = {}, size_t count = 2);
  // A sender, node 0, and a receiver, node 1, of different options.
  bool Open(const NodeOptions& sender, const NodeOptions& receiver);
  // Enables nodes that were opened with `enable` false; the same.
  bool Enable();
  // Opens one node that is not in any vector.
  std::unique_ptr<Node> OpenAlone(const NodeOptions& options);

  Node& a() { return *nodes_.at(0); }
  Node& b() { return *nodes_.at(1); }
  Node& c() { return *nodes_.at(2); }
  Node& NodeAt(size_t index) { return *nodes_.at(index); }
  // The address of node `to` in the vector of node `from`.
  fi_addr_t Address(size_t from, size_t to) const {
    return addresses_.at(from).at(to);
  }
  fi_addr_t to_b() const { return Address(0, 1); }
  fi_addr_t to_a() const { return Address(1, 0); }

  // Calls `post` again while it returns -FI_EAGAIN, and drives all queues.
  ssize_t Post(const std::function<ssize_t()>& post);
  ssize_t Send(Buffer& buffer, size_t bytes, void* context);
  ssize_t Receive(Buffer& buffer, void* context,
                  fi_addr_t source = FI_ADDR_UNSPEC);
  // fi_recvmsg of the whole buffer, from any source.
  ssize_t ReceiveWithFlags(Buffer& buffer, uint64_t flags, void* context);
  // The next completion of `queue`; empty at the deadline.
  std::optional<Completion> Take(Queue& queue);
  // Takes a completion that is no error and has this context.
  void ExpectDone(Queue& queue, const void* context);
  // Polls until `done`; false at the deadline.
  bool WaitUntil(const std::function<bool()>& done);
  // A context of its own for each send; ExpectSent takes the completions.
  void* NewContext() { return &contexts_.emplace_back(); }
  void ExpectSent(size_t count);
  // Takes an entry of a receive of node b with this context, tag and length.
  void ExpectTagged(const void* context, uint64_t tag, size_t bytes);
  // True when `queue` stays empty while everything is driven for a time in
  // which a message arrives many times over.
  // `others` are driven besides.
  bool StaysEmpty(Queue& queue, const std::vector<Node*>& others = {});
  // Sends `bytes` bytes from node a to node b and compares them.
  void Exchange(size_t bytes, uint32_t salt = 0);

  void TearDown() override;

 private:
  bool Connect();
  void PollAll();

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::vector<fi_addr_t>> addresses_;
  std::deque<fi_context2> contexts_;
};

}  // namespace heddle::conformance
