# SPDX-License-Identifier: Apache-2.0
"""Runs stock libfabric programs on Heddle in either form of deployment."""

import dataclasses
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import time

DEFAULT_SIZES = (64, 256, 1024, 4096, 65536, 1048576)
ALL_SIZES = 46  # fi_pingpong -S all: 0 bytes to 6 MiB.
ITERATIONS = 10  # fi_pingpong's default.
FORMS = ("plug-in", "drop-in")


class Failure(Exception):
    """A program failed, or did not do what it should in time."""


def environment(build, form, **settings):
    """Variables for a stock program that shall use the Heddle of `build`.

    Settings of the caller's shell for libfabric do not leak in.
    """
    build = pathlib.Path(build).resolve()
    env = {k: v for k, v in os.environ.items() if not k.startswith("FI_")}
    env["FI_HEDDLE_DEVICE"] = "rtl"
    if form == "plug-in":
        env["FI_PROVIDER_PATH"] = str(build / "lib/libfabric")
        env["FI_PROVIDER"] = "heddle"
    elif form == "drop-in":
        env["LD_LIBRARY_PATH"] = str(build / "lib/heddle/drop-in")
    else:
        raise ValueError(form)
    return env | {k: str(v) for k, v in settings.items()}


def wire_name():
    """A wire that no other test is on."""
    return f"test-{os.getpid()}-{secrets.token_hex(4)}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port):
    """Whether some process listens on TCP `port`. Does not connect: fi_pingpong
    serves the first connection and no other."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as rows:
                fields = [row.split() for row in rows.readlines()[1:]]
        except FileNotFoundError:
            continue
        if any(f[1].endswith(f":{port:04X}") and f[3] == "0A" for f in fields):
            return True
    return False


def stop(process):
    """Ends a child, politely first, and reaps it."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(sign)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            continue


@dataclasses.dataclass
class Pingpong:
    """One fi_pingpong server and client.

    `env` is for both, `server_env` and `client_env` add to it. Logs are written
    to `logs` and removed by `run` when it succeeds.
    """

    env: dict
    logs: pathlib.Path
    size: int | str | None = None  # None: the default sizes; or "all".
    deadline_s: float = 240
    program: str = "fi_pingpong"
    prefix: tuple = ()  # Words before the program.
    client_output: int | None = None  # File descriptor instead of the log.
    server_env: dict = dataclasses.field(default_factory=dict)
    client_env: dict = dataclasses.field(default_factory=dict)

    def run(self):
        """Rows of the client's table, as lists of words. Raises Failure."""
        self.logs.mkdir(parents=True, exist_ok=True)
        end = time.monotonic() + self.deadline_s
        server, port = self.start_server(end)
        client = None
        try:
            client = self.start("client", ["-P", str(port), "127.0.0.1"], self.client_env)
            self.wait_for_both(server, client, end)
        finally:
            for process in filter(None, (client, server)):
                stop(process)
        rows = [] if self.client_output is not None else self.check_rows("client")
        self.check_rows("server")
        for name in ("server", "client"):
            (self.logs / f"{name}.log").unlink(missing_ok=True)
        return rows

    def start(self, name, arguments, env):
        size = [] if self.size is None else ["-S", str(self.size)]
        with (self.logs / f"{name}.log").open("w") as log:
            command = [*self.prefix, self.program, "-e", "rdm", "-c", *size, *arguments]
            return subprocess.Popen(command, env=self.env | env,
                                    stdin=subprocess.DEVNULL, stderr=log,
                                    stdout=self.client_output if name == "client" and self.client_output else log)

    def start_server(self, end):
        """A server that listens, and its port; another port when one is taken."""
        for _ in range(5):
            port = free_port()
            server = self.start("server", ["-B", str(port)], self.server_env)
            while server.poll() is None and time.monotonic() < end:
                if is_listening(port):
                    return server, port
                time.sleep(0.01)
            if server.poll() is None:
                stop(server)
                raise self.failure(f"server did not listen within {self.deadline_s} s")
            if "already in use" not in self.text("server"):
                raise self.failure(f"server ended with {server.returncode} before it listened")
        raise self.failure("found no free control port")

    def wait_for_both(self, server, client, end):
        """Returns when both have ended with 0. One that fails ends the wait."""
        while time.monotonic() < end:
            codes = {"client": client.poll(), "server": server.poll()}
            failed = {name: code for name, code in codes.items() if code}
            if failed:
                raise self.failure(", ".join(f"{name} ended with {code}" for name, code in failed.items()))
            if all(code == 0 for code in codes.values()):
                return
            time.sleep(0.02)
        alive = [name for name, process in (("client", client), ("server", server)) if process.poll() is None]
        raise self.failure(f"{' and '.join(alive)} still running after {self.deadline_s} s")

    def check_rows(self, name):
        rows = [line.split() for line in self.text(name).splitlines()]
        # Large numbers leave no space before the last but one column.
        rows = [row for row in rows if len(row) in (7, 8) and row[2].startswith("=")]
        expected = {None: len(DEFAULT_SIZES), "all": ALL_SIZES}.get(self.size, 1)
        if len(rows) != expected:
            raise self.failure(f"{name} printed {len(rows)} of {expected} results")
        bad = [row for row in rows if row[1:3] != [str(ITERATIONS), f"={ITERATIONS}"]]
        if bad:
            raise self.failure(f"{name}: not every message was acknowledged: {' '.join(bad[0])}")
        return rows

    def text(self, name):
        path = self.logs / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def failure(self, what):
        tails = [f"--- {n} ({self.logs}/{n}.log)\n" + "\n".join(self.text(n).splitlines()[-30:])
                 for n in ("server", "client")]
        return Failure("\n".join([what, *tails]))


def fi_info(env, *arguments, deadline_s=30):
    """Output of fi_info, which must succeed. Raises Failure."""
    try:
        run = subprocess.run(["fi_info", *arguments], env=env, capture_output=True, text=True, timeout=deadline_s)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"fi_info still running after {deadline_s} s") from error
    if run.returncode:
        raise Failure(f"fi_info {' '.join(arguments)} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
    return run.stdout


def providers(output):
    """Provider names in the output of fi_info."""
    return [line.split(":", 1)[1].strip() for line in output.splitlines() if line.startswith("provider:")]


def statistics(*paths):
    """Counters of devices from FI_HEDDLE_STATISTICS files, summed by name."""
    totals = {}
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            name, value = line.split()
            totals[name] = totals.get(name, 0) + int(value)
    return totals
