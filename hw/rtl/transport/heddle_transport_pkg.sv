// SPDX-License-Identifier: Apache-2.0
// Records inside the transport blocks.

package heddle_transport_pkg;
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;

  // A request or control packet inside heddle_tx_build, with all that its frame needs.
  typedef struct packed {
    logic            control; // Control packet: has no message and no payload.
    cp_type_e        cp_type;
    logic [31:0]     clear_psn;
    logic            drop;    // No next hop: leaves no frame.
    logic            stale;   // Its context is disabled or of another generation.
    logic            ie;      // Leaves without payload.
    logic            read;    // Payload was requested: a record comes for it.
    logic            back;    // Data of a peer's READ, an error response if there are none.
    logic [5:0]      code;    // Of that response.
    logic [15:0]     message_id;  // Of the READ.
    logic            asks;    // A READ: `bytes` are what it asks for.
    logic            inlined; // Payload is `inline_data`.
    logic [13:0]     bytes;   // Payload, inline or requested.
    logic [MsgW-1:0] msg;
    logic [TxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [47:0]     mac;     // Next hop.
    logic [11:0]     vlan;    // 0: no tag.
    logic            ipv6;
    logic [127:0]    fa;
    logic [5:0]      dscp;
    logic [15:0]     entropy;
    logic            retx;
    logic            ar;
    logic            syn;
    logic            rud;     // Otherwise ROD.
    logic [15:0]     clear_offset;
    logic [31:0]     psn;
    logic [15:0]     spdcid;
    logic [15:0]     dpdcid;  // With syn: psn_offset.
    logic [5:0]      opcode;
    logic            dc;
    logic            rel;
    logic            hd;
    logic            eom;
    logic            som;
    logic [23:0]     job_id;
    logic [11:0]     pid_on_fep;
    logic [11:0]     resource_index;
    logic [63:0]     buffer_offset;
    logic [11:0]     source_pid;
    logic [11:0]     source_ri;
    logic [63:0]     match_bits;
    logic [63:0]     header_data;
    logic [31:0]     message_offset;
    logic [31:0]     request_length;
    logic [127:0]    inline_data;
  } tx_request_t;

  // From a packet's choice until heddle_tx_build has counted its payload.
  localparam int unsigned PauseCycles = 2;

  // Bytes that the end-to-end CRC covers, payload behind the headers apart: both IP addresses
  // (those of IPv4 in the last 8 of their bytes), UDP, PDS, SES, inline payload.
  localparam int unsigned AddressBytes = 32;
  localparam int unsigned CoveredBytes =
      AddressBytes + UdpBytes + PdsRequestBytes + SesStdBytes + InlineBytes;
  localparam int unsigned CoveredW     = 8 * CoveredBytes;

  // A header stack before it is put together. First bytes on top.
  typedef struct packed {
    ethernet_t           ethernet;
    logic [11:0]         vlan;           // 0: no tag.
    logic                ipv6;
    logic                trailer;        // With the end-to-end CRC,
    logic                msb_first;      // its most significant byte first.
    logic [95:0]         ip;             // IP header before its addresses; 8 bytes of IPv6.
    logic [CoveredW-1:0] covered;        // Zero where there is nothing. UDP checksum 0.
    logic [7:0]          upper_bytes;    // From UDP on, payload behind the headers apart.
    logic [13:0]         payload_bytes;  // Behind the headers.
  } tx_stack_t;

  // The same with what is known of the payload behind it.
  typedef struct packed {
    tx_stack_t   hdr;
    logic [31:0] crc;  // Raw CRC-32C state from 0.
  } tx_raw_t;

  // What a message at the target does with the packets that follow.
  typedef enum logic [1:0] {
    MessageNone    = 2'd0,  // No message is open: a som packet comes next.
    MessageOpen    = 2'd1,  // Placed in the buffer held, or in a region.
    MessageFailed  = 2'd2,  // Initiator error: a buffer may be held, nothing is placed.
    MessageDiscard = 2'd3   // Ended before its eom: acknowledged, with `code` if it has one, and dropped.
  } message_state_e;

  // A message at the target.
  typedef struct packed {
    message_state_e  state;         // What follows belongs to the message; RUD: what has its message_id.
    logic [31:0]     first_psn;     // RUD: PSN of its som packet, and
    logic [1:0]      piece_log2;    // bytes of each packet but the last, in KiB.
    logic            last_known;    // RUD: its eom packet has come, with
    logic [31:0]     last_psn;      // this PSN.
    return_code_e    code;          // Answer to the rest of a message that was refused.
    logic            rma;           // The message is an RMA operation: `buffer` is its receive context.
    logic            read;          // It is a READ.
    logic            credit;        // A completion credit is held for it.
    logic            gone;          // Its context was disabled, whatever is there now.
    rx_buffer_t      buffer;
    logic [15:0]     queue_head;
    logic [31:0]     request_length;
    logic [31:0]     bytes;         // Received so far; RUD: in any order.
    logic [15:0]     message_id;
    logic [23:0]     job_id;
    logic [31:0]     initiator;
    logic [63:0]     match_bits;
    logic            hd;
    logic [63:0]     header_data;
  } target_message_t;

  // Target half of a PDC.
  typedef struct packed {
    logic            open;
    logic [PdcGenW-1:0] gen;        // Of the last opening.
    logic [(1 << PdcGenW)-1:0] used; // Generations opened since reset; this and `gen` survive a close.
    logic [127:0]    fa;
    logic            ipv6;
    logic [47:0]     mac;           // This and the next two: of the last packet accepted.
    logic [15:0]     entropy;
    logic [5:0]      dscp;
    logic [15:0]     spdcid;
    logic [31:0]     start_psn;
    logic [31:0]     expected;      // First PSN that has not come.
    logic            rud;           // Unordered: packets ahead of it may be accepted.
    logic [PdcWindow-1:0] ahead;    // Bit i: PSN expected + i has come. ROD: 0.
    rod_gap_t        gap;           // RUD: `open`, `refused` and `turned` only.
    logic [3:0]      unacked;       // Packets accepted since the last ACK.
    logic [31:0]     received;      // Nominal bytes accepted (UET 3.0), wraps.
    logic [15:0]     received_at;   // The last of them; 128 ns.
    logic            stored;        // An error answer is kept until the initiator has cleared it.
    logic [31:0]     stored_psn;    // Nothing from here on is acknowledged meanwhile.
    return_code_e    stored_code;
    logic [15:0]     stored_message;
    logic [23:0]     stored_job;
    logic            hidden;        // A message waits for its writes to be visible.
    logic [31:0]     hidden_base;   // Nothing behind this is acknowledged meanwhile.
    logic [31:0]     hidden_last;   // Last PSN of the youngest message that waits.
    logic            dc_ahead;      // RUD: the eom packet of a message with dc was accepted ahead, the youngest one
    logic [31:0]     dc_last;       // with this PSN.
    logic            returns;       // The return direction has begun.
    target_message_t message;       // The message of the expected packet.
    logic [TableMessages-1:0] table_open;  // RUD: those of the table that are in use.
  } target_pdc_t;

  // One way of a set: which target PDC serves {source FA, spdcid}.
  typedef struct packed {
    logic            valid;
    logic            ipv6;
    logic [127:0]    fa;
    logic [15:0]     spdcid;
    logic [PdcW-1:0] pdc;
  } target_way_t;

  // What a RUD PDC knows of the PSNs that are out. Positions count from the oldest unacknowledged.
  localparam int unsigned SackW = $clog2(PdcWindow) + 1;
  typedef struct packed {
    logic [PdcWindow-1:0] held;   // The target has them.
    logic [SackW-1:0]     lost;   // Before this, what is not held is sent again;
    logic [SackW-1:0]     again;  // before this, it was.
    logic [SackW-1:0]     round;  // First never sent, when something was sent again last.
    logic [PdcWindow-1:0] told;   // Known to be lost one by one: sent again, too.
    logic [PdcWindow-1:0] tried;  // Were so, and sent again.
  } sack_t;

  // What happened on a PDC that its congestion window depends on.
  localparam int unsigned FlightW = SackW;
  typedef struct packed {
    logic [PdcW-1:0]    pdc;
    logic               open;     // It begins. Or
    logic               timeout;  // its retransmission timer ended. Or
    logic               ack;      // an ACK came, for `packets` more,
    logic [FlightW-1:0] packets;
    logic [23:0]        rtt;      // ns; 0: it measured none;
    logic               marked;   // what it answers met congestion;
    logic [FlightW-1:0] lost;     // and so many packets are known to be lost,
    logic               trim;     // because the network trimmed them.
    logic [31:0]        now;      // ns, wraps.
  } nscc_event_t;

  // ----------------------------------------------------------- heddle_accept
  // Jobs that no packet requests pass through the stages in place of a packet.
  typedef enum logic [2:0] {
    JobNone   = 3'd0,
    JobAck    = 3'd1,  // Sends the ACK that was put off, or waited for visible data.
    JobForget = 3'd2,  // Ends the PDC.
    JobAsk    = 3'd3,  // Asks the initiator to close it.
    JobMark   = 3'd4,  // Marks its message if the context is gone.
    JobBack   = 3'd5,  // Sends an ACK that heddle_return_rx put off: of none of these PDCs.
    JobClose  = 3'd6   // As JobAsk, in the midst of a message too.
  } target_job_e;

  typedef enum logic [3:0] {
    OutcomeDrop,        // No answer, no change.
    OutcomeForward,     // ACK or NACK for one of our PDCs.
    OutcomeStrange,     // NACK without PDC.
    OutcomeOutside,     // NACK, no change.
    OutcomeRefuse,      // NACK, and quiet until the expected packet comes.
    OutcomeQuiet,       // After a gap that was reported.
    OutcomeReorder,     // Kept until it is the expected one.
    OutcomeClear,
    OutcomeDuplicate,
    OutcomeAccept,
    OutcomeQuery,
    OutcomeTell,        // An answer that has no news of packets.
    OutcomeClose,
    OutcomeForget,      // The PDC is gone; the initiator is not answered.
    OutcomeJob          // Another job than that.
  } accept_outcome_e;

  // A packet by itself, to its PDC and to its message, before anything is reserved (heddle_accept_class).
  typedef struct packed {
    logic               settled;    // `outcome` is final, with `code` and `stat`.
    accept_outcome_e    outcome;
    nack_code_e         code;
    logic [NumStat-1:0] stat;
    target_job_e        job;        // No packet.
    logic               defers;     // It has to come again: its message is
    logic [TableMessageW-1:0] first;  // the first of the table.
    logic               trimmed;
    logic               trim_named; // Trimmed: of an open PDC of its sender.
    logic               is_request, is_nack, is_ask, is_query, is_close, is_clear, is_probe, is_ack;
    logic               is_send, is_rma, is_read, is_no_op, bare, sized, other_ver;  // The last but one: a NO_OP that is not empty.
    logic               fresh;      // It opens its PDC.
    logic [15:0]        tpdcid;     // The PDC's.
    logic               may_clear;  // It clears up to
    logic [31:0]        clear_psn;  // this PSN.
    logic [31:0]        ahead;      // PSN - the one expected.
    logic               in_window, duplicate, expected, early, jumps;
    logic [PdcWindow-1:0] marked;   // PSNs from the expected one on that have come with it.
    logic               in_use;     // Its place in the table has a message,
    logic               in_table;   // which is its own.
    logic               held, stale, same, discards, alone;
    logic               mismatch;   // It contradicts its message.
    logic               length_ok;
    logic [31:0]        base;       // Offset of its bytes in the message.
    logic [31:0]        reach;
    logic [13:0]        part;       // Bytes that it carries or requests.
    logic [1:0]         part_log2;
    logic               past_last;  // The message has its eom packet, and this is not one before that.
    logic               unlooked;   // An old SYN, from before the PDC was acknowledged: the table was not read for it.
    logic               look_hit;
    return_code_e       look_miss;
    logic               job_ok, ctx_ok;  // Its JobID is the context's; its context is the message's.
    return_code_e       region_code;
    logic               region_ok;
    logic               asks, reports, told;
    logic               may_open;   // It is fresh, and opens its PDC, if that was not closed not long ago:
    logic               closed;
    logic               grave;      // A tombstone of its PDC has a place.
  } accept_class_t;

  // The decision, with all that the packet needs at hand (heddle_accept_outcome).
  typedef struct packed {
    accept_outcome_e    outcome;
    nack_code_e         code;
    logic [NumStat-1:0] stat;
    return_code_e       refusal;
    logic               starts, ignored, withdrawn, brief, tabled, serves;
    logic               clears;
    logic               stored;     // An error answer is kept still.
    logic               write;      // The entry changes,
    logic               plain;      // but only as after a message of one packet that was accepted, or a packet that was not.
    logic               accepts;    // Plain: `expected` and `ahead` change,
    logic               idles;      // and no message is open then.
    logic               keep;       // The message of the table changes.
    logic               take;       // A receive buffer.
    logic               credit;     // A completion credit.
    logic               reported;
    rod_gap_t           gap, gap_closed;
    trim_e              lost;       // With an accepted packet: the next one, which was trimmed, is not on its way.
    logic               gap_before, alone_missing;
    logic [31:0]        missing;    // First PSN missing before one that is reordered.
    logic [RxW-1:0]     ctx;        // The message's.
    logic               ends, may_end;     // The message ends with it; if nothing before the eom packet is missing.
    logic [31:0]        last;       // RUD: PSN of that, if it has come.
    logic               succeeds;   // If it ends, well.
    logic               hides, may_hide;  // The answer waits until its writes are visible; if it ends well.
    logic [31:0]        expected;   // The PDC's next one, if it is accepted.
    logic [$clog2(PdcWindow):0] run;
    logic               gaps;       // RUD: a PSN before or after it is missing.
    logic               pieces;     // RUD: the packet is one of a message whose packets come in any order.
    logic               sound;      // It adds to its message what its initiator means.
  } accept_decision_t;

  // Effect of the packet on its PDC (heddle_accept_entry).
  typedef struct packed {
    logic               heard;      // From the PDC's initiator.
    logic               write;      // The entry changes.
    logic               keep;       // The message of the table changes.
    logic               create;     // The PDC is new: it takes its way and its index.
    logic               close;      // The PDC is gone: it leaves them.
    logic               bury;       // It leaves a tombstone.
    logic               full;       // A SYN was refused for want of a PDC.
    logic               reap;       // The messages of the table have to end before the PDC may be closed.
    logic               hand;       // A return job, with the record.
    logic               owes;       // With write: the PDC has an ACK to send later.
    logic               respond;
    logic               place;      // A record leaves; heddle_accept_answer adds those that only count.
    logic               refuses_next;  // The answer is a NACK of the next packet, which was trimmed.
    logic               opens_return;  // First data of the return direction.
    logic               names;      // The answer names the packet's PSN.
    logic               repeats;    // It repeats the code of the message.
    logic               takes;      // The packet is accepted as its initiator means it.
    logic               fills;      // Its payload goes to the buffer.
    logic               table_open; // Its place in the table has a message afterwards.
    logic               first, hides, ends, returned, failed, tells, held_credit;
    logic [31:0]        last;       // PSN of the message's eom packet, if it has come.
    count_t             count;
    logic [15:0]        waited;     // Since the packet before; 128 ns.
    logic [NumStat-1:0] stat;
  } accept_effect_t;

  // Doubles `base` `shift` times, up to `limit`.
  function automatic logic [31:0] backed_off(logic [31:0] base, logic [3:0] shift, logic [31:0] limit);
    logic [47:0] wide;
    wide    = {16'b0, base} << shift;
    backed_off = (wide > {16'b0, limit}) ? limit : wide[31:0];
  endfunction

  // The first `n` positions.
  function automatic logic [PdcWindow-1:0] low_positions(logic [SackW-1:0] n);
    for (int unsigned i = 0; i < PdcWindow; i++) low_positions[i] = n[SackW-1] || n[SackW-2:0] > (SackW - 1)'(i);
  endfunction

  // To be retransmitted, unless they arrived: members of sack_t.
  function automatic logic [PdcWindow-1:0] due_positions(logic [SackW-1:0] lost, logic [SackW-1:0] again,
                                                         logic [PdcWindow-1:0] told, logic [PdcWindow-1:0] tried);
    due_positions = (low_positions(lost) & ~low_positions(again) & ~tried) | told;
  endfunction

  // How many of 8 bits are set, in two LUTs in a row: of 4 each, then the sum. Adders would be carry chains.
  function automatic logic [2:0] ones_of_4(logic [3:0] bits);
    logic two;
    two          = (bits[0] & bits[1]) | (bits[2] & bits[3]) | ((bits[0] | bits[1]) & (bits[2] | bits[3]));
    ones_of_4[0] = ^bits;
    ones_of_4[1] = two & ~(&bits);
    ones_of_4[2] = &bits;
  endfunction
  function automatic logic [3:0] ones_of_8(logic [7:0] bits);
    logic [2:0] low, high;
    logic       carry;
    low          = ones_of_4(bits[3:0]);
    high         = ones_of_4(bits[7:4]);
    ones_of_8[0] = low[0] ^ high[0];
    carry        = low[0] & high[0];
    ones_of_8[1] = low[1] ^ high[1] ^ carry;
    carry        = (low[1] & high[1]) | (carry & (low[1] | high[1]));
    ones_of_8[2] = low[2] ^ high[2] ^ carry;
    ones_of_8[3] = (low[2] & high[2]) | (carry & (low[2] | high[2]));
  endfunction

endpackage
