# SPDX-License-Identifier: Apache-2.0
"""The runner of stock programs notices what can go wrong with them."""

import os
import pathlib
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/clients"))

import pingpong  # noqa: E402

ROW = "64 10 =10 1.2k 0.00s 2.84 22.55 0.04"
# How the stand-ins for fi_pingpong begin: as server and as client.
LISTEN = """
import socket, sys
port = int(sys.argv[sys.argv.index("-B") + 1])
with socket.create_server(("127.0.0.1", port)) as listener:
    listener.accept()
"""
CONNECT = """
import socket, sys
socket.create_connection(("127.0.0.1", int(sys.argv[sys.argv.index("-P") + 1]))).close()
"""


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def pair(self, server="", client="", deadline_s=240, before=""):
        """A runner on a program that acts as given on each side."""
        program = self.path / "program"
        program.write_text(
            f"#!{sys.executable}\nimport sys, time\n{before}\nif '-B' in sys.argv:\n"
            + "".join(f"    {line}\n" for line in (LISTEN + server).splitlines())
            + "else:\n" + "".join(f"    {line}\n" for line in (CONNECT + client).splitlines()))
        program.chmod(0o755)
        return pingpong.Pingpong(env=dict(os.environ), logs=self.path / "logs", size=64, deadline_s=deadline_s,
                                 program=str(program))

    def test_accepts_a_pair_that_does_it_all_and_removes_its_logs(self):
        rows = self.pair(f"print({ROW!r})", f"print({ROW!r})").run()
        self.assertEqual(rows, [ROW.split()])
        self.assertEqual(list((self.path / "logs").iterdir()), [])

    def test_reports_a_server_that_fails_and_keeps_its_log(self):
        with self.assertRaisesRegex(pingpong.Failure, "server ended with 3(.|\n)*what happened"):
            self.pair("print('what happened', flush=True); sys.exit(3)", "time.sleep(30)").run()
        self.assertTrue((self.path / "logs/server.log").exists())

    def test_reports_a_client_that_fails_though_the_server_succeeds(self):
        with self.assertRaisesRegex(pingpong.Failure, "client ended with 1"):
            self.pair(f"print({ROW!r})", "sys.exit(1)").run()

    def test_reports_a_server_that_never_listens(self):
        with self.assertRaisesRegex(pingpong.Failure, "server did not listen"):
            self.pair(before="if '-B' in sys.argv: time.sleep(30)", deadline_s=1).run()

    def test_reports_a_server_that_ends_at_once(self):
        with self.assertRaisesRegex(pingpong.Failure, "server ended with 5 before it listened"):
            self.pair(before="sys.exit(5)").run()

    def test_ends_both_at_the_deadline(self):
        start = time.monotonic()
        with self.assertRaisesRegex(pingpong.Failure, "client and server still running"):
            self.pair("time.sleep(60)", "time.sleep(60)", deadline_s=1).run()
        self.assertLess(time.monotonic() - start, 50)  # Their own end is later.

    def test_accepts_columns_without_a_space_between(self):
        row = "6m 10 =10 120m 226.73s 0.5511336486.00 0.00"
        self.assertEqual(self.pair(f"print({row!r})", f"print({row!r})").run(), [row.split()])

    def test_refuses_success_without_results(self):
        with self.assertRaisesRegex(pingpong.Failure, "client printed 0 of 1 results"):
            self.pair(f"print({ROW!r})").run()
        with self.assertRaisesRegex(pingpong.Failure, "server printed 0 of 1 results"):
            self.pair("", f"print({ROW!r})").run()

    def test_refuses_a_message_without_acknowledgement(self):
        lost = ROW.replace("=10", "=9")
        with self.assertRaisesRegex(pingpong.Failure, "not every message"):
            self.pair(f"print({ROW!r})", f"print({lost!r})").run()

    def test_takes_another_port_when_one_is_taken(self):
        mark = self.path / "mark"
        before = (f"import pathlib\nif '-B' in sys.argv and not pathlib.Path({str(mark)!r}).exists():\n"
                  f"    pathlib.Path({str(mark)!r}).touch(); sys.exit('bind: Address already in use')")
        self.pair(f"print({ROW!r})", f"print({ROW!r})", before=before).run()

    def test_keeps_the_callers_libfabric_settings_out(self):
        os.environ["FI_TESTVARIABLE"] = "x"
        self.addCleanup(os.environ.pop, "FI_TESTVARIABLE")
        env = pingpong.environment("build", "plug-in", FI_HEDDLE_WIRE="w")
        self.assertNotIn("FI_TESTVARIABLE", env)
        self.assertEqual(env["FI_HEDDLE_WIRE"], "w")

    def test_works_with_a_provider_of_the_distribution(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("FI_")} | {"FI_PROVIDER": "net"}
        for size, expected in ((0, 1), (65535, 1), (None, 6), ("all", 46)):
            # Both sides poll: where others want the processor too, each message waits for a turn of it.
            rows = pingpong.Pingpong(env=env, logs=self.path / "logs", size=size, deadline_s=240).run()
            self.assertEqual(len(rows), expected)


if __name__ == "__main__":
    unittest.main()
