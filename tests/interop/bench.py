# SPDX-License-Identifier: Apache-2.0
"""A device, in a process with an endpoint, and the independent peer. HEDDLE_BUILD names the build directory."""

import pathlib
import random
import select
import selectors
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts/clients")]

import pingpong  # noqa: E402
import seed  # noqa: E402
from endpoints import BUILD, Endpoint  # noqa: E402
from places import destination, endpoint_name  # noqa: E402
from uet.peer import Peer  # noqa: E402
from uet.ses import Code  # noqa: E402
from uet.wires import Faults  # noqa: E402

JOB_ID = 77
PAYLOAD_MTU = 1024
IN_FLIGHT = 8
HEADER = struct.Struct("<IIII")  # Sender, number, bytes, reply to: see tests/clients/messages.h.
REGION_BYTES = 1 << 18
PIPE_BYTES = 4096  # Less than the commands of a test: they always have to wait for the process.

BASE = bytes(at * 31 + (at >> 8) & 0xFF for at in range(REGION_BYTES))
SHIFTS = [bytes(value + shift & 0xFF for value in range(256)) for shift in range(256)]


def pattern(length, shift=0, at=0):
    return BASE[at:at + length].translate(SHIFTS[shift & 0xFF])


def message(number, length):
    """What endpoint.c sends, and expects, as number `number`."""
    header = HEADER.pack(0, number, length, 0)
    return header + pattern(length - len(header), number * 13, len(header))


class Bench:
    """A process with an endpoint of a device at a place (places.py), and a peer."""

    def __init__(self, stack, place, options, ordered, loss, messages, **more):
        self.messages = messages
        self.random = random.Random(seed.of_this_run())
        self.ordered = ordered
        faults = Faults(random.Random(self.random.getrandbits(64)), loss=loss)
        self.wire = place.open(stack, faults)
        self.peer = self.wire.peer = Peer(options, self.wire, self.wire.clock, self.random)
        self.received = []
        self.peer.target.on_receive = self.received.append
        settings = place.settings | {"JOB_ID": JOB_ID, "PAYLOAD_MTU": PAYLOAD_MTU} | more
        env = pingpong.environment(BUILD, "drop-in", FI_LOG_LEVEL="warn",
                                   **{f"FI_HEDDLE_{name}": value for name, value in settings.items()})
        self.process = stack.enter_context(Program(env, arguments=() if ordered else ("-u",),
                                                   pipesize=PIPE_BYTES))
        self.heddle = destination(self.process.opened().name)
        self.tell("peers", endpoint_name(*self.wire.address))
        self.expect("done")

    def tell(self, *words):
        """A command to the process, which may have to end operations with the peer before it reads more."""
        process = self.process
        self.wire.run_until_ready(process.process.stdin, selectors.EVENT_WRITE, process.has_room)
        process.tell(*words)

    def expect(self, first):
        """The line that the process prints next, without its first word."""
        process = self.process
        self.wire.run_until_ready(process.process.stdout, selectors.EVENT_READ, lambda: process.says(0))
        line = process.line()
        word, *rest = line.split() or ("ended",)
        if word != first:
            raise AssertionError(f"{word} {rest} {process.log()} {self.peer.counts}")
        return rest

    def size(self, least=0):
        edges = [size for size in (0, 1, 16, 17, 1023, 1024, 1025) if size >= least]
        return self.random.choice((*edges, self.random.randrange(least, 16000)))

    def run(self, start, on_end=lambda _: None, count=None, at_once=IN_FLIGHT):
        """Starts the operations of the peer, `at_once` at a time; returns them in order."""
        operations, open_now = [], set()
        count = self.messages if count is None else count

        def begin():
            while len(operations) < count and len(open_now) < at_once:
                operation = start(len(operations))
                operations.append(operation)
                open_now.add(id(operation))
                operation.on_end = end

        def end(operation):
            if operation.code != Code.OK:
                raise AssertionError(f"operation {operation.message_id}: {operation.code} {self.peer.counts}")
            open_now.discard(id(operation))
            on_end(operation)

        begin()
        while open_now:
            before = len(open_now)
            self.wire.run(lambda: len(open_now) < before)
            begin()
        return operations

    def close(self):
        """Each side closes the PDCs that it initiated: the peer while the device still answers, and the device, whose
        process ends and repeats little, without loss and when its reads' data are acknowledged."""
        self.peer.close()
        self.wire.run(lambda: all(pdc.tx.idle and not pdc.initiates for pdc in self.peer.pdcs.values()))
        self.wire.faults.loss = 0.0
        self.tell("close")
        self.expect("closed")
        self.wire.run(lambda: not self.peer.pdcs)


class Program(Endpoint):
    """tests/interop/endpoint.c."""
    PROGRAM = "tests/interop_endpoint"

    def has_room(self):
        """Whether it can be sent a command without waiting."""
        commands = select.poll()
        commands.register(self.process.stdin, select.POLLOUT)
        return bool(commands.poll(0))
