# SPDX-License-Identifier: Apache-2.0
"""The independent peer against the device soft, through a tap of the one-machine wire. HEDDLE_BUILD names the build
directory."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from tap_cases import TapCase  # noqa: E402


class InteropTapSoft(TapCase):
    device = "soft"
    usual, few = 500, 100
    # The device keeps 64 packets of READ data of a PDC that are not acknowledged, and refuses a READ beyond: a gap. A READ
    # has at most 16, and the peer coalesces the ACKs of 16.
    reads_of_lone_retries = 3

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
