// SPDX-License-Identifier: Apache-2.0
// heddle decode: the frames of a capture as text.
#include <arpa/inet.h>
#include <pcap/pcap.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tools/heddle/command.h"
#include "tools/heddle/frame.h"

namespace heddle::tool {
namespace {

namespace text = contract::text;

struct Record {
  uint64_t number;  // From 1, as Wireshark counts.
  uint64_t seconds;
  uint32_t nanoseconds;
  Bytes frame;
  size_t wire_bytes;
};

const char* CheckName(Check check) {
  switch (check) {
    case Check::kAbsent:
      return "none";
    case Check::kGood:
      return "good";
    case Check::kBad:
      return "bad";
    case Check::kNotChecked:
      return "not checked";
  }
  return "";
}

std::string Address(int family, Bytes bytes) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  inet_ntop(family, bytes.data(), out.data(), out.size());
  return out.data();
}

// Source and destination address; empty without an IP header.
std::pair<std::string, std::string> Addresses(const Record& record,
                                              const DecodedFrame& decoded) {
  for (const Layer& layer : decoded.layers) {
    const bool v4 = layer.header == &text::kIpv4;
    if (v4 || layer.header == &text::kIpv6) {
      const size_t bytes = v4 ? 4 : 16;
      const size_t end = layer.offset + layer.header->bytes;
      const int family = v4 ? AF_INET : AF_INET6;
      return {Address(family, record.frame.subspan(end - 2 * bytes, bytes)),
              Address(family, record.frame.subspan(end - bytes, bytes))};
    }
  }
  return {};
}

std::string Hex(Bytes bytes) {
  std::string out;
  for (const uint8_t byte : bytes) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    out += digits.data();
  }
  return out;
}

// A value for a reader: by name where it has one, wide ones as the bytes are.
std::string Pretty(Bytes header, const text::Field& field) {
  const uint64_t bits = FieldBits(header, field);
  if (const char* const name = NameOf(field.values, bits)) {
    return std::string(name) + " (" + std::to_string(bits) + ")";
  }
  if (field.is_signed) {
    return std::to_string(static_cast<int64_t>(bits));
  }
  if (field.bits > 32) {
    return "0x" + Hex(header.subspan(field.bit / 8, field.bits / 8));
  }
  return std::to_string(bits);
}

// Calls visit(header, field) for each field that the frame has.
template <typename Visit>
void ForEachField(const Record& record, const Layer& layer, Visit visit) {
  const Bytes header = record.frame.subspan(layer.offset, layer.header->bytes);
  for (const text::Field& field : layer.header->fields) {
    if (IsPresent(header, *layer.header, field)) {
      visit(header, field);
    }
  }
}

bool IsUetHeader(const Layer& layer) {
  const std::string_view name = layer.header->name;
  return name.starts_with("pds_") || name.starts_with("ses_");
}

// The fields that identify a packet.
std::string Summary(const Record& record, const DecodedFrame& decoded) {
  static constexpr std::array<std::string_view, 16> kKeys = {
      "psn",
      "cack_psn",
      "nack_psn",
      "nack_code",
      "spdcid",
      "dpdcid",
      "message_id",
      "request_length",
      "return_code",
      "cp_type",
      "ccc_id",
      "sack_bitmap",
      "amo_opcode",
      "initiator_restart_token",
      "target_restart_token",
      "features"};
  std::string out;
  for (const Layer& layer : decoded.layers) {
    if (!IsUetHeader(layer)) {
      continue;
    }
    out += layer.header->name[0] == 'p' ? "" : " |";
    ForEachField(record, layer, [&](Bytes header, const text::Field& field) {
      const std::string_view name = field.name;
      const uint64_t bits = FieldBits(header, field);
      const char* const value = NameOf(field.values, bits);
      if (name == "type" || name == "opcode") {
        out += ' ' + (value != nullptr ? value : std::to_string(bits));
      } else if ((name == "syn" || name == "retx") && bits != 0) {
        out += ' ' + std::string(name);
      } else if (std::find(kKeys.begin(), kKeys.end(), name) != kKeys.end()) {
        out += ' ' + std::string(name) + '=' +
               (value != nullptr ? value : std::to_string(bits));
      }
    });
  }
  if (decoded.payload_bytes != 0) {
    out += " | payload " + std::to_string(decoded.payload_bytes);
  }
  return out;
}

std::string OtherSummary(const Record& record, const DecodedFrame& decoded) {
  std::string out = " not UET, " + std::to_string(record.wire_bytes) + " bytes";
  if (!decoded.layers.empty()) {
    out +=
        std::string(", up to its header ") + decoded.layers.back().header->name;
  }
  return out;
}

void PrintLine(const Record& record, const DecodedFrame& decoded) {
  std::printf("%" PRIu64 " %" PRIu64 ".%09" PRIu32, record.number,
              record.seconds, record.nanoseconds);
  const auto [source, destination] = Addresses(record, decoded);
  if (!source.empty()) {
    std::printf(" %s > %s", source.c_str(), destination.c_str());
  }
  const std::string summary =
      decoded.is_uet ? Summary(record, decoded) : OtherSummary(record, decoded);
  std::printf("%s", summary.c_str());
  for (const std::string& problem : decoded.problems) {
    std::printf(" !! %s", problem.c_str());
  }
  std::printf("\n");
}

void PrintFields(const Record& record, const DecodedFrame& decoded) {
  for (const Layer& layer : decoded.layers) {
    std::printf("  %s\n", layer.header->name);
    ForEachField(record, layer, [](Bytes header, const text::Field& field) {
      std::printf("    %-24s %s\n", field.name, Pretty(header, field).c_str());
    });
  }
  if (decoded.is_uet) {
    std::printf("  checks\n    %-24s %s\n    %-24s %s\n    %-24s %s%s\n",
                "IPv4 header checksum", CheckName(decoded.ip_checksum),
                "UDP checksum", CheckName(decoded.udp_checksum), "CRC-32C",
                CheckName(decoded.crc),
                decoded.crc_order == contract::CrcOrder::kLsbFirst
                    ? ", least significant byte first"
                    : "");
  }
  if (decoded.payload_bytes != 0) {
    std::printf("  payload\n");
    constexpr size_t kPerLine = 32;
    for (size_t at = 0; at < decoded.payload_bytes; at += kPerLine) {
      const size_t bytes = std::min(kPerLine, decoded.payload_bytes - at);
      const Bytes part =
          record.frame.subspan(decoded.payload_offset + at, bytes);
      std::printf("    %06zx  %s\n", at, Hex(part).c_str());
    }
  }
}

nlohmann::ordered_json ToJson(const Record& record,
                              const DecodedFrame& decoded) {
  nlohmann::ordered_json out = {{"number", record.number},
                                {"seconds", record.seconds},
                                {"nanoseconds", record.nanoseconds},
                                {"uet", decoded.is_uet}};
  const auto [source, destination] = Addresses(record, decoded);
  if (!source.empty()) {
    out["source"] = source;
    out["destination"] = destination;
  }
  out["headers"] = nlohmann::ordered_json::array();
  for (const Layer& layer : decoded.layers) {
    nlohmann::ordered_json fields = nlohmann::ordered_json::object();
    ForEachField(record, layer, [&](Bytes header, const text::Field& field) {
      const uint64_t bits = FieldBits(header, field);
      if (field.is_signed) {
        fields[field.name] = static_cast<int64_t>(bits);
      } else {
        fields[field.name] = bits;
      }
      if (const char* const name = NameOf(field.values, bits)) {
        fields[std::string(field.name) + "_name"] = name;
      }
    });
    out["headers"].push_back({{"header", layer.header->name},
                              {"offset", layer.offset},
                              {"fields", fields}});
  }
  out["payload"] =
      Hex(record.frame.subspan(decoded.payload_offset, decoded.payload_bytes));
  out["ip_checksum"] = CheckName(decoded.ip_checksum);
  out["udp_checksum"] = CheckName(decoded.udp_checksum);
  out["crc"] = CheckName(decoded.crc);
  if (decoded.crc == Check::kGood) {
    out["crc_order"] =
        NameOf(text::kCrcOrderValues, static_cast<uint64_t>(decoded.crc_order));
  }
  out["problems"] = decoded.problems;
  return out;
}

void Print(const DecodeOptions& options, const Record& record,
           const DecodedFrame& decoded) {
  if (options.json) {
    std::printf("%s\n", ToJson(record, decoded).dump().c_str());
    return;
  }
  PrintLine(record, decoded);
  if (options.verbose) {
    PrintFields(record, decoded);
  }
}

struct Close {
  void operator()(pcap_t* pcap) const { pcap_close(pcap); }
};

std::unique_ptr<pcap_t, Close> Open(const std::string& file) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  std::unique_ptr<pcap_t, Close> pcap(pcap_open_offline_with_tstamp_precision(
      file.c_str(), PCAP_TSTAMP_PRECISION_NANO, error.data()));
  if (pcap == nullptr) {
    // libpcap names the file in some of its messages.
    const std::string cause = error.data();
    const std::string prefix = file + ": ";
    throw CommandError(
        prefix + "cannot be read (" +
        (cause.starts_with(prefix) ? cause.substr(prefix.size()) : cause) +
        "); give a readable pcap or pcapng file");
  }
  const int link = pcap_datalink(pcap.get());
  if (link != DLT_EN10MB) {
    const char* const name = pcap_datalink_val_to_name(link);
    throw CommandError(file + ": holds frames of link type " +
                       (name != nullptr ? name : std::to_string(link)) +
                       "; capture on an Ethernet interface");
  }
  return pcap;
}

}  // namespace

int Decode(const DecodeOptions& options) {
  const auto pcap = Open(options.file);
  uint64_t frames = 0;
  uint64_t bad = 0;
  uint64_t bad_crc = 0;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int more = 0;
  while ((more = pcap_next_ex(pcap.get(), &header, &data)) == 1) {
    const Record record = {
        .number = ++frames,
        .seconds = static_cast<uint64_t>(header->ts.tv_sec),
        // With nanosecond precision this field holds nanoseconds.
        .nanoseconds = static_cast<uint32_t>(header->ts.tv_usec),
        .frame = {data, header->caplen},
        .wire_bytes = header->len};
    const DecodedFrame decoded =
        DecodeFrame(record.frame, record.wire_bytes, options.form);
    bad += decoded.problems.empty() ? 0 : 1;
    bad_crc += decoded.crc == Check::kBad ? 1 : 0;
    Print(options, record, decoded);
  }
  if (more != PCAP_ERROR_BREAK) {
    throw CommandError(options.file + ": ends after frame " +
                       std::to_string(frames) + " (" + pcap_geterr(pcap.get()) +
                       "); the capture is damaged or still being written");
  }
  if (bad != 0) {
    std::fflush(stdout);
    std::cerr << "heddle: " << options.file << ": " << bad << " of " << frames
              << " frames have errors, marked !!"
              << (bad_crc == frames ? "; all CRCs are wrong, so perhaps there "
                                      "are none: give --no-crc"
                                    : "")
              << '\n';
    return kFailed;
  }
  return kOk;
}

}  // namespace heddle::tool
