// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/device/settings.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace heddle::sim::device {
namespace {

TEST(SimSettings, AreReadAndBadOnesNamed) {
  const auto parse = [](const char* name, const char* value,
                        std::string* message) {
    const HeddleSimOption option{.name = name, .value = value};
    return ParseSettings(contract::kSoftKind, {&option, 1}, message);
  };
  std::string message;
  EXPECT_EQ(parse("address", "10.1.2.3", &message).value().wire.ip,
            frame::WireAddress(0x0a010203));
  EXPECT_EQ(parse("payload_mtu", "8192", &message).value().wire.payload_mtu,
            8192u);
  EXPECT_EQ(parse("address", "fe80::1", &message).value().wire.ip,
            frame::WireAddress(0xfe80000000000000, 1));
  EXPECT_EQ(parse("loss", "0.01", &message).value().faults.tx.loss, 0.01);
  EXPECT_EQ(parse("corrupt", "0.02", &message).value().faults.tx.corrupt, 0.02);
  EXPECT_EQ(parse("bad_fcs", "0.03", &message).value().faults.tx.bad_fcs, 0.03);
  EXPECT_EQ(parse("ecn", "1", &message).value().faults.tx.ecn, 1);
  EXPECT_EQ(parse("delay_ns", "5", &message).value().faults.tx.delay, 5u);
  EXPECT_EQ(parse("jitter_ns", "6", &message).value().faults.tx.jitter, 6u);
  EXPECT_EQ(parse("rate_gbps", "0.5", &message).value().faults.tx.rate, 0.5);
  EXPECT_EQ(parse("queue_bytes", "7", &message).value().faults.tx.queue_bytes,
            7u);
  EXPECT_EQ(parse("ecn_bytes", "8", &message).value().faults.tx.ecn_bytes, 8u);
  const fault::LineFaults received =
      parse("rx_loss", "0.25", &message).value().faults;
  EXPECT_EQ(received.rx.loss, 0.25);
  EXPECT_EQ(received.tx.loss, 0);
  EXPECT_EQ(parse("rx_delay_ns", "9", &message).value().faults.rx.delay, 9u);
  const fault::LineFaults seeded = parse("seed", "7", &message).value().faults;
  EXPECT_EQ(seeded.tx.seed, 7u);
  EXPECT_EQ(seeded.rx.seed, 7u);
  EXPECT_EQ(parse("dead_ns", "1000000", &message).value().settings.dead_ns,
            1000000u);
  EXPECT_EQ(parse("wire", "default", &message).value().wire.name, "");
  EXPECT_EQ(parse("vlan", "4094", &message).value().settings.vlan, 4094u);
  EXPECT_EQ(parse("dscp_trimmed", "63", &message).value().settings.dscp_trimmed,
            63);
  EXPECT_EQ(parse("dscp_trimmed_lasthop", "1", &message)
                .value()
                .settings.dscp_trimmed_lasthop,
            1);
  EXPECT_FALSE(parse("trim", "off", &message).value().faults.tx.trim);
  using contract::CrcOrder;
  EXPECT_EQ(parse("seed", "1", &message).value().wire.crc, CrcOrder::kMsbFirst);
  EXPECT_EQ(parse("crc", "msb", &message).value().wire.crc,
            CrcOrder::kMsbFirst);
  EXPECT_EQ(parse("crc", "lsb", &message).value().wire.crc,
            CrcOrder::kLsbFirst);
  EXPECT_EQ(parse("crc", "none", &message).value().wire.crc, CrcOrder::kNone);
  EXPECT_EQ(parse("encap", "ip", &message).value().settings.encap,
            contract::Encap::kIp);
  EXPECT_EQ(parse("encap", "udp", &message).value().settings.encap,
            contract::Encap::kUdp);
  const auto native = parse("ip_protocol", "254", &message).value();
  EXPECT_EQ(native.wire.ip_protocol, 254);
  EXPECT_EQ(native.faults.tx.ip_protocol, 254);
  EXPECT_EQ(native.faults.rx.ip_protocol, 254);
  EXPECT_EQ(parse("statistics", "/x", &message).value().settings.statistics,
            "/x");
  EXPECT_EQ(
      parse("neighbours", "resolve", &message).value().settings.neighbours,
      contract::Neighbours::kResolve);
  EXPECT_EQ(parse("neighbours", "static", &message).value().settings.neighbours,
            contract::Neighbours::kStatic);
  EXPECT_EQ(parse("read_again", "0.5", &message).value().settings.read_again,
            0.5);
  constexpr std::array<std::pair<const char*, const char*>, 33> kBad = {{
      {"read_again", "2"},
      {"neighbours", "some"},
      {"address", "10.1.2"},
      {"address", "0.0.0.0"},
      {"payload_mtu", "4095"},
      {"loss", "1.5"},
      {"loss", "0.1x"},
      {"seed", "-1"},
      {"rto_ns", "0"},
      {"rto_ns", "999"},
      {"dead_ns", "10000000000001"},
      {"pdc_idle_ns", "10000000000001"},
      {"wire", "a/b"},
      {"address", "224.0.0.1"},
      {"bounce_limit", "0"},
      {"ip", "10.0.0.1"},
      {"pdc_idle_ns", "never"},
      {"wire", ""},
      {"crc", "on"},
      {"crc", ""},
      {"encap", "native"},
      {"ip_protocol", "17"},
      {"ip_protocol", "256"},
      {"vlan", "0"},
      {"vlan", "4095"},
      {"rx_loss", "2"},
      {"delay_ns", "10000000001"},
      {"rate_gbps", "1e-9"},
      {"rx_rx_loss", "0.5"},
      {"dscp_trimmed", "64"},
      {"dscp_trimmed_lasthop", "AF11"},
      {"trim", "1"},
      {"colour", "blue"},
  }};
  for (const auto& [name, value] : kBad) {
    auto result = parse(name, value, &message);
    ASSERT_FALSE(result.ok()) << name << '=' << value;
    EXPECT_EQ(result.error(), Errno{EINVAL});
    EXPECT_NE(message.find(std::string(name) + "=" + value), std::string::npos)
        << message;
    if (const contract::SettingRow* const row = FindOption(name)) {
      EXPECT_NE(message.find(row->range), std::string::npos) << message;
    } else {
      EXPECT_NE(message.find("unknown"), std::string::npos) << message;
    }
  }
}

// A queue that trims needs a rate, and what is left a DSCP: at the last hop
// that of its own, if there is one.
TEST(SimSettings, TrimmingNeedsARateAndADscp) {
  std::string message;
  using Options = std::vector<HeddleSimOption>;
  const auto parse = [&](const Options& options) {
    return ParseSettings(contract::kSoftKind, options, &message);
  };
  const HeddleSimOption path{.name = "dscp_trimmed", .value = "3"};
  const HeddleSimOption lasthop{.name = "dscp_trimmed_lasthop", .value = "44"};
  const HeddleSimOption rate{.name = "rate_gbps", .value = "1"};
  const HeddleSimOption rx_rate{.name = "rx_rate_gbps", .value = "1"};
  const HeddleSimOption trim{.name = "trim", .value = "on"};
  const HeddleSimOption rx_trim{.name = "rx_trim", .value = "on"};
  for (const Options& options :
       {Options{trim, path}, Options{trim, rate}, Options{trim, rx_rate, path},
        Options{trim, rate, lasthop}, Options{rx_trim, rate, path},
        Options{rx_trim, rx_rate}}) {
    const auto refused = parse(options);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error(), Errno{EINVAL});
    EXPECT_NE(message.find("dscp_trimmed"), std::string::npos) << message;
  }
  EXPECT_EQ(parse({trim, rate, path}).value().faults.tx.trim_dscp, 3);
  EXPECT_EQ(parse({rx_trim, rx_rate, path}).value().faults.rx.trim_dscp, 3);
  EXPECT_EQ(
      parse({rx_trim, rx_rate, path, lasthop}).value().faults.rx.trim_dscp, 44);
}

// A setting of the other kind is refused, but for its default.
TEST(SimSettings, OfTheOtherDeviceAreRefused) {
  std::string message;
  const auto parse = [&](const contract::DeviceKind& kind, const char* name,
                         const char* value) {
    const HeddleSimOption option{.name = name, .value = value};
    return ParseSettings(kind, {&option, 1}, &message).ok();
  };
  using contract::kRtlKind;
  using contract::kSoftKind;
  EXPECT_FALSE(parse(kRtlKind, "read_again", "0.5"));
  EXPECT_EQ(
      message,
      "simulator setting read_again=0.5: applies to the device soft only");
  EXPECT_TRUE(parse(kRtlKind, "read_again", "0"));
  EXPECT_TRUE(parse(kSoftKind, "read_again", "0.5"));
  EXPECT_FALSE(parse(kSoftKind, "trace", "a.fst"));
  EXPECT_TRUE(parse(kRtlKind, "trace", "a.fst"));
}

}  // namespace
}  // namespace heddle::sim::device
