// SPDX-License-Identifier: Apache-2.0
// Formats of addresses, names of endpoints, addresses as text.
#include <malloc.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <cstring>
#include <fstream>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

class AddressTest : public NodesTest {
 protected:
  // The address of node b as its vector writes it.
  std::string TextOf(Node& node) {
    const std::vector<uint8_t> name = node.Name();
    char text[512] = "";
    size_t bytes = sizeof(text);
    EXPECT_NE(fi_av_straddr(node.av, name.data(), text, &bytes), nullptr);
    return text;
  }
};

NodeOptions WithFormat(uint32_t format) {
  NodeOptions options;
  options.hints = [format](fi_info& hints) { hints.addr_format = format; };
  return options;
}

bool IsIp(const fi_info& info) {
  return !NumericHost(info).empty();
}

int FamilyOf(const std::vector<uint8_t>& name) {
  return reinterpret_cast<const sockaddr*>(name.data())->sa_family;
}

// The provider's own format, and the same requested by its name.
CONFORMANCE_TEST(AddressTest, FormatHoldsForNamesAndTheVector, 82, 83) {
  if (!Open({}, 1)) {
    return;
  }
  const uint32_t format = a().info->addr_format;
  ASSERT_NE(format, uint32_t{FI_FORMAT_UNSPEC});
  TearDown();
  for (const uint32_t wanted : {uint32_t{FI_FORMAT_UNSPEC}, format}) {
    ASSERT_TRUE(Open(WithFormat(wanted)));
    EXPECT_EQ(b().info->addr_format, format);
    const std::vector<uint8_t> name = b().Name();
    ASSERT_FALSE(name.empty());
    if (b().info->src_addr != nullptr && IsIp(*b().info)) {
      EXPECT_EQ(name.size(), b().info->src_addrlen);
      EXPECT_EQ(FamilyOf(name),
                static_cast<const sockaddr*>(b().info->src_addr)->sa_family);
    }
    // The vector returns what it was given.
    std::vector<uint8_t> known(256);
    size_t bytes = known.size();
    ASSERT_EQ(fi_av_lookup(a().av, to_b(), known.data(), &bytes), 0);
    ASSERT_GE(bytes, name.size());
    EXPECT_EQ(std::memcmp(known.data(), name.data(), name.size()), 0);
    Exchange(100);
    TearDown();
  }
}

CONFORMANCE_TEST(AddressTest, FamilyIsThatOfTheFormat, 84) {
  if (!Open({}, 1)) {
    return;
  }
  if (!IsIp(*a().info)) {
    return NotOffered("addresses of IP");
  }
  TearDown();
  const struct {
    uint32_t format;
    bool ipv4;
    bool ipv6;
  } cases[] = {{FI_SOCKADDR, true, true},
               {FI_SOCKADDR_IN, true, false},
               {FI_SOCKADDR_IN6, false, true}};
  int offered = 0;
  for (const auto& [format, ipv4, ipv6] : cases) {
    const Node node(WithFormat(format));
    if (node.result == -FI_ENODATA) {
      continue;
    }
    ASSERT_EQ(node.result, 0) << format << ": " << node.failed;
    ++offered;
    const std::vector<uint8_t> name = node.Name();
    const int family = FamilyOf(name);
    EXPECT_TRUE((ipv4 && family == AF_INET) || (ipv6 && family == AF_INET6))
        << format << ": family " << family;
    EXPECT_EQ(name.size(),
              family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  }
  EXPECT_GE(offered, 2) << "FI_SOCKADDR and one family";
}

CONFORMANCE_TEST(AddressTest, TextIsTheNodeOfAQuery, 15, 85) {
  if (!Open()) {
    return;
  }
  const std::string text = TextOf(b());
  ASSERT_NE(text, "");
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->addr_format = FI_ADDR_STR;
  const Answer answer = GetInfo(hints.get(), {.node = text.c_str()});
  ASSERT_EQ(answer.result, 0) << text;
  ASSERT_FALSE(answer.empty()) << text;
  // The query found the address of b, which node a takes.
  const fi_info& found = *answer.own().front();
  ASSERT_NE(found.dest_addr, nullptr) << text;
  fi_addr_t address = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(a().av, found.dest_addr, 1, &address, 0, nullptr), 1);
  std::vector<uint8_t> known(256);
  size_t bytes = known.size();
  ASSERT_EQ(fi_av_lookup(a().av, address, known.data(), &bytes), 0);
  char again[512] = "";
  size_t again_bytes = sizeof(again);
  ASSERT_NE(fi_av_straddr(a().av, known.data(), again, &again_bytes), nullptr);
  EXPECT_EQ(again, text);
}

CONFORMANCE_TEST(AddressTest, TextThatHoldsThePortStandsWithoutService, 15) {
  if (!Open({}, 1)) {
    return;
  }
  if (!IsIp(*a().info)) {
    return NotOffered("addresses of IP");
  }
  const std::string text = TextOf(a());
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->addr_format = FI_ADDR_STR;
  EXPECT_NE(
      GetInfo(hints.get(), {.node = text.c_str(), .service = "91"}).result, 0);
}

CONFORMANCE_TEST(AddressTest, NameThatWasSetIsTheName, 278) {
  NodeOptions options;
  options.enable = false;
  if (!Open(options, 1)) {
    return;
  }
  // A name like the provider's own, which no endpoint has any more, nor would
  // be the next.
  std::vector<uint8_t> name;
  {
    const auto first = OpenAlone({});
    const auto second = OpenAlone({});
    ASSERT_TRUE(first != nullptr && second != nullptr);
    name = second->Name();
  }
  const int result = fi_setname(&a().ep->fid, name.data(), name.size());
  if (result == -FI_ENOSYS || result == -FI_EOPNOTSUPP) {
    return Refused("fi_setname", result);
  }
  ASSERT_EQ(result, 0);
  ASSERT_EQ(fi_enable(a().ep), 0);
  EXPECT_EQ(a().Name(), name);
}

CONFORMANCE_TEST(AddressTest, EnabledEndpointHasANameAndNoPeer, 279) {
  NodeOptions options;
  options.enable = false;
  if (!Open(options, 1)) {
    return;
  }
  std::vector<uint8_t> name(256);
  size_t bytes = name.size();
  const int early = fi_getname(&a().ep->fid, name.data(), &bytes);
  EXPECT_LE(early, 0);
  ASSERT_EQ(fi_enable(a().ep), 0);
  EXPECT_FALSE(a().Name().empty());
  // It is not connected.
  bytes = name.size();
  EXPECT_LT(fi_getpeer(a().ep, name.data(), &bytes), 0);
}

// Resident memory of this process.
size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

CONFORMANCE_TEST(AddressTest, VectorHasRoomForManyPeers, 123) {
  if (!Open({}, 1)) {
    return;
  }
  if (!IsIp(*a().info) || FamilyOf(a().Name()) != AF_INET) {
    return NotOffered("addresses of IP");
  }
  constexpr uint32_t kPeers = 10'000;
  constexpr size_t kBytesEach = 1024;
  std::vector<sockaddr_in> names(kPeers);
  for (uint32_t i = 0; i < kPeers; ++i) {
    names[i].sin_family = AF_INET;
    names[i].sin_port = htons(static_cast<uint16_t>(1024 + i % 60'000));
    names[i].sin_addr.s_addr = htonl(0x0b000001U + i);
  }
  std::vector<fi_addr_t> addresses(kPeers);
  const size_t before = ResidentBytes();
  ASSERT_EQ(
      fi_av_insert(a().av, names.data(), kPeers, addresses.data(), 0, nullptr),
      static_cast<int>(kPeers));
  // Where a sanitizer allocates, which needs more, the C library reports 0.
  const bool sanitized = mallinfo2().uordblks == 0;
  EXPECT_TRUE(sanitized || ResidentBytes() - before < kPeers * kBytesEach);
  for (const uint32_t i : {0U, 1U, 4095U, kPeers / 2, kPeers - 1}) {
    sockaddr_in known = {};
    size_t bytes = sizeof(known);
    ASSERT_EQ(fi_av_lookup(a().av, addresses[i], &known, &bytes), 0);
    EXPECT_EQ(std::memcmp(&known, &names[i], sizeof(known)), 0) << i;
  }
  // After all of them one that is there: it is reached.
  const auto peer = OpenAlone({});
  ASSERT_NE(peer, nullptr);
  const fi_addr_t address = a().Insert(*peer);
  fi_context2 contexts[2] = {};
  Buffer sent(a(), 5000);
  Buffer received(*peer, 5000);
  sent.Fill();
  ASSERT_EQ(fi_recv(peer->ep, received.data(), 5000, received.desc(),
                    FI_ADDR_UNSPEC, &contexts[0]),
            0);
  ASSERT_EQ(Post([&] {
              peer->rx.Poll();
              return fi_send(a().ep, sent.data(), 5000, sent.desc(), address,
                             &contexts[1]);
            }),
            0);
  ASSERT_TRUE(WaitUntil([&] {
    peer->rx.Poll();
    peer->tx.Poll();
    return !peer->rx.taken.empty() && !a().tx.taken.empty();
  }));
  EXPECT_FALSE(peer->rx.taken.front().error);
  EXPECT_EQ(received.bytes(), sent.bytes());
}

}  // namespace
}  // namespace heddle::conformance
