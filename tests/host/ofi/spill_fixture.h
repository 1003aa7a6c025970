// SPDX-License-Identifier: Apache-2.0
// A sender with a small ring and two peers: one that takes nothing for a while,
// or for ever, and one that takes all.
#pragma once

#include <rdma/fi_rma.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "tests/host/ofi/rma_fixture.h"

namespace heddle::test {

// Operations of all kinds to one peer, and what became of each.
class StuckOperations {
 public:
  static constexpr size_t kMostBytes = 5000;
  static constexpr size_t kMostWrites = 1024;

  enum class Kind : uint8_t { kSend, kInject, kWrite, kRead };
  struct Operation {
    Kind kind = Kind::kSend;
    bool asked = false;   // For a completion.
    uint32_t number = 0;  // Of its kind.
    std::vector<uint8_t> data;
    int done = 0;
    int failed = 0;
  };

  StuckOperations(Node* from, fi_addr_t to, uint32_t seed);
  // Of memory of the peer; without, there are messages alone.
  void SetRegions(uint64_t target_key, uint64_t source_key) {
    target_key_ = target_key;
    source_key_ = source_key;
  }
  // Each would be an end of its own that takes as long as a peer needs to be
  // dead.
  void WithoutFences() { fence_ = 0; }
  // Every operation is reported but those injected, whatever is asked.
  void ReportAll() { all_ = true; }

  // Posts one; what fi_* answers. Only 0 adds one.
  ssize_t PostAny();
  ssize_t PostSend(size_t bytes, bool inject);
  // With what was posted before it done, on both sides.
  ssize_t PostLast();

  // What the sender's queue says about them: reads all that is there. Entries
  // of others are `others`.
  void Poll();
  std::vector<void*> others;
  int failed_injects = 0;

  // Message `number` as it arrives.
  static std::vector<uint8_t> Message(uint32_t number, size_t bytes);
  static constexpr size_t Place(uint32_t write) { return write * kMostBytes; }
  std::deque<Operation> all;
  uint32_t sends = 0;  // Messages: injected ones, too.
  uint32_t writes = 0;
  uint32_t reads = 0;

 private:
  size_t Pick(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }
  ssize_t Write(Operation* operation, uint64_t flags);
  ssize_t Read(Operation* operation, uint64_t flags);
  ssize_t Send(Operation* operation, uint64_t flags);
  ssize_t Keep(Operation* operation, ssize_t result, bool asked);

  Node* from_;
  fi_addr_t to_;
  uint64_t fence_;
  std::mt19937 random_;
  uint64_t target_key_ = 0;
  uint64_t source_key_ = 0;
  bool all_ = false;
};

struct SpillTest : PairTest {
  static NodeOptions Options();
  // a sends, b is stuck, c is not.
  void OpenThree(const NodeOptions& options);
  void TearDown() override;

  // A message to c: both ends are told of it in time.
  void ExchangeWithC();
  // Posts `count` operations to b, with exchanges in between.
  void PostMany(int count, const std::function<ssize_t()>& post);
  // b takes the messages up to that one, or all that were posted; each once, in
  // order.
  void TakeAtB(uint32_t end);
  void TakeAllAtB() { TakeAtB(stuck->sends); }
  // Each operation that asked has ended once, with success, no other.
  void ExpectAllDone();
  uint64_t Spilled() const;

  std::unique_ptr<Node> c;
  fi_addr_t to_c = FI_ADDR_UNSPEC;
  std::vector<uint8_t> target;
  std::vector<uint8_t> source;
  std::optional<Region> target_region;
  std::optional<Region> source_region;
  std::optional<StuckOperations> stuck;
  uint32_t exchanged = 0;
  uint32_t taken = 0;  // Messages at b.
  bool fences = true;
  bool reads_queue = true;  // Of the sender, while b takes messages.
};

}  // namespace heddle::test
