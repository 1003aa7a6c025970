# SPDX-License-Identifier: Apache-2.0
"""Wires in real time: UDP sockets, and Ethernet frames through a socket that taps a wire."""

import collections
import selectors
import socket
import time

from . import frame, packet
from .layout import Malformed
from .wires import Clock

DATAGRAM_BYTES = 65536
SO_NO_CHECK = 11  # Linux, IPv4: datagrams leave with a checksum of zero.
UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX = 101, 102
WAKES = "wakes"  # A stream that only ends a wait.
ANY_MAC = bytes.fromhex("02ffffffffff")  # This wire's switch forwards by IP address.
FIRST_ENTROPY, ENTROPIES = 49152, 16384


class LiveWire:
    """What all have: the time of the machine, and timers that run while a test waits."""

    def __init__(self, crc, faults, log):
        self.clock = Clock()
        self.start = time.monotonic()
        self.crc = crc
        self.faults = faults
        self.log = log
        self.counts = collections.Counter()
        self.peer = None
        self.selector = selectors.DefaultSelector()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()

    def leave(self, emit, *what):
        """Calls `emit(*what)` for each copy that faults let through, now or later."""
        for delay_s in self.faults.delays() if self.faults else (0,):
            if delay_s:
                self.clock.at(self.clock.now + delay_s, lambda: emit(*what))
            else:
                emit(*what)

    def is_lost(self):
        """Whether faults take what has arrived."""
        return bool(self.faults) and not self.faults.delays()

    def arrive(self, data, source, destination, reply_to):
        """A packet without what is around it."""
        try:
            content = packet.decode(data)
        except Malformed:
            self.counts["malformed"] += 1
            return
        if self.log is not None:
            self.log(self.clock.now, source, destination, content)
        self.peer.arrive(content, reply_to)

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
        """Until `done()`. The limit, in which nothing arrives, is many times what anything here needs, on a busy machine
        too."""
        arrived, end = self.peer.counts["received"], time.monotonic() + limit_s
        while not done():
            if self.peer.counts["received"] != arrived:
                arrived, end = self.peer.counts["received"], time.monotonic() + limit_s
            if time.monotonic() > end:
                raise AssertionError(f"nothing for {limit_s} s: {self.peer.counts} {self.counts}")
            self.step(0.05)

    def run_until_ready(self, stream, events, done):
        """Until `done()`, which `events` of `stream` change."""
        if not done():
            self.selector.register(stream, events, WAKES)
            try:
                self.run(done)
            finally:
                self.selector.unregister(stream)


class Sockets(LiveWire):
    """A peer's UDP sockets (ADR 0010): one with the port of its endpoint, one that its requests come from. Answers leave
    from the socket that was reached, to the port that the request came from. What arrives may be lost too."""

    def __init__(self, address, port=0, crc="msb", faults=None, log=None):
        super().__init__(crc, faults, log)
        self.endpoint = self.bind(address, port)
        self.requests = self.bind(address, 0)

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
        self.leave(self.emit, sock, destination, data)

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
        if self.is_lost():
            return True
        opened = frame.open_datagram(source, sock.getsockname(), data, self.crc)
        if opened is None:
            self.counts["bad_crc"] += 1
            return True
        self.arrive(opened, source, sock.getsockname()[:2], (sock, source))
        return True


class Tap(LiveWire):
    """Ethernet frames without FCS, a message each, through the socket at `path` (SOCK_SEQPACKET). `checksum` is that of
    UDP, see `frame.Frame`; `native`: IP without UDP, of which nothing else is taken. `record(data)` sees each frame that is sent and received, those lost to faults not."""

    def __init__(self, path, address, port, mac, checksum="zero", crc="msb", faults=None, log=None, record=None,
                 native=False):
        super().__init__(crc, faults, log)
        self.native = native
        self.address = address, port  # The port is that of the endpoint's name.
        self.mac = mac
        self.checksum = checksum
        self.record = record or (lambda _: None)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(str(path))
        self.socket.setblocking(False)
        self.selector.register(self.socket, selectors.EVENT_READ)

    def request_path(self, destination):
        return FIRST_ENTROPY + self.peer.random.randrange(ENTROPIES), destination

    def transmit(self, entropy, destination, content):
        """To the address of `destination`; an answer has the entropy of what it answers."""
        data = frame.Frame(ANY_MAC, self.mac, self.address[0], destination[0], entropy, content.encode(), crc=self.crc,
                           checksum=self.checksum, port=None if self.native else frame.PORT).encode()
        if self.log is not None:
            self.log(self.clock.now, self.address, destination, content)
        self.leave(self.emit, data)

    def emit(self, data):
        try:
            self.socket.send(data)
        except BlockingIOError:  # As if the network had lost it.
            self.counts["not_sent"] += 1
        else:
            self.record(data)

    def receive(self, sock):
        try:
            data = sock.recv(DATAGRAM_BYTES)
        except BlockingIOError:
            return False
        if not data:
            raise AssertionError("the tap has ended")
        if self.is_lost():
            return True
        self.record(data)
        try:
            opened = frame.decode(data, self.crc)
        except Malformed as error:
            self.counts["bad_crc" if "CRC" in str(error) else "malformed"] += 1
            return True
        if (opened.port is None) != self.native:
            self.counts["malformed"] += 1
            return True
        self.arrive(opened.packet, (opened.source,), (opened.destination,), (opened.entropy, (opened.source,)))
        return True
