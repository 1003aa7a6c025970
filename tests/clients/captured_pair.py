# SPDX-License-Identifier: Apache-2.0
"""Two endpoints with captures and statistics, for tests of what is on the wire.

HEDDLE_BUILD names the build directory.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/clients"))

import pingpong  # noqa: E402
from endpoints import BUILD, acquaint, finish, start_pings  # noqa: E402

DEVICES = (("soft", "soft"), ("rtl", "soft"), ("soft", "rtl"))
ADDRESSES = {"ipv4": ("10.9.0.1", "10.9.0.2"), "ipv6": ("fd00::1", "fd00::2")}
PINGS = 20
UET_FRAMES_OF_PINGS = 80  # More than: messages of two packets each way.


class CapturedPair(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def file(self, side, kind):
        return self.path / f"{side}.{kind}"

    def start(self, wire, devices, each, family="ipv4", **settings):
        """A pair, `each` its settings; its captures and statistics are `file`s 0 and 1."""
        pair = []
        for side, (device, own) in enumerate(zip(devices, each)):
            files = {f"FI_HEDDLE_{kind.upper()}": self.file(side, kind) for kind in ("capture", "statistics")}
            for file in files.values():
                file.unlink(missing_ok=True)
            pair.append(wire.start(wire.environment(FI_HEDDLE_DEVICE=device, FI_HEDDLE_IP=ADDRESSES[family][side],
                                                    **files, **own, **settings)))
        acquaint(*pair)
        return pair

    def ping(self, pair):
        """Exchanges messages and closes both."""
        start_pings(pair, PINGS, 5000)
        finish(pair)
        for endpoint in pair:
            endpoint.close()

    def talk_in_vain(self, pair):
        """Sends messages of which none can arrive, and closes both."""
        for endpoint in pair:
            endpoint.tell("mesh", 0, 1, 100, 0, 0)
        for endpoint in pair:
            self.assertRegex(endpoint.line(), r"^lost 0 \d+$")
            endpoint.done()
        for endpoint in pair:
            endpoint.close()

    def frames(self, side, *options):
        run = subprocess.run([BUILD / "bin/heddle", "decode", "--json", *options, self.file(side, "capture")],
                             capture_output=True, text=True, check=True)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def statistics(self, side):
        return pingpong.statistics(self.file(side, "statistics"))


def headers(frame):
    return {header["header"]: header["fields"] for header in frame["headers"]}
