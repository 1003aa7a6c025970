// SPDX-License-Identifier: Apache-2.0
// From packets to the MAC: builder, payload buffer and framer as in the NIC.

module tx_frames_probe
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  port_cfg_t        port_i,
  input  logic             tbl_valid_i,
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,
  input  logic             msg_valid_i,
  input  logic [MsgW-1:0]  msg_index_i,
  input  msg_packet_t      msg_data_i,
  input  logic             pdc_valid_i,
  input  logic [PdcW-1:0]  pdc_index_i,
  input  pdc_peer_t        pdc_data_i,

  input  logic             pkt_valid_i,
  output logic             pkt_ready_o,
  input  tx_packet_t       pkt_i,
  input  logic             rsp_valid_i,
  output logic             rsp_ready_o,
  input  response_t        rsp_i,

  output logic             rd_valid_o,
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,

  output logic             tvalid_o,
  input  logic             tready_i,
  output logic [DataW-1:0] tdata_o,
  output logic [StrbW-1:0] tkeep_o,
  output logic             tlast_o,
  output logic             idle_o
);
  logic             len_valid, len_ready, rec_valid, rec_ready, rec_error;
  logic [13:0]      len_bytes;
  logic [31:0]      rec_crc;
  logic             head_valid, head_ready, pay_valid, pay_ready;
  frame_head_t      head;
  logic [DataW-1:0] pay_data;
  logic             idle_build, idle_framer;
  logic [SeqW-1:0]  seq_done, back_done;
  logic             back_ready;
  logic             fail;
  logic [MsgW-1:0]  fail_msg;
  logic [TxW-1:0]   fail_ctx;
  logic [GenW-1:0]  fail_gen;
  logic [NumStat-1:0] stat;
  payload_req_t     payload;
  logic             frame, pause;
  logic [13:0]      frame_bytes;

  heddle_tx_build u_build (
    .clk_i, .rst_ni, .port_i, .ect_i(1'b0),
    .tbl_valid_i, .tbl_req_i, .tbl_rsp_o,
    .msg_valid_i, .msg_index_i, .msg_data_i,
    .move_i(1'b0), .move_msg_i('0), .move_slot_i('0), .spill_base_i('0),
    .msg_spilled_i(1'b0), .in_nic_i('0), .nic_area_i('0),
    .pdc_valid_i, .pdc_index_i, .pdc_data_i,
    .alive_i('1), .gen_i('0),
    .pkt_valid_i, .pkt_ready_o, .pkt_i,
    .back_valid_i(1'b0), .back_ready_o(back_ready), .back_i('0), .rsp_valid_i, .rsp_ready_o, .rsp_i,
    .rd_valid_o, .rd_ready_i, .rd_req_o(payload),
    .len_valid_o(len_valid), .len_ready_i(len_ready), .len_bytes_o(len_bytes),
    .rec_valid_i(rec_valid), .rec_ready_o(rec_ready), .rec_error_i(rec_error),
    .rec_crc_i(rec_crc),
    .head_valid_o(head_valid), .head_ready_i(head_ready), .head_o(head),
    .seq_done_o(seq_done), .back_done_o(back_done), .pause_o(pause), .fail_o(fail), .fail_msg_o(fail_msg), .fail_ctx_o(fail_ctx),
    .fail_gen_o(fail_gen), .stat_o(stat), .idle_o(idle_build)
  );

  heddle_tx_payload #(.DataW(DataW)) u_payload (
    .clk_i, .rst_ni,
    .len_valid_i(len_valid), .len_ready_o(len_ready), .len_bytes_i(len_bytes),
    .rsp_valid_i(rd_rsp_valid_i), .rsp_ready_o(rd_rsp_ready_o), .rsp_data_i(rd_rsp_data_i),
    .rsp_last_i(rd_rsp_last_i), .rsp_error_i(1'b0),
    .rec_valid_o(rec_valid), .rec_ready_i(rec_ready), .rec_error_o(rec_error),
    .rec_crc_o(rec_crc),
    .out_valid_o(pay_valid), .out_ready_i(pay_ready), .out_data_o(pay_data)
  );

  heddle_tx_framer #(.DataW(DataW)) u_framer (
    .clk_i, .rst_ni,
    .head_valid_i(head_valid), .head_ready_o(head_ready), .head_i(head),
    .pay_valid_i(pay_valid), .pay_ready_o(pay_ready), .pay_data_i(pay_data),
    .tvalid_o, .tready_i, .tdata_o, .tkeep_o, .tlast_o,
    .frame_o(frame), .frame_bytes_o(frame_bytes), .idle_o(idle_framer)
  );

  assign idle_o = idle_build && idle_framer;

  logic unused_outputs;
  assign rd_req_o = payload.gather.read;
  assign unused_outputs = ^{payload, seq_done, back_done, back_ready, fail, fail_msg, fail_ctx, fail_gen, stat, frame,
                            frame_bytes, pause};
endmodule
