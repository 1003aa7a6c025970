# SPDX-License-Identifier: Apache-2.0
"""heddle info, params and stats, and the captures of a simulated run.

HEDDLE_BUILD names the build directory.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts/clients")]

import dissector_test  # noqa: E402
import frames  # noqa: E402
import pingpong  # noqa: E402

HEDDLE = frames.BUILD / "bin/heddle"
WIRE = frames.BUILD / "bin/heddle-wire"


def environment(**settings):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FI_")}
    return clean | {"FI_HEDDLE_DEVICE": "rtl", "FI_HEDDLE_WIRE": pingpong.wire_name()} | settings


def run(*arguments, env=None):
    return subprocess.run([HEDDLE, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
                          env=env or environment())


class Info(unittest.TestCase):
    def device(self, **settings):
        result = run("info", "--json", env=environment(**settings))
        return result.returncode, {d["device"]: d for d in json.loads(result.stdout)["devices"]}

    def test_shows_what_the_device_says_of_itself(self):
        status, devices = self.device(FI_HEDDLE_IP="10.1.2.3")
        self.assertEqual(status, 0)
        device = devices["rtl0"]
        contract = frames.SPEC["contract"]
        self.assertEqual(device["contract"], f"{contract['major']}.{contract['minor']}")
        self.assertEqual((device["offered"], device["address"], device["link"]), (True, "10.1.2.3", "up"))
        known = {v["name"] for e in frames.SPEC["enum"] if e["name"] == "capability" for v in e["values"]}
        self.assertLessEqual({"send", "rod"}, set(device["capabilities"]))
        self.assertLessEqual(set(device["capabilities"]), known)
        profile = device["uet_profile"]
        self.assertEqual((profile["name"], len(profile["rows"]) + len(profile["missing"])), ("AI Base", 20))
        self.assertIn("SES-2", profile["rows"])
        self.assertEqual([name for name, value in device["limits"].items() if value == 0], [])

    def test_is_the_same_in_text(self):
        text = run("info", env=environment(FI_HEDDLE_IP="10.1.2.3")).stdout
        self.assertRegex(text, r"\nrtl0\n +address +10\.1\.2\.3\n")
        self.assertRegex(text, r"\n +capabilities +.*\bsend\b")
        self.assertRegex(text, r"\n +uet_profile +AI Base, \d+ of 20 rows \(without .*SES-9\b")

    def test_says_why_a_device_is_not_offered(self):
        status, devices = self.device(FI_HEDDLE_SIM_PATH="/nowhere")
        self.assertEqual((status, devices["rtl"]["offered"]), (1, False))
        self.assertIn("not found (looked for /nowhere)", devices["rtl"]["reason"])
        self.assertIn("FI_HEDDLE_DEVICE names rtl", devices["soft"]["reason"])
        for kind in ("soft", "vfio", "verbs"):
            self.assertFalse(devices[kind]["offered"])

    def test_without_a_name_soft_is_chosen(self):
        status, devices = self.device(FI_HEDDLE_DEVICE="")
        self.assertEqual((status, devices["soft0"]["offered"], devices["rtl"]["offered"]), (0, True, False))
        self.assertIn("set FI_HEDDLE_DEVICE=rtl", devices["rtl"]["reason"])
        self.assertIn("read", devices["soft0"]["capabilities"])

    def test_names_a_setting_that_is_not_accepted(self):
        result = run("info", env=environment(FI_HEDDLE_LOSS="7"))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("heddle: FI_HEDDLE_LOSS=7 is not accepted; it takes 0 to 1; correct or unset it", result.stderr)


class Params(unittest.TestCase):
    def test_lists_what_the_library_tells_its_users(self):
        env = environment(LD_LIBRARY_PATH=str(frames.BUILD / "lib/heddle/drop-in"))
        shown = pingpong.fi_info(env, "-e")
        params = json.loads(run("params", "--json").stdout)["params"]
        self.assertEqual({param["name"] for param in params}, set(re.findall(r"# (FI_HEDDLE_\w+):", shown)))
        words = " ".join(re.sub(r"(?m)^#", " ", shown).split())  # fi_info wraps the lines.
        page = (frames.ROOT / "docs/settings.md").read_text()
        manual = " ".join(run("params", "--man").stdout.replace("\\-", "-").split())
        for param in params:
            default = f" (default: {param['default']})" if param["default"] else ""
            self.assertIn(f"{param['help']}. Takes {param['range']}{default}", words)
            row = (f"`{param['name'].removeprefix('FI_HEDDLE_')}`", param["type"], param["range"],
                   param["default"] or "none", param["obeyed_by"], param["help"] + ".")
            self.assertIn("| " + " | ".join(row) + " |", page)
            self.assertIn(f".B {param['name']} {param['help']}. {param['type']}: {param['range']}. Default: "
                          f"{param['default'] or 'none'}. Applies to: {param['obeyed_by']}.", manual)
        self.assertEqual(len(re.findall(r"(?m)^\| `", page)), len(params))

    def test_shows_values_and_what_is_wrong_with_them(self):
        result = run("params", "--json", env=environment(FI_HEDDLE_LOSS="7", FI_HEDDLE_SEED="5", FI_HEDDLE_LOST="1"))
        out = json.loads(result.stdout)
        values = {p["name"]: (p["value"], p["accepted"]) for p in out["params"] if "value" in p}
        self.assertEqual((values["FI_HEDDLE_LOSS"], values["FI_HEDDLE_SEED"]), (("7", False), ("5", True)))
        self.assertEqual((out["unknown"], result.returncode), (["FI_HEDDLE_LOST"], 1))
        self.assertEqual(run("params").returncode, 0)


class Stats(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "statistics")

    def test_reads_a_device_through_the_statistics_interface(self):
        result = run("stats", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        known = [v["name"] for e in frames.SPEC["enum"] if e["name"] == "statistic" for v in e["values"]]
        self.assertLessEqual(set(known), set(json.loads(result.stdout)["statistics"]))

    def test_says_that_no_device_is_offered(self):
        result = run("stats", env=environment(FI_HEDDLE_DEVICE="", FI_HEDDLE_SIM_PATH="/nowhere"))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("no device is offered", result.stderr)

    def test_shows_those_of_a_program_and_ends_as_it_did(self):
        result = run("stats", "--all", "--", "sh", "-c", f"{HEDDLE} stats >/dev/null; exit 3")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^tx_frames +\d+  Frames sent\.$")
        self.assertRegex(result.stdout, r"(?m)^cycles +[1-9]\d*")

    def test_says_that_a_program_had_no_device(self):
        result = run("stats", "--", "true")
        self.assertEqual(result.returncode, 1)
        self.assertIn("true: closed no Heddle device", result.stderr)

    def test_passes_on_that_a_program_cannot_be_run(self):
        result = run("stats", "--", "/nowhere/x")
        self.assertEqual(result.returncode, 127)
        self.assertIn("/nowhere/x: cannot be run (No such file", result.stderr)
        self.assertNotIn("closed no Heddle device", result.stderr)

    def test_adds_up_the_devices_of_a_file(self):
        self.path.write_text("tx_frames 3\nrx_frames 0\ntx_frames 4\n")
        result = run("stats", "-f", self.path)
        self.assertEqual(result.stdout.split()[:2], ["tx_frames", "7"])
        self.assertNotIn("rx_frames", result.stdout)
        self.assertEqual(json.loads(run("stats", "--json", "-f", self.path).stdout),
                         {"statistics": {"tx_frames": 7, "rx_frames": 0}})

    def test_names_a_file_that_has_none(self):
        for text, reason in (("", "is empty"), ("tx_frames 1\nx\n", "line 2 is not `name value`"),
                             ("tx_frames 1 2\n", "line 1 is not")):
            with self.subTest(text=text):
                self.path.write_text(text)
                result = run("stats", "-f", self.path)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertIn(f"{self.path}: {reason}", result.stderr)
        self.path.unlink()
        self.assertIn("No such file", run("stats", "-f", self.path).stderr)

    def test_is_not_asked_for_two_things(self):
        for first in (("-f", "x"), ("-w", "1"), ("-d", "soft")):
            with self.subTest(first=first):
                self.assertEqual(run("stats", *first, "--", "true").returncode, 2)
        self.assertEqual(run("stats", "-f", "x", "-w", "1").returncode, 2)


class Words(unittest.TestCase):
    """What is not understood is named."""

    def test_no_subcommand_is_said_and_a_wrong_one_is_named(self):
        for words, what in (((), "subcommand"), (("toaster",), "toaster"), (("--json",), "--json")):
            with self.subTest(words=words):
                result = run(*words)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(what, result.stderr)

    def test_wire_helps_and_names_what_is_wrong(self):
        def wire(*words):
            return subprocess.run([WIRE, *words], capture_output=True, text=True, check=False, env=environment())

        for word in ("-h", "--help"):
            result = wire(word)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            for what in ("-w WIRE", "list", "up", "down", "reset", "Exit code"):
                self.assertIn(what, result.stdout)
        self.assertIn("ADDRESS", wire("down", "--help").stdout)
        for words, what in (((), "heddle-wire list"), (("toast",), "toast"), (("down",), "ADDRESS"),
                            (("down", "toast"), "'toast'"), (("down", "10.0.0.1", "2048"), "'2048'"),
                            (("down", "10.0.0.1", "0x1"), "'0x1'"), (("list", "toast"), "toast"),
                            (("--toast",), "--toast"), (("-w",), "-w"), (("down", "10.0.0.1", "1", "toast"), "toast")):
            with self.subTest(words=words):
                result = wire(*words)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(what, result.stderr)
        for words in (("-w", "no-such-wire", "list"), ("list", "-w", "no-such-wire"),
                      ("-w", "no-such-wire", "down", "10.0.0.1", "2047")):
            with self.subTest(words=words):
                result = wire(*words)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertIn("wire no-such-wire", result.stderr)


class SimulatedRun(unittest.TestCase):
    """Captures of fi_pingpong on a bad wire."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        env = pingpong.environment(frames.BUILD, "drop-in", FI_HEDDLE_WIRE=pingpong.wire_name(), FI_HEDDLE_LOSS="0.02",
                                   FI_HEDDLE_DUPLICATE="0.02", FI_HEDDLE_REORDER="0.02")
        sides = {side: {"FI_HEDDLE_CAPTURE": str(cls.path / f"{side}.pcap"),
                        "FI_HEDDLE_STATISTICS": str(cls.path / f"{side}.statistics")} for side in ("server", "client")}
        pingpong.Pingpong(env=env, logs=cls.path / "logs", size=16384, deadline_s=240, server_env=sides["server"],
                          client_env=sides["client"]).run()
        devices = json.loads(run("info", "--json").stdout)["devices"]
        cls.has_crc = "crc" in next(device for device in devices if device["offered"])["capabilities"]

    def test_is_decoded_without_a_fault(self):
        for side in ("server", "client"):
            result = run("decode", "--json", *([] if self.has_crc else ["--no-crc"]), self.path / f"{side}.pcap")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            kinds = collections.Counter()
            for line in result.stdout.splitlines():
                frame = json.loads(line)
                if frame["uet"]:
                    pds = next(h for h in frame["headers"] if h["header"].startswith("pds_"))
                    kinds[pds["fields"]["type_name"]] += 1
                    self.assertEqual(frame["udp_checksum"], "none")
            self.assertGreater(kinds["rod_req"], 40, kinds)
            self.assertGreater(kinds["ack"] + kinds["ack_cc"], 10, kinds)

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_is_dissected_without_a_fault(self):
        for side in ("server", "client"):
            packets = dissector_test.dissect(self.path / f"{side}.pcap", "-o", f"heddle_uet.crc:{self.has_crc}")
            self.assertGreater(len([p for p in packets if p.fields]), 50)
            for packet in packets:
                self.assertEqual(packet.experts, [])
                self.assertNotIn("_ws.malformed", packet.names)
                if packet.fields:
                    self.assertEqual((packet.crc_status, packet.udp_status), ("good" if self.has_crc else None, dissector_test.NOT_PRESENT))

    def test_is_counted_as_the_statistics_say(self):
        for side in ("server", "client"):
            path = self.path / f"{side}.statistics"
            counted = json.loads(run("stats", "--json", "-f", path).stdout)["statistics"]
            self.assertEqual(counted, pingpong.statistics(path))
            self.assertGreater(counted["faults_lost"], 0)


if __name__ == "__main__":
    unittest.main()
