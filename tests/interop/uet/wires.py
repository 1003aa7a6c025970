# SPDX-License-Identifier: Apache-2.0
"""What carries packets, and the time: a simulated wire with virtual time, and UDP sockets with the machine's."""

import collections
import heapq
import itertools
import selectors
import socket
import time

from . import frame, packet
from .layout import Malformed

DATAGRAM_BYTES = 65536
SO_NO_CHECK = 11  # Linux, IPv4: datagrams leave with a checksum of zero.
UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX = 101, 102
WAKES = "wakes"  # A stream that only ends a wait.


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


class Sockets:
    """A peer's UDP sockets (ADR 0010): one with the port of its endpoint, one that its requests come from. Answers leave
    from the socket that was reached, to the port that the request came from. What arrives may be lost too."""

    def __init__(self, address, port=0, crc="msb", faults=None, log=None):
        self.clock = Clock()
        self.start = time.monotonic()
        self.crc = crc
        self.faults = faults
        self.log = log
        self.counts = collections.Counter()
        self.peer = None
        self.selector = selectors.DefaultSelector()
        self.endpoint = self.bind(address, port)
        self.requests = self.bind(address, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()

    def bind(self, address, port):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET:
            sock.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        else:
            sock.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_TX, 1)
            sock.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        sock.setblocking(False)
        sock.bind((address, port))
        self.selector.register(sock, selectors.EVENT_READ)
        return sock

    @property
    def address(self):
        return self.endpoint.getsockname()[:2]

    def request_path(self, destination):
        return self.requests, destination

    def transmit(self, sock, destination, content):
        data = frame.seal_datagram(sock.getsockname(), destination, content.encode(), self.crc)
        if self.log is not None:
            self.log(self.clock.now, sock.getsockname()[:2], destination, content)
        for delay_s in self.faults.delays() if self.faults else (0,):
            if delay_s:
                self.clock.at(self.clock.now + delay_s, lambda: self.emit(sock, destination, data))
            else:
                self.emit(sock, destination, data)

    def emit(self, sock, destination, data):
        try:
            sock.sendto(data, destination)
        except (BlockingIOError, ConnectionRefusedError):  # As if the network had lost it.
            self.counts["not_sent"] += 1

    def receive(self, sock):
        try:
            data, source = sock.recvfrom(DATAGRAM_BYTES)
        except (BlockingIOError, ConnectionRefusedError):
            return False
        source = source[:2]
        if self.faults and not self.faults.delays():
            return True
        opened = frame.open_datagram(source, sock.getsockname(), data, self.crc)
        if opened is None:
            self.counts["bad_crc"] += 1
            return True
        try:
            content = packet.decode(opened)
        except Malformed:
            self.counts["malformed"] += 1
            return True
        if self.log is not None:
            self.log(self.clock.now, source, sock.getsockname()[:2], content)
        self.peer.arrive(content, (sock, source))
        return True

    def step(self, wait_s):
        """Waits until a packet or a timer is due, at most `wait_s`, and handles what is."""
        self.clock.call_until(time.monotonic() - self.start)
        due = self.clock.next_due()
        if due is not None:
            wait_s = min(wait_s, max(0.0, due - self.clock.now))
        ready = self.selector.select(wait_s)
        self.clock.now = max(self.clock.now, time.monotonic() - self.start)
        for key, _ in ready:
            for _ in range(64):
                if key.data == WAKES or not self.receive(key.fileobj):
                    break

    def run(self, done, limit_s=240.0):
        """Until `done()`. The limit is many times what anything here needs, on a busy machine too."""
        end = time.monotonic() + limit_s
        while not done():
            if time.monotonic() > end:
                raise AssertionError(f"not done after {limit_s} s: {self.peer.counts} {self.counts}")
            self.step(0.05)

    def run_until_ready(self, stream, events, done):
        """Until `done()`, which `events` of `stream` change."""
        if not done():
            self.selector.register(stream, events, WAKES)
            try:
                self.run(done)
            finally:
                self.selector.unregister(stream)
