// SPDX-License-Identifier: Apache-2.0
// Records between the parts of heddle_pdc_tx.

package heddle_transport_tx_pkg;
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;

  localparam int unsigned RangeW = $clog2(OrderedRange);
  // `una`, `nxt` and `top` of a PDC that is not repositioning are in this order, at most RodWindow apart: low bits distinguish them.
  localparam int unsigned SpanW  = $clog2(RodWindow) + 1;

  // With a congestion window, one of so many packets is to be answered.
  localparam int unsigned CongestedAcks = 8;

  typedef enum logic [3:0] {
    TxEvNone, TxEvOpen, TxEvDue, TxEvBack, TxEvTimer, TxEvLeave, TxEvLost, TxEvAck, TxEvWindow, TxEvSend
  } tx_event_e;

  typedef enum logic [2:0] {
    PdcClosed,
    PdcSyn,
    PdcOpen,
    PdcClosing,  // Forgotten by heddle_tx_msg; its last packet is the Close Command.
    PdcEnding,   // Sends nothing more; the walk has the rest.
    PdcReopening // Waits for its new PDCID; answers to the old one match no PDC.
  } pdc_state_e;

  // The initiator half of a PDC.
  typedef struct packed {
    pdc_state_e      state;
    logic            rud;        // Otherwise ROD.
    logic [31:0]     una;        // Oldest unacknowledged PSN.
    logic [31:0]     nxt;        // Next PSN to send.
    logic [31:0]     top;        // First PSN never sent.
    logic [PktW-1:0] index;      // Next packet of the current message.
    logic [15:0]     tpdcid;
    logic            repositioning;
    logic            waiting;    // Back-off runs.
    logic            resent;     // Something was sent twice since all was acknowledged.
    logic            probing;    // One packet at a time until `una` passes `probe_psn`.
    logic [31:0]     probe_psn;
    logic [3:0]      rto_shift;
    logic [3:0]      backoff_shift;
    logic [31:0]     heard;      // Tick at which the peer was last heard.
    sack_t           sack;       // RUD; ROD: `told`, with `single`.
    logic            single;     // ROD: of a pass, only what NACKs named is retransmitted.
    logic [DueW-1:0] due;        // Packets of return data that will come.
    logic            full;       // As many as may be; until two fewer are.
    logic            ask;        // The control packet that waits is an ACK Request, not a Clear Command.
    logic            kept;       // Its congestion window stays closed until it is known what is lost: that leaves first.
    logic [RangeW-1:0] range;    // ROD: MP_Range of the target - 1, in units of RangeUnit.
  } tx_state_t;

  typedef struct packed {
    logic        on;
    logic [31:0] at;             // Tick.
  } tx_timer_t;

  // What the PDC's peer must show in an ACK or NACK.
  typedef struct packed {
    logic [127:0] fa;
    logic [15:0]  spdcid;
    logic [31:0]  start_psn;
  } tx_identity_t;

  // An ACK, a loss or a timer, related to its PDC.
  typedef struct packed {
    // ACK, NACK:
    logic                 known;       // From the peer of the PDC,
    logic                 acks;        // as an ACK
    logic                 nacks;       // or a NACK.
    logic                 in_window;   // It acknowledges what was sent, or was acknowledged just before,
    logic                 advances;    // and it acknowledges more:
    logic [31:0]          acked;       // up to this PSN,
    logic [SackW-1:0]     advance;     // so many, at most PdcWindow,
    logic                 all;         // all that were sent,
    logic                 overtakes;   // more than the present pass has reached,
    logic                 proves;      // and the packet that probes.
    logic                 stale;       // An older one.
    logic                 refused;     // It answers its last packet with an error.
    logic                 clears;      // The target keeps an answer until that is cleared.
    logic                 nacked;      // `psn` is of a packet that is out,
    logic [SackW-1:0]     ahead;       // at this position of the bitmap,
    logic                 nearby;      // which it has;
    logic                 first;       // of the oldest one;
    logic                 passed;      // before the next one to send;
    logic                 reprobes;    // of the one that probes.
    logic                 repeated;    // It was retransmitted before.
    logic                 worth_again; // A NACK that requests it from RUD is not about an earlier transmission.
    logic                 answers;     // A NACK of a packet in flight, or of an ACK Request.
    logic                 refuses_control;  // A NACK of an ACK Request or a Clear Command that the peer does not have.
    logic                 sole;        // It counts for a round trip.
    logic                 some_held;   // Packets arrived out of order.
    logic [PdcWindow-1:0] reported;    // The bitmap, by positions.
    // Loss:
    logic                 loses;       // It is of this opening of the PDC,
    logic [SackW-1:0]     past;        // up to this position.
    // Timer:
    logic                 fired;
    logic                 silent;      // The peer, for as long as it may be.
    logic                 overdue;     // Data, for an RTO,
    logic [31:0]          again;       // to be requested in so many ticks anew,
    logic [31:0]          patience;    // but not after DEAD_TIME.
    // The PDC:
    logic                 fresh;       // No pass is active.
    logic                 outstanding;
    logic                 awaits;      // Data, while no packet is outstanding.
    logic                 idle;        // Nothing is queued or outstanding.
    logic [SackW-1:0]     out;         // Positions that were sent.
    logic [SackW-1:0]     next;        // That of the next one.
    logic [31:0]          rto;         // Ticks until its timer fires next,
    logic [31:0]          backoff;     // or after a refusal.
  } tx_check_t;

  // The effects of an ACK, a loss or a timer.
  typedef struct packed {
    tx_state_t            state;
    tx_timer_t            timer;
    logic                 walks;       // An event for heddle_pdc_walk.
    pdc_walk_t            walk;
    logic                 acks;        // An ACK of what is in the window;
    logic                 nacks;       // a NACK that counts;
    logic                 strays;      // one that does not.
    logic                 resends;     // A NACK begins a pass;
    logic                 trims;       // one packet is known to be lost.
    logic                 times_out;
    logic                 asks;        // An ACK Request is to be sent.
    logic                 reopens;     // The PDC needs another PDCID.
    logic                 finishes;    // It is closed,
    logic                 ends;        // or ended otherwise:
    logic                 dies;        // the peer is silent,
    logic                 restarts;    // or began anew.
    // heddle_sack:
    logic                 reports;     // An ACK on RUD,
    logic                 judged;      // which may pass some (heddle_passed);
    logic                 keeps;       // a window that is closed stays so.
    logic [SackW-1:0]     advance;
    logic                 passes;      // A loss.
    logic                 counted;     // `left` and `flight` are meaningful.
    logic [PdcWindow-1:0] held;
    logic [PdcWindow-1:0] left;
    logic [PdcWindow-1:0] flight;
  } tx_change_t;

  // Positions of the bitmap that `distance` covers: PdcWindow or more if it is longer than that, or negative.
  function automatic logic [SackW-1:0] positions(logic [31:0] distance);
    positions = {distance[31:SackW-1] != '0, distance[SackW-2:0]};
  endfunction

  // The window of a PDC with so many packets from `una` to `nxt` lets it send one more.
  function automatic logic window_open(logic rud, logic [RangeW-1:0] range, logic [SpanW-1:0] in_flight);
    if (rud) window_open = in_flight < SpanW'(PdcWindow);
    else     window_open = in_flight < SpanW'(RodWindow) && RangeW'(in_flight / SpanW'(RangeUnit)) <= range;
  endfunction
endpackage
