# SPDX-License-Identifier: Apache-2.0
"""Clients that use one port, one after the other, with one server. HEDDLE_BUILD names the build directory."""

import contextlib
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/clients"))

import pingpong  # noqa: E402
from endpoints import BUILD, Endpoint, Wire  # noqa: E402

SERVER, CLIENT = 7120, 7121
# Messages and bytes of each.
EXCHANGES = ((1, 100), (3, 20480), (20, 5000))


class Successors(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    @staticmethod
    def exchange(server, client, number):
        count, size = EXCHANGES[number % len(EXCHANGES)]
        first, other = (client, server) if number % 2 == 0 else (server, client)
        other.tell("echo", count)
        first.do("ping", 0, count, size)
        other.done()

    def succeed(self, count, environments, arguments=()):
        """Half of the clients are new domains of one process, half are processes.

        Each closes when it has received or sent the last answer. The server may still lack its acknowledgement.
        """
        def start(side):
            port = (SERVER, CLIENT)[side]
            return self.stack.enter_context(Endpoint(environments[side], port=port, arguments=arguments)).opened()

        server = start(0)
        client = start(1)
        server.do("peers", client.name)
        client.do("peers", server.name)
        for number in range(count // 2):
            if number > 0:
                self.assertEqual(client.ask("reopen"), [client.name])
            self.exchange(server, client, number)
        client.close()
        for number in range(count // 2, count):
            late = start(1)
            self.assertEqual(late.name, client.name)
            late.do("peers", server.name)
            self.exchange(server, late, number)
            late.close()
        server.close()
        self.assertEqual(server.log(), "")

    def on_one_machine(self, count, device, arguments=()):
        wire = self.stack.enter_context(Wire())
        self.succeed(count, [wire.environment(FI_HEDDLE_DEVICE=device)] * 2, arguments)

    def test_200_clients_of_soft(self):
        self.on_one_machine(200, "soft")

    def test_200_clients_of_soft_with_delivery_complete(self):
        self.on_one_machine(200, "soft", ["-d"])

    def test_10_clients_of_rtl(self):
        self.on_one_machine(10, "rtl")

    def test_10_clients_of_rtl_with_delivery_complete(self):
        self.on_one_machine(10, "rtl", ["-d"])

    def test_40_clients_over_udp(self):
        for arguments in ((), ("-d",)):
            with self.subTest(arguments=arguments):
                self.succeed(20, [pingpong.environment(BUILD, "drop-in", FI_LOG_LEVEL="warn", FI_HEDDLE_DEVICE="soft",
                                                       FI_HEDDLE_WIRE="udp", FI_HEDDLE_IP=address)
                                  for address in ("127.0.0.31", "127.0.0.32")], arguments)


if __name__ == "__main__":
    unittest.main()
