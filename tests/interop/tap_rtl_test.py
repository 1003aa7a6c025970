# SPDX-License-Identifier: Apache-2.0
"""The independent peer against the device rtl, through a tap of the one-machine wire. HEDDLE_BUILD names the build
directory."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from tap_cases import TapCase  # noqa: E402


class InteropTapRtl(TapCase):
    device = "rtl"
    usual, few = 200, 20
    # More may find no room for their data, or, as the clock stands while the NIC is idle, no receive descriptor that was
    # fetched by then: the refused packet is a gap.
    reads_of_lone_retries = 1
    sends_of_lone_retries = 2

    def test_the_peer_initiates(self):
        self.each_kind(self.initiating())

    def test_the_device_initiates(self):
        self.each_kind(self.answering())

    def test_any_udp_checksum_is_accepted(self):
        self.each_checksum()

    def test_both_sides_over_native_ip(self):
        self.each_kind_over_native_ip()

    def test_habits_of_the_reference_provider_as_initiator(self):
        self.each_habit(self.initiating())

    def test_habits_of_the_reference_provider_as_target(self):
        self.each_habit(self.answering())


if __name__ == "__main__":
    unittest.main()
