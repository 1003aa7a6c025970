# SPDX-License-Identifier: Apache-2.0
"""SEND, WRITE and READ of either side, and what a peer may do differently."""

import contextlib
import os
import unittest

from bench import BASE, HEADER, IN_FLIGHT, JOB_ID, PAYLOAD_MTU, REGION_BYTES, Bench, message, pattern
from places import UdpSockets
from uet.messages import Region
from uet.options import Options
from uet.ses import Code

RECEIVES = 16  # Posted at a time, see tests/clients/messages.h.
KEY = 0x0001000000000003
LOSS = 0.02
# No test may depend on how soon either side runs: a PDC fails only when its peer is gone.
PATIENT = {"job_id": JOB_ID, "payload_mtu": PAYLOAD_MTU, "window": 128, "retries": 100}
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
    "finds a READ by response_message_id": {"read_by_response_id": True},
    "deferrable sends from 8 KiB": {"defer_from": 8192},
}
TOGETHER = {name: value for habit in HABITS.values() for name, value in habit.items()}


def rounds(usual):
    """Messages of a run: HEDDLE_TEST_ROUNDS asks for another number."""
    return int(os.environ.get("HEDDLE_TEST_ROUNDS") or usual)


class Case(unittest.TestCase):
    """The kinds of traffic. Each is a run of its own, which raises when anything is wrong or left."""
    # In flight, by a peer that resends only the refused packet.
    reads_of_lone_retries = IN_FLIGHT
    sends_of_lone_retries = RECEIVES // 2

    def setUp(self):
        self.place = UdpSockets()
        self.settings = {}  # Of the device.
        self.messages = rounds(1000)
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def bench(self, options, ordered, loss):
        return Bench(self.stack, self.place, options, ordered, loss, self.messages, **self.settings)

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
        at_once = self.sends_of_lone_retries if options.resend_only_nacked else self.messages
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
        # An ACK without dc says that the data are accepted; a READ that comes after it sees them in memory.
        operations += bench.run(lambda _: bench.peer.read(bench.heddle, 1, key, 0, ordered), count=1)
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

        operations = bench.run(read, at_once=self.reads_of_lone_retries if options.resend_only_nacked else IN_FLIGHT)
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
                bench.expect("done")
            length = bench.size()
            at = number % IN_FLIGHT * slot_bytes + bench.random.randrange(slot_bytes - length)
            expected[at:at + length] = pattern(length, number)
            bench.tell("write", KEY, at, length, number)
        bench.tell("wait")
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
