// SPDX-License-Identifier: Apache-2.0
// Addresses that the device resolves on its link. A program of its own: what
// it sets in the environment is read once.
#include <arpa/inet.h>

#include <array>
#include <cstdlib>

#include "tests/host/ofi/ip_name.h"
#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

class NeighboursTest : public PairTest {
 protected:
  static void SetUpTestSuite() {
    setenv("FI_HEDDLE_NEIGHBOURS", "resolve", /*overwrite=*/1);
    setenv("FI_HEDDLE_IP", "10.9.8.7", /*overwrite=*/1);
  }

  static sockaddr_in Address(const char* ip, uint16_t port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, ip, &address.sin_addr);
    return address;
  }
};

TEST_F(NeighboursTest, EndpointsAtOneAddressExchangeMessages) {
  Open();
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<uint8_t> sent = Pattern(5000);
  std::vector<uint8_t> received(sent.size());
  Exchange(sent, received);
  EXPECT_EQ(sent, received);
}

// Source: fi_av(3): the number of addresses inserted is returned,
// FI_ADDR_NOTAVAIL marks those that were not, FI_SYNC_ERR brings their errors.
TEST_F(NeighboursTest, AddressThatNobodyAnswersForIsNotInserted) {
  Open();
  ASSERT_FALSE(HasFatalFailure());
  const sockaddr_in name = IpName(*b);
  const std::array<sockaddr_in, 3> addresses = {
      name, Address("10.9.8.99", 5000), name};
  std::array<fi_addr_t, 3> indices = {};
  std::array<int, 3> errors = {-1, -1, -1};
  EXPECT_EQ(fi_av_insert(a->av, addresses.data(), addresses.size(),
                         indices.data(), FI_SYNC_ERR, errors.data()),
            2);
  EXPECT_EQ(errors, (std::array<int, 3>{0, FI_EHOSTUNREACH, 0}));
  EXPECT_EQ(indices[1], FI_ADDR_NOTAVAIL);
  EXPECT_NE(indices[0], FI_ADDR_NOTAVAIL);
  EXPECT_NE(indices[2], FI_ADDR_NOTAVAIL);
  // The vector is as good as before.
  const std::vector<uint8_t> sent = Pattern(100);
  std::vector<uint8_t> received(sent.size());
  to_b = indices[2];
  Exchange(sent, received);
  EXPECT_EQ(sent, received);
  EXPECT_EQ(fi_av_remove(a->av, indices.data(), 1, 0), 0);
  EXPECT_EQ(fi_av_remove(a->av, &indices[2], 1, 0), 0);
}

}  // namespace
}  // namespace heddle::test
