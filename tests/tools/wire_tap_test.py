# SPDX-License-Identifier: Apache-2.0
"""heddle-wire tap: frames both ways, who may send what, and its ends. HEDDLE_BUILD names the build directory."""

import contextlib
import ipaddress
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts/clients")]

import pingpong  # noqa: E402
from taps import TOOL, Tap  # noqa: E402

ONE, TWO = "10.1.0.1", "10.1.0.2"
ONE6, TWO6 = "fd00::1", "fd00::2"
MOST = 16384  # Bytes of a frame on the wire.
BROADCAST = b"\xff" * 6
QUEUED = 8 << 20  # More than a tap keeps for a client that does not read.


def ip_frame(source, destination, body=b"", tag=b"", mac=bytes(6)):
    """An IP packet that is not UET, in an Ethernet frame."""
    source, destination = map(ipaddress.ip_address, (source, destination))
    if source.version == 4:
        kind, head = b"\x08\x00", struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 1, 0)
    else:
        kind, head = b"\x86\xdd", struct.pack(">IHBB", 6 << 28, len(body), 59, 64)
    return mac + bytes(6) + tag + kind + head + source.packed + destination.packed + body


def arp(sender, target, mac=BROADCAST):
    return (mac + bytes(6) + b"\x08\x06" + struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + bytes(6)
            + ipaddress.ip_address(sender).packed + bytes(6) + ipaddress.ip_address(target).packed)


class WireTap(unittest.TestCase):
    def setUp(self):
        self.wire = pingpong.wire_name()
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def tap(self, address, path=None):
        return self.stack.enter_context(Tap(self.wire, address, path))

    def connect(self, tap):
        return self.stack.enter_context(tap.connect())

    def pair(self, one=ONE, two=TWO):
        taps = self.tap(one), self.tap(two)
        return *taps, *map(self.connect, taps)

    def tool(self, *words):
        return subprocess.run([TOOL, "-w", self.wire, *map(str, words)], capture_output=True, text=True, timeout=240)

    def failing(self, *words, status=1):
        run = self.tool("tap", *words)
        self.assertEqual((run.returncode, run.stdout), (status, ""))
        return run.stderr

    def test_two_taps_receive_each_others_frames_byte_for_byte(self):
        for one, two in ((ONE, TWO), (ONE6, TWO6)):
            a, b, first, second = self.pair(one, two)
            longest = MOST - len(ip_frame(one, two))
            for number in range(200):
                body = bytes((number + at) & 0xFF for at in range(number * longest // 199))
                tag = b"\x81\x00\x00\x07" if number % 3 == 0 and number < 199 else b""
                for source, sink, frame in ((first, second, ip_frame(one, two, body, tag)),
                                            (second, first, ip_frame(two, one, body, tag))):
                    source.send(frame)
                    self.assertEqual(sink.recv(MOST + 1), frame)
            for tap in (a, b):
                status, counts, _ = tap.end()
                self.assertEqual(status, 0)
                self.assertEqual({name: count for name, count in counts.items() if count},
                                 {"sent": 200, "received": 200})
                self.assertFalse(tap.path.exists())

    def test_a_neighbours_question_reaches_the_others_and_its_answer_the_one(self):
        a, b, first, second = self.pair()
        third = self.connect(self.tap("10.1.0.3"))
        for question in (arp(ONE, TWO), arp("0.0.0.0", ONE)):
            first.send(question)
            for client in (second, third):
                self.assertEqual(client.recv(MOST), question)
        answer = arp(TWO, ONE, a.mac)
        second.send(answer)
        self.assertEqual(first.recv(MOST), answer)
        second.send(marker := ip_frame(TWO, "10.1.0.3"))
        self.assertEqual(third.recv(MOST), marker)
        self.assertNotEqual(a.mac, b.mac)

    def test_what_no_wire_carries_or_another_would_send_is_refused_and_counted(self):
        a, _, first, second = self.pair()
        short, long = [b"", b"x" * 13], [ip_frame(ONE, TWO, b"x" * (MOST - 33)), b"x" * 60000]
        foreign = [ip_frame(TWO, TWO), ip_frame("10.1.0.3", TWO, tag=b"\x81\x00\x00\x07"), arp(TWO, ONE), bytes(60),
                   ip_frame(ONE6, TWO6)]
        for frame in (*short, *long, *foreign):
            first.send(frame)
        first.send(last := ip_frame(ONE, TWO, b"last"))
        self.assertEqual(second.recv(MOST), last)
        first.send(ip_frame(ONE, "10.1.0.99"))
        status, counts, log = a.end(signal.SIGINT)
        self.assertEqual(status, 0)
        self.assertEqual(counts["refused_length"], 4)
        self.assertEqual(counts["refused_source"], 5)
        self.assertEqual(counts["sent"], 1)
        self.assertEqual(log.count("refused"), 1, log)
        self.assertIn(ONE, log)

    def test_a_client_that_does_not_read_delays_nobody(self):
        a, b, first, second = self.pair()
        third = self.connect(self.tap("10.1.0.3"))
        body = bytes(8000)
        for _ in range(QUEUED // len(body)):
            first.send(ip_frame(ONE, TWO, body))
        first.send(marker := ip_frame(ONE, "10.1.0.3"))
        self.assertEqual(third.recv(MOST), marker)
        frame = ip_frame(ONE, TWO, b"now")
        received = 0
        while True:  # What was kept, then what came after there was room.
            first.send(frame)
            if second.recv(MOST) == frame:
                break
            received += 1
        # First the sender: frames on their way to a port that ends are lost.
        lost = a.end()[1]["lost"]
        counts = b.end()[1]
        self.assertGreater(counts["dropped_slow_client"], 0)
        self.assertGreater(received, 0)
        self.assertEqual(lost, 0)

    def test_one_client_at_a_time_and_the_port_outlives_it(self):
        a, b, first, second = self.pair()
        with a.connect() as another:
            self.assertEqual(another.recv(MOST), b"")
        first.send(ip_frame(ONE, TWO, b"x"))
        first.close()  # What it sent before is still sent.
        self.assertEqual(second.recv(MOST), ip_frame(ONE, TWO, b"x"))
        second.send(ip_frame(TWO, ONE, b"while there is no client"))
        self.assertEqual(len(self.tool("list").stdout.splitlines()), 2)
        for number in range(200):
            while True:  # It is refused until the end of the former client is seen.
                again = self.connect(a)
                second.send(frame := ip_frame(TWO, ONE, bytes([number])))
                if (data := again.recv(MOST)) != b"":
                    break
            while data != frame:
                data = again.recv(MOST)
            again.close()
        log = a.end()[2]
        self.assertIn("client left", log)
        self.assertIn("client refused", log)
        b.kill()

    def test_list_names_taps_whose_link_goes_down_and_up_and_which_have_no_nic(self):
        a, b, first, second = self.pair()
        row = next(row for row in self.tool("list").stdout.splitlines() if row.startswith(TWO))
        self.assertRegex(row, rf"^{TWO} tap \d+ process {b.process.pid} link up$")
        self.assertEqual(self.tool("reset", TWO).returncode, 1)
        self.assertEqual(self.tool("down", TWO).returncode, 0)
        first.send(ip_frame(ONE, TWO, b"lost"))
        first.send(own := ip_frame(ONE, ONE, b"to itself"))  # What it sent before is on its way, or lost.
        self.assertEqual(first.recv(MOST), own)
        self.assertEqual(self.tool("up", TWO).returncode, 0)
        first.send(frame := ip_frame(ONE, TWO, b"passes"))
        self.assertEqual(second.recv(MOST), frame)
        self.assertEqual(a.end()[1]["lost"], 1)

    def test_a_killed_tap_leaves_its_address_and_its_socket_to_the_next(self):
        a, _, first, second = self.pair()
        second.send(frame := ip_frame(TWO, ONE))
        self.assertEqual(first.recv(MOST), frame)  # The tap has accepted it.
        a.kill()
        self.assertTrue(a.path.exists())
        self.assertEqual(first.recv(MOST), b"")
        again = self.connect(self.tap(ONE, a.path))
        second.send(frame)
        self.assertEqual(again.recv(MOST), frame)

    def test_errors_name_object_cause_and_cure(self):
        a = self.tap(ONE)
        spare = a.path.parent / "spare"
        message = self.failing(ONE, spare)
        for what in (ONE, self.wire, f"process {a.process.pid}", "choose another"):
            self.assertIn(what, message)
        self.assertFalse(spare.exists())
        self.assertIn(f"{a.path}: a process serves this socket; choose another", self.failing(TWO, a.path))
        spare.write_text("precious")
        self.assertIn(f"{spare}: is not a socket", self.failing(TWO, spare))
        self.assertEqual(spare.read_text(), "precious")
        self.assertIn("No such file", self.failing(TWO, spare.parent / "no/tap"))
        self.assertIn("1 to 107 bytes", self.failing(TWO, "x" * 108))
        self.assertEqual(len(self.tool("list").stdout.splitlines()), 1)
        for words, what in (((), "ADDRESS"), ((TWO,), "SOCKET"), (("toast", spare), "'toast'"),
                            (("0.0.0.0", spare), "'0.0.0.0'"), ((TWO, spare, "--crc", "toast"), "toast")):
            with self.subTest(words=words):
                self.assertIn(what, self.failing(*words, status=2))
        for what in ("SOCK_SEQPACKET", "ADDRESS", "SOCKET", "--crc"):
            self.assertIn(what, self.tool("tap", "--help").stdout)

    def test_the_end_removes_no_socket_of_another(self):
        a = self.tap(ONE)
        a.path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(a.path))
            self.assertEqual(a.end()[0], 0)
            self.assertTrue(a.path.exists())


if __name__ == "__main__":
    unittest.main()
