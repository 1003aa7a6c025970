# SPDX-License-Identifier: Apache-2.0
"""The independent peer against a device on the one-machine wire, through a tap."""

import pathlib
import tempfile

from kinds import HABITS, LOSS, OWN, PATIENT, TOGETHER, Case, rounds
from places import TappedWire, pingpong
from uet.options import Options


class TapCase(Case):
    """Of one device; `usual` messages in a run, `few` of them with each habit."""
    device = None
    usual = few = 0

    def setUp(self):
        super().setUp()
        self.messages = rounds(self.usual)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.statistics = pathlib.Path(folder.name, "statistics")
        self.settings = {"STATISTICS": self.statistics}

    def finish(self, bench, operations=()):
        """The device, too, has closed what it opened, and dropped nothing as damaged."""
        super().finish(bench, operations)
        counts = pingpong.statistics(self.statistics)
        self.statistics.unlink()
        opened = bench.peer.counts["accepted"]
        self.assertEqual((counts["tx_pdcs"], counts["pdc_closes"]), (opened, opened))
        self.assertEqual(counts["rx_pdcs"], bench.peer.counts["opened"])
        self.assertEqual(counts["drop_crc"], 0)

    def initiating(self):
        return self.peer_sends, self.peer_writes, self.peer_reads

    def answering(self):
        return self.device_sends, self.device_writes, self.device_reads

    def at(self, **place):
        self.place = TappedWire(self.device, **place)

    def each_kind(self, kinds):
        """On each version of IP with and without order, and with loss on one of each."""
        for kind in kinds:
            for ip, ordered, loss in ((4, True, 0.0), (4, False, LOSS), (6, True, LOSS), (6, False, 0.0)):
                with self.subTest(kind=kind.__name__, ip=ip, ordered=ordered, loss=loss):
                    self.at(ip=ip)
                    bench = kind(OWN, ordered, loss)
                    self.assertEqual(bench.wire.faults.counts["lost"] > 0, loss > 0)

    def each_checksum(self):
        for checksum in ("right", "wrong"):
            for ip in (4, 6):
                for kind in (self.peer_writes, self.device_sends):
                    with self.subTest(checksum, kind=kind.__name__, ip=ip):
                        self.messages = rounds(self.few)
                        self.at(ip=ip, checksum=checksum)
                        kind(OWN, True)

    def each_kind_over_native_ip(self):
        for number, kind in enumerate((*self.initiating(), *self.answering())):
            for ip in (4, 6):
                ordered, loss = (number + ip) % 4 < 2, LOSS if ip == 4 else 0.0
                with self.subTest(kind=kind.__name__, ip=ip, ordered=ordered, loss=loss):
                    self.messages = rounds(self.few)
                    self.at(ip=ip, native=True)
                    kind(OWN, ordered, loss)

    def each_habit(self, kinds):
        """Alone, with one kind each, and all together with all."""
        for number, (name, habit) in enumerate((*HABITS.items(), ("all", TOGETHER))):
            self.messages = rounds(self.usual if habit is TOGETHER else self.few)
            for kind in kinds if habit is TOGETHER else (kinds[number % len(kinds)],):
                ordered = "ordered" in name or number % 2 == 0
                with self.subTest(name, kind=kind.__name__, ordered=ordered):
                    self.at(ip=6 if number % 4 < 2 else 4)
                    kind(Options(**PATIENT | habit), ordered)
