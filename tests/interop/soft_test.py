# SPDX-License-Identifier: Apache-2.0
"""The independent peer against the soft device, over UDP sockets. HEDDLE_BUILD names the build directory."""

import dataclasses
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from bench import JOB_ID, message  # noqa: E402
from kinds import HABITS, LOSS, OWN, PATIENT, TOGETHER, Case, rounds  # noqa: E402
from uet.options import Options  # noqa: E402
from uet.ses import Code  # noqa: E402


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

    def test_both_ways_with_relative_addresses(self):
        """Requests of both sides have rel=1; the device's endpoint is one of its job."""
        self.messages = rounds(200)
        self.settings = {"ADDRESSING": "relative"}
        options = dataclasses.replace(OWN, relative=True)
        for ordered in (True, False):
            for kind in (self.peer_sends, self.peer_writes, self.peer_reads, self.device_sends, self.device_writes,
                         self.device_reads):
                with self.subTest(kind=kind.__name__, ordered=ordered):
                    kind(options, ordered)

    def test_names_of_another_space_are_refused(self):
        self.settings = {"ADDRESSING": "relative"}
        for changes, code in (({"relative": False}, Code.BAD_PID),
                              ({"relative": True, "job_id": JOB_ID + 1}, Code.BAD_JOB_ID)):
            with self.subTest(**changes):
                bench = self.bench(dataclasses.replace(OWN, **changes), True, 0.0)
                operation = bench.peer.send(bench.heddle, message(0, 100), True)
                bench.wire.run(lambda: operation.code is not None)
                self.assertEqual(operation.code, code)
                self.finish(bench)

    def each_habit(self, *kinds, **settings):
        """Each one alone with fewer messages, and all together."""
        self.settings = settings
        for name, habit in (*HABITS.items(), ("all", TOGETHER)):
            self.messages = rounds(1000 if habit is TOGETHER else 200)
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
