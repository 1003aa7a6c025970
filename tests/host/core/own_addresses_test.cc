// SPDX-License-Identifier: Apache-2.0
// Which addresses are this machine's, and what they mean on a wire.
#include "host/lib/core/own_addresses.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <vector>

namespace heddle::core {
namespace {

base::SocketAddress Make(const std::string& text, uint16_t port = 0) {
  const auto address = base::SocketAddress::FromText(text);
  EXPECT_TRUE(address) << text;
  return address.value_or(base::SocketAddress()).WithPort(port);
}

// A machine with a loopback, an interface that is down and two that are up.
std::vector<InterfaceAddress> SomeInterfaces() {
  return {{Make("127.0.0.1"), false}, {Make("192.0.2.9"), false},
          {Make("192.0.2.1"), true},  {Make("192.0.2.2"), true},
          {Make("::1"), false},       {Make("fe80::1"), true},
          {Make("fd00::1"), true},    {Make("fd00::2"), true}};
}

OwnAddresses OnMachine(const std::string& ip = "") {
  return {WireReach::kMachine, ip, SomeInterfaces()};
}

OwnAddresses OnNetwork(const std::string& ip = "") {
  return {WireReach::kNetwork, ip, SomeInterfaces()};
}

TEST(OwnAddresses, DefaultIsTheFirstUsableOfTheFamily) {
  EXPECT_EQ(OnMachine().Default(AF_INET), Make("192.0.2.1"));
  EXPECT_EQ(OnMachine().Default(AF_UNSPEC), Make("192.0.2.1"));
  EXPECT_EQ(OnMachine().Default(AF_INET6), Make("fd00::1"));
}

TEST(OwnAddresses, DefaultIsTheLoopbackWithoutAnInterface) {
  const OwnAddresses bare(
      WireReach::kMachine, "",
      {{Make("127.0.0.1"), false}, {Make("192.0.2.9"), false}});
  for (const OwnAddresses& own :
       {bare, OwnAddresses(WireReach::kMachine, "", {})}) {
    EXPECT_EQ(own.Default(AF_INET), Make("127.0.0.1"));
    EXPECT_EQ(own.Default(AF_INET6), Make("::1"));
  }
  EXPECT_EQ(bare.OnWire(Make("192.0.2.9", 7)), Make("127.0.0.1", 7));
}

TEST(OwnAddresses, EveryAddressOfTheMachineIsTheDefaultOfItsFamily) {
  const OwnAddresses own = OnMachine();
  for (const char* text : {"127.0.0.1", "127.0.1.1", "127.255.255.254",
                           "192.0.2.1", "192.0.2.2", "192.0.2.9"}) {
    EXPECT_TRUE(own.IsMachine(Make(text, 80))) << text;
    EXPECT_EQ(own.OnWire(Make(text, 80)), Make("192.0.2.1", 80)) << text;
  }
  for (const char* text : {"::1", "fe80::1", "fd00::1", "fd00::2"}) {
    EXPECT_TRUE(own.IsMachine(Make(text, 80))) << text;
    EXPECT_EQ(own.OnWire(Make(text, 80)), Make("fd00::1", 80)) << text;
  }
}

TEST(OwnAddresses, OtherAddressesMeanThemselves) {
  const OwnAddresses own = OnMachine();
  for (const char* text : {"192.0.2.3", "10.0.0.1", "126.255.255.255",
                           "128.0.0.1", "fd00::3", "::2", "ff02::1"}) {
    EXPECT_FALSE(own.IsMachine(Make(text, 80))) << text;
    EXPECT_EQ(own.OnWire(Make(text, 80)), Make(text, 80)) << text;
  }
}

// Which address a wildcard means is the caller's to say.
TEST(OwnAddresses, WildcardsStayAndStandForTheMachine) {
  for (const char* text : {"0.0.0.0", "::"}) {
    EXPECT_TRUE(OnMachine().IsMachine(Make(text)));
    EXPECT_EQ(OnMachine("10.0.0.1").OnWire(Make(text, 80)), Make(text, 80));
  }
}

TEST(OwnAddresses, OnANetworkEachAddressMeansItself) {
  const OwnAddresses own = OnNetwork("127.0.0.1");
  EXPECT_EQ(own.Own(AF_UNSPEC), Make("127.0.0.1"));
  EXPECT_EQ(OnNetwork().Own(AF_UNSPEC), Make("192.0.2.1"));
  for (const char* text : {"127.0.0.1", "192.0.2.2", "::1", "0.0.0.0"}) {
    EXPECT_FALSE(own.IsMachine(Make(text))) << text;
    EXPECT_EQ(own.OnWire(Make(text, 80)), Make(text, 80)) << text;
  }
}

TEST(OwnAddresses, SettingIsTheFunctionsAddress) {
  const OwnAddresses four = OnMachine("10.9.8.7");
  for (const int family : {AF_UNSPEC, AF_INET}) {
    EXPECT_EQ(four.Own(family), Make("10.9.8.7"));
  }
  EXPECT_EQ(four.family(), AF_INET);
  const OwnAddresses six = OnMachine("fd99::7");
  for (const int family : {AF_UNSPEC, AF_INET6}) {
    EXPECT_EQ(six.Own(family), Make("fd99::7"));
  }
  EXPECT_EQ(six.family(), AF_INET6);
  EXPECT_EQ(OnMachine().family(), AF_UNSPEC);
}

TEST(OwnAddresses, SettingMayNameTheMachine) {
  EXPECT_EQ(OnMachine("127.0.1.1").Own(AF_UNSPEC), Make("192.0.2.1"));
  EXPECT_EQ(OnMachine("192.0.2.2").Own(AF_UNSPEC), Make("192.0.2.1"));
  EXPECT_EQ(OnMachine("::1").Own(AF_UNSPEC), Make("fd00::1"));
}

TEST(OwnAddresses, SettingDoesNotChangeWhatTheMachinesNamesMean) {
  const OwnAddresses own = OnMachine("10.9.8.7");
  EXPECT_EQ(own.OnWire(Make("127.0.0.1", 80)), Make("192.0.2.1", 80));
  EXPECT_EQ(own.OnWire(Make("10.9.8.7", 80)), Make("10.9.8.7", 80));
  EXPECT_FALSE(own.IsMachine(Make("10.9.8.7")));
}

TEST(OwnAddresses, SettingOfAnotherFamilyLeavesNone) {
  EXPECT_FALSE(OnMachine("10.9.8.7").Own(AF_INET6));
  EXPECT_FALSE(OnMachine("fd99::7").Own(AF_INET));
}

// The address of an open domain, whatever this machine's are by now.
TEST(OwnAddresses, FunctionMayBeAtAnotherAddress) {
  const OwnAddresses own = OnMachine("10.9.8.7").At(Make("192.0.2.2", 80));
  EXPECT_EQ(own.Own(AF_UNSPEC), Make("192.0.2.2"));
  EXPECT_EQ(own.OnWire(Make("127.0.0.1")), Make("192.0.2.1"));
  EXPECT_EQ(own.OnWire(Make("192.0.2.2", 80)), Make("192.0.2.2", 80));
  EXPECT_EQ(own.At(Make("fd99::1")).family(), AF_INET6);
}

TEST(OwnAddresses, TheWireUdpIsANetwork) {
  Settings settings;
  settings.wire = "udp";
  EXPECT_EQ(SimulatedReach(settings), WireReach::kNetwork);
  settings.wire = "default";
  EXPECT_EQ(SimulatedReach(settings), WireReach::kMachine);
}

TEST(OwnAddresses, InterfacesOfThisMachineAreRead) {
  const auto interfaces = ReadInterfaces();
  for (const InterfaceAddress& each : interfaces) {
    EXPECT_FALSE(each.address.is_any());
    EXPECT_EQ(each.address.port(), 0);
  }
  const OwnAddresses own(WireReach::kMachine, "", interfaces);
  for (const int family : {AF_INET, AF_INET6}) {
    const base::SocketAddress address = own.Default(family);
    EXPECT_EQ(address.family(), family);
    EXPECT_TRUE(address.is_unicast());
    EXPECT_TRUE(own.IsMachine(address));
  }
  const auto loopback = std::find_if(interfaces.begin(), interfaces.end(),
                                     [](const InterfaceAddress& each) {
                                       return each.address == Make("127.0.0.1");
                                     });
  ASSERT_NE(loopback, interfaces.end());
  EXPECT_FALSE(loopback->is_usable);
}

}  // namespace
}  // namespace heddle::core
