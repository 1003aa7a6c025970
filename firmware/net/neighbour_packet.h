// SPDX-License-Identifier: Apache-2.0
// ARP and Neighbor Discovery on the wire.
#pragma once

#include <stdint.h>

#include "firmware/mgmt/slow_path.h"
#include "hw/contract/fabric_address.h"

namespace heddle::firmware {

using contract::FabricAddress;

// Who we are in the neighbour protocols: Neighbor Discovery if the address is
// of IPv6, else ARP.
struct LinkIdentity {
  FabricAddress address;
  uint64_t mac = 0;
  uint16_t vlan = 0;  // 0: untagged.
};

// What a packet says.
struct NeighbourPacket {
  bool asks = false;         // It wants to know `target`'s MAC address.
  bool tells = false;        // `sender` has MAC address `mac`.
  bool solicited = false;    // It answers a question of ours.
  bool replaces = false;     // What was known before is wrong if it differs.
  bool from_nobody = false;  // The asker has no address yet.
  FabricAddress sender;
  FabricAddress target;
  uint64_t mac = 0;
  uint64_t answer_mac = 0;  // Where an answer to the asker goes.
};

// False unless `frame` is a valid ARP packet (for an IPv4 identity) or neighbor
// solicitation or advertisement (RFC 4861 section 7.1, for an IPv6 one) to us
// or to a group. Safe for any bytes.
bool ParseNeighbourPacket(const SlowPath::Frame& frame,
                          const LinkIdentity& self, NeighbourPacket& packet);

// The question who has `target`, to all.
void BuildQuestion(const LinkIdentity& self, const FabricAddress& target,
                   SlowPath::Frame& frame);

// The answer to `question`, which asked for our address.
void BuildAnswer(const LinkIdentity& self, const NeighbourPacket& question,
                 SlowPath::Frame& frame);

}  // namespace heddle::firmware
