# SPDX-License-Identifier: Apache-2.0
"""The distribution's own fi_info and fi_pingpong on simulated RTL and on the soft device, in both forms, and across the two.

HEDDLE_BUILD names the build directory.
"""

import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/clients"))

import pingpong  # noqa: E402

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build"))
# Wall time on two cores, several times what it takes.
DEADLINE_S = 240
ALL_SIZES_DEADLINE_S = 420
FAULTS = {"FI_HEDDLE_LOSS": "0.01", "FI_HEDDLE_DUPLICATE": "0.01", "FI_HEDDLE_REORDER": "0.01",
          "FI_HEDDLE_CORRUPT": "0.001"}


class Form:
    """What must hold in a form of deployment on a device; subclasses name both."""

    form = None
    device = "rtl"

    def environment(self, **settings):
        return pingpong.environment(BUILD, self.form, FI_HEDDLE_WIRE=pingpong.wire_name(),
                                    FI_HEDDLE_DEVICE=self.device, **settings)

    def exchange(self, size, deadline_s=DEADLINE_S, files=None, **settings):
        """Server and client; their statistics go to the two `files`."""
        logs = BUILD / "reports/clients" / self.id().split(".", 1)[1]
        sides = [{"FI_HEDDLE_STATISTICS": str(path)} for path in files] if files else [{}, {}]
        for path in files or ():
            path.unlink(missing_ok=True)
        pingpong.Pingpong(env=self.environment(**settings), logs=logs, size=size, deadline_s=deadline_s,
                          server_env=sides[0], client_env=sides[1]).run()

    def test_fi_info_lists_heddle_with_rdm_endpoints(self):
        output = pingpong.fi_info(self.environment(), "-p", "heddle", "-t", "FI_EP_RDM")
        self.assertEqual(set(pingpong.providers(output)), {"heddle"})
        self.assertIn(f"domain: {self.device}0", output)
        self.assertIn("type: FI_EP_RDM", output)

    def test_fi_info_shows_the_product_version(self):
        version = (ROOT / "VERSION").read_text().split(".")
        output = pingpong.fi_info(self.environment(), "-p", "heddle")
        self.assertIn(f"version: {int(version[0])}.{int(version[1])}", output)

    def test_fi_info_lists_no_layered_variant(self):
        env = self.environment()
        env.pop("FI_PROVIDER", None)
        names = pingpong.providers(pingpong.fi_info(env))
        self.assertIn("heddle", names)
        self.assertEqual([n for n in names if "heddle" in n and n != "heddle"], [])

    def test_default_sizes_arrive_intact(self):
        self.exchange(None, ALL_SIZES_DEADLINE_S)

    def test_0_bytes_arrive_intact(self):
        self.exchange(0)

    def test_1_byte_arrives_intact(self):
        self.exchange(1)

    def test_63_bytes_arrive_intact(self):
        self.exchange(63)

    def test_1023_bytes_arrive_intact(self):
        self.exchange(1023)

    def test_4097_bytes_arrive_intact(self):
        self.exchange(4097)

    def test_65535_bytes_arrive_intact(self):
        self.exchange(65535)

    def test_up_to_64_kib_arrive_intact_on_a_bad_wire(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder, side) for side in ("server", "client")]
            totals = {}
            for size in (1, 64, 1023, 4097, 16384, 65536):
                with self.subTest(size=size):
                    self.exchange(size, files=files, **FAULTS)
                    for name, value in pingpong.statistics(*files).items():
                        totals[name] = totals.get(name, 0) + value
        # The wire was bad, and the NICs mended it.
        for name in ("faults_lost", "faults_duplicated", "faults_reordered", "tx_retransmissions", "rx_duplicates",
                     "rx_out_of_order"):
            self.assertGreater(totals[name], 0, name)

    def test_damaged_frames_are_dropped_by_crc_and_mac(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder, side) for side in ("server", "client")]
            self.exchange(65536, files=files, FI_HEDDLE_CORRUPT="0.02", FI_HEDDLE_BAD_FCS="0.02")
            totals = pingpong.statistics(*files)
        # fi_pingpong -c has checked the bytes. The damage was such that nothing below could see it.
        for name in ("faults_corrupted", "faults_bad_fcs", "drop_crc", "drop_mac_error", "tx_retransmissions"):
            self.assertGreater(totals[name], 0, name)
        self.assertEqual(totals["drop_ip_checksum"], 0)


class PlugIn(Form, unittest.TestCase):
    form = "plug-in"


class DropIn(Form, unittest.TestCase):
    form = "drop-in"

    def test_serves_heddle_only(self):
        names = pingpong.providers(pingpong.fi_info(self.environment()))
        self.assertEqual(set(names), {"heddle"})


class SoftPlugIn(PlugIn):
    device = "soft"


class SoftDropIn(DropIn):
    device = "soft"


class Mixed:
    """A server on one device and a client on the other; subclasses name them."""

    server = client = None

    def exchange(self, size, **settings):
        env = pingpong.environment(BUILD, "drop-in", FI_HEDDLE_WIRE=pingpong.wire_name(), **settings)
        pingpong.Pingpong(env=env, logs=BUILD / "reports/clients" / self.id().split(".", 1)[1], size=size,
                          deadline_s=DEADLINE_S, server_env={"FI_HEDDLE_DEVICE": self.server},
                          client_env={"FI_HEDDLE_DEVICE": self.client}).run()

    def test_messages_of_all_shapes_arrive_intact(self):
        for size in (0, 1, 1023, 4096, 4097, 65536):
            with self.subTest(size=size):
                self.exchange(size)

    def test_messages_arrive_intact_on_a_bad_wire(self):
        self.exchange(16384, **FAULTS)


class RtlServesSoft(Mixed, unittest.TestCase):
    server, client = "rtl", "soft"


class SoftServesRtl(Mixed, unittest.TestCase):
    server, client = "soft", "rtl"


if __name__ == "__main__":
    unittest.main()
