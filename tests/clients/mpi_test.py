# SPDX-License-Identifier: Apache-2.0
"""An MPI program on the distribution's Open MPI, unmodified, on the soft device in both forms of deployment.

HEDDLE_BUILD names the build directory.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/clients"))

import pingpong  # noqa: E402

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build"))
PROGRAM = BUILD / "tests/clients_mpi"
# Debian's name; `mpirun` is whichever MPI the machine prefers.
MPIRUN = shutil.which("mpirun.openmpi")
RANKS = 4
# Wall time on two cores, several times what it takes.
DEADLINE_S = 240
# Messages between ranks go by tagged libfabric calls, each rank's own too.
CHOICES = {"pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": "heddle", "btl": "self", "osc": "pt2pt"}
FAULTS = {"FI_HEDDLE_LOSS": "0.01", "FI_HEDDLE_REORDER": "0.01"}
# Each rank writes a file of its own.
OWN_STATISTICS = 'FI_HEDDLE_STATISTICS=$0/$OMPI_COMM_WORLD_RANK exec "$@"'


class Form:
    """Tests of a form of deployment; subclasses name it."""

    form = None

    def setUp(self):
        if MPIRUN is None or not PROGRAM.exists():
            self.skipTest("no Open MPI here: the packages openmpi-bin and libopenmpi-dev have it")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def run_ranks(self, unexpected, **settings):
        """The ranks' statistics, after a run in which `unexpected` messages precede their receives."""
        env = pingpong.environment(BUILD, self.form, FI_HEDDLE_WIRE=pingpong.wire_name(), FI_HEDDLE_DEVICE="soft",
                                   OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, **settings)
        choices = [word for name, value in CHOICES.items() for word in ("--mca", name, value)]
        command = [MPIRUN, "-n", str(RANKS), "--oversubscribe", *choices, "sh", "-c", OWN_STATISTICS, self.path,
                   PROGRAM, str(unexpected)]
        run = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
        try:
            output, _ = run.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            output, _ = run.communicate()
            self.fail(f"still running after {DEADLINE_S} s:\n{output}")
        self.assertEqual(run.returncode, 0, output)
        self.assertTrue(output.endswith("ok\n"), output)
        return [pingpong.statistics(self.path / str(rank)) for rank in range(RANKS)]

    def test_four_ranks_receive_what_was_sent(self):
        # Nothing but the endpoint can have carried it: the largest message of each rank alone has 16 MiB.
        for rank, statistics in enumerate(self.run_ranks(unexpected=20_000)):
            with self.subTest(rank=rank):
                self.assertGreater(statistics["tx_bytes"], 16 << 20)
                self.assertGreater(statistics["rx_bytes"], 16 << 20)

    def test_four_ranks_receive_what_was_sent_on_a_bad_wire(self):
        totals = {}
        for statistics in self.run_ranks(unexpected=2000, **FAULTS):
            for name, value in statistics.items():
                totals[name] = totals.get(name, 0) + value
        for name in ("faults_lost", "faults_reordered", "tx_retransmissions", "rx_unexpected"):
            self.assertGreater(totals[name], 0, name)

    def test_100_000_messages_precede_their_receives(self):
        # More than the defaults take; beyond them the sender waits.
        room = {"FI_HEDDLE_UNEXPECTED_MESSAGES": 131_072, "FI_HEDDLE_UNEXPECTED_BYTES": 16 << 20}
        statistics = self.run_ranks(unexpected=100_000, **room)
        self.assertGreaterEqual(statistics[0]["rx_unexpected"], 100_000)


class PlugIn(Form, unittest.TestCase):
    form = "plug-in"


class DropIn(Form, unittest.TestCase):
    form = "drop-in"


if __name__ == "__main__":
    unittest.main()
