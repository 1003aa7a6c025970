// SPDX-License-Identifier: Apache-2.0
// A decision of heddle_accept as one record, for tests.

package accept_verdict_pkg;
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;

  // What becomes of a packet at the target, with all it changes. Valid for one packet.
  typedef struct packed {
    logic               respond;
    response_t          rsp;
    logic               place;
    place_t             record;
    logic               hand;      // A return job, with the record.
    return_job_t        job;
    logic               forward;   // ACK or NACK for one of our PDCs.
    ack_event_t         ack;
    logic               heard;     // From the PDC's initiator.
    logic               write;     // The entry becomes `entry`.
    target_pdc_t        entry;
    logic               keep;      // The message of the table becomes `message`.
    target_message_t    message;
    logic               reap;      // The messages of the table have to end before the PDC may be closed.
    logic               create;    // The PDC is new: it takes its way and its index.
    logic               close;     // The PDC is gone: it leaves them.
    logic               bury;      // It leaves a tombstone.
    logic               full;      // A SYN was refused for want of a PDC.
    logic               reorder;   // heddle_rx_reorder keeps the packet.
    logic               take;      // A receive buffer.
    logic               credit;    // A completion credit.
    logic [NumStat-1:0] stat;
  } verdict_t;
endpackage
