# SPDX-License-Identifier: Apache-2.0
"""Processes of one machine on one wire: many at once, killed, stopped, strangers.

Each runs the C program endpoint.c on the library in libfabric's place. HEDDLE_BUILD names the build directory.
"""

import contextlib
import os
import pathlib
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/clients"))

import endpoints  # noqa: E402
import pingpong  # noqa: E402
from endpoints import BUILD, DEADLINE_S, REFUSED, Wire, acquaint, finish, start_pings  # noqa: E402

ADDRESS = "10.9.0.1"
NOBODY = 65534


def segments():
    """Creators of the System V segments."""
    return [int(row.split()[4]) for row in pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]


class Processes(unittest.TestCase):
    def setUp(self):
        self.wire = Wire(ADDRESS)
        self.addCleanup(self.wire.stack.close)

    def assert_nothing_left(self):
        """The wire is gone with its last process."""
        self.assertEqual([pid for pid in segments() if pid in self.wire.pids], [])
        self.assertEqual(self.wire.tool("list"), [])

    def swap(self, count, size, distances, **settings):
        print(endpoints.swap(self.wire, count, size, distances, **settings), flush=True)
        self.assert_nothing_left()

    def test_48_processes_started_at_once_all_exchange(self):
        self.swap(48, 5000, (1, 2, 7, 19), at_once=48)

    def test_48_processes_of_soft_exchange_all_to_all(self):
        self.swap(48, 500, range(1, 48), FI_HEDDLE_DEVICE="soft")

    def test_200_processes_of_soft_exchange_with_a_neighbour(self):
        self.swap(200, 5000, (1,), FI_HEDDLE_DEVICE="soft")

    def test_65th_function_at_one_address_is_refused_and_named(self):
        first = [self.wire.start() for _ in range(64)]
        for endpoint in first:
            endpoint.opened()
        refused = self.wire.start()
        self.assertRegex(refused.line(), r"^error fi_(domain|endpoint) -16 ")
        self.assertEqual(refused.process.wait(DEADLINE_S), REFUSED)
        self.assertIn(ADDRESS, refused.log())
        self.wire.start(self.wire.environment(FI_HEDDLE_IP="10.9.0.2")).opened().close()
        first[5].close()
        self.wire.start().opened()  # There is room again.

    def test_others_go_on_when_processes_are_killed_at_random_points(self):
        seed = int(os.environ.get("HEDDLE_TEST_SEED", secrets.randbits(32)))
        print(f"HEDDLE_TEST_SEED={seed}", flush=True)
        rng = random.Random(seed)
        others = [self.wire.start_pair() for _ in range(2)]
        for _ in range(12):
            for pair in others:
                start_pings(pair, 20, rng.choice((1, 100, 4096, 9000)) + 16)
            # From the very first instruction, through opening, to the exchange.
            victims = [self.wire.start(), self.wire.start()]
            until = time.monotonic() + rng.uniform(0, 0.4)
            told = False
            while (left := until - time.monotonic()) > 0:
                if not told and all(v.says(left / 2) for v in victims):
                    acquaint(*victims)
                    start_pings(victims, 100000, 3000)
                    told = True
                elif told:
                    time.sleep(left)  # The random point.
            for victim in rng.sample(victims, rng.choice((1, 2))):
                victim.process.kill()
                victim.process.wait(DEADLINE_S)
            finish(e for pair in others for e in pair)
            for victim in victims:
                victim.process.kill()
                victim.process.wait(DEADLINE_S)
        # Who comes after them gets their places, and is heard.
        late = self.wire.start().opened()
        late.do("peers", others[0][0].name)
        others[0][0].do("peers", late.name)
        late.tell("echo", 5)
        others[0][0].do("ping", 1, 5, 9000)
        late.done()
        self.assertEqual(len(self.wire.tool("list")), 5)
        for endpoint in (late, *(e for pair in others for e in pair)):
            endpoint.process.kill()
            endpoint.process.wait(DEADLINE_S)
        self.assert_nothing_left()

    def test_run_completes_after_a_side_was_stopped_for_10_seconds(self):
        pair = self.wire.start_pair()
        start_pings(pair, 400, 5000)
        # In the middle of it, for as long as was asked for.
        self.assertFalse(pair[0].says(0.05))
        pair[1].process.send_signal(signal.SIGSTOP)
        self.assertFalse(pair[0].says(10), "it cannot go on alone")
        pair[1].process.send_signal(signal.SIGCONT)
        finish(pair)
        for endpoint in pair:
            endpoint.close()

    def test_run_completes_after_a_link_was_down(self):
        pair = self.wire.start_pair()
        start_pings(pair, 400, 5000)
        self.assertFalse(pair[0].says(0.05))
        for direction in ("down", "up"):
            self.wire.tool(direction, ADDRESS)
            states = [line.split()[-1] for line in self.wire.tool("list")]
            self.assertEqual(states, [direction] * 2)
            if direction == "down":
                self.assertFalse(pair[0].says(0.5))
        finish(pair)

    def test_another_network_namespace_is_another_wire(self):
        root = os.geteuid() == 0
        unshare = ["unshare", "-n"] if root else ["unshare", "-rn"]
        probe = subprocess.run([*unshare, "true"], capture_output=True, text=True)
        if probe.returncode:
            self.skipTest(f"no network namespaces here: {probe.stderr.strip()}")
        env = self.wire.environment()
        del env["FI_HEDDLE_WIRE"]
        port = 7000
        first = self.wire.start(env, port=port, prefix=unshare).opened()
        # The same address and port are free on the other wire ...
        second = self.wire.start(env, port=port, prefix=unshare).opened()
        # ... and taken on the first.
        enter = ["nsenter", "-t", str(first.pid), "-n"] + ([] if root else ["-U", "--preserve-credentials"])
        third = self.wire.start(env, port=port, prefix=enter)
        self.assertRegex(third.line(), r"^error fi_\w+ -98 ")
        # Whoever knows the name of a neighbour's wire may use it: names are for that.
        # (The JobID comes from the user id, which is another one in a user namespace.)
        shared = dict(env, FI_HEDDLE_WIRE=self.wire.name, FI_HEDDLE_JOB_ID="77")
        pair = self.wire.start(shared).opened(), self.wire.start(shared, prefix=unshare).opened()
        acquaint(*pair)
        start_pings(pair, 3, 100)
        finish(pair)
        for endpoint in (first, second, *pair):
            endpoint.close()

    @contextlib.contextmanager
    def copy_for_nobody(self):
        """The build's libraries and program where another user can read them."""
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            copy.chmod(0o755)
            shutil.copytree(BUILD / "lib", copy / "lib", symlinks=True)
            (copy / "tests").mkdir()
            shutil.copy(BUILD / "tests/clients_endpoint", copy / "tests")
            yield copy

    def test_works_as_a_plain_user_apart_from_other_users(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to act as two users")
        with self.copy_for_nobody() as copy:
            env = pingpong.environment(copy, "drop-in", FI_HEDDLE_WIRE=self.wire.name, FI_HEDDLE_IP=ADDRESS,
                                       HOME="/nonexistent")
            as_nobody = {"library": copy, "user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
            port = 7000
            # The same name, address and port: they would collide on one wire.
            mine = self.wire.start(port=port).opened()
            theirs = self.wire.start(env, port=port, **as_nobody).opened()
            partners = self.wire.start(), self.wire.start(env, **as_nobody)
            for pair in zip((mine, theirs), partners):
                acquaint(*pair)
                start_pings(pair, 20, 5000)
                finish(pair)
            for endpoint in (mine, theirs, *partners):
                endpoint.close()
        self.assert_nothing_left()

    def test_writes_nothing_and_leaves_nothing(self):
        """In an overlay of the whole file system, which keeps what is written, and with IPC objects of its own."""
        if os.geteuid() != 0:
            self.skipTest("needs root to mount an overlay")
        with tempfile.TemporaryDirectory() as folder:
            script = f"""
                set -e
                cd {folder}
                mount -t tmpfs none .
                cd {folder}
                mkdir upper work root home
                mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
                for d in /proc /dev; do mount --rbind $d root$d; done
                mount -t tmpfs none root/dev/shm
                for d in '{BUILD}' '{ROOT}'; do
                  test -d root$d || {{ mkdir -p root$d; mount --bind $d root$d; }}
                done
                # With their contents: a file that is touched is a file that is written.
                list() {{ find upper root/dev/shm -printf '%p %y %s %T@\\n'; cat /proc/sysvipc/???; }}
                list >before
                HEDDLE_BUILD={BUILD} HOME=/nonexistent TMPDIR= chroot root \\
                  {sys.executable} -B {pathlib.Path(__file__).resolve()} inside
                list >after
                diff before after
            """
            run = subprocess.run(["unshare", "-m", "-i", "sh", "-c", script], capture_output=True, text=True,
                                 env={k: v for k, v in os.environ.items() if k != "TMPDIR"})
            if re.search(r"unshare failed|mount: .*(permission denied|wrong fs type)", run.stderr):
                self.skipTest(f"no overlay here: {run.stderr.strip()}")
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


def inside():
    """What test_writes_nothing_and_leaves_nothing runs in its sealed file system."""
    with Wire(ADDRESS) as wire:
        pair = wire.start_pair()
        start_pings(pair, 20, 9000)
        finish(pair)
        pair[0].close()
        pair[1].process.kill()
        pair[1].process.wait(DEADLINE_S)


if __name__ == "__main__":
    if sys.argv[1:] == ["inside"]:
        inside()
    else:
        unittest.main()
