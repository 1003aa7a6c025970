// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/rtl_device.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/sim_factory.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/clock.h"
#include "hw/sim/settings.h"
#include "tests/sim/device_test.h"

extern "C" HeddleSimOpen heddle_sim_open;
extern "C" HeddleSimIdentity heddle_sim_identity;

namespace heddle::sim {

DeviceKind TestedDevice() {
  return {.domain = "rtl0",
          .thread = "heddle-rtl",
          .open = [](const DeviceOptions& options,
                     std::string* message) -> Result<std::unique_ptr<Device>> {
            auto device = RtlDevice::Open(options, message);
            if (!device.ok()) {
              return device.error();
            }
            return std::unique_ptr<Device>(std::move(device.value()));
          }};
}

namespace {

using RtlDeviceTest = DeviceTest;

TEST_F(RtlDeviceTest, IdleDeviceSleeps) {
  const std::string statistics = File(".stats");
  DeviceOptions options = Options(kIpA);
  options.statistics = statistics;
  auto a = Node::Open(options, 100);
  ASSERT_TRUE(a);
  // Neither its own thread nor a poller makes the model move.
  const uint64_t cpu_before = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  const uint64_t start = MonotonicNs();
  while (MonotonicNs() - start < 300000000) {
    SleepNs(1000000);
  }
  const uint64_t cpu = ClockNs(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  EXPECT_LT(cpu, 60000000u) << "ns of CPU in 300 ms of idleness";
  for (int i = 0; i < 2000; ++i) {
    a->Step();
  }
  a.reset();
  const auto values = ReadStatistics(statistics);
  EXPECT_LT(values.at("cycles"), 15000u);
  unlink(statistics.c_str());
}

TEST_F(RtlDeviceTest, SettingsAreReadAndBadOnesNamed) {
  const auto parse = [](const char* name, const char* value,
                        std::string* message) {
    const HeddleSimOption option{.name = name, .value = value};
    return ParseSettings(&option, 1, message);
  };
  std::string message;
  EXPECT_EQ(parse("address", "10.1.2.3", &message).value().wire.ip,
            0x0a010203u);
  EXPECT_EQ(parse("payload_mtu", "8192", &message).value().wire.payload_mtu,
            8192u);
  EXPECT_EQ(parse("address", "fe80::1", &message).value().wire.ip,
            WireAddress(0xfe80000000000000, 1));
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
  const LineFaults received = parse("rx_loss", "0.25", &message).value().faults;
  EXPECT_EQ(received.rx.loss, 0.25);
  EXPECT_EQ(received.tx.loss, 0);
  EXPECT_EQ(parse("rx_delay_ns", "9", &message).value().faults.rx.delay, 9u);
  const LineFaults seeded = parse("seed", "7", &message).value().faults;
  EXPECT_EQ(seeded.tx.seed, 7u);
  EXPECT_EQ(seeded.rx.seed, 7u);
  EXPECT_EQ(parse("dead_ns", "1000000", &message).value().dead_ns, 1000000u);
  EXPECT_EQ(parse("wire", "default", &message).value().wire.name, "");
  EXPECT_EQ(parse("vlan", "4094", &message).value().vlan, 4094u);
  EXPECT_EQ(parse("dscp_trimmed", "63", &message).value().dscp_trimmed, 63);
  EXPECT_EQ(
      parse("dscp_trimmed_lasthop", "1", &message).value().dscp_trimmed_lasthop,
      1);
  EXPECT_FALSE(parse("trim", "off", &message).value().faults.tx.trim);
  using contract::CrcOrder;
  EXPECT_EQ(parse("seed", "1", &message).value().wire.crc, CrcOrder::kMsbFirst);
  EXPECT_EQ(parse("crc", "msb", &message).value().wire.crc,
            CrcOrder::kMsbFirst);
  EXPECT_EQ(parse("crc", "lsb", &message).value().wire.crc,
            CrcOrder::kLsbFirst);
  EXPECT_EQ(parse("crc", "none", &message).value().wire.crc, CrcOrder::kNone);
  EXPECT_TRUE(parse("encap", "ip", &message).value().native_ip);
  EXPECT_FALSE(parse("encap", "udp", &message).value().native_ip);
  const auto native = parse("ip_protocol", "254", &message).value();
  EXPECT_EQ(native.wire.ip_protocol, 254);
  EXPECT_EQ(native.faults.tx.ip_protocol, 254);
  EXPECT_EQ(native.faults.rx.ip_protocol, 254);
  EXPECT_EQ(parse("statistics", "/x", &message).value().statistics, "/x");
  EXPECT_TRUE(
      parse("neighbours", "resolve", &message).value().resolve_neighbours);
  EXPECT_FALSE(
      parse("neighbours", "static", &message).value().resolve_neighbours);
  EXPECT_EQ(parse("read_again", "0.5", &message).value().read_again, 0.5);
  constexpr std::array<std::pair<const char*, const char*>, 26> kBad = {{
      {"read_again", "2"},
      {"neighbours", "some"},
      {"address", "10.1.2"},
      {"address", "0.0.0.0"},
      {"payload_mtu", "4095"},
      {"loss", "1.5"},
      {"loss", "0.1x"},
      {"seed", "-1"},
      {"rto_ns", "0"},
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
  }
}

// A queue that trims needs a rate, and what is left a DSCP: at the last hop
// that of its own, if there is one.
TEST_F(RtlDeviceTest, TrimmingNeedsARateAndADscp) {
  std::string message;
  using Options = std::vector<HeddleSimOption>;
  const auto parse = [&](const Options& options) {
    return ParseSettings(options.data(), options.size(), &message);
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

TEST_F(RtlDeviceTest, FactoryRefusesOtherVersionsWithBothNumbers) {
  HeddleSimError error{};
  EXPECT_EQ(heddle_sim_open("rtl", kDeviceAbi + 1, contract::kContractHash,
                            nullptr, 0, &error),
            nullptr);
  EXPECT_EQ(error.error, EPROTO);
  EXPECT_NE(std::string(error.message).find(std::to_string(kDeviceAbi + 1)),
            std::string::npos);
  EXPECT_EQ(heddle_sim_open("rtl", kDeviceAbi, contract::kContractHash ^ 1,
                            nullptr, 0, &error),
            nullptr);
  EXPECT_EQ(error.error, EPROTO);
  EXPECT_EQ(heddle_sim_open("hard", kDeviceAbi, contract::kContractHash,
                            nullptr, 0, &error),
            nullptr);
  EXPECT_EQ(error.error, EINVAL);
  const HeddleSimOption option{.name = "wire", .value = name_.c_str()};
  const std::unique_ptr<Device> device(heddle_sim_open(
      "rtl", kDeviceAbi, contract::kContractHash, &option, 1, &error));
  ASSERT_NE(device, nullptr) << error.message;
  EXPECT_EQ(device->name(), "rtl0");
  EXPECT_EQ(device->ReadRegister32(contract::kBar0MagicOffset),
            contract::kBar0MagicReset);
  EXPECT_EQ(device->interrupt_fd(1000), -1);
}

TEST_F(RtlDeviceTest, IdentityIsThatOfTheDevice) {
  HeddleSimError error{};
  for (const char* kind : {"rtl", "soft"}) {
    // Registers that do not change: up to the limits, and the counts.
    std::array<uint64_t, 8> known{};
    ASSERT_EQ(heddle_sim_identity(kind, kDeviceAbi, contract::kContractHash,
                                  known.data(), known.size(), &error),
              0)
        << error.message;
    const HeddleSimOption option{.name = "wire", .value = name_.c_str()};
    const std::unique_ptr<Device> device(heddle_sim_open(
        kind, kDeviceAbi, contract::kContractHash, &option, 1, &error));
    ASSERT_NE(device, nullptr) << error.message;
    for (const uint32_t word : {0U, 1U, 2U, 3U, 6U, 7U}) {
      EXPECT_EQ(known[word], device->ReadRegister64(word * 8)) << kind << word;
    }
  }
  uint64_t unknown = 0;
  EXPECT_EQ(heddle_sim_identity("hard", kDeviceAbi, contract::kContractHash,
                                &unknown, 1, &error),
            EINVAL);
  EXPECT_EQ(heddle_sim_identity("rtl", kDeviceAbi + 1, contract::kContractHash,
                                &unknown, 1, &error),
            EPROTO);
}

}  // namespace
}  // namespace heddle::sim
