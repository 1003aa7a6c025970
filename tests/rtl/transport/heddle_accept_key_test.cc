// SPDX-License-Identifier: Apache-2.0
// The key of the hashes by which heddle_accept finds PDCs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>

#include "hw/sim/base/random.h"
#include "tests/rtl/toeplitz.h"
#include "tests/rtl/transport/accept_fixture.h"

namespace heddle::test {
namespace {

using Key = std::array<uint64_t, 3>;

// The one in heddle_accept, for everybody to read.
constexpr Key kDefault = {0xa4093822299f31d0, 0x13198a2e03707344,
                          0x243f6a8885a308d3};
constexpr Key kSecret = {0x0123456789abcdef, 0x8f1bbcdc5a827999,
                         0x6ed9eba1ca62c1d6};
constexpr size_t kPlaces = 8;  // A name has them over both tables.

class KeyTest : public AcceptTest {
 protected:
  void SetKey(const Key& key) {
    std::copy(key.begin(), key.end(), bench_.transport.hash_key);
    bench_.SetConfig();
    for (int i = 0; i < 4; ++i) {
      bench_.Cycle();
    }
  }
  rtl::RxPacket SynOf(uint64_t fa_lo) {
    rtl::RxPacket pkt = Syn(kStart, 8);
    pkt.ipv6 = 1;
    pkt.source_fa_lo = fa_lo;
    return pkt;
  }
  static uint32_t HashOf(const Key& key, const rtl::RxPacket& pkt) {
    const Key name = {pkt.source_fa_lo << 16 | pkt.spdcid,
                      pkt.source_fa_lo >> 48, 0};
    return Toeplitz(key, name, 14);
  }
  // The answer to a victim's SYN after as many SYNs as it has places, from
  // addresses chosen to have its hash under `key`.
  rtl::Response AnswerAfterAttack(const Key& key) {
    constexpr uint64_t kSeed = 0x5e7;
    std::cout << "seed " << kSeed << '\n';
    sim::base::Random random(kSeed);
    const rtl::RxPacket victim = SynOf(0xa);
    size_t found = 0;
    while (found < kPlaces) {
      const rtl::RxPacket pkt = SynOf(random.Next());
      if (HashOf(key, pkt) != HashOf(key, victim)) {
        continue;
      }
      ++found;
      bench_.AddBuffer(2, 64, 0x1000, found);
      EXPECT_EQ(bench_.Answer(pkt).kind, rtl::ResponseKind::kAck) << found;
    }
    bench_.AddBuffer(2, 64, 0x1000, 100);
    const size_t before = bench_.responses.size();
    bench_.Send(victim);
    bench_.RunUntilIdle();
    return bench_.responses.at(before);
  }
};

TEST_F(KeyTest, WithoutASecretPeersFillTheSetsOfAnother) {
  const rtl::Response rsp = AnswerAfterAttack(kDefault);
  EXPECT_EQ(rsp.kind, rtl::ResponseKind::kNack);
  EXPECT_EQ(rsp.code, static_cast<uint8_t>(NackCode::kNoPdcAvail));
}

TEST_F(KeyTest, WithASecretTheyDoNot) {
  SetKey(kSecret);
  EXPECT_EQ(AnswerAfterAttack(kDefault).kind, rtl::ResponseKind::kAck);
}

// Its sets are those that the secret leads to.
TEST_F(KeyTest, WithTheSecretTheyWould) {
  SetKey(kSecret);
  EXPECT_EQ(AnswerAfterAttack(kSecret).kind, rtl::ResponseKind::kNack);
}

TEST_F(KeyTest, TheFirstSecretHolds) {
  SetKey(kSecret);
  SetKey(kDefault);
  EXPECT_EQ(AnswerAfterAttack(kSecret).kind, rtl::ResponseKind::kNack);
}

// A PDC that is open is found where it was put.
TEST_F(KeyTest, ASecretWaitsUntilNoPdcIsOpen) {
  Open();
  SetKey(kSecret);
  rtl::RxPacket again = Syn(kStart, 8);
  again.retx = 1;
  EXPECT_EQ(bench_.Answer(again).spdcid, tpdcid_);
  EXPECT_EQ(Count(Statistic::kRxPdcs), 1);
  EXPECT_EQ(bench_.Answer(Control(CpType::kCloseCommand, kStart + 1)).kind,
            rtl::ResponseKind::kNone);
  EXPECT_EQ(AnswerAfterAttack(kSecret).kind, rtl::ResponseKind::kNack);
}

}  // namespace
}  // namespace heddle::test
