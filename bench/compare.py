#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Heddle's soft device with stock providers, in one run.

Usage: compare.py [--build DIR] [--rounds N] [--device NAME] [--only TABLE...]

Tables:
  idle   the one-machine wire beside `tcp` and `shm`, two processes
  busy   the same beside `tcp` on two processors of which another process keeps one busy
  udp    the wire udp on the loopback interface beside `tcp;ofi_rxm`, two processes
  whole  the one-machine wire beside `shm`, both sides in one process

Every figure is the median of N runs (3) of the program heddle_measure_provider, the providers taking turns, so that
other load meets all of them. Ratios are above 1 where Heddle is ahead. The time is the host's: nothing here is
asserted, and figures of two machines do not compare.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import statistics
import subprocess
import sys


@dataclasses.dataclass(frozen=True)
class Case:
    title: str
    figure: str  # Printed by heddle_measure_provider.
    arguments: tuple
    less_is_better: bool = False


def latency(size, bytes_, rounds):
    return Case(f"half round trip, {size}, us", "p50_us",
                ("latency", "--bytes", str(bytes_), "--rounds", str(rounds)), True)


def stream(what, size, bytes_, rounds, window=64):
    return Case(f"{what} of {size}, MB/s", "megabytes_per_s",
                (what, "--bytes", str(bytes_), "--rounds", str(rounds), "--window", str(window)))


def whole(size, bytes_, rounds):
    return Case(f"whole message of {size}, us", "p50_us", ("whole", "--bytes", str(bytes_), "--rounds", str(rounds)), True)


CASES = (
    latency("8 B", 8, 4000),
    latency("4 KiB", 4096, 2000),
    Case("messages of 8 B, 1000/s", "messages_per_s", ("messages", "--bytes", "8", "--rounds", "500")),
    stream("messages", "4 KiB", 4096, 200),
    stream("messages", "64 KiB", 65536, 40),
    stream("messages", "1 MiB", 1 << 20, 10, 16),
    stream("writes", "64 KiB", 65536, 40),
    stream("writes", "1 MiB", 1 << 20, 10, 16),
)
UDP_CASES = (latency("8 B", 8, 4000), latency("4 KiB", 4096, 2000), stream("messages", "64 KiB", 65536, 40),
             stream("messages", "1 MiB", 1 << 20, 10, 16))
WHOLE_CASES = (whole("8 B", 8, 4000), whole("64 B", 64, 4000), whole("4 KiB", 4096, 2000), whole("64 KiB", 65536, 400),
               whole("1 MiB", 1 << 20, 50))


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    title: str
    wire: str
    others: tuple
    cases: tuple
    busy: bool = False


TABLES = (
    Table("idle", "One-machine wire, two processes", f"compare-{os.getpid()}", ("tcp", "shm"), CASES),
    Table("busy", "One-machine wire, two processes on two processors, one of them kept busy by another process",
          f"compare-{os.getpid()}", ("tcp",), CASES, busy=True),
    Table("udp", "Wire udp on the loopback interface, two processes", "udp", ("tcp;ofi_rxm",), UDP_CASES),
    Table("whole", "One-machine wire, both sides in one process", f"compare-{os.getpid()}", ("shm",), WHOLE_CASES),
)
LIMIT_SECONDS = 60


def environment(build, provider, device, wire):
    env = {name: value for name, value in os.environ.items() if not name.startswith("FI_")}
    env |= {"FI_PROVIDER": provider}
    if provider == "heddle":
        env |= {"FI_PROVIDER_PATH": str(build / "lib/libfabric"), "FI_HEDDLE_DEVICE": device, "FI_HEDDLE_WIRE": wire,
                "FI_HEDDLE_IP": "127.0.0.1"}
    return env


def measure(build, provider, device, wire, case):
    """The figure, or None with a line that gives the reason."""
    try:
        run = subprocess.run([build / "bin/heddle_measure_provider", *case.arguments], capture_output=True, text=True,
                             env=environment(build, provider, device, wire), timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"{provider}, {case.title}: not done after {LIMIT_SECONDS} s", file=sys.stderr)
        return None
    match = re.search(rf"{case.figure} ([\d.]+)", run.stdout)
    if run.returncode != 0 or not match:
        print(f"{provider}, {case.title}: {run.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    value = float(match.group(1))
    return value / 1000 if case.figure == "messages_per_s" else value


@contextlib.contextmanager
def busy_processor():
    """This process and what it starts on two processors, another process busy on one of them."""
    before = os.sched_getaffinity(0)
    two = sorted(before)[:2]
    os.sched_setaffinity(0, two)
    # It ends with this process: its input is a pipe from here.
    program = (f"import os, select, sys\nos.sched_setaffinity(0, [{two[-1]}])\n"
               "while not select.select([sys.stdin], [], [], 0)[0]:\n    sum(range(100000))\n")
    busy = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        busy.stdin.close()
        busy.wait()
        os.sched_setaffinity(0, before)


def ratio(case, ours, theirs):
    if not ours or not theirs:
        return "-"
    return f"{theirs / ours if case.less_is_better else ours / theirs:.2f}"


def print_table(table, arguments, build):
    """Whether a figure of Heddle is missing."""
    print(f"\n{table.title}; load {os.getloadavg()[0]:.1f}\n\n| what | heddle | " + " | ".join(table.others) + " | " +
          " | ".join(f"heddle to {other}" for other in table.others) + " |\n" + "|---" * (2 + 2 * len(table.others)) + "|")
    providers = ("heddle", *table.others)
    missing = False
    for case in table.cases:
        runs = {provider: [] for provider in providers}
        for _ in range(arguments.rounds):
            for provider in providers:
                value = measure(build, provider, arguments.device, table.wire, case)
                if value is not None:
                    runs[provider].append(value)
        medians = {p: statistics.median(values) if values else None for p, values in runs.items()}
        missing = missing or not medians["heddle"]
        cells = [f"{medians[p]:.2f}" if medians[p] else "-" for p in providers]
        cells += [ratio(case, medians["heddle"], medians[p]) for p in table.others]
        print(f"| {case.title} | " + " | ".join(cells) + " |", flush=True)
    return missing


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="soft")
    parser.add_argument("--only", nargs="+", choices=[table.name for table in TABLES])
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    print(f"{os.cpu_count()} processors, device {arguments.device}, median of {arguments.rounds} runs")
    missing = False
    for table in TABLES:
        if arguments.only and table.name not in arguments.only:
            continue
        with busy_processor() if table.busy else contextlib.nullcontext():
            missing = print_table(table, arguments, build) or missing
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
