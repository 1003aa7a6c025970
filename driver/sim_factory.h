// SPDX-License-Identifier: Apache-2.0
// The C entry points through which the driver knows and opens simulated
// devices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle {
class Device;
}

// One setting of a simulated device, all text, e.g. {"address", "10.0.0.1"}.
struct HeddleSimOption {
  const char* name;
  const char* value;
};

// Why a device could not be opened.
struct HeddleSimError {
  int error;          // Positive errno.
  char message[256];  // One line: object, cause, cure.
};

// Symbol `heddle_sim_open` of libheddle-sim.so. Options, all with defaults:
//   address        local IPv4 or IPv6 address        (127.0.0.1)
//   wire           name of the one-machine wire, or udp: UDP sockets, of soft
//                  only                              (default)
//   udp_port       on the wire udp: port of everything, 0: one per endpoint (0)
//   payload_mtu    1024, 2048, 4096 or 8192          (4096; on the wire udp
//                  what the interface carries)
//   crc            end-to-end CRC of all frames, one per wire: msb or lsb, the
//                  byte of it that is sent first; none   (msb)
//   encap          udp: UET over UDP; ip: native IP, with the entropy header in
//                  place of UDP, not on the wire udp    (udp)
//   ip_protocol    protocol number of native IP, 2 to 255, not 6, 17 and 58
//                                                       (253)
//   vlan           1 to 4094: identifier of the tag of all frames; those of
//                  another VLAN are dropped; not on the wire udp (no tag)
//   dscp_trimmed   1 to 63: DSCP of packets that the network trimmed, 0: none
//                  are (0)
//   dscp_trimmed_lasthop  the same, of the last hop (0)
//   capture        pcap file to write; one that another device writes stays
//                  its own, this gets a number, run-2.pcap (none)
//   trace          FST waveform file to write        (none)
//   statistics     file of `name value` lines, written at close (none)
//   loss, duplicate, reorder  probability per frame sent, e.g. 0.01 (0)
//   corrupt        the same, of damage that the end-to-end CRC alone can show
//   bad_fcs        the same, of damage that the receiver's MAC reports
//   ecn            the same, of a congestion mark
//   delay_ns, jitter_ns  each frame sent takes so long, and up to so much
//                  longer; order stays                (0)
//   rate_gbps      what leaves faster queues, 0: no limit (0)
//   queue_bytes    room of that queue; what finds none is lost (262144)
//   ecn_bytes      frames that find more in the queue are marked, 0: none (0)
//   trim           on: a request that finds no room there is trimmed, not lost;
//                  needs rate_gbps and dscp_trimmed (off)
//   rx_loss ... rx_trim  all these, of the frames received
//   read_again     of soft only: probability that a packet of a peer's READ
//                  gets surplus answers, or the data of the packet before it:
//                  an incorrect target, to test initiators (0)
//   neighbours     static: one next hop for everybody; resolve: by ARP and
//                  Neighbor Discovery              (static)
//   seed           seed of faults and memory order   (1)
//   rto_ns, dead_ns  transport times                 (20 ms, 60 s)
//   pdc_idle_ns    PDCs idle for so long, or for dead_ns, close; 0: dead_ns (0)
//   cwnd_bytes     congestion window of each connection; 0: none, or on the
//                  wire udp its own                 (0)
//   base_rtt_ns    round trip of the empty network: the window follows
//                  congestion (NSCC); 0: it is fixed (0)
// An unknown option or a bad value is EINVAL.
//
// `kind` is "rtl" or "soft"; `trace` is for "rtl" alone. Returns null and fills
// `error` on failure. Refused with EPROTO, both numbers named, when
// `device_abi` or `contract_hash` differ from those the library was built with.
extern "C" {
using HeddleSimOpen = heddle::Device*(const char* kind, uint32_t device_abi,
                                      uint64_t contract_hash,
                                      const HeddleSimOption* options,
                                      size_t option_count,
                                      HeddleSimError* error);
}

inline constexpr const char* kHeddleSimOpenSymbol = "heddle_sim_open";

// Symbol `heddle_sim_identity`: what a device of `kind` is, without opening
// one: the first `count` words of 64 bits of its BAR0 in `words`. 0, or a
// positive errno with `error` filled; refusals as above, and ENOTSUP for a kind
// that this library was built without.
extern "C" {
using HeddleSimIdentity = int(const char* kind, uint32_t device_abi,
                              uint64_t contract_hash, uint64_t* words,
                              size_t count, HeddleSimError* error);
}

inline constexpr const char* kHeddleSimIdentitySymbol = "heddle_sim_identity";
