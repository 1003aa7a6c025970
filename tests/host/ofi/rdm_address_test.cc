// SPDX-License-Identifier: Apache-2.0
// Names of this machine as addresses of endpoints, and endpoints of an open
// domain. On the one-machine wire; without FI_HEDDLE_IP.
#include <arpa/inet.h>

#include <array>
#include <set>

#include "tests/host/ofi/ip_name.h"
#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

sockaddr_in Make(const char* text, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, text, &address.sin_addr), 1);
  address.sin_port = htons(port);
  return address;
}

std::string Text(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  (void)inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" +
         std::to_string(ntohs(address.sin_port));
}

// The source of an info with IPv4 addresses.
std::string Source(const InfoPointer& info) {
  if (info == nullptr || info->src_addrlen != sizeof(sockaddr_in)) {
    return "none";
  }
  sockaddr_in address;
  std::memcpy(&address, info->src_addr, sizeof(address));
  return Text(address);
}

std::string NameOf(fid_ep* endpoint) {
  sockaddr_in name = {};
  size_t length = sizeof(name);
  EXPECT_EQ(fi_getname(&endpoint->fid, &name, &length), 0);
  return Text(name);
}

// fi_getinfo for messages, with an open domain among the hints.
InfoPointer Ask(fid_domain* domain, const char* node = nullptr,
                const char* service = nullptr, uint64_t flags = 0,
                uint32_t format = FI_FORMAT_UNSPEC) {
  const InfoPointer hints(fi_allocinfo());
  hints->caps = FI_MSG;
  hints->addr_format = format;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->domain = domain;
  hints->fabric_attr->prov_name = strdup("heddle");
  fi_info* info = nullptr;
  (void)fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints.get(), &info);
  return InfoPointer(info);
}

class NamesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(node.ok()) << fi_strerror(-node.result); }

  // The address of the vector at `index`.
  std::string Lookup(fi_addr_t index) const {
    sockaddr_in found = {};
    size_t length = sizeof(found);
    EXPECT_EQ(fi_av_lookup(node.av, index, &found, &length), 0);
    return Text(found);
  }

  // The machine's address on the wire with `port`.
  std::string Machine(uint16_t port) const {
    sockaddr_in name = IpName(node);
    name.sin_port = htons(port);
    return Text(name);
  }

  Node node;
};

TEST_F(NamesTest, AddressesOfTheMachineAreInsertedAsItsOneAddress) {
  const sockaddr_in addresses[] = {Make("127.0.0.1", 80), Make("127.0.1.1", 81),
                                   IpName(node), Make("10.99.0.1", 82)};
  fi_addr_t indices[4] = {};
  ASSERT_EQ(fi_av_insert(node.av, addresses, 4, indices, 0, nullptr), 4);
  EXPECT_EQ(Lookup(indices[0]), Machine(80));
  EXPECT_EQ(Lookup(indices[1]), Machine(81));
  EXPECT_EQ(Lookup(indices[2]), Text(IpName(node)));
  EXPECT_EQ(Lookup(indices[3]), "10.99.0.1:82");
}

TEST_F(NamesTest, NodesThatNameTheMachineAreInsertedWhateverTheirFamily) {
  for (const char* name : {"localhost", "127.0.0.1", "127.0.1.1", "::1"}) {
    fi_addr_t index = FI_ADDR_UNSPEC;
    ASSERT_EQ(fi_av_insertsvc(node.av, name, "80", &index, 0, nullptr), 1)
        << name;
    EXPECT_EQ(Lookup(index), Machine(80)) << name;
  }
  fi_addr_t indices[2] = {};
  ASSERT_EQ(
      fi_av_insertsym(node.av, "127.0.0.1", 1, "80", 2, indices, 0, nullptr),
      2);
  EXPECT_EQ(Lookup(indices[1]), Machine(81));
}

TEST_F(NamesTest, AnotherFamilysAddressesAreNotInserted) {
  fi_addr_t index = 7;
  EXPECT_EQ(fi_av_insertsvc(node.av, "fd99::1", "80", &index, 0, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsvc(node.av, "::", "80", &index, 0, nullptr), 0);
  sockaddr_in6 loopback = {};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_port = htons(80);
  loopback.sin6_addr = in6addr_loopback;
  EXPECT_EQ(fi_av_insert(node.av, &loopback, 1, &index, 0, nullptr), 0);
  EXPECT_EQ(index, fi_addr_t{FI_ADDR_NOTAVAIL});
}

TEST_F(NamesTest, EndpointsBindToAnyNameOfTheMachine) {
  const InfoPointer info(fi_dupinfo(node.info.get()));
  for (const char* name : {"127.0.0.1", "127.0.1.1"}) {
    const sockaddr_in address = Make(name, 0);
    std::memcpy(info->src_addr, &address, sizeof(address));
    fid_ep* bare = nullptr;
    ASSERT_EQ(fi_endpoint(node.domain, info.get(), &bare, nullptr), 0) << name;
    const sockaddr_in wanted = Make(name, 700);
    EXPECT_EQ(fi_setname(&bare->fid, const_cast<sockaddr_in*>(&wanted),
                         sizeof(wanted)),
              0)
        << name;
    EXPECT_EQ(NameOf(bare), Machine(700));
    EXPECT_EQ(fi_close(&bare->fid), 0);
  }
}

TEST_F(NamesTest, DomainOpensAtTheMachinesAddress) {
  const InfoPointer info(fi_dupinfo(node.info.get()));
  const sockaddr_in address = Make("127.0.0.1", 0);
  std::memcpy(info->src_addr, &address, sizeof(address));
  fid_domain* domain = nullptr;
  ASSERT_EQ(fi_domain(node.fabric, info.get(), &domain, nullptr), 0);
  EXPECT_EQ(Source(Ask(domain)), Machine(0));
  EXPECT_EQ(fi_close(&domain->fid), 0);
}

// A domain at an address that is not the default one.
class OpenDomainTest : public ::testing::Test {
 protected:
  void SetUp() override { Open("10.99.0.1"); }

  void TearDown() override {
    for (fid_ep* endpoint : endpoints_) {
      EXPECT_EQ(fi_close(&endpoint->fid), 0);
    }
    for (struct fid* object : objects_) {
      EXPECT_EQ(fi_close(object), 0);
    }
  }

  void Open(const char* address) {
    const InfoPointer info = Ask(nullptr, address, nullptr, FI_SOURCE);
    ASSERT_NE(info, nullptr);
    ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
    fi_cq_attr cq_attr = {};
    cq_attr.format = FI_CQ_FORMAT_TAGGED;
    ASSERT_EQ(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
    fi_av_attr av_attr = {};
    ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
    objects_ = {&av->fid, &cq->fid, &domain->fid, &fabric->fid};
  }

  // An enabled endpoint from that info.
  fid_ep* OpenEndpoint(const InfoPointer& info) {
    fid_ep* endpoint = nullptr;
    EXPECT_NE(info, nullptr);
    EXPECT_EQ(fi_endpoint(domain, info.get(), &endpoint, nullptr), 0);
    if (endpoint != nullptr) {
      endpoints_.push_back(endpoint);
      EXPECT_EQ(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
      EXPECT_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
      EXPECT_EQ(fi_enable(endpoint), 0);
    }
    return endpoint;
  }

  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_cq* cq = nullptr;
  fid_av* av = nullptr;

 private:
  std::vector<fid_ep*> endpoints_;
  std::vector<struct fid*> objects_;
};

TEST_F(OpenDomainTest, InfosHaveTheAddressOfTheDomain) {
  const InfoPointer info = Ask(domain);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(Source(info), "10.99.0.1:0");
  EXPECT_STREQ(info->nic->link_attr->address, "10.99.0.1");
  EXPECT_EQ(Source(Ask(domain, "10.99.0.2", "80")), "10.99.0.1:0");
  EXPECT_EQ(Source(Ask(domain, nullptr, "80", FI_SOURCE)), "10.99.0.1:80");
  EXPECT_EQ(Source(Ask(domain, "10.99.0.1", "80", FI_SOURCE)), "10.99.0.1:80");
  // Without the hint the default holds.
  EXPECT_NE(Source(Ask(nullptr)), "10.99.0.1:0");
}

TEST_F(OpenDomainTest, SourceOfTheHintsKeepsItsPort) {
  InfoPointer hints = Ask(domain, nullptr, "80", FI_SOURCE);
  ASSERT_NE(hints, nullptr);
  fi_info* info = nullptr;
  ASSERT_EQ(
      fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &info),
      0);
  EXPECT_EQ(Source(InfoPointer(info)), "10.99.0.1:80");
}

TEST_F(OpenDomainTest, OtherSourcesAreRefused) {
  EXPECT_EQ(Ask(domain, "10.99.0.2", "80", FI_SOURCE), nullptr);
  EXPECT_EQ(Ask(domain, "localhost", "80", FI_SOURCE), nullptr);
  EXPECT_EQ(Ask(domain, nullptr, nullptr, 0, FI_SOCKADDR_IN6), nullptr);
  EXPECT_EQ(Ask(domain, "fd99::1", "80"), nullptr);
  const InfoPointer hints = Ask(nullptr);
  ASSERT_NE(hints, nullptr);
  hints->domain_attr->domain = domain;
  fi_info* info = nullptr;
  EXPECT_EQ(
      fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &info),
      -FI_ENODATA);
}

TEST_F(OpenDomainTest, EndpointsFromInfosOfTheirOwnExchangeMessages) {
  fid_ep* const endpoints[] = {
      OpenEndpoint(Ask(domain)), OpenEndpoint(Ask(domain)),
      OpenEndpoint(Ask(domain, nullptr, "700", FI_SOURCE))};
  std::set<std::string> names;
  fi_addr_t indices[3] = {};
  for (int i = 0; i < 3; ++i) {
    ASSERT_NE(endpoints[i], nullptr);
    names.insert(NameOf(endpoints[i]));
    sockaddr_in name = {};
    size_t length = sizeof(name);
    ASSERT_EQ(fi_getname(&endpoints[i]->fid, &name, &length), 0);
    ASSERT_EQ(fi_av_insert(av, &name, 1, &indices[i], 0, nullptr), 1);
  }
  EXPECT_EQ(names.size(), 3U) << "each has a port of its own";
  EXPECT_EQ(names.count("10.99.0.1:700"), 1U);
  for (int from = 0; from < 3; ++from) {
    const int to = (from + 1) % 3;
    uint64_t sent = 0x1234567 + static_cast<uint64_t>(from);
    uint64_t received = 0;
    ASSERT_EQ(fi_recv(endpoints[to], &received, sizeof(received), nullptr,
                      FI_ADDR_UNSPEC, &received),
              0);
    ASSERT_EQ(fi_send(endpoints[from], &sent, sizeof(sent), nullptr,
                      indices[to], &sent),
              0);
    for (int completion = 0; completion < 2; ++completion) {
      const auto outcome = Take(cq);
      ASSERT_TRUE(outcome.has_value());
      EXPECT_FALSE(outcome->error) << fi_strerror(outcome->failure.err);
    }
    EXPECT_EQ(received, sent);
  }
}

// The domain's family is that of the infos.
TEST(OpenIpv6DomainTest, InfosHaveItsFamily) {
  const InfoPointer first = Ask(nullptr, "fd99::1", nullptr, FI_SOURCE);
  ASSERT_NE(first, nullptr);
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  ASSERT_EQ(fi_fabric(first->fabric_attr, &fabric, nullptr), 0);
  ASSERT_EQ(fi_domain(fabric, first.get(), &domain, nullptr), 0);
  const InfoPointer info = Ask(domain);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->addr_format, uint32_t{FI_SOCKADDR_IN6});
  ASSERT_EQ(info->src_addrlen, sizeof(sockaddr_in6));
  EXPECT_EQ(std::memcmp(info->src_addr, first->src_addr, sizeof(sockaddr_in6)),
            0);
  EXPECT_EQ(Ask(domain, nullptr, nullptr, 0, FI_SOCKADDR_IN), nullptr);
  fid_ep* endpoint = nullptr;
  EXPECT_EQ(fi_endpoint(domain, info.get(), &endpoint, nullptr), 0);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
  EXPECT_EQ(fi_close(&domain->fid), 0);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

}  // namespace
}  // namespace heddle::test
