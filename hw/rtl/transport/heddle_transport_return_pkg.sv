// SPDX-License-Identifier: Apache-2.0
// Records between the parts of heddle_return_tx.

package heddle_transport_return_pkg;
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;

  typedef enum logic [2:0] {
    EvNone, EvJob, EvTimer, EvLost, EvAck, EvSweep, EvWindow, EvSend
  } return_event_e;

  // The return direction of a target PDC.
  typedef struct packed {
    logic        open;
    logic [31:0] una;       // Oldest unacknowledged PSN.
    logic [31:0] nxt;       // Next to send.
    logic [31:0] top;       // First never sent.
    logic [31:0] fin;       // First without data.
    logic        waiting;   // Back-off runs.
    logic        probing;   // One packet at a time until `una` moves.
    logic [3:0]  rto_shift;
    logic [3:0]  backoff_shift;
    logic [31:0] heard;     // Tick at which the initiator was last heard.
    sack_t       sack;      // RUD; ROD: `told`, with `single`.
    logic        single;    // ROD: of a pass, only what NACKs named is retransmitted.
  } return_state_t;

  typedef struct packed {
    logic        on;
    logic [31:0] at;        // Tick.
  } return_timer_t;

  // An ACK, a loss or a timer, related to its PDC.
  typedef struct packed {
    // ACK, NACK:
    logic                 known;       // From the initiator of the PDC.
    logic                 in_window;   // `cack` is of a packet that was sent, or of the last one acknowledged,
    logic                 advances;    // and acknowledges some more:
    logic [SackW-1:0]     advance;     // so many,
    logic                 all;         // all that were sent,
    logic                 overtakes;   // more than the present pass has reached.
    logic                 stale;       // An older one.
    logic                 nacked;      // `psn` is of a packet that is out,
    logic [SackW-1:0]     ahead;       // at this position,
    logic                 passed;      // before the next one to send.
    logic                 repeated;    // It was retransmitted before.
    logic                 worth_again; // A NACK that requests it from RUD is not about an earlier transmission.
    logic                 sole;        // It counts for a round trip.
    logic                 some_held;   // Packets arrived out of order.
    logic [PdcWindow-1:0] reported;    // The bitmap, by positions.
    // Loss:
    logic                 loses;       // It is of this opening of the PDC,
    logic [SackW-1:0]     past;        // up to this position.
    // Timer:
    logic                 fired;
    logic                 silent;      // For dead_ticks.
    // The PDC:
    logic                 fresh;       // No pass is active.
    logic                 outstanding;
    logic [SackW-1:0]     out;         // PSNs that were sent.
    logic [SackW-1:0]     next;        // Position of the next one.
    logic [31:0]          rto;         // Ticks until its timer fires next,
    logic [31:0]          backoff;     // or after a refusal.
  } return_check_t;

  // The effects of an event.
  typedef struct packed {
    return_state_t        state;
    return_timer_t        timer;
    logic                 can_send;
    logic [31:0]          kept;        // Records.
    logic [31:0]          in_flight;   // From `una` to `nxt`.
    logic                 opens;
    logic                 pushes;      // A record.
    logic                 sends;       // The next packet.
    logic                 above;       // On RUD, something after it arrived.
    logic                 acks;        // An ACK of what is in the window.
    logic                 advances;
    logic                 resends;     // A NACK begins a pass;
    logic                 trims;       // one packet is known to be lost.
    logic                 times_out;
    logic                 ends;        // The PDC.
    // heddle_sack:
    logic                 reports;     // An ACK on RUD,
    logic                 judged;      // which may pass some (heddle_passed).
    logic [SackW-1:0]     advance;
    logic                 passes;      // A loss.
    logic                 counted;     // `left` and `flight` are meaningful.
    logic [PdcWindow-1:0] held;
    logic [PdcWindow-1:0] left;
    logic [PdcWindow-1:0] flight;
  } return_change_t;
endpackage
