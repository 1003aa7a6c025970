// SPDX-License-Identifier: Apache-2.0
// Checks of a transmit descriptor that need nothing but its own slot. Combinational.

module heddle_tx_check
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_tx_fetch_pkg::*;
(
  input  tx_desc_t    desc_i,
  input  logic [15:0] position_i,  // That of its slot.
  input  logic        fits_i,      // Its extension slots are there,
  input  logic        whole_i,     // without which it is refused in any case.
  input  logic        failed_i,    // It could not be read.
  output tx_desc_check_t   check_o
);
  localparam logic [7:0] KnownFlags =
      TxFlagCompletion | TxFlagInline | TxFlagInlineExt | TxFlagHeaderData |
      TxFlagDeliveryComplete | TxFlagFence | TxFlagMore;

  logic is_ext, is_inline, segments, extended, position_ok, opcode_ok, lengths_ok;
  assign is_ext    = (desc_i.flags & TxFlagInlineExt) != '0;
  assign is_inline = (desc_i.flags & TxFlagInline) != '0;
  assign segments  = desc_i.segments > 8'd1;
  assign extended  = position_ok && (is_ext || segments) && desc_i.ext_slots <= 8'd3;

  assign position_ok = desc_i.position == position_i && !failed_i;
  assign opcode_ok   = desc_i.opcode == OpcodeNop || desc_i.opcode == OpcodeSend ||
                       desc_i.opcode == OpcodeWrite || desc_i.opcode == OpcodeRead;

  always_comb begin
    lengths_ok = (desc_i.flags & ~KnownFlags) == '0 && !(is_inline && is_ext);
    if (desc_i.opcode == OpcodeNop && desc_i.length != '0) lengths_ok = 1'b0;
    // The data need a place, and the request carries none.
    if (desc_i.opcode == OpcodeRead && (is_inline || is_ext ||
                                        (desc_i.flags & TxFlagHeaderData) != '0)) lengths_ok = 1'b0;
    if (is_inline) begin
      if (desc_i.length > 32'(InlineBytes) || desc_i.segments != '0) lengths_ok = 1'b0;
      if (desc_i.ext_slots != '0) lengths_ok = 1'b0;
    end else if (is_ext) begin
      if (desc_i.length > 32'(InjectBytes) || desc_i.segments != '0) lengths_ok = 1'b0;
      if (32'(desc_i.ext_slots) != (desc_i.length + 32'(DescBytes - 1)) / 32'(DescBytes)) lengths_ok = 1'b0;
      if (!fits_i || desc_i.rsvd0 != '0) lengths_ok = 1'b0;
    end else if (segments) begin
      if (desc_i.segments > 8'(LocalSegments) || desc_i.length == '0) lengths_ok = 1'b0;
      if (desc_i.ext_slots != 8'd1 || !fits_i || desc_i.rsvd0 != '0) lengths_ok = 1'b0;
    end else begin
      if (desc_i.segments != 8'(desc_i.length != '0)) lengths_ok = 1'b0;
      if (desc_i.local_length != desc_i.length) lengths_ok = 1'b0;
      if (desc_i.ext_slots != '0 || desc_i.rsvd0 != '0) lengths_ok = 1'b0;
    end
    if (whole_i && !fits_i) lengths_ok = 1'b0;
  end

  assign check_o = {position_ok, opcode_ok, lengths_ok, position_ok && opcode_ok && lengths_ok && segments,
                    extended && fits_i ? 3'd1 + desc_i.ext_slots[2:0] : 3'd1, flow_hash(desc_i.peer, desc_i.rx_index)};

  logic unused_bits;
  assign unused_bits = ^desc_i;
endmodule
