// SPDX-License-Identifier: Apache-2.0
// fi_getinfo when FI_HEDDLE_IP holds an IPv6 address. Compiled twice, as
// getinfo_test.cc is.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/host/core/info_pointer.h"

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  setenv("FI_HEDDLE_DEVICE", "rtl", 1);
  setenv("FI_HEDDLE_IP", "fd00::3", 1);
  setenv("FI_LOG_LEVEL", "info", 1);
#ifdef HEDDLE_PLUGIN_DIRECTORY
  setenv("FI_PROVIDER_PATH", HEDDLE_PLUGIN_DIRECTORY, 1);
  setenv("FI_PROVIDER", "heddle", 1);
#endif
  return true;
}();

std::string AddressText(const void* data, size_t bytes) {
  if (data == nullptr) {
    return "none";
  }
  sockaddr_in6 address;
  if (bytes != sizeof(address)) {
    return "wrong size";
  }
  memcpy(&address, data, sizeof(address));
  if (address.sin6_family != AF_INET6) {
    return "wrong family";
  }
  char text[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
  return "[" + std::string(text) +
         "]:" + std::to_string(ntohs(address.sin6_port));
}

std::string Source(const Answer& answer) {
  return AddressText(answer.info->src_addr, answer.info->src_addrlen);
}

std::string Destination(const Answer& answer) {
  return AddressText(answer.info->dest_addr, answer.info->dest_addrlen);
}

TEST(Ipv6, OwnAddressDecidesTheFormat) {
  const Answer answer = Ask(nullptr);
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->addr_format, FI_SOCKADDR_IN6);
  EXPECT_EQ(Source(answer), "[fd00::3]:0");
  EXPECT_EQ(Destination(answer), "none");
  EXPECT_STREQ(answer.info->nic->link_attr->address, "fd00::3");
  EXPECT_EQ(Ask(answer.info.get()).result, 0);
}

TEST(Ipv6, FormatOfEitherFamilyIsKeptWhenAskedFor) {
  const Info hints = MakeHints();
  hints->addr_format = FI_SOCKADDR;
  const Answer answer = Ask(hints.get());
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->addr_format, FI_SOCKADDR);
  EXPECT_EQ(Source(answer), "[fd00::3]:0");
}

TEST(Ipv6, Ipv4IsRuledOutByItsFormat) {
  const Info hints = MakeHints();
  hints->addr_format = FI_SOCKADDR_IN;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Ask(hints.get()).result, -FI_ENODATA);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("device rtl0 ruled out by addr_format: wanted "
                     "FI_SOCKADDR_IN, offered FI_SOCKADDR, FI_ADDR_STR, "
                     "FI_SOCKADDR_IN6"),
            std::string::npos)
      << log;
}

TEST(Ipv6, NodeAndServiceAreResolvedToIt) {
  EXPECT_EQ(Destination(Ask(nullptr, "fd00::9", "4096")), "[fd00::9]:4096");
  const Answer source = Ask(nullptr, "fd00::9", "4096", FI_SOURCE);
  EXPECT_EQ(Source(source), "[fd00::9]:4096");
  EXPECT_EQ(Destination(Ask(nullptr, nullptr, "7")), "[fd00::3]:7");
  EXPECT_EQ(Source(Ask(nullptr, "::", "7", FI_SOURCE)), "[fd00::3]:7");
  EXPECT_EQ(Destination(Ask(nullptr, "fd00::9", nullptr, FI_NUMERICHOST)),
            "[fd00::9]:0");
}

TEST(Ipv6, NodeOfTheOtherFamilyIsRefused) {
  EXPECT_EQ(Ask(nullptr, "10.0.0.9", "4096").result, -FI_ENODATA);
}

TEST(Ipv6, NodeMayHoldThePort) {
  const Info hints = MakeHints();
  hints->addr_format = FI_ADDR_STR;
  const Answer answer = Ask(hints.get(), "fi_sockaddr_in6://[fd00::9]:90");
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(Destination(answer), "[fd00::9]:90");
  EXPECT_EQ(answer.info->addr_format, FI_SOCKADDR_IN6);
  EXPECT_EQ(Ask(hints.get(), "fi_sockaddr_in://10.0.0.9:90").result,
            -FI_ENODATA);
}

TEST(Ipv6, HintsOfTheOtherFamilyAreRefused) {
  const Info hints = MakeHints();
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(70);
  inet_pton(AF_INET6, "fd00::7", &address.sin6_addr);
  hints->src_addr = calloc(1, sizeof(address));
  memcpy(hints->src_addr, &address, sizeof(address));
  hints->src_addrlen = sizeof(address);
  EXPECT_EQ(Source(Ask(hints.get())), "[fd00::7]:70");
  sockaddr_in other = {};
  other.sin_family = AF_INET;
  memcpy(hints->src_addr, &other, sizeof(other));
  EXPECT_EQ(Ask(hints.get()).result, -FI_ENODATA);
}

TEST(Ipv6, TextNamesAddressAndPort) {
  const Answer answer = Ask(nullptr, "fd00::9", "4096");
  const std::string text = fi_tostr(answer.info.get(), FI_TYPE_INFO);
  EXPECT_NE(text.find("src_addr: fi_sockaddr_in6://[fd00::3]:0"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("dest_addr: fi_sockaddr_in6://[fd00::9]:4096"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::test
