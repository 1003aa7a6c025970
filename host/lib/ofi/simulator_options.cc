// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/simulator_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <utility>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::ofi {
namespace {

// Shortest text that gives the same number again.
template <typename Number>
std::string Text(Number value) {
  std::array<char, 32> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

// A simulator without a fault is good as long as nobody asks for it.
void AddFaults(const std::string& prefix, const core::FaultSettings& faults,
               SimulatorOptions* options) {
  constexpr core::FaultSettings kNone;
  const auto add = [&](const char* name, auto core::FaultSettings::*member) {
    if (faults.*member != kNone.*member) {
      options->settings.emplace_back(prefix + name, Text(faults.*member));
    }
  };
  add("loss", &core::FaultSettings::loss);
  add("duplicate", &core::FaultSettings::duplicate);
  add("reorder", &core::FaultSettings::reorder);
  add("corrupt", &core::FaultSettings::corrupt);
  add("bad_fcs", &core::FaultSettings::bad_fcs);
  add("ecn", &core::FaultSettings::ecn);
  add("delay_ns", &core::FaultSettings::delay_ns);
  add("jitter_ns", &core::FaultSettings::jitter_ns);
  add("rate_gbps", &core::FaultSettings::rate_gbps);
  add("queue_bytes", &core::FaultSettings::queue_bytes);
  add("ecn_bytes", &core::FaultSettings::ecn_bytes);
  if (faults.trim) {
    options->settings.emplace_back(prefix + "trim", "on");
  }
}

}  // namespace

SimulatorOptions MakeSimulatorOptions(const core::Settings& settings,
                                      const core::SocketAddress& address) {
  SimulatorOptions options;
  options.path = settings.sim_path;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) {
      options.settings.emplace_back(name, std::move(value));
    }
  };
  add("address", address.IpText());
  add("wire", settings.wire);
  if (settings.payload_mtu_named) {
    add("payload_mtu", std::to_string(settings.payload_mtu));
  }
  if (settings.udp_port != 0) {
    add("udp_port", std::to_string(settings.udp_port));
  }
  if (settings.crc != "msb") {
    add("crc", settings.crc);
  }
  if (settings.encap != "udp") {
    add("encap", settings.encap);
  }
  if (settings.ip_protocol != contract::kNativeIpProtocol) {
    add("ip_protocol", std::to_string(settings.ip_protocol));
  }
  if (settings.vlan != 0) {
    add("vlan", std::to_string(settings.vlan));
  }
  if (settings.dscp_trimmed != 0) {
    add("dscp_trimmed", std::to_string(settings.dscp_trimmed));
  }
  if (settings.dscp_trimmed_lasthop != 0) {
    add("dscp_trimmed_lasthop", std::to_string(settings.dscp_trimmed_lasthop));
  }
  add("capture", settings.capture);
  add("trace", settings.trace);
  add("statistics", settings.statistics);
  AddFaults("", settings.tx_faults, &options);
  AddFaults("rx_", settings.rx_faults, &options);
  if (settings.read_again != 0) {
    add("read_again", Text(settings.read_again));
  }
  if (settings.neighbours != "static") {
    add("neighbours", settings.neighbours);
  }
  add("seed", std::to_string(settings.seed));
  add("rto_ns", std::to_string(settings.rto_ns));
  add("dead_ns", std::to_string(settings.dead_ns));
  if (settings.pdc_idle_ns != 0) {
    add("pdc_idle_ns", std::to_string(settings.pdc_idle_ns));
  }
  if (settings.cwnd_bytes != 0) {
    add("cwnd_bytes", std::to_string(settings.cwnd_bytes));
    add("base_rtt_ns", std::to_string(settings.base_rtt_ns));
  }
  return options;
}

std::string SetForSimulatorsOnly(const core::Settings& settings) {
  const auto defaults = MakeSimulatorOptions({}, {}).settings;
  std::string names;
  for (const auto& setting : MakeSimulatorOptions(settings, {}).settings) {
    const auto& name = setting.first;
    if (name == "rto_ns" || name == "dead_ns" ||
        std::find(defaults.begin(), defaults.end(), setting) !=
            defaults.end()) {
      continue;
    }
    names += names.empty() ? "FI_HEDDLE_" : ", FI_HEDDLE_";
    std::transform(
        name.begin(), name.end(), std::back_inserter(names),
        [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  }
  return names;
}

}  // namespace heddle::ofi
