// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/device/settings.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "hw/contract/gen/heddle_setting_table.h"

namespace heddle::sim::device {
namespace {

fault::FaultOptions Faults(const contract::Settings& settings,
                           const contract::LineSettings& line,
                           uint8_t trim_dscp) {
  return {.seed = settings.seed,
          .loss = line.loss,
          .duplicate = line.duplicate,
          .reorder = line.reorder,
          .corrupt = line.corrupt,
          .bad_fcs = line.bad_fcs,
          .ecn = line.ecn,
          .delay = line.delay_ns,
          .jitter = line.jitter_ns,
          .rate = line.rate_gbps,  // Bits per nanosecond.
          .queue_bytes = line.queue_bytes,
          .ecn_bytes = line.ecn_bytes,
          .trim = line.trim,
          .trim_dscp = trim_dscp,
          .ip_protocol = settings.ip_protocol};
}

// The queue before the receiver is the last hop's.
fault::LineFaults Faults(const contract::Settings& settings) {
  const uint8_t path = settings.dscp_trimmed;
  const uint8_t lasthop = settings.dscp_trimmed_lasthop;
  return {.tx = Faults(settings, settings.tx, path),
          .rx = Faults(settings, settings.rx, lasthop != 0 ? lasthop : path)};
}

// False: it is to trim, but has no queue, or trimmed packets have no DSCP.
bool CanTrim(const fault::FaultOptions& faults) {
  return !faults.trim || (faults.rate > 0 && faults.trim_dscp != 0);
}

// False, with the reason: `option` has no meaning for the device.
bool Apply(const contract::DeviceKind& kind, const HeddleSimOption& option,
           contract::Settings* settings, std::string* message) {
  const std::string name = std::string("simulator setting ") + option.name;
  const contract::SettingRow* const row = FindOption(option.name);
  if (row == nullptr) {
    *message = name + "=" + option.value +
               " is unknown; docs/settings.md lists the settings";
    return false;
  }
  if (!row->parse(option.value, settings)) {
    *message = contract::SettingRefusal(*row, name, option.value);
    return false;
  }
  if (!row->IsObeyedBy(kind) && row->text(*settings) != row->default_value) {
    *message = name + "=" + option.value + ": applies to the device " +
               row->ObeyedByText() + " only";
    return false;
  }
  return true;
}

}  // namespace

const contract::SettingRow* FindOption(const char* name) {
  const auto* const found = std::find_if(
      contract::kSettings.begin(), contract::kSettings.end(),
      [name](const contract::SettingRow& row) {
        return row.is_option() && std::string_view(row.option) == name;
      });
  return found == contract::kSettings.end() ? nullptr : found;
}

Result<DeviceOptions> ParseSettings(const contract::DeviceKind& kind,
                                    std::span<const HeddleSimOption> options,
                                    std::string* message) {
  DeviceOptions out;
  contract::Settings& settings = out.settings;
  for (const HeddleSimOption& option : options) {
    if (!Apply(kind, option, &settings, message)) {
      return Errno{EINVAL};
    }
  }
  if (!settings.ip.empty() &&
      !frame::ParseWireAddress(settings.ip, &out.wire.ip)) {
    *message = "simulator setting address=" + settings.ip + ": not an address";
    return Errno{EINVAL};
  }
  if (settings.wire != contract::Settings().wire) {
    out.wire.name = settings.wire;
  }
  if (settings.payload_mtu != 0) {
    out.wire.payload_mtu = settings.payload_mtu;
  }
  out.wire.crc = settings.crc;
  out.wire.ip_protocol = settings.ip_protocol;
  out.memory.seed = settings.seed;
  out.faults = Faults(settings);
  if (!CanTrim(out.faults.tx) || !CanTrim(out.faults.rx)) {
    *message =
        "simulator settings trim=on and rx_trim=on: need a rate and the DSCP "
        "of trimmed packets (rate_gbps, dscp_trimmed)";
    return Errno{EINVAL};
  }
  return out;
}

}  // namespace heddle::sim::device
