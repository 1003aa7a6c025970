// SPDX-License-Identifier: Apache-2.0
// The operation that a descriptor of heddle_tx_fetch requests, and the check of its segments. Combinational.

module heddle_tx_operation
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic [TxW-1:0]   ctx_i,
  input  logic [GenW-1:0]  gen_i,
  input  tx_ctx_cfg_t      cfg_i,
  input  logic [GenW-1:0]  cq_gen_i,
  input  logic [15:0]      position_i,
  input  logic [2:0]       slots_i,        // That it still has.
  input  group_t           group_i,
  input  tx_desc_t         desc_i,
  input  logic             position_ok_i,  // Otherwise nothing of the descriptor counts.
  input  status_e          status_i,
  input  logic [63:0]      addr_i,         // Address of its first slot.
  input  logic             ext_kept_i,     // Extension slots with payload are kept until it ends.
  input  logic             pushed_i,       // Its payload was pushed: a number stands in place of a local address.
  input  logic [511:0]     segments_i,     // Its segments,
  input  logic             segmented_i,    // if it has more than one.
  output logic             segments_ok_o,
  output tx_op_t           op_o
);
  // ------------------------------------------------------------------- segments
  logic [LocalSegments-1:0][63:0] iova;
  logic [LocalSegments-1:0][31:0] length, rsvd;
  logic [33:0]                    sum;
  for (genvar i = 0; i < int'(LocalSegments); i++) begin : gen_segment
    tx_segment_t one;
    assign one       = segments_i[i*$bits(tx_segment_t) +: $bits(tx_segment_t)];
    assign iova[i]   = one.iova;
    assign length[i] = one.length;
    assign rsvd[i]   = one.rsvd0;
  end
  always_comb begin
    segments_ok_o = 1'b1;
    sum           = '0;
    for (int unsigned i = 0; i < LocalSegments; i++) begin
      sum = sum + 34'(length[i]);
      if (rsvd[i] != '0) segments_ok_o = 1'b0;
      if (i >= 32'(desc_i.segments) && (iova[i] != '0 || length[i] != '0)) segments_ok_o = 1'b0;
    end
    if (sum != 34'(desc_i.length)) segments_ok_o = 1'b0;
  end

  // ------------------------------------------------------------------ operation
  logic unordered, has_ext, has_inline;  // The class of the operation needs no order.
  assign has_ext    = (desc_i.flags & TxFlagInlineExt) != '0;
  assign has_inline = (desc_i.flags & TxFlagInline) != '0;
  always_comb begin
    unique case (desc_i.opcode)
      OpcodeSend, OpcodeTaggedSend: unordered = (cfg_i.ordered & OrderClassSend) == '0;
      OpcodeWrite:                  unordered = (cfg_i.ordered & OrderClassWrite) == '0;
      OpcodeRead:                   unordered = (cfg_i.ordered & OrderClassRead) == '0;
      default:                      unordered = 1'b0;
    endcase
  end
  always_comb begin
    op_o            = '0;
    op_o.ctx        = ctx_i;
    op_o.gen        = gen_i;
    op_o.owner      = cfg_i.function_;
    op_o.cq         = cfg_i.cq[CqW-1:0];
    op_o.cq_gen     = cq_gen_i;
    op_o.position   = position_i;
    op_o.slots      = slots_i;
    op_o.group      = group_i;
    op_o.opcode     = OpcodeNop;
    op_o.status     = status_i;
    op_o.job_id     = cfg_i.job_id[23:0];
    op_o.source_pid = cfg_i.source_pid[11:0];
    op_o.source_ri  = cfg_i.source_ri[11:0];
    op_o.rel        = (cfg_i.flags & TxCtxFlagRelative) != '0;
    op_o.dscp       = cfg_i.traffic_class[5:0];
    op_o.rud        = position_ok_i && unordered;
    if (position_ok_i) begin
      op_o.opcode        = desc_i.opcode;
      op_o.flags         = ext_kept_i ? desc_i.flags : desc_i.flags & ~TxFlagInlineExt;
      op_o.peer          = desc_i.peer;
      op_o.rx_index      = desc_i.rx_index;
      op_o.length        = desc_i.length;
      op_o.op_context    = desc_i.op_context;
      op_o.header_data   = desc_i.header_data;
      op_o.match_bits    = desc_i.match_bits;
      op_o.remote_offset = desc_i.remote_offset;
      op_o.inline_data   = !has_ext ? desc_i[511:8*InlineOffset] : pushed_i ? 128'(desc_i.local_iova) : '0;
      op_o.iova          = has_inline ? addr_i + 64'(InlineOffset) :
                           has_ext ? addr_i + 64'(DescBytes) :
                           segmented_i ? iova[0] : desc_i.local_iova;
    end
    op_o.segmented = segmented_i && status_i == StatusOk;
    for (int unsigned i = 0; i < LocalSegments; i++) begin
      op_o.lengths[i] = op_o.segmented ? length[i] : '0;
    end
    for (int unsigned i = 1; i < LocalSegments; i++) begin
      op_o.more_iova[i-1] = op_o.segmented ? iova[i] : '0;
    end
  end

  logic unused_bits;
  assign unused_bits = ^{cfg_i, desc_i};
endmodule
