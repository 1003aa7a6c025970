// SPDX-License-Identifier: Apache-2.0
// Host's view of the NIC: BAR0 registers and BAR2 doorbells behind an AXI4 slave.
//
// Ordered: doorbell and push writes leave in bus order, one a cycle. A write is answered
//          when it took effect or is queued. Unmapped reads return 0, unmapped writes do
//          nothing; bursts (len != 0) and strobes that do not cover one whole 32- or 64-bit
//          register are answered SLVERR and do nothing.
// Push:    the push window of a transmit page takes whole 64-bit words, all those of a slot in
//          one beat. A word with other strobes is left out, and its write is answered SLVERR.
// Reads:   a 64-bit register may be read in halves; the word of the address is in every lane.

`include "heddle_assert.svh"

module heddle_bar
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic         s_axi_awvalid_i,
  output logic         s_axi_awready_o,
  input  logic [20:0]  s_axi_awaddr_i,
  input  logic [7:0]   s_axi_awlen_i,
  input  logic         s_axi_wvalid_i,
  output logic         s_axi_wready_o,
  input  logic [511:0] s_axi_wdata_i,
  input  logic [63:0]  s_axi_wstrb_i,
  input  logic         s_axi_wlast_i,
  output logic         s_axi_bvalid_o,
  input  logic         s_axi_bready_i,
  output logic [1:0]   s_axi_bresp_o,
  input  logic         s_axi_arvalid_i,
  output logic         s_axi_arready_o,
  input  logic [20:0]  s_axi_araddr_i,
  input  logic [7:0]   s_axi_arlen_i,
  output logic         s_axi_rvalid_o,
  input  logic         s_axi_rready_i,
  output logic [511:0] s_axi_rdata_o,
  output logic [1:0]   s_axi_rresp_o,
  output logic         s_axi_rlast_o,

  output logic         db_valid_o,
  input  logic         db_ready_i,
  output doorbell_t    db_o,
  output push_t        push_o,              // With db_o of a push window; its `data` has no meaning then.

  // Registers shared with the management bus.
  output logic [63:0]  admin_command_base_o,
  output logic [63:0]  admin_answer_base_o,
  output logic [3:0]   admin_log2_o,
  output logic [15:0]  admin_tail_o,
  output logic         reset_o,             // device_control.reset
  input  logic         reset_done_i,        // Clears it.
  input  logic [31:0]  device_status_i,
  input  logic [31:0]  fatal_cause_i,
  input  logic [63:0]  capability_i,
  input  logic [31:0]  version_i,
  input  logic [31:0]  context_limits_i,
  input  logic [31:0]  transport_limits_i,
  input  logic [31:0]  datapath_i,
  input  logic [31:0]  region_limits_i,

  output logic [5:0]   stat_index_o,        // Statistics read port, same cycle.
  input  logic [63:0]  stat_value_i,

  output logic         idle_o
);
  localparam logic [1:0] Okay   = 2'b00;
  localparam logic [1:0] SlvErr = 2'b10;

  // ------------------------------------------------------------------- writes
  // Addresses and responses have FIFOs.
  logic        aw_valid, aw_pop, b_ready, b_push, b_fault, fault;
  logic [20:6] waddr;      // Slot of 64 bytes.
  logic        deny;       // A burst.
  logic        fault_q;    // A beat of it did nothing.
  logic [2:0]  aw_count, b_count;
  heddle_fifo #(.Width(16), .Depth(4)) u_addresses (
    .clk_i, .rst_ni, .valid_i(s_axi_awvalid_i), .ready_o(s_axi_awready_o),
    .data_i({s_axi_awaddr_i[20:6], s_axi_awlen_i != '0}),
    .valid_o(aw_valid), .ready_i(aw_pop), .data_o({waddr, deny}), .count_o(aw_count)
  );
  heddle_fifo #(.Width(1), .Depth(4)) u_answers (
    .clk_i, .rst_ni, .valid_i(b_push), .ready_o(b_ready), .data_i(fault),
    .valid_o(s_axi_bvalid_o), .ready_i(s_axi_bready_i), .data_o(b_fault), .count_o(b_count)
  );
  assign s_axi_bresp_o = b_fault ? SlvErr : Okay;

  // A register is in one lane of 64 bits.
  logic [7:0]       some, whole;  // Lanes with any strobe, and with all.
  logic [7:0][63:0] lanes;
  logic [2:0]       lane;
  logic [63:0]      wdata;
  logic [7:0]       wstrb;
  assign lanes = s_axi_wdata_i;
  always_comb begin
    lane = '0;
    for (int unsigned i = 0; i < 8; i++) begin
      some[i]  = s_axi_wstrb_i[8*i +: 8] != '0;
      whole[i] = s_axi_wstrb_i[8*i +: 8] == '1;
      if (some[i]) lane = 3'(i);
    end
    wdata = lanes[lane];
    wstrb = s_axi_wstrb_i[8*lane +: 8];
  end

  // Word of the write, and what is there.
  logic        in_bar2;
  logic [15:0] word;         // Byte offset in BAR0 of the 64-bit word.
  logic [7:0]  page;
  logic [11:0] page_offset;  // Byte offset in the doorbell page.
  assign in_bar2     = waddr[20];
  assign word        = {waddr[15:6], lane, 3'b000};
  assign page        = waddr[19:12];
  assign page_offset = {waddr[11:6], lane, 3'b000};

  localparam int unsigned PushEnd = PushWindowOffset + PushWindowSlots * DescBytes;

  logic tx_page, rx_page, cq_page, counter_page, counter_word, is_register, is_push, is_doorbell;
  assign tx_page = 32'(page) - TxPageFirst < NumTx;
  assign rx_page = 32'(page) - RxPageFirst < NumRx;
  assign cq_page = 32'(page) - CqPageFirst < NumCq;
  assign counter_page = 32'(page) - CounterPageFirst < NumCounter;
  assign counter_word = page_offset == DoorbellCounterSetOffset[11:0] ||
                        page_offset == DoorbellCounterAddOffset[11:0] ||
                        page_offset == DoorbellCounterSetErrorsOffset[11:0] ||
                        page_offset == DoorbellCounterAddErrorsOffset[11:0];
  assign is_register = in_bar2 &&
      (((tx_page || rx_page) && (page_offset == DoorbellTailOffset[11:0] ||
                                 page_offset == DoorbellOpOffset[11:0])) ||
       (cq_page && page_offset == DoorbellCqConsumerOffset[11:0]) ||
       (counter_page && counter_word));
  assign is_push     = in_bar2 && tx_page && 32'(page_offset) >= PushWindowOffset &&
                       32'(page_offset) < PushEnd;
  assign is_doorbell = is_register || is_push;

  logic in_bar0, is_wide, is_control, is_command, is_answer, is_admin;
  assign in_bar0    = !in_bar2 && waddr[19:16] == '0;
  assign is_control = in_bar0 && word == Bar0DeviceControlOffset[15:0];
  assign is_command = in_bar0 && word == Bar0AdminCommandBaseOffset[15:0];
  assign is_answer  = in_bar0 && word == Bar0AdminAnswerBaseOffset[15:0];
  assign is_admin   = in_bar0 && word == Bar0AdminSizeOffset[15:0];  // And admin_tail.
  assign is_wide    = is_doorbell || is_command || is_answer;

  logic strobes_ok, take_data, effect, db_valid, db_ready;
  assign strobes_ok = is_push ? some != '0 && some == whole
                              : $onehot(some) && (wstrb == 8'hff || (!is_wide && (wstrb == 8'h0f || wstrb == 8'hf0)));
  assign s_axi_wready_o = aw_valid && b_ready && (db_ready || !is_doorbell);
  assign take_data = s_axi_wvalid_i && s_axi_wready_o;
  assign effect    = take_data && !deny && (is_push ? whole != '0 : strobes_ok);
  assign db_valid  = effect && is_doorbell;
  assign fault     = fault_q || deny || !strobes_ok;
  assign aw_pop    = take_data && s_axi_wlast_i;
  assign b_push    = aw_pop;

  logic [63:0] command_d, command_q, answer_d, answer_q;
  logic [3:0]  log2_d, log2_q;
  logic [15:0] tail_d, tail_q;
  logic        reset_d, reset_q;

  // A reset of the function takes the admin queue with it.
  logic reset_set;
  assign reset_set = effect && is_control && wstrb[0] && wdata[0];

  always_comb begin
    command_d = command_q;
    answer_d  = answer_q;
    log2_d    = log2_q;
    tail_d    = tail_q;
    reset_d   = reset_q && !reset_done_i;
    if (effect && is_command) command_d = wdata;
    if (effect && is_answer) answer_d = wdata;
    if (effect && is_admin && wstrb[0]) log2_d = wdata[3:0];
    if (effect && is_admin && wstrb[4]) tail_d = wdata[47:32];
    if (reset_set) begin
      command_d = '0;
      answer_d  = '0;
      log2_d    = '0;
      tail_d    = '0;
      reset_d   = 1'b1;
    end
  end

  assign admin_command_base_o = command_q;
  assign admin_answer_base_o  = answer_q;
  assign admin_log2_o         = log2_q;
  assign admin_tail_o         = tail_q;
  assign reset_o              = reset_q;

  // A doorbell has its word in the lowest lane.
  push_t      db;
  logic [3:0] db_count;
  always_comb begin
    db.words = is_push ? whole : '0;
    db.data  = lanes;
    if (!is_push) db.data[63:0] = wdata;
  end
  heddle_fifo #(.Width(8 + 12 + $bits(push_t)), .Depth(8)) u_doorbells (
    .clk_i, .rst_ni, .valid_i(db_valid), .ready_o(db_ready), .data_i({page, page_offset, db}),
    .valid_o(db_valid_o), .ready_i(db_ready_i), .data_o({db_o.page, db_o.offset, push_o}), .count_o(db_count)
  );
  assign db_o.data = push_o.data[63:0];

  // -------------------------------------------------------------------- reads
  logic        rvalid_d, rvalid_q;
  logic [63:0] rdata_d, rdata_q;
  logic [7:0]  beats_d, beats_q;  // Further beats of a burst.
  logic        rerr_d, rerr_q;

  logic [15:0] rword;
  assign rword        = {s_axi_araddr_i[15:3], 3'b000};
  assign stat_index_o = s_axi_araddr_i[8:3];

  logic [63:0] value;
  always_comb begin
    value = '0;
    if (s_axi_araddr_i[20:16] == '0) begin
      unique case (rword)
        Bar0MagicOffset[15:0]:            value = {version_i, Bar0MagicReset};
        Bar0CapabilityOffset[15:0]:       value = capability_i;
        Bar0ContextLimitsOffset[15:0]:    value = {transport_limits_i, context_limits_i};
        Bar0DatapathOffset[15:0]:         value = {region_limits_i, datapath_i};
        Bar0DeviceStatusOffset[15:0]:     value = {fatal_cause_i, device_status_i};
        Bar0DeviceControlOffset[15:0]:    value = {63'b0, reset_q};
        Bar0AdminCommandBaseOffset[15:0]: value = command_q;
        Bar0AdminAnswerBaseOffset[15:0]:  value = answer_q;
        Bar0AdminSizeOffset[15:0]:        value = {16'b0, tail_q, 28'b0, log2_q};
        default: begin
          if (rword[15:9] == Bar0StatisticsOffset[15:9]) value = stat_value_i;
        end
      endcase
    end
  end

  assign s_axi_arready_o = !rvalid_q;
  assign s_axi_rvalid_o  = rvalid_q;
  assign s_axi_rdata_o   = {8{rdata_q}};
  assign s_axi_rresp_o   = rerr_q ? SlvErr : Okay;
  assign s_axi_rlast_o   = beats_q == '0;

  always_comb begin
    rvalid_d = rvalid_q;
    rdata_d  = rdata_q;
    beats_d  = beats_q;
    rerr_d   = rerr_q;
    if (rvalid_q) begin
      if (s_axi_rready_i) begin
        rvalid_d = beats_q != '0;
        beats_d  = beats_q - 8'(beats_q != '0);
      end
    end else if (s_axi_arvalid_i) begin
      rvalid_d = 1'b1;
      beats_d  = s_axi_arlen_i;
      rerr_d   = s_axi_arlen_i != '0;
      rdata_d  = rerr_d ? '0 : value;
    end
  end

  assign idle_o = !aw_valid && !s_axi_awvalid_i && !s_axi_bvalid_o && !rvalid_q && !s_axi_arvalid_i && !db_valid_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fault_q   <= 1'b0;
      rvalid_q  <= 1'b0;
      beats_q   <= '0;
      command_q <= '0;
      answer_q  <= '0;
      log2_q    <= '0;
      tail_q    <= '0;
      reset_q   <= 1'b0;
    end else begin
      if (take_data) fault_q <= fault && !s_axi_wlast_i;
      rvalid_q  <= rvalid_d;
      beats_q   <= beats_d;
      command_q <= command_d;
      answer_q  <= answer_d;
      log2_q    <= log2_d;
      tail_q    <= tail_d;
      reset_q   <= reset_d;
    end
  end

  always_ff @(posedge clk_i) begin
    rdata_q <= rdata_d;
    rerr_q  <= rerr_d;
  end

  logic unused;
  assign unused = ^{s_axi_awaddr_i[5:0], s_axi_araddr_i[2:0], aw_count, b_count, db_count};

  `HEDDLE_ASSERT(OrderedOffer_A, db_valid_o && !db_ready_i |=> db_valid_o && $stable(db_o) && $stable(push_o))
endmodule
