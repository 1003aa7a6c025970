# SPDX-License-Identifier: Apache-2.0
"""Relative and absolute addressing beside each other: jobs that use one place of a NIC, and peers of other spaces.

HEDDLE_BUILD names the build directory.
"""

import errno
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/clients"))

from endpoints import Wire, acquaint, finish, start_pings  # noqa: E402

DEVICES = ("soft", "rtl")
SERVER, CLIENT = "10.9.0.1", "10.9.0.2"
PORT = 5000
# One JobID in two spaces, and one kind of two jobs.
SPACES = (("absolute", 11), ("relative", 11), ("relative", 12))
REGION_BYTES = 64


class Addressing(unittest.TestCase):
    def start(self, wire, device, ip, space):
        addressing, job = space
        return wire.start(wire.environment(FI_HEDDLE_DEVICE=device, FI_HEDDLE_IP=ip, FI_HEDDLE_ADDRESSING=addressing,
                                           FI_HEDDLE_JOB_ID=job), port=PORT, arguments=("-r",))

    def pairs(self, wire, device):
        """A server and a client of each space, all servers at one address and port and all clients at another."""
        pairs = [(self.start(wire, device, CLIENT, space), self.start(wire, device, SERVER, space)) for space in SPACES]
        for pair in pairs:
            acquaint(*pair)
        self.assertEqual(len({server.name for _, server in pairs}), 1)
        self.assertEqual(len({client.name for client, _ in pairs}), 1)
        return pairs

    def test_jobs_and_the_address_use_one_place_at_once(self):
        for device in DEVICES:
            with self.subTest(device=device), Wire() as wire:
                pairs = self.pairs(wire, device)
                for pair in pairs:
                    start_pings(pair, 20, 5000)
                for pair in pairs:
                    finish(pair)
                regions = [server.ask("region") for _, server in pairs]
                for value, ((client, _), region) in enumerate(zip(pairs, regions), start=1):
                    self.assertEqual(client.ask("write", 0, *region, value), ["0"])
                for value, ((client, _), region) in enumerate(zip(pairs, regions), start=1):
                    self.assertEqual(client.ask("read", 0, *region), ["0", f"{value:02x}" * REGION_BYTES])
                for pair in pairs:
                    for endpoint in pair:
                        endpoint.close()

    def test_a_port_is_taken_once_in_each_space(self):
        with Wire() as wire:
            for space in SPACES:
                self.start(wire, "soft", SERVER, space).opened()
            for space in SPACES:
                refused = self.start(wire, "soft", SERVER, space)
                self.assertRegex(refused.line(), rf"^error fi_\w+ -{errno.EADDRINUSE} ")

    def test_a_peer_of_another_space_is_refused(self):
        for device in DEVICES:
            for space, other in ((SPACES[0], SPACES[1]), (SPACES[1], SPACES[0]), (SPACES[1], SPACES[2])):
                with self.subTest(device=device, server=space, client=other), Wire() as wire:
                    pair = self.start(wire, device, CLIENT, other), self.start(wire, device, SERVER, space)
                    acquaint(*pair)
                    region = pair[1].ask("region")
                    self.assertEqual(pair[0].ask("write", 0, *region, 1), [str(errno.EREMOTEIO)])
                    for endpoint in pair:
                        endpoint.close()


if __name__ == "__main__":
    unittest.main()
