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
constexpr uint64_t kKey = 42;

class RmaCheckTest : public testing::Test {
 protected:
  static RegionSpec Spec(uint64_t key) {
    RegionSpec spec;
    spec.base = kBase;
    spec.length = kLength;
    spec.access = kRemoteRead | kRemoteWrite;
    spec.key = key;
    spec.job_id = 7;
    return spec;
  }
  static RmaRequest Write(uint64_t key, uint64_t offset, uint32_t length) {
    return {SesOpcode::kWrite, key, offset, length, 0, length, 7, 3, false};
  }
  ReturnCode Code(const RmaRequest& request) {
    return CheckRma(table_, request).code;
  }

  RegionTable table_{8, 1};
};

TEST_F(RmaCheckTest, OffsetCountsFromTheRegionsFirstByte) {
  const auto region = table_.Register(Spec(kKey));
  RmaRequest request = Write(kKey, 0x100, 0x80);
  request.message_offset = 0x20;
  request.length = 0x20;
  const RmaAnswer answer = CheckRma(table_, request);
  EXPECT_EQ(answer.code, ReturnCode::kOk);
  EXPECT_EQ(answer.region, region.region);
  EXPECT_EQ(answer.address, kBase + 0x120);
}

TEST_F(RmaCheckTest, VirtualAddressIsTheOwners) {
  RegionSpec spec = Spec(kKey);
  spec.virtual_address = true;
  ASSERT_EQ(table_.Register(spec).status, RegionTable::Status::kOk);
  EXPECT_EQ(CheckRma(table_, Write(kKey, kBase + 8, 8)).address, kBase + 8);
  EXPECT_EQ(Code(Write(kKey, kBase - 1, 1)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(kKey, kBase - 1, 0)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(kKey, 0, 8)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(kKey, kBase + kLength - 8, 8)), ReturnCode::kOk);
  EXPECT_EQ(Code(Write(kKey, kBase + kLength - 7, 8)), ReturnCode::kBadAddr);
}

TEST_F(RmaCheckTest, BytesOutsideTheRegionAreRefused) {
  ASSERT_EQ(table_.Register(Spec(kKey)).status, RegionTable::Status::kOk);
  EXPECT_EQ(Code(Write(kKey, 0, kLength)), ReturnCode::kOk);
  EXPECT_EQ(Code(Write(kKey, 1, kLength)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(kKey, ~uint64_t{0}, 1)), ReturnCode::kBadAddr);
  EXPECT_EQ(Code(Write(kKey, ~uint64_t{0} - kBase, 1)), ReturnCode::kBadAddr);
  // No bytes: the first behind the region is as far as it goes.
  EXPECT_EQ(Code(Write(kKey, kLength, 0)), ReturnCode::kOk);
  EXPECT_EQ(Code(Write(kKey, kLength + 1, 0)), ReturnCode::kBadAddr);
}

TEST_F(RmaCheckTest, MessageLongerThanTheRegionIsAnUnsupportedSize) {
  ASSERT_EQ(table_.Register(Spec(kKey)).status, RegionTable::Status::kOk);
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{1}, uint64_t{kLength}, ~uint64_t{0}}) {
    EXPECT_EQ(Code(Write(kKey, offset, kLength + 1)),
              ReturnCode::kUnsupportedSize);
    EXPECT_EQ(Code(Write(kKey, offset, 0xffffffff)),
              ReturnCode::kUnsupportedSize);
  }
}

TEST_F(RmaCheckTest, FirstPacketOfAMessageThatLeavesTheRegionIsRefused) {
  ASSERT_EQ(table_.Register(Spec(kKey)).status, RegionTable::Status::kOk);
  RmaRequest request = Write(kKey, 1, kLength);
  request.length = 0x100;
  EXPECT_EQ(Code(request), ReturnCode::kBadAddr);
  request.buffer_offset = 0;
  request.request_length = kLength;
  EXPECT_EQ(Code(request), ReturnCode::kOk);
}

TEST_F(RmaCheckTest, PacketBeyondItsMessageIsRefused) {
  ASSERT_EQ(table_.Register(Spec(kKey)).status, RegionTable::Status::kOk);
  RmaRequest request = Write(kKey, 0, 0x100);
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
    RegionSpec spec = Spec(access);
    spec.access = access;
    ASSERT_EQ(table_.Register(spec).status, RegionTable::Status::kOk);
    for (const SesOpcode opcode :
         {SesOpcode::kWrite, SesOpcode::kRead, SesOpcode::kAtomic,
          SesOpcode::kFetchingAtomic}) {
      RmaRequest request = Write(access, 0, 8);
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

TEST_F(RmaCheckTest, OtherJobsEndpointsAndKeysFindNoRegion) {
  RegionSpec spec = Spec(kKey);
  spec.endpoint = 3;
  ASSERT_EQ(table_.Register(spec).status, RegionTable::Status::kOk);
  EXPECT_EQ(Code(Write(kKey, 0, 8)), ReturnCode::kOk);
  EXPECT_EQ(Code(Write(kKey + 1, 0, 8)), ReturnCode::kBadMkey);
  RmaRequest request = Write(kKey, 0, 8);
  request.job_id = 8;
  EXPECT_EQ(Code(request), ReturnCode::kBadMkey);
  request = Write(kKey, 0, 8);
  request.endpoint = 4;
  EXPECT_EQ(Code(request), ReturnCode::kBadMkey);
  ASSERT_EQ(table_.Register(Spec(kKey + 1)).status, RegionTable::Status::kOk);
  request.key = kKey + 1;
  EXPECT_EQ(Code(request), ReturnCode::kOk) << "of any endpoint";
}

TEST_F(RmaCheckTest, DeregisteredRegionIsNotFoundWhileItDrains) {
  const auto region = table_.Register(Spec(kKey));
  ASSERT_TRUE(table_.Acquire(region.region));
  ASSERT_EQ(table_.Deregister(region.region), RegionTable::Drain::kPending);
  EXPECT_EQ(Code(Write(kKey, 0, 8)), ReturnCode::kBadMkey);
}

TEST_F(RmaCheckTest, IdempotentRequestsNeedARegionSafeForThem) {
  ASSERT_EQ(table_.Register(Spec(kKey)).status, RegionTable::Status::kOk);
  RmaRequest request = Write(kKey, 0, 8);
  request.idempotent = true;
  EXPECT_EQ(Code(request), ReturnCode::kOpViolation);
  RegionSpec safe = Spec(kKey + 1);
  safe.idempotent_safe = true;
  request.key = table_.Register(safe).key;
  EXPECT_EQ(Code(request), ReturnCode::kOk);
}

TEST_F(RmaCheckTest, FirstReasonIsTheOneAnswered) {
  RegionSpec spec = Spec(kKey);
  spec.access = 0;
  ASSERT_EQ(table_.Register(spec).status, RegionTable::Status::kOk);
  RmaRequest request = Write(kKey, kLength, 8);
  EXPECT_EQ(Code(request), ReturnCode::kPermViolation);
  request.idempotent = true;
  EXPECT_EQ(Code(request), ReturnCode::kOpViolation);
  request.key = 1;
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
    RegionTable table(1, 1);
    RegionSpec spec = Spec(kKey);
    spec.base = near({2, kBase, ~uint64_t{0} - kLength, ~uint64_t{0} - 8});
    spec.length = near({2, kLength, 0xffffffff});
    spec.virtual_address = random() % 2 == 0;
    if (table.Register(spec).status != RegionTable::Status::kOk) {
      continue;
    }
    RmaRequest request = Write(kKey, 0, 0);
    request.buffer_offset =
        near({2, spec.length, spec.base, spec.base + spec.length,
              ~uint64_t{0} - spec.base, ~uint64_t{0} - 8});
    request.request_length = static_cast<uint32_t>(
        near({2, spec.length, 0xffffffff, 0xffffffff - kLength}));
    request.message_offset =
        static_cast<uint32_t>(near({2, request.request_length}));
    request.length = static_cast<uint32_t>(random() % 5);
    using Wide = unsigned __int128;
    const Wide first = Wide{request.buffer_offset} +
                       (spec.virtual_address ? Wide{0} : Wide{spec.base});
    const bool inside =
        first >= spec.base &&
        first + request.request_length <= Wide{spec.base} + spec.length &&
        Wide{request.message_offset} + request.length <= request.request_length;
    const RmaAnswer answer = CheckRma(table, request);
    const bool longer = request.request_length > spec.length;
    ASSERT_EQ(answer.code, inside   ? ReturnCode::kOk
                           : longer ? ReturnCode::kUnsupportedSize
                                    : ReturnCode::kBadAddr)
        << "round " << round;
    if (inside) {
      ASSERT_EQ(Wide{answer.address}, first + request.message_offset);
      ++granted;
    }
  }
  EXPECT_GT(granted, 1000U);
}

}  // namespace
}  // namespace heddle::semantics
