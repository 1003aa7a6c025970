// SPDX-License-Identifier: Apache-2.0
// Names of this machine as fi_getinfo and fi_av_insertsvc resolve them, on a
// machine of given interfaces.
#include "host/lib/core/resolve.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <string>

#include "host/lib/base/version.h"
#include "host/lib/core/info_layout.h"

namespace heddle::core {
namespace {

base::SocketAddress Make(const std::string& text, uint16_t port = 0) {
  return base::SocketAddress::FromText(text)
      .value_or(base::SocketAddress())
      .WithPort(port);
}

OwnAddresses Machine(WireReach reach, const std::string& ip = "") {
  return {reach,
          ip,
          {{Make("127.0.0.1"), false},
           {Make("192.0.2.1"), true},
           {Make("192.0.2.2"), true},
           {Make("fd00::1"), true}}};
}

// What is asked of Resolve, and its answer as text.
struct Question {
  const char* node = nullptr;
  const char* service = nullptr;
  uint64_t flags = 0;
  uint32_t format = FI_FORMAT_UNSPEC;
  const base::SocketAddress* source_hint = nullptr;
  const base::SocketAddress* destination_hint = nullptr;
  const char* ip = "";  // FI_HEDDLE_IP
  WireReach reach = WireReach::kMachine;
};

std::string Ask(const Question& question) {
  const InfoPointer info(AllocateInfo());
  const auto store = [](const base::SocketAddress* hint, void** data,
                        size_t* bytes) {
    if (hint != nullptr) {
      *data = DuplicateBytes(hint->data(), hint->size());
      *bytes = hint->size();
    }
  };
  store(question.source_hint, &info->src_addr, &info->src_addrlen);
  store(question.destination_hint, &info->dest_addr, &info->dest_addrlen);
  info->addr_format = question.format;
  const Hints hints(info.get(), kNewestLayout);
  Endpoints endpoints;
  std::string reason;
  const int result =
      Resolve({kApiVersion, question.node, question.service, question.flags,
               info.get(), &kNewestLayout},
              hints, Machine(question.reach, question.ip), &endpoints, &reason);
  if (result != 0) {
    EXPECT_EQ(result, -FI_ENODATA);
    EXPECT_NE(reason, "");
    return "refused: " + reason;
  }
  return endpoints.source.Text() + " to " +
         (endpoints.destination ? endpoints.destination->Text() : "none");
}

constexpr const char* kNames[] = {"localhost", "127.0.0.1", "127.0.1.1", "::1",
                                  "192.0.2.1", "192.0.2.2", "fd00::1"};

TEST(Resolve, NamesOfTheMachineAreItsAddressOnTheWire) {
  for (const char* name : kNames) {
    EXPECT_EQ(Ask({.node = name, .service = "80"}),
              "192.0.2.1:0 to 192.0.2.1:80")
        << name;
    EXPECT_EQ(Ask({.node = name, .service = "80", .flags = FI_SOURCE}),
              "192.0.2.1:80 to none")
        << name;
  }
}

// What else decides the family, decides that of such a name.
TEST(Resolve, NamesOfTheMachineHaveTheFamilyThatIsAskedFor) {
  for (const char* name : kNames) {
    EXPECT_EQ(Ask({.node = name, .service = "80", .format = FI_SOCKADDR_IN6}),
              "[fd00::1]:0 to [fd00::1]:80")
        << name;
    EXPECT_EQ(Ask({.node = name, .service = "80", .format = FI_SOCKADDR_IN}),
              "192.0.2.1:0 to 192.0.2.1:80")
        << name;
    EXPECT_EQ(Ask({.node = name, .service = "80", .ip = "fd99::7"}),
              "[fd99::7]:0 to [fd00::1]:80")
        << name;
    EXPECT_EQ(Ask({.node = name, .service = "80", .ip = "10.9.8.7"}),
              "10.9.8.7:0 to 192.0.2.1:80")
        << name;
    const base::SocketAddress six = Make("fd99::8", 70);
    EXPECT_EQ(Ask({.node = name, .service = "80", .source_hint = &six}),
              "[fd99::8]:70 to [fd00::1]:80")
        << name;
  }
}

TEST(Resolve, AddressesAmongTheHintsKeepTheirFamily) {
  const base::SocketAddress four = Make("127.0.0.1", 70);
  const base::SocketAddress six = Make("::1", 80);
  EXPECT_EQ(Ask({.source_hint = &four, .destination_hint = &four}),
            "192.0.2.1:70 to 192.0.2.1:70");
  EXPECT_EQ(Ask({.source_hint = &six, .destination_hint = &six}),
            "[fd00::1]:80 to [fd00::1]:80");
  EXPECT_EQ(Ask({.source_hint = &four, .destination_hint = &six}),
            "refused: dest_addr [::1]:80 is not IPv4");
  EXPECT_EQ(Ask({.source_hint = &six, .ip = "127.0.0.1"}),
            "refused: src_addr [::1]:80 is not IPv4");
}

TEST(Resolve, TextOfAFormatKeepsItsFamily) {
  EXPECT_EQ(Ask({.node = "fi_sockaddr_in6://[::1]:80"}),
            "[fd00::1]:0 to [fd00::1]:80");
  EXPECT_EQ(Ask({.node = "fi_sockaddr_in://127.0.0.1:80", .flags = FI_SOURCE}),
            "192.0.2.1:80 to none");
}

TEST(Resolve, WildcardsAndNoNodeAreTheFunctionItself) {
  for (const char* node :
       {"0.0.0.0", "::", static_cast<const char*>(nullptr)}) {
    EXPECT_EQ(Ask({.node = node, .service = "80", .flags = FI_SOURCE}),
              "192.0.2.1:80 to none");
    EXPECT_EQ(Ask({.node = node, .service = "80", .ip = "10.9.8.7"}),
              "10.9.8.7:0 to 10.9.8.7:80");
    EXPECT_EQ(Ask({.node = node, .service = "80", .ip = "fd99::7"}),
              "[fd99::7]:0 to [fd99::7]:80");
  }
}

TEST(Resolve, AddressOfAnotherMachineKeepsItsFamily) {
  EXPECT_EQ(Ask({.node = "192.0.2.3", .service = "80"}),
            "192.0.2.1:0 to 192.0.2.3:80");
  EXPECT_EQ(Ask({.node = "fd00::3", .service = "80"}),
            "[fd00::1]:0 to [fd00::3]:80");
  EXPECT_EQ(Ask({.node = "fd00::3", .service = "80", .ip = "127.0.0.1"}),
            "refused: node [fd00::3]:80 is not IPv4");
}

TEST(Resolve, OnANetworkNamesMeanWhatTheyResolveTo) {
  constexpr WireReach kReach = WireReach::kNetwork;
  EXPECT_EQ(Ask({.node = "127.0.0.1", .service = "80", .reach = kReach}),
            "192.0.2.1:0 to 127.0.0.1:80");
  EXPECT_EQ(Ask({.node = "::1", .service = "80", .reach = kReach}),
            "[fd00::1]:0 to [::1]:80");
  EXPECT_EQ(Ask({.node = "192.0.2.2",
                 .service = "80",
                 .flags = FI_SOURCE,
                 .reach = kReach}),
            "192.0.2.2:80 to none");
  EXPECT_EQ(Ask({.node = "::1", .ip = "10.9.8.7", .reach = kReach}),
            "refused: node [::1]:0 is not IPv4");
}

TEST(LookUp, TakesTheFamilyOrSaysWhatIsWrong) {
  const OwnAddresses own = Machine(WireReach::kMachine);
  std::string reason;
  for (const char* name : kNames) {
    const NodeName node = {.node = name, .service = "80"};
    EXPECT_EQ(LookUp(node, AF_INET, own, &reason), Make("192.0.2.1", 80));
    EXPECT_EQ(LookUp(node, AF_INET6, own, &reason), Make("fd00::1", 80));
  }
  EXPECT_EQ(LookUp({.node = "fd00::3", .service = "80"}, AF_INET, own, &reason),
            Make("fd00::3", 80));
  EXPECT_FALSE(
      LookUp({.node = "localhost", .service = "80", .is_numeric = true},
             AF_INET, own, &reason));
  EXPECT_NE(reason.find("node localhost, service 80, IPv4: "),
            std::string::npos)
      << reason;
}

}  // namespace
}  // namespace heddle::core
