// SPDX-License-Identifier: Apache-2.0
// A pair of endpoints with remote memory access.
#pragma once

#include <rdma/fi_rma.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {

constexpr uint64_t kRemoteAccess = FI_REMOTE_READ | FI_REMOTE_WRITE;

// From nothing over each way that a payload may take to several packets and
// more.
constexpr size_t kSizes[] = {
    0,   1,    7,    8,    15,   16,    17,    64,    65,      191,      192,
    193, 1000, 4095, 4096, 4097, 65535, 65536, 65537, 1 << 20, 3'500'001};

// Whether the device under test has READ.
bool DeviceReads();

// Options of a node that does messages and the RMA that the device has.
NodeOptions RmaOptions();

// A registration that ends with its scope; expects that closing succeeds.
class Region {
 public:
  // Expects that it can be registered unless `expected` says otherwise.
  Region(const Node& node, const void* memory, size_t bytes,
         uint64_t access = kRemoteAccess, uint64_t key = NextKey(),
         uint64_t flags = 0);
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { Close(); }
  void Close();

  uint64_t key() const { return fi_mr_key(mr); }
  void* descriptor() const { return fi_mr_desc(mr); }

  // Keys that no other region of the process has.
  static uint64_t NextKey();

  fid_mr* mr = nullptr;
};

// Memory with a border that nobody may touch.
class Guarded {
 public:
  explicit Guarded(size_t bytes, uint8_t fill = 0xee);
  uint8_t* data() { return memory_.data() + kBorder; }
  size_t size() const { return memory_.size() - 2 * kBorder; }
  std::vector<uint8_t> Content() const;
  bool BorderIsWhole() const;

 private:
  static constexpr size_t kBorder = 64;
  static constexpr uint8_t kMark = 0x5a;
  std::vector<uint8_t> memory_;
};

// Whether `memory` begins with `data`, read while a peer may write it: a race
// that ThreadSanitizer need not report.
bool Holds(const std::vector<uint8_t>& memory,
           const std::vector<uint8_t>& data);

// Takes one completion of `cq` and expects a success with these flags and this
// context. `driven` is as `Take` has it.
void ExpectDone(fid_cq* cq, uint64_t flags, const void* context,
                fid_cq* driven = nullptr);
// The same of an error. The rest of it is the caller's to look at.
fi_cq_err_entry ExpectError(fid_cq* cq, int error, int prov_errno);

struct RmaTest : PairTest {
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Open(RmaOptions())); }
};

// A completion means that the data are in the target's memory, which is looked
// at next.
struct DeliveredTest : PairTest {
  static NodeOptions Options() {
    NodeOptions options = RmaOptions();
    options.tx_op_flags = FI_DELIVERY_COMPLETE;
    return options;
  }
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Open(Options())); }
};

}  // namespace heddle::test
