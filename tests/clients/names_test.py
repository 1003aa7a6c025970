# SPDX-License-Identifier: Apache-2.0
"""Names of this machine on the one-machine wire (ADR 0015): which servers and clients meet.

Each process runs the C program endpoint.c on the library in libfabric's place. HEDDLE_BUILD names the build directory.
"""

import contextlib
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts/clients"), str(ROOT / "tests/clients")]

import pingpong  # noqa: E402
from endpoints import BUILD, REFUSED, Endpoint, acquaint, finish, start_pings  # noqa: E402
from udp_test import Machines  # noqa: E402

PORT = 5000
NO_NODE = ""


def interface_addresses():
    """Addresses of this machine's interfaces that a sockets program can name without a scope."""
    output = subprocess.run(["ip", "-oneline", "address"], check=True, capture_output=True, text=True).stdout
    return [a for a in re.findall(r" inet6? ([0-9a-f.:]+)", output) if not a.startswith("fe80:")]


def is_own(node):
    """Whether a sockets program may bind to `node`, as to names of this machine alone."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(node, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True


def machine_names():
    """Nodes that mean this machine to a sockets program: its host name, where that leads back to it, and others."""
    host = [name for name in [socket.gethostname()] if is_own(name)]
    return list(dict.fromkeys(["localhost", "127.0.0.1", "127.0.1.1", "::1", *host, *interface_addresses()]))


def ip_of(endpoint):
    """The address in the name that fi_getname gave the process."""
    name = bytes.fromhex(endpoint.name)
    family, = struct.unpack_from("=H", name)
    return socket.inet_ntop(family, name[4:8] if family == socket.AF_INET else name[8:24])


class Case(unittest.TestCase):
    def setUp(self):
        self.wire = pingpong.wire_name()
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def start(self, *words, device="soft", form="drop-in", prefix=(), **settings):
        """An endpoint with the options `words` of endpoint.c."""
        env = pingpong.environment(BUILD, form, FI_LOG_LEVEL="warn", FI_HEDDLE_WIRE=self.wire,
                                   FI_HEDDLE_DEVICE=device, **settings)
        return self.stack.enter_context(Endpoint(env, prefix=prefix, arguments=words))

    def serve(self, node=None, **options):
        """A server at PORT; without a node it names no source either."""
        source = [] if node is None else ["-s", node]
        return self.start("-p", str(PORT), *source, **options).opened()

    def connect(self, node, **options):
        """A client whose peer 0 is `node`."""
        return self.start("-n", node, "-q", str(PORT), **options).opened()

    def meet(self, server, clients):
        """Each client exchanges two messages with the server that it named."""
        server.do("peers", *(client.name for client in clients))
        server.tell("echo", 2 * len(clients))
        for number, client in enumerate(clients):
            client.do("ping", 0, 2, 100, number)
        server.done()


class MachineNames(Case):
    def test_every_name_of_the_machine_reaches_a_server_that_was_given_any(self):
        names = machine_names()
        for source in (None, NO_NODE, *names):
            with self.subTest(server=source):
                self.wire = pingpong.wire_name()
                server = self.serve(source)
                clients = [self.connect(node) for node in (NO_NODE, *names)]
                self.meet(server, clients)
                self.assertEqual({ip_of(client) for client in clients}, {ip_of(server)}, "the machine has one address")
                for endpoint in (server, *clients):
                    endpoint.close()

    def test_rtl_and_soft_meet_by_names(self):
        address = interface_addresses()[-1]
        for source, device, node in ((None, "rtl", "localhost"), ("::1", "rtl", address), ("localhost", "soft", "127.0.1.1")):
            with self.subTest(server=source, client=node):
                self.wire = pingpong.wire_name()
                server = self.serve(source, device="rtl")
                client = self.connect(node, device=device)
                self.meet(server, [client])
                for endpoint in (server, client):
                    endpoint.close()

    def test_both_forms_of_deployment_know_the_names(self):
        server = self.serve("localhost", form="plug-in")
        self.meet(server, [self.connect(node, form=form) for form in pingpong.FORMS for node in ("127.0.1.1", "::1")])

    def test_the_setting_may_be_a_name_of_the_machine(self):
        for ip, node in (("127.0.0.1", "localhost"), ("127.0.1.1", "127.0.0.1"), ("127.0.0.1", NO_NODE)):
            with self.subTest(ip=ip, node=node):
                self.wire = pingpong.wire_name()
                server = self.serve(FI_HEDDLE_IP=ip)
                self.meet(server, [self.connect(node), self.connect(node, FI_HEDDLE_IP="127.0.0.1")])
                self.wire = pingpong.wire_name()
                self.meet(self.serve(), [self.connect(node, FI_HEDDLE_IP=ip)])

    def test_a_setting_of_the_other_family_has_names_of_its_own(self):
        server = self.serve(FI_HEDDLE_IP="::1")
        clients = [self.connect(node, FI_HEDDLE_IP="::1") for node in ("::1", "localhost", "127.0.0.1", NO_NODE)]
        self.meet(server, clients)
        self.assertIn(":", ip_of(server))

    def test_services_name_the_machine_too(self):
        server = self.serve()
        client = self.start().opened()
        names = machine_names()
        for node in names:
            client.do("service", node, PORT)
        server.do("peers", client.name)
        server.tell("echo", len(names))
        for number, _ in enumerate(names):
            client.do("ping", number, 1, 100)
        server.done()

    def test_names_of_processes_may_be_exchanged(self):
        """Between functions at the machine's address and others, by fi_getname."""
        endpoints = [self.start(), self.start(FI_HEDDLE_IP="10.99.0.1"), self.start(FI_HEDDLE_IP="10.99.0.2"),
                     self.start(device="rtl"), self.start(FI_HEDDLE_IP="127.0.0.1")]
        names = [endpoint.opened().name for endpoint in endpoints]
        self.assertEqual([ip_of(endpoint) for endpoint in endpoints[1:3]], ["10.99.0.1", "10.99.0.2"])
        self.assertEqual(ip_of(endpoints[4]), ip_of(endpoints[0]))
        for number, endpoint in enumerate(endpoints):
            endpoint.do("peers", *names[:number], *names[number + 1:])
        for number, endpoint in enumerate(endpoints):
            endpoint.tell("swap", number, 100)
        finish(endpoints)

    def test_an_address_of_its_own_is_no_name_of_the_machine(self):
        """A function that FI_HEDDLE_IP puts elsewhere is reached there, and reaches the machine's by name."""
        default = self.serve()
        elsewhere = self.serve(FI_HEDDLE_IP="10.99.0.1")
        self.meet(default, [self.connect("localhost", FI_HEDDLE_IP="10.99.0.1")])
        self.meet(elsewhere, [self.connect("10.99.0.1")])

    def test_a_port_is_one_for_all_names(self):
        self.serve("localhost")
        refused = self.start("-p", str(PORT), FI_HEDDLE_IP="127.0.1.1")
        self.assertRegex(refused.line(), r"^error fi_\w+ -98 ")
        self.assertEqual(refused.process.wait(), REFUSED)


class NamespaceNames(Case):
    """Each network namespace is a machine."""

    def test_names_are_those_of_the_namespace(self):
        with Machines() as machines:
            for ip in (10, 20):  # More than one address of a machine.
                machines.ip(0, "address", "add", f"10.77.0.{ip}/24", "dev", "cable")
            first, second = machines.entries
            server = self.serve("localhost", prefix=first)
            self.assertEqual(ip_of(server), machines.address(0))
            names = ["localhost", "::1", machines.address(0), machines.address(0, ipv6=True), "10.77.0.20"]
            clients = [self.connect(node, prefix=first) for node in names]
            # From the other namespace the machine's address reaches it, and no other name does.
            clients.append(self.connect(machines.address(0), prefix=second))
            self.assertEqual(ip_of(clients[-1]), machines.address(1))
            self.meet(server, clients)
            other = self.serve("localhost", prefix=second)
            self.meet(other, [self.connect("localhost", prefix=second)])

    def test_the_loopback_is_left_where_there_is_no_interface(self):
        root = os.geteuid() == 0
        with subprocess.Popen(["unshare", "-n" if root else "-rn", "sh", "-c", "echo here; exec cat"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            self.assertEqual(holder.stdout.readline(), "here\n")
            enter = ["nsenter", "-t", str(holder.pid), "-n", *([] if root else ["-U", "--preserve-credentials"])]
            server = self.serve(prefix=enter)
            self.assertEqual(ip_of(server), "127.0.0.1")
            self.meet(server, [self.connect(node, prefix=enter) for node in ("localhost", "127.0.1.1", "::1", NO_NODE)])
            self.stack.close()


if __name__ == "__main__":
    unittest.main()
