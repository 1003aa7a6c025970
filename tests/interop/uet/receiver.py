# SPDX-License-Identifier: Apache-2.0
"""The receiving half of a PDC: which PSNs arrived, their answers, and the ACKs of one direction."""

import dataclasses

from . import pds, ses
from .packet import Packet
from .pds import advance, distance


@dataclasses.dataclass
class Reply:
    """What SES answers to a packet."""
    ses: object = None
    payload: bytes = b""
    guaranteed: bool = False

    @property
    def next(self):
        if self.ses is None:
            return pds.Next.NONE
        return pds.Next.RESPONSE_DATA if isinstance(self.ses, ses.ResponseData) else pds.Next.RESPONSE


REGENERATED = Reply(ses.Response(ses.Answer.DEFAULT, ses.Code.NULL, 0, 0, 0))


class Receiver:
    def __init__(self, pdc, start_psn):
        self.pdc = pdc
        self.cack = advance(start_psn, -1)
        self.expected = start_psn  # ROD: the next one that SES may see.
        self.replies = {}  # Of PSNs beyond CACK.
        self.kept = {}  # ROD with a reorder window: packets behind a gap.
        self.gap_reported = False
        self.unacknowledged_bytes = 0
        self.withheld = None  # Header of the last packet that only a cumulative ACK will cover.
        self.bytes = 0  # Payload that arrived, each once.

    def arrive(self, packet, reply_to):
        header = packet.pds
        after_cack = distance(header.psn, self.cack)
        window = self.pdc.options.window
        if not isinstance(header, pds.Control):
            self.clear(header.clear_psn)
            after_cack = distance(header.psn, self.cack)
        if after_cack > window or after_cack <= -window:
            # A copy that is so late does not matter to its sender.
            code = pds.Nack.INVALID_SYN if header.syn and after_cack <= 0 else pds.Nack.PSN_OOR_WINDOW
            self.pdc.nack(code, header, reply_to)
        elif after_cack <= 0 or header.psn in self.replies:
            self.pdc.count("duplicates")
            self.acknowledge(header, Reply() if isinstance(header, pds.Control) else self.stored(header.psn), reply_to)
        elif header.psn in self.kept:
            self.pdc.nack(pds.Nack.RCVD_SES_PROCG, header, reply_to)
        elif self.pdc.mode == pds.Type.ROD_REQ and header.psn != self.expected:
            self.out_of_order(packet, reply_to)
        else:
            self.deliver(packet, reply_to)
            while self.expected in self.kept and not self.pdc.ended:
                self.deliver(*self.kept.pop(self.expected))

    def out_of_order(self, packet, reply_to):
        if self.pdc.options.reorder_rod:
            self.kept[packet.pds.psn] = packet, reply_to
        elif not self.gap_reported:
            self.gap_reported = True
            self.pdc.nack(pds.Nack.ROD_OOO, packet.pds, reply_to, self.expected)

    def deliver(self, packet, reply_to):
        header = packet.pds
        self.gap_reported = False
        self.expected = advance(header.psn, 1)
        self.bytes += len(packet.payload)
        self.unacknowledged_bytes += max(len(packet.payload), self.pdc.options.ack_min_bytes)
        reply = self.pdc.execute(packet, reply_to)
        self.replies[header.psn] = reply
        self.move()
        if (header.ar or header.syn or header.retx or reply.guaranteed
                or self.unacknowledged_bytes >= self.pdc.options.ack_bytes):
            self.acknowledge(header, reply, reply_to)
        else:
            self.withheld = header

    def clear_command(self, psn, reply_to):
        """Nothing answers a Clear Command. But what CACK passes by it may have no other ACK to come."""
        self.clear(psn)
        if self.withheld is not None and distance(self.withheld.psn, self.cack) <= 0:
            self.acknowledge(self.withheld, self.stored(self.withheld.psn), reply_to)

    def stored(self, psn):
        reply = self.replies.get(psn)
        return reply if reply is not None and reply.guaranteed else REGENERATED

    def move(self):
        """CACK, up to the first PSN that is missing or whose answer is not cleared."""
        while (reply := self.replies.get(advance(self.cack, 1))) is not None and not reply.guaranteed:
            self.cack = advance(self.cack, 1)
            del self.replies[self.cack]

    def clear(self, psn):
        if distance(psn, self.cack) <= 0:
            return
        for held, reply in self.replies.items():
            if reply.guaranteed and distance(held, psn) <= 0:
                self.replies[held] = REGENERATED
        self.move()

    def acknowledge(self, header, reply, reply_to):
        self.unacknowledged_bytes = 0
        if self.withheld is not None and distance(self.withheld.psn, self.cack) <= 0:
            self.withheld = None
        fields = {"next": reply.next, "cack_psn": self.cack, "spdcid": self.pdc.local, "dpdcid": self.pdc.remote,
                  "ack_psn_offset": distance(header.psn, self.cack), "retx": header.retx,
                  "req": pds.Req.CLEAR if reply.guaranteed and not self.pdc.initiates else pds.Req.NONE}
        if self.pdc.options.ack_cc:
            bits = (distance(psn, self.cack) - 1 for psn in self.replies)
            state = (self.bytes + 255 >> 8 & 0xFFFFFF) << 16 | 0xFFFF  # NSCC: rcvd_bytes, ooo_count not computed.
            answer = pds.AckCc(**fields, mpr=self.pdc.options.window // 128, sack_psn_offset=1,
                               sack_bitmap=sum(1 << bit for bit in bits if bit < 64), cc_state=state)
        else:
            answer = pds.Ack(**fields)
        self.pdc.transmit(Packet(answer, reply.ses, payload=reply.payload), reply_to)
