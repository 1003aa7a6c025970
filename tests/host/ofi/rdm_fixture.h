// SPDX-License-Identifier: Apache-2.0
// Two RDM endpoints in two domains of one process, by the libfabric API alone.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace heddle::test {

// What a node is made of; the defaults are those of the API.
struct NodeOptions {
  uint64_t caps = FI_MSG;
  fi_threading threading = FI_THREAD_UNSPEC;
  fi_progress progress = FI_PROGRESS_UNSPEC;
  fi_av_type av_type = FI_AV_TABLE;
  fi_wait_obj wait_object = FI_WAIT_NONE;
  size_t cq_size = 0;
  size_t tx_size = 0;
  size_t rx_size = 0;
  uint64_t msg_order = 0;  // Of both directions.
  uint64_t tx_op_flags = 0;
  uint64_t rx_op_flags = 0;
  uint64_t bind_flags = 0;  // FI_SELECTIVE_COMPLETION.
  int mr_mode = 0;
  const char* service = nullptr;  // A name of its own; null: the provider's.
  // 0: none given.
  uint32_t auth_key = 0;
  uint32_t domain_auth_key = 0;
  uint32_t traffic_class = FI_TC_UNSPEC;
  uint32_t domain_traffic_class = FI_TC_UNSPEC;
  uint32_t api_version = FI_VERSION(1, 17);
  // Kind of device; null: the one that fi_getinfo names, which has to have no
  // more than this one.
  const char* device = nullptr;
  bool enable = true;
};

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPointer = std::unique_ptr<fi_info, InfoDeleter>;

// The infos that match; null when there are none.
InfoPointer GetInfo(const NodeOptions& options);

// Result of an error entry or a completion, whichever came.
struct Outcome {
  bool error = false;
  fi_cq_tagged_entry entry = {};
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  fi_cq_err_entry failure = {};
};

// Fabric, domain, queues, vector and endpoint. Closes them in order and
// expects each close to succeed.
class Node {
 public:
  explicit Node(const NodeOptions& options = {});
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  bool ok() const { return result == 0; }
  // As fi_getname returns it.
  std::vector<uint8_t> Name() const;
  // Puts `other` into this node's vector.
  fi_addr_t Insert(const Node& other);

  // One more endpoint in the same domain on the same queue and vector.
  fid_ep* OpenEndpoint();

  int result = 0;  // Of the first call that failed.
  InfoPointer info;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_cq* tx_cq = nullptr;
  fid_cq* rx_cq = nullptr;
  fid_av* av = nullptr;
  fid_ep* ep = nullptr;

 private:
  NodeOptions options_;
};

// Ends what hangs: a busy machine takes many times as long as an idle one.
constexpr std::chrono::seconds kLimit{200};
constexpr int kLimitMs = 200'000;

// Polls until `done` or the limit; false after the limit.
bool WaitUntil(const std::function<bool()>& done,
               std::chrono::nanoseconds limit = kLimit);

// The next completion or error of `cq`; empty after the limit. With `driven`, a
// queue of another device, this thread drives both and so waits for no other:
// on a busy machine each such wait is a turn of the scheduler.
std::optional<Outcome> Take(fid_cq* cq, std::chrono::nanoseconds limit = kLimit,
                            fid_cq* driven = nullptr);

// True when `cq` stays empty for a number of polls that would show anything
// that is under way.
bool StaysEmpty(fid_cq* cq);

// Bytes that depend on position, length and `seed`.
std::vector<uint8_t> Pattern(size_t bytes, uint32_t seed = 0);

// Resident memory of this process.
size_t ResidentBytes();

// A pair that knows each other.
struct PairTest : ::testing::Test {
  // HEDDLE_TEST_A and HEDDLE_TEST_B: kind of device of that node.
  void Open(const NodeOptions& options = {}) { Open(options, options); }
  void Open(const NodeOptions& of_a, const NodeOptions& of_b);
  void TearDown() override {
    b.reset();
    a.reset();
  }

  // Sends from a to b and waits for both completions.
  void Exchange(const std::vector<uint8_t>& sent,
                std::vector<uint8_t>& received);

  std::unique_ptr<Node> a;
  std::unique_ptr<Node> b;
  fi_addr_t to_b = FI_ADDR_UNSPEC;
  fi_addr_t to_a = FI_ADDR_UNSPEC;
};

}  // namespace heddle::test
