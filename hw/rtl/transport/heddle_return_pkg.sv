// SPDX-License-Identifier: Apache-2.0
// Records of the return direction: data of READs on their way to the initiator.

package heddle_return_pkg;
  import heddle_pkg::*;

  // Packets of return data that a target PDC keeps until they are acknowledged. An initiator of ours
  // never has more of them due.
  localparam int unsigned ReturnWindow = 64;
  localparam int unsigned ReturnW      = $clog2(ReturnWindow);

  // So many packets of return data an initiator has due on a PDC: room for what it has not
  // acknowledged yet is left.
  localparam int unsigned ReturnDue = 48;
  localparam int unsigned ReturnDueCongested = 16;  // With a congestion window: fewer of some peers at once.
  localparam int unsigned DueW      = $clog2(ReturnDue) + 1;
  // While more PSNs than these came ahead of a gap, no data is requested: the target keeps all of them.
  localparam int unsigned ReturnAhead = 10;

  // PSNs that an ordered receiver NACKs with the one expected, and the most that an initiator has in flight.
  localparam int unsigned RodWindow = heddle_contract_pkg::OrderedRange * heddle_contract_pkg::RangeUnit;

  // What an ordered receiver knows of the packets ahead of the one that it expects (heddle_rod_gap).
  localparam int unsigned GapW         = $clog2(2 * RodWindow);
  typedef struct packed {
    logic            open;    // They were NACKed already,
    logic            refused; // since the expected packet was.
    logic            turned;  // The last one began a pass of the sender. RUD, not open: one was dropped.
    logic [GapW-1:0] last;    // It was so far ahead.
    trim_e           lost;    // Where a retransmission ahead was trimmed that was not reported,
    logic [GapW-1:0] lost_psn;  // low bits of its PSN.
  } rod_gap_t;

  // A hash of a piece's index. Sums of hashes of other pieces than these rarely equal that of 0 to n - 1: never up to
  // n = 8, once in 2^23 of larger ones. Sums of the indices themselves do: 1, 1, 2, 2 are 0, 1, 2, 3.
  function automatic logic [PktsW-1:0] piece_hash(logic [PktsW-1:0] index);
    logic [PktsW-1:0] mixed;
    mixed      = index ^ {index[PktsW-2:0], index[PktsW-1]} ^ {index[PktsW-15:0], index[PktsW-1 -: 14]} ^ PktsW'(32'h17cbc6);
    piece_hash = mixed ^ {mixed[PktsW-5:0], mixed[PktsW-1 -: 4]} ^
                 ({mixed[PktsW-19:0], mixed[PktsW-1 -: 18]} & {mixed[PktsW-22:0], mixed[PktsW-1 -: 21]});
  endfunction

  // What one request packet of a READ asked for.
  typedef struct packed {
    logic [63:0]              iova;
    logic [13:0]              bytes;           // 1 to the payload MTU.
    logic [7:0]               owner;           // Function.
    logic [RegionW-1:0]       region;
    logic [15:0]              message_id;      // Of the READ.
    logic [31:0]              message_offset;
    logic [31:0]              message_bytes;   // Of the whole READ.
    logic [23:0]              job_id;
  } return_data_t;

  // The way back to an initiator.
  typedef struct packed {
    logic         rud;      // Mode of the PDC.
    logic         ipv6;
    logic [127:0] fa;
    logic [47:0]  mac;
    logic [5:0]   dscp;
    logic [15:0]  entropy;
    logic [15:0]  spdcid;   // Ours.
    logic [15:0]  dpdcid;   // The initiator's.
  } return_route_t;

  // Who is told of a READ, and what.
  typedef struct packed {
    logic [RxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [7:0]      owner;
    logic            credit;      // By a completion, whose credit is held.
    logic [CqW-1:0]  cq;
    logic [GenW-1:0] cq_gen;
    logic [15:0]     queue_head;
    logic [31:0]     initiator;
    logic [63:0]     key;
    logic [31:0]     bytes;
  } read_report_t;

  // The same on a PDC, with the PSN of its last data.
  typedef struct packed {
    logic [PdcW-1:0] pdc;
    logic [31:0]     psn;
    logic            lost;        // They will not be acknowledged.
    logic            ipv6;
    logic [127:0]    fa;
    read_report_t    read;
  } read_wait_t;

  // Data of the PDC before `psn` were acknowledged.
  typedef struct packed {
    logic [PdcW-1:0] pdc;
    logic [31:0]     psn;
    logic            gone;        // All that will be: the PDC is gone.
    logic            lost;        // With gone: nobody knows whether they were.
  } read_over_t;

  // From the target: keep and send `data`; or forget all of a PDC that is gone.
  typedef struct packed {
    logic            close;
    logic            lost;        // With close: its initiator did not close it.
    logic            tell;        // `data` are the last of a READ that is reported.
    read_report_t    report;
    logic            open;       // First data of the PDC: `start_psn` and `route` count.
    logic [PdcW-1:0] pdc;
    logic [31:0]     start_psn;
    return_route_t   route;
    return_data_t    data;
  } return_job_t;

  // A packet of return data that has its PSN and will be sent.
  typedef struct packed {
    logic [PdcW-1:0] pdc;
    logic [31:0]     psn;
    logic            ar;
    logic            retx;
    logic            dead;       // Its region is gone: an error response, no data.
    logic [31:0]     clear_psn;
    return_route_t   route;
    return_data_t    data;
  } return_packet_t;

  // A READ at its initiator, written with its table entry.
  typedef struct packed {
    logic [TxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [7:0]      owner;
    logic [31:0]     length;
    logic            segmented;  // heddle_rx_scatter has its segments.
    logic [63:0]     iova;
  } return_read_t;

  // The latest request packet of a READ that is no retransmission.
  typedef struct packed {
    logic [15:0] spdcid;       // Ours: it differs from one opening of the PDC to the next.
    logic [31:0] psn;
    logic [PktsW-1:0] packets; // So many were asked for on this opening.
  } return_asked_t;

  // A packet of a READ is settled: its data are in host memory, or it failed.
  typedef struct packed {
    logic [15:0]     spdcid;   // Ours, by which it came.
    logic [MsgW-1:0] msg;
    logic            refused;  // Host memory refused a write.
    logic            fail;     // The target answered with `code`.
    logic [5:0]      code;
  } return_settle_t;

  // A message that left its PDC's queue; a READ has `packets` packets to settle.
  typedef struct packed {
    logic            read;
    logic [PdcW-1:0] pdc;
    logic [PktsW-1:0] packets;
    logic [PktsW-1:0] refused; // Of the packets asked for, so many will not be answered.
    tx_done_t        done;
  } return_end_t;

  // So many packets are not due any more.
  typedef struct packed {
    logic [15:0]     spdcid;   // Of the PDC, with its opening.
    logic [DueW-1:0] packets;
  } return_due_t;

  // A PDC of ours that opens: its return direction begins at the same PSN.
  typedef struct packed {
    logic [PdcW-1:0] pdc;
    logic            rud;      // Its data come in any order.
    logic            ipv6;
    logic [127:0]    fa;
    logic [15:0]     spdcid;
    logic [31:0]     start_psn;
  } return_open_t;

  // ACKs of return data that were put off.
  typedef struct packed {
    logic            due;        // One has waited long enough.
    logic            pending;    // One waits: time matters.
    logic            respond;    // Of that looked at: `answer` leaves.
    response_t       answer;
  } return_late_t;

  // What becomes of a packet of the return direction, with all it changes.
  typedef struct packed {
    logic            respond;
    response_t       rsp;
    logic            place;      // `stream` bytes leave the payload queue; `bytes` of them are written.
    logic [13:0]     stream;
    logic [13:0]     bytes;
    logic            segmented;  // The address is an offset in the segments of `msg`.
    logic [63:0]     iova;
    logic [7:0]      owner;
    logic [15:0]     spdcid;     // Ours.
    logic            first;      // First data of the READ.
    logic            last;       // Its last: it has all.
    logic            settle;     // It is a packet of the READ `msg`.
    logic            fail;       // The target answered with `code` instead of data.
    logic [5:0]      code;
    logic [MsgW-1:0] msg;        // The READ, with first, last, settle.
    logic [NumStat-1:0] stat;
  } return_verdict_t;
endpackage
