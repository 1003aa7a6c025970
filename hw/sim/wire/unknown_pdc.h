// SPDX-License-Identifier: Apache-2.0
// The answer of an address's owner to packets for PDCs that none of its
// functions has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/frame/wire_address.h"

namespace heddle::sim::wire {

// The frame with NACK INV_DPDCID (UET Table 3-59) that `address` sends to the
// sender of `frame`, a frame to it. Empty unless that is a whole request
// without SYN, or a control packet other than a Clear Command, and its IP
// checksum and CRC, of order `crc`, are right: a damaged packet may name
// another PDC than its sender's. Over UDP or as native IP, as `frame` is.
std::optional<frame::Frame> RefuseUnknownPdc(std::span<const uint8_t> frame,
                                             const frame::WireAddress& address,
                                             contract::CrcOrder crc,
                                             uint8_t ip_protocol);

}  // namespace heddle::sim::wire
