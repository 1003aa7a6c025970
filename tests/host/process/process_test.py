# SPDX-License-Identifier: Apache-2.0
"""How processes with the library start, fork, are interrupted and end, on simulated RTL.

HEDDLE_BUILD names the build directory.
"""

import os
import pathlib
import secrets
import signal
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build"))
LIBRARY = BUILD / "lib/libheddle.so.1"
PLUGIN = BUILD / "lib/libfabric/libheddle-fi.so"
DEADLINE_S = 240  # Ends what hangs: a busy machine takes many times as long as an idle one.


class Process(unittest.TestCase):
    def run_program(self, name, *arguments, **variables):
        """Its exit status, after checking that it printed no fault."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("FI_")}
        env |= {"FI_HEDDLE_DEVICE": "rtl", "FI_HEDDLE_WIRE": f"test-{os.getpid()}-{secrets.token_hex(4)}"}
        env |= {k: str(v) for k, v in variables.items()}
        done = subprocess.run([BUILD / "tests" / name, *map(str, arguments)], env=env, timeout=DEADLINE_S,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.stderr, "", f"{name} {arguments} ended with {done.returncode}")
        return done.returncode

    def life(self, *arguments):
        self.assertEqual(self.run_program("process_life", *arguments), 0)

    # Threads of the library run while the process ends: more than once, because that is a race.

    def ends_as_it_says(self, how):
        for status in (0, 7, 255):
            with self.subTest(status=status):
                self.assertEqual(self.run_program("process_life", "exit", how, status), status)

    def test_exit_without_closing(self):
        self.ends_as_it_says("exit")

    def test_immediate_exit_without_closing(self):
        self.ends_as_it_says("_exit")

    def test_return_from_main_without_closing(self):
        self.ends_as_it_says("return")

    def test_quick_exit_without_closing(self):
        self.ends_as_it_says("quick_exit")

    def test_abort_without_closing(self):
        self.assertEqual(self.run_program("process_life", "exit", "abort", 0), -signal.SIGABRT)

    def test_threads_are_named_block_signals_and_end_with_the_last_close(self):
        self.life("threads")

    def test_forked_child_opens_its_own(self):
        self.life("fork")

    def test_forked_child_executes_a_program_that_inherits_nothing(self):
        self.life("exec")

    def test_signals_every_millisecond_disturb_nothing(self):
        self.life("signals")

    def test_opening_and_closing_leaks_nothing(self):
        self.life("cycles", 6)

    def test_library_is_loaded_and_closed_100_times(self):
        self.assertEqual(self.run_program("process_loading", "library", LIBRARY, 100), 0)

    def test_plug_in_is_loaded_and_closed_100_times(self):
        self.assertEqual(self.run_program("process_loading", "plugin", PLUGIN, 100), 0)

    def test_drop_in_and_library_are_one_core(self):
        self.assertEqual(self.run_program("process_loading", "one", LIBRARY,
                                          LD_LIBRARY_PATH=BUILD / "lib/heddle/drop-in"), 0)


if __name__ == "__main__":
    unittest.main()
