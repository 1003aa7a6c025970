// SPDX-License-Identifier: Apache-2.0
// The records of heddle_return_pkg.sv, for packed.h.
#pragma once

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/transport/records.h"

namespace heddle::test {

inline constexpr unsigned kPdcIndexBits = 8;
inline constexpr uint32_t kPdcs = 1U << kPdcIndexBits;
inline constexpr uint32_t kReturnWindow = 32;

struct ReturnData {
  uint64_t iova = 0;
  uint16_t bytes = 0;
  uint8_t owner = 0;
  uint16_t region = 0;
  uint16_t message_id = 0;
  uint32_t message_offset = 0;
  uint32_t message_bytes = 0;
  uint32_t job_id = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(iova, 64), v(bytes, 14), v(owner, 8), v(region, 10), v(message_id, 16);
    v(message_offset, 32), v(message_bytes, 32), v(job_id, 24);
  }
  bool operator==(const ReturnData&) const = default;
};

struct ReturnRoute {
  uint8_t rud = 0;
  uint8_t ipv6 = 0;
  uint64_t fa_hi = 0;
  uint64_t fa_lo = 0;
  uint64_t mac = 0;
  uint8_t dscp = 0;
  uint16_t entropy = 0;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(rud, 1), v(ipv6, 1), v(fa_hi, 64), v(fa_lo, 64), v(mac, 48), v(dscp, 6);
    v(entropy, 16), v(spdcid, 16), v(dpdcid, 16);
  }
  bool operator==(const ReturnRoute&) const = default;
};

struct ReadReport {
  uint8_t ctx = 0;
  uint8_t gen = 0;
  uint8_t owner = 0;
  uint8_t credit = 0;
  uint8_t cq = 0;
  uint8_t cq_gen = 0;
  uint16_t queue_head = 0;
  uint32_t initiator = 0;
  uint64_t key = 0;
  uint32_t bytes = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(ctx, 4), v(gen, kGenBits), v(owner, 8), v(credit, 1), v(cq, 5),
        v(cq_gen, kGenBits);
    v(queue_head, 16), v(initiator, 32), v(key, 64), v(bytes, 32);
  }
  bool operator==(const ReadReport&) const = default;
};

struct ReadWait {
  uint16_t pdc = 0;
  uint32_t psn = 0;
  uint8_t lost = 0;
  uint8_t ipv6 = 0;
  uint64_t fa_hi = 0;
  uint64_t fa_lo = 0;
  ReadReport read = {};

  template <typename Visit>
  void Fields(Visit&& v) {
    v(pdc, kPdcIndexBits), v(psn, 32), v(lost, 1), v(ipv6, 1);
    v(fa_hi, 64), v(fa_lo, 64);
    read.Fields(v);
  }
  bool operator==(const ReadWait&) const = default;
};

struct ReadOver {
  uint16_t pdc = 0;
  uint32_t psn = 0;
  uint8_t gone = 0;
  uint8_t lost = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(pdc, kPdcIndexBits), v(psn, 32), v(gone, 1), v(lost, 1);
  }
};

struct ReturnJob {
  uint8_t close = 0;
  uint8_t lost = 0;
  uint8_t tell = 0;
  ReadReport report = {};
  uint8_t open = 0;
  uint16_t pdc = 0;
  uint32_t start_psn = 0;
  ReturnRoute route = {};
  ReturnData data = {};

  template <typename Visit>
  void Fields(Visit&& v) {
    v(close, 1), v(lost, 1), v(tell, 1);
    report.Fields(v);
    v(open, 1), v(pdc, kPdcIndexBits), v(start_psn, 32);
    route.Fields(v);
    data.Fields(v);
  }
};

struct ReturnPacket {
  uint16_t pdc = 0;
  uint32_t psn = 0;
  uint8_t ar = 0;
  uint8_t retx = 0;
  uint8_t dead = 0;
  uint32_t clear_psn = 0;
  ReturnRoute route = {};
  ReturnData data = {};

  template <typename Visit>
  void Fields(Visit&& v) {
    v(pdc, kPdcIndexBits), v(psn, 32), v(ar, 1), v(retx, 1), v(dead, 1);
    v(clear_psn, 32);
    route.Fields(v);
    data.Fields(v);
  }
};

struct ReturnRead {
  uint8_t ctx = 0;
  uint8_t gen = 0;
  uint8_t owner = 0;
  uint32_t length = 0;
  uint8_t segmented = 0;
  uint64_t iova = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(ctx, 4), v(gen, kGenBits), v(owner, 8), v(length, 32), v(segmented, 1);
    v(iova, 64);
  }
};

struct ReturnAsked {
  uint16_t spdcid = 0;
  uint32_t psn = 0;
  uint32_t packets = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(spdcid, 16), v(psn, 32), v(packets, 23);
  }
};

struct ReturnOpen {
  uint16_t pdc = 0;
  uint8_t ipv6 = 0;
  uint64_t fa_hi = 0;
  uint64_t fa_lo = 0;
  uint16_t spdcid = 0;
  uint32_t start_psn = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(pdc, kPdcIndexBits), v(ipv6, 1), v(fa_hi, 64), v(fa_lo, 64);
    v(spdcid, 16), v(start_psn, 32);
  }
};

struct ReturnSettle {
  uint16_t spdcid = 0;
  uint16_t msg = 0;
  uint8_t refused = 0;
  uint8_t fail = 0;
  uint8_t code = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(spdcid, 16), v(msg, 10), v(refused, 1), v(fail, 1), v(code, 6);
  }
  bool operator==(const ReturnSettle&) const = default;
};

struct ReturnDue {
  uint16_t spdcid = 0;
  uint8_t packets = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(spdcid, 16), v(packets, 5);
  }
};

struct TxDone {
  uint8_t token = 0;
  uint8_t ctx = 0;
  uint8_t gen = 0;
  uint16_t msg = 0;
  contract::Status status = contract::Status::kOk;
  uint16_t detail = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(token, 1), v(ctx, 4), v(gen, kGenBits), v(msg, 10), v(status, 8),
        v(detail, 16);
  }
};

struct ReturnEnd {
  uint8_t read = 0;
  uint16_t pdc = 0;
  uint32_t packets = 0;
  uint32_t refused = 0;
  TxDone done = {};

  template <typename Visit>
  void Fields(Visit&& v) {
    v(read, 1), v(pdc, kPdcIndexBits), v(packets, 23), v(refused, 23);
    done.Fields(v);
  }
};

struct ReturnLate {
  uint8_t due = 0;
  uint8_t pending = 0;
  uint8_t respond = 0;
  Response answer = {};

  template <typename Visit>
  void Fields(Visit&& v) {
    v(due, 1), v(pending, 1), v(respond, 1);
    answer.Fields(v);
  }
};

struct ReturnVerdict {
  uint8_t respond = 0;
  Response rsp = {};
  uint8_t place = 0;
  uint16_t stream = 0;
  uint16_t bytes = 0;
  uint8_t segmented = 0;
  uint64_t iova = 0;
  uint8_t owner = 0;
  uint16_t spdcid = 0;
  uint8_t first = 0;
  uint8_t last = 0;
  uint8_t settle = 0;
  uint8_t fail = 0;
  uint8_t code = 0;
  uint16_t msg = 0;
  uint64_t stat = 0;

  template <typename Visit>
  void Fields(Visit&& v) {
    v(respond, 1);
    rsp.Fields(v);
    v(place, 1), v(stream, 14), v(bytes, 14), v(segmented, 1), v(iova, 64);
    v(owner, 8);
    v(spdcid, 16), v(first, 1), v(last, 1), v(settle, 1), v(fail, 1);
    v(code, 6), v(msg, 10), v(stat, 64);
  }
};

}  // namespace heddle::test
