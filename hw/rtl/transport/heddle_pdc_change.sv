// SPDX-License-Identifier: Apache-2.0
// The state of a PDC of heddle_pdc_tx after an event of one cycle that sends nothing: opening, return data, an answer of
// the walk, leaving. Combinational.

module heddle_pdc_change
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
  import heddle_transport_tx_pkg::*;
(
  input  logic [31:0]     now_i,
  input  tx_event_e       event_i,
  input  logic [PdcW-1:0] pdc_i,
  input  tx_state_t       state_i,
  input  logic [15:0]     spdcid_i,
  input  logic            pending_i,      // A message is to be sent.
  input  logic            open_again_i,   // TxEvOpen.
  input  logic            open_rud_i,
  input  logic [31:0]     open_psn_i,
  input  return_due_t     due_i,          // TxEvDue.
  input  pdc_back_t       back_i,         // TxEvBack.
  output tx_state_t       state_o,
  output logic            opens_o,
  output logic            leaves_o,
  output logic            closes_o,       // The PDC is free.
  output logic            rewinds_o,      // Its next packet is of the head of its queue.
  output logic            dies_o,         // It takes no return data any more.
  output logic            reopens_o,      // It needs another PDCID.
  output logic            takes_due_o,
  output logic            stops_o,        // Its timer stops;
  output logic            rests_o,        // it is set to the idle time.
  output logic            walks_o,        // An event for heddle_pdc_walk.
  output pdc_walk_t       walk_o
);
  tx_state_t s, d;
  logic      back;
  assign s    = state_i;
  assign back = event_i == TxEvBack;
  // A PDC that ended while it waited to be opened again stays ended.
  assign opens_o     = event_i == TxEvOpen && (!open_again_i || s.state == PdcSyn || s.state == PdcReopening);
  // A message that is queued in this moment keeps the PDC: the walk sees it.
  assign leaves_o    = event_i == TxEvLeave && s.state == PdcOpen && s.una == s.top && !pending_i && !s.repositioning &&
                       s.due == '0;
  assign closes_o    = back && back_i.kind == BackClosed;
  assign reopens_o   = back && back_i.kind == BackReopen;
  assign dies_o      = closes_o || reopens_o;
  assign rewinds_o   = (opens_o && open_again_i) || (back && back_i.kind == BackResend && s.state != PdcEnding);
  assign takes_due_o = event_i == TxEvDue && due_i.spdcid == spdcid_i &&
                       (s.state == PdcSyn || s.state == PdcOpen || s.state == PdcClosing);
  assign rests_o     = takes_due_o && due_i.packets == s.due && s.una == s.top && !s.waiting;
  assign stops_o     = opens_o || (back && back_i.kind != BackResend);

  always_comb begin
    d          = s;
    walks_o    = 1'b0;
    walk_o     = '0;
    walk_o.pdc = pdc_i;
    walk_o.psn = s.una;
    if (opens_o) begin
      d             = '0;
      d.state       = PdcSyn;
      d.rud         = open_rud_i;
      d.una         = open_psn_i;
      d.nxt         = open_psn_i;
      d.top         = open_psn_i;
      d.heard       = now_i;
      walks_o       = 1'b1;
      walk_o.kind   = WalkOpen;
      walk_o.psn    = open_psn_i;
      walk_o.reads  = s.due != '0;  // Their data are lost with the old PDC.
      walk_o.status = StatusPeerRejected;
      walk_o.detail = 16'(NackCodeInvDpdcid);
    end
    if (takes_due_o) begin
      d.due   = s.due - due_i.packets;
      d.heard = now_i;
    end
    if (leaves_o) begin
      d.repositioning = 1'b1;
      walks_o         = 1'b1;
      walk_o.kind     = WalkRetire;
    end
    if (back) begin
      unique case (back_i.kind)
        BackClosed: d = '0;
        BackReopen: begin
          d       = '0;
          d.state = PdcReopening;
        end
        BackLeave: begin
          d.state         = PdcClosing;
          d.repositioning = 1'b0;
        end
        default: begin
          if (s.state != PdcEnding) begin
            d.nxt           = back_i.psn;
            d.index         = back_i.index;
            d.repositioning = 1'b0;
            if ($signed(back_i.psn - s.una) < 0) begin
              d.repositioning = 1'b1;
              walks_o         = 1'b1;
              walk_o.kind     = WalkReturn;
            end
          end
        end
      endcase
    end
  end
  assign state_o = d;

  logic unused;
  assign unused = ^back_i.pdc;
endmodule
