// SPDX-License-Identifier: Apache-2.0
// The NIC: host interface, transmit and receive paths, UET transport, management.
//
// Interfaces
// - AXI4 slave (64-bit; single beats, and bursts inside a slot of a push window): BAR0 at
//   address 0, BAR2 at 0x100000.
// - AXI4 master to host memory, DataW bits; AxUSER is the owning function.
// - AXI4-Stream to and from the MAC, frames without FCS; rx `tuser` high with
//   the last beat marks a frame the MAC found bad.
// - MSI-X: one vector number per interrupt, held until taken.
// - Management bus: one 32-bit access at a time; `mgmt_ready_o` ends it.
// - `tick_i`: a pulse is one unit of every timer. `idle_o`: no unit has work;
//   then nothing happens before `deadline_o` more ticks (if `deadline_valid_o`)
//   unless an input changes.

module heddle_nic
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
#(
  parameter  int unsigned DataW = 512,         // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8,
  localparam int unsigned IdW   = 9
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             tick_i,

  // BARs: AXI4 slave.
  input  logic             s_axi_awvalid_i,
  output logic             s_axi_awready_o,
  input  logic [20:0]      s_axi_awaddr_i,
  input  logic [7:0]       s_axi_awlen_i,
  input  logic             s_axi_wvalid_i,
  output logic             s_axi_wready_o,
  input  logic [511:0]     s_axi_wdata_i,
  input  logic [63:0]      s_axi_wstrb_i,
  input  logic             s_axi_wlast_i,
  output logic             s_axi_bvalid_o,
  input  logic             s_axi_bready_i,
  output logic [1:0]       s_axi_bresp_o,
  input  logic             s_axi_arvalid_i,
  output logic             s_axi_arready_o,
  input  logic [20:0]      s_axi_araddr_i,
  input  logic [7:0]       s_axi_arlen_i,
  output logic             s_axi_rvalid_o,
  input  logic             s_axi_rready_i,
  output logic [511:0]     s_axi_rdata_o,
  output logic [1:0]       s_axi_rresp_o,
  output logic             s_axi_rlast_o,

  // Host memory: AXI4 master.
  output logic             m_axi_awvalid_o,
  input  logic             m_axi_awready_i,
  output logic [IdW-1:0]   m_axi_awid_o,
  output logic [63:0]      m_axi_awaddr_o,
  output logic [7:0]       m_axi_awlen_o,
  output logic [2:0]       m_axi_awsize_o,
  output logic [1:0]       m_axi_awburst_o,
  output logic [7:0]       m_axi_awuser_o,
  output logic             m_axi_wvalid_o,
  input  logic             m_axi_wready_i,
  output logic [DataW-1:0] m_axi_wdata_o,
  output logic [StrbW-1:0] m_axi_wstrb_o,
  output logic             m_axi_wlast_o,
  input  logic             m_axi_bvalid_i,
  output logic             m_axi_bready_o,
  input  logic [IdW-1:0]   m_axi_bid_i,
  input  logic [1:0]       m_axi_bresp_i,
  output logic             m_axi_arvalid_o,
  input  logic             m_axi_arready_i,
  output logic [IdW-1:0]   m_axi_arid_o,
  output logic [63:0]      m_axi_araddr_o,
  output logic [7:0]       m_axi_arlen_o,
  output logic [2:0]       m_axi_arsize_o,
  output logic [1:0]       m_axi_arburst_o,
  output logic [7:0]       m_axi_aruser_o,
  input  logic             m_axi_rvalid_i,
  output logic             m_axi_rready_o,
  input  logic [IdW-1:0]   m_axi_rid_i,
  input  logic [DataW-1:0] m_axi_rdata_i,
  input  logic [1:0]       m_axi_rresp_i,
  input  logic             m_axi_rlast_i,

  // MAC: AXI4-Stream.
  output logic             tx_axis_tvalid_o,
  input  logic             tx_axis_tready_i,
  output logic [DataW-1:0] tx_axis_tdata_o,   // Byte 0 of the frame in bits 7:0.
  output logic [StrbW-1:0] tx_axis_tkeep_o,
  output logic             tx_axis_tlast_o,
  input  logic             rx_axis_tvalid_i,  // No back-pressure.
  input  logic [DataW-1:0] rx_axis_tdata_i,
  input  logic [StrbW-1:0] rx_axis_tkeep_i,
  input  logic             rx_axis_tlast_i,
  input  logic             rx_axis_tuser_i,

  // MSI-X.
  output logic             msix_valid_o,
  input  logic             msix_ready_i,
  output logic [VecW-1:0]  msix_vector_o,
  output logic [7:0]       msix_owner_o,

  // Management bus and its event output.
  input  logic             mgmt_valid_i,
  output logic             mgmt_ready_o,      // High for one cycle at the end of an access.
  input  logic             mgmt_write_i,
  input  logic [12:0]      mgmt_addr_i,       // Byte address, multiple of 4.
  input  logic [31:0]      mgmt_wdata_i,
  output logic [31:0]      mgmt_rdata_o,      // Valid with mgmt_ready_o.
  output logic             mgmt_event_o,

  // Time.
  output logic             idle_o,
  output logic             deadline_valid_o,
  output logic [31:0]      deadline_o         // Ticks from now, at least 1.
);

  // --------------------------------------------------------------- identity
  localparam logic [63:0] Capability =
      64'(CapabilitySend) | 64'(CapabilityRod) | 64'(CapabilityRud) | 64'(CapabilityInline) |
      64'(CapabilityPush) | 64'(CapabilityPushExtensions) | 64'(CapabilityScatterGather) |
      64'(CapabilityWriteErrors) | 64'(CapabilityWrite) | 64'(CapabilityRead) |
      64'(CapabilityDeliveryComplete) |
      64'(CapabilityCounters) | 64'(CapabilityRegionEvent) | 64'(CapabilityMore) |
      64'(CapabilityFence) | 64'(CapabilityCongestion) | 64'(CapabilitySpill) |
      64'(CapabilitySlowPath) | 64'(CapabilityCrc) | 64'(CapabilityIpv6) | 64'(CapabilityVlan) |
      64'(CapabilityClosePdcs) | 64'(CapabilityCrcOrder) | 64'(CapabilityRelative) |
      64'(CapabilityTrimming) | 64'(CapabilityNativeIp) | 64'(CapabilityEarlyRelease);
  localparam logic [31:0] Version = {16'(ContractMajor), 16'(ContractMinor)};
  localparam logic [31:0] ContextLimits = {8'(NumVec), 8'(NumCq), 8'(NumRx), 8'(NumTx)};
  localparam logic [31:0] TransportLimits = {16'(NumPdc), 16'(NumMsg)};
  localparam logic [31:0] Datapath = {16'(MaxPayload), 16'(DataW)};
  localparam logic [31:0] RegionLimits = {8'd0, 8'(NumCounter), 16'(NumRegion)};

  localparam int unsigned ReqW = $bits(dma_req_t);

  logic [18:0] unit_idle;  // One bit per unit; the order has no meaning.

  // ----------------------------------------------------- control and statistics
  port_cfg_t      port;
  transport_cfg_t transport;
  logic           close;        // Strobe: every PDC is to be closed.
  logic [PdcW:0]  open_initiator, open_target;
  logic [31:0]    open_pdcs;
  assign open_pdcs = {16'(open_target), 16'(open_initiator)};
  doorbell_t   db;
  push_t       push;
  logic        db_valid, db_ready;
  logic [63:0] admin_command_base, admin_answer_base;
  logic [3:0]  admin_log2;
  logic [15:0] admin_tail;
  logic        host_reset, host_reset_done;
  logic [31:0] device_status, fatal_cause;
  logic [5:0]  stat_index;
  logic [63:0] stat_value;

  heddle_bar u_bar (
    .clk_i, .rst_ni,
    .s_axi_awvalid_i, .s_axi_awready_o, .s_axi_awaddr_i, .s_axi_awlen_i,
    .s_axi_wvalid_i, .s_axi_wready_o, .s_axi_wdata_i, .s_axi_wstrb_i, .s_axi_wlast_i,
    .s_axi_bvalid_o, .s_axi_bready_i, .s_axi_bresp_o,
    .s_axi_arvalid_i, .s_axi_arready_o, .s_axi_araddr_i, .s_axi_arlen_i,
    .s_axi_rvalid_o, .s_axi_rready_i, .s_axi_rdata_o, .s_axi_rresp_o, .s_axi_rlast_o,
    .db_valid_o(db_valid), .db_ready_i(db_ready), .db_o(db), .push_o(push),
    .admin_command_base_o(admin_command_base), .admin_answer_base_o(admin_answer_base),
    .admin_log2_o(admin_log2), .admin_tail_o(admin_tail),
    .reset_o(host_reset), .reset_done_i(host_reset_done),
    .device_status_i(device_status), .fatal_cause_i(fatal_cause),
    .capability_i(Capability), .version_i(Version), .context_limits_i(ContextLimits),
    .transport_limits_i(TransportLimits), .datapath_i(Datapath),
    .region_limits_i(RegionLimits),
    .stat_index_o(stat_index), .stat_value_i(stat_value),
    .idle_o(unit_idle[0])
  );

  // Doorbells go to the unit that owns the page; others are dropped.
  logic db_tx, db_rx, db_cq, db_counter;
  logic db_tx_ready, db_rx_ready, db_cq_ready, db_counter_ready;
  assign db_tx    = db.page - 8'(TxPageFirst) < 8'(NumTx);
  assign db_rx    = db.page - 8'(RxPageFirst) < 8'(NumRx);
  assign db_cq    = db.page - 8'(CqPageFirst) < 8'(NumCq);
  assign db_counter = db.page - 8'(CounterPageFirst) < 8'(NumCounter);
  assign db_ready = db_tx ? db_tx_ready : db_rx ? db_rx_ready : db_cq ? db_cq_ready :
                    db_counter ? db_counter_ready : 1'b1;

  logic [7:0]  tbl_valid;
  table_req_t  tbl_req;
  table_rsp_t  tbl_tx, tbl_rx, tbl_cq, tbl_hop, tbl_region, tbl_counter, tbl_rsp;
  logic        unused_tables;
  assign tbl_rsp = tbl_tx | tbl_rx | tbl_cq | tbl_hop | tbl_region | tbl_counter;
  assign unused_tables = ^tbl_valid;  // Not every number is a table.

  // ------------------------------------------------------------------- DMA
  logic [NumRd-1:0]            rd_valid, rd_ready, rd_rsp_valid, rd_rsp_ready, rd_rsp_last;
  logic [NumRd-1:0]            rd_rsp_error;
  logic [NumRd-1:0][ReqW-1:0]  rd_req;
  logic [NumRd-1:0][DataW-1:0] rd_rsp_data;
  logic [NumWr-1:0]            wr_valid, wr_ready, wr_data_valid, wr_data_ready;
  logic [NumWr-1:0]            wr_rsp_valid, wr_rsp_error;
  logic [NumWr-1:0][ReqW-1:0]  wr_req;
  logic [NumWr-1:0][DataW-1:0] wr_data;
  logic                        rd_error, wr_error;

  heddle_dma_read #(.DataW(DataW)) u_dma_read (
    .clk_i, .rst_ni,
    .req_valid_i(rd_valid), .req_ready_o(rd_ready), .req_i(rd_req),
    .rsp_valid_o(rd_rsp_valid), .rsp_ready_i(rd_rsp_ready), .rsp_data_o(rd_rsp_data),
    .rsp_last_o(rd_rsp_last), .rsp_error_o(rd_rsp_error),
    .m_axi_arvalid_o, .m_axi_arready_i, .m_axi_arid_o, .m_axi_araddr_o, .m_axi_arlen_o,
    .m_axi_arsize_o, .m_axi_arburst_o, .m_axi_aruser_o,
    .m_axi_rvalid_i, .m_axi_rready_o, .m_axi_rid_i, .m_axi_rdata_i, .m_axi_rresp_i,
    .m_axi_rlast_i,
    .error_o(rd_error), .idle_o(unit_idle[1])
  );

  heddle_dma_write #(.DataW(DataW)) u_dma_write (
    .clk_i, .rst_ni,
    .req_valid_i(wr_valid), .req_ready_o(wr_ready), .req_i(wr_req),
    .data_valid_i(wr_data_valid), .data_ready_o(wr_data_ready), .data_i(wr_data),
    .rsp_valid_o(wr_rsp_valid), .rsp_error_o(wr_rsp_error),
    .m_axi_awvalid_o, .m_axi_awready_i, .m_axi_awid_o, .m_axi_awaddr_o, .m_axi_awlen_o,
    .m_axi_awsize_o, .m_axi_awburst_o, .m_axi_awuser_o,
    .m_axi_wvalid_o, .m_axi_wready_i, .m_axi_wdata_o, .m_axi_wstrb_o, .m_axi_wlast_o,
    .m_axi_bvalid_i, .m_axi_bready_o, .m_axi_bid_i, .m_axi_bresp_i,
    .error_o(wr_error), .idle_o(unit_idle[2])
  );

  // ------------------------------------------------------------- management
  logic [13:0] slow_rx_bytes, slow_tx_go_bytes, slow_tx_bytes;
  logic        slow_rx_pop, slow_tx_wen, slow_tx_go, slow_tx_busy;
  logic [5:0]  slow_rx_word, slow_tx_word;
  logic [31:0] slow_rx_data, slow_tx_wdata, slow_tx_rdata;
  logic        mgmt_deadline_valid;
  logic [31:0] mgmt_deadline;

  heddle_mgmt #(.DataW(DataW)) u_mgmt (
    .clk_i, .rst_ni, .tick_i,
    .mgmt_valid_i, .mgmt_ready_o, .mgmt_write_i, .mgmt_addr_i, .mgmt_wdata_i, .mgmt_rdata_o,
    .mgmt_event_o,
    .admin_command_base_i(admin_command_base), .admin_answer_base_i(admin_answer_base),
    .admin_log2_i(admin_log2), .admin_tail_i(admin_tail),
    .reset_i(host_reset), .reset_done_o(host_reset_done),
    .device_status_o(device_status), .fatal_cause_o(fatal_cause),
    .version_i(Version), .context_limits_i(ContextLimits),
    .transport_limits_i(TransportLimits), .datapath_i(Datapath),
    .region_limits_i(RegionLimits),
    .port_o(port), .transport_o(transport), .close_o(close), .open_pdcs_i(open_pdcs),
    .slow_rx_bytes_i(slow_rx_bytes), .slow_rx_pop_o(slow_rx_pop),
    .slow_rx_word_o(slow_rx_word), .slow_rx_data_i(slow_rx_data),
    .slow_tx_wen_o(slow_tx_wen), .slow_tx_word_o(slow_tx_word),
    .slow_tx_data_o(slow_tx_wdata), .slow_tx_data_i(slow_tx_rdata),
    .slow_tx_go_o(slow_tx_go), .slow_tx_bytes_o(slow_tx_go_bytes),
    .slow_tx_bytes_i(slow_tx_bytes), .slow_tx_busy_i(slow_tx_busy),
    .tbl_valid_o(tbl_valid), .tbl_req_o(tbl_req), .tbl_rsp_i(tbl_rsp),
    .rd_valid_o(rd_valid[RdMailbox]), .rd_ready_i(rd_ready[RdMailbox]),
    .rd_req_o(rd_req[RdMailbox]),
    .rd_rsp_valid_i(rd_rsp_valid[RdMailbox]), .rd_rsp_ready_o(rd_rsp_ready[RdMailbox]),
    .rd_rsp_data_i(rd_rsp_data[RdMailbox]), .rd_rsp_last_i(rd_rsp_last[RdMailbox]),
    .rd_rsp_error_i(rd_rsp_error[RdMailbox]),
    .wr_valid_o(wr_valid[WrMailbox]), .wr_ready_i(wr_ready[WrMailbox]),
    .wr_req_o(wr_req[WrMailbox]),
    .wr_data_valid_o(wr_data_valid[WrMailbox]), .wr_data_ready_i(wr_data_ready[WrMailbox]),
    .wr_data_o(wr_data[WrMailbox]),
    .wr_rsp_valid_i(wr_rsp_valid[WrMailbox]), .wr_rsp_error_i(wr_rsp_error[WrMailbox]),
    .idle_o(unit_idle[3]),
    .deadline_valid_o(mgmt_deadline_valid), .deadline_o(mgmt_deadline)
  );

  // ------------------------------------------------------ completion queues
  logic [2:0]                             ev_valid, ev_ready;
  logic [2:0][$bits(cq_event_t)-1:0]      ev;
  logic [NumCq-1:0]                       credit_ok, credit_spare;
  logic [NumCq-1:0][GenW-1:0]             cq_gen;
  logic [2:0]                             credit_take;
  logic [2:0][CqW-1:0]                    credit_cq;
  logic                                   drained_tx, drained_rx;
  logic [NumStat-1:0]                     stat_cq, stat_counter;
  logic                                   count_valid, count_ready;
  count_t                                 count;

  heddle_cq #(.DataW(DataW)) u_cq (
    .clk_i, .rst_ni,
    .db_valid_i(db_valid && db_cq), .db_ready_o(db_cq_ready), .db_i(db),
    .tbl_valid_i(tbl_valid[3'(TableCq)]), .tbl_req_i(tbl_req), .tbl_rsp_o(tbl_cq),
    .ev_valid_i(ev_valid), .ev_ready_o(ev_ready), .ev_i(ev),
    .credit_ok_o(credit_ok), .credit_spare_o(credit_spare), .gen_o(cq_gen), .take_i(credit_take), .take_cq_i(credit_cq),
    .wr_valid_o(wr_valid[WrCq]), .wr_ready_i(wr_ready[WrCq]), .wr_req_o(wr_req[WrCq]),
    .wr_data_valid_o(wr_data_valid[WrCq]), .wr_data_ready_i(wr_data_ready[WrCq]),
    .wr_data_o(wr_data[WrCq]),
    .wr_rsp_valid_i(wr_rsp_valid[WrCq]), .wr_rsp_error_i(wr_rsp_error[WrCq]),
    .count_valid_o(count_valid), .count_ready_i(count_ready), .count_o(count),
    .drained_tx_o(drained_tx), .drained_rx_o(drained_rx),
    .msix_valid_o, .msix_ready_i, .msix_vector_o, .msix_owner_o,
    .stat_o(stat_cq), .idle_o(unit_idle[4])
  );

  heddle_counter #(.DataW(DataW)) u_counter (
    .clk_i, .rst_ni,
    .db_valid_i(db_valid && db_counter), .db_ready_o(db_counter_ready), .db_i(db),
    .tbl_valid_i(tbl_valid[3'(TableCounter)]), .tbl_req_i(tbl_req), .tbl_rsp_o(tbl_counter),
    .count_valid_i(count_valid), .count_ready_o(count_ready), .count_i(count),
    .wr_valid_o(wr_valid[WrCounter]), .wr_ready_i(wr_ready[WrCounter]),
    .wr_req_o(wr_req[WrCounter]),
    .wr_data_valid_o(wr_data_valid[WrCounter]), .wr_data_ready_i(wr_data_ready[WrCounter]),
    .wr_data_o(wr_data[WrCounter]),
    .wr_rsp_valid_i(wr_rsp_valid[WrCounter]), .wr_rsp_error_i(wr_rsp_error[WrCounter]),
    .stat_o(stat_counter), .idle_o(unit_idle[15])
  );

  // ---------------------------------------------------------------- transmit
  logic                        op_valid, op_ready, resolved_valid, resolved_ready;
  tx_fetched_t                 op;
  tx_resolved_t                resolved;
  logic                        av_invalidate;
  logic [TxW-1:0]              av_ctx;
  logic                        retire;
  logic [TxW-1:0]              retire_ctx;
  logic [GenW-1:0]             retire_gen;
  logic                        group_end;
  logic [TxW-1:0]              group_ctx;
  logic [GroupW-1:0]           group_number;
  logic                        pay_fail;
  logic [MsgW-1:0]             pay_fail_msg;
  logic [TxW-1:0]              pay_fail_ctx;
  logic [GenW-1:0]             pay_fail_gen;
  logic [NumTx-1:0]            tx_alive;
  logic [NumTx-1:0][GenW-1:0]  tx_gen;
  logic [NumTx-1:0][63:0]      tx_head_cell;
  logic [NumTx-1:0][3:0]       tx_ring_log2;
  logic [NumTx-1:0][63:0]      tx_spill_base;
  logic [NumTx-1:0][15:0]      tx_tail, tx_head, tx_told;
  logic [NumTx-1:0]            spill_busy, tx_early, spill_in_nic;
  logic [NumTx-1:0][SpillAreaW-1:0] spill_area;
  logic                        nic_pay_valid, nic_paid_valid, nic_paid_ready, nic_paid_last;
  spill_read_t                 nic_pay;
  logic [DataW-1:0]            nic_paid;
  logic [NumTx-1:0][7:0]       tx_owner;
  logic [FlowW-1:0]            look_flow, list_flow, wake_flow;
  logic [$clog2(MessageShare):0] look_count;
  logic                        look_stuck, look_waits, flow_take, forget, flows_ready, flow_stir, spill_stir;
  logic [TxW-1:0]              forget_ctx;
  logic [NumTx-1:0]            flow_waits, tx_room;
  logic                        keep;
  tx_keep_t                    keep_data;
  logic [NumTx-1:0]            keep_ok;
  logic                        again_valid, again_seen, again_taken, again_holds;
  tx_again_t                   again;
  logic                        list_put, list_pop, list_some, list_room;
  logic [RingLog2Max-1:0]      list_number, list_put_number, list_first, list_next, list_popped, list_following;
  logic [AgainW-1:0]           list_ahead;
  logic                        list_last;
  tx_keep_t                    list_in;
  tx_wait_t                    list_out;
  logic [NumTx-1:0]            list_closed;
  logic                        wake_valid, wake_take, list_renew, list_barred;
  logic [NumTx-1:0][$bits(tx_counters_t)-1:0] tx_counters;
  logic [NumStat-1:0]          stat_fetch;
  logic [PushTagW-1:0]         put_tag;
  logic                        put_begin, put_valid, put_last, put_ok;
  logic [511:0]                put;

  heddle_tx_fetch #(.DataW(DataW)) u_tx_fetch (
    .clk_i, .rst_ni,
    .db_valid_i(db_valid && db_tx), .db_ready_o(db_tx_ready), .db_i(db), .push_i(push),
    .tbl_valid_i(tbl_valid[3'(TableTxCtx)]), .tbl_req_i(tbl_req), .tbl_rsp_o(tbl_tx),
    .rd_valid_o(rd_valid[RdTxDesc]), .rd_ready_i(rd_ready[RdTxDesc]),
    .rd_req_o(rd_req[RdTxDesc]),
    .rd_rsp_valid_i(rd_rsp_valid[RdTxDesc]), .rd_rsp_ready_o(rd_rsp_ready[RdTxDesc]),
    .rd_rsp_data_i(rd_rsp_data[RdTxDesc]), .rd_rsp_last_i(rd_rsp_last[RdTxDesc]),
    .rd_rsp_error_i(rd_rsp_error[RdTxDesc]),
    .op_valid_o(op_valid), .op_ready_i(op_ready), .op_o(op),
    .put_tag_i(put_tag), .put_begin_o(put_begin), .put_valid_o(put_valid), .put_last_o(put_last),
    .put_ok_o(put_ok), .put_o(put),
    .av_invalidate_o(av_invalidate), .av_ctx_o(av_ctx),
    .credit_ok_i(credit_ok), .cq_gen_i(cq_gen),
    .credit_take_o(credit_take[1]), .credit_cq_o(credit_cq[1]),
    .retire_i(retire), .retire_ctx_i(retire_ctx), .retire_gen_i(retire_gen),
    .ctx_error_i(pay_fail), .ctx_error_ctx_i(pay_fail_ctx), .ctx_error_gen_i(pay_fail_gen),
    .group_i(group_end), .group_ctx_i(group_ctx), .group_number_i(group_number),
    .drained_i(drained_tx), .busy_i(spill_busy),
    .look_flow_o(look_flow), .look_count_i(look_count), .look_stuck_i(look_stuck),
    .look_waits_i(look_waits), .take_o(flow_take), .forget_o(forget), .forget_ctx_o(forget_ctx),
    .waits_i(flow_waits), .flows_ready_i(flows_ready), .stir_i(flow_stir || spill_stir),
    .keep_o(keep), .keep_data_o(keep_data), .keep_ok_i(keep_ok),
    .again_valid_i(again_valid), .again_i(again), .again_seen_o(again_seen),
    .again_taken_o(again_taken), .again_holds_o(again_holds), .room_o(tx_room),
    .alive_o(tx_alive), .gen_o(tx_gen), .head_cell_o(tx_head_cell),
    .ring_log2_o(tx_ring_log2), .spill_base_o(tx_spill_base), .early_o(tx_early), .owner_o(tx_owner),
    .tail_o(tx_tail),
    .counters_o(tx_counters),
    .stat_o(stat_fetch), .idle_o(unit_idle[5])
  );

  heddle_resolve #(.DataW(DataW)) u_resolve (
    .clk_i, .rst_ni,
    .ipv6_i(port.ipv6[0]),
    .op_valid_i(op_valid), .op_ready_o(op_ready), .op_i(op),
    .invalidate_i(av_invalidate), .invalidate_ctx_i(av_ctx),
    .rd_valid_o(rd_valid[RdAv]), .rd_ready_i(rd_ready[RdAv]), .rd_req_o(rd_req[RdAv]),
    .rd_rsp_valid_i(rd_rsp_valid[RdAv]), .rd_rsp_ready_o(rd_rsp_ready[RdAv]),
    .rd_rsp_data_i(rd_rsp_data[RdAv]), .rd_rsp_last_i(rd_rsp_last[RdAv]),
    .rd_rsp_error_i(rd_rsp_error[RdAv]),
    .op_valid_o(resolved_valid), .op_ready_i(resolved_ready), .op_o(resolved),
    .idle_o(unit_idle[6])
  );

  logic            msg_wr;
  logic [MsgW-1:0] msg_index;
  msg_packet_t     msg_packet;
  msg_done_t       msg_done;
  logic            open_valid, open_ready, open_again;
  logic [PdcW-1:0] open_pdc;
  pdc_peer_t       open_peer;
  logic            enq_valid, enq_ready;
  logic [PdcW-1:0] enq_pdc;
  logic [MsgW-1:0] enq_msg;
  logic [PktW-1:0] enq_last;
  logic            enq_read, enq_rma;
  logic [NumPdc-1:0] pdc_full;
  logic              pdc_scarce;
  logic            straight_valid, straight_ready, walked_valid, walked_ready;
  tx_done_t        straight, walked;
  logic            msg_free;
  logic [MsgW-1:0] msg_free_index;
  logic            unmap_valid, unmap_ready, unmap_keep, pdc_free, reopen_valid, reopen_ready;
  logic [PdcW-1:0] unmap_pdc, pdc_free_pdc, reopen_pdc;
  logic [SeqW-1:0] seq_issued, seq_done;
  logic            build_pause;
  logic            idle_msg, idle_walk, idle_pdc, pdc_waits;
  logic [WantW-1:0] pdc_want;

  heddle_tx_msg u_tx_msg (
    .clk_i, .rst_ni, .tick_i, .port_i(port), .transport_i(transport),
    .op_valid_i(resolved_valid), .op_ready_o(resolved_ready), .op_i(resolved),
    .wr_o(msg_wr), .wr_msg_o(msg_index), .wr_packet_o(msg_packet), .wr_done_o(msg_done),
    .open_valid_o(open_valid), .open_ready_i(open_ready), .open_pdc_o(open_pdc),
    .open_again_o(open_again), .open_peer_o(open_peer),
    .enq_valid_o(enq_valid), .enq_ready_i(enq_ready), .full_i(pdc_full), .scarce_i(pdc_scarce), .enq_pdc_o(enq_pdc),
    .enq_msg_o(enq_msg), .enq_last_o(enq_last), .enq_read_o(enq_read), .enq_rma_o(enq_rma),
    .done_valid_o(straight_valid), .done_ready_i(straight_ready), .done_o(straight),
    .free_i(msg_free), .free_msg_i(msg_free_index),
    .unmap_valid_i(unmap_valid), .unmap_ready_o(unmap_ready), .unmap_pdc_i(unmap_pdc),
    .unmap_keep_i(unmap_keep),
    .pdc_free_i(pdc_free), .pdc_free_pdc_i(pdc_free_pdc),
    .reopen_valid_i(reopen_valid), .reopen_ready_o(reopen_ready), .reopen_pdc_i(reopen_pdc),
    .want_o(pdc_want),
    .seq_issued_i(seq_issued), .seq_done_i(seq_done),
    .waits_o(pdc_waits), .idle_o(idle_msg)
  );

  logic [31:0] now_ns;
  heddle_clock_ns u_clock_ns (
    .clk_i, .rst_ni, .tick_i, .tick_ns_i(transport.tick_ns), .now_o(now_ns)
  );

  logic                          ack_valid, ack_ready;
  ack_event_t                    ack;
  logic                          msg_failed;
  logic                          msg_refused;
  logic [MsgW-1:0]               msg_refused_index;
  logic                          pkt_valid, pkt_ready;
  tx_packet_t                    pkt;
  logic                          walk_valid, walk_ready, back_valid, back_ready;
  pdc_walk_t                     walk;
  pdc_back_t                     back;
  logic                          sent, asked, asked_first, queue_held, queue_pop, queue_pass, queue_end;
  logic [MsgW-1:0]               sent_msg, queue_msg;
  return_asked_t                 asked_as;
  logic [PdcW-1:0]               queue_pdc;
  logic [PktW-1:0]               queue_last;
  logic [NumStat-1:0]            stat_pdc;
  logic                          pdc_deadline_valid;
  logic [31:0]                   pdc_deadline;

  logic                          due_valid, due_ready, lose_valid, lose_ready;
  return_due_t                   due;
  logic [NumPdc-1:0]             pdc_alive, pdc_stuck, back_gaps;
  logic                          msg_read, msg_collapsed, msg_answered;  // The walk's message.
  logic [MsgW-1:0]               walk_msg;
  logic [PdcWindow-1:0]          msg_held;
  logic [PdcW-1:0]               lose_pdc;
  status_e                       lose_status;
  logic [15:0]                   lose_detail;
  logic [SeqW-1:0]               back_decided, back_placed, back_issued, back_read;

  heddle_pdc_tx u_pdc_tx (
    .clk_i, .rst_ni, .tick_i, .port_i(port), .transport_i(transport), .close_i(close), .now_ns_i(now_ns),
    .open_valid_i(open_valid), .open_ready_o(open_ready), .open_pdc_i(open_pdc),
    .open_again_i(open_again), .open_peer_i(open_peer),
    .enq_valid_i(enq_valid), .enq_ready_o(enq_ready), .enq_pdc_i(enq_pdc),
    .enq_msg_i(enq_msg), .enq_last_i(enq_last), .enq_read_i(enq_read),
    .due_valid_i(due_valid), .due_ready_o(due_ready), .due_i(due), .gaps_i(back_gaps),
    .alive_o(pdc_alive), .full_o(pdc_full), .stuck_o(pdc_stuck), .scarce_o(pdc_scarce), .held_o(msg_held),
    .look_msg_i(walk_msg), .read_o(msg_read), .collapsed_o(msg_collapsed),
    .reopen_valid_o(reopen_valid), .reopen_ready_i(reopen_ready), .reopen_pdc_o(reopen_pdc),
    .want_i(pdc_want),
    .ack_valid_i(ack_valid && !ack_back), .ack_ready_o(ack_ready_pdc), .ack_i(ack),
    .fail_i(pay_fail), .fail_msg_i(pay_fail_msg),
    .refused_i(msg_refused), .refused_msg_i(msg_refused_index), .failed_o(msg_failed),
    .pkt_valid_o(pkt_valid), .pkt_ready_i(pkt_ready), .pause_i(build_pause), .pkt_o(pkt),
    .seq_issued_o(seq_issued),
    .walk_valid_o(walk_valid), .walk_ready_i(walk_ready), .walk_o(walk),
    .back_valid_i(back_valid), .back_ready_o(back_ready), .back_i(back),
    .sent_o(sent), .sent_msg_o(sent_msg),
    .asked_o(asked), .asked_first_o(asked_first), .asked_as_o(asked_as),
    .queue_pdc_i(queue_pdc), .queue_held_o(queue_held), .queue_msg_o(queue_msg),
    .queue_last_o(queue_last), .queue_pop_i(queue_pop), .queue_pass_i(queue_pass),
    .queue_end_i(queue_end),
    .stat_o(stat_pdc), .idle_o(idle_pdc), .open_o(open_initiator),
    .deadline_valid_o(pdc_deadline_valid), .deadline_o(pdc_deadline)
  );

  // The earliest timer. Delayed ACKs and PDCIDs that may not be used again yet count every tick.
  logic        ack_pending, slow_deadline_valid, target_deadline_valid;
  logic [31:0] slow_deadline, target_deadline;
  assign deadline_valid_o = pdc_deadline_valid || ack_pending || pdc_waits || mgmt_deadline_valid ||
                            slow_deadline_valid || back_deadline_valid || target_deadline_valid;
  always_comb begin
    deadline_o = ack_pending || pdc_waits ? 32'd1 : '1;
    if (pdc_deadline_valid && pdc_deadline < deadline_o)   deadline_o = pdc_deadline;
    if (back_deadline_valid && back_deadline < deadline_o) deadline_o = back_deadline;
    if (mgmt_deadline_valid && mgmt_deadline < deadline_o) deadline_o = mgmt_deadline;
    if (slow_deadline_valid && slow_deadline < deadline_o) deadline_o = slow_deadline;
    if (target_deadline_valid && target_deadline < deadline_o) deadline_o = target_deadline;
  end

  heddle_pdc_walk u_pdc_walk (
    .clk_i, .rst_ni, .refused_o(msg_refused), .refused_msg_o(msg_refused_index),
    .walk_valid_i(walk_valid), .walk_ready_o(walk_ready), .walk_i(walk),
    .back_valid_o(back_valid), .back_ready_i(back_ready), .back_o(back),
    .sent_i(sent), .sent_msg_i(sent_msg),
    .enq_i(enq_valid && enq_ready), .enq_msg_i(enq_msg), .enq_rma_i(enq_rma),
    .held_i(msg_held), .msg_o(walk_msg), .answered_i(msg_answered),
    .queue_pdc_o(queue_pdc), .queue_held_i(queue_held), .queue_msg_i(queue_msg),
    .queue_last_i(queue_last), .queue_pop_o(queue_pop), .queue_pass_o(queue_pass),
    .queue_end_o(queue_end),
    .failed_i(msg_failed), .seq_issued_i(seq_issued), .seq_done_i(seq_done),
    .read_i(msg_read), .collapsed_i(msg_collapsed),
    .back_decided_i(back_decided), .back_done_i(back_placed),
    .lose_valid_o(lose_valid), .lose_ready_i(lose_ready), .lose_pdc_o(lose_pdc),
    .lose_status_o(lose_status), .lose_detail_o(lose_detail),
    .unmap_valid_o(unmap_valid), .unmap_ready_i(unmap_ready), .unmap_pdc_o(unmap_pdc),
    .unmap_keep_o(unmap_keep),
    .pdc_free_o(pdc_free), .pdc_free_pdc_o(pdc_free_pdc),
    .done_valid_o(end_valid), .done_ready_i(end_ready), .done_o(walk_end),
    .idle_o(idle_walk)
  );

  logic           end_valid, end_ready, settle, idle_ends, read_cut;
  logic [MsgW-1:0]  read_cut_msg;
  logic [PktsW-1:0] read_cut_packets;
  return_end_t    walk_end;
  return_settle_t settled;
  heddle_read_ends u_read_ends (
    .clk_i, .rst_ni,
    .begin_i(asked && asked_first), .begin_msg_i(sent_msg), .begin_spdcid_i(asked_as.spdcid),
    .cut_o(read_cut), .cut_msg_o(read_cut_msg), .cut_packets_o(read_cut_packets),
    .back_decided_i(back_decided), .back_done_i(back_placed),
    .end_valid_i(end_valid), .end_ready_o(end_ready), .end_i(walk_end),
    .lose_valid_i(lose_valid), .lose_ready_o(lose_ready), .lose_pdc_i(lose_pdc),
    .lose_status_i(lose_status), .lose_detail_i(lose_detail),
    .settle_i(settle), .settled_i(settled),
    .due_valid_o(due_valid), .due_ready_i(due_ready), .due_o(due),
    .done_valid_o(walked_valid), .done_ready_i(walked_ready), .done_o(walked),
    .idle_o(idle_ends)
  );
  assign unit_idle[7] = idle_msg && idle_walk && idle_pdc && idle_ends;

  // Messages that ended on a PDC and those that never had one take turns: tx_msg serves no context while one of the
  // latter, or a drain token, waits, and hundreds may end with a PDC.
  logic     done_valid, done_ready, straight_first, walked_last_q;
  tx_done_t done;
  assign straight_first = straight_valid && (!walked_valid || walked_last_q);
  assign done_valid     = walked_valid || straight_valid;
  assign done           = straight_first ? straight : walked;
  assign walked_ready   = done_ready && !straight_first;
  assign straight_ready = done_ready && straight_first;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                       walked_last_q <= 1'b0;
    else if (done_valid && done_ready) walked_last_q <= !straight_first;
  end

  logic [NumStat-1:0] stat_release;
  heddle_tx_release u_tx_release (
    .clk_i, .rst_ni,
    .wr_valid_i(msg_wr), .wr_msg_i(msg_index), .wr_data_i(msg_done),
    .done_valid_i(done_valid), .done_ready_o(done_ready), .done_i(done),
    .alive_i(tx_alive), .gen_i(tx_gen), .head_cell_i(tx_head_cell),
    .ring_log2_i(tx_ring_log2), .counters_i(tx_counters),
    .tx_seq_issued_i(seq_issued), .tx_seq_done_i(seq_done),
    .back_decided_i(back_decided), .back_done_i(back_placed),
    .give_valid_i(give_valid), .give_ready_o(give_ready), .give_i(give),
    .give_done_o(give_done), .give_ok_o(give_ok), .owe_i(owe), .owe_msg_i(owe_msg), .head_o(tx_head), .told_o(tx_told),
    .ev_valid_o(ev_valid[1]), .ev_ready_i(ev_ready[1]), .ev_o(ev[1]),
    .free_o(msg_free), .free_msg_o(msg_free_index),
    .retire_o(retire), .retire_ctx_o(retire_ctx), .retire_gen_o(retire_gen),
    .group_o(group_end), .group_ctx_o(group_ctx), .group_number_o(group_number),
    .stat_o(stat_release), .idle_o(unit_idle[8])
  );

  logic                    give_valid, give_ready, give_done, give_ok, move, owe;
  tx_give_t                give;
  logic [MsgW-1:0]         move_msg, owe_msg;
  logic [RingLog2Max-1:0]  move_slot;
  heddle_tx_flows u_tx_flows (
    .clk_i, .rst_ni,
    .look_flow_i(look_flow), .look_count_o(look_count), .look_stuck_o(look_stuck),
    .look_waits_o(look_waits), .take_i(flow_take), .forget_i(forget), .forget_ctx_i(forget_ctx),
    .waits_o(flow_waits), .keep_i(keep), .keep_data_i(keep_data), .keep_ok_o(keep_ok),
    .ring_log2_i(tx_ring_log2), .closed_i(list_closed),
    .msg_valid_i(msg_wr), .msg_index_i(msg_index),
    .msg_flow_i(flow_of(resolved.op.ctx, resolved.op.peer, resolved.op.rx_index, resolved.op.rud)),
    .msg_sends_i(resolved.op.status == StatusOk && resolved.op.opcode != OpcodeNop),
    .enq_i(enq_valid && enq_ready), .enq_msg_i(enq_msg), .enq_pdc_i(enq_pdc),
    .free_i(msg_free), .free_msg_i(msg_free_index), .stuck_i(pdc_stuck),
    .put_o(list_put), .put_data_o(list_in), .put_number_o(list_put_number),
    .flow_i(list_flow), .head_o(list_first), .number_i(list_number), .info_o(list_out),
    .last_o(list_last), .next_o(list_next), .pop_i(list_pop), .pop_number_i(list_popped), .pop_next_i(list_following),
    .ahead_i(list_ahead), .some_o(list_some), .room_o(list_room),
    .wake_valid_o(wake_valid), .wake_flow_o(wake_flow), .wake_take_i(wake_take),
    .renew_i(list_renew), .barred_i(list_barred), .open_i(tx_room),
    .stir_o(flow_stir), .ready_o(flows_ready), .idle_o(unit_idle[18])
  );

  heddle_tx_spill #(.DataW(DataW)) u_tx_spill (
    .clk_i, .rst_ni,
    .alive_i(tx_alive), .gen_i(tx_gen), .ring_log2_i(tx_ring_log2),
    .spill_base_i(tx_spill_base), .early_i(tx_early), .owner_i(tx_owner), .tail_i(tx_tail), .head_i(tx_head), .told_i(tx_told),
    .msg_valid_i(msg_wr), .msg_index_i(msg_index), .msg_packet_i(msg_packet),
    .msg_done_i(msg_done),
    .enq_i(enq_valid && enq_ready), .enq_msg_i(enq_msg), .enq_pdc_i(enq_pdc),
    .pop_i(end_valid && end_ready), .pop_msg_i(walk_end.done.msg),
    .done_i(done_valid && done_ready && !done.token), .done_msg_i(done.msg),
    .free_i(msg_free), .free_msg_i(msg_free_index), .stuck_i(pdc_stuck),
    .give_valid_o(give_valid), .give_ready_i(give_ready), .give_o(give),
    .give_done_i(give_done), .give_ok_i(give_ok), .owe_o(owe), .owe_msg_o(owe_msg),
    .put_i(list_put), .put_data_i(list_in), .put_number_i(list_put_number), .closed_o(list_closed),
    .again_valid_o(again_valid), .again_o(again), .again_seen_i(again_seen),
    .again_taken_i(again_taken), .again_holds_i(again_holds), .room_i(tx_room),
    .flow_o(list_flow), .first_i(list_first), .number_o(list_number), .wait_i(list_out),
    .last_i(list_last), .next_i(list_next), .pop_o(list_pop), .pop_number_o(list_popped), .pop_next_o(list_following),
    .ahead_o(list_ahead), .some_i(list_some),
    .flow_room_i(list_room), .wake_valid_i(wake_valid), .wake_flow_i(wake_flow),
    .wake_take_o(wake_take), .renew_o(list_renew), .barred_o(list_barred), .stir_o(spill_stir),
    .move_o(move), .move_msg_o(move_msg), .move_slot_o(move_slot),
    .seq_issued_i(seq_issued), .seq_done_i(seq_done),
    .rd_valid_o(rd_valid[RdSpill]), .rd_ready_i(rd_ready[RdSpill]), .rd_req_o(rd_req[RdSpill]),
    .rd_rsp_valid_i(rd_rsp_valid[RdSpill]), .rd_rsp_ready_o(rd_rsp_ready[RdSpill]),
    .rd_rsp_data_i(rd_rsp_data[RdSpill]), .rd_rsp_last_i(rd_rsp_last[RdSpill]),
    .rd_rsp_error_i(rd_rsp_error[RdSpill]),
    .wr_valid_o(wr_valid[WrSpill]), .wr_ready_i(wr_ready[WrSpill]), .wr_req_o(wr_req[WrSpill]),
    .wr_data_valid_o(wr_data_valid[WrSpill]), .wr_data_ready_i(wr_data_ready[WrSpill]),
    .wr_data_o(wr_data[WrSpill]),
    .wr_rsp_valid_i(wr_rsp_valid[WrSpill]), .wr_rsp_error_i(wr_rsp_error[WrSpill]),
    .in_nic_o(spill_in_nic), .nic_area_o(spill_area),
    .pay_valid_i(nic_pay_valid), .pay_i(nic_pay), .pay_rsp_valid_o(nic_paid_valid), .pay_rsp_ready_i(nic_paid_ready),
    .pay_rsp_data_o(nic_paid), .pay_rsp_last_o(nic_paid_last),
    .busy_o(spill_busy), .idle_o(unit_idle[17])
  );

  // -------------------------------------------------------------------- frames
  logic             rsp_valid, rsp_ready;
  response_t        rsp;
  logic             len_valid, len_ready, rec_valid, rec_ready, rec_error;
  logic [13:0]      len_bytes;
  logic [31:0]      rec_crc;
  logic             built_valid, built_ready, slow_valid, slow_ready;
  logic             head_valid, head_ready, txp_valid, txp_ready;
  frame_head_t      built, slow, head;
  logic [DataW-1:0] txp_data;
  logic [NumStat-1:0] stat_build, stat_pushed;
  logic             idle_build, idle_pushed, idle_gather, idle_framer;
  logic             pay_valid, pay_ready, paid_valid, paid_ready, paid_last, paid_error;
  logic             gather_valid, gather_ready, gathered_valid, gathered_ready;
  logic             gathered_last, gathered_error;
  payload_req_t     pay_req;
  gather_req_t      gather_req;
  logic [DataW-1:0] paid_data, gathered_data;

  heddle_tx_build u_tx_build (
    .clk_i, .rst_ni, .port_i(port), .ect_i(transport.congestion[0]),
    .tbl_valid_i(tbl_valid[3'(TableNextHop)]), .tbl_req_i(tbl_req), .tbl_rsp_o(tbl_hop),
    .msg_valid_i(msg_wr), .msg_index_i(msg_index), .msg_data_i(msg_packet),
    .move_i(move), .move_msg_i(move_msg), .move_slot_i(move_slot), .spill_base_i(tx_spill_base),
    .msg_spilled_i(msg_done.slots == '0 && (msg_done.flags & TxFlagInlineExt) != '0),
    .in_nic_i(spill_in_nic), .nic_area_i(spill_area),
    .pdc_valid_i(open_valid && open_ready), .pdc_index_i(open_pdc), .pdc_data_i(open_peer),
    .alive_i(tx_alive), .gen_i(tx_gen),
    .pkt_valid_i(pkt_valid), .pkt_ready_o(pkt_ready), .pkt_i(pkt),
    .back_valid_i(back_valid_data), .back_ready_o(back_ready_data), .back_i(back_data),
    .rsp_valid_i(rsp_valid), .rsp_ready_o(rsp_ready), .rsp_i(rsp),
    .rd_valid_o(pay_valid), .rd_ready_i(pay_ready), .rd_req_o(pay_req),
    .len_valid_o(len_valid), .len_ready_i(len_ready), .len_bytes_o(len_bytes),
    .rec_valid_i(rec_valid), .rec_ready_o(rec_ready), .rec_error_i(rec_error),
    .rec_crc_i(rec_crc),
    .head_valid_o(built_valid), .head_ready_i(built_ready), .head_o(built),
    .seq_done_o(seq_done), .back_done_o(back_read), .pause_o(build_pause),
    .fail_o(pay_fail), .fail_msg_o(pay_fail_msg), .fail_ctx_o(pay_fail_ctx),
    .fail_gen_o(pay_fail_gen),
    .stat_o(stat_build), .idle_o(idle_build)
  );

  heddle_tx_pushed #(.DataW(DataW)) u_tx_pushed (
    .clk_i, .rst_ni,
    .put_tag_o(put_tag), .put_begin_i(put_begin), .put_valid_i(put_valid), .put_last_i(put_last),
    .put_ok_i(put_ok), .put_i(put),
    .req_valid_i(pay_valid), .req_ready_o(pay_ready), .req_i(pay_req),
    .rd_valid_o(gather_valid), .rd_ready_i(gather_ready), .rd_req_o(gather_req),
    .rd_rsp_valid_i(gathered_valid), .rd_rsp_ready_o(gathered_ready),
    .rd_rsp_data_i(gathered_data), .rd_rsp_last_i(gathered_last), .rd_rsp_error_i(gathered_error),
    .out_valid_o(paid_valid), .out_ready_i(paid_ready), .out_data_o(paid_data),
    .out_last_o(paid_last), .out_error_o(paid_error),
    .stat_o(stat_pushed), .idle_o(idle_pushed)
  );

  segments_t segments;
  assign segments = {resolved.op.more_iova, resolved.op.iova, resolved.op.lengths};
  heddle_tx_gather #(.DataW(DataW)) u_tx_gather (
    .clk_i, .rst_ni,
    .wr_valid_i(msg_wr && resolved.op.segmented), .wr_msg_i(msg_index),
    .wr_data_i(segments),
    .req_valid_i(gather_valid), .req_ready_o(gather_ready), .req_i(gather_req),
    .rd_valid_o(rd_valid[RdPayload]), .rd_ready_i(rd_ready[RdPayload]),
    .rd_req_o(rd_req[RdPayload]),
    .rd_rsp_valid_i(rd_rsp_valid[RdPayload]), .rd_rsp_ready_o(rd_rsp_ready[RdPayload]),
    .rd_rsp_data_i(rd_rsp_data[RdPayload]), .rd_rsp_last_i(rd_rsp_last[RdPayload]),
    .rd_rsp_error_i(rd_rsp_error[RdPayload]),
    .nic_valid_o(nic_pay_valid), .nic_o(nic_pay), .nic_rsp_valid_i(nic_paid_valid), .nic_rsp_ready_o(nic_paid_ready),
    .nic_rsp_data_i(nic_paid), .nic_rsp_last_i(nic_paid_last),
    .out_valid_o(gathered_valid), .out_ready_i(gathered_ready), .out_data_o(gathered_data),
    .out_last_o(gathered_last), .out_error_o(gathered_error),
    .idle_o(idle_gather)
  );

  heddle_tx_payload #(.DataW(DataW)) u_tx_payload (
    .clk_i, .rst_ni,
    .len_valid_i(len_valid), .len_ready_o(len_ready), .len_bytes_i(len_bytes),
    .rsp_valid_i(paid_valid), .rsp_ready_o(paid_ready), .rsp_data_i(paid_data),
    .rsp_last_i(paid_last), .rsp_error_i(paid_error),
    .rec_valid_o(rec_valid), .rec_ready_i(rec_ready), .rec_error_o(rec_error),
    .rec_crc_o(rec_crc),
    .out_valid_o(txp_valid), .out_ready_i(txp_ready), .out_data_o(txp_data)
  );

  heddle_tx_merge u_tx_merge (
    .clk_i, .rst_ni,
    .data_valid_i(built_valid), .data_ready_o(built_ready), .data_i(built),
    .slow_valid_i(slow_valid), .slow_ready_o(slow_ready), .slow_i(slow),
    .head_valid_o(head_valid), .head_ready_i(head_ready), .head_o(head)
  );

  logic        frame;
  logic [13:0] frame_bytes;
  heddle_tx_framer #(.DataW(DataW)) u_tx_framer (
    .clk_i, .rst_ni,
    .head_valid_i(head_valid), .head_ready_o(head_ready), .head_i(head),
    .pay_valid_i(txp_valid), .pay_ready_o(txp_ready), .pay_data_i(txp_data),
    .tvalid_o(tx_axis_tvalid_o), .tready_i(tx_axis_tready_i), .tdata_o(tx_axis_tdata_o),
    .tkeep_o(tx_axis_tkeep_o), .tlast_o(tx_axis_tlast_o),
    .frame_o(frame), .frame_bytes_o(frame_bytes), .idle_o(idle_framer)
  );
  assign unit_idle[9] = idle_build && idle_pushed && idle_gather && idle_framer;

  // ------------------------------------------------------------------- receive
  logic               rxk_valid, rxk_ready, rxk_squash, rxp_valid, rxp_ready;
  rx_packet_t         rxk;
  logic [DataW-1:0]   rxp_data;
  logic [NumStat-1:0] stat_parser;
  logic [13:0]        rx_bytes;

  heddle_rx_parser #(.DataW(DataW)) u_rx_parser (
    .clk_i, .rst_ni, .port_i(port),
    .trimmed_dscp_i({transport.dscp_trimmed_lasthop[5:0], transport.dscp_trimmed[5:0]}),
    .tvalid_i(rx_axis_tvalid_i), .tdata_i(rx_axis_tdata_i), .tkeep_i(rx_axis_tkeep_i),
    .tlast_i(rx_axis_tlast_i), .tuser_i(rx_axis_tuser_i),
    .pkt_valid_o(rxk_valid), .pkt_ready_i(rxk_ready), .pkt_o(rxk), .pkt_squash_o(rxk_squash),
    .pay_valid_o(rxp_valid), .pay_ready_i(rxp_ready), .pay_data_o(rxp_data),
    .stat_o(stat_parser), .rx_bytes_o(rx_bytes), .idle_o(unit_idle[10])
  );

  logic [NumStat-1:0] stat_slow;
  heddle_slow_path #(.DataW(DataW)) u_slow_path (
    .clk_i, .rst_ni, .tick_i, .port_i(port),
    .tvalid_i(rx_axis_tvalid_i), .tdata_i(rx_axis_tdata_i), .tkeep_i(rx_axis_tkeep_i),
    .tlast_i(rx_axis_tlast_i), .tuser_i(rx_axis_tuser_i),
    .rx_bytes_o(slow_rx_bytes), .rx_pop_i(slow_rx_pop),
    .rx_word_i(slow_rx_word), .rx_data_o(slow_rx_data),
    .tx_wen_i(slow_tx_wen), .tx_word_i(slow_tx_word),
    .tx_data_i(slow_tx_wdata), .tx_data_o(slow_tx_rdata),
    .tx_go_i(slow_tx_go), .tx_bytes_i(slow_tx_go_bytes),
    .tx_bytes_o(slow_tx_bytes), .tx_busy_o(slow_tx_busy),
    .head_valid_o(slow_valid), .head_ready_i(slow_ready), .head_o(slow),
    .stat_o(stat_slow), .idle_o(unit_idle[13]),
    .deadline_valid_o(slow_deadline_valid), .deadline_o(slow_deadline)
  );

  logic [11:0]                look_pid, look_ri;
  logic                       look_hit, look_event, look_rel, listens;
  return_code_e               look_miss;
  logic [RxW-1:0]             look_ctx, head_ctx;
  logic [23:0]                look_job, look_job_id;
  logic                       buf_valid, buf_pop;
  rx_buffer_t                 buffer;
  logic [15:0]                buf_released;
  logic                       buf_spare;
  logic                       drain_rx, drain_region, drain_ready;
  rma_request_t               region_req;
  rma_answer_t                region_answer;
  logic                       region_ready, visible;
  logic [31:0]                visible_psn;
  logic [PdcW-1:0]            visible_pdc;
  logic [NumRx-1:0]           rx_alive;
  logic [NumRx-1:0][GenW-1:0] rx_gen;
  logic [NumRx-1:0][$bits(rx_counters_t)-1:0] rx_counters;
  logic                       place_valid, place_ready;
  place_t                     place;
  logic [NumStat-1:0]         stat_accept;
  logic                       idle_accept, idle_place, idle_scatter;
  logic                       place_wr, place_wr_ready, place_wr_segmented, place_data, place_data_ready;
  logic                       place_rsp, place_rsp_error;
  logic [MsgW-1:0]            place_wr_msg;
  dma_req_t                   place_wr_req;
  logic [DataW-1:0]           place_wr_data;

  // ---------------------------------------------------------- return direction
  logic             back_look, back_take, back_ready_rx, job_valid, job_ready, place_job, place_job_ready;
  logic             return_job_valid, return_job_ready;
  rx_packet_t       back_pkt;
  return_verdict_t  back_verdict;
  return_late_t     back_late;
  logic             back_late_look, back_late_take;
  return_job_t      return_job;
  logic [NumPdc-1:0] return_room;
  logic             ack_back, ack_ready_pdc, ack_ready_back;  // The ACK is of return data.
  logic             back_valid_data, back_ready_data, sweep_valid, sweep_done, idle_return;
  return_packet_t   back_data;
  logic [RegionW-1:0] sweep_region;
  logic [NumStat-1:0] stat_return;
  logic             back_deadline_valid;
  logic [31:0]      back_deadline;
  logic             read_waits, reads_over, report_room, placed_valid, placed_ready, idle_reports, idle_return_rx;
  read_wait_t       read_wait;
  read_over_t       read_over;
  cq_event_t        placed;
  return_read_t     read_info;
  return_open_t     back_open;
  assign ack_back  = ack.dpdcid[PdcRoleBit] == RoleTarget;
  assign ack_ready = ack_back ? ack_ready_back : ack_ready_pdc;
  assign read_info = {msg_packet.ctx, msg_packet.gen, msg_packet.owner, msg_packet.length,
                      msg_packet.segmented, msg_packet.iova};
  assign back_open = {open_pdc, open_peer.rud, open_peer.ipv6, open_peer.fa, open_peer.spdcid, open_peer.start_psn};

  heddle_return_rx u_return_rx (
    .clk_i, .rst_ni, .tick_i, .port_i(port), .transport_i(transport), .now_ns_i(now_ns),
    .open_i(open_valid && open_ready), .open_info_i(back_open), .alive_i(pdc_alive),
    .tx_alive_i(tx_alive), .tx_gen_i(tx_gen),
    .read_i(msg_wr), .read_msg_i(msg_index), .read_info_i(read_info),
    .asked_i(asked), .asked_first_i(asked_first), .asked_msg_i(sent_msg), .asked_as_i(asked_as),
    .cut_i(read_cut), .cut_msg_i(read_cut_msg), .cut_packets_i(read_cut_packets),
    .end_i(done_valid && done_ready && !done.token), .end_msg_i(done.msg),
    .look_i(back_look), .pkt_i(back_pkt), .take_i(back_take), .verdict_o(back_verdict),
    .late_o(back_late), .late_look_i(back_late_look), .late_take_i(back_late_take),
    .answered_msg_i(walk_msg), .answered_o(msg_answered), .gaps_o(back_gaps), .decided_o(back_decided),
    .idle_o(idle_return_rx), .ready_o(back_ready_rx)
  );

  // A job goes on when heddle_place has passed its record.
  assign return_job_valid = job_valid && place_job;
  assign place_job_ready  = job_valid && return_job_ready;
  assign job_ready        = place_job && return_job_ready;
  heddle_return_tx u_return_tx (
    .clk_i, .rst_ni, .tick_i, .port_i(port), .transport_i(transport), .now_ns_i(now_ns),
    .job_valid_i(return_job_valid), .job_ready_o(return_job_ready), .job_i(return_job),
    .room_o(return_room),
    .wait_o(read_waits), .wait_info_o(read_wait), .over_o(reads_over), .over_info_o(read_over),
    .ack_valid_i(ack_valid && ack_back), .ack_ready_o(ack_ready_back), .ack_i(ack),
    .sweep_valid_i(sweep_valid), .sweep_region_i(sweep_region), .sweep_done_o(sweep_done),
    .pkt_valid_o(back_valid_data), .pkt_ready_i(back_ready_data), .pause_i(build_pause), .pkt_o(back_data),
    .seq_issued_o(back_issued),
    .stat_o(stat_return), .idle_o(idle_return),
    .deadline_valid_o(back_deadline_valid), .deadline_o(back_deadline)
  );
  assign unit_idle[16] = idle_return && idle_return_rx && idle_reports;

  heddle_read_reports u_read_reports (
    .clk_i, .rst_ni,
    .wait_i(read_waits), .wait_info_i(read_wait), .over_i(reads_over), .over_info_i(read_over),
    .room_o(report_room),
    .rx_alive_i(rx_alive), .rx_gen_i(rx_gen), .rx_counters_i(rx_counters),
    .ev_valid_i(placed_valid), .ev_ready_o(placed_ready), .ev_i(placed),
    .ev_valid_o(ev_valid[0]), .ev_ready_i(ev_ready[0]), .ev_o(ev[0]),
    .idle_o(idle_reports)
  );

  logic             rxr_valid, rxr_ready, rxrp_valid, rxrp_ready, idle_reorder;
  rx_packet_t       rxr;
  logic [DataW-1:0] rxrp_data;
  logic [PdcW-1:0]  reorder_pdc;
  reorder_t         reorder;
  reorder_verdict_t reorder_verdict;
  rx_packet_t       decided_pkt;
  heddle_rx_reorder #(.DataW(DataW)) u_rx_reorder (
    .clk_i, .rst_ni,
    .pkt_valid_i(rxk_valid), .pkt_ready_o(rxk_ready), .pkt_i(rxk), .pkt_squash_i(rxk_squash),
    .pay_valid_i(rxp_valid), .pay_ready_o(rxp_ready), .pay_data_i(rxp_data),
    .pkt_valid_o(rxr_valid), .pkt_ready_i(rxr_ready), .pkt_o(rxr),
    .pay_valid_o(rxrp_valid), .pay_ready_i(rxrp_ready), .pay_data_o(rxrp_data),
    .look_pkt_i(back_pkt), .look_pdc_i(reorder_pdc), .look_o(reorder), .verdict_i(reorder_verdict),
    .decided_pkt_i(decided_pkt),
    .idle_o(idle_reorder)
  );

  heddle_accept u_accept (
    .clk_i, .rst_ni, .port_i(port), .transport_i(transport), .close_i(close), .now_ns_i(now_ns), .tick_i,
    .pkt_valid_i(rxr_valid), .pkt_ready_o(rxr_ready), .pkt_i(rxr), .pkt_squash_i(rxk_squash),
    .reorder_pdc_o(reorder_pdc), .reorder_i(reorder), .reorder_o(reorder_verdict), .decided_pkt_o(decided_pkt),
    .look_rel_o(look_rel), .look_job_o(look_job_id),
    .look_pid_o(look_pid), .look_ri_o(look_ri), .look_hit_i(look_hit), .look_miss_i(look_miss),
    .look_ctx_i(look_ctx),
    .look_job_i(look_job), .look_event_i(look_event), .listens_i(listens),
    .head_ctx_o(head_ctx), .head_valid_i(buf_valid), .head_i(buffer),
    .head_released_i(buf_released), .head_spare_i(buf_spare), .pop_o(buf_pop),
    .rx_alive_i(rx_alive), .rx_gen_i(rx_gen), .rx_counters_i(rx_counters),
    .drain_valid_i(drain_rx || drain_region), .drain_rx_i(drain_rx),
    .drain_ready_o(drain_ready),
    .region_o(region_req), .region_i(region_answer), .region_ready_i(region_ready),
    .credit_ok_i(credit_ok), .credit_spare_i(credit_spare), .credit_take_o(credit_take[0]), .credit_cq_o(credit_cq[0]),
    .back_look_o(back_look), .back_pkt_o(back_pkt), .back_take_o(back_take), .back_i(back_verdict),
    .back_late_i(back_late), .back_late_look_o(back_late_look), .back_late_take_o(back_late_take),
    .back_ready_i(back_ready_rx), .return_room_i(return_room), .report_room_i(report_room),
    .job_valid_o(job_valid), .job_ready_i(job_ready), .job_o(return_job),
    .rsp_valid_o(rsp_valid), .rsp_ready_i(rsp_ready), .rsp_o(rsp),
    .place_valid_o(place_valid), .place_ready_i(place_ready), .place_o(place),
    .visible_i(visible), .visible_psn_i(visible_psn), .visible_pdc_i(visible_pdc),
    .ack_valid_o(ack_valid), .ack_ready_i(ack_ready), .ack_o(ack),
    .stat_o(stat_accept), .pending_o(ack_pending),
    .deadline_valid_o(target_deadline_valid), .deadline_o(target_deadline), .open_o(open_target),
    .idle_o(idle_accept)
  );

  // One table access runs at a time, so a token that comes back is that of whoever waits.
  heddle_region u_region (
    .clk_i, .rst_ni,
    .tbl_valid_i(tbl_valid[3'(TableRegion)]), .tbl_req_i(tbl_req), .tbl_rsp_o(tbl_region),
    .req_i(region_req), .answer_o(region_answer), .ready_o(region_ready),
    .drain_valid_o(drain_region), .drain_ready_i(drain_ready), .drained_i(drained_rx),
    .sweep_valid_o(sweep_valid), .sweep_region_o(sweep_region), .sweep_done_i(sweep_done),
    .back_issued_i(back_issued), .back_done_i(back_read),
    .idle_o(unit_idle[14])
  );

  heddle_rx_queue #(.DataW(DataW)) u_rx_queue (
    .clk_i, .rst_ni,
    .db_valid_i(db_valid && db_rx), .db_ready_o(db_rx_ready), .db_i(db),
    .tbl_valid_i(tbl_valid[3'(TableRxCtx)]), .tbl_req_i(tbl_req), .tbl_rsp_o(tbl_rx), .reset_i(host_reset),
    .rd_valid_o(rd_valid[RdRxDesc]), .rd_ready_i(rd_ready[RdRxDesc]),
    .rd_req_o(rd_req[RdRxDesc]),
    .rd_rsp_valid_i(rd_rsp_valid[RdRxDesc]), .rd_rsp_ready_o(rd_rsp_ready[RdRxDesc]),
    .rd_rsp_data_i(rd_rsp_data[RdRxDesc]), .rd_rsp_last_i(rd_rsp_last[RdRxDesc]),
    .rd_rsp_error_i(rd_rsp_error[RdRxDesc]),
    .look_rel_i(look_rel), .look_job_i(look_job_id),
    .look_pid_i(look_pid), .look_ri_i(look_ri), .look_hit_o(look_hit), .look_miss_o(look_miss),
    .look_ctx_o(look_ctx),
    .look_job_o(look_job), .look_event_o(look_event), .listens_o(listens),
    .head_ctx_i(head_ctx), .head_valid_o(buf_valid), .head_o(buffer),
    .head_released_o(buf_released), .head_spare_o(buf_spare), .pop_i(buf_pop),
    .drain_valid_o(drain_rx), .drain_ready_i(drain_ready), .drained_i(drained_rx),
    .credit_ok_i(credit_ok), .cq_gen_i(cq_gen),
    .credit_take_o(credit_take[2]), .credit_cq_o(credit_cq[2]),
    .ev_valid_o(ev_valid[2]), .ev_ready_i(ev_ready[2]), .ev_o(ev[2]),
    .alive_o(rx_alive), .gen_o(rx_gen), .counters_o(rx_counters),
    .idle_o(unit_idle[11])
  );

  heddle_place #(.DataW(DataW)) u_place (
    .clk_i, .rst_ni, .port_i(port),
    .place_valid_i(place_valid), .place_ready_o(place_ready), .place_i(place),
    .pay_valid_i(rxrp_valid), .pay_ready_o(rxrp_ready), .pay_data_i(rxrp_data),
    .wr_valid_o(place_wr), .wr_ready_i(place_wr_ready), .wr_req_o(place_wr_req),
    .wr_segmented_o(place_wr_segmented), .wr_msg_o(place_wr_msg),
    .wr_data_valid_o(place_data), .wr_data_ready_i(place_data_ready), .wr_data_o(place_wr_data),
    .wr_rsp_valid_i(place_rsp), .wr_rsp_error_i(place_rsp_error),
    .ev_valid_o(placed_valid), .ev_ready_i(placed_ready), .ev_o(placed),
    .visible_o(visible), .visible_psn_o(visible_psn), .visible_pdc_o(visible_pdc),
    .job_valid_o(place_job), .job_ready_i(place_job_ready),
    .settle_o(settle), .settled_o(settled), .back_done_o(back_placed),
    .idle_o(idle_place)
  );

  heddle_rx_scatter #(.DataW(DataW)) u_rx_scatter (
    .clk_i, .rst_ni,
    .seg_wr_i(msg_wr && resolved.op.segmented), .seg_msg_i(msg_index), .seg_data_i(segments),
    .req_valid_i(place_wr), .req_ready_o(place_wr_ready), .req_i(place_wr_req),
    .req_segmented_i(place_wr_segmented), .req_msg_i(place_wr_msg),
    .data_valid_i(place_data), .data_ready_o(place_data_ready), .data_i(place_wr_data),
    .rsp_valid_o(place_rsp), .rsp_error_o(place_rsp_error),
    .wr_valid_o(wr_valid[WrPayload]), .wr_ready_i(wr_ready[WrPayload]),
    .wr_req_o(wr_req[WrPayload]),
    .wr_data_valid_o(wr_data_valid[WrPayload]), .wr_data_ready_i(wr_data_ready[WrPayload]),
    .wr_data_o(wr_data[WrPayload]),
    .wr_rsp_valid_i(wr_rsp_valid[WrPayload]), .wr_rsp_error_i(wr_rsp_error[WrPayload]),
    .idle_o(idle_scatter)
  );
  assign unit_idle[12] = idle_accept && idle_reorder && idle_place && idle_scatter;

  // ---------------------------------------------------------------- statistics
  // Units that may count the same in one cycle are different sources.
  logic [NumStat-1:0] stat_nic;
  always_comb begin
    stat_nic = stat_cq | stat_counter | stat_fetch | stat_release | stat_build | stat_pushed | stat_accept |
               stat_slow;
    stat_nic[StatisticTxFrames]       = frame;
    stat_nic[StatisticDmaReadErrors]  = rd_error;
    stat_nic[StatisticDmaWriteErrors] = wr_error;
  end

  heddle_stats u_stats (
    .clk_i, .rst_ni,
    .strobe_i({stat_return, stat_pdc | stat_parser, stat_nic}), .tx_bytes_i(frame ? frame_bytes : '0), .rx_bytes_i(rx_bytes),
    .index_i(stat_index), .value_o(stat_value)
  );

  assign idle_o = (&unit_idle) && !rx_axis_tvalid_i && !s_axi_awvalid_i && !s_axi_arvalid_i &&
                  !mgmt_valid_i;

  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : gen_bad_width
    $error("DataW must be 64, 128, 256 or 512");
  end
endmodule
