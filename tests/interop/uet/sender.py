# SPDX-License-Identifier: Apache-2.0
"""The sending half of a PDC: window, retransmission and CLEAR_PSN of one direction."""

import collections
import dataclasses

from . import pds
from .packet import Packet
from .pds import advance, distance


@dataclasses.dataclass
class Content:
    """What a PSN is used for. `done` is called once with the SES header and payload of its own ACK, or with None, None when
    only a cumulative ACK covered it."""
    next: int = pds.Next.NONE
    ses: object = None
    extension: object = None
    payload: bytes = b""
    ar: int = 0
    control: int | None = None  # A control packet that consumes a PSN.
    done: object = None


@dataclasses.dataclass
class Flight:
    content: Content
    deadline: float = 0.0
    retries: int = 0
    arrived: bool = False  # A SACK reported it.


class Sender:
    def __init__(self, pdc, start_psn):
        self.pdc = pdc
        self.start = self.next = start_psn
        self.cack = self.cleared = advance(start_psn, -1)
        self.mp_range = pdc.options.window
        self.flights = {}
        self.queue = collections.deque()
        self.clear_wanted = False
        self.stall_timer = False

    @property
    def idle(self):
        return not self.flights and not self.queue

    @property
    def clear_psn(self):
        """Every PSN up to it has been acknowledged. PSNs are in flight in order of the dictionary."""
        return advance(next(iter(self.flights)), -1) if self.flights else advance(self.next, -1)

    def push(self, content):
        self.queue.append(content)
        self.pump()

    def room(self):
        if self.pdc.syn and distance(self.next, self.start) >= self.pdc.options.syn_packets:
            return 0
        return min(self.pdc.options.window, self.mp_range) - distance(self.next, self.cack) + 1

    def pump(self):
        while self.queue and self.room() > 0:
            content = self.queue.popleft()
            if not self.queue or self.room() == 1:
                content.ar = 1
            psn, self.next = self.next, advance(self.next, 1)
            self.flights[psn] = Flight(content)
            self.transmit(psn)
        if self.is_stalled() and not self.stall_timer:
            self.stall_timer = True
            self.pdc.clock.at(self.pdc.clock.now + self.pdc.options.rto_s, self.report_stall)

    def is_stalled(self):
        """All is acknowledged, but the target's CACK, and with it the window, waits for a clear that nothing carries."""
        return bool(self.queue) and not self.flights and self.room() <= 0 and not self.pdc.ended

    def report_stall(self):
        self.stall_timer = False
        if self.is_stalled():
            self.clear()
            self.pdc.control(pds.Ctl.ACK_REQUEST, psn=self.clear_psn)  # A Clear Command has no answer.
            self.pump()

    def transmit(self, psn, retx=0, backoff=None):
        flight = self.flights[psn]
        content, pdc = flight.content, self.pdc
        ends = {"spdcid": pdc.local, "dpdcid": distance(psn, self.start) if pdc.syn else pdc.remote, "syn": int(pdc.syn),
                "retx": retx, "ar": content.ar | retx}
        if content.control is None:
            header = pds.Request(pdc.mode, content.next, psn, clear_psn_offset=distance(self.clear_psn, psn), **ends)
            self.cleared, self.clear_wanted = self.clear_psn, False
        else:
            header = pds.Control(content.control, psn, **ends | {"ar": 1})
            self.clear_wanted = False  # A Close Command clears everything.
        pdc.transmit(Packet(header, content.ses, content.extension, content.payload))
        self.arm(psn, flight.retries if backoff is None else backoff)

    def arm(self, psn, doublings=0):
        flight, options = self.flights[psn], self.pdc.options
        delay_s = options.rto_s * 2 ** (doublings if options.rto_doubles else 0)
        flight.deadline = self.pdc.clock.now + min(options.max_rto_s, delay_s)
        self.pdc.clock.at(flight.deadline, lambda: self.expire(psn, flight))

    def expire(self, psn, flight):
        if self.flights.get(psn) is not flight or flight.deadline > self.pdc.clock.now or self.pdc.ended:
            return
        if flight.arrived:
            flight.retries += 1
            if flight.retries > self.pdc.options.retries:
                self.pdc.fail("retries")
                return
            flight.arrived = False  # Next time the packet itself.
            self.pdc.control(pds.Ctl.ACK_REQUEST, psn=psn)
            self.arm(psn)
        elif self.pdc.mode == pds.Type.ROD_REQ and not self.pdc.options.resend_only_nacked:
            self.go_back(next(iter(self.flights)))
        else:
            self.resend(psn)

    def resend(self, psn, backoff=None):
        """With `backoff`, the timer is another packet's and the retry does not count."""
        flight = self.flights[psn]
        flight.retries += backoff is None
        if flight.retries > self.pdc.options.retries:
            self.pdc.fail("retries")
            return
        self.pdc.count("retransmitted")
        self.transmit(psn, retx=1, backoff=backoff)

    def go_back(self, first):
        """Resends everything from PSN `first` on; only its own retries count."""
        for psn in [psn for psn in self.flights if distance(psn, first) >= 0]:
            if not self.pdc.ended:
                self.resend(psn, None if psn == first else self.flights[first].retries)

    def release(self, psn, semantic, payload):
        flight = self.flights.pop(psn, None)
        if flight is not None and flight.content.done is not None:
            flight.content.done(semantic, payload)

    def acknowledged(self, packet):
        header = packet.pds
        if header.p:
            return
        if distance(header.cack_psn, self.next) >= 0 or distance(header.ack_psn, self.next) >= 0:
            self.pdc.count("ack_beyond")
            return
        if getattr(header, "mpr", 0) and distance(header.cack_psn, self.cack) >= 0:
            self.mp_range = header.mpr * 128
        self.release(header.ack_psn, packet.ses, packet.payload)
        for psn in [psn for psn in self.flights if distance(psn, header.cack_psn) <= 0]:
            self.release(psn, None, None)
        if distance(header.cack_psn, self.cack) > 0:
            self.cack = header.cack_psn
        if isinstance(header, pds.AckCc):
            for psn in header.sacked():
                if psn in self.flights:
                    self.flights[psn].arrived = True
        if self.pdc.ended:
            return
        if header.req == pds.Req.CLEAR:
            self.want_clear()
        self.pump()

    def want_clear(self):
        if self.pdc.options.clear_at_once:
            self.clear()
        elif not self.clear_wanted:
            self.clear_wanted = True
            self.pdc.clock.at(self.pdc.clock.now + self.pdc.options.clear_s, self.clear_if_wanted)

    def clear_if_wanted(self):
        if self.clear_wanted and not self.pdc.ended:
            self.clear()

    def clear(self):
        self.cleared, self.clear_wanted = self.clear_psn, False
        self.pdc.control(pds.Ctl.CLEAR_COMMAND, payload=self.cleared)

    def refused(self, nack):
        """A NACK with a code of pds.RETRANSMIT."""
        if nack.psn not in self.flights:
            return
        if nack.code == pds.Nack.ROD_OOO:
            if self.pdc.options.resend_only_nacked:
                self.resend(nack.psn)
            elif nack.payload in self.flights:
                self.go_back(nack.payload)
        elif nack.code in (pds.Nack.PKT_NOT_RCVD, pds.Nack.ACK_WITH_DATA, pds.Nack.RCVR_INFER_LOSS, pds.Nack.TRIMMED,
                           pds.Nack.TRIMMED_LASTHOP):
            self.resend(nack.psn)
        elif nack.code == pds.Nack.PSN_OOR_WINDOW:  # It waits for the oldest; what that one loses is no retry of this one.
            self.flights[nack.psn].retries = 0
            self.arm(nack.psn, self.flights[next(iter(self.flights))].retries)
        else:  # No resources for it now.
            self.arm(nack.psn)
