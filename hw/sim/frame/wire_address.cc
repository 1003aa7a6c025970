// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/frame/wire_address.h"

#include "hw/contract/fabric_address_text.h"

namespace heddle::sim::frame {

std::string WireAddress::Text() const {
  return contract::Text(*this);
}

namespace {

// The function is in the second octet, and in the first above the bits that say
// group and locally administered.
constexpr uint32_t kLowShift = 32;
constexpr uint32_t kHighShift = 42;
constexpr uint32_t kLowBits = 8;

}  // namespace

uint64_t PortMac(const WireAddress& address, uint16_t function) {
  constexpr uint64_t kLocal = 0x020000000000;
  const uint64_t folded = address.hi ^ address.lo;
  return kLocal | uint64_t{function} >> kLowBits << kHighShift |
         (uint64_t{function} & 0xff) << kLowShift |
         static_cast<uint32_t>(folded ^ folded >> 32);
}

uint16_t FunctionOfMac(uint64_t mac) {
  return static_cast<uint16_t>((mac >> kHighShift & 0x3f) << kLowBits |
                               (mac >> kLowShift & 0xff));
}

bool ParseWireAddress(const std::string& text, WireAddress* address) {
  const auto parsed = contract::ParseFabricAddress(text);
  if (!parsed.has_value()) {
    return false;
  }
  *address = *parsed;
  return address->hi != 0 || address->lo != 0;
}

}  // namespace heddle::sim::frame
