// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "Vheddle_region.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/random.h"
#include "hw/sim/model/clocked_model.h"
#include "rtl/records.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {
namespace {

using contract::RegionCfg;
using contract::ReturnCode;
using contract::TableOp;

constexpr uint32_t kRegions = 1024;
constexpr uint8_t kRead = contract::kRegionFlagRemoteRead;
constexpr uint8_t kWriteRight = contract::kRegionFlagRemoteWrite;
constexpr uint8_t kEndpoint = contract::kRegionFlagEndpoint;

// First entry of the set of a user key, as the contract says.
uint32_t SetOf(uint64_t key) {
  uint8_t folded = 0;
  for (int i = 0; i < 6; ++i) folded ^= static_cast<uint8_t>(key >> (8 * i));
  return folded % (kRegions / contract::kRegionWays) * contract::kRegionWays;
}

RegionCfg SomeRegion(uint64_t key) {
  RegionCfg cfg = {};
  cfg.key = key;
  cfg.iova = 0x10000;
  cfg.length = 0x1000;
  cfg.job_id = 7;
  cfg.flags = kRead | kWriteRight;
  cfg.function = 0x21;
  cfg.counter = 0x35;
  cfg.enable = 1;
  return cfg;
}

rtl::RmaRequest SomeRequest(uint64_t key) {
  rtl::RmaRequest req = {};
  req.key = key;
  req.length = 64;
  req.job_id = 7;
  req.pid_on_fep = 3;
  req.resource_index = 0x105;
  req.needs = kWriteRight;
  return req;
}

class Regions {
 public:
  Regions() {
    for (uint32_t i = 0; i < kRegions / contract::kRegionWays + 8; ++i) Cycle();
  }
  Vheddle_region* operator->() { return dut_.operator->(); }
  void Cycle() { dut_.Tick(); }

  rtl::TableRsp Access(TableOp op, uint32_t index, const RegionCfg& cfg = {}) {
    Start(op, index, cfg);
    dut_->sweep_done_i = 1;
    for (int i = 0; i < 10; ++i) {
      if (const auto rsp = Answer()) return *rsp;
    }
    ADD_FAILURE() << "no answer";
    return {};
  }
  void Start(TableOp op, uint32_t index, const RegionCfg& cfg = {}) {
    rtl::TableReq req = {};
    req.op = op;
    req.sel = contract::Table::kRegion;
    req.index = static_cast<uint16_t>(index);
    req.data = req.data.From(cfg);
    rtl::Drive(dut_->tbl_req_i, req);
    dut_->tbl_valid_i = 1;
  }
  // The answer to what was started, if this cycle has it.
  std::optional<rtl::TableRsp> Answer() {
    dut_.Settle();
    const auto rsp = rtl::Sample<rtl::TableRsp>(dut_->tbl_rsp_o);
    Cycle();
    if (!rsp.done) return std::nullopt;
    dut_->tbl_valid_i = 0;
    Cycle();
    return rsp;
  }
  void Write(uint32_t index, const RegionCfg& cfg) {
    EXPECT_EQ(Access(TableOp::kWrite, index, cfg).error, 0);
  }
  rtl::RmaAnswer Ask(const rtl::RmaRequest& req) {
    rtl::Drive(dut_->req_i, req);
    EXPECT_EQ(dut_->ready_o, 1);
    Cycle();
    return rtl::Sample<rtl::RmaAnswer>(dut_->answer_o);
  }
  void ExpectCode(const rtl::RmaRequest& req, ReturnCode code) {
    EXPECT_EQ(Ask(req).code, code);
  }

 private:
  sim::model::ClockedModel<Vheddle_region> dut_;
};

TEST(RegionTest, UserKeyIsFoundInEveryWayOfItsSetAndNowhereElse) {
  Regions dut;
  const uint64_t key = 0x0000a1b2c3d4e5f6;
  for (uint32_t index = 0; index < kRegions; ++index) {
    dut.Write(index, SomeRegion(key));
    const bool in_set = index / 4 == SetOf(key) / 4;
    const rtl::RmaAnswer answer = dut.Ask(SomeRequest(key));
    EXPECT_EQ(answer.code, in_set ? ReturnCode::kOk : ReturnCode::kBadMkey)
        << index;
    if (in_set) {
      EXPECT_EQ(answer.iova, 0x10000U);
      EXPECT_EQ(answer.owner, 0x21);
      EXPECT_EQ(answer.counter, 0x35);
    }
    dut.Write(index, {});
  }
}

TEST(RegionTest, ProviderKeyNamesItsEntry) {
  Regions dut;
  const uint64_t secret = contract::kKeyProvider | 0x7a5a5a00000;
  for (uint32_t index = 0; index < kRegions; ++index) {
    dut.Write(index, SomeRegion(secret | index));
  }
  for (uint32_t index = 0; index < kRegions; ++index) {
    dut.ExpectCode(SomeRequest(secret | index), ReturnCode::kOk);
    // The rest of the key is what makes it one.
    dut.ExpectCode(SomeRequest((secret ^ 0x100000) | index),
                   ReturnCode::kBadMkey);
  }
  // Its entry holds another key: the same ways are not searched for it.
  dut.Write(5, SomeRegion(secret | 6));
  dut.Write(6, {});
  dut.ExpectCode(SomeRequest(secret | 6), ReturnCode::kBadMkey);
  dut.ExpectCode(SomeRequest(secret | 5), ReturnCode::kBadMkey);
}

TEST(RegionTest, EachBitOfTheKeyCounts) {
  Regions dut;
  const uint64_t key = 0x123456789abc;
  for (uint32_t i = 0; i < 4; ++i) {
    dut.Write(SetOf(key) + i, SomeRegion(i == 2 ? key : 1000 + i));
  }
  dut.ExpectCode(SomeRequest(key), ReturnCode::kOk);
  for (int bit = 0; bit < 64; ++bit) {
    dut.ExpectCode(SomeRequest(key ^ uint64_t{1} << bit), ReturnCode::kBadMkey);
  }
}

TEST(RegionTest, JobEndpointRightAndRangeAreCheckedInThisOrder) {
  Regions dut;
  const uint64_t key = 99;
  RegionCfg cfg = SomeRegion(key);
  cfg.flags = kRead | kEndpoint;
  cfg.pid_on_fep = 3;
  cfg.resource_index = 0x100;
  cfg.address_base = 0x5000;
  dut.Write(SetOf(key), cfg);
  rtl::RmaRequest req = SomeRequest(key);
  req.offset = 0x9000;  // Everything is wrong.
  req.job_id = 8;
  dut.ExpectCode(req, ReturnCode::kBadMkey);
  req.job_id = 7;
  req.pid_on_fep = 4;
  dut.ExpectCode(req, ReturnCode::kBadMkey);
  req.pid_on_fep = 3;
  req.resource_index = 0x100;
  req.rel = 1;
  dut.ExpectCode(req, ReturnCode::kBadMkey);
  req.rel = 0;
  for (uint16_t ri : {uint16_t{0x005}, uint16_t{0x205}}) {
    req.resource_index = ri;
    dut.ExpectCode(req, ReturnCode::kBadMkey);
  }
  for (uint16_t ri : {uint16_t{0x100}, uint16_t{0x101},
                      uint16_t{0x1ff}}) {  // All RIs of the endpoint.
    req.resource_index = ri;
    dut.ExpectCode(req, ReturnCode::kPermViolation);
  }
  cfg.flags = kWriteRight | kEndpoint;
  dut.Write(SetOf(key), cfg);
  dut.ExpectCode(req, ReturnCode::kBadAddr);
  req.needs = kRead | kWriteRight;
  dut.ExpectCode(req, ReturnCode::kPermViolation);
  req.needs = kWriteRight;
  req.offset = 0x5010;
  req.message_offset = 0x20;
  const rtl::RmaAnswer answer = dut.Ask(req);
  EXPECT_EQ(answer.code, ReturnCode::kOk);
  EXPECT_EQ(answer.iova, 0x10030U);
  // Without the flag every endpoint of the function is served.
  cfg.flags = kWriteRight;
  dut.Write(SetOf(key), cfg);
  req.pid_on_fep = 4;
  dut.ExpectCode(req, ReturnCode::kOk);
  cfg.enable = 0;
  dut.Write(SetOf(key), cfg);
  dut.ExpectCode(req, ReturnCode::kBadMkey);
}

TEST(RegionTest, WholeMessageMustBeInsideAlsoAtTheEndsOfTheAddressSpace) {
  Regions dut;
  const uint64_t key = 5;
  struct Case {
    uint64_t base, length, offset;
    uint32_t bytes;
    bool ok;
  };
  const Case cases[] = {
      {0, 4096, 0, 4096, true},
      {0, 4096, 1, 4096, false},
      {0, 4096, 4096, 0, true},
      {0, 4096, 4096, 1, false},
      {0, 4096, 4097, 0, false},
      {0, 0, 0, 0, true},
      {0, 0, 0, 1, false},
      {0x1000, 4096, 0xfff, 1, false},
      {0x1000, 4096, 0xfff, 0xffffffff, false},
      {0x1000, 4096, 0x1000, 4096, true},
      {0, 4096, ~uint64_t{0}, 1, false},
      {0, 4096, ~uint64_t{0}, 4096, false},
      {0, uint64_t{1} << 40, 0, 0xffffffff, true},
      {0, ~uint64_t{0}, ~uint64_t{0} - 8, 8, true},
      {0, ~uint64_t{0}, ~uint64_t{0} - 8, 9, false},
      {~uint64_t{0} - 100, 100, ~uint64_t{0} - 100, 100, true},
      {~uint64_t{0} - 100, 100, 0, 1, false},
      {~uint64_t{0} - 100, 100, ~uint64_t{0} - 1, 2, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.base << ' ' << c.length << ' '
                                    << c.offset << ' ' << c.bytes);
    RegionCfg cfg = SomeRegion(key);
    cfg.address_base = c.base;
    cfg.length = c.length;
    dut.Write(SetOf(key), cfg);
    rtl::RmaRequest req = SomeRequest(key);
    req.offset = c.offset;
    req.length = c.bytes;
    dut.ExpectCode(req, c.ok                 ? ReturnCode::kOk
                        : c.bytes > c.length ? ReturnCode::kUnsupportedSize
                                             : ReturnCode::kBadAddr);
  }
}

TEST(RegionTest, TableReadsBackAndNumbersBehindItAreErrors) {
  Regions dut;
  RegionCfg cfg = SomeRegion(0x1234);
  cfg.address_base = 0x1122334455667788;
  cfg.pid_on_fep = 0xabc;
  cfg.resource_index = 0xf00;
  cfg.counter = 9;
  dut.Write(1023, cfg);
  const rtl::TableRsp rsp = dut.Access(TableOp::kRead, 1023);
  EXPECT_EQ(rsp.error, 0);
  EXPECT_EQ(rsp.data, rsp.data.From(cfg));
  for (TableOp op : {TableOp::kRead, TableOp::kWrite, TableOp::kDrain}) {
    EXPECT_EQ(dut.Access(op, kRegions, cfg).error, 1);
  }
  // Nothing was written in its place.
  EXPECT_EQ(dut.Access(TableOp::kRead, 0).data[0], 0U);
}

TEST(RegionTest, ATableReadTakesThePortAndSaysSo) {
  Regions dut;
  dut.Write(SetOf(3), SomeRegion(3));
  rtl::Drive(dut->req_i, SomeRequest(3));
  dut.Start(TableOp::kRead, 700);
  int refused = 0;
  for (int i = 0; i < 10 && !dut.Answer(); ++i) refused += !dut->ready_o;
  EXPECT_LE(refused, 1);
  dut.ExpectCode(SomeRequest(3), ReturnCode::kOk);
}

TEST(RegionTest, DrainIsAnsweredWhenItsTokenCameBack) {
  Regions dut;
  dut.Start(TableOp::kDrain, 12);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(dut.Answer());
  EXPECT_EQ(dut->drain_valid_o, 1);
  EXPECT_EQ(dut->idle_o, 0);
  // Packets are answered meanwhile.
  dut.ExpectCode(SomeRequest(3), ReturnCode::kBadMkey);
  dut->drain_ready_i = 1;
  EXPECT_FALSE(dut.Answer());
  EXPECT_EQ(dut->drain_valid_o, 0);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(dut.Answer());
  dut->drained_i = 1;
  EXPECT_FALSE(dut.Answer());
  dut->drained_i = 0;
  // Then return data are swept, and those on their way waited for.
  dut->back_issued_i = 0xfffe;
  dut->back_done_i = 0xfffc;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(dut.Answer());
  EXPECT_EQ(dut->sweep_valid_o, 1);
  EXPECT_EQ(dut->sweep_region_o, 12);
  dut->sweep_done_i = 1;
  EXPECT_FALSE(dut.Answer());
  dut->sweep_done_i = 0;
  dut->back_issued_i = 3;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(dut.Answer());
  EXPECT_EQ(dut->sweep_valid_o, 0);
  dut->back_done_i = 0xfffe;
  EXPECT_FALSE(dut.Answer());
  EXPECT_TRUE(dut.Answer());
  EXPECT_EQ(dut->idle_o, 1);
}

TEST(RegionTest, RandomRequestsAgreeWithTheRules) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::printf("seed %lu\n", static_cast<unsigned long>(seed));
    SCOPED_TRACE(seed);
    sim::base::Random random(seed);
    Regions dut;
    std::map<uint64_t, RegionCfg> regions;  // By key.
    std::map<uint32_t, uint64_t> taken;     // By index.
    for (int i = 0; i < 200; ++i) {
      RegionCfg cfg = SomeRegion(random.Below(4096));
      uint32_t index = SetOf(cfg.key) + random.Below(4);
      if (random.Chance(0.5)) {
        index = random.Below(kRegions);
        cfg.key = contract::kKeyProvider | random.Below(4096) << 20 | index;
      }
      if (taken.contains(index) || regions.contains(cfg.key)) continue;
      cfg.iova = random.Next() >> 16;
      cfg.address_base = random.Chance(0.5) ? 0 : random.Next() >> 8;
      cfg.length = random.Below(10000);
      cfg.job_id = random.Below(2);
      cfg.pid_on_fep = static_cast<uint16_t>(random.Below(2));
      cfg.resource_index = static_cast<uint16_t>(random.Below(2) << 8);
      cfg.flags = static_cast<uint8_t>(random.Below(8));
      if (random.Chance(0.5)) cfg.flags |= contract::kRegionFlagRelative;
      dut.Write(index, cfg);
      taken[index] = cfg.key;
      regions[cfg.key] = cfg;
    }
    ASSERT_GT(regions.size(), 100U);
    int accepted = 0;
    for (int i = 0; i < 4000; ++i) {
      auto near = regions.begin();
      std::advance(near, random.Below(static_cast<uint32_t>(regions.size())));
      const RegionCfg& cfg = near->second;
      rtl::RmaRequest req = SomeRequest(cfg.key);
      if (random.Chance(0.1)) req.key ^= uint64_t{1} << random.Below(64);
      req.offset = cfg.address_base + random.Below(10000);
      req.length = random.Below(3000);
      req.message_offset = random.Below(req.length + 1);
      req.job_id = random.Chance(0.9) ? cfg.job_id : random.Below(2);
      const bool relative = (cfg.flags & contract::kRegionFlagRelative) != 0;
      req.rel = relative == random.Chance(0.8) ? 1 : 0;
      req.pid_on_fep = static_cast<uint16_t>(random.Below(2));
      req.resource_index = static_cast<uint16_t>(random.Below(512));
      const auto found = regions.find(req.key);
      ReturnCode code = ReturnCode::kOk;
      if (found == regions.end() || found->second.job_id != req.job_id ||
          ((found->second.flags & kEndpoint) != 0 &&
           (((found->second.flags & contract::kRegionFlagRelative) != 0) !=
                (req.rel != 0) ||
            found->second.pid_on_fep != req.pid_on_fep ||
            found->second.resource_index != (req.resource_index & 0xf00)))) {
        code = ReturnCode::kBadMkey;
      } else if ((found->second.flags & kWriteRight) == 0) {
        code = ReturnCode::kPermViolation;
      } else if (req.length > found->second.length) {
        code = ReturnCode::kUnsupportedSize;
      } else if (req.offset - found->second.address_base + req.length >
                 found->second.length) {
        code = ReturnCode::kBadAddr;
      }
      const rtl::RmaAnswer answer = dut.Ask(req);
      ASSERT_EQ(answer.code, code) << i;
      if (code == ReturnCode::kOk) {
        ++accepted;
        const RegionCfg& named = found->second;
        ASSERT_EQ(answer.iova, named.iova + (req.offset - named.address_base) +
                                   req.message_offset);
      }
    }
    EXPECT_GT(accepted, 300);
  }
}

}  // namespace
}  // namespace heddle::test
