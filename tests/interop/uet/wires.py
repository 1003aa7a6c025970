# SPDX-License-Identifier: Apache-2.0
"""What loses packets, virtual time, and a simulated wire in it."""

import collections
import heapq
import itertools

from . import packet


class Clock:
    """Calls what is due, in order of time."""

    def __init__(self):
        self.now = 0.0
        self.due = []
        self.order = itertools.count()

    def at(self, moment, call):
        heapq.heappush(self.due, (moment, next(self.order), call))

    def next_due(self):
        return self.due[0][0] if self.due else None

    def call_one(self):
        moment, _, call = heapq.heappop(self.due)
        self.now = max(self.now, moment)
        call()

    def call_until(self, moment):
        while self.due and self.due[0][0] <= moment:
            self.call_one()
        self.now = max(self.now, moment)


class Faults:
    """Random loss, duplication and delay."""

    def __init__(self, source, loss=0.0, duplicate=0.0, late=0.0, late_s=0.001):
        self.source = source
        self.loss = loss
        self.duplicate = duplicate
        self.late = late
        self.late_s = late_s
        self.counts = collections.Counter()

    def delays(self):
        """When the copies of a packet leave; none if it is lost."""
        if self.source.random() < self.loss:
            self.counts["lost"] += 1
            return []
        copies = 1
        if self.source.random() < self.duplicate:
            self.counts["duplicated"] += 1
            copies = 2
        late = [self.source.random() < self.late for _ in range(copies)]
        self.counts["late"] += sum(late)
        return [self.late_s * is_late for is_late in late]


class SimulatedWire:
    """Connects peers by address in virtual time. Every packet goes through the codec."""

    def __init__(self, clock, faults, delay_s=0.0001, log=None):
        self.clock = clock
        self.faults = faults
        self.delay_s = delay_s
        self.peers = {}
        self.log = log

    def port(self, address):
        return SimulatedPort(self, address)

    def run(self, done, limit_s=3600.0):
        """Until `done()`; raises when nothing is left to happen, or after `limit_s` of virtual time."""
        while not done():
            if self.clock.next_due() is None or self.clock.now > limit_s:
                raise AssertionError(f"stuck after {self.clock.now:.3f} s of virtual time")
            self.clock.call_one()


class SimulatedPort:
    def __init__(self, wire, address):
        self.wire = wire
        self.address = address

    @staticmethod
    def request_path(destination):
        return None, destination

    def transmit(self, _, destination, content):
        data = content.encode()
        if self.wire.log is not None:
            self.wire.log(self.wire.clock.now, self.address, destination, content)
        for delay_s in self.wire.faults.delays():
            self.wire.clock.at(self.wire.clock.now + self.wire.delay_s + delay_s,
                               lambda: self.wire.peers[destination].arrive(packet.decode(data), (None, self.address)))
