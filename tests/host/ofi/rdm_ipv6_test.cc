// SPDX-License-Identifier: Apache-2.0
// Endpoints with IPv6 addresses: FI_HEDDLE_IP is one for this program.
#include <arpa/inet.h>
#include <rdma/fi_ext_heddle.h>

#include <cstdlib>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  return setenv("FI_HEDDLE_IP", "fd00::1:7", 1) == 0;
}();

sockaddr_in6 NameOf(const Node& node) {
  sockaddr_in6 name = {};
  size_t length = sizeof(name);
  EXPECT_EQ(fi_getname(&node.ep->fid, &name, &length), 0);
  EXPECT_EQ(length, sizeof(name));
  return name;
}

class Ipv6Test : public ::testing::Test {
 protected:
  void Open(uint64_t caps) {
    NodeOptions options;
    options.caps = caps;
    a = std::make_unique<Node>(options);
    b = std::make_unique<Node>(options);
    ASSERT_TRUE(a->ok()) << fi_strerror(-a->result);
    ASSERT_TRUE(b->ok()) << fi_strerror(-b->result);
    const sockaddr_in6 name = NameOf(*b);
    ASSERT_EQ(fi_av_insert(a->av, &name, 1, &to_b, 0, nullptr), 1);
  }

  // One message from a to b, read as `read_from` does.
  Outcome Exchange() {
    EXPECT_EQ(fi_recv(b->ep, &received, sizeof(received), nullptr,
                      FI_ADDR_UNSPEC, &received),
              0);
    EXPECT_EQ(fi_inject(a->ep, &sent, sizeof(sent), to_b), 0);
    return Take(b->rx_cq).value();
  }

  std::unique_ptr<Node> a;
  std::unique_ptr<Node> b;
  fi_addr_t to_b = FI_ADDR_UNSPEC;
  uint64_t sent = 0x123456789abcdef;
  uint64_t received = 0;
};

TEST_F(Ipv6Test, NamesAreOfTheFamily) {
  ASSERT_NO_FATAL_FAILURE(Open(FI_MSG));
  EXPECT_EQ(a->info->addr_format, uint32_t{FI_SOCKADDR_IN6});
  const sockaddr_in6 name = NameOf(*a);
  char text[INET6_ADDRSTRLEN] = "";
  EXPECT_EQ(name.sin6_family, AF_INET6);
  EXPECT_STREQ(inet_ntop(AF_INET6, &name.sin6_addr, text, sizeof(text)),
               "fd00::1:7");
  EXPECT_NE(name.sin6_port, 0);
  unsigned char part[20];
  size_t length = sizeof(part);
  EXPECT_EQ(fi_getname(&a->ep->fid, part, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof(name));
  EXPECT_EQ(std::memcmp(part, &name, sizeof(part)), 0);
}

TEST_F(Ipv6Test, MessagesTravelAndNameTheirSender) {
  ASSERT_NO_FATAL_FAILURE(Open(FI_MSG | FI_SOURCE));
  EXPECT_EQ(Exchange().source, fi_addr_t{FI_ADDR_NOTAVAIL});
  EXPECT_EQ(received, sent);
  // The same address with other ports, before and behind.
  sockaddr_in6 names[3] = {NameOf(*a), NameOf(*a), NameOf(*a)};
  names[0].sin6_port = htons(77);
  names[2].sin6_port = htons(78);
  fi_addr_t indices[3];
  ASSERT_EQ(fi_av_insert(b->av, names, 3, indices, 0, nullptr), 3);
  EXPECT_EQ(Exchange().source, indices[1]);
  ASSERT_EQ(fi_av_remove(b->av, &indices[1], 1, 0), 0);
  EXPECT_EQ(Exchange().source, fi_addr_t{FI_ADDR_NOTAVAIL});
}

TEST_F(Ipv6Test, StrangerIsAnErrorWithItsAddress) {
  ASSERT_NO_FATAL_FAILURE(Open(FI_MSG | FI_SOURCE | FI_SOURCE_ERR));
  const Outcome stranger = Exchange();
  ASSERT_TRUE(stranger.error);
  EXPECT_EQ(stranger.failure.err, FI_EADDRNOTAVAIL);
  EXPECT_EQ(stranger.failure.op_context, &received);
  EXPECT_EQ(received, sent);
  const sockaddr_in6 name = NameOf(*a);
  ASSERT_EQ(stranger.failure.err_data_size, sizeof(name));
  EXPECT_LE(sizeof(name), b->info->domain_attr->max_err_data);
  ASSERT_EQ(std::memcmp(stranger.failure.err_data, &name, sizeof(name)), 0);
  // What came with the error is what the vector takes.
  fi_addr_t index = FI_ADDR_UNSPEC;
  ASSERT_EQ(
      fi_av_insert(b->av, stranger.failure.err_data, 1, &index, 0, nullptr), 1);
  const Outcome known = Exchange();
  EXPECT_FALSE(known.error);
  EXPECT_EQ(known.source, index);
}

TEST_F(Ipv6Test, VectorTakesTheFamilyOfTheDeviceOnly) {
  ASSERT_NO_FATAL_FAILURE(Open(FI_MSG));
  sockaddr_in6 names[4];
  for (sockaddr_in6& name : names) {
    name = NameOf(*b);
  }
  names[0].sin6_family = AF_INET;
  names[1].sin6_addr = in6addr_any;
  names[2].sin6_addr.s6_addr[0] = 0xff;  // Multicast.
  fi_addr_t indices[4];
  int errors[4] = {-1, -1, -1, -1};
  EXPECT_EQ(fi_av_insert(a->av, names, 4, indices, FI_SYNC_ERR, errors), 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(indices[i], fi_addr_t{FI_ADDR_NOTAVAIL}) << i;
    EXPECT_EQ(errors[i], FI_EINVAL) << i;
  }
  EXPECT_EQ(errors[3], 0);
  sockaddr_in6 found = {};
  size_t length = sizeof(found);
  EXPECT_EQ(fi_av_lookup(a->av, indices[3], &found, &length), 0);
  EXPECT_EQ(length, sizeof(found));
  EXPECT_EQ(std::memcmp(&found, &names[3], sizeof(found)), 0);
  char text[80];
  length = sizeof(text);
  found.sin6_port = htons(9);
  EXPECT_STREQ(fi_av_straddr(a->av, &found, text, &length),
               "fi_sockaddr_in6://[fd00::1:7]:9");
}

TEST_F(Ipv6Test, RangesCountUpInTheAddress) {
  ASSERT_NO_FATAL_FAILURE(Open(FI_MSG));
  fi_addr_t indices[4];
  ASSERT_EQ(fi_av_insertsym(a->av, "fd00::ffff:ffff:ffff:ffff", 2, "500", 2,
                            indices, 0, nullptr),
            4);
  sockaddr_in6 found = {};
  size_t length = sizeof(found);
  ASSERT_EQ(fi_av_lookup(a->av, indices[3], &found, &length), 0);
  char text[INET6_ADDRSTRLEN] = "";
  EXPECT_STREQ(inet_ntop(AF_INET6, &found.sin6_addr, text, sizeof(text)),
               "fd00:0:0:1::");
  EXPECT_EQ(found.sin6_port, htons(501));
}

TEST_F(Ipv6Test, EndpointsBindToTheDevicesAddressOnly) {
  ASSERT_NO_FATAL_FAILURE(Open(FI_MSG));
  fid_ep* bare = nullptr;
  ASSERT_EQ(fi_endpoint(a->domain, a->info.get(), &bare, nullptr), 0);
  sockaddr_in6 name = NameOf(*a);
  name.sin6_port = htons(700);
  name.sin6_addr.s6_addr[15] ^= 1;
  EXPECT_EQ(fi_setname(&bare->fid, &name, sizeof(name)), -FI_EADDRNOTAVAIL);
  sockaddr_in old = {};
  old.sin_family = AF_INET;
  EXPECT_EQ(fi_setname(&bare->fid, &old, sizeof(old)), -FI_EADDRNOTAVAIL);
  name.sin6_addr = in6addr_any;
  EXPECT_EQ(fi_setname(&bare->fid, &name, sizeof(name)), 0);
  sockaddr_in6 found = {};
  size_t length = sizeof(found);
  EXPECT_EQ(fi_getname(&bare->fid, &found, &length), 0);
  EXPECT_EQ(found.sin6_port, htons(700));
  EXPECT_EQ(fi_close(&bare->fid), 0);
}

}  // namespace
}  // namespace heddle::test
