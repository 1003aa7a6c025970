// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <system_error>

#include "host/lib/base/core_services.h"
#include "host/lib/base/log.h"
#include "host/lib/core/address.h"
#include "host/lib/core/device_kind.h"
#include "host/lib/nic/functions.h"
#include "hw/contract/ip_protocol.h"

namespace heddle::core {
namespace {

// Help, range and default in one line.
std::string HelpText(const SettingRow& row) {
  std::string text = std::string(row.help) + ". Takes " + row.range;
  if (*row.default_value != '\0') {
    text += std::string(" (default: ") + row.default_value + ")";
  }
  return text;
}

constexpr std::string_view kPrefix = "FI_HEDDLE_";
constexpr uint32_t kMaxJobId = 0xffffff;  // 24 bits, UET 4.1.
constexpr uint8_t kMaxDscp = 63;
constexpr uint16_t kMaxVlan = 4094;  // IEEE 802.1Q keeps 4095 to itself.

// Unsigned decimal, nothing else, in [least, most].
template <typename Number>
bool ParseUnsigned(std::string_view text, uint64_t least, uint64_t most,
                   Number* value) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most) {
    return false;
  }
  *value = static_cast<Number>(number);
  return true;
}

// From 0 to `most`.
bool ParseReal(std::string_view text, double most, double* value) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || !(number >= 0) || number > most) {
    return false;
  }
  *value = number;
  return true;
}

bool ParseUnicastIp(std::string_view text, std::string* value) {
  *value = text;
  const auto address = SocketAddress::FromText(*value);
  return address && address->is_unicast();
}

bool ParseWireName(std::string_view text, std::string* value) {
  *value = text;
  return text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') ||
                  (letter >= 'A' && letter <= 'Z') ||
                  (letter >= '0' && letter <= '9') || letter == '_' ||
                  letter == '-' || letter == '.';
         });
}

bool ParseText(std::string_view text, std::string* value) {
  *value = text;
  return true;
}

// A kind of device, after vfio also a function.
bool ParseDevice(std::string_view text, Settings* settings) {
  settings->function.clear();
  const std::string_view kind = text.substr(0, text.find(':'));
  settings->device = kind;
  if (kind != kVfioKind) {
    return IsDeviceKind(text);
  }
  if (kind == text) {
    return true;
  }
  const auto name = nic::FunctionName(text.substr(kind.size() + 1));
  settings->function = name.value_or("");
  return name.has_value();
}

// 8-4-4-4-12 hexadecimal digits.
bool ParseUuid(std::string_view text, std::string* value) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  *value = text;
  return text.size() == kForm.size() &&
         std::equal(
             text.begin(), text.end(), kForm.begin(),
             [](char letter, char form) {
               return form == '-'
                          ? letter == '-'
                          : isxdigit(static_cast<unsigned char>(letter)) != 0;
             });
}

constexpr uint64_t kMaxDelayNs = 10'000'000'000;
constexpr uint64_t kMaxQueueBytes = uint64_t{1} << 32;

// Gigabits per second, or 0.
bool ParseRate(std::string_view text, double* value) {
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 1e6;
  return ParseReal(text, kMost, value) && (*value == 0 || *value >= kLeast);
}

// One member of the faults of one direction.
template <FaultSettings Settings::*kDirection, auto kMember>
bool ParseFault(std::string_view text, Settings* settings) {
  return ParseReal(text, /*most=*/1, &(settings->*kDirection.*kMember));
}
template <FaultSettings Settings::*kDirection>
bool ParseFaultRate(std::string_view text, Settings* settings) {
  return ParseRate(text, &(settings->*kDirection).rate_gbps);
}
template <FaultSettings Settings::*kDirection, auto kMember, uint64_t kMost>
bool ParseFaultNumber(std::string_view text, Settings* settings) {
  return ParseUnsigned(text, 0, kMost, &(settings->*kDirection.*kMember));
}

template <FaultSettings Settings::*kDirection>
bool ParseFaultTrim(std::string_view text, Settings* settings) {
  (settings->*kDirection).trim = text == "on";
  return text == "on" || text == "off";
}

using Parse = bool (*)(std::string_view text, Settings* settings);

// A row with how its value is read. False: not in the range.
struct Row {
  SettingRow shown;
  Parse parse;
};

constexpr std::array kRows = {
    Row{{"DEVICE", SettingType::kString,
         "rtl, soft, vfio, vfio:PCI-ADDRESS as in vfio:0000:01:00.0", "",
         "Device to use; vfio is a NIC of ours in PCI, rtl its Verilated RTL "
         "in this process, soft its fast functional model; unset: vfio where "
         "there is one that can be opened, else soft"},
        ParseDevice},
    Row{{"VF_TOKEN", SettingType::kString, "a UUID", "",
         "What the owner of the physical function has set for its virtual "
         "ones; for the device vfio"},
        [](std::string_view text, Settings* settings) {
          return ParseUuid(text, &settings->vf_token);
        }},
    Row{{"IP", SettingType::kString, "a unicast IPv4 or IPv6 address", "",
         "Own address on the wire; unset, or on the one-machine wire an "
         "address of this machine: that of the first interface that is up, "
         "else the loopback's"},
        [](std::string_view text, Settings* settings) {
          return ParseUnicastIp(text, &settings->ip);
        }},
    Row{{"WIRE", SettingType::kString,
         "udp, or up to 64 letters, digits, '.', '-', '_'", "default",
         "Name of the virtual wire between processes of one machine; udp: UDP "
         "sockets, also between machines, for the device soft"},
        [](std::string_view text, Settings* settings) {
          return ParseWireName(text, &settings->wire);
        }},
    Row{{"UDP_PORT", SettingType::kUnsigned, "0 to 65535", "0",
         "On the wire udp, send everything to this port and bind it: one "
         "process for each address; 0: a port for each endpoint"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 0, UINT16_MAX, &settings->udp_port);
        }},
    Row{{"PAYLOAD_MTU", SettingType::kUnsigned, "1024, 2048, 4096, 8192", "",
         "Payload bytes per packet, equal on one wire; unset: 4096, on the "
         "wire udp what the interface carries"},
        [](std::string_view text, Settings* settings) {
          settings->payload_mtu_named = true;
          return ParseUnsigned(text, 1024, 8192, &settings->payload_mtu) &&
                 (settings->payload_mtu & (settings->payload_mtu - 1)) == 0;
        }},
    Row{{"CRC", SettingType::kString, "msb, lsb, none", "msb",
         "End-to-end CRC of frames, equal on one wire: its byte that is sent "
         "first, the most or the least significant; or no CRC"},
        [](std::string_view text, Settings* settings) {
          settings->crc = text;
          return text == "msb" || text == "lsb" || text == "none";
        }},
    Row{{"ENCAP", SettingType::kString, "udp, ip", "udp",
         "Encapsulation of UET, equal at both ends: over UDP, or as native IP, "
         "with the entropy header in place of UDP; not on the wire udp"},
        [](std::string_view text, Settings* settings) {
          settings->encap = text;
          return text == "udp" || text == "ip";
        }},
    Row{{"IP_PROTOCOL", SettingType::kUnsigned, "2 to 255, but not 6, 17 or 58",
         "253", "Protocol number of native IP, equal on one wire"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 0, UINT8_MAX, &settings->ip_protocol) &&
                 contract::IsNativeIpProtocol(settings->ip_protocol);
        }},
    Row{{"VLAN", SettingType::kUnsigned, "1 to 4094", "",
         "VLAN on the virtual wire: frames sent have its tag, received ones of "
         "another or none are dropped; unset: no tag"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 1, kMaxVlan, &settings->vlan);
        }},
    Row{{"DSCP_TRIMMED", SettingType::kUnsigned, "0 to 63", "0",
         "DSCP of packets that the network trimmed, which are NACKed for a "
         "fast retransmission; 0: the network trims none"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 0, kMaxDscp, &settings->dscp_trimmed);
        }},
    Row{{"DSCP_TRIMMED_LASTHOP", SettingType::kUnsigned, "0 to 63", "0",
         "The same, of packets trimmed by the switch before their receiver; "
         "FI_HEDDLE_DSCP_TRIMMED takes precedence"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 0, kMaxDscp,
                               &settings->dscp_trimmed_lasthop);
        }},
    Row{{"CAPTURE", SettingType::kString, "a file name", "",
         "Write the frames of the simulated device to this pcap file; the next "
         "device gets NAME-2 while it is written"},
        [](std::string_view text, Settings* settings) {
          return ParseText(text, &settings->capture);
        }},
    Row{{"TRACE", SettingType::kString, "a file name", "",
         "Write a waveform of the simulated device to this FST file"},
        [](std::string_view text, Settings* settings) {
          return ParseText(text, &settings->trace);
        }},
    Row{{"STATISTICS", SettingType::kString, "a file name", "",
         "Append the device's counters to this file at close"},
        [](std::string_view text, Settings* settings) {
          return ParseText(text, &settings->statistics);
        }},
    Row{{"LOSS", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame sent on the virtual wire is lost"},
        ParseFault<&Settings::tx_faults, &FaultSettings::loss>},
    Row{{"DUPLICATE", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame sent on the virtual wire is doubled"},
        ParseFault<&Settings::tx_faults, &FaultSettings::duplicate>},
    Row{{"REORDER", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame sent on the virtual wire is late"},
        ParseFault<&Settings::tx_faults, &FaultSettings::reorder>},
    Row{{"CORRUPT", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame sent on the virtual wire is damaged so "
         "that only the end-to-end CRC shows it"},
        ParseFault<&Settings::tx_faults, &FaultSettings::corrupt>},
    Row{{"BAD_FCS", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame sent on the virtual wire arrives with a "
         "wrong FCS"},
        ParseFault<&Settings::tx_faults, &FaultSettings::bad_fcs>},
    Row{{"ECN", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame sent on the virtual wire gets a "
         "congestion mark"},
        ParseFault<&Settings::tx_faults, &FaultSettings::ecn>},
    Row{{"DELAY_NS", SettingType::kUnsigned, "0 to 10000000000", "0",
         "Time that each frame sent takes on the virtual wire"},
        ParseFaultNumber<&Settings::tx_faults, &FaultSettings::delay_ns,
                         kMaxDelayNs>},
    Row{{"JITTER_NS", SettingType::kUnsigned, "0 to 10000000000", "0",
         "Most that a frame sent takes longer than others, by chance; none "
         "overtakes"},
        ParseFaultNumber<&Settings::tx_faults, &FaultSettings::jitter_ns,
                         kMaxDelayNs>},
    Row{{"RATE_GBPS", SettingType::kString, "0, 0.000001 to 1000000", "0",
         "Gigabits per second of frames sent that pass, what is faster "
         "queues; 0: no limit"},
        ParseFaultRate<&Settings::tx_faults>},
    Row{{"QUEUE_BYTES", SettingType::kUnsigned, "0 to 4294967296", "262144",
         "Room for frames sent that wait for the rate; what finds none is "
         "lost"},
        ParseFaultNumber<&Settings::tx_faults, &FaultSettings::queue_bytes,
                         kMaxQueueBytes>},
    Row{{"ECN_BYTES", SettingType::kUnsigned, "0 to 4294967296", "0",
         "Frames sent that find more bytes waiting for the rate get a "
         "congestion mark; 0: none"},
        ParseFaultNumber<&Settings::tx_faults, &FaultSettings::ecn_bytes,
                         kMaxQueueBytes>},
    Row{{"TRIM", SettingType::kString, "on or off", "off",
         "Trim requests sent that find no room in the queue, in place of "
         "losing them; needs RATE_GBPS and DSCP_TRIMMED"},
        ParseFaultTrim<&Settings::tx_faults>},
    Row{{"RX_LOSS", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame received on the virtual wire is lost"},
        ParseFault<&Settings::rx_faults, &FaultSettings::loss>},
    Row{{"RX_DUPLICATE", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame received on the virtual wire is doubled"},
        ParseFault<&Settings::rx_faults, &FaultSettings::duplicate>},
    Row{{"RX_REORDER", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame received on the virtual wire is late"},
        ParseFault<&Settings::rx_faults, &FaultSettings::reorder>},
    Row{{"RX_CORRUPT", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame received on the virtual wire is damaged "
         "so that only the end-to-end CRC shows it"},
        ParseFault<&Settings::rx_faults, &FaultSettings::corrupt>},
    Row{{"RX_BAD_FCS", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame received on the virtual wire arrives "
         "with a wrong FCS"},
        ParseFault<&Settings::rx_faults, &FaultSettings::bad_fcs>},
    Row{{"RX_ECN", SettingType::kProbability, "0 to 1", "0",
         "Probability that a frame received on the virtual wire gets a "
         "congestion mark"},
        ParseFault<&Settings::rx_faults, &FaultSettings::ecn>},
    Row{{"RX_DELAY_NS", SettingType::kUnsigned, "0 to 10000000000", "0",
         "Time that each frame received takes on the virtual wire"},
        ParseFaultNumber<&Settings::rx_faults, &FaultSettings::delay_ns,
                         kMaxDelayNs>},
    Row{{"RX_JITTER_NS", SettingType::kUnsigned, "0 to 10000000000", "0",
         "Most that a frame received takes longer than others, by chance; "
         "none overtakes"},
        ParseFaultNumber<&Settings::rx_faults, &FaultSettings::jitter_ns,
                         kMaxDelayNs>},
    Row{{"RX_RATE_GBPS", SettingType::kString, "0, 0.000001 to 1000000", "0",
         "Gigabits per second of frames received that pass, what is faster "
         "queues; 0: no limit"},
        ParseFaultRate<&Settings::rx_faults>},
    Row{{"RX_QUEUE_BYTES", SettingType::kUnsigned, "0 to 4294967296", "262144",
         "Room for frames received that wait for the rate; what finds none "
         "is lost"},
        ParseFaultNumber<&Settings::rx_faults, &FaultSettings::queue_bytes,
                         kMaxQueueBytes>},
    Row{{"RX_ECN_BYTES", SettingType::kUnsigned, "0 to 4294967296", "0",
         "Frames received that find more bytes waiting for the rate get a "
         "congestion mark; 0: none"},
        ParseFaultNumber<&Settings::rx_faults, &FaultSettings::ecn_bytes,
                         kMaxQueueBytes>},
    Row{{"RX_TRIM", SettingType::kString, "on or off", "off",
         "Trim requests received that find no room in the queue, in place of "
         "losing them, as the last hop; needs RX_RATE_GBPS and DSCP_TRIMMED "
         "or DSCP_TRIMMED_LASTHOP"},
        ParseFaultTrim<&Settings::rx_faults>},
    Row{{"NEIGHBOURS", SettingType::kString, "static or resolve", "static",
         "Find the next hop of a peer by ARP and Neighbor Discovery, or have "
         "one for all, as a virtual wire allows"},
        [](std::string_view text, Settings* settings) {
          return ParseText(text, &settings->neighbours) &&
                 (text == "static" || text == "resolve");
        }},
    Row{{"SEED", SettingType::kUnsigned, "0 to 18446744073709551615", "1",
         "Seed of faults and memory order of the simulation; each direction of "
         "each port derives a seed of its own from it"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 0, UINT64_MAX, &settings->seed);
        }},
    Row{{"READ_AGAIN", SettingType::kProbability, "0 to 1", "0",
         "Probability that the device soft sends surplus answers to a packet "
         "of a peer's READ, or the data of the packet before it: an incorrect "
         "target, to test initiators"},
        [](std::string_view text, Settings* settings) {
          return ParseReal(text, /*most=*/1, &settings->read_again);
        }},
    Row{{"RTO_NS", SettingType::kUnsigned, "1000 to 10000000000", "20000000",
         "First retransmission time, nanoseconds"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 1'000, 10'000'000'000, &settings->rto_ns);
        }},
    Row{{"DEAD_NS", SettingType::kUnsigned, "1000000 to 10000000000000",
         "60000000000", "A peer silent for so long is dead, nanoseconds"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 1'000'000, 10'000'000'000'000,
                               &settings->dead_ns);
        }},
    Row{{"PDC_IDLE_NS", SettingType::kUnsigned, "0 to 10000000000000", "0",
         "Connections idle for so long close, DEAD_NS at most, nanoseconds; "
         "0: DEAD_NS"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 0, 10'000'000'000'000,
                               &settings->pdc_idle_ns);
        }},
    Row{{"CWND_BYTES", SettingType::kUnsigned, "0 to 16777215", "0",
         "Congestion window of each connection; 0: none, or what the wire udp "
         "comes with"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 0, 16'777'215, &settings->cwnd_bytes);
        }},
    Row{{"BASE_RTT_NS", SettingType::kUnsigned, "0 to 16777215", "0",
         "Round trip of the empty network, nanoseconds: a congestion window "
         "follows delays and marks (NSCC); 0: it is fixed"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 0, 16'777'215, &settings->base_rtt_ns);
        }},
    Row{{"BOUNCE_LIMIT", SettingType::kUnsigned, "0 to 16777216", "65536",
         "Unregistered buffers up to so many bytes are copied, larger ones "
         "mapped for the operation"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 0, 16'777'216, &settings->bounce_limit);
        }},
    Row{{"SIM_PATH", SettingType::kString, "a directory", "",
         "Directory of libheddle-sim.so; unset: beside this library"},
        [](std::string_view text, Settings* settings) {
          return ParseText(text, &settings->sim_path);
        }},
    Row{{"JOB_ID", SettingType::kUnsigned, "1 to 16777215", "",
         "UET JobID; unset: derived from the user id"},
        [](std::string_view text, Settings* settings) {
          return ParseUnsigned(text, 1, kMaxJobId, &settings->job_id);
        }},
    Row{{"ADDRESSING", SettingType::kString, "absolute, relative", "absolute",
         "Whether endpoints are named in the address or in their job (rel=1), "
         "equal at all peers: jobs may use the same ports when relative"},
        [](std::string_view text, Settings* settings) {
          settings->addressing = text;
          return text == "absolute" || text == "relative";
        }},
};

constexpr auto kShownRows = [] {
  std::array<SettingRow, kRows.size()> shown = {};
  for (size_t index = 0; index < kRows.size(); ++index) {
    shown[index] = kRows[index].shown;
  }
  return shown;
}();

bool IsKnown(std::string_view name) {
  return std::any_of(kRows.begin(), kRows.end(),
                     [name](const Row& row) { return name == row.shown.name; });
}

void WarnOfUnknownNames(const char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    std::string_view name = *environment;
    name = name.substr(0, name.find('='));
    if (name.substr(0, kPrefix.size()) == kPrefix &&
        !IsKnown(name.substr(kPrefix.size()))) {
      base::Log(base::LogLevel::kWarn, base::LogSubsystem::kCore,
                "%s is not a setting of this provider and has no effect; "
                "`fi_info -g FI_HEDDLE` lists those there are",
                std::string(name).c_str());
    }
  }
}

// Separates the users of one machine: never 0, distinct for user ids below
// 2^24 - 1.
uint32_t DefaultJobId() {
  return getuid() % kMaxJobId + 1;
}

}  // namespace

std::span<const SettingRow> SettingRows() noexcept {
  return kShownRows;
}

void DefineSettings() noexcept {
  for (const SettingRow& row : kShownRows) {
    try {
      base::Core().define_parameter(
          {.name = row.name,
           .number = row.type == SettingType::kUnsigned,
           .help = HelpText(row).c_str()});
    } catch (const std::bad_alloc&) {
      base::Log(base::LogLevel::kWarn, base::LogSubsystem::kCore,
                "no memory to list the setting %s", row.name);
    }
  }
}

Settings ReadSettings(const char* const* environment,
                      const char* (*lookup)(const char* name)) {
  Settings settings;
  settings.wire = "default";
  settings.job_id = DefaultJobId();
  for (const Row& row : kRows) {
    const std::string name = std::string(kPrefix) + row.shown.name;
    const char* text = lookup(name.c_str());
    if (text == nullptr || *text == '\0') {
      continue;
    }
    if (!row.parse(text, &settings)) {
      settings.valid = false;
      base::Log(base::LogLevel::kWarn, base::LogSubsystem::kCore,
                "%s=%s is not accepted; it takes %s. Until it is corrected or "
                "unset, this provider offers nothing",
                name.c_str(), text, row.shown.range);
    }
  }
  WarnOfUnknownNames(environment);
  return settings;
}

const Settings& GetSettings() {
  // Never destroyed: threads of the application may still use it at exit.
  static const Settings* const settings =
      new Settings(ReadSettings(environ, [](const char* name) -> const char* {
        return secure_getenv(name);
      }));
  return *settings;
}

}  // namespace heddle::core
