// SPDX-License-Identifier: Apache-2.0
#include "hw/contract/fabric_address.h"

#include <gtest/gtest.h>

#include "hw/contract/fabric_address_text.h"

namespace heddle::contract {
namespace {

TEST(FabricAddressTest, IsReadAndWrittenAsText) {
  for (const char* text : {"10.1.2.3", "255.255.255.255", "0.0.0.0", "fe80::1",
                           "::", "2001:db8::1:0:0:1", "::ffff:10.0.0.1"}) {
    const auto address = ParseFabricAddress(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(Text(*address), text);
  }
  EXPECT_EQ(ParseFabricAddress("10.1.2.3"), FabricAddress::Ipv4(0x0a010203));
  EXPECT_EQ(ParseFabricAddress("1:2:3:4:5:6:7:8"),
            FabricAddress::Ipv6(0x0001000200030004, 0x0005000600070008));
  for (const char* text : {"", "10.0.0", "10.0.0.1 ", "fe80::1%eth0", "host"}) {
    EXPECT_FALSE(ParseFabricAddress(text).has_value()) << text;
  }
}

TEST(FabricAddressTest, FamiliesDiffer) {
  EXPECT_NE(FabricAddress::Ipv6(0, 1), FabricAddress::Ipv4(1))
      << "::1 is not 0.0.0.1";
}

TEST(FabricAddressTest, UnicastIsNeitherUnspecifiedNorOfAGroup) {
  for (const char* text :
       {"0.0.0.1", "10.0.0.1", "127.0.0.1", "223.255.255.255", "240.0.0.1",
        "255.255.255.254", "::1", "fe80::1", "::ffff:224.0.0.1", "feff::"}) {
    EXPECT_TRUE(ParseFabricAddress(text)->is_unicast()) << text;
  }
  for (const char* text : {"0.0.0.0", "224.0.0.0", "239.255.255.255",
                           "255.255.255.255", "::", "ff00::", "ff02::1"}) {
    EXPECT_FALSE(ParseFabricAddress(text)->is_unicast()) << text;
  }
}

}  // namespace
}  // namespace heddle::contract
