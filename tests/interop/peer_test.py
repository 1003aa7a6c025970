# SPDX-License-Identifier: Apache-2.0
"""Two independent peers on a simulated wire, in virtual time."""

import itertools
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import seed  # noqa: E402
from uet.messages import Destination, Region  # noqa: E402
from uet.options import Options  # noqa: E402
from uet.packet import Packet  # noqa: E402
from uet.pds import Control, Ctl, Nack, Request, Type  # noqa: E402
from uet.peer import Peer  # noqa: E402
from uet.ses import Code, Op  # noqa: E402
from uet.wires import Clock, Faults, SimulatedWire  # noqa: E402

MESSAGES = 1000
IN_FLIGHT = 16
KEY = 0x0001000000000003
REGION_BYTES = 1 << 18
LOSS = {"loss": 0.02, "duplicate": 0.01, "late": 0.01}


class Pair:
    """Two peers, and the traffic from the first to the second."""

    def __init__(self, options, messages=MESSAGES, **faults):
        self.messages = messages
        self.random = random.Random(seed.of_this_run())
        self.clock = Clock()
        self.faults = Faults(random.Random(self.random.getrandbits(64)), **faults)
        self.wire = SimulatedWire(self.clock, self.faults)
        self.peers = []
        for number, own in enumerate(options):
            address = f"192.0.2.{number + 1}", 4793
            peer = Peer(own, self.wire.port(address), self.clock, random.Random(self.random.getrandbits(64)))
            self.wire.peers[address] = peer
            self.peers.append(peer)
        self.destination = Destination(("192.0.2.2", 4793), 0, 15)
        self.memory = bytearray(self.random.randbytes(REGION_BYTES))
        self.peers[1].target.regions[KEY] = Region(self.memory)
        self.received = []
        self.peers[1].target.on_receive = self.received.append

    def size(self):
        return self.random.choice((0, 1, 16, 17, 1023, 1024, 1025, self.random.randrange(20000)))

    def run(self, start, count=None, on_end=lambda _: None):
        """Starts `count` operations, some at a time; returns them in order."""
        count = self.messages if count is None else count
        operations = []
        open_now = set()
        numbers = itertools.count()
        while len(operations) < count or open_now:
            while len(operations) < count and len(open_now) < IN_FLIGHT:
                operation = start(next(numbers))
                operations.append(operation)
                open_now.add(id(operation))
                operation.on_end = lambda ended: (open_now.discard(id(ended)), on_end(ended))
            before = len(open_now)
            self.wire.run(lambda: len(open_now) < before)
        return operations

    def close(self):
        for peer in self.peers:
            peer.close()
        self.wire.run(lambda: not any(peer.pdcs for peer in self.peers))


class Case(unittest.TestCase):
    def finish(self, pair, operations):
        pair.close()
        for peer in pair.peers:
            self.assertEqual(peer.errors, [], peer.counts)
            for what in ("bad_read_data", "stray_read_data", "mismatches", "ack_beyond", "ignored"):
                self.assertEqual(peer.counts[what], 0, what)
            self.assertFalse(peer.initiator.active)
            self.assertFalse(peer.target.inbound)
        self.assertEqual({operation.code for operation in operations}, {Code.OK})

    def sends(self, options, ordered, **faults):
        pair = Pair(options, **faults)
        pair.peers[1].target.buffers = pair.messages
        messages = [number.to_bytes(4, "big") + pair.random.randbytes(pair.size()) for number in range(pair.messages)]
        operations = pair.run(lambda number: pair.peers[0].send(pair.destination, messages[number], ordered))
        self.finish(pair, operations)
        arrived = [message.data for message in pair.received]
        self.assertEqual(len(arrived), pair.messages)
        self.assertEqual(arrived if ordered else sorted(arrived), messages)
        return pair

    def writes(self, options, ordered, **faults):
        pair = Pair(options, **faults)
        immediates = []
        pair.peers[1].target.on_immediate = lambda data, _: immediates.append(data)
        expected = bytearray(pair.memory)

        slot_bytes = REGION_BYTES // IN_FLIGHT
        slots = list(range(IN_FLIGHT))  # Writes in flight do not overlap.

        def write(number):
            slot = slots.pop(pair.random.randrange(len(slots)))
            length = min(pair.size(), slot_bytes)
            at = slot * slot_bytes + pair.random.randrange(slot_bytes - max(length, 1) + 1)
            data = pair.random.randbytes(length)
            expected[at:at + length] = data
            return pair.peers[0].write(pair.destination, data, KEY, at, ordered, number if number % 3 == 0 else None)

        operations = pair.run(write, on_end=lambda ended: slots.append(ended.offset // slot_bytes))
        self.finish(pair, operations)
        self.assertEqual(pair.memory, expected)
        self.assertEqual(sorted(immediates), list(range(0, pair.messages, 3)))
        return pair

    def reads(self, options, ordered, **faults):
        pair = Pair(options, **faults)
        places = []

        def read(_):
            length = pair.size()
            places.append(pair.random.randrange(REGION_BYTES - length))
            return pair.peers[0].read(pair.destination, length, KEY, places[-1], ordered)

        operations = pair.run(read)
        self.finish(pair, operations)
        for at, operation in zip(places, operations):
            self.assertEqual(operation.data, pair.memory[at:at + len(operation.data)])
        return pair


OWN = Options()
OWN_WITH_REFERENCE = Options(window=128, syn_packets=128)  # Its ACKs do not name the window.
REFERENCE = Options.reference()
HABITS = {  # Of the reference provider, one by one.
    "128 PSNs": {"window": 128, "syn_packets": 128},
    "resends the refused packet only": {"resend_only_nacked": True},
    "keeps packets behind a gap of an ordered PDC": {"reorder_rod": True},
    "plain ACKs": {"ack_cc": False},
    "message ids from 0": {"first_message_id": 0},
    "READ without eom": {"read_eom": False},
    "finds a READ by response_message_id": {"read_by_response_id": True},
    "Clear Command at once": {"clear_at_once": True},
    "deferrable sends": {"defer_from": 8192},
    "relative addresses": {"relative": True},
    "lowest PDCID": {"lowest_pdcid": True},
}


class InteropPeers(Case):
    def all_kinds(self, options, ordered, **faults):
        lost = retransmitted = 0
        for kind in (self.sends, self.writes, self.reads):
            with self.subTest(kind.__name__, options=options):
                pair = kind(options, ordered, **faults)
                lost += pair.faults.counts["lost"]
                retransmitted += sum(peer.counts["retransmitted"] for peer in pair.peers)
        # A few packets lost of one kind may all be ACKs that a later one covers.
        self.assertEqual(lost > 0, bool(faults))
        self.assertEqual(retransmitted > 0, bool(faults))

    def test_own_way_ordered(self):
        self.all_kinds((OWN, OWN), True)
        self.all_kinds((OWN, OWN), True, **LOSS)

    def test_own_way_unordered(self):
        self.all_kinds((OWN, OWN), False)
        self.all_kinds((OWN, OWN), False, **LOSS)

    def test_reference_way_ordered(self):
        self.all_kinds((REFERENCE, REFERENCE), True)

    def test_reference_way_unordered(self):
        self.all_kinds((REFERENCE, REFERENCE), False)

    def test_own_way_with_the_reference_way(self):
        for ordered in (True, False):
            self.all_kinds((OWN_WITH_REFERENCE, REFERENCE), ordered)
            self.all_kinds((REFERENCE, OWN_WITH_REFERENCE), ordered)

    def test_each_habit_at_either_end_on_a_lossy_wire(self):
        for name, habit in HABITS.items():
            odd = Options(**habit)
            # It uses up its retries at a target that drops all behind a gap.
            other = Options(window=odd.window, reorder_rod=odd.resend_only_nacked)
            for ordered in (True, False):
                with self.subTest(name, ordered=ordered):
                    self.all_kinds((odd, other), ordered, messages=200, **LOSS)
                    self.all_kinds((other, odd), ordered, messages=200, **LOSS)

    def test_a_guaranteed_answer_is_cleared_at_once_or_by_the_next_request(self):
        pair = self.reads((Options(clear_at_once=True), OWN), True)
        own = self.reads((OWN, OWN), True)
        self.assertGreater(pair.peers[1].counts["clear_commands"], 20)
        self.assertLess(own.peers[1].counts["clear_commands"], 20)

    def test_the_window_is_never_exceeded(self):
        for ordered in (True, False):
            pair = Pair((Options(window=128, syn_packets=4096), OWN))
            pair.peers[1].target.buffers = 1
            in_flight = []
            pair.wire.log = lambda *_: in_flight.extend(len(pdc.tx.flights) for pdc in pair.peers[0].pdcs.values())
            operations = pair.run(lambda _: pair.peers[0].send(pair.destination, bytes(500 * 1024), ordered), 1)
            self.assertEqual(max(in_flight), 128)
            self.finish(pair, operations)

    def test_coalesced_acks_come_each_16_kib(self):
        pair = Pair((OWN, Options(ack_cc=False)))
        pair.peers[1].target.buffers = 1
        operations = pair.run(lambda _: pair.peers[0].send(pair.destination, bytes(512 * 1024), True), 1)
        self.assertEqual(operations[0].code, Code.OK)
        # SYN packets and those that fill the window are acknowledged one by one.
        self.assertEqual(pair.peers[0].counts["received"], OWN.syn_packets + (512 - OWN.syn_packets) // 16)
        self.finish(pair, operations)

    def test_a_deferrable_send_is_executed_as_a_send(self):
        pair = Pair((Options(defer_from=8192), OWN))
        pair.peers[1].target.buffers = 2
        operations = pair.run(lambda number: pair.peers[0].send(pair.destination, bytes(8191 + number), False), 2)
        self.finish(pair, operations)
        self.assertEqual(sorted(message.header.opcode for message in pair.received), [Op.SEND, Op.DEFERRABLE_SEND])

    def test_a_send_without_buffer_is_repeated_until_there_is_one(self):
        for ordered in (True, False):
            pair = Pair((OWN, OWN))
            pair.clock.at(0.2, lambda: setattr(pair.peers[1].target, "buffers", 1))
            operations = pair.run(lambda _: pair.peers[0].send(pair.destination, b"late", ordered), 1)
            self.assertGreater(pair.peers[0].counts["restarted"], 0)
            self.assertEqual([message.data for message in pair.received], [b"late"])
            self.finish(pair, operations)

    def test_a_packet_that_finds_no_resources_is_resent_after_the_longest_timeout(self):
        pair = Pair((Options(rto_s=5.0, max_rto_s=1.0), OWN))
        target, arrive, refused = pair.peers[1], pair.peers[1].arrive, []

        def refuse_one(packet, reply_to):
            if isinstance(packet.pds, Request) and not packet.pds.syn and not refused:
                refused.append(pair.clock.now)
                target.pdcs[packet.pds.dpdcid].nack(Nack.NO_PKT_BUFFER, packet.pds, reply_to)
            else:
                arrive(packet, reply_to)

        target.arrive = refuse_one
        operations = []
        for _ in range(2):  # The second one is no SYN.
            operations += pair.run(lambda _: pair.peers[0].write(pair.destination, b"x", KEY), 1)
        self.assertAlmostEqual(pair.clock.now, refused[0] + 1.0, delta=0.1)  # Virtual time.
        self.finish(pair, operations)

    def test_packets_beyond_the_window_wait_for_the_gap_and_do_not_give_up(self):
        pair = Pair((OWN, Options(window=64)))
        target, arrive, lost = pair.peers[1], pair.peers[1].arrive, []

        def lose_one_often(packet, reply_to):
            request = isinstance(packet.pds, Request) and not packet.pds.syn
            if request and len(lost) < 8 and packet.pds.psn == (lost or [packet.pds.psn])[0]:
                lost.append(packet.pds.psn)
            else:
                arrive(packet, reply_to)

        target.arrive = lose_one_often
        data = pair.random.randbytes(100 * OWN.payload_mtu)
        operations = []
        for content in (b"x", data):  # The packets of the second one are no SYN.
            operations += pair.run(
                lambda _, content=content: pair.peers[0].write(pair.destination, content, KEY, ordered=False), 1)
        self.assertEqual(len(lost), 8)
        self.assertGreater(pair.peers[0].counts["nacked_0x0b"], OWN.retries)
        self.assertEqual(pair.memory[:len(data)], data)
        self.finish(pair, operations)

    def test_a_late_copy_of_a_syn_does_not_end_the_pdc(self):
        pair = Pair((Options(window=128), OWN_WITH_REFERENCE))
        late = []
        pair.wire.log = lambda _, __, ___, content: late or late.append(content)
        target = pair.peers[1]
        operations = pair.run(lambda _: pair.peers[0].write(pair.destination, b"x", KEY), 200)
        pdc, = target.pdcs.values()
        target.arrive(late[0], pdc.path)
        self.assertEqual(target.counts["nack_INVALID_SYN"], 1)
        self.finish(pair, operations)

    def test_rma_that_the_target_does_not_allow_returns_its_code(self):
        pair = Pair((OWN, OWN))
        pair.peers[1].target.regions[KEY + 1] = Region(bytearray(8), readable=False, writable=False)
        start = {
            Code.BAD_MKEY: lambda: pair.peers[0].write(pair.destination, b"x", KEY + 2),
            Code.PERM_VIOLATION: lambda: pair.peers[0].write(pair.destination, b"x", KEY + 1),
            Code.UNSUPPORTED_SIZE: lambda: pair.peers[0].read(pair.destination, REGION_BYTES + 1, KEY),
            Code.BAD_ADDR: lambda: pair.peers[0].read(pair.destination, 1025, KEY, REGION_BYTES - 1024),
        }
        before = bytes(pair.memory)
        operations = pair.run(lambda number: list(start.values())[number](), len(start))
        self.assertEqual([operation.code for operation in operations], list(start))
        self.assertEqual(pair.memory, before)
        pair.close()

    def test_a_dead_peer_fails_the_message_and_leaves_no_pdc(self):
        for options in (OWN, REFERENCE):
            pair = Pair((options, OWN), loss=1.0)
            operations = pair.run(lambda _: pair.peers[0].send(pair.destination, b"x", True), 1)
            self.assertEqual(operations[0].code, Code.UNDELIVERABLE)
            self.assertEqual(pair.faults.counts["lost"], 1 + options.retries)
            self.assertFalse(pair.peers[0].pdcs)

    def test_a_probe_is_answered_or_refused(self):
        for options, answer in ((OWN, lambda header: (header.type, header.p, header.ack_psn_offset)),
                                (REFERENCE, lambda header: (header.type, header.code, header.spdcid))):
            pair = Pair((OWN, options))
            pair.peers[1].target.buffers = 1
            pair.run(lambda _: pair.peers[0].send(pair.destination, b"x", False), 1)
            pdc, = pair.peers[0].pdcs.values()
            answers = []
            pair.wire.log = lambda _, source, __, content: answers.append((source[0], content.pds))
            pdc.transmit(Packet(Control(Ctl.PROBE, 0, pdc.local, pdc.remote, probe_opaque=0x1234)))
            pair.wire.run(lambda: len(answers) == 2)
            self.assertEqual(answers[1][0], "192.0.2.2")
            expected = (Type.ACK, 1, 0x1234) if options is OWN else (Type.NACK, Nack.UNEXP_EVENT, 0)
            self.assertEqual(answer(answers[1][1]), expected)
            pair.close()  # A refused Probe does not end the PDC.
            self.assertEqual(pair.peers[0].errors, [])


if __name__ == "__main__":
    unittest.main()
