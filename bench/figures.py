#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the exact figures: clock cycles of the RTL, instructions of the host code.

Usage: figures.py [--build DIR] check|record

check   measures Heddle and fails where a figure differs from the recorded one.
record  measures Heddle and the stock providers beside it, and writes
        bench/instructions.toml and docs/performance.md.

Cycles are the same on every machine. Instructions depend on the compiler and its
flags, not on the machine's load; a difference of up to two is none.
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORDED = ROOT / "bench/instructions.toml"
PAGE = ROOT / "docs/performance.md"
STOCK = ("shm", "tcp;ofi_rxm")
TOLERANCE = 2
LIMIT_SECONDS = 1800

# Call, what it is in words, and the budget of the architecture.
CALLS = (
    ("inject", "fi_inject of 8 bytes", "60"),
    ("send", "fi_send of 8 bytes", "60"),
    ("send_64", "fi_send of 64 bytes", "-"),
    ("send_4096", "fi_send of 4096 registered bytes", "60"),
    ("inject_write", "fi_inject_write of 8 bytes", "60"),
    ("write", "fi_write of 8 bytes", "60"),
    ("write_4096", "fi_write of 4096 registered bytes", "60"),
    ("read", "fi_read of 8 bytes", "-"),
    ("recv", "fi_recv, registered", "-"),
    ("recv_unregistered", "fi_recv, not registered", "-"),
    ("cq_read", "fi_cq_read of one completion", "40"),
    ("empty_poll", "fi_cq_read, empty", "12"),
)


class Failure(Exception):
    """A program failed; the text names it and the failure."""


def run(command, environment):
    """Standard output of a program; its errors become a Failure."""
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    if result.returncode != 0:
        raise Failure(f"{command[0]}: exit status {result.returncode}\n{result.stderr[-2000:]}")
    return result.stdout


def count(build, provider):
    """Instructions per call of one provider, by call; the loop's own are subtracted."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FI_")}
    environment |= {"FI_PROVIDER": provider, "LD_BIND_NOW": "1"}
    if provider == "heddle":
        environment |= {"FI_PROVIDER_PATH": str(build / "lib/libfabric"), "FI_HEDDLE_DEVICE": "rtl",
                        "FI_HEDDLE_SIM_PATH": str(build / "lib/libheddle-stepped.so")}
    with tempfile.TemporaryDirectory(dir=build) as folder:
        output = run(["valgrind", "--tool=callgrind", "--fair-sched=yes", "--collect-atstart=no",
                      f"--callgrind-out-file={folder}/dump", str(build / "bin/heddle_count_calls"),
                      "--provider", provider], environment)
        calls = {name: int(number) for name, number in (line.split() for line in output.splitlines())}
        totals = {}
        for dump in pathlib.Path(folder).glob("dump.*"):
            text = dump.read_text()
            trigger = re.search(r"^desc: Trigger: Client Request: (\S+)$", text, re.M)
            if trigger:
                totals[trigger[1]] = int(re.search(r"^(?:summary|totals): (\d+)", text, re.M)[1])
    if set(totals) != set(calls) or not all(calls.values()):
        raise Failure(f"{provider}: counted {sorted(totals)} of {calls}")
    per_call = {name: totals[name] / calls[name] for name in calls}
    loop = per_call.pop("null")
    return {name: round(value - loop, 1) for name, value in per_call.items()}


def cycles(build):
    """The table of clock cycles, as text."""
    page = build / "reports/cycles.md"
    page.parent.mkdir(exist_ok=True)
    run([str(build / "bin/heddle_perf"), "--markdown", str(page)], os.environ)
    return page.read_text()


def page_text(cycle_table, instructions):
    """The whole page for people."""
    columns = ("heddle", *STOCK)
    lines = [cycle_table.rstrip("\n"), "", "## Instructions per call", "",
             "User-space instructions of the calling thread (callgrind, g++ 12, -O2), two RDM endpoints of one process,",
             "FI_THREAD_DOMAIN, AV table, no FI_SOURCE; the loop's own are subtracted. Heddle's device is served elsewhere,",
             "as hardware is; the stock providers do the transfer's work in these calls or in later polls.", "",
             "| call | heddle | shm | tcp;ofi_rxm | budget |", "|---|---|---|---|---|"]
    for name, words, budget in CALLS:
        values = (f"{instructions[provider][name]:.0f}" for provider in columns)
        lines.append(f"| {words} | {' | '.join(values)} | {budget} |")
    return "\n".join(lines) + "\n"


def record_text(instructions):
    """Content of RECORDED, a table per provider."""
    lines = ["# SPDX-License-Identifier: Apache-2.0", "# Instructions per call, written by `make performance`."]
    for provider, calls in instructions.items():
        lines += ["", f'["{provider}"]', *(f"{name} = {value}" for name, value in calls.items())]
    return "\n".join(lines) + "\n"


def check(build):
    """Number of figures that differ from the recorded ones, each printed."""
    recorded = tomllib.loads(RECORDED.read_text())
    wrong = 0
    for line in difflib.unified_diff(PAGE.read_text().splitlines(), page_text(cycles(build), recorded).splitlines(),
                                     "recorded", "measured", n=0, lineterm=""):
        print(line)
        wrong += line.startswith("+|")
    fresh = count(build, "heddle")
    for name, words, _ in CALLS:
        before, now = recorded["heddle"][name], fresh[name]
        differs = abs(now - before) > TOLERANCE
        wrong += differs
        print(f"{words:<40}{now:>8.1f} instructions, recorded {before:.1f}{'  DIFFERS' if differs else ''}")
    return wrong


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("action", choices=("check", "record"))
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    try:
        if arguments.action == "check":
            wrong = check(build)
            print(f"bench-check: {wrong} figures differ" + ("; `make performance` records better ones" if wrong else ""))
            sys.exit(1 if wrong else 0)
        instructions = {}
        for provider in ("heddle", *STOCK):
            print(f"counting instructions of {provider}", flush=True)
            instructions[provider] = count(build, provider)
        RECORDED.write_text(record_text(instructions))
        PAGE.write_text(page_text(cycles(build), instructions))
        print(PAGE.read_text())
    except (Failure, subprocess.TimeoutExpired, OSError) as error:
        sys.exit(f"figures.py: {error}")


if __name__ == "__main__":
    main()
