# SPDX-License-Identifier: Apache-2.0
"""A Packet Delivery Context (UE specification 1.0.3 3.5.8): two directions, opened by SYN, closed by a handshake."""

from . import pds
from .pds import Ctl, Nack
from .packet import Packet
from .receiver import Receiver, Reply
from .sender import Content, Sender


class Pdc:
    """One PDC. `peer` sends packets, executes requests and is told when the PDC ends; `path` is where requests go to."""

    def __init__(self, peer, initiates, mode, local, address, path, start_psn, remote=0):
        self.peer = peer
        self.clock = peer.clock
        self.options = peer.options
        self.initiates = initiates
        self.mode = mode
        self.local = local
        self.remote = remote
        self.address = address  # The other side's, without port.
        self.path = path
        self.start_psn = start_psn
        self.syn = initiates
        self.closing = False  # No new messages.
        self.close_sent = False
        self.ended = False
        self.error = None
        self.open_reads = 0
        self.tx = Sender(self, start_psn)
        self.rx = Receiver(self, start_psn)

    def count(self, what):
        self.peer.counts[what] += 1

    def transmit(self, packet, path=None):
        self.peer.transmit(path or self.path, packet)

    def control(self, ctl, psn=0, payload=0):
        self.transmit(Packet(pds.Control(ctl, psn, self.local, self.remote, payload)))

    def nack(self, code, header, reply_to, payload=0):
        self.count(f"nack_{code.name}")
        self.transmit(Packet(pds.NackPacket(code, header.psn, self.local, self.remote, payload)), reply_to)

    def execute(self, packet, reply_to):
        if isinstance(packet.pds, pds.Control):
            return Reply()
        return self.peer.execute(self, packet, reply_to)

    # ---- arrivals ----

    def arrive(self, packet, reply_to):
        header = packet.pds
        if isinstance(header, pds.Request):
            self.rx.arrive(packet, reply_to)
            self.close_if_idle()
        elif isinstance(header, pds.Ack):
            self.acknowledged(packet)
        elif isinstance(header, pds.NackPacket):
            self.refused(header)
        elif isinstance(header, pds.Control):
            self.controlled(packet, reply_to)

    def acknowledged(self, packet):
        if self.syn:
            self.remote, self.syn = packet.pds.spdcid, False
        self.tx.acknowledged(packet)
        if packet.pds.req == pds.Req.CLOSE and self.initiates:
            self.close()
        self.close_if_idle()

    def refused(self, nack):
        self.count(f"nacked_{nack.code:#04x}")
        if nack.code == Nack.UNEXP_EVENT and nack.psn not in self.tx.flights:
            return  # It answers a control packet.
        if nack.code == Nack.INVALID_SYN and nack.psn not in self.tx.flights:
            return  # It answers a late copy of a packet that is acknowledged.
        if self.close_sent and nack.code in (Nack.INV_DPDCID, Nack.CLOSING):
            self.end()  # Nothing is left to close.
        elif self.close_sent and nack.code == Nack.CLOSING_IN_ERR:
            return  # Its timer closes again, when the target's data is acknowledged.
        elif nack.code in pds.FATAL:
            self.fail(f"NACK {nack.code:#04x}")
        elif nack.code in pds.RETRANSMIT:
            self.tx.refused(nack)

    def controlled(self, packet, reply_to):
        header = packet.pds
        if header.ctl == Ctl.CLEAR_COMMAND:
            self.count("clear_commands")
            self.rx.clear_command(header.payload, reply_to)
        elif header.ctl == Ctl.CLEAR_REQUEST:
            self.tx.clear()
        elif header.ctl == Ctl.ACK_REQUEST:
            self.ack_request(header, reply_to)
        elif header.ctl == Ctl.CLOSE_COMMAND and not self.initiates:
            self.closed_by_initiator(packet, reply_to)
        elif header.ctl == Ctl.CLOSE_REQUEST and self.initiates:
            self.rx.arrive(packet, reply_to)
            self.close()
        elif header.ctl == Ctl.PROBE and self.options.probes:
            self.transmit(Packet(pds.Ack(pds.Next.NONE, self.rx.cack, self.local, self.remote,
                                         (header.probe_opaque + 0x8000 & 0xFFFF) - 0x8000, p=1)), reply_to)
        elif header.ctl == Ctl.NOOP and self.options.probes:
            self.rx.arrive(packet, reply_to)
        elif not self.options.probes:
            self.peer.refuse(Nack.UNEXP_EVENT, header, reply_to)

    def ack_request(self, header, reply_to):
        arrived = pds.distance(header.psn, self.rx.cack) <= 0 or header.psn in self.rx.replies
        if arrived:
            self.rx.acknowledge(header, self.rx.stored(header.psn), reply_to)
        else:
            self.nack(Nack.RCVD_SES_PROCG if header.psn in self.rx.kept else Nack.PKT_NOT_RCVD, header, reply_to)

    # ---- the end ----

    def close(self):
        """Initiator: stops accepting messages, and closes when all is acknowledged."""
        self.closing = True
        self.close_if_idle()

    def close_if_idle(self):
        if (self.closing and self.initiates and not self.close_sent and not self.ended and self.tx.idle
                and not self.open_reads):
            self.close_sent = True
            if self.syn:  # It never sent anything.
                self.end()
            else:
                self.tx.push(Content(control=Ctl.CLOSE_COMMAND, done=lambda *_: self.end()))

    def closed_by_initiator(self, packet, reply_to):
        if not self.tx.idle:
            self.nack(Nack.CLOSING_IN_ERR, packet.pds, reply_to, len(self.tx.flights) + len(self.tx.queue))
            return
        self.rx.clear(pds.advance(packet.pds.psn, -1))
        self.rx.arrive(packet, reply_to)
        if pds.distance(packet.pds.psn, self.rx.cack) <= 0:
            self.end()

    def end(self):
        if not self.ended:
            self.ended = True
            self.peer.ended(self)

    def fail(self, why):
        if not self.ended:
            self.error = why
            self.count(f"failed: {why}")
            self.end()
