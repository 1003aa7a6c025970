// SPDX-License-Identifier: Apache-2.0
#include "tests/host/ofi/rma_fixture.h"

#include <algorithm>
#include <atomic>

namespace heddle::test {

bool DeviceReads() {
  static const bool reads = [] {
    NodeOptions options;
    options.caps = FI_RMA | FI_READ;
    return GetInfo(options) != nullptr;
  }();
  return reads;
}

NodeOptions RmaOptions() {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA;
  if (!DeviceReads()) {
    options.caps |= FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
  }
  return options;
}

Region::Region(const Node& node, const void* memory, size_t bytes,
               uint64_t access, uint64_t key, uint64_t flags) {
  EXPECT_EQ(fi_mr_reg(node.domain, memory, bytes, access, 0, key, flags, &mr,
                      nullptr),
            0);
}

void Region::Close() {
  if (mr != nullptr) {
    EXPECT_EQ(fi_close(&mr->fid), 0);
    mr = nullptr;
  }
}

uint64_t Region::NextKey() {
  static std::atomic<uint64_t> next{0x100};
  return next++;
}

Guarded::Guarded(size_t bytes, uint8_t fill)
    : memory_(bytes + 2 * kBorder, kMark) {
  std::fill_n(data(), bytes, fill);
}

std::vector<uint8_t> Guarded::Content() const {
  return {memory_.begin() + kBorder,
          memory_.end() - static_cast<ptrdiff_t>(kBorder)};
}

bool Guarded::BorderIsWhole() const {
  const auto is_mark = [](uint8_t byte) { return byte == kMark; };
  return std::all_of(memory_.begin(), memory_.begin() + kBorder, is_mark) &&
         std::all_of(memory_.end() - static_cast<ptrdiff_t>(kBorder),
                     memory_.end(), is_mark);
}

void ExpectDone(fid_cq* cq, uint64_t flags, const void* context,
                fid_cq* driven) {
  const auto done = Take(cq, kLimit, driven);
  ASSERT_TRUE(done.has_value());
  ASSERT_FALSE(done->error)
      << fi_strerror(done->failure.err) << ": "
      << fi_cq_strerror(cq, done->failure.prov_errno, nullptr, nullptr, 0);
  EXPECT_EQ(done->entry.flags, flags);
  EXPECT_EQ(done->entry.op_context, context);
}

__attribute__((no_sanitize("thread"))) bool Holds(
    const std::vector<uint8_t>& memory, const std::vector<uint8_t>& data) {
  const volatile uint8_t* const polled = memory.data();
  for (size_t i = 0; i < data.size(); ++i) {
    if (polled[i] != data[i]) {
      return false;
    }
  }
  return true;
}

fi_cq_err_entry ExpectError(fid_cq* cq, int error, int prov_errno) {
  const auto done = Take(cq);
  EXPECT_TRUE(done.has_value());
  if (!done.has_value()) {
    return {};
  }
  EXPECT_TRUE(done->error);
  EXPECT_EQ(done->failure.err, error) << fi_strerror(done->failure.err);
  EXPECT_EQ(done->failure.prov_errno, prov_errno);
  return done->failure;
}

}  // namespace heddle::test
