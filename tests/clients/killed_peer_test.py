# SPDX-License-Identifier: Apache-2.0
"""Kills a process under traffic in both directions, and starts a successor at its address.

HEDDLE_BUILD names the build directory.
"""

import collections
import contextlib
import errno
import json
import os
import pathlib
import random
import secrets
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/clients"))

import pingpong  # noqa: E402
from endpoints import BUILD, DEADLINE_S, Endpoint, Wire  # noqa: E402

PORTS = (7140, 7141)
# The survivor's outstanding operations end within 96 times FI_HEDDLE_RTO_NS of the successor's opening. A timer that
# doubles from 1 to 32 of these units expires 7 times in that time: 1 + 2 + 4 + 8 + 16 + 32 + 32 = 95. Expirations
# are counted rather than time, which passes on a busy machine while no process runs. An initiator has up to two PDCs
# here.
EXPIRATIONS = 2 * 7


def is_send(number):
    """Whether stream.c sends that operation; the others are writes."""
    return number % 4 != 1


def numbers(ranges):
    return {number for first, last in ranges for number in range(first, last + 1)}


class Side:
    """One of the two addresses, and the process that is there."""

    def __init__(self, start):
        self.start = start
        self.region = self.former_region = None

    def begin(self):
        self.endpoint = self.start().opened()
        self.former_region, self.region = self.region, self.endpoint.ask("region")
        return self.endpoint

    def state(self):
        """The stream's record of its operations."""
        self.endpoint.tell("state")
        line = self.endpoint.line()
        try:
            state = json.loads(line)
        except ValueError:
            raise AssertionError(f"process {self.endpoint.pid}: {line or 'ended'} {self.endpoint.log()}") from None
        state["completed"] = numbers(state["completed"])
        state["received"] = {int(sender): numbers(ranges) for sender, ranges in state["received"].items()}
        return state

    def wait(self, condition):
        """The first state that satisfies the condition. The limit detects a hang."""
        end = time.monotonic() + DEADLINE_S
        while not condition(state := self.state()):
            if time.monotonic() > end:
                raise AssertionError(f"process {self.endpoint.pid} makes no progress: {state} {self.endpoint.log()}")
        return state


class KilledPeer(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        seed = int(os.environ.get("HEDDLE_TEST_SEED", secrets.randbits(32)))
        print(f"HEDDLE_TEST_SEED={seed}", flush=True)
        self.rng = random.Random(seed)
        self.streams = 0
        self.failures = collections.Counter()
        self.most_expirations = 0

    def stream(self, side, peer, size):
        self.streams += 1
        side.number = self.streams
        side.endpoint.tell("stream", side.number, size, 0, *peer.region)

    @staticmethod
    def meet(side, peer):
        side.endpoint.do("peers", peer.endpoint.name)

    def kill_and_restart(self, survivor, victim, size, pause_s):
        for side, peer in ((survivor, victim), (victim, survivor)):
            self.stream(side, peer, size)
        for side, peer in ((survivor, victim), (victim, survivor)):
            side.wait(lambda state, peer=peer: state["received"].get(peer.number))
        time.sleep(pause_s)  # The random point.
        victim.endpoint.kill()
        alone = survivor.state()
        victim.begin()
        self.meet(victim, survivor)
        together = survivor.state()
        self.stream(victim, survivor, size)
        # At times it posts more, with PDCs and a key that the successor does not know.
        more = self.rng.choice((0, 30))
        survivor.wait(lambda state: state["posted"] >= together["posted"] + more)
        survivor.endpoint.tell("drain")
        self.assertEqual(survivor.endpoint.line(), "drained")
        ended = survivor.state()
        self.check_survivor(alone, together, ended)
        survivor.wait(lambda state: len(state["received"].get(victim.number, ())) >= 20)
        victim.endpoint.tell("drain")
        self.assertEqual(victim.endpoint.line(), "drained")
        self.check_successor(survivor, victim, alone, together, ended)
        for side in (survivor, victim):
            side.endpoint.do("end")

    def check_survivor(self, alone, together, ended):
        expirations = ended["timeouts"] - together["timeouts"]
        self.most_expirations = max(self.most_expirations, expirations)
        self.assertLessEqual(expirations, EXPIRATIONS)
        failed = {number for number, _ in ended["failed"]}
        self.assertEqual(failed | ended["completed"], set(range(ended["posted"])))
        self.assertFalse(failed & ended["completed"])
        self.failures.update(("send" if is_send(number) else "write", errno.errorcode.get(error, error))
                             for number, error in ended["failed"])
        for number, error in ended["failed"]:
            # None is answered before the successor has a receive context.
            self.assertNotEqual(error, errno.EREMOTEIO, number)
            # Writes go on with the key of the former region.
            if number >= together["posted"]:
                self.assertEqual(error, errno.EKEYREJECTED)
        for number in range(together["posted"], ended["posted"]):
            self.assertEqual(number in failed, not is_send(number), number)

    def check_successor(self, survivor, successor, alone, together, ended):
        sends = {number for number in range(ended["posted"]) if is_send(number)}
        late = {number for number in sends if number >= together["posted"]}
        state = successor.wait(lambda state: late <= state["received"].get(survivor.number, set()))
        got = state["received"].get(survivor.number, set())
        self.assertFalse(got & alone["completed"], "completed before the successor started, and delivered to it")
        self.assertLessEqual(got, sends)
        self.assertEqual(state["failed"], [])
        sent = {number for number in state["completed"] if is_send(number)}
        survivor.wait(lambda state: sent <= state["received"].get(successor.number, set()))

    def fresh_exchange(self, survivor, successor):
        for first, other in ((survivor, successor), (successor, survivor)):
            other.endpoint.tell("echo", 5)
            first.endpoint.do("ping", 0, 5, 9000)
            other.endpoint.done()
        rejected = survivor.endpoint.ask("write", 0, *successor.former_region)
        self.assertEqual(rejected, [str(errno.EKEYREJECTED)], "a region of the former process")
        for side, peer in ((survivor, successor), (successor, survivor)):
            self.assertEqual(side.endpoint.ask("write", 0, *peer.region), ["0"])

    def kill(self, count, environments, size=9000):
        sides = []
        for env, port in zip(environments, PORTS):
            sides.append(Side(lambda env=env, port=port: self.stack.enter_context(
                Endpoint(env, port=port, arguments=["-r"]))))
            sides[-1].begin()
        self.meet(*sides)
        self.meet(*reversed(sides))
        # Both equally often, in random order.
        victims = [number % 2 for number in range(count)]
        self.rng.shuffle(victims)
        for number in victims:
            victim, survivor = sides[number], sides[1 - number]
            self.kill_and_restart(survivor, victim, size, self.rng.uniform(0, 0.1))
            self.fresh_exchange(survivor, victim)
        for side in sides:
            side.endpoint.close()
        print(f"at most {self.most_expirations} expirations after a restart; failed: {dict(self.failures)}", flush=True)

    def test_50_kills_on_one_machine(self):
        wire = self.stack.enter_context(Wire())
        self.kill(50, [wire.environment(FI_HEDDLE_DEVICE="soft")] * 2)

    def test_50_kills_over_udp(self):
        self.kill(50, [pingpong.environment(BUILD, "drop-in", FI_LOG_LEVEL="warn", FI_HEDDLE_DEVICE="soft",
                                            FI_HEDDLE_WIRE="udp", FI_HEDDLE_IP=address)
                       for address in ("127.0.0.41", "127.0.0.42")])

    def test_5_kills_of_rtl(self):
        wire = self.stack.enter_context(Wire())
        self.kill(5, [wire.environment(FI_HEDDLE_DEVICE="rtl")] * 2, size=3000)


if __name__ == "__main__":
    unittest.main()
