// SPDX-License-Identifier: Apache-2.0
#include "host/lib/base/socket_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rdma/fabric.h>

#include <array>
#include <cstring>

namespace heddle::base {
namespace {

SocketAddress Make(const char* text, uint16_t port) {
  const auto address = SocketAddress::FromText(text);
  EXPECT_TRUE(address) << text;
  return address.value_or(SocketAddress()).WithPort(port);
}

TEST(SocketAddress, IsLaidOutAsTheSystemsStructures) {
  const SocketAddress four = Make("10.0.0.1", 0x1234);
  ASSERT_EQ(four.size(), 16U);
  EXPECT_EQ(four.format(), static_cast<uint32_t>(FI_SOCKADDR_IN));
  const std::array<uint8_t, 16> expected4 = {2, 0, 0x12, 0x34, 10, 0, 0, 1};
  EXPECT_EQ(memcmp(four.data(), expected4.data(), 16), 0);
  const SocketAddress six = Make("fd00::1", 0x1234);
  ASSERT_EQ(six.size(), 28U);
  EXPECT_EQ(six.format(), static_cast<uint32_t>(FI_SOCKADDR_IN6));
  std::array<uint8_t, 28> expected6 = {10, 0, 0x12, 0x34};
  expected6[8] = 0xfd;
  expected6[23] = 1;
  EXPECT_EQ(memcmp(six.data(), expected6.data(), 28), 0);
}

TEST(SocketAddress, ReadsWholeStructuresOnlyAtAnyAlignment) {
  for (const char* text : {"10.0.0.1", "fd00::1"}) {
    const SocketAddress address = Make(text, 80);
    std::array<char, 40> buffer = {};
    memcpy(buffer.data() + 1, address.data(), address.size());
    EXPECT_EQ(SocketAddress::Read(buffer.data() + 1, address.size()), address);
    EXPECT_EQ(SocketAddress::Read(buffer.data() + 1, 39), address);
    EXPECT_FALSE(SocketAddress::Read(buffer.data() + 1, address.size() - 1));
    buffer[1] = AF_UNIX;
    EXPECT_FALSE(SocketAddress::Read(buffer.data() + 1, 39));
  }
  EXPECT_FALSE(SocketAddress::Read(nullptr, 28));
}

// Two addresses that go to the same place are equal.
TEST(SocketAddress, FlowAndScopeAreNotKept) {
  sockaddr_in6 raw = {};
  raw.sin6_family = AF_INET6;
  raw.sin6_port = htons(80);
  raw.sin6_addr = Make("fd00::1", 0).ipv6();
  raw.sin6_flowinfo = 7;
  raw.sin6_scope_id = 9;
  EXPECT_EQ(SocketAddress::Read(&raw, sizeof(raw)), Make("fd00::1", 80));
}

TEST(SocketAddress, DiffersByAddressPortAndFamily) {
  EXPECT_FALSE(Make("10.0.0.1", 80) == Make("10.0.0.1", 81));
  EXPECT_FALSE(Make("10.0.0.1", 80) == Make("10.0.0.2", 80));
  EXPECT_FALSE(Make("fd00::1", 80) == Make("fd00::2", 80));
  EXPECT_FALSE(Make("::", 80) == Make("0.0.0.0", 80));
}

TEST(SocketAddress, TextNamesAddressAndPort) {
  EXPECT_EQ(Make("10.0.0.1", 65535).Text(), "10.0.0.1:65535");
  EXPECT_EQ(Make("fd00:0:0::1", 80).Text(), "[fd00::1]:80");
}

TEST(SocketAddress, UrlIsReadBack) {
  for (const SocketAddress& address :
       {Make("10.0.0.1", 65535), Make("fd00::1", 80)}) {
    EXPECT_EQ(SocketAddress::FromUrl(address.Url()), address) << address.Url();
  }
  EXPECT_EQ(Make("10.0.0.1", 80).Url(), "fi_sockaddr_in://10.0.0.1:80");
  EXPECT_EQ(Make("fd00::1", 80).Url(), "fi_sockaddr_in6://[fd00::1]:80");
  EXPECT_EQ(SocketAddress::FromUrl("fi_sockaddr_in://10.0.0.1"),
            Make("10.0.0.1", 0));
  EXPECT_EQ(SocketAddress::FromUrl("fi_sockaddr_in6://[fd00::1]"),
            Make("fd00::1", 0));
}

TEST(SocketAddress, WhatIsNoUrlIsRefused) {
  for (const char* text :
       {"", "10.0.0.1:80", "fi_sockaddr_in://", "fi_sockaddr_in://10.0.0.1:",
        "fi_sockaddr_in://10.0.0.1:65536", "fi_sockaddr_in://10.0.0.1:80x",
        "fi_sockaddr_in://fd00::1", "fi_sockaddr_in6://[fd00::1",
        "fi_sockaddr_in6://[fd00::1]80", "fi_sockaddr_in6://[10.0.0.1]:80",
        "fi_addr_efa://x", "fi_sockaddr_in://host:80"}) {
    EXPECT_FALSE(SocketAddress::FromUrl(text)) << text;
  }
}

TEST(SocketAddress, UnicastIsNeitherAnyNorManyReceivers) {
  for (const char* text :
       {"0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1"}) {
    EXPECT_FALSE(Make(text, 0).is_unicast()) << text;
  }
  for (const char* text : {"10.0.0.1", "127.0.0.1", "::1", "fd00::1"}) {
    EXPECT_TRUE(Make(text, 0).is_unicast()) << text;
  }
}

}  // namespace
}  // namespace heddle::base
