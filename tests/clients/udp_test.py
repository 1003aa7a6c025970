# SPDX-License-Identifier: Apache-2.0
"""The soft device over UDP: on one machine, and between two network namespaces as between two machines.

HEDDLE_BUILD names the build directory.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/clients"))

import pingpong  # noqa: E402
from endpoints import BUILD, DEADLINE_S, REFUSED, Endpoint, acquaint, finish, start_pings  # noqa: E402

JOB_ID = 77  # Of its own: the default comes from the user id, which may be mapped.
DEAD_S = 4


class Machines:
    """Two network namespaces, joined by a cable. They end with the block."""

    def __init__(self, mtu=1500):
        self.stack = contextlib.ExitStack()
        root = os.geteuid() == 0
        self.user = [] if root else ["-U", "--preserve-credentials"]
        try:
            first = self.hold(["unshare", "-n" if root else "-rn"])
            self.entries = [["nsenter", "-t", str(first), "-n", *self.user]]
            # Within the first one's user namespace, which may then join them.
            second = self.hold([*self.entries[0], "unshare", "-n"])
            self.entries.append(["nsenter", "-t", str(second), "-n", *self.user])
            self.ip(0, "link", "add", "cable", "mtu", str(mtu), "type", "veth", "peer", "name", "cable", "mtu", str(mtu),
                    "netns", str(second))
            for side in (0, 1):
                self.ip(side, "link", "set", "lo", "up")
                self.ip(side, "address", "add", f"{self.address(side)}/24", "dev", "cable")
                self.ip(side, "address", "add", f"{self.address(side, ipv6=True)}/64", "dev", "cable", "nodad")
                self.ip(side, "link", "set", "cable", "up")
        except BaseException:
            self.stack.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def hold(self, prefix):
        """A process that keeps its namespaces: its pid. It echoes a line when it is there."""
        process = self.stack.enter_context(subprocess.Popen([*prefix, "cat"], stdin=subprocess.PIPE,
                                                            stdout=subprocess.PIPE, text=True))
        self.stack.callback(process.kill)
        process.stdin.write("here\n")
        process.stdin.flush()
        if process.stdout.readline() != "here\n":
            raise AssertionError(f"no namespace: {' '.join(prefix)}")
        return process.pid

    def ip(self, side, *words):
        subprocess.run([*self.entries[side], "ip", *words], check=True)

    @staticmethod
    def address(side, ipv6=False):
        return f"fd66::{side + 1}" if ipv6 else f"10.66.0.{side + 1}"


def environment(address, form="drop-in", **settings):
    return pingpong.environment(BUILD, form, FI_LOG_LEVEL="warn", **{
        "FI_HEDDLE_DEVICE": "soft", "FI_HEDDLE_WIRE": "udp", "FI_HEDDLE_IP": address,
        "FI_HEDDLE_JOB_ID": JOB_ID} | settings)


class Case(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def start(self, env, prefix=(), port=None):
        return self.stack.enter_context(Endpoint(env, prefix=prefix, port=port))

    def statistics_file(self):
        return pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()), "statistics")


class OneMachine(Case):
    def exchange(self, size, form="drop-in", address="127.0.0.1", **settings):
        """Server and client; the sums of their statistics."""
        logs = BUILD / "reports/clients" / self.id().split(".", 1)[1]
        files = [self.statistics_file() for _ in range(2)]
        sides = [{"FI_HEDDLE_STATISTICS": str(file)} for file in files]
        pingpong.Pingpong(env=environment(address, form, **settings), logs=logs, size=size, deadline_s=240,
                          server_env=sides[0], client_env=sides[1]).run()
        return pingpong.statistics(*files)

    def test_fi_pingpong_default_sizes_arrive_intact(self):
        for form in pingpong.FORMS:
            for address in ("127.0.0.1", "::1"):
                with self.subTest(form=form, address=address):
                    self.exchange(None, form, address)

    def test_fi_pingpong_arrives_intact_on_a_bad_wire(self):
        faults = {"LOSS": "0.01", "DUPLICATE": "0.01", "REORDER": "0.01", "CORRUPT": "0.005", "BAD_FCS": "0.005",
                  "ECN": "0.1", "RX_LOSS": "0.01", "RX_DELAY_NS": "20000", "RX_JITTER_NS": "20000"}
        totals = self.exchange(1048576, **{f"FI_HEDDLE_{name}": value for name, value in faults.items()})
        for name in ("faults_lost", "rx_faults_lost", "drop_crc", "rx_ecn_marked", "tx_retransmissions"):
            self.assertGreater(totals[name], 0, name)

    def test_fi_pingpong_arrives_intact_through_a_bottleneck(self):
        totals = self.exchange(1048576, FI_HEDDLE_RATE_GBPS="1", FI_HEDDLE_QUEUE_BYTES="32768",
                               FI_HEDDLE_ECN_BYTES="16384", FI_HEDDLE_DELAY_NS="100000")
        for name in ("faults_overflowed", "faults_marked", "rx_ecn_marked", "tx_retransmissions"):
            self.assertGreater(totals[name], 0, name)

    def test_one_port_for_everything(self):
        port = {"FI_HEDDLE_UDP_PORT": "4793"}
        pair = [self.start(environment(address, **port)) for address in ("127.0.0.21", "127.0.0.22")]
        acquaint(*pair)
        refused = self.start(environment("127.0.0.21", **port))
        self.assertRegex(refused.line(), r"^error fi_(domain|endpoint) -98 ")
        self.assertEqual(refused.process.wait(DEADLINE_S), REFUSED)
        self.assertIn("4793", refused.log())
        start_pings(pair, 50, 9000)
        finish(pair)
        for endpoint in pair:
            endpoint.close()

    def test_a_port_that_is_taken_is_refused(self):
        env = environment("127.0.0.1")
        first = self.start(env, port=7013).opened()
        second = self.start(env, port=7013)
        self.assertRegex(second.line(), r"^error fi_\w+ -98 ")
        self.assertIn("7013 is in use by an unknown process", second.log())
        first.close()
        self.start(env, port=7013).opened().close()

    def test_the_device_rtl_has_no_udp(self):
        refused = self.start(environment("127.0.0.1", FI_HEDDLE_DEVICE="rtl"))
        self.assertRegex(refused.line(), r"^error fi_domain -22 ")
        self.assertIn("use the device soft", refused.log())

    def test_the_tag_is_the_hosts(self):
        refused = self.start(environment("127.0.0.1", FI_HEDDLE_VLAN=5))
        self.assertRegex(refused.line(), r"^error fi_domain -22 ")
        self.assertIn("use an address of a VLAN interface", refused.log())


class TwoMachines(Case):
    """Processes 0 and 1 on one machine, 2 and 3 on the other."""

    def start_four(self, machines, ipv6=False, **settings):
        self.files = [self.statistics_file() for _ in range(4)]
        endpoints = []
        for number, file in enumerate(self.files):
            env = environment(machines.address(number // 2, ipv6), FI_HEDDLE_STATISTICS=file, **settings)
            endpoints.append(self.start(env, prefix=machines.entries[number // 2]))
        names = [endpoint.opened().name for endpoint in endpoints]
        for endpoint in endpoints:
            endpoint.do("peers", *names)
        return endpoints

    @staticmethod
    def mesh(endpoints, count, size, pause=()):
        for number, endpoint in enumerate(endpoints):
            others = (2, 3) if number < 2 else (0, 1)
            endpoint.tell("mesh", number, count, size, int(number in pause), *others)

    def test_all_four_pairs_at_once(self):
        for mtu, ipv6, payload in ((1500, False, 1024), (9000, True, 8192)):
            with self.subTest(mtu=mtu, ipv6=ipv6), Machines(mtu) as machines:
                endpoints = self.start_four(machines, ipv6)
                self.mesh(endpoints, 300, 16000)
                finish(endpoints)
                for endpoint in endpoints:
                    endpoint.close()
                totals = pingpong.statistics(*self.files)
                self.assertGreaterEqual(totals["tx_requests"], 4 * 2 * 300 * -(-16000 // payload))
                for name in ("udp_too_big", "udp_lost", "udp_no_port", "drop_crc", "drop_truncated"):
                    self.assertEqual(totals[name], 0, name)

    def test_others_go_on_when_one_is_killed(self):
        with Machines() as machines:
            endpoints = self.start_four(machines, FI_HEDDLE_DEAD_NS=DEAD_S * 10**9)
            # Both have messages left to send to the one that goes.
            self.mesh(endpoints, 600, 5000, pause=(0, 1))
            for survivor in endpoints[:2]:
                self.assertEqual(survivor.line(), "half")
            endpoints[3].process.kill()
            endpoints[3].process.wait(DEADLINE_S)
            for survivor in endpoints[:2]:
                survivor.tell("on")
            for survivor in endpoints[:2]:
                self.assertRegex(survivor.line(), r"^lost 3 \d+$")
                survivor.done()
            endpoints[2].done()
            # Who comes in its place is another one, and is heard.
            late = self.start(environment(machines.address(1)), prefix=machines.entries[1]).opened()
            late.do("peers", endpoints[0].name)
            endpoints[0].do("peers", late.name)
            late.tell("echo", 20)
            endpoints[0].do("ping", 4, 20, 5000)
            late.done()
            for endpoint in (*endpoints[:3], late):
                endpoint.close()
            # The kernel said that the port is gone. That was no proof.
            self.assertGreater(pingpong.statistics(*self.files[:2])["udp_refused"], 0)

    def test_a_payload_mtu_that_does_not_fit_is_refused_with_the_cure(self):
        with Machines() as machines:
            refused = self.start(environment(machines.address(0), FI_HEDDLE_PAYLOAD_MTU=4096),
                                 prefix=machines.entries[0])
            self.assertRegex(refused.line(), r"^error fi_domain -\d+ ")
            self.assertRegex(refused.log(), "interface cable has 1500.*FI_HEDDLE_PAYLOAD_MTU to 1024")


if __name__ == "__main__":
    unittest.main()
