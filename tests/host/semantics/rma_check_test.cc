// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/rma_check.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>

#include "tests/seed.h"

namespace heddle::semantics {
namespace {

using contract::ReturnCode;
using contract::SesOpcode;

constexpr uint64_t kBase = 0x10000;
constexpr uint64_t kLength = 0x1000;

class RmaCheckTest : public testing::Test {
 protected:
  static RmaRequest Write(uint64_t address, uint32_t length) {
    return {SesOpcode::kWrite, 0, address, length, 0, length, 7, 3};
  }
  ReturnCode Code(const RmaRequest& request) const {
    return CheckRma(&region_, request).code;
  }

  RegionSpec region_ = {.base = kBase,
                        .length = kLength,
                        .access = kRemoteRead | kRemoteWrite,
                        .job_id = 7};
};

TEST_F(RmaCheckTest, OffsetIsThePacketsInTheRegion) {
  RmaRequest request = Write(kBase + 0x100, 0x80);
  request.message_offset = 0x20;
  request.length = 0x20;
  const RmaAnswer answer = CheckRma(&region_, request);
  EXPECT_EQ(answer.code, ReturnCode::kOk);
  EXPECT_EQ(answer.offset, 0x120U);
}

TEST_F(RmaCheckTest, BytesOutsideTheRegionAreRefused) {
  EXPECT_EQ(Code(Write(kBase, kLength)), ReturnCode::kOk);
  EXPECT_EQ(Code(Write(kBase + 1, kLength)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(kBase - 1, 1)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(kBase - 1, 0)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(0, 8)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(~uint64_t{0}, 1)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(kBase + kLength - 8, 8)), ReturnCode::kOk);
  EXPECT_EQ(Code(Write(kBase + kLength - 7, 8)), ReturnCode::kBadAddr);
  // No bytes: the first behind the region is as far as it goes.
  EXPECT_EQ(Code(Write(kBase + kLength, 0)), ReturnCode::kOk);
  EXPECT_EQ(Code(Write(kBase + kLength + 1, 0)), ReturnCode::kBadAddr);
}

TEST_F(RmaCheckTest, MessageLongerThanTheRegionIsAnUnsupportedSize) {
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{1}, uint64_t{kLength}, ~uint64_t{0}}) {
    EXPECT_EQ(Code(Write(kBase + offset, kLength + 1)),
              ReturnCode::kUnsupportedSize);
    EXPECT_EQ(Code(Write(kBase + offset, 0xffffffff)),
              ReturnCode::kUnsupportedSize);
  }
}

TEST_F(RmaCheckTest, FirstPacketOfAMessageThatLeavesTheRegionIsRefused) {
  RmaRequest request = Write(kBase + 1, kLength);
  request.length = 0x100;
  EXPECT_EQ(Code(request), ReturnCode::kBadAddr);
  request.buffer_offset = kBase;
  request.request_length = kLength;
  EXPECT_EQ(Code(request), ReturnCode::kOk);
}

TEST_F(RmaCheckTest, PacketBeyondItsMessageIsRefused) {
  RmaRequest request = Write(kBase, 0x100);
  request.message_offset = 0xff;
  request.length = 2;
  EXPECT_EQ(Code(request), ReturnCode::kBadAddr);
  request.message_offset = 0xffffffff;
  EXPECT_EQ(Code(request), ReturnCode::kBadAddr);
  request.message_offset = 0xfe;
  EXPECT_EQ(Code(request), ReturnCode::kOk);
}

TEST_F(RmaCheckTest, EachOpcodeNeedsItsAccessRights) {
  for (uint8_t access = 0; access < 4; ++access) {
    region_.access = access;
    for (const SesOpcode opcode :
         {SesOpcode::kWrite, SesOpcode::kRead, SesOpcode::kAtomic,
          SesOpcode::kFetchingAtomic}) {
      RmaRequest request = Write(kBase, 8);
      request.opcode = opcode;
      const bool reads =
          opcode == SesOpcode::kRead || opcode == SesOpcode::kFetchingAtomic;
      const bool writes = opcode != SesOpcode::kRead;
      const bool granted = (!reads || (access & kRemoteRead) != 0) &&
                           (!writes || (access & kRemoteWrite) != 0);
      EXPECT_EQ(Code(request),
                granted ? ReturnCode::kOk : ReturnCode::kPermViolation)
          << int{access} << " " << static_cast<int>(opcode);
    }
  }
}

TEST_F(RmaCheckTest, OtherJobsAndEndpointsFindNoRegion) {
  region_.endpoint = 3;
  EXPECT_EQ(Code(Write(kBase, 8)), ReturnCode::kOk);
  EXPECT_EQ(CheckRma(nullptr, Write(kBase, 8)).code, ReturnCode::kBadMkey);
  RmaRequest request = Write(kBase, 8);
  request.job_id = 8;
  EXPECT_EQ(Code(request), ReturnCode::kBadMkey);
  request = Write(kBase, 8);
  request.endpoint = 4;
  EXPECT_EQ(Code(request), ReturnCode::kBadMkey);
  region_.endpoint = RegionSpec::kAnyEndpoint;
  EXPECT_EQ(Code(request), ReturnCode::kOk);
}

TEST_F(RmaCheckTest, FirstReasonIsTheOneAnswered) {
  region_.access = 0;
  RmaRequest request = Write(kBase + kLength, 8);
  EXPECT_EQ(Code(request), ReturnCode::kPermViolation);
  request.job_id = 1;
  EXPECT_EQ(Code(request), ReturnCode::kBadMkey);
  request.opcode = SesOpcode::kSend;
  EXPECT_EQ(Code(request), ReturnCode::kUnsupportedOp);
}

// Against arithmetic too wide to wrap.
TEST_F(RmaCheckTest, AgreesWithWideArithmeticForRandomRanges) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto near = [&](std::initializer_list<uint64_t> edges) {
    const uint64_t edge = *(edges.begin() + random() % edges.size());
    return edge + random() % 5 - 2;
  };
  uint32_t granted = 0;
  for (uint32_t round = 0; round < 100000; ++round) {
    RegionSpec spec = region_;
    spec.base = near({2, kBase, ~uint64_t{0} - kLength, ~uint64_t{0} - 8});
    spec.length = near({2, kLength, 0xffffffff});
    if (spec.base + spec.length < spec.base) {
      continue;
    }
    RmaRequest request = Write(0, 0);
    request.buffer_offset =
        near({2, spec.length, spec.base, spec.base + spec.length,
              ~uint64_t{0} - spec.base, ~uint64_t{0} - 8});
    request.request_length = static_cast<uint32_t>(
        near({2, spec.length, 0xffffffff, 0xffffffff - kLength}));
    request.message_offset =
        static_cast<uint32_t>(near({2, request.request_length}));
    request.length = static_cast<uint32_t>(random() % 5);
    using Wide = unsigned __int128;
    const Wide first = request.buffer_offset;
    const bool inside =
        first >= spec.base &&
        first + request.request_length <= Wide{spec.base} + spec.length &&
        Wide{request.message_offset} + request.length <= request.request_length;
    const RmaAnswer answer = CheckRma(&spec, request);
    const bool longer = request.request_length > spec.length;
    ASSERT_EQ(answer.code, inside   ? ReturnCode::kOk
                           : longer ? ReturnCode::kUnsupportedSize
                                    : ReturnCode::kBadAddr)
        << "round " << round;
    if (inside) {
      ASSERT_EQ(Wide{spec.base} + answer.offset,
                first + request.message_offset);
      ++granted;
    }
  }
  EXPECT_GT(granted, 1000U);
}

}  // namespace
}  // namespace heddle::semantics
