// SPDX-License-Identifier: Apache-2.0
// Decodes an Ethernet frame that carries UET.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_text.h"
#include "tools/heddle/checksums.h"

namespace heddle::tool {

struct Layer {
  const contract::text::Header* header;
  size_t offset;  // In the frame.
};

enum class Check { kAbsent, kGood, kBad, kNotChecked };

struct DecodedFrame {
  // In the order of the frame, trailer last; what shows a field of another one
  // as what it is in this packet follows that one.
  std::vector<Layer> layers;
  size_t payload_offset = 0;
  size_t payload_bytes = 0;
  Check ip_checksum = Check::kAbsent;
  Check udp_checksum = Check::kAbsent;
  Check crc = Check::kAbsent;
  // Byte order of a correct CRC. A frame does not indicate which order it uses.
  contract::CrcOrder crc_order = contract::CrcOrder::kNone;
  // Down to the PDS type: UDP to UET's port, or UET over IP. Other frames are
  // no problem.
  bool is_uet = false;
  // One phrase per error; empty for a correct frame.
  std::vector<std::string> problems;
};

// Properties that a frame does not indicate.
struct FrameForm {
  bool has_crc = true;  // The last four bytes of a datagram are its CRC.
  // Protocol number of native IP; UET over UDP is recognized as well.
  uint8_t ip_protocol = contract::kNativeIpProtocol;
};

// `frame` is what was captured of `wire_bytes`; a frame of which a part is
// missing is decoded as far as it goes, its checksums are not checked.
DecodedFrame DecodeFrame(Bytes frame, size_t wire_bytes, const FrameForm& form);

// The bits of `field`; of a signed one, two's complement in 64 bits.
uint64_t FieldBits(Bytes header, const contract::text::Field& field);

// Whether `field` belongs to the case of its union that `header` chose.
bool IsPresent(Bytes header, const contract::text::Header& layout,
               const contract::text::Field& field);

// Name of `value` in `values`, or null.
const char* NameOf(std::span<const contract::text::Value> values,
                   uint64_t value);

}  // namespace heddle::tool
