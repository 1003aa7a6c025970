// SPDX-License-Identifier: Apache-2.0
// Numbers of layers 2 to 4.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"

namespace heddle::soft::frame {

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr uint8_t kProtocolUdp = 17;
inline constexpr uint8_t kNextIcmpv6 = 58;
inline constexpr uint8_t kTtl = 64;
inline constexpr uint8_t kDontFragment = 2;
inline constexpr uint8_t kMoreFragments = 1;
inline constexpr uint8_t kIpv4Words = contract::wire::Ipv4::kBytes / 4;
inline constexpr uint8_t kCongestionExperienced = 3;
inline constexpr uint16_t kSumOfGood = 0xffff;
inline constexpr uint16_t kVlanMask = 0xfff;
// In their headers. What the CRC covers starts with the source address.
inline constexpr size_t kLengthInIpv4 = 2;
inline constexpr size_t kLengthInIpv6 = 4;
inline constexpr size_t kSourceInIpv4 = 12;
inline constexpr size_t kSourceInIpv6 = 8;
inline constexpr size_t kChecksumInIpv4 = 10;
inline constexpr size_t kPortInUdp = 2;
inline constexpr size_t kLengthInUdp = 4;
inline constexpr size_t kChecksumBytes = 2;
inline constexpr size_t kTypeBytes = 2;

static_assert(std::endian::native == std::endian::little);

inline uint16_t Load16(const uint8_t* bytes) {
  uint16_t value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return __builtin_bswap16(value);
}

inline uint32_t Load32(const uint8_t* bytes) {
  uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return __builtin_bswap32(value);
}

inline void Store16(uint8_t* bytes, uint16_t value) {
  value = __builtin_bswap16(value);
  std::memcpy(bytes, &value, sizeof(value));
}

inline size_t IpBytes(bool ipv6) {
  return ipv6 ? contract::wire::Ipv6::kBytes : contract::wire::Ipv4::kBytes;
}

// IP protocol of the port's UET packets.
inline uint8_t IpProtocol(const contract::PortCfg& port) {
  return port.ip_protocol != 0 ? port.ip_protocol : kProtocolUdp;
}

}  // namespace heddle::soft::frame
