// SPDX-License-Identifier: Apache-2.0
// Sizes of the NIC and the records that its units exchange.
//
// Every stream between units is valid/ready with one of these structs: `valid`
// never waits for `ready`, and an offered record is held until it is taken.

package heddle_pkg;
  import heddle_contract_pkg::*;

  // ------------------------------------------------------------------- sizes
  localparam int unsigned NumTx  = 16;    // Transmit contexts.
  localparam int unsigned NumRx  = 16;    // Receive contexts.
  localparam int unsigned NumCq  = 32;    // Completion queues.
  localparam int unsigned NumVec = 32;    // MSI-X vectors.
  localparam int unsigned NumMsg = 1024;  // Message table entries.
  localparam int unsigned NumPdc = 256;   // PDCs as initiator; as many as target.
  localparam int unsigned NumHop = NextHops;
  localparam int unsigned NumRegion = 1024;  // Entries of the region table.
  localparam int unsigned NumCounter = 64;   // Counters.

  localparam int unsigned TxW  = $clog2(NumTx);
  localparam int unsigned RxW  = $clog2(NumRx);
  // A message that is opened ahead of a gap takes a receive buffer and a completion credit only where so many are free:
  // those of the missing packets need theirs, and it cannot end before them.
  localparam int unsigned SpareBuffers = 4;
  localparam int unsigned SpareCredits = 16;
  localparam int unsigned CqW  = $clog2(NumCq);
  localparam int unsigned VecW = $clog2(NumVec);
  localparam int unsigned MsgW = $clog2(NumMsg);
  localparam int unsigned PdcW = $clog2(NumPdc);
  // Messages that a RUD PDC may have open beside the one of its expected packet. The low bits of the message ID
  // select the place.
  localparam int unsigned TableMessages = 4;
  localparam int unsigned TableMessageW = $clog2(TableMessages);
  localparam int unsigned HopW = $clog2(NumHop);
  localparam int unsigned RegionW = $clog2(NumRegion);

  localparam int unsigned NumGroup = 32;  // Operations of several descriptors, per context.
  localparam int unsigned GroupW   = $clog2(NumGroup);
  localparam int unsigned MemberW  = MsgW + 2;  // Descriptors of one; may wrap.

  // Generation of a context or queue. Messages of one that was destroyed may wait for their peer for
  // dead_ns, 60 s by default, and are told from those of its number's later uses by it. A use takes two
  // admin commands and a drain, 700 cycles and more: 2^27 of them, two generations each, take minutes.
  localparam int unsigned GenW  = 28;
  // PDCID: {slot, role, generation, index}; what comes for a PDCID is told apart by its role.
  // PDCID 0 is never used: the initiator leaves out index 0 in slot 0.
  localparam int unsigned PdcGenW    = 16 - SlotBits - 1 - PdcW;
  localparam int unsigned PdcRoleBit = PdcW + PdcGenW;
  localparam logic        RoleInitiator = 1'b0;
  localparam logic        RoleTarget    = 1'b1;
  localparam int unsigned SeqW  = 16;  // Order of packets in the transmit path.
  localparam int unsigned PktW  = 22;  // Index of a packet in its message, and
  localparam int unsigned PktsW = PktW + 1;  // number of its packets: 2^22 of 1 KiB.
  localparam int unsigned WantW = MsgW + 1;  // Number of peers that wait for a PDC.
  localparam int unsigned FlowHashW = 7;
  localparam int unsigned FlowW = TxW + FlowHashW;  // A peer of a transmit context, see flow_of.
  localparam int unsigned PeerShare = MessageShare / 8;  // Messages of a flow that is stuck.
  localparam int unsigned AgainBatch = 16;  // Operations of a flow that are brought back at a time.
  localparam int unsigned AgainW = $clog2(AgainBatch) + 1;
  localparam int unsigned SpillAreas    = 4;   // In the NIC, for contexts with `early_release`; at least 2.
  localparam int unsigned SpillAreaLog2 = 10;  // Slots of each.
  localparam int unsigned SpillAreaW    = $clog2(SpillAreas);
  localparam int unsigned SpillRowW     = SpillAreaW + SpillAreaLog2;
  localparam int unsigned MaxPayload = 8192;  // Largest payload MTU.
  localparam int unsigned NumPushed = 32;  // Payloads kept that were pushed.
  localparam int unsigned PushedW   = $clog2(NumPushed);
  localparam int unsigned PushTagW  = 64;  // Number of a pushed payload; never used twice.
  localparam int unsigned HdrBytes = 144;  // Longest header stack of a frame, inline payload included.
  localparam int unsigned HdrW     = 8 * HdrBytes;

  // Clients of the DMA engines.
  localparam int unsigned NumRd     = 6;
  localparam int unsigned RdPayload = 0;
  localparam int unsigned RdTxDesc  = 1;
  localparam int unsigned RdRxDesc  = 2;
  localparam int unsigned RdAv      = 3;
  localparam int unsigned RdMailbox = 4;
  localparam int unsigned RdSpill   = 5;
  localparam int unsigned NumWr     = 5;
  localparam int unsigned WrPayload = 0;
  localparam int unsigned WrCq      = 1;
  localparam int unsigned WrMailbox = 2;
  localparam int unsigned WrCounter = 3;
  localparam int unsigned WrSpill   = 4;

  // --------------------------------------------------------- host side, control
  typedef struct packed {
    logic [7:0]  page;    // Page of BAR2.
    logic [11:0] offset;  // Byte offset in the page, 8-byte aligned.
    logic [63:0] data;
  } doorbell_t;

  // Words that are written to a slot of a push window.
  typedef struct packed {
    logic [7:0]   words;  // Those of 64 bits that were written.
    logic [511:0] data;
  } push_t;

  // Table port: `valid` with this is held until the addressed unit answers `done`
  // for one cycle, with `error` and (reads) 64 bytes of data.
  typedef struct packed {
    table_op_e    op;
    table_e       sel;
    logic [15:0]  index;
    logic [511:0] data;
  } table_req_t;

  typedef struct packed {
    logic         done;
    logic         error;  // No such entry.
    logic [511:0] data;
  } table_rsp_t;

  // -------------------------------------------------------------------- DMA
  typedef struct packed {
    logic [63:0] addr;   // Any alignment.
    logic [13:0] bytes;  // 1 to 8192.
    logic [7:0]  owner;  // Function.
  } dma_req_t;

  // ---------------------------------------------------------------- transmit
  // Local segments of a message.
  typedef struct packed {
    logic [LocalSegments-1:0][63:0] iova;
    logic [LocalSegments-1:0][31:0] length;
  } segments_t;

  // A packet's payload to read.
  typedef struct packed {
    logic            segmented;  // From the segments of `msg`; else from one place.
    logic [MsgW-1:0] msg;
    logic [31:0]     offset;     // In the message.
    logic            in_nic;     // The one place is in the NIC's memory for spilled slots: this row.
    logic [SpillRowW-1:0] row;
    dma_req_t        read;       // Its address is that of the one place in host memory.
  } gather_req_t;

  // The same, perhaps of payload that was pushed.
  typedef struct packed {
    logic [PushTagW-1:0] pushed; // Not 0: heddle_tx_pushed may have all of it, under this number.
    gather_req_t         gather;
  } payload_req_t;

  // What a descriptor is to an operation of several.
  typedef struct packed {
    logic               valid;     // It is one of them.
    logic [GroupW-1:0]  number;
    logic [MemberW-1:0] members;   // The last one: how many came before it.
  } group_t;

  // A descriptor on its way from the ring to the message table.
  typedef struct packed {
    logic            token;       // Drain token: passes through, nothing else valid but ctx, gen.
    logic [TxW-1:0]  ctx;
    logic [GenW-1:0] gen;         // Generation of the context.
    logic [7:0]      owner;       // Function.
    logic [CqW-1:0]  cq;
    logic [GenW-1:0] cq_gen;
    logic [15:0]     position;
    logic [2:0]      slots;       // Ring slots, extensions included.
    group_t          group;
    opcode_e         opcode;
    logic [7:0]      flags;       // tx_flag.
    status_e         status;      // Not ok: completes at once with this.
    logic [31:0]     peer;
    logic [15:0]     rx_index;
    logic [31:0]     length;
    logic [63:0]     op_context;
    logic [63:0]     header_data;
    logic [63:0]     match_bits;
    logic [63:0]     remote_offset;
    logic [63:0]     iova;        // Payload; for inline payload its place in the ring.
    logic [127:0]    inline_data; // Byte 0 in bits 7:0. With payload in extension slots: 0, or its number in heddle_tx_pushed.
    logic [23:0]     job_id;
    logic [11:0]     source_pid;
    logic [11:0]     source_ri;
    logic            rel;         // Requests name the target in the job.
    logic [5:0]      dscp;
    logic            rud;         // Goes on a RUD PDC, otherwise ROD.
    logic            segmented;   // Payload is in pieces: the first at `iova`,
    logic [LocalSegments-2:0][63:0] more_iova;  // the others here, of these lengths.
    logic [LocalSegments-1:0][31:0] lengths;
  } tx_op_t;

  // The same, with its context's address vector.
  typedef struct packed {
    logic [63:0]     av_base;
    logic [31:0]     av_entries;
    tx_op_t          op;
  } tx_fetched_t;

  // An operation, peer resolved.
  typedef struct packed {
    tx_op_t          op;
    logic            ipv6;
    logic [127:0]    fa;
    logic [11:0]     pid_on_fep;
    logic [11:0]     resource_index;  // First RI of the peer.
    logic [HopW-1:0] hop;
  } tx_resolved_t;

  // Operations of a context on one PDC are of one flow, and perhaps those of others. Peers that are
  // neighbours in the address vector are not.
  function automatic logic [FlowHashW-1:0] flow_hash(logic [31:0] peer, logic [15:0] rx_index);
    logic [FlowHashW-1:0] by_peer, by_index;
    by_peer   = peer[6:0] ^ peer[13:7] ^ peer[20:14] ^ peer[27:21] ^ {3'b0, peer[31:28]};
    by_index  = {rx_index[0], rx_index[1], rx_index[2], rx_index[3], rx_index[4], rx_index[5],
                 rx_index[6]} ^ rx_index[13:7] ^ {5'b0, rx_index[15:14]};
    flow_hash = by_peer ^ by_index;
  endfunction
  function automatic logic [FlowW-1:0] flow_at(logic [TxW-1:0] ctx, logic [FlowHashW-1:0] hash, logic rud);
    flow_at = {ctx, hash ^ {1'b0, rud, 5'b0}};
  endfunction
  function automatic logic [FlowW-1:0] flow_of(logic [TxW-1:0] ctx, logic [31:0] peer,
                                               logic [15:0] rx_index, logic rud);
    flow_of = flow_at(ctx, flow_hash(peer, rx_index), rud);
  endfunction

  // A descriptor that waits after others of its flow.
  typedef struct packed {
    logic [TxW-1:0]   ctx;
    logic [FlowW-1:0] flow;
    logic [15:0]      position;
    logic [2:0]       slots;
    logic [63:0]      ring;   // Base of its ring.
    group_t           group;
  } tx_keep_t;

  // The part that is kept of it.
  typedef struct packed {
    logic [15:0]     position;
    logic [2:0]      slots;
    group_t          group;
  } tx_wait_t;

  // A descriptor that was read again, from its ring or from the spill area.
  typedef struct packed {
    logic [TxW-1:0]         ctx;
    logic [RingLog2Max-1:0] slot;
    logic                   holds;   // It still has its slots: in its ring.
    logic                   failed;  // It could not be read.
    tx_wait_t               info;
    logic [1:0][511:0]      data;    // Its first slot, and the second if it has one.
  } tx_again_t;

  // Slots to release before their operation ends.
  typedef struct packed {
    logic            waits;     // It waits, and has no message; otherwise that of
    logic [MsgW-1:0] msg;
    logic [TxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [15:0]     position;
    logic [2:0]      slots;
  } tx_give_t;

  // Slots of a spill area.
  typedef struct packed {
    logic [TxW-1:0]         ctx;
    logic [GenW-1:0]        gen;
    logic [RingLog2Max-1:0] slot;
    logic [2:0]             slots;
  } spill_place_t;

  // An operation whose slots are released early.
  typedef struct packed {
    logic                   waits;    // In a list, with this number; otherwise it is this message.
    logic [RingLog2Max-1:0] number;
    logic [MsgW-1:0]        msg;
    logic [15:0]            position;
    logic [2:0]             slots;
    logic                   copied;   // So many slots, to here in the area.
    logic [2:0]             extra;
    logic [RingLog2Max-1:0] first;
  } spill_item_t;

  // Slots of a spill area in the NIC to read, from the start of a row on.
  typedef struct packed {
    logic [SpillRowW-1:0] row;
    logic [7:0]           bytes;  // 1 to 192.
  } spill_read_t;

  // Where an operation that waits is: in its ring, unless
  typedef struct packed {
    logic                   pending;  // its slots are being released,
    logic                   given;    // or were: it is in the area, from this slot on.
    logic [RingLog2Max-1:0] first;
  } spill_where_t;

  // What a packet of a message needs (message table, written once).
  typedef struct packed {
    logic [TxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [7:0]      owner;
    opcode_e         opcode;
    logic [7:0]      flags;
    logic [23:0]     job_id;      // And the source: those of a RUD PDC differ.
    logic [11:0]     source_pid;
    logic [11:0]     source_ri;
    logic [11:0]     resource_index;
    logic [31:0]     length;
    logic [63:0]     header_data;
    logic [63:0]     match_bits;
    logic [63:0]     remote_offset;
    logic [63:0]     iova;
    logic            segmented;   // heddle_tx_gather has its segments.
    logic [127:0]    inline_data; // As in tx_op_t.
  } msg_packet_t;

  // What the completion of a message needs (message table, written once).
  typedef struct packed {
    logic [TxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [7:0]      owner;
    logic [CqW-1:0]  cq;
    logic [GenW-1:0] cq_gen;
    logic [15:0]     position;
    logic [2:0]      slots;
    group_t          group;
    opcode_e         opcode;
    logic [7:0]      flags;
    logic [31:0]     peer;
    logic [31:0]     length;
    logic [63:0]     op_context;
  } msg_done_t;

  // A message that ended, or a drain token.
  typedef struct packed {
    logic            token;
    logic [TxW-1:0]  ctx;     // Token only.
    logic [GenW-1:0] gen;     // Token only.
    logic [MsgW-1:0] msg;
    status_e         status;
    logic [15:0]     detail;
  } tx_done_t;

  // What every packet of a PDC needs at the initiator, written when it opens.
  typedef struct packed {
    logic            rud;         // Otherwise ROD.
    logic            ipv6;
    logic [127:0]    fa;          // Peer.
    logic [HopW-1:0] hop;
    logic [5:0]      dscp;
    logic [15:0]     spdcid;      // Ours.
    logic [31:0]     start_psn;
    logic [15:0]     entropy;     // UDP source port.
    logic [11:0]     pid_on_fep;  // Target.
    logic            rel;         // Requests name the target in the job.
  } pdc_peer_t;

  // A request packet that has its PSN and will be sent, or a control packet.
  typedef struct packed {
    logic [PdcW-1:0] pdc;
    logic [MsgW-1:0] msg;
    logic [31:0]     psn;
    logic [PktW-1:0] index;     // Packet of the message.
    logic            last;      // eom.
    logic            syn;
    logic            retx;
    logic            ar;
    logic            failed;    // Payload is not to be read: ie=1, no payload.
    logic            control;   // Control packet of the PDC: msg, index, last, failed mean nothing.
    cp_type_e        cp_type;   // Control packet.
    logic [31:0]     clear_psn; // Also the payload of a Clear Command.
    logic [15:0]     tpdcid;
  } tx_packet_t;

  // What happened to a PDC, for the walk over its queue.
  typedef enum logic [2:0] {
    WalkOpen,     // `psn` is the first PSN of the queue's head.
    WalkAck,      // Acknowledged up to before `psn`.
    WalkReturn,   // The same; answer where to send again from.
    WalkRetire,   // Give it up if its queue is empty.
    WalkMove,     // It ended: end what was transmitted (before `psn`), keep the rest.
    WalkFail,     // Its peer is dead: end every message.
    WalkClose,    // It was given up and is closed.
    WalkRestart   // Its target began anew: what is not acknowledged goes again, but for RMA operations begun there.
  } walk_kind_e;

  typedef struct packed {
    walk_kind_e      kind;
    logic [PdcW-1:0] pdc;
    logic [31:0]     psn;
    logic            refused; // The message of `psn` - 1 was refused: it ends with `detail`.
    logic            reads;   // READs of the PDC wait for data that will not come.
    status_e         status;  // Of the messages that end.
    logic [15:0]     detail;
  } pdc_walk_t;

  // Answer of the walk.
  typedef enum logic [1:0] {
    BackResend,   // Send again from `psn`, packet `index` of the queue's head.
    BackLeave,    // The PDC is forgotten: close it.
    BackReopen,   // Open it again; what is queued goes from its first packet on.
    BackClosed    // The PDC is free.
  } back_kind_e;

  typedef struct packed {
    back_kind_e      kind;
    logic [PdcW-1:0] pdc;
    logic [31:0]     psn;
    logic [PktW-1:0] index;
  } pdc_back_t;

  // Where a packet lost its payload, by its DSCP (`transport_cfg`).
  typedef enum logic [1:0] {
    TrimNone    = 2'd0,
    TrimPath    = 2'd1,
    TrimLasthop = 2'd2
  } trim_e;

  // ---------------------------------------------------------------- receive
  // Headers of one good frame, in host order. Payload follows in the payload queue.
  typedef struct packed {
    logic         ipv6;
    logic [127:0] source_fa;
    logic [47:0]  source_mac;
    logic [15:0]  source_port;   // Entropy, echoed in ACK and NACK.
    logic [5:0]   dscp;
    logic         ce;            // ECN-marked.
    pds_type_e    pds_type;
    logic [3:0]   next_hdr;      // next_hdr_e, or cp_type_e in a CP.
    logic         retx;
    logic         ar;
    logic         syn;
    logic         m;             // ACK: what it answers came marked.
    logic         probe;         // ACK flag p.
    logic [1:0]   req;           // ACK.
    logic [15:0]  sack_offset;   // ACK_CC: SACK base - cack_psn, signed.
    logic [15:0]  offset;        // clear_psn_offset or ack_psn_offset, signed; CP: probe_opaque.
    logic [31:0]  psn;           // psn, cack_psn or nack_psn.
    logic [15:0]  spdcid;
    logic [15:0]  dpdcid;        // syn=0.
    logic [11:0]  psn_offset;    // syn=1.
    logic [7:0]   nack_code;     // ACK_CC: its mpr.
    logic [31:0]  pds_payload;   // NACK and CP.
    // Standard request.
    logic [5:0]   opcode;
    logic [1:0]   ses_ver;
    logic         dc;
    logic         ie;
    logic         rel;
    logic         hd;
    logic         eom;
    logic         som;
    logic [15:0]  message_id;
    logic [23:0]  job_id;
    logic [11:0]  pid_on_fep;
    logic [11:0]  resource_index;
    logic [63:0]  buffer_offset;
    logic [31:0]  initiator;
    logic [63:0]  match_bits;      // ACK_CC: its SACK bitmap.
    logic [63:0]  header_data;     // ACK_CC: its NSCC state; 0 for another cc_type.
    logic [31:0]  message_offset;  // 0 when som.
    logic [31:0]  request_length;
    // Response.
    logic [5:0]   response;
    logic [5:0]   return_code;
    logic [13:0]  payload_bytes;   // From the UDP length; what is in the payload queue.
    logic [13:0]  read_bytes;      // READ: what the packet asks for.
    logic         contradicts;     // Request: its lengths contradict each other or the payload MTU.
    logic         other_gen;       // Request: of another RI generation than the one there is, 0.
    trim_e        trim;            // Not TrimNone: a request, of which nothing behind its PDS header is known.
  } rx_packet_t;

  // heddle_rx_reorder about a packet that heddle_accept has, and what it decided.
  typedef struct packed {
    logic        room;  // The packet may be kept.
    logic        mine;  // Its PDC has the buffer;
    logic [31:0] next;  // this PSN follows the last one that was kept.
  } reorder_t;

  typedef struct packed {
    logic            decided;   // About a packet.
    logic            keep;      // It is kept.
    logic            early;     // It came out of order.
    logic            moved;     // `expected` is that of the PDC now.
    logic            ended;     // The PDC is over.
    logic [PdcW-1:0] pdc;
    logic [31:0]     expected;
  } reorder_verdict_t;

  // Receive buffer taken by a message.
  typedef struct packed {
    logic [RxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [7:0]      owner;
    logic [CqW-1:0]  cq;
    logic [GenW-1:0] cq_gen;
    logic [15:0]     position;
    logic [31:0]     length;
    logic [63:0]     iova;
    logic [63:0]     op_context;
  } rx_buffer_t;

  // What an RMA packet asks of the region table.
  typedef struct packed {
    logic [63:0]  key;
    logic [63:0]  offset;          // buffer_offset of the message.
    logic [31:0]  length;          // Of the message.
    logic [31:0]  message_offset;  // Of the packet's first byte.
    logic [23:0]  job_id;
    logic         rel;             // Target endpoint: this,
    logic [11:0]  pid_on_fep;      // and this, and the block of
    logic [11:0]  resource_index;
    logic [7:0]   needs;           // Rights, bits of region_flag.
  } rma_request_t;

  typedef struct packed {
    return_code_e code;            // ok, or why not. The rest with ok, or where only a right or the
                                   // range is missing.
    logic [63:0]  iova;            // Of the packet's first byte.
    logic [7:0]   owner;           // Function that registered the region.
    logic [7:0]   counter;         // As in region_cfg.
    logic [RegionW-1:0] region;    // Its entry.
  } rma_answer_t;

  // Operation to count, and where: counters plus 1, 0 for none.
  typedef struct packed {
    logic            failed;
    logic [7:0]      own;        // Of the context.
    logic [7:0]      region;     // Of the memory region.
  } count_t;

  // Counters of a receive context, as in rx_ctx_cfg.
  typedef struct packed {
    logic [7:0]      recv;
    logic [7:0]      remote_read;
    logic [7:0]      remote_write;
  } rx_counters_t;

  // Counters of a transmit context, as in tx_ctx_cfg.
  typedef struct packed {
    logic [7:0]      send;
    logic [7:0]      read;
    logic [7:0]      write;
  } tx_counters_t;

  // Completion, or return of what was reserved for one.
  typedef struct packed {
    logic            token;      // Drain token: answered when all writes before it returned.
    logic            write;      // Write a completion; otherwise only credit and head cell.
    logic            credit;     // One credit of the queue is held for this.
    logic            head;       // Write queue_head to head_cell as well.
    logic [63:0]     head_cell;
    logic [7:0]      owner;
    logic [CqW-1:0]  cq;
    logic [GenW-1:0] cq_gen;
    completion_t     entry;      // phase is set by the completion queue.
    count_t          count;      // failed is set by the completion queue.
  } cq_event_t;

  // One packet's payload to place, or to pop from the payload queue and drop.
  typedef struct packed {
    logic            token;      // Drain token for the completion queue.
    logic [13:0]     stream;     // Bytes of the packet in the payload queue.
    logic [13:0]     bytes;      // Of these, bytes to write, from the first on.
    logic [63:0]     iova;
    logic [PdcW-1:0] tpdc;       // Target PDC: where write errors of a message collect.
    logic            first;      // First packet of the message: forget old errors.
    logic            alone;      // Beside the message of the PDC: errors are this packet's.
    logic            tabled;     // A message of the table, whose write errors collect at
    logic [TableMessageW-1:0] place;  // this place of the PDC.
    logic            complete;   // Last packet: emit `event`, status local_access if a write failed.
    logic            visible;    // Tell the accept stage of `psn` when the write was answered.
    logic [31:0]     psn;
    cq_event_t       ev;         // `owner` counts in every record.
    logic            job;        // Then the oldest return job may go on.
    // Data of a READ of ours, or an error instead.
    logic            back;
    logic [15:0]     spdcid;     // Our PDC.
    logic            segmented;  // `iova` is an offset in the segments of `msg`.
    logic            settle;     // Report it as one packet of the READ `msg`.
    logic [MsgW-1:0] msg;
    logic            fail;
    logic [5:0]      code;       // With fail.
  } place_t;

  // ---------------------------------------------------- acknowledgements, control
  // Accepted ACK or NACK for one of our PDCs (identity checked by the PDC unit).
  typedef struct packed {
    logic            nack;
    logic            ask;        // With nack: neither, but a control packet that asks for `req`.
    logic [PdcW-1:0] pdc;        // From dpdcid.
    logic [15:0]     dpdcid;     // Whole, to check slot and generation.
    logic [15:0]     spdcid;     // Target's PDCID; 0 in a NACK without PDC.
    logic [127:0]    fa;         // Source of the packet.
    logic [31:0]     cack;       // ACK.
    logic [31:0]     psn;        // ack_psn or nack_psn.
    logic [1:0]      req;
    logic [7:0]      code;       // NACK.
    logic [5:0]      return_code;
    logic            m;          // What it answers came marked.
    logic            retx;       // It answers a retransmission.
    logic            sack;       // ACK_CC: what follows is valid.
    logic [7:0]      range;      // MP_Range / 128; 0: not stated.
    logic [31:0]     sack_base;
    logic [63:0]     sack_bitmap;   // Bit i: PSN sack_base + i was received. A clear bit says nothing.
    logic [15:0]     service_time;  // 128 ns; 0: not known.
    logic [23:0]     rcvd_bytes;    // 256 bytes, wraps.
    logic            data;       // It carries the data of a small READ, which wait to be cleared.
  } ack_event_t;

  typedef enum logic [1:0] {
    ResponseAck   = 2'd0,  // ACK with SES response.
    ResponseNone  = 2'd1,  // ACK without SES header (answer to a control packet).
    ResponseNack  = 2'd2,
    ResponseOffer = 2'd3   // Negotiation control packet: no feature is on.
  } response_kind_e;

  // ACK, NACK or Negotiation to build.
  typedef struct packed {
    response_kind_e  kind;
    logic            probe;       // ACK: of a Probe, whose probe_opaque is `ack_offset`.
    logic            rod;         // Negotiation, ACK_CC: of a ROD PDC.
    logic            ipv6;
    logic [127:0]    fa;          // Destination.
    logic [47:0]     mac;
    logic [15:0]     entropy;
    logic [5:0]      dscp;
    logic            m;
    logic            retx;
    ack_req_e        req;         // ACK.
    logic            cc;          // ACK: an ACK_CC.
    logic [63:0]     sack_bitmap; // ACK_CC: bit i: PSN cack + 1 + i was received.
    logic [15:0]     service_time;  // ACK_CC: 128 ns; 0: neither this nor what follows is known,
    logic [23:0]     rcvd_bytes;    // 256 bytes, nor how many came out of order.
    logic [15:0]     spdcid;
    logic [15:0]     dpdcid;
    logic [31:0]     cack;        // NACK ROD_OOO: the PSN expected.
    logic [15:0]     ack_offset;
    logic [31:0]     nack_psn;    // NACK, Negotiation.
    logic [7:0]      code;
    logic [7:0]      vendor_code;
    logic [5:0]      response;    // ses_response_e.
    logic [5:0]      return_code;
    logic [15:0]     message_id;
    logic [23:0]     job_id;
    logic [31:0]     modified_length;
  } response_t;

  // ------------------------------------------------------------------ frames
  // Header stack of a frame to send, first byte in the top bits of `bytes`.
  typedef struct packed {
    logic [HdrW-1:0] bytes;
    logic [7:0]      length;         // Header bytes.
    logic [13:0]     payload_bytes;  // Bytes that follow from the payload queue.
    logic            trailer;        // The end-to-end CRC follows them.
    logic [31:0]     crc;            // Its bytes in the order of the wire, the first in bits 7:0.
  } frame_head_t;

  // Statistics: one strobe per counter and cycle; tx_bytes and rx_bytes are added.
  localparam int unsigned NumStat = 64;

endpackage
