// SPDX-License-Identifier: Apache-2.0
// An address vector as large as a cluster.
#include <arpa/inet.h>

#include <chrono>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

constexpr uint32_t kPeers = 100'000;

// Peer `index` of as many hosts as there are peers.
sockaddr_in PeerName(uint32_t index) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(1024 + index % 60'000));
  name.sin_addr.s_addr = htonl(0x0b000001U + index);
  return name;
}

class ManyPeersTest : public PairTest {};

TEST_F(ManyPeersTest, HundredThousandAddressesAreKnownAndTheLastIsReached) {
  ASSERT_NO_FATAL_FAILURE(Open({.caps = FI_MSG | FI_SOURCE}));
  std::vector<sockaddr_in> names(kPeers);
  for (uint32_t i = 0; i < kPeers; ++i) {
    names[i] = PeerName(i);
  }
  std::vector<fi_addr_t> addresses(kPeers);
  const size_t before = ResidentBytes();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(
      fi_av_insert(a->av, names.data(), kPeers, addresses.data(), 0, nullptr),
      static_cast<int>(kPeers));
  const auto spent = std::chrono::steady_clock::now() - start;
  const auto nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
  std::printf("%u peers: %lld ns to insert one, %zu bytes of memory each\n",
              kPeers, static_cast<long long>(nanoseconds) / kPeers,
              (ResidentBytes() - before) / kPeers);
  for (const uint32_t i : {0U, 1U, 4095U, kPeers / 2, kPeers - 1}) {
    EXPECT_EQ(addresses[i], addresses[0] + i);
    sockaddr_in found = {};
    size_t bytes = sizeof(found);
    ASSERT_EQ(fi_av_lookup(a->av, addresses[i], &found, &bytes), 0);
    EXPECT_EQ(std::memcmp(&found, &names[i], sizeof(found)), 0) << i;
  }
  // Behind all of them, the one there is: it is reached, and recognised.
  const fi_addr_t last = a->Insert(*b);
  EXPECT_EQ(last, addresses[0] + kPeers);
  ASSERT_EQ(fi_av_remove(a->av, &to_b, 1, 0), 0);  // As it was known before.
  to_b = last;
  std::vector<uint8_t> received(5000);
  ASSERT_NO_FATAL_FAILURE(Exchange(Pattern(5000), received));
  EXPECT_EQ(received, Pattern(5000));
  uint8_t byte = 0;
  ASSERT_EQ(fi_recv(a->ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(b->ep, &byte, 1, to_a), 0);
  const auto from_b = Take(a->rx_cq);
  ASSERT_TRUE(from_b.has_value());
  EXPECT_EQ(from_b->source, to_b);
  EXPECT_EQ(fi_av_remove(a->av, addresses.data(), kPeers, 0), 0);
}

}  // namespace
}  // namespace heddle::test
