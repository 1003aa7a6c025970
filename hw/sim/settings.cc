// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/settings.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "hw/sim/clock.h"
#include "hw/sim/ip_protocol.h"

namespace heddle::sim {
namespace {

constexpr uint64_t kMinTimeNs = 1;               // Rounded up to a tick.
constexpr uint64_t kMaxTimeNs = 86400000000000;  // One day.
constexpr uint16_t kMaxVlan = 4094;
constexpr uint8_t kMaxDscp = 63;
constexpr uint32_t kMaxWindowBytes = 16777215;
constexpr uint32_t kMaxRoundTripNs = 16777215;

template <typename Number>
bool ParseNumber(std::string_view text, Number low, Number high,
                 Number* value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() &&
         *value >= low && *value <= high;
}

bool ParseMtu(std::string_view text, uint32_t* mtu) {
  constexpr std::array<uint32_t, 4> kMtus = {1024, 2048, 4096, 8192};
  return ParseNumber<uint32_t>(text, kMtus.front(), kMtus.back(), mtu) &&
         std::find(kMtus.begin(), kMtus.end(), *mtu) != kMtus.end();
}

// By the byte that is sent first.
bool ParseCrc(std::string_view text, contract::CrcOrder* crc) {
  using contract::CrcOrder;
  *crc = text == "msb"   ? CrcOrder::kMsbFirst
         : text == "lsb" ? CrcOrder::kLsbFirst
                         : CrcOrder::kNone;
  return *crc != CrcOrder::kNone || text == "none";
}

// Null for the name of another setting.
double* Probability(std::string_view name, FaultOptions& faults) {
  return name == "loss"        ? &faults.loss
         : name == "duplicate" ? &faults.duplicate
         : name == "reorder"   ? &faults.reorder
         : name == "corrupt"   ? &faults.corrupt
         : name == "bad_fcs"   ? &faults.bad_fcs
         : name == "ecn"       ? &faults.ecn
                               : nullptr;
}

uint64_t* DelayNs(std::string_view name, FaultOptions& faults) {
  return name == "delay_ns"    ? &faults.delay
         : name == "jitter_ns" ? &faults.jitter
                               : nullptr;
}

uint64_t* QueueBytes(std::string_view name, FaultOptions& faults) {
  return name == "queue_bytes" ? &faults.queue_bytes
         : name == "ecn_bytes" ? &faults.ecn_bytes
                               : nullptr;
}

// Of one direction. Null if the setting was understood, "" if it is another
// one, else what is allowed.
const char* ApplyFault(std::string_view name, std::string_view value,
                       FaultOptions& faults) {
  constexpr uint64_t kMaxDelayNs = 10 * kNsPerSecond;
  constexpr uint64_t kMaxBytes = uint64_t{1} << 32;
  constexpr double kMinGbps = 1e-6;
  constexpr double kMaxGbps = 1e6;
  if (double* const probability = Probability(name, faults)) {
    return ParseNumber(value, 0.0, 1.0, probability) ? nullptr
                                                     : "a number from 0 to 1";
  }
  if (uint64_t* const time = DelayNs(name, faults)) {
    return ParseNumber<uint64_t>(value, 0, kMaxDelayNs, time)
               ? nullptr
               : "nanoseconds up to ten seconds";
  }
  if (uint64_t* const bytes = QueueBytes(name, faults)) {
    return ParseNumber<uint64_t>(value, 0, kMaxBytes, bytes)
               ? nullptr
               : "bytes up to 2^32";
  }
  if (name == "rate_gbps") {
    const bool good = ParseNumber(value, 0.0, kMaxGbps, &faults.rate) &&
                      (faults.rate == 0 || faults.rate >= kMinGbps);
    return good ? nullptr : "0 or gigabits per second from 1e-6 to 1e6";
  }
  if (name == "trim") {
    faults.trim = value == "on";
    return faults.trim || value == "off" ? nullptr : "on or off";
  }
  return "";
}

// The same of both directions.
const char* ApplyFault(std::string_view name, std::string_view value,
                       LineFaults& faults) {
  constexpr std::string_view kReceived = "rx_";
  return name.substr(0, kReceived.size()) == kReceived
             ? ApplyFault(name.substr(kReceived.size()), value, faults.rx)
             : ApplyFault(name, value, faults.tx);
}

// As `ApplyFault`, of the transport's times and windows.
const char* ApplyTime(std::string_view name, const std::string& value,
                      DeviceOptions& out) {
  if (name == "rto_ns" || name == "dead_ns") {
    uint64_t& target = name == "rto_ns" ? out.rto_ns : out.dead_ns;
    return ParseNumber(value, kMinTimeNs, kMaxTimeNs, &target)
               ? nullptr
               : "nanoseconds from 1 to one day";
  }
  if (name == "pdc_idle_ns") {
    return ParseNumber(value, uint64_t{0}, kMaxTimeNs, &out.pdc_idle_ns)
               ? nullptr
               : "nanoseconds up to one day, 0 for dead_ns";
  }
  if (name == "cwnd_bytes") {
    return ParseNumber(value, uint32_t{0}, kMaxWindowBytes, &out.cwnd_bytes)
               ? nullptr
               : "bytes up to 16777215, 0 for none";
  }
  if (name == "base_rtt_ns") {
    return ParseNumber(value, uint32_t{0}, kMaxRoundTripNs, &out.base_rtt_ns)
               ? nullptr
               : "nanoseconds up to 16777215, 0 for a fixed window";
  }
  return "";
}

// As `ApplyFault`, of who the device is on which wire.
const char* ApplyWire(std::string_view name, const std::string& value,
                      DeviceOptions& out) {
  if (name == "address") {
    return ParseWireAddress(value, &out.wire.ip)
               ? nullptr
               : "an IPv4 or IPv6 address, not the unspecified one";
  }
  if (name == "wire") {
    const bool good = !value.empty() && value.size() < kWireNameBytes;
    out.udp = value == "udp";
    out.wire.name = value == "default" ? std::string() : value;
    return good ? nullptr : "1 to 64 characters";
  }
  if (name == "udp_port") {
    return ParseNumber<uint16_t>(value, 0, UINT16_MAX, &out.udp_port)
               ? nullptr
               : "a port number, 0 for one of each endpoint";
  }
  if (name == "payload_mtu") {
    out.payload_mtu_named = true;
    return ParseMtu(value, &out.wire.payload_mtu) ? nullptr
                                                  : "1024, 2048, 4096 or 8192";
  }
  if (name == "crc") {
    return ParseCrc(value, &out.wire.crc) ? nullptr : "msb, lsb or none";
  }
  if (name == "encap") {
    out.native_ip = value == "ip";
    return value == "udp" || value == "ip" ? nullptr : "udp or ip";
  }
  if (name == "ip_protocol") {
    return ParseIpProtocol(value, &out.wire.ip_protocol) ? nullptr
                                                         : kIpProtocolRange;
  }
  if (name == "vlan") {
    return ParseNumber<uint16_t>(value, 1, kMaxVlan, &out.vlan)
               ? nullptr
               : "a VLAN identifier, 1 to 4094";
  }
  if (name == "dscp_trimmed" || name == "dscp_trimmed_lasthop") {
    uint8_t& dscp =
        name == "dscp_trimmed" ? out.dscp_trimmed : out.dscp_trimmed_lasthop;
    return ParseNumber<uint8_t>(value, 0, kMaxDscp, &dscp)
               ? nullptr
               : "a DSCP, 1 to 63, or 0 for none";
  }
  return "";
}

// Null if the setting was understood, else what is allowed.
const char* Apply(std::string_view name, const std::string& value,
                  DeviceOptions& out) {
  if (const char* const allowed = ApplyWire(name, value, out);
      allowed == nullptr || *allowed != '\0') {
    return allowed;
  }
  if (const char* const allowed = ApplyFault(name, value, out.faults);
      allowed == nullptr || *allowed != '\0') {
    return allowed;
  }
  if (name == "seed") {
    uint64_t seed = 0;
    const bool good = ParseNumber<uint64_t>(value, 0, UINT64_MAX, &seed);
    out.memory.seed = seed;
    out.faults.tx.seed = seed;
    out.faults.rx.seed = seed;
    return good ? nullptr : "a number below 2^64";
  }
  if (const char* const allowed = ApplyTime(name, value, out);
      allowed == nullptr || *allowed != '\0') {
    return allowed;
  }
  if (name == "read_again") {
    return ParseNumber(value, 0.0, 1.0, &out.read_again)
               ? nullptr
               : "a number from 0 to 1";
  }
  if (name == "neighbours") {
    out.resolve_neighbours = value == "resolve";
    return value == "static" || value == "resolve" ? nullptr
                                                   : "static or resolve";
  }
  std::string* const file = name == "capture"      ? &out.capture
                            : name == "trace"      ? &out.trace
                            : name == "statistics" ? &out.statistics
                                                   : nullptr;
  if (file == nullptr) {
    return "a known name";
  }
  *file = value;
#if !HEDDLE_SIM_TRACE
  if (name == "trace" && !value.empty()) {
    return "empty: this build of the simulator records no waveforms";
  }
#endif
  return nullptr;
}

// The queue before the receiver is the last hop's. False: a line is to trim,
// but has no queue, or what is left no DSCP.
bool SetTrims(DeviceOptions& out) {
  out.faults.tx.trim_dscp = out.dscp_trimmed;
  out.faults.rx.trim_dscp = out.dscp_trimmed_lasthop != 0
                                ? out.dscp_trimmed_lasthop
                                : out.dscp_trimmed;
  const auto good = [](const FaultOptions& faults) {
    return !faults.trim || (faults.rate > 0 && faults.trim_dscp != 0);
  };
  return good(out.faults.tx) && good(out.faults.rx);
}

}  // namespace

Result<DeviceOptions> ParseSettings(const HeddleSimOption* options,
                                    size_t count, std::string* message) {
  DeviceOptions out;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = options[i].name;
    const std::string value = options[i].value;
    const char* const allowed = Apply(name, value, out);
    if (allowed != nullptr) {
      *message = "simulator setting ";
      message->append(name).append("=").append(value);
      message->append(": must be ").append(allowed);
      return Errno{EINVAL};
    }
  }
  out.faults.tx.ip_protocol = out.wire.ip_protocol;
  out.faults.rx.ip_protocol = out.wire.ip_protocol;
  if (!SetTrims(out)) {
    *message =
        "simulator settings trim=on and rx_trim=on: need a rate and the DSCP "
        "of trimmed packets (rate_gbps, dscp_trimmed)";
    return Errno{EINVAL};
  }
  return out;
}

}  // namespace heddle::sim
