// SPDX-License-Identifier: Apache-2.0
// The user's settings: the environment variables FI_HEDDLE_*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::core {

// The name of a wire that is UDP sockets; any other is a one-machine wire.
inline constexpr std::string_view kUdpWire = "udp";

// What the virtual wire does to frames of one direction.
struct FaultSettings {
  double loss = 0;  // Probabilities per frame.
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;
  double bad_fcs = 0;
  double ecn = 0;
  uint64_t delay_ns = 0;
  uint64_t jitter_ns = 0;
  double rate_gbps = 0;  // 0: no limit.
  uint64_t queue_bytes = 262'144;
  uint64_t ecn_bytes = 0;  // 0: none.
  bool trim = false;       // What finds no room is trimmed, not lost.
};

// Values as used; what each means, its range and default stand in the table
// of settings.cc, which `fi_info -e` shows.
struct Settings {
  // False when a variable had a bad value, which was logged: fi_getinfo then
  // fails with -FI_EINVAL rather than run with something else.
  bool valid = true;

  std::string device;           // Its kind; empty: none named.
  std::string function;         // Of kind vfio, its PCI address; empty: any.
  std::string vf_token;         // Likewise, of a virtual function; or empty.
  std::string ip;               // IPv4 or IPv6; empty: see own_addresses.h.
  std::string wire;             // Name of the one-machine wire, or "udp".
  uint16_t udp_port = 0;        // Of the wire "udp"; 0: one per endpoint.
  uint32_t payload_mtu = 4096;  // Bytes.
  // False: on the wire "udp" the payload MTU is what the interface carries.
  bool payload_mtu_named = false;
  std::string crc = "msb";  // Byte of the CRC that is first, "lsb"; or "none".
  std::string encap = "udp";  // Or "ip": UET without UDP.
  uint8_t ip_protocol = contract::kNativeIpProtocol;  // With "ip".
  uint16_t vlan = 0;  // Of frames on the one-machine wire; 0: untagged.
  // Of packets that the network trimmed; 0: none are.
  uint8_t dscp_trimmed = 0;
  uint8_t dscp_trimmed_lasthop = 0;
  std::string capture;      // pcap file to write; empty: none.
  std::string trace;        // FST file to write; empty: none.
  std::string statistics;   // File that takes the device's counters at close,
                            // one JSON object per line, appended; empty: none.
  FaultSettings tx_faults;  // Of frames sent.
  FaultSettings rx_faults;  // Of frames received.
  double read_again = 0;    // Probability per packet of a peer's READ.
  std::string neighbours = "static";  // Or "resolve".
  uint64_t seed = 1;
  uint64_t rto_ns = 20'000'000;
  uint64_t dead_ns = 60'000'000'000;
  uint64_t pdc_idle_ns = 0;     // 0: as `dead_ns`, which is the longest.
  uint32_t cwnd_bytes = 0;      // Congestion window; 0: the device's own.
  uint32_t base_rtt_ns = 0;     // With a window: NSCC. 0: it is fixed.
  size_t bounce_limit = 65536;  // Bytes; larger buffers are mapped instead.
  std::string sim_path;  // Directory of libheddle-sim.so; empty: our own.
  uint32_t job_id = 0;   // 24 bits, never 0.
  std::string addressing = "absolute";  // Or "relative".
};

enum class SettingType { kString, kUnsigned, kProbability };

// One row of the table of settings.
struct SettingRow {
  const char* name;  // Without the prefix, e.g. "DEVICE".
  SettingType type;
  const char* range;          // For the user, e.g. "1 to 64".
  const char* default_value;  // For the user; "" when there is none.
  const char* help;           // One sentence.
};

// All of them, in the order in which they are listed; static.
std::span<const SettingRow> SettingRows() noexcept;

// Tells the core's `fi_param_define` about every row. Call once, before the
// first fi_getparams.
void DefineSettings() noexcept;

// The settings of this process, read at the first call with secure_getenv.
// Thread-safe.
const Settings& GetSettings();

// Reads the settings anew, for `GetSettings` and tests. `environment` is a
// null-terminated array of NAME=value; `lookup` is how one value is read.
// Logs what is wrong with them.
Settings ReadSettings(const char* const* environment,
                      const char* (*lookup)(const char* name));

}  // namespace heddle::core
