// SPDX-License-Identifier: Apache-2.0
// Protocol numbers of native IP from text.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "hw/contract/ip_protocol.h"

namespace heddle::sim {

inline constexpr char kIpProtocolRange[] = "2 to 255, but not 6, 17 or 58";

// False if `text` is none; `*protocol` is undefined then.
inline bool ParseIpProtocol(std::string_view text, uint8_t* protocol) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, *protocol);
  return error == std::errc() && end == last &&
         contract::IsNativeIpProtocol(*protocol);
}

}  // namespace heddle::sim
