// SPDX-License-Identifier: Apache-2.0
// Management bus: registers of space `mgmt`, mailbox DMA, table port, timer, and the
// registers of the slow path.
//
// One access at a time; reads and writes of registers take one cycle; a mailbox or
// table operation runs on its own and shows `go` until it ends. Writes to
// mailbox or table registers while their operation runs are ignored.
// Each write of `transport_cfg` with `close` = 1 is a strobe on `close_o`; the value read back is the one written.
// Owns `port_cfg` (TablePort) and `transport_cfg` (TableTransport); every other table is addressed through `tbl_*`.

`include "heddle_assert.svh"

module heddle_mgmt
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic tick_i,

  input  logic             mgmt_valid_i,
  output logic             mgmt_ready_o,
  input  logic             mgmt_write_i,
  input  logic [12:0]      mgmt_addr_i,
  input  logic [31:0]      mgmt_wdata_i,
  output logic [31:0]      mgmt_rdata_o,
  output logic             mgmt_event_o,

  // BAR0 registers.
  input  logic [63:0]      admin_command_base_i,
  input  logic [63:0]      admin_answer_base_i,
  input  logic [3:0]       admin_log2_i,
  input  logic [15:0]      admin_tail_i,
  input  logic             reset_i,
  output logic             reset_done_o,
  output logic [31:0]      device_status_o,
  output logic [31:0]      fatal_cause_o,
  input  logic [31:0]      version_i,
  input  logic [31:0]      context_limits_i,
  input  logic [31:0]      transport_limits_i,
  input  logic [31:0]      datapath_i,
  input  logic [31:0]      region_limits_i,

  output port_cfg_t        port_o,
  output transport_cfg_t   transport_o,
  output logic             close_o,         // Strobe: `close` of `transport_cfg` was written as 1.
  input  logic [31:0]      open_pdcs_i,     // As `mgmt_open_pdcs`.

  // Slow path (heddle_slow_path).
  input  logic [13:0]      slow_rx_bytes_i,
  output logic             slow_rx_pop_o,
  output logic [5:0]       slow_rx_word_o,
  input  logic [31:0]      slow_rx_data_i,  // The word asked for a cycle ago.
  output logic             slow_tx_wen_o,
  output logic [5:0]       slow_tx_word_o,
  output logic [31:0]      slow_tx_data_o,
  input  logic [31:0]      slow_tx_data_i,
  output logic             slow_tx_go_o,
  output logic [13:0]      slow_tx_bytes_o,
  input  logic [13:0]      slow_tx_bytes_i,
  input  logic             slow_tx_busy_i,

  // Tables of other units: `tbl_valid_o` bit by enum `table`.
  output logic [7:0]       tbl_valid_o,
  output table_req_t       tbl_req_o,
  input  table_rsp_t       tbl_rsp_i,       // OR of all units' answers (zero when not addressed).

  // Mailbox DMA.
  output logic             rd_valid_o,
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,
  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic             idle_o,          // No mailbox or table operation runs.
  output logic             deadline_valid_o,
  output logic [31:0]      deadline_o       // Ticks until `mgmt_timer` runs out.
);
  localparam int unsigned Words     = MailboxBytes / 8;   // 64-bit words.
  localparam int unsigned BeatWords = StrbW / 8;
  localparam int unsigned BeatW     = $clog2(MailboxBytes / StrbW);

  // --------------------------------------------------------------- bus access
  logic        ready_d, ready_q;
  logic [31:0] rdata_d, rdata_q;
  logic        access, write;   // First cycle of an access.
  logic [12:0] addr;
  assign access = mgmt_valid_i && !ready_q;
  assign write  = access && mgmt_write_i;
  assign addr   = {mgmt_addr_i[12:2], 2'b00};

  logic in_mailbox, in_table, in_slow_rx, in_slow_tx;
  assign in_slow_rx = addr[12:8] == MgmtSlowPathRxDataOffset[12:8];
  assign in_slow_tx = addr[12:8] == MgmtSlowPathTxDataOffset[12:8];
  assign in_mailbox = addr[12:8] == MgmtMailboxDataOffset[12:8];
  assign in_table   = addr[12:6] == MgmtTableDataOffset[12:6];

  logic [31:0] status_d, status_q, fatal_d, fatal_q;
  logic [15:0] head_d, head_q;
  logic [63:0] mbx_address_d, mbx_address_q;

  // ------------------------------------------------------------- mailbox DMA
  typedef enum logic [2:0] {
    MbxIdle    = 3'd0,
    MbxRead    = 3'd1,  // Offers the read.
    MbxFill    = 3'd2,  // Takes its data.
    MbxWrite   = 3'd3,  // Offers the write.
    MbxDrain   = 3'd4,  // Gives its data.
    MbxAnswer  = 3'd5   // Waits for its response.
  } mbx_state_e;

  mbx_state_e mbx_d, mbx_q;
  logic [8:0] mbx_bytes_d, mbx_bytes_q;
  logic       mbx_to_host_d, mbx_to_host_q;
  logic       mbx_error_d, mbx_error_q;
  logic [BeatW-1:0] beat_d, beat_q;

  logic [Words-1:0][63:0] mailbox_q;

  logic mbx_start, mbx_legal;
  assign mbx_start = write && addr == MgmtMailboxControlOffset[12:0] && mbx_q == MbxIdle &&
                     mgmt_wdata_i[MgmtMailboxControlGoLsb];
  assign mbx_legal = mgmt_wdata_i[2:0] == '0 && mgmt_wdata_i[8:0] != '0 &&
                     32'(mgmt_wdata_i[8:0]) <= MailboxBytes;

  logic last_beat;
  assign last_beat = 32'(beat_q) == (32'(mbx_bytes_q) - 1) / StrbW;

  assign rd_valid_o     = mbx_q == MbxRead;
  assign rd_rsp_ready_o = mbx_q == MbxFill;
  assign wr_valid_o     = mbx_q == MbxWrite;
  assign wr_data_valid_o = mbx_q == MbxDrain;
  assign rd_req_o.addr  = mbx_address_q;
  assign rd_req_o.bytes = 14'(mbx_bytes_q);
  assign rd_req_o.owner = '0;
  assign wr_req_o       = rd_req_o;

  assign wr_data_o      = mailbox_q[32'(beat_q) * BeatWords +: BeatWords];

  always_comb begin
    mbx_d         = mbx_q;
    mbx_bytes_d   = mbx_bytes_q;
    mbx_to_host_d = mbx_to_host_q;
    mbx_error_d   = mbx_error_q;
    beat_d        = beat_q;
    unique case (mbx_q)
      MbxIdle: begin
        beat_d = '0;
        if (mbx_start) begin
          mbx_bytes_d   = mgmt_wdata_i[8:0];
          mbx_to_host_d = mgmt_wdata_i[MgmtMailboxControlToHostLsb];
          mbx_error_d   = !mbx_legal;
          if (mbx_legal) mbx_d = mbx_to_host_d ? MbxWrite : MbxRead;
        end
      end
      MbxRead: if (rd_ready_i) mbx_d = MbxFill;
      MbxFill: begin
        if (rd_rsp_valid_i) begin
          beat_d = beat_q + 1'b1;
          if (rd_rsp_last_i) begin
            mbx_d       = MbxIdle;
            mbx_error_d = rd_rsp_error_i;
          end
        end
      end
      MbxWrite: if (wr_ready_i) mbx_d = MbxDrain;
      MbxDrain: begin
        if (wr_data_ready_i) begin
          beat_d = beat_q + 1'b1;
          if (last_beat) mbx_d = MbxAnswer;
        end
      end
      MbxAnswer: begin
        if (wr_rsp_valid_i) begin
          mbx_d       = MbxIdle;
          mbx_error_d = wr_rsp_error_i;
        end
      end
      default: mbx_d = MbxIdle;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mailbox_q <= '0;
    end else if (mbx_q == MbxFill && rd_rsp_valid_i) begin
      for (int unsigned i = 0; i < BeatWords; i++) begin
        // The last beat may reach beyond the transfer.
        if (32'(beat_q) * BeatWords + i < 32'(mbx_bytes_q) / 8) begin
          mailbox_q[5'(32'(beat_q) * BeatWords + i)] <= rd_rsp_data_i[64*i +: 64];
        end
      end
    end else if (write && in_mailbox && mbx_q == MbxIdle) begin
      mailbox_q[addr[7:3]][32*addr[2] +: 32] <= mgmt_wdata_i;
    end
  end

  // -------------------------------------------------------------- table port
  logic         tbl_busy_d, tbl_busy_q;
  logic         tbl_error_d, tbl_error_q;
  table_op_e    tbl_op_d, tbl_op_q;
  table_e       tbl_sel_d, tbl_sel_q;
  logic [15:0]  tbl_index_d, tbl_index_q;
  logic [511:0] tbl_data_q;
  port_cfg_t      port_q;
  transport_cfg_t transport_d, transport_q;
  logic           transport_write, close_q;
  assign transport_d     = tbl_data_q;
  assign transport_write = rsp.done && !rsp.error && tbl_sel_q == TableTransport && tbl_op_q == TableOpWrite;

  logic tbl_start;
  assign tbl_start = write && addr == MgmtTableControlOffset[12:0] && !tbl_busy_q &&
                     mgmt_wdata_i[MgmtTableControlGoLsb];

  logic tbl_mine, tbl_none;  // Ours; nobody's.
  table_rsp_t rsp;
  assign tbl_mine = tbl_sel_q == TablePort || tbl_sel_q == TableTransport;
  assign tbl_none = tbl_sel_q == TableNone || tbl_sel_q > TableTransport;
  always_comb begin
    rsp = tbl_rsp_i;
    if (tbl_mine || tbl_none) begin
      rsp.done  = 1'b1;
      rsp.error = tbl_none || tbl_index_q != '0;
      rsp.data  = tbl_sel_q == TablePort ? port_q : transport_q;
    end
    if (!tbl_busy_q) rsp.done = 1'b0;
  end

  always_comb begin
    tbl_valid_o = '0;
    if (tbl_busy_q && !tbl_mine && !tbl_none) tbl_valid_o[tbl_sel_q[2:0]] = 1'b1;
  end
  assign tbl_req_o.op    = tbl_op_q;
  assign tbl_req_o.sel   = tbl_sel_q;
  assign tbl_req_o.index = tbl_index_q;
  assign tbl_req_o.data  = tbl_data_q;

  always_comb begin
    tbl_busy_d  = tbl_busy_q && !rsp.done;
    tbl_error_d = tbl_error_q;
    tbl_op_d    = tbl_op_q;
    tbl_sel_d   = tbl_sel_q;
    tbl_index_d = tbl_index_q;
    if (rsp.done) tbl_error_d = rsp.error;
    if (tbl_start) begin
      tbl_busy_d  = 1'b1;
      tbl_error_d = 1'b0;
      tbl_index_d = mgmt_wdata_i[15:0];
      tbl_sel_d   = table_e'(mgmt_wdata_i[23:16]);
      tbl_op_d    = table_op_e'(mgmt_wdata_i[25:24]);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tbl_data_q <= '0;
      port_q      <= '0;
      transport_q <= '0;
      close_q     <= 1'b0;
    end else begin
      close_q <= transport_write && transport_d.close[0];
      if (rsp.done && !rsp.error && tbl_op_q == TableOpRead) begin
        tbl_data_q <= rsp.data;
      end else if (write && in_table && !tbl_busy_q) begin
        tbl_data_q[32*addr[5:2] +: 32] <= mgmt_wdata_i;
      end
      if (rsp.done && !rsp.error && tbl_mine && tbl_op_q == TableOpWrite) begin
        if (tbl_sel_q == TablePort) port_q <= tbl_data_q;
        else                        transport_q <= transport_d;
      end
    end
  end
  assign port_o      = port_q;
  assign transport_o = transport_q;
  assign close_o     = close_q;

  // ----------------------------------------------------------- time, slow path
  logic [31:0] ticks_q, timer_q;
  logic        timer_write, expired_q;
  assign timer_write      = write && addr == MgmtTimerOffset[12:0];
  assign deadline_valid_o = timer_q != '0;
  assign deadline_o       = timer_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ticks_q   <= '0;
      timer_q   <= '0;
      expired_q <= 1'b0;
    end else begin
      if (tick_i) ticks_q <= ticks_q + 1'b1;
      if (timer_write) begin
        timer_q   <= mgmt_wdata_i;
        expired_q <= 1'b0;
      end else if (tick_i && timer_q != '0) begin
        timer_q   <= timer_q - 1'b1;
        expired_q <= timer_q == 32'd1;
      end
    end
  end

  assign slow_rx_pop_o   = write && addr == MgmtSlowPathRxStatusOffset[12:0] &&
                           mgmt_wdata_i[MgmtSlowPathRxStatusPopLsb];
  assign slow_rx_word_o  = addr[7:2];
  assign slow_tx_wen_o   = write && in_slow_tx;
  assign slow_tx_word_o  = addr[7:2];
  assign slow_tx_data_o  = mgmt_wdata_i;
  assign slow_tx_go_o    = write && addr == MgmtSlowPathTxControlOffset[12:0] &&
                           mgmt_wdata_i[MgmtSlowPathTxControlGoLsb];
  assign slow_tx_bytes_o = mgmt_wdata_i[13:0];

  // ---------------------------------------------------------------- registers
  logic events_admin, events_reset, events_rx;
  assign events_admin = admin_tail_i != head_q;
  assign events_reset = reset_i;
  assign events_rx    = slow_rx_bytes_i != '0;
  assign mgmt_event_o = events_admin || events_reset || events_rx || expired_q;
  assign reset_done_o = write && addr == MgmtResetDoneOffset[12:0];
  assign device_status_o = status_q;
  assign fatal_cause_o   = fatal_q;

  always_comb begin
    status_d      = status_q;
    fatal_d       = fatal_q;
    head_d        = head_q;
    mbx_address_d = mbx_address_q;
    if (write) begin
      unique case (addr)
        MgmtStatusOffset[12:0]:     status_d = mgmt_wdata_i;
        MgmtFatalCauseOffset[12:0]: fatal_d  = mgmt_wdata_i;
        MgmtAdminHeadOffset[12:0]:  head_d   = mgmt_wdata_i[15:0];
        MgmtMailboxAddressOffset[12:0]: begin
          if (mbx_q == MbxIdle) mbx_address_d[31:0] = mgmt_wdata_i;
        end
        MgmtMailboxAddressOffset[12:0] + 13'd4: begin
          if (mbx_q == MbxIdle) mbx_address_d[63:32] = mgmt_wdata_i;
        end
        default: ;
      endcase
    end
  end

  always_comb begin
    rdata_d = rdata_q;
    if (access) begin
      rdata_d = '0;
      unique case (addr)
        MgmtEventsOffset[12:0]:      begin
          rdata_d = {28'b0, expired_q, events_rx, events_reset, events_admin};
        end
        MgmtStatusOffset[12:0]:      rdata_d = status_q;
        MgmtFatalCauseOffset[12:0]:  rdata_d = fatal_q;
        MgmtAdminCommandBaseOffset[12:0]:         rdata_d = admin_command_base_i[31:0];
        MgmtAdminCommandBaseOffset[12:0] + 13'd4: rdata_d = admin_command_base_i[63:32];
        MgmtAdminAnswerBaseOffset[12:0]:          rdata_d = admin_answer_base_i[31:0];
        MgmtAdminAnswerBaseOffset[12:0] + 13'd4:  rdata_d = admin_answer_base_i[63:32];
        MgmtAdminSizeOffset[12:0]:       rdata_d = {28'b0, admin_log2_i};
        MgmtAdminTailOffset[12:0]:       rdata_d = {16'b0, admin_tail_i};
        MgmtAdminHeadOffset[12:0]:       rdata_d = {16'b0, head_q};
        MgmtVersionOffset[12:0]:         rdata_d = version_i;
        MgmtContextLimitsOffset[12:0]:   rdata_d = context_limits_i;
        MgmtTransportLimitsOffset[12:0]: rdata_d = transport_limits_i;
        MgmtDatapathOffset[12:0]:        rdata_d = datapath_i;
        MgmtRegionLimitsOffset[12:0]:    rdata_d = region_limits_i;
        MgmtTicksOffset[12:0]:           rdata_d = ticks_q;
        MgmtTimerOffset[12:0]:           rdata_d = timer_q;
        MgmtOpenPdcsOffset[12:0]:        rdata_d = open_pdcs_i;
        MgmtSlowPathRxStatusOffset[12:0]: rdata_d = {18'b0, slow_rx_bytes_i};
        MgmtSlowPathTxControlOffset[12:0]: begin
          rdata_d = {slow_tx_busy_i, 17'b0, slow_tx_bytes_i};
        end
        MgmtMailboxAddressOffset[12:0]:         rdata_d = mbx_address_q[31:0];
        MgmtMailboxAddressOffset[12:0] + 13'd4: rdata_d = mbx_address_q[63:32];
        MgmtMailboxControlOffset[12:0]: begin
          rdata_d = {13'b0, mbx_error_q, mbx_q != MbxIdle, mbx_to_host_q, 7'b0, mbx_bytes_q};
        end
        MgmtTableControlOffset[12:0]: begin
          rdata_d = {tbl_busy_q, tbl_error_q, 4'b0, tbl_op_q, tbl_sel_q, tbl_index_q};
        end
        default: begin
          if (in_mailbox) rdata_d = mailbox_q[addr[7:3]][32*addr[2] +: 32];
          if (in_table) rdata_d = tbl_data_q[32*addr[5:2] +: 32];
          if (in_slow_tx) rdata_d = slow_tx_data_i;
        end
      endcase
    end
  end

  logic slow_read_q;  // The access reads the waiting frame, which is in a memory.
  assign ready_d      = access;
  assign mgmt_ready_o = ready_q;
  assign mgmt_rdata_o = slow_read_q ? slow_rx_data_i : rdata_q;
  assign idle_o       = mbx_q == MbxIdle && !tbl_busy_q && !close_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ready_q       <= 1'b0;
      status_q      <= '0;
      fatal_q       <= '0;
      head_q        <= '0;
      mbx_q         <= MbxIdle;
      mbx_address_q <= '0;
      mbx_bytes_q   <= '0;
      mbx_to_host_q <= 1'b0;
      mbx_error_q   <= 1'b0;
      tbl_busy_q    <= 1'b0;
      tbl_error_q   <= 1'b0;
      tbl_op_q      <= TableOpRead;
      tbl_sel_q     <= TableNone;
      tbl_index_q   <= '0;
    end else begin
      ready_q       <= ready_d;
      status_q      <= status_d;
      fatal_q       <= fatal_d;
      head_q        <= head_d;
      mbx_q         <= mbx_d;
      mbx_address_q <= mbx_address_d;
      mbx_bytes_q   <= mbx_bytes_d;
      mbx_to_host_q <= mbx_to_host_d;
      mbx_error_q   <= mbx_error_d;
      tbl_busy_q    <= tbl_busy_d;
      tbl_error_q   <= tbl_error_d;
      tbl_op_q      <= tbl_op_d;
      tbl_sel_q     <= tbl_sel_d;
      tbl_index_q   <= tbl_index_d;
    end
  end

  always_ff @(posedge clk_i) begin
    rdata_q     <= rdata_d;
    slow_read_q <= access && in_slow_rx;
    beat_q      <= beat_d;
  end

  logic unused;
  assign unused = ^mgmt_addr_i[1:0];

  `HEDDLE_ASSERT(OneTable_A, $onehot0(tbl_valid_o))
endmodule
