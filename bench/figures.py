#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the exact figures: clock cycles of the RTL, instructions of the host code and of matching.

Usage: figures.py [--build DIR] check|record

check   measures Heddle, of the patterns those that are cheap, and fails where a
        figure differs from the recorded one.
record  measures Heddle and the stock providers beside it, and writes
        bench/instructions.toml and docs/performance.md.

Cycles are the same on every machine. Instructions depend on the compiler and its
flags, not on the machine's load; a difference of up to two is none, of whole
messages one of a hundredth. Programs run side by side, as many as there are processors.
"""

import argparse
import concurrent.futures
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
LIMIT_SECONDS = 7200
# End of a row of cycles that only `record` measures.
UNCHECKED = "| no |"

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
    ("tinject", "fi_tinject of 8 bytes", "62"),
    ("tsend", "fi_tsend of 8 bytes", "70"),
    ("tsend_4096", "fi_tsend of 4096 registered bytes", "90"),
    ("trecv", "fi_trecv, registered", "95"),
    ("trecv_unregistered", "fi_trecv, not registered", "320"),
    ("tcq_read", "fi_cq_read of one tagged completion", "62"),
)
# Both sides and the device in one thread, from the posts to the completion.
WHOLE = (
    ("e2e", "untagged message of 8 bytes"),
    ("te2e", "tagged message of 8 bytes"),
)
WHOLE_PROVIDERS = ("heddle", "shm")
POSTED = (1, 16, 256, 1024)
# Figures of matching: name, what it is in words, and the budget.
MATCHING = (
    *((f"exact_{n}", f"instructions to match one message, receives posted: {n:,}, fully specified",
       "1.2 times that of 1" if n == POSTED[-1] else "-") for n in POSTED),
    *((f"wildcards_{n}", f"the same, with wildcards, of which the last one matches: {n:,}", "-") for n in POSTED),
    ("wildcard", "the same for each wildcard passed over, of more than 256", "12"),
    ("bytes_of_receive", "bytes of a posted receive, of 8,192", "160"),
    ("bytes_of_header", "bytes of the header of an unexpected message, of 65,536", "128"),
)


class Failure(Exception):
    """A program failed; the text names it and the failure."""


def run(command, environment):
    """Standard output of a program; its errors become a Failure."""
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    if result.returncode != 0:
        raise Failure(f"{command[0]}: exit status {result.returncode}\n{result.stderr[-2000:]}")
    return result.stdout


def profile(build, command, environment=None):
    """Lines `name number` that a program prints, and instructions by the name of each of its dumps."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FI_")}
    with tempfile.TemporaryDirectory(dir=build) as folder:
        output = run(["valgrind", "--tool=callgrind", "--fair-sched=yes", "--collect-atstart=no",
                      f"--callgrind-out-file={folder}/dump", *command], clean | {"LD_BIND_NOW": "1"} | (environment or {}))
        totals = {}
        for dump in pathlib.Path(folder).glob("dump.*"):
            text = dump.read_text()
            trigger = re.search(r"^desc: Trigger: Client Request: (\S+)$", text, re.M)
            if trigger:
                totals[trigger[1]] = int(re.search(r"^(?:summary|totals): (\d+)", text, re.M)[1])
    printed = {name: int(number) for name, number in (line.split() for line in output.splitlines())}
    return printed, totals


def per_call(calls, totals):
    """Instructions per call; those of `null`, the measurement's own, are subtracted."""
    if set(totals) != set(calls) or not all(calls.values()):
        raise Failure(f"counted {sorted(totals)} of {calls}")
    each = {name: totals[name] / calls[name] for name in calls}
    loop = each.pop("null")
    return {name: round(value - loop, 1) for name, value in each.items()}


def count(build, provider, whole=False):
    """Instructions per call of one provider, by call."""
    environment = {"FI_PROVIDER": provider}
    if provider == "heddle":
        environment |= {"FI_PROVIDER_PATH": str(build / "lib/libfabric"), "FI_HEDDLE_DEVICE": "soft",
                        "FI_HEDDLE_SIM_PATH": str(build / "lib/libheddle-stepped.so")}
        if whole:
            environment["HEDDLE_BENCH_WHOLE"] = "1"
    calls = ["null", *(name for name, _ in WHOLE)] if whole else []
    return per_call(*profile(build, [str(build / "bin/heddle_count_calls"), "--provider", provider, *calls], environment))


def matching(build):
    """Figures of MATCHING, by name."""
    printed, totals = profile(build, [str(build / "bin/heddle_count_matching")])
    figures = {name: printed.pop(name) for name in ("bytes_of_receive", "bytes_of_header")}
    figures |= per_call(printed, totals)
    most, fewer = POSTED[-1], POSTED[-2]
    figures["wildcard"] = round((figures[f"wildcards_{most}"] - figures[f"wildcards_{fewer}"]) / (most - fewer), 2)
    return {name: figures[name] for name, _, _ in MATCHING}


def measure(build, stock, *options):
    """The tables of cycles and the other figures by table; of stock providers those in `stock`."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        table = pool.submit(cycles, build, *options)
        jobs = {provider: pool.submit(count, build, provider) for provider in ("heddle", *stock)}
        jobs |= {f"whole {provider}": pool.submit(count, build, provider, True) for provider in WHOLE_PROVIDERS}
        jobs["matching"] = pool.submit(matching, build)
        return table.result(), {name: job.result() for name, job in jobs.items()}


def cycles(build, *options):
    """The tables of clock cycles, as text."""
    page = build / "reports/cycles.md"
    page.parent.mkdir(exist_ok=True)
    run([str(build / "bin/heddle_perf"), "--markdown", str(page), *options], os.environ)
    return page.read_text()


def page_text(cycle_table, figures):
    """The whole page for people."""
    columns = ("heddle", *STOCK)
    lines = [cycle_table.rstrip("\n"), "", "## Instructions per call", "",
             "User-space instructions of the calling thread (callgrind, g++ 12, -O2), two RDM endpoints of one process,",
             "FI_THREAD_DOMAIN, AV table, no FI_SOURCE; the loop's own are subtracted. Heddle's device is served elsewhere,",
             "as hardware is; the stock providers do the transfer's work in these calls or in later polls. Tagged calls are",
             "those of endpoints with FI_MSG and FI_TAGGED.", "",
             "| call | heddle | shm | tcp;ofi_rxm | budget |", "|---|---|---|---|---|"]
    for name, words, budget in CALLS:
        values = (f"{figures[provider][name]:.0f}" for provider in columns)
        lines.append(f"| {words} | {' | '.join(values)} | {budget} |")
    lines += ["", "## Whole messages", "",
              "Instructions from the post of the receive to its completion, all in one thread: both endpoints and the device",
              "`soft`, in virtual time (`bench/README.md`). The message is injected.", "",
              "| message | heddle, soft | shm | budget |", "|---|---|---|---|"]
    for name, words in WHOLE:
        values = (f"{figures[f'whole {provider}'][name]:.0f}" for provider in WHOLE_PROVIDERS)
        lines.append(f"| {words} | {' | '.join(values)} | that of shm |")
    lines += ["", "## Matching", "",
              "`semantics::ReceiveQueue`, with which the soft device matches. A message that is matched takes its receive out,",
              "whose place is free afterwards. A fully specified receive names tag and source; a wildcard ignores a bit of the tag.",
              "", "| what | measured | budget |", "|---|---|---|"]
    lines += [f"| {words} | {figures['matching'][name]:g} | {budget} |" for name, words, budget in MATCHING]
    return "\n".join(lines) + "\n"


def record_text(figures):
    """Content of RECORDED, a table per provider."""
    lines = ["# SPDX-License-Identifier: Apache-2.0", "# Instructions and bytes, written by `make performance`."]
    for table, values in figures.items():
        lines += ["", f'["{table}"]', *(f"{name} = {value}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def compare(words, unit, before, now, tolerance):
    """Prints a figure; whether it differs from the recorded one."""
    differs = abs(now - before) > tolerance
    print(f"{words:<85}{now:>8.1f} {unit}, recorded {before:.1f}{'  DIFFERS' if differs else ''}")
    return differs


def check(build):
    """Number of figures that differ from the recorded ones, each printed."""
    recorded = tomllib.loads(RECORDED.read_text())
    table, fresh = measure(build, (), "--checked")
    page = [line for line in PAGE.read_text().splitlines() if not line.endswith(UNCHECKED)]
    lines = list(difflib.unified_diff(page, page_text(table, recorded).splitlines(), "recorded", "measured",
                                      n=0, lineterm=""))
    print(*lines, sep="\n")
    wrong = max(sum(line.startswith(start) for line in lines) for start in ("+|", "-|"))
    for name, words, _ in CALLS:
        wrong += compare(words, "instructions", recorded["heddle"][name], fresh["heddle"][name], TOLERANCE)
    for provider in WHOLE_PROVIDERS:
        of = f"whole {provider}"
        for name, words in WHOLE:
            before = recorded[of][name]
            wrong += compare(f"{words}, both sides, {provider}", "instructions", before, fresh[of][name], before / 100)
    for name, words, _ in MATCHING:
        exact = name == "wildcard" or name.startswith("bytes")
        wrong += compare(words, "", recorded["matching"][name], fresh["matching"][name], 0.1 if exact else TOLERANCE)
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
        table, figures = measure(build, STOCK)
        RECORDED.write_text(record_text(figures))
        PAGE.write_text(page_text(table, figures))
        print(PAGE.read_text())
    except (Failure, subprocess.TimeoutExpired, OSError) as error:
        sys.exit(f"figures.py: {error}")


if __name__ == "__main__":
    main()
