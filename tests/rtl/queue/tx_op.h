// SPDX-License-Identifier: Apache-2.0
// The operation that heddle_tx_fetch makes of a descriptor: tx_op_t of
// heddle_pkg.sv.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/queue/bits.h"

namespace heddle::test {

struct TxOp {
  bool token;
  uint32_t ctx, gen, owner, cq, cq_gen, position, slots;
  bool grouped;
  uint32_t group, members;
  contract::Opcode opcode;
  uint32_t flags;
  contract::Status status;
  uint32_t peer, rx_index, length;
  uint64_t op_context, header_data, match_bits, remote_offset, iova;
  uint64_t inline_hi, inline_lo;
  uint32_t job_id, source_pid, source_ri, rel, dscp, rud;
  bool segmented;
  std::array<uint64_t, 4> segment_iova;
  std::array<uint32_t, 4> segment_length;
};

// The next `kTxOpBits` of `r`.
template <typename Reader>
TxOp TakeTxOp(Reader& r) {
  TxOp op;
  op.token = r.Take(1);
  op.ctx = uint32_t(r.Take(4));
  op.gen = uint32_t(r.Take(kGenBits));
  op.owner = uint32_t(r.Take(8));
  op.cq = uint32_t(r.Take(5));
  op.cq_gen = uint32_t(r.Take(kGenBits));
  op.position = uint32_t(r.Take(16));
  op.slots = uint32_t(r.Take(3));
  op.grouped = r.Take(1);
  op.group = uint32_t(r.Take(5));
  op.members = uint32_t(r.Take(12));
  op.opcode = contract::Opcode(r.Take(8));
  op.flags = uint32_t(r.Take(8));
  op.status = contract::Status(r.Take(8));
  op.peer = uint32_t(r.Take(32));
  op.rx_index = uint32_t(r.Take(16));
  op.length = uint32_t(r.Take(32));
  op.op_context = r.Take(64);
  op.header_data = r.Take(64);
  op.match_bits = r.Take(64);
  op.remote_offset = r.Take(64);
  op.iova = r.Take(64);
  op.inline_hi = r.Take(64);
  op.inline_lo = r.Take(64);
  op.job_id = uint32_t(r.Take(24));
  op.source_pid = uint32_t(r.Take(12));
  op.source_ri = uint32_t(r.Take(12));
  op.rel = uint32_t(r.Take(1));
  op.dscp = uint32_t(r.Take(6));
  op.rud = uint32_t(r.Take(1));
  op.segmented = r.Take(1);
  op.segment_iova[0] = op.iova;
  for (size_t i = 4; i-- > 1;) {
    op.segment_iova[i] = r.Take(64);
  }
  for (size_t i = 4; i-- > 0;) {
    op.segment_length[i] = uint32_t(r.Take(32));
  }
  return op;
}

}  // namespace heddle::test
