// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace heddle::core {
namespace {

TEST(Address, SettingIsTaken) {
  Settings settings;
  settings.ip = "10.9.8.7";
  EXPECT_EQ(LocalAddress(settings).s_addr, inet_addr("10.9.8.7"));
}

TEST(Address, WithoutSettingItIsNeverTheAnyAddress) {
  EXPECT_NE(LocalAddress(Settings()).s_addr, INADDR_ANY);
}

TEST(Address, TextNamesAddressAndPort) {
  EXPECT_EQ(FormatAddress(MakeAddress({inet_addr("10.0.0.1")}, 65535)),
            "10.0.0.1:65535");
}

TEST(Address, OnlyAWholeSockaddrInIsParsed) {
  const sockaddr_in address = MakeAddress({inet_addr("10.0.0.1")}, 80);
  const auto parsed = ParseAddress(&address, sizeof(address));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->sin_port, htons(80));
  EXPECT_FALSE(ParseAddress(&address, sizeof(address) - 1));
  EXPECT_FALSE(ParseAddress(nullptr, sizeof(address)));
  sockaddr_in6 other = {};
  other.sin6_family = AF_INET6;
  EXPECT_FALSE(ParseAddress(&other, sizeof(other)));
}

}  // namespace
}  // namespace heddle::core
