# SPDX-License-Identifier: Apache-2.0
"""The independent peer against the soft device, over UDP sockets. HEDDLE_BUILD names the build directory."""

import contextlib
import pathlib
import random
import select
import selectors
import socket
import struct
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts/clients")]

import pingpong  # noqa: E402
import seed  # noqa: E402
from endpoints import BUILD, Endpoint  # noqa: E402
from uet.messages import Destination, Region  # noqa: E402
from uet.options import Options  # noqa: E402
from uet.peer import Peer  # noqa: E402
from uet.ses import Code  # noqa: E402
from uet.wires import Faults, Sockets  # noqa: E402

JOB_ID = 77
PAYLOAD_MTU = 1024
MESSAGES = 1000
IN_FLIGHT = 8
RECEIVES = 16  # Posted at a time, see tests/clients/messages.h.
HEADER = struct.Struct("<IIII")  # Sender, number, bytes, reply to: see tests/clients/messages.h.
KEY = 0x0001000000000003
REGION_BYTES = 1 << 18
ADDRESSES = {"heddle": "127.0.0.1", "peer": "127.0.0.2"}
LOSS = 0.02
PIPE_BYTES = 4096  # Less than the commands of a test: they always have to wait for the process.
# No test may depend on how soon either side runs: a PDC fails only when its peer is gone.
PATIENT = {"job_id": JOB_ID, "payload_mtu": PAYLOAD_MTU, "window": 128, "retries": 100}

BASE = bytes(at * 31 + (at >> 8) & 0xFF for at in range(REGION_BYTES))
SHIFTS = [bytes(value + shift & 0xFF for value in range(256)) for shift in range(256)]


def pattern(length, shift=0, at=0):
    return BASE[at:at + length].translate(SHIFTS[shift & 0xFF])


def message(number, length):
    """What endpoint.c sends, and expects, as number `number`."""
    header = HEADER.pack(0, number, length, 0)
    return header + pattern(length - len(header), number * 13, len(header))


def endpoint_name(address, port):
    """The name of an endpoint, as libfabric has it."""
    return (struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(8)).hex()


def destination(name):
    """Where UET finds the endpoint of a libfabric name: its port is PIDonFEP and the upper bits of the resource index."""
    data = bytes.fromhex(name)
    port = int.from_bytes(data[2:4], "big")
    return Destination((socket.inet_ntoa(data[4:8]), port), port & 0xFFF, port >> 12 << 8 | 1)


class Bench:
    """A process with an endpoint of the soft device, and a peer."""

    def __init__(self, stack, options, ordered, loss, messages, **more):
        self.messages = messages
        self.random = random.Random(seed.of_this_run())
        self.ordered = ordered
        faults = Faults(random.Random(self.random.getrandbits(64)), loss=loss)
        self.wire = stack.enter_context(Sockets(ADDRESSES["peer"], faults=faults))
        self.peer = self.wire.peer = Peer(options, self.wire, self.wire.clock, self.random)
        self.received = []
        self.peer.target.on_receive = self.received.append
        settings = {"DEVICE": "soft", "WIRE": "udp", "IP": ADDRESSES["heddle"], "JOB_ID": JOB_ID,
                    "PAYLOAD_MTU": PAYLOAD_MTU} | more
        env = pingpong.environment(BUILD, "drop-in", FI_LOG_LEVEL="warn",
                                   **{f"FI_HEDDLE_{name}": value for name, value in settings.items()})
        self.process = stack.enter_context(Program(env, arguments=() if ordered else ("-u",),
                                                   pipesize=PIPE_BYTES))
        self.heddle = destination(self.process.opened().name)
        self.tell("peers", endpoint_name(*self.wire.address))
        self.expect("done")

    def tell(self, *words):
        """A command to the process, which may have to end operations with the peer before it reads more."""
        process = self.process
        self.wire.run_until_ready(process.process.stdin, selectors.EVENT_WRITE, process.has_room)
        process.tell(*words)

    def expect(self, first):
        """The line that the process prints next, without its first word."""
        process = self.process
        self.wire.run_until_ready(process.process.stdout, selectors.EVENT_READ, lambda: process.says(0))
        line = process.line()
        word, *rest = line.split() or ("ended",)
        if word != first:
            raise AssertionError(f"{word} {rest} {process.log()} {self.peer.counts}")
        return rest

    def size(self, least=0):
        edges = [size for size in (0, 1, 16, 17, 1023, 1024, 1025) if size >= least]
        return self.random.choice((*edges, self.random.randrange(least, 16000)))

    def run(self, start, on_end=lambda _: None, count=None):
        """Starts the operations of the peer, some at a time; returns them in order."""
        operations, open_now = [], set()
        count = self.messages if count is None else count

        def begin():
            while len(operations) < count and len(open_now) < IN_FLIGHT:
                operation = start(len(operations))
                operations.append(operation)
                open_now.add(id(operation))
                operation.on_end = end

        def end(operation):
            if operation.code != Code.OK:
                raise AssertionError(f"operation {operation.message_id}: {operation.code} {self.peer.counts}")
            open_now.discard(id(operation))
            on_end(operation)

        begin()
        while open_now:
            before = len(open_now)
            self.wire.run(lambda: len(open_now) < before)
            begin()
        return operations

    def close(self):
        """Each side closes the PDCs that it initiated: the peer while the device still answers, and the device, whose
        process ends and repeats little, without loss and when its reads' data are acknowledged."""
        self.peer.close()
        self.wire.run(lambda: all(pdc.tx.idle and not pdc.initiates for pdc in self.peer.pdcs.values()))
        self.wire.faults.loss = 0.0
        self.tell("close")
        self.expect("closed")
        self.wire.run(lambda: not self.peer.pdcs)


class Program(Endpoint):
    """tests/interop/endpoint.c."""
    PROGRAM = "tests/interop_endpoint"

    def has_room(self):
        """Whether it can be sent a command without waiting."""
        commands = select.poll()
        commands.register(self.process.stdin, select.POLLOUT)
        return bool(commands.poll(0))


class Case(unittest.TestCase):
    def setUp(self):
        self.settings = {}  # Of the device.
        self.messages = MESSAGES
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def bench(self, options, ordered, loss):
        return Bench(self.stack, options, ordered, loss, self.messages, **self.settings)

    def finish(self, bench, operations=()):
        bench.close()
        self.assertEqual(bench.peer.errors, [])
        for what in ("bad_read_data", "stray_read_data", "mismatches", "ack_beyond", "ignored"):
            self.assertEqual(bench.peer.counts[what], 0, what)
        for what in ("bad_crc", "malformed"):
            self.assertEqual(bench.wire.counts[what], 0, what)
        self.assertFalse(bench.peer.initiator.active)
        self.assertFalse(bench.peer.target.inbound)
        self.assertLessEqual({operation.code for operation in operations}, {Code.OK})
        self.stack.close()

    # ---- the peer initiates ----

    def peer_sends(self, options, ordered, loss=0.0):
        bench = self.bench(options, ordered, loss)
        # A packet that finds no buffer is a gap, which costs each packet behind it several retries.
        at_once = RECEIVES if options.resend_only_nacked else self.messages
        operations = []
        for first in range(0, self.messages, at_once):
            count = min(at_once, self.messages - first)
            bench.tell("receive", count)
            operations += bench.run(lambda number: bench.peer.send(
                bench.heddle, message(number, bench.size(HEADER.size)), ordered), count=count)
            self.assertEqual(bench.expect("received"), [str(count)])
        self.finish(bench, operations)
        return bench

    def peer_writes(self, options, ordered, loss=0.0):
        bench = self.bench(options, ordered, loss)
        key = self.offered(bench)
        expected = bytearray(BASE)
        slot_bytes = REGION_BYTES // IN_FLIGHT
        slots = list(range(IN_FLIGHT))  # Writes in flight do not overlap.

        def write(number):
            slot = slots.pop(bench.random.randrange(len(slots)))
            length = bench.size()
            at = slot * slot_bytes + bench.random.randrange(slot_bytes - max(length, 1) + 1)
            expected[at:at + length] = data = pattern(length, number)
            return bench.peer.write(bench.heddle, data, key, at, ordered)

        operations = bench.run(write, lambda ended: slots.append(ended.offset // slot_bytes))
        bench.tell("dump")
        self.assertEqual(bytes.fromhex(bench.expect("dump")[0]), expected)
        self.finish(bench, operations)
        return bench

    def peer_reads(self, options, ordered, loss=0.0):
        bench = self.bench(options, ordered, loss)
        key = self.offered(bench)

        def read(_):
            length = bench.size()
            return bench.peer.read(bench.heddle, length, key, bench.random.randrange(REGION_BYTES - length), ordered)

        operations = bench.run(read)
        for operation in operations:
            self.assertEqual(operation.data, pattern(len(operation.data), at=operation.offset))
        self.finish(bench, operations)
        return bench

    @staticmethod
    def offered(bench):
        bench.tell("region", REGION_BYTES)
        return int(bench.expect("region")[0])

    # ---- the device initiates ----

    def device_sends(self, options, ordered, loss=0.0):
        bench = self.bench(options, ordered, loss)
        bench.peer.target.buffers = self.messages
        sizes = [bench.size(HEADER.size) for _ in range(self.messages)]
        for number, size in enumerate(sizes):
            bench.tell("send", number, size)
        bench.tell("wait")
        bench.expect("done")
        expected = [message(number, size) for number, size in enumerate(sizes)]
        arrived = [received.data for received in bench.received]
        if not ordered:
            arrived.sort(key=lambda data: HEADER.unpack_from(data)[1])
        self.assertEqual(len(arrived), self.messages)
        self.assertEqual(arrived, expected)
        self.finish(bench)
        return bench

    def device_writes(self, options, ordered, loss=0.0):
        bench = self.bench(options, ordered, loss)
        memory, expected = bytearray(BASE), bytearray(BASE)
        bench.peer.target.regions[KEY] = Region(memory)
        slot_bytes = REGION_BYTES // IN_FLIGHT
        for number in range(self.messages):
            if number % IN_FLIGHT == 0:
                bench.tell("wait")  # Each slot once between waits: those in flight do not overlap.
            length = bench.size()
            at = number % IN_FLIGHT * slot_bytes + bench.random.randrange(slot_bytes - length)
            expected[at:at + length] = pattern(length, number)
            bench.tell("write", KEY, at, length, number)
        bench.tell("wait")
        for _ in range(-(-self.messages // IN_FLIGHT) + 1):
            bench.expect("done")
        self.assertEqual(memory, expected)
        self.finish(bench)
        return bench

    def device_reads(self, options, ordered, loss=0.0):
        bench = self.bench(options, ordered, loss)
        bench.peer.target.regions[KEY] = Region(bytearray(BASE))
        for _ in range(self.messages):
            length = bench.size()
            bench.tell("read", KEY, bench.random.randrange(REGION_BYTES - length), length)
        bench.tell("wait")
        bench.expect("done")
        self.finish(bench)
        return bench


OWN = Options(**PATIENT)
HABITS = {  # Of the reference provider, one by one.
    "resends the refused packet only, five times": {"resend_only_nacked": True, "retries": 5, "rto_s": 5.0,
                                                    "max_rto_s": 5.0, "rto_doubles": False},
    "keeps packets behind a gap of an ordered PDC": {"reorder_rod": True},
    "plain ACKs, coalesced at 16 KiB": {"ack_cc": False},
    "message ids from 0": {"first_message_id": 0},
    "READ without eom": {"read_eom": False},
    "Clear Command at once": {"clear_at_once": True},
    "refuses a Probe": {"probes": False},
    "lowest PDCID": {"lowest_pdcid": True},
}


class InteropSoft(Case):
    def each_way(self, kind):
        for ordered in (True, False):
            for loss in (0.0, LOSS):
                with self.subTest(ordered=ordered, loss=loss):
                    bench = kind(OWN, ordered, loss)
                    if loss:
                        self.assertGreater(bench.wire.faults.counts["lost"], 0)

    def test_the_peer_sends(self):
        self.each_way(self.peer_sends)

    def test_the_peer_writes(self):
        self.each_way(self.peer_writes)

    def test_the_peer_reads(self):
        self.each_way(self.peer_reads)

    def test_the_device_sends(self):
        self.each_way(self.device_sends)

    def test_the_device_writes(self):
        self.each_way(self.device_writes)

    def test_the_device_reads(self):
        self.each_way(self.device_reads)

    def each_habit(self, *kinds, **settings):
        """Each one alone with fewer messages, and all together."""
        self.settings = settings
        together = {name: value for habit in HABITS.values() for name, value in habit.items()}
        for name, habit in (*HABITS.items(), ("all", together)):
            self.messages = MESSAGES if habit is together else MESSAGES // 5
            for kind in kinds:
                for ordered in (True, False):
                    with self.subTest(name, kind=kind.__name__, ordered=ordered):
                        kind(Options(**PATIENT | habit), ordered)

    def test_habits_of_the_reference_provider_as_initiator(self):
        self.each_habit(self.peer_sends, self.peer_writes, self.peer_reads)

    def test_habits_of_the_reference_provider_as_target(self):
        self.each_habit(self.device_sends, self.device_writes, self.device_reads)

    def test_habits_of_the_reference_provider_as_target_of_a_congestion_window(self):
        self.each_habit(self.device_sends, BASE_RTT_NS=100000)


if __name__ == "__main__":
    unittest.main()
