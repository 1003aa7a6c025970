// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/trace.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

namespace heddle::differential {
namespace {

constexpr std::array<const char*, 13> kKinds = {
    "called",     "spare",     "claimed", "completed", "failed",
    "found",      "changed",   "memory",  "result",    "notified",
    "miscounted", "restarted", "settled"};

void AppendHex(const std::vector<uint8_t>& content, std::string* text) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const uint8_t byte : content) {
    text->push_back(kDigits[byte >> 4U]);
    text->push_back(kDigits[byte & 15U]);
  }
}

// Value of a hexadecimal digit, or 16.
uint8_t DigitValue(char digit) {
  if (digit >= '0' && digit <= '9') {
    return static_cast<uint8_t>(digit - '0');
  }
  return digit >= 'a' && digit <= 'f' ? static_cast<uint8_t>(digit - 'a' + 10)
                                      : 16;
}

bool ParseHex(const std::string& text, std::vector<uint8_t>* content) {
  content->reserve(text.size() / 2);
  for (size_t at = 0; at + 1 < text.size(); at += 2) {
    const uint8_t high = DigitValue(text[at]);
    const uint8_t low = DigitValue(text[at + 1]);
    if (high > 15 || low > 15) {
      return false;
    }
    content->push_back(static_cast<uint8_t>(high << 4U | low));
  }
  return text.size() % 2 == 0;
}

}  // namespace

bool EndsMessage(int64_t error) {
  return error == FI_ETRUNC || error == FI_EREMOTEIO;
}

std::string ToText(const Event& event) {
  std::ostringstream out;
  out << kKinds.at(static_cast<size_t>(event.kind)) << " " << event.time_ns
      << " " << event.number << " " << event.endpoint << " " << event.region
      << " " << event.result << " " << event.bytes << " " << event.beyond << " "
      << event.offset << " " << event.data << " " << event.has_data << " "
      << event.source << " " << event.tag << " " << event.digest << " "
      << event.clean << " " << event.held << " ";
  std::string text = out.str();
  if (event.content.empty()) {
    text.push_back('-');
  }
  AppendHex(event.content, &text);
  return text;
}

std::optional<Event> ParseEvent(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::string kind;
  std::string content;
  Event event;
  in >> kind >> event.time_ns >> event.number >> event.endpoint >>
      event.region >> event.result >> event.bytes >> event.beyond >>
      event.offset >> event.data >> event.has_data >> event.source >>
      event.tag >> event.digest >> event.clean >> event.held >> content;
  const auto* const found = std::find(kKinds.begin(), kKinds.end(), kind);
  if (!in || found == kKinds.end() ||
      (content != "-" && !ParseHex(content, &event.content))) {
    return std::nullopt;
  }
  event.kind = static_cast<EventKind>(found - kKinds.begin());
  return event;
}

}  // namespace heddle::differential
