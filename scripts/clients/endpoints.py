# SPDX-License-Identifier: Apache-2.0
"""Processes with an endpoint each, see tests/clients/endpoint.c. HEDDLE_BUILD names the build directory."""

import contextlib
import os
import pathlib
import select
import statistics
import subprocess

import pingpong

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build")).resolve()
DEADLINE_S = 240  # Many times what anything here takes, on a busy machine too.
REFUSED = 3  # endpoint.c's status when a call of the API fails.


class Endpoint:
    """A process with one endpoint, see endpoint.c."""

    PROGRAM = "tests/clients_endpoint"

    def __init__(self, env, port=None, prefix=(), library=BUILD, arguments=(), **options):
        self.errors = os.fdopen(os.memfd_create("stderr"), "w+")  # No file, not even for a moment.
        command = [*prefix, str(pathlib.Path(library) / self.PROGRAM), *arguments]
        self.process = subprocess.Popen(command + (["-p", str(port)] if port else []), env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, **options)
        self.name = None
        self.pending = ""  # Read, but not yet a requested line.

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()

    @property
    def pid(self):
        return self.process.pid

    def says(self, deadline_s):
        """Whether there is output to read, now or until then, or a line that is already read."""
        if "\n" in self.pending:
            return True
        output = select.poll()  # select() ends at descriptor 1023.
        output.register(self.process.stdout, select.POLLIN)
        return bool(output.poll(deadline_s * 1000))

    def line(self, deadline_s=DEADLINE_S):
        """Its next line, without the end; empty when it has ended."""
        chunk = " "
        while "\n" not in self.pending and chunk:
            if not self.says(deadline_s):
                raise AssertionError(f"process {self.pid} printed nothing for {deadline_s} s")
            chunk = os.read(self.process.stdout.fileno(), 65536).decode()
            self.pending += chunk
        line, _, self.pending = self.pending.partition("\n")
        return line.strip()

    def opened(self):
        words = self.line().split()
        if words[:1] != ["name"]:
            raise AssertionError(f"process {self.pid} did not open: {words} {self.log()}")
        self.name = words[1]
        return self

    def tell(self, *words):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()

    def done(self, deadline_s=DEADLINE_S):
        line = self.line(deadline_s)
        if line != "done":
            raise AssertionError(f"process {self.pid}: {line or 'ended'} {self.log()}")

    def do(self, *words):
        self.tell(*words)
        self.done()

    def ask(self, *words):
        """The words of the line that a command prints, without the first."""
        self.tell(*words)
        _, *answer = self.line().split()
        self.done()
        return answer

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def close(self):
        self.tell("close")
        self.closed()

    def closed(self):
        line = self.line()
        if line != "closed" or self.process.wait(DEADLINE_S) != 0:
            raise AssertionError(f"process {self.pid}: {line or 'ended'} with {self.process.returncode} {self.log()}")

    def log(self):
        self.errors.seek(0)
        return self.errors.read()


class Wire:
    """Processes on a wire of their own; they end with the block."""

    def __init__(self, address="10.9.0.1"):
        self.name = pingpong.wire_name()
        self.address = address
        self.stack = contextlib.ExitStack()
        self.pids = set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def environment(self, **settings):
        return pingpong.environment(BUILD, "drop-in", FI_LOG_LEVEL="warn",
                                    **{"FI_HEDDLE_WIRE": self.name, "FI_HEDDLE_IP": self.address} | settings)

    def start(self, env=None, **options):
        endpoint = self.stack.enter_context(Endpoint(env or self.environment(), **options))
        self.pids.add(endpoint.pid)
        return endpoint

    def start_pair(self):
        pair = self.start(), self.start()
        acquaint(*pair)
        return pair

    def tool(self, *words):
        """Lines that heddle-wire prints; none when the wire is empty."""
        run = subprocess.run([str(BUILD / "bin/heddle-wire"), "-w", self.name, *words], capture_output=True, text=True)
        return run.stdout.splitlines()


def acquaint(pinger, echoer):
    for endpoint in (pinger, echoer):
        if endpoint.name is None:
            endpoint.opened()
    pinger.do("peers", echoer.name)
    echoer.do("peers", pinger.name)


def start_pings(pair, count, size):
    pair[1].tell("echo", count)
    pair[0].tell("ping", 0, count, size)


def finish(endpoints):
    for endpoint in endpoints:
        endpoint.done()


def memory(pid):
    """Resident and proportional memory of a process in MiB."""
    rows = [row.split() for row in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]]
    sizes = {row[0]: int(row[1]) / 1024 for row in rows}
    return sizes["Rss:"], sizes["Pss:"]


def swap(wire, count, size, distances, at_once=16, say=lambda _: None, **settings):
    """Processes in a circle, each of which sends a message to those at the distances.

    At most `at_once` open at the same time. Returns a line about their memory.
    """
    env = wire.environment(**settings)
    endpoints = []
    for number in range(count):
        endpoints.append(wire.start(env))
        if number >= at_once:
            endpoints[number - at_once].opened()
        if (number + 1) % 100 == 0:
            say(f"{number + 1} of {count} processes")
    for endpoint in endpoints[-at_once:]:
        endpoint.opened()
    say("all are open")
    if len(wire.tool("list")) != count:
        raise AssertionError(f"not all {count} are on one wire")
    for number, endpoint in enumerate(endpoints):
        endpoint.do("peers", *(endpoints[(number + distance) % count].name for distance in distances))
    say("all know their peers")
    for number, endpoint in enumerate(endpoints):
        endpoint.tell("swap", number, size)
    finish(endpoints)
    say("all have exchanged their messages")
    sizes = zip(*(memory(endpoint.pid) for endpoint in endpoints))
    resident, proportional = (statistics.median(kind) for kind in sizes)
    for endpoint in endpoints:
        endpoint.tell("close")
    for endpoint in endpoints:
        endpoint.closed()
    return (f"{count} processes, {len(distances)} peers each: median {resident:.1f} MiB resident, "
            f"{proportional:.1f} MiB proportional")
