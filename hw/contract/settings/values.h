// SPDX-License-Identifier: Apache-2.0
// Values of settings from and to text; each `Parse...` is false for a text that
// is not in the range, and its result is then undefined.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "hw/contract/fabric_address_text.h"
#include "hw/contract/settings/row.h"

namespace heddle::contract {

template <typename Value>
struct SettingWord {
  std::string_view word;
  Value value;
};

// Unsigned decimal digits, nothing else, in [least, most].
template <std::unsigned_integral Number>
bool ParseNumber(std::string_view text, uint64_t least, uint64_t most,
                 Number* value) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  *value = static_cast<Number>(number);
  return error == std::errc() && stop == end && number >= least &&
         number <= most;
}

// One of `values`, which ascend.
template <std::unsigned_integral Number, size_t kCount>
bool ParseOneOf(std::string_view text, const std::array<Number, kCount>& values,
                Number* value) {
  return ParseNumber(text, values.front(), values.back(), value) &&
         std::find(values.begin(), values.end(), *value) != values.end();
}

// 0, or from `least` to `most`.
inline bool ParseReal(std::string_view text, double least, double most,
                      double* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end &&
         (*value == 0 || (*value >= least && *value > 0 && *value <= most));
}

template <typename Value, size_t kCount>
bool ParseWord(std::string_view text,
               const std::array<SettingWord<Value>, kCount>& words,
               Value* value) {
  const auto found =
      std::find_if(words.begin(), words.end(),
                   [text](const auto& entry) { return entry.word == text; });
  if (found == words.end()) {
    return false;
  }
  *value = found->value;
  return true;
}

inline bool ParseFlag(std::string_view text, bool* value) {
  *value = text == "on";
  return text == "on" || text == "off";
}

inline bool ParseText(std::string_view text, std::string* value) {
  *value = text;
  return true;
}

// A unicast address without port or scope.
inline bool ParseIp(std::string_view text, std::string* value) {
  *value = text;
  const auto address = ParseFabricAddress(text);
  return address.has_value() && address->is_unicast();
}

// 8-4-4-4-12 hexadecimal digits.
inline bool ParseUuid(std::string_view text, std::string* value) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  *value = text;
  return std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(),
                    [=](char letter, char form) {
                      return form == '-' ? letter == '-'
                                         : kDigits.find(letter) !=
                                               std::string_view::npos;
                    });
}

// 1 to 64 letters, digits, '_', '-' and '.'.
inline bool ParseWireName(std::string_view text, std::string* value) {
  constexpr size_t kMost = 64;
  *value = text;
  return !text.empty() && text.size() <= kMost &&
         std::all_of(text.begin(), text.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') ||
                  (letter >= 'A' && letter <= 'Z') ||
                  (letter >= '0' && letter <= '9') || letter == '_' ||
                  letter == '-' || letter == '.';
         });
}

// The name of a kind; after one in PCI, a function may follow after a colon.
inline bool ParseDeviceName(std::string_view text, DeviceName* value) {
  const size_t colon = text.find(':');
  value->kind = text.substr(0, colon);
  value->function = colon == std::string_view::npos ? std::string_view()
                                                    : text.substr(colon + 1);
  const DeviceKind* const kind = FindKind(kDeviceKinds, value->kind);
  return kind != nullptr &&
         (colon == std::string_view::npos ||
          (!kind->is_simulated() && !value->function.empty()));
}

// The shortest text that gives the same number again.
template <typename Number>
requires std::unsigned_integral<Number> || std::floating_point<Number>
    std::string SettingText(Number value) {
  std::array<char, 32> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}
inline std::string SettingText(bool value) {
  return value ? "on" : "off";
}
inline std::string SettingText(const std::string& value) {
  return value;
}
inline std::string SettingText(const DeviceName& value) {
  return value.Text();
}

template <typename Value, size_t kCount>
std::string WordOf(Value value,
                   const std::array<SettingWord<Value>, kCount>& words) {
  const auto found =
      std::find_if(words.begin(), words.end(),
                   [value](const auto& entry) { return entry.value == value; });
  return found == words.end() ? std::string() : std::string(found->word);
}

}  // namespace heddle::contract
