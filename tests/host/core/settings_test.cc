// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "host/lib/base/core_services.h"

namespace heddle::core {
namespace {

// What the process "has" in its environment.
std::map<std::string, std::string>& Variables() {
  static auto* const variables = new std::map<std::string, std::string>;
  return *variables;
}

const char* LookUp(const char* name) {
  const auto found = Variables().find(name);
  return found == Variables().end() ? nullptr : found->second.c_str();
}

struct Reading {
  Settings settings;
  std::string log;
};

std::string& LogText() {
  static auto* const text = new std::string;
  return *text;
}

constexpr base::CoreServices kRecorder = {
    .log_enabled =
        [](base::LogLevel /*level*/,
           base::LogSubsystem /*subsystem*/) noexcept { return true; },
    .log =
        [](base::LogLevel level, const base::LogPlace& /*place*/,
           const char* line) noexcept {
          LogText() += level == base::LogLevel::kWarn ? "<warn> " : "<other> ";
          LogText() += line;
        },
    .define_parameter = [](const base::Parameter& /*parameter*/) noexcept {},
};

Reading Read(const std::map<std::string, std::string>& variables) {
  Variables() = variables;
  std::vector<std::string> lines;
  lines.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    lines.emplace_back(name).append("=").append(value);
  }
  std::vector<const char*> environment;
  environment.reserve(lines.size() + 1);
  for (const std::string& line : lines) {
    environment.push_back(line.c_str());
  }
  environment.push_back(nullptr);
  base::UseCore(kRecorder);
  LogText().clear();
  Settings settings = ReadSettings(environment.data(), LookUp);
  return {std::move(settings), LogText()};
}

// One value of each type and more, none of them the default.
const std::map<std::string, std::string> kAllValues = {
    {"FI_HEDDLE_DEVICE", "rtl"},
    {"FI_HEDDLE_IP", "10.0.0.1"},
    {"FI_HEDDLE_WIRE", "lab-1.a_b"},
    {"FI_HEDDLE_PAYLOAD_MTU", "8192"},
    {"FI_HEDDLE_CAPTURE", "/tmp/a.pcap"},
    {"FI_HEDDLE_TRACE", "a.fst"},
    {"FI_HEDDLE_STATISTICS", "s.json"},
    {"FI_HEDDLE_LOSS", "0.01"},
    {"FI_HEDDLE_DUPLICATE", "1"},
    {"FI_HEDDLE_REORDER", "1e-3"},
    {"FI_HEDDLE_CORRUPT", "0.001"},
    {"FI_HEDDLE_BAD_FCS", "0.002"},
    {"FI_HEDDLE_UDP_PORT", "4793"},
    {"FI_HEDDLE_CRC", "lsb"},
    {"FI_HEDDLE_ENCAP", "ip"},
    {"FI_HEDDLE_IP_PROTOCOL", "255"},
    {"FI_HEDDLE_VLAN", "4094"},
    {"FI_HEDDLE_TRIM", "on"},
    {"FI_HEDDLE_RX_TRIM", "off"},
    {"FI_HEDDLE_DSCP_TRIMMED", "63"},
    {"FI_HEDDLE_DSCP_TRIMMED_LASTHOP", "1"},
    {"FI_HEDDLE_ECN", "0.003"},
    {"FI_HEDDLE_DELAY_NS", "10000000000"},
    {"FI_HEDDLE_JITTER_NS", "5"},
    {"FI_HEDDLE_RATE_GBPS", "0.5"},
    {"FI_HEDDLE_QUEUE_BYTES", "4294967296"},
    {"FI_HEDDLE_ECN_BYTES", "1000"},
    {"FI_HEDDLE_RX_LOSS", "0.25"},
    {"FI_HEDDLE_RX_DELAY_NS", "7"},
    {"FI_HEDDLE_RX_RATE_GBPS", "1e6"},
    {"FI_HEDDLE_RX_ECN_BYTES", "9"},
    {"FI_HEDDLE_READ_AGAIN", "0.125"},
    {"FI_HEDDLE_NEIGHBOURS", "resolve"},
    {"FI_HEDDLE_SEED", "18446744073709551615"},
    {"FI_HEDDLE_RTO_NS", "1000"},
    {"FI_HEDDLE_DEAD_NS", "1000000"},
    {"FI_HEDDLE_PDC_IDLE_NS", "7"},
    {"FI_HEDDLE_CWND_BYTES", "16777215"},
    {"FI_HEDDLE_BASE_RTT_NS", "12000"},
    {"FI_HEDDLE_BOUNCE_LIMIT", "0"},
    {"FI_HEDDLE_SIM_PATH", "/opt"},
    {"FI_HEDDLE_JOB_ID", "16777215"},
    {"FI_HEDDLE_ADDRESSING", "relative"}};

TEST(Settings, DefaultsAreThoseOfTheTable) {
  const auto [settings, log] = Read({{"PATH", "/bin"}});
  EXPECT_TRUE(settings.valid);
  EXPECT_EQ(log, "");
  EXPECT_EQ(settings.device, contract::DeviceName());
  EXPECT_EQ(settings.ip, "");
  EXPECT_EQ(settings.wire, "default");
  EXPECT_EQ(settings.payload_mtu, 0U);
  EXPECT_EQ(settings.payload_mtu_or_fallback(), 4096U);
  EXPECT_EQ(settings.udp_port, 0U);
  EXPECT_EQ(settings.crc, contract::CrcOrder::kMsbFirst);
  EXPECT_EQ(settings.vlan, 0U);
  EXPECT_EQ(settings.tx.loss, 0);
  EXPECT_EQ(settings.rx.loss, 0);
  EXPECT_EQ(settings.tx.queue_bytes, 262144U);
  EXPECT_EQ(settings.seed, 1U);
  EXPECT_EQ(settings.rto_ns, 20'000'000U);
  EXPECT_EQ(settings.dead_ns, 60'000'000'000U);
  EXPECT_EQ(settings.pdc_idle_ns, 0U);
  EXPECT_EQ(settings.bounce_limit, 65536U);
  EXPECT_FALSE(settings.relative());
  for (const SettingRow& row : SettingRows()) {
    EXPECT_EQ(row.text(contract::Settings()), row.default_value) << row.name;
    if (*row.default_value != '\0') {
      const auto again = Read({{row.variable(), row.default_value}});
      EXPECT_TRUE(again.settings.valid) << row.name;
      const contract::Settings& all = again.settings;
      EXPECT_EQ(all, settings) << row.name;
    }
  }
}

// A simulated device reads what the library writes.
TEST(Settings, TextOfAValueIsReadAsTheValue) {
  const auto settings = Read(kAllValues).settings;
  contract::Settings again;
  for (const SettingRow& row : SettingRows()) {
    const std::string text = row.text(settings);
    if (!text.empty()) {
      EXPECT_TRUE(row.parse(text, &again)) << row.name << '=' << text;
    }
  }
  const contract::Settings& all = settings;
  EXPECT_EQ(again, all);
}

TEST(Settings, ValuesAreTaken) {
  const auto [settings, log] = Read(kAllValues);
  EXPECT_TRUE(settings.valid) << log;
  EXPECT_EQ(log, "");
  EXPECT_EQ(settings.device.kind, "rtl");
  EXPECT_EQ(settings.ip, "10.0.0.1");
  EXPECT_EQ(settings.wire, "lab-1.a_b");
  EXPECT_EQ(settings.payload_mtu, 8192U);
  EXPECT_EQ(settings.udp_port, 4793U);
  EXPECT_EQ(settings.crc, contract::CrcOrder::kLsbFirst);
  EXPECT_EQ(settings.encap, contract::Encap::kIp);
  EXPECT_EQ(settings.ip_protocol, 255U);
  EXPECT_EQ(settings.vlan, 4094U);
  EXPECT_EQ(settings.dscp_trimmed, 63U);
  EXPECT_EQ(settings.dscp_trimmed_lasthop, 1U);
  EXPECT_TRUE(settings.tx.trim);
  EXPECT_FALSE(settings.rx.trim);
  EXPECT_EQ(settings.capture, "/tmp/a.pcap");
  EXPECT_EQ(settings.trace, "a.fst");
  EXPECT_EQ(settings.statistics, "s.json");
  EXPECT_DOUBLE_EQ(settings.tx.loss, 0.01);
  EXPECT_DOUBLE_EQ(settings.tx.duplicate, 1);
  EXPECT_DOUBLE_EQ(settings.tx.reorder, 0.001);
  EXPECT_DOUBLE_EQ(settings.tx.corrupt, 0.001);
  EXPECT_DOUBLE_EQ(settings.tx.ecn, 0.003);
  EXPECT_EQ(settings.tx.delay_ns, 10'000'000'000U);
  EXPECT_EQ(settings.tx.jitter_ns, 5U);
  EXPECT_DOUBLE_EQ(settings.tx.rate_gbps, 0.5);
  EXPECT_EQ(settings.tx.queue_bytes, 4294967296U);
  EXPECT_EQ(settings.tx.ecn_bytes, 1000U);
  EXPECT_DOUBLE_EQ(settings.rx.loss, 0.25);
  EXPECT_EQ(settings.rx.delay_ns, 7U);
  EXPECT_DOUBLE_EQ(settings.rx.rate_gbps, 1e6);
  EXPECT_EQ(settings.rx.ecn_bytes, 9U);
  EXPECT_DOUBLE_EQ(settings.read_again, 0.125);
  EXPECT_EQ(settings.neighbours, contract::Neighbours::kResolve);
  EXPECT_DOUBLE_EQ(settings.tx.bad_fcs, 0.002);
  EXPECT_EQ(settings.seed, UINT64_MAX);
  EXPECT_EQ(settings.rto_ns, 1000U);
  EXPECT_EQ(settings.dead_ns, 1'000'000U);
  EXPECT_EQ(settings.pdc_idle_ns, 7U);
  EXPECT_EQ(settings.cwnd_bytes, 16777215U);
  EXPECT_EQ(settings.base_rtt_ns, 12000U);
  EXPECT_EQ(settings.bounce_limit, 0U);
  EXPECT_EQ(settings.sim_path, "/opt");
  EXPECT_EQ(settings.job_id, 0xffffffU);
  EXPECT_TRUE(settings.relative());
}

class BadSetting
    : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadSetting, IsRefusedAndNamedWithItsValueAndRange) {
  const auto [name, value] = GetParam();
  const auto [settings, log] = Read({{name, value}});
  EXPECT_FALSE(settings.valid);
  EXPECT_NE(log.find(std::string(name) + "=" + value), std::string::npos);
  const char* range = nullptr;
  for (const SettingRow& row : SettingRows()) {
    if (row.variable() == name) {
      range = row.range;
    }
  }
  ASSERT_NE(range, nullptr);
  EXPECT_NE(log.find(std::string("it takes ") + range), std::string::npos)
      << log;
  EXPECT_NE(log.find("<warn>"), std::string::npos);
}

TEST(Settings, FunctionIsNamedByItsPciAddress) {
  const auto any = Read({{"FI_HEDDLE_DEVICE", "vfio"}}).settings;
  EXPECT_TRUE(any.valid);
  EXPECT_EQ(any.device.kind, "vfio");
  EXPECT_EQ(any.device.function, "");
  for (const char* name : {"vfio:0000:01:00.0", "vfio:01:00.0"}) {
    const auto one =
        Read({{"FI_HEDDLE_DEVICE", name},
              {"FI_HEDDLE_VF_TOKEN", "14d63f20-8445-11ea-8900-1f9ce7d5650d"}})
            .settings;
    EXPECT_TRUE(one.valid);
    EXPECT_EQ(one.device.kind, "vfio");
    EXPECT_EQ(one.device.function, "0000:01:00.0");
    EXPECT_EQ(one.vf_token, "14d63f20-8445-11ea-8900-1f9ce7d5650d");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Values, BadSetting,
    testing::Values(
        std::pair{"FI_HEDDLE_DEVICE", "hard"},
        std::pair{"FI_HEDDLE_DEVICE", "rtl:0000:01:00.0"},
        std::pair{"FI_HEDDLE_DEVICE", "vfio:"},
        std::pair{"FI_HEDDLE_DEVICE", "vfio:eth0"},
        std::pair{"FI_HEDDLE_DEVICE", ":"},
        std::pair{"FI_HEDDLE_DEVICE", "soft:eth0"},
        std::pair{"FI_HEDDLE_WIRE",
                  "a2345678901234567890123456789012345678901234567890123456789"
                  "012345"},
        std::pair{"FI_HEDDLE_PAYLOAD_MTU", "0"},
        std::pair{"FI_HEDDLE_RTO_NS", "10000000001"},
        std::pair{"FI_HEDDLE_RATE_GBPS", "1000001"},
        std::pair{"FI_HEDDLE_LOSS", "inf"},
        std::pair{"FI_HEDDLE_VF_TOKEN", "14d63f20-8445-11ea-8900"},
        std::pair{"FI_HEDDLE_VF_TOKEN", "14d63f20-8445-11ea-8900-1f9ce7d5650g"},
        std::pair{"FI_HEDDLE_IP", "localhost"},
        std::pair{"FI_HEDDLE_IP", "0.0.0.0"},
        std::pair{"FI_HEDDLE_IP", "224.0.0.1"},
        std::pair{"FI_HEDDLE_IP", "1.2.3.4 "}, std::pair{"FI_HEDDLE_IP", "::"},
        std::pair{"FI_HEDDLE_IP", "ff02::1"},
        std::pair{"FI_HEDDLE_IP", "[fd00::1]"},
        std::pair{"FI_HEDDLE_WIRE", "../etc"},
        std::pair{"FI_HEDDLE_PAYLOAD_MTU", "1500"},
        std::pair{"FI_HEDDLE_PAYLOAD_MTU", "16384"},
        std::pair{"FI_HEDDLE_LOSS", "1.5"}, std::pair{"FI_HEDDLE_LOSS", "-0.1"},
        std::pair{"FI_HEDDLE_LOSS", "nan"},
        std::pair{"FI_HEDDLE_REORDER", "1%"},
        std::pair{"FI_HEDDLE_CORRUPT", "2"},
        std::pair{"FI_HEDDLE_BAD_FCS", "x"},
        std::pair{"FI_HEDDLE_UDP_PORT", "65536"},
        std::pair{"FI_HEDDLE_CRC", "1"}, std::pair{"FI_HEDDLE_CRC", "MSB"},
        std::pair{"FI_HEDDLE_CRC", "msb first"},
        std::pair{"FI_HEDDLE_ENCAP", "IP"},
        std::pair{"FI_HEDDLE_ENCAP", "native"},
        std::pair{"FI_HEDDLE_IP_PROTOCOL", "0"},
        std::pair{"FI_HEDDLE_IP_PROTOCOL", "1"},
        std::pair{"FI_HEDDLE_IP_PROTOCOL", "6"},
        std::pair{"FI_HEDDLE_IP_PROTOCOL", "17"},
        std::pair{"FI_HEDDLE_IP_PROTOCOL", "58"},
        std::pair{"FI_HEDDLE_IP_PROTOCOL", "256"},
        std::pair{"FI_HEDDLE_VLAN", "0"}, std::pair{"FI_HEDDLE_VLAN", "4095"},
        std::pair{"FI_HEDDLE_VLAN", "lab"}, std::pair{"FI_HEDDLE_TRIM", "yes"},
        std::pair{"FI_HEDDLE_RX_TRIM", "1"},
        std::pair{"FI_HEDDLE_DSCP_TRIMMED", "64"},
        std::pair{"FI_HEDDLE_DSCP_TRIMMED", "AF41"},
        std::pair{"FI_HEDDLE_DSCP_TRIMMED_LASTHOP", "64"},
        std::pair{"FI_HEDDLE_RX_ECN", "1.01"},
        std::pair{"FI_HEDDLE_DELAY_NS", "10000000001"},
        std::pair{"FI_HEDDLE_RX_QUEUE_BYTES", "4294967297"},
        std::pair{"FI_HEDDLE_RATE_GBPS", "1e-7"},
        std::pair{"FI_HEDDLE_RATE_GBPS", "-1"},
        std::pair{"FI_HEDDLE_READ_AGAIN", "2"},
        std::pair{"FI_HEDDLE_NEIGHBOURS", "arp"},
        std::pair{"FI_HEDDLE_SEED", "18446744073709551616"},
        std::pair{"FI_HEDDLE_SEED", "-1"}, std::pair{"FI_HEDDLE_RTO_NS", "999"},
        std::pair{"FI_HEDDLE_DEAD_NS", "60s"},
        std::pair{"FI_HEDDLE_PDC_IDLE_NS", "10000000000001"},
        std::pair{"FI_HEDDLE_CWND_BYTES", "16777216"},
        std::pair{"FI_HEDDLE_BASE_RTT_NS", "12us"},
        std::pair{"FI_HEDDLE_BOUNCE_LIMIT", "16777217"},
        std::pair{"FI_HEDDLE_JOB_ID", "0"},
        std::pair{"FI_HEDDLE_JOB_ID", "16777216"},
        std::pair{"FI_HEDDLE_ADDRESSING", "rel"},
        std::pair{"FI_HEDDLE_ADDRESSING", "Absolute"}));

TEST(Settings, AddressMayBeIpv6) {
  const auto [settings, log] = Read({{"FI_HEDDLE_IP", "fd00::1"}});
  EXPECT_TRUE(settings.valid) << log;
  EXPECT_EQ(settings.ip, "fd00::1");
}

TEST(Settings, EmptyValueIsNoValue) {
  const auto [settings, log] =
      Read({{"FI_HEDDLE_SEED", ""}, {"FI_HEDDLE_IP", ""}});
  EXPECT_TRUE(settings.valid);
  EXPECT_EQ(settings.seed, 1U);
  EXPECT_EQ(log, "");
}

TEST(Settings, UnknownNameIsWarnedOfAndIgnored) {
  const auto [settings, log] = Read({{"FI_HEDDLE_DEVISE", "rtl"}});
  EXPECT_TRUE(settings.valid);
  EXPECT_NE(log.find("FI_HEDDLE_DEVISE is not a setting"), std::string::npos)
      << log;
}

TEST(Settings, DefaultJobIdFitsUetAndIsNotZero) {
  const auto [settings, log] = Read({});
  EXPECT_EQ(settings.job_id, getuid() % 0xffffff + 1);
  EXPECT_GT(settings.job_id, 0U);
  EXPECT_LE(settings.job_id, 0xffffffU);
}

using Options = std::vector<std::pair<std::string, std::string>>;

TEST(Settings, DefaultsAreLeftToTheSimulator) {
  EXPECT_EQ(SimulatorOptionsOf({}, "10.0.0.1"),
            (Options{{"address", "10.0.0.1"}}));
}

TEST(Settings, SimulatorIsGivenWhatItObeys) {
  const auto settings = Read({{"FI_HEDDLE_DEVICE", "soft"},
                              {"FI_HEDDLE_IP", "10.0.0.9"},
                              {"FI_HEDDLE_RX_LOSS", "0.5"},
                              {"FI_HEDDLE_TRIM", "on"},
                              {"FI_HEDDLE_PAYLOAD_MTU", "4096"},
                              {"FI_HEDDLE_RTO_NS", "20000000"},
                              {"FI_HEDDLE_DEAD_NS", "5000000000"},
                              {"FI_HEDDLE_BOUNCE_LIMIT", "0"},
                              {"FI_HEDDLE_JOB_ID", "7"}})
                            .settings;
  // The address is the one that the caller chose; a payload MTU that is set
  // also binds the wire udp, whatever its value.
  EXPECT_EQ(SimulatorOptionsOf(settings, "10.0.0.1"),
            (Options{{"address", "10.0.0.1"},
                     {"payload_mtu", "4096"},
                     {"trim", "on"},
                     {"rx_loss", "0.5"},
                     {"dead_ns", "5000000000"}}));
}

TEST(Settings, WhatAFunctionDoesNotObeyIsNamed) {
  Settings settings;
  EXPECT_EQ(SetForSimulatorsOnly(settings), "");
  // A function or the library obeys these.
  settings.ip = "10.0.0.1";
  settings.rto_ns = 5'000'000;
  settings.dead_ns = 5'000'000'000;
  settings.bounce_limit = 0;
  settings.job_id = 7;
  settings.addressing = contract::Addressing::kRelative;
  EXPECT_EQ(SetForSimulatorsOnly(settings), "");
  settings.rx.loss = 0.5;
  settings.rx.trim = true;
  settings.pdc_idle_ns = 1'000'000;
  settings.crc = contract::CrcOrder::kNone;
  settings.encap = contract::Encap::kIp;
  settings.ip_protocol = 99;
  settings.vlan = 7;
  settings.dscp_trimmed = 3;
  settings.dscp_trimmed_lasthop = 4;
  settings.read_again = 0.5;
  settings.base_rtt_ns = 1;
  EXPECT_EQ(SetForSimulatorsOnly(settings),
            "FI_HEDDLE_CRC, FI_HEDDLE_ENCAP, FI_HEDDLE_IP_PROTOCOL, "
            "FI_HEDDLE_VLAN, FI_HEDDLE_DSCP_TRIMMED, "
            "FI_HEDDLE_DSCP_TRIMMED_LASTHOP, FI_HEDDLE_RX_LOSS, "
            "FI_HEDDLE_RX_TRIM, "
            "FI_HEDDLE_READ_AGAIN, FI_HEDDLE_PDC_IDLE_NS, "
            "FI_HEDDLE_BASE_RTT_NS");
}

// The range that a user reads is the one that is checked.
TEST(Settings, NumbersAreTakenAtTheEndsOfTheirRange) {
  size_t checked = 0;
  for (const SettingRow& row : SettingRows()) {
    const std::string range = row.range;
    const size_t to = range.find(" to ");
    if (row.type != SettingType::kNumber || to == std::string::npos) {
      continue;
    }
    const std::string least = range.substr(0, to);
    const std::string most = range.substr(
        to + 4, range.find_first_not_of("0123456789", to + 4) - (to + 4));
    contract::Settings settings;
    EXPECT_TRUE(row.parse(least, &settings)) << row.name;
    EXPECT_EQ(row.text(settings), least) << row.name;
    EXPECT_TRUE(row.parse(most, &settings)) << row.name;
    EXPECT_EQ(row.text(settings), most) << row.name;
    EXPECT_FALSE(row.parse(most + "0", &settings)) << row.name;
    if (const uint64_t number = std::stoull(least); number > 0) {
      EXPECT_FALSE(row.parse(std::to_string(number - 1), &settings))
          << row.name;
    }
    if (const uint64_t number = std::stoull(most); number < UINT64_MAX) {
      EXPECT_FALSE(row.parse(std::to_string(number + 1), &settings))
          << row.name;
    }
    ++checked;
  }
  EXPECT_GT(checked, 15U);
}

// Its range is checked by a rule of its own, contract::IsNativeIpProtocol.
TEST(Settings, IpProtocolsAreThoseOfTheRange) {
  for (unsigned number = 0; number <= 300; ++number) {
    contract::Settings settings;
    const bool expected = number >= 2 && number <= 255 && number != 6 &&
                          number != 17 && number != 58;
    for (const SettingRow& row : SettingRows()) {
      if (row.variable() == "FI_HEDDLE_IP_PROTOCOL") {
        EXPECT_STREQ(row.range, "2 to 255, but not 6, 17 or 58");
        EXPECT_EQ(row.parse(std::to_string(number), &settings), expected)
            << number;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::core
