// SPDX-License-Identifier: Apache-2.0
// The records of heddle_pkg.sv that the transport blocks exchange, for
// packed.h.
#pragma once

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/widths.h"

namespace heddle::test {

struct PortCfg {
  uint8_t ip_protocol = 0;
  uint8_t ipv6 = 0;
  uint16_t vlan = 0;
  uint32_t ack_delay_ticks = 0;
  uint32_t pdc_seed = 0;
  contract::CrcOrder crc = contract::CrcOrder::kNone;
  uint8_t write_errors = 0;
  uint8_t enable = 1;
  uint8_t slot = 0;
  uint16_t udp_port = 4793;
  uint16_t payload_mtu = 4096;
  uint32_t dead_ticks = 0;
  uint32_t backoff_max_ticks = 0;
  uint32_t backoff_ticks = 0;
  uint32_t rto_max_ticks = 0;
  uint32_t rto_ticks = 0;
  uint64_t mac = 0;
  uint64_t fa_hi = 0;
  uint64_t fa_lo = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(ip_protocol, 8), v(ipv6, 8), v(vlan, 16), v(ack_delay_ticks, 32);
    v(pdc_seed, 32), v(crc, 8), v(write_errors, 8), v(enable, 8);
    v(slot, 8), v(udp_port, 16), v(payload_mtu, 16), v(dead_ticks, 32);
    v(backoff_max_ticks, 32), v(backoff_ticks, 32), v(rto_max_ticks, 32);
    v(rto_ticks, 32), v(mac, 64), v(fa_hi, 64), v(fa_lo, 64);
  }
};

struct TransportCfg {
  uint64_t rsvd3[4] = {};
  uint64_t rsvd12 = 0;
  uint8_t dscp_trimmed_lasthop = 0;
  uint8_t dscp_trimmed = 0;
  uint32_t tick_ns = 0;
  uint8_t rsvd0 = 0;
  uint8_t congestion = 0;
  uint8_t ack_every = 0;
  uint8_t reorder = 0;
  uint32_t base_rtt_ns = 0;
  uint32_t cwnd_bytes = 0;
  uint32_t idle_ticks = 0;
  uint32_t safety_ticks = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    for (uint64_t& word : rsvd3) v(word, 64);
    v(rsvd12, 48), v(dscp_trimmed_lasthop, 8), v(dscp_trimmed, 8);
    v(tick_ns, 32), v(rsvd0, 8), v(congestion, 8), v(ack_every, 8);
    v(reorder, 8), v(base_rtt_ns, 32), v(cwnd_bytes, 32), v(idle_ticks, 32);
    v(safety_ticks, 32);
  }
};

struct TableReq {
  uint8_t op = 0;
  uint8_t sel = 0;
  uint16_t index = 0;
  uint64_t data[8] = {};  // Word 0 is the low one.

  template <typename Visit>
  void Fields(Visit&& v) {
    v(op, 2), v(sel, 8), v(index, 16);
    for (int i = 7; i >= 0; --i) v(data[i], 64);
  }
};

struct TableRsp {
  uint8_t done = 0;
  uint8_t error = 0;
  uint64_t data[8] = {};

  template <typename Visit>
  void Fields(Visit&& v) {
    v(done, 1), v(error, 1);
    for (int i = 7; i >= 0; --i) v(data[i], 64);
  }
};

struct DmaReq {
  uint64_t addr = 0;
  uint16_t bytes = 0;
  uint8_t owner = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(addr, 64), v(bytes, 14), v(owner, 8);
  }
  bool operator==(const DmaReq&) const = default;
};

struct MsgPacket {
  uint8_t ctx = 0;
  uint8_t gen = 0;
  uint8_t owner = 0;
  uint8_t opcode = 0;
  uint8_t flags = 0;
  uint16_t resource_index = 0;
  uint32_t length = 0;
  uint64_t header_data = 0;
  uint64_t match_bits = 0;
  uint64_t remote_offset = 0;
  uint64_t iova = 0;
  uint8_t segmented = 0;
  uint64_t inline_hi = 0;
  uint64_t inline_lo = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(ctx, 4), v(gen, kGenBits), v(owner, 8), v(opcode, 8), v(flags, 8);
    v(resource_index, 12), v(length, 32), v(header_data, 64);
    v(match_bits, 64), v(remote_offset, 64), v(iova, 64), v(segmented, 1);
    v(inline_hi, 64), v(inline_lo, 64);
  }
};

struct PdcPeer {
  uint8_t rud = 0;
  uint8_t ipv6 = 0;
  uint64_t fa_hi = 0;
  uint64_t fa_lo = 0;
  uint8_t hop = 0;
  uint8_t dscp = 0;
  uint16_t spdcid = 0;
  uint32_t start_psn = 0;
  uint16_t entropy = 0;
  uint32_t job_id = 0;
  uint16_t pid_on_fep = 0;
  uint16_t source_pid = 0;
  uint16_t source_ri = 0;
  uint8_t rel = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(rud, 1), v(ipv6, 1), v(fa_hi, 64), v(fa_lo, 64), v(hop, 8), v(dscp, 6);
    v(spdcid, 16), v(start_psn, 32), v(entropy, 16), v(job_id, 24);
    v(pid_on_fep, 12), v(source_pid, 12), v(source_ri, 12), v(rel, 1);
  }
};

struct TxPacket {
  uint8_t pdc = 0;
  uint16_t msg = 0;
  uint32_t psn = 0;
  uint32_t index = 0;
  uint8_t last = 0;
  uint8_t syn = 0;
  uint8_t retx = 0;
  uint8_t ar = 0;
  uint8_t failed = 0;
  uint8_t control = 0;
  uint8_t cp_type = 0;
  uint32_t clear_psn = 0;
  uint16_t tpdcid = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(pdc, 8), v(msg, 10), v(psn, 32), v(index, 22), v(last, 1), v(syn, 1);
    v(retx, 1), v(ar, 1), v(failed, 1), v(control, 1), v(cp_type, 4);
    v(clear_psn, 32), v(tpdcid, 16);
  }
};

struct RxPacket {
  uint8_t ipv6 = 0;
  uint64_t fa_hi = 0;
  uint64_t fa_lo = 0;
  uint64_t source_mac = 0;
  uint16_t source_port = 0;
  uint8_t dscp = 0;
  uint8_t ce = 0;
  uint8_t pds_type = 0;
  uint8_t next_hdr = 0;
  uint8_t retx = 0;
  uint8_t ar = 0;
  uint8_t syn = 0;
  uint8_t m = 0;
  uint8_t probe = 0;
  uint8_t req = 0;
  uint16_t sack_offset = 0;
  uint16_t offset = 0;
  uint32_t psn = 0;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;
  uint16_t psn_offset = 0;
  uint8_t nack_code = 0;
  uint32_t pds_payload = 0;
  uint8_t opcode = 0;
  uint8_t ses_ver = 0;
  uint8_t dc = 0;
  uint8_t ie = 0;
  uint8_t rel = 0;
  uint8_t hd = 0;
  uint8_t eom = 0;
  uint8_t som = 0;
  uint16_t message_id = 0;
  uint32_t job_id = 0;
  uint16_t pid_on_fep = 0;
  uint16_t resource_index = 0;
  uint64_t buffer_offset = 0;
  uint32_t initiator = 0;
  uint64_t match_bits = 0;
  uint64_t header_data = 0;
  uint32_t message_offset = 0;
  uint32_t request_length = 0;
  uint8_t response = 0;
  uint8_t return_code = 0;
  uint16_t payload_bytes = 0;
  uint16_t read_bytes = 0;
  uint8_t contradicts = 0;
  uint8_t other_gen = 0;
  uint8_t trim = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(ipv6, 1), v(fa_hi, 64), v(fa_lo, 64), v(source_mac, 48);
    v(source_port, 16), v(dscp, 6), v(ce, 1), v(pds_type, 5), v(next_hdr, 4);
    v(retx, 1), v(ar, 1), v(syn, 1), v(m, 1), v(probe, 1), v(req, 2);
    v(sack_offset, 16), v(offset, 16);
    v(psn, 32), v(spdcid, 16), v(dpdcid, 16), v(psn_offset, 12);
    v(nack_code, 8), v(pds_payload, 32), v(opcode, 6), v(ses_ver, 2);
    v(dc, 1), v(ie, 1), v(rel, 1), v(hd, 1), v(eom, 1), v(som, 1);
    v(message_id, 16), v(job_id, 24), v(pid_on_fep, 12);
    v(resource_index, 12), v(buffer_offset, 64), v(initiator, 32);
    v(match_bits, 64), v(header_data, 64), v(message_offset, 32);
    v(request_length, 32), v(response, 6), v(return_code, 6);
    v(payload_bytes, 14), v(read_bytes, 14), v(contradicts, 1);
    v(other_gen, 1), v(trim, 2);
  }
};

struct RxBuffer {
  uint8_t ctx = 0;
  uint8_t gen = 0;
  uint8_t owner = 0;
  uint8_t cq = 0;
  uint8_t cq_gen = 0;
  uint16_t position = 0;
  uint32_t length = 0;
  uint64_t iova = 0;
  uint64_t op_context = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(ctx, 4), v(gen, kGenBits), v(owner, 8), v(cq, 5), v(cq_gen, kGenBits);
    v(position, 16), v(length, 32), v(iova, 64), v(op_context, 64);
  }
};

struct RmaRequest {
  uint64_t key = 0;
  uint64_t offset = 0;
  uint32_t length = 0;
  uint32_t message_offset = 0;
  uint32_t job_id = 0;
  uint8_t rel = 0;
  uint16_t pid_on_fep = 0;
  uint16_t resource_index = 0;
  uint8_t needs = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(key, 64), v(offset, 64), v(length, 32), v(message_offset, 32);
    v(job_id, 24), v(rel, 1), v(pid_on_fep, 12), v(resource_index, 12);
    v(needs, 8);
  }
};

struct RmaAnswer {
  uint8_t code = 0;  // contract::ReturnCode.
  uint64_t iova = 0;
  uint8_t owner = 0;
  uint8_t counter = 0;
  uint16_t region = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(code, 6), v(iova, 64), v(owner, 8), v(counter, 8), v(region, 10);
  }
};

struct Completion {
  uint8_t phase = 0;
  uint8_t kind = 0;
  uint16_t detail = 0;
  uint8_t context = 0;
  uint8_t flags = 0;
  uint8_t opcode = 0;
  uint8_t status = 0;
  uint16_t position = 0;
  uint16_t queue_head = 0;
  uint32_t peer = 0;
  uint64_t source_fa_hi = 0;
  uint64_t source_fa_lo = 0;
  uint64_t match_bits = 0;
  uint64_t header_data = 0;
  uint32_t message_length = 0;
  uint32_t length = 0;
  uint64_t op_context = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(phase, 8), v(kind, 8), v(detail, 16), v(context, 8), v(flags, 8);
    v(opcode, 8), v(status, 8), v(position, 16), v(queue_head, 16);
    v(peer, 32), v(source_fa_hi, 64), v(source_fa_lo, 64);
    v(match_bits, 64), v(header_data, 64), v(message_length, 32);
    v(length, 32), v(op_context, 64);
  }
  bool operator==(const Completion&) const = default;
};

struct CqEvent {
  uint8_t token = 0;
  uint8_t write = 0;
  uint8_t credit = 0;
  uint8_t head = 0;
  uint64_t head_cell = 0;
  uint8_t owner = 0;
  uint8_t cq = 0;
  uint8_t cq_gen = 0;
  Completion entry = {};
  uint8_t failed = 0;
  uint8_t own = 0;     // Counter of the context plus 1.
  uint8_t region = 0;  // Of the region.

  template <typename Visit>
  void Fields(Visit&& v) {
    v(token, 1), v(write, 1), v(credit, 1), v(head, 1), v(head_cell, 64);
    v(owner, 8), v(cq, 5), v(cq_gen, kGenBits);
    entry.Fields(v);
    v(failed, 1), v(own, 8), v(region, 8);
  }
  bool operator==(const CqEvent&) const = default;
};

struct Place {
  uint8_t token = 0;
  uint16_t stream = 0;
  uint16_t bytes = 0;
  uint64_t iova = 0;
  uint8_t tpdc = 0;
  uint8_t first = 0;
  uint8_t alone = 0;
  uint8_t complete = 0;
  uint8_t visible = 0;
  uint32_t psn = 0;
  CqEvent ev = {};
  uint8_t job = 0;
  uint8_t back = 0;
  uint16_t spdcid = 0;
  uint8_t segmented = 0;
  uint8_t settle = 0;
  uint16_t msg = 0;
  uint8_t fail = 0;
  uint8_t code = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(token, 1), v(stream, 14), v(bytes, 14), v(iova, 64), v(tpdc, 8);
    v(first, 1), v(alone, 1), v(complete, 1), v(visible, 1), v(psn, 32);
    ev.Fields(v);
    v(job, 1), v(back, 1), v(spdcid, 16), v(segmented, 1), v(settle, 1);
    v(msg, 10), v(fail, 1), v(code, 6);
  }
};

struct AckEvent {
  uint8_t nack = 0;
  uint8_t ask = 0;
  uint8_t pdc = 0;
  uint16_t dpdcid = 0;
  uint16_t spdcid = 0;
  uint64_t fa_hi = 0;
  uint64_t fa_lo = 0;
  uint32_t cack = 0;
  uint32_t psn = 0;
  uint8_t req = 0;
  uint8_t code = 0;
  uint8_t return_code = 0;
  uint8_t m = 0;
  uint8_t retx = 0;
  uint8_t sack = 0;
  uint32_t sack_base = 0;
  uint64_t sack_bitmap = 0;
  uint16_t service_time = 0;
  uint32_t rcvd_bytes = 0;
  uint8_t data = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(nack, 1), v(ask, 1), v(pdc, 8), v(dpdcid, 16), v(spdcid, 16);
    v(fa_hi, 64);
    v(fa_lo, 64), v(cack, 32), v(psn, 32), v(req, 2), v(code, 8);
    v(return_code, 6), v(m, 1), v(retx, 1), v(sack, 1), v(sack_base, 32);
    v(sack_bitmap, 64), v(service_time, 16), v(rcvd_bytes, 24);
    v(data, 1);
  }
};

enum class ResponseKind : uint8_t {
  kAck = 0,
  kNone = 1,
  kNack = 2,
  kOffer = 3
};

struct Response {
  ResponseKind kind = ResponseKind::kAck;
  uint8_t probe = 0;
  uint8_t rod = 0;
  uint8_t ipv6 = 0;
  uint64_t fa_hi = 0;
  uint64_t fa_lo = 0;
  uint64_t mac = 0;
  uint16_t entropy = 0;
  uint8_t dscp = 0;
  uint8_t m = 0;
  uint8_t retx = 0;
  uint8_t req = 0;  // contract::AckReq.
  uint8_t cc = 0;
  uint64_t sack_bitmap = 0;
  uint16_t service_time = 0;
  uint32_t rcvd_bytes = 0;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;
  uint32_t cack = 0;
  uint16_t ack_offset = 0;
  uint32_t nack_psn = 0;
  uint8_t code = 0;
  uint8_t vendor_code = 0;
  uint8_t response = 0;
  uint8_t return_code = 0;
  uint16_t message_id = 0;
  uint32_t job_id = 0;
  uint32_t modified_length = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(kind, 2), v(probe, 1), v(rod, 1), v(ipv6, 1), v(fa_hi, 64);
    v(fa_lo, 64), v(mac, 48), v(entropy, 16), v(dscp, 6), v(m, 1), v(retx, 1),
        v(req, 2);
    v(cc, 1), v(sack_bitmap, 64), v(service_time, 16), v(rcvd_bytes, 24);
    v(spdcid, 16), v(dpdcid, 16), v(cack, 32), v(ack_offset, 16);
    v(nack_psn, 32);
    v(code, 8), v(vendor_code, 8), v(response, 6), v(return_code, 6);
    v(message_id, 16), v(job_id, 24), v(modified_length, 32);
  }
};

// frame_head_t: 144 bytes of header space, its length, payload and trailer
// behind it.
struct FrameHead {
  static constexpr int kSpace = 144;

  uint8_t bytes[kSpace] = {};
  uint8_t length = 0;
  uint16_t payload_bytes = 0;
  uint8_t trailer = 0;
  uint32_t crc = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    for (uint8_t& byte : bytes) v(byte, 8);
    v(length, 8), v(payload_bytes, 14), v(trailer, 1), v(crc, 32);
  }
};

}  // namespace heddle::test
