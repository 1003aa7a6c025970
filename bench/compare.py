#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Heddle's soft device with the stock providers `tcp` and `shm`, in one run between two processes.

Usage: compare.py [--build DIR] [--rounds N] [--device NAME]

Every figure is the median of N runs (3) of the program heddle_measure_provider, the providers taking turns, so that
other load meets all of them. Ratios are above 1 where Heddle is ahead. The time is the host's: nothing here is
asserted, and figures of two machines do not compare.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys

# Title, figure printed, arguments, whether less is better.
CASES = (
    ("half round trip, 8 B, us", "p50_us", ("latency", "--bytes", "8", "--rounds", "4000"), True),
    ("half round trip, 4 KiB, us", "p50_us", ("latency", "--bytes", "4096", "--rounds", "2000"), True),
    ("messages of 8 B, 1000/s", "messages_per_s", ("messages", "--bytes", "8", "--rounds", "500"), False),
    ("messages of 4 KiB, MB/s", "megabytes_per_s", ("messages", "--bytes", "4096", "--rounds", "200"), False),
    ("messages of 64 KiB, MB/s", "megabytes_per_s", ("messages", "--bytes", "65536", "--rounds", "40"), False),
    ("messages of 1 MiB, MB/s", "megabytes_per_s",
     ("messages", "--bytes", "1048576", "--rounds", "10", "--window", "16"), False),
    ("writes of 64 KiB, MB/s", "megabytes_per_s", ("writes", "--bytes", "65536", "--rounds", "40"), False),
    ("writes of 1 MiB, MB/s", "megabytes_per_s",
     ("writes", "--bytes", "1048576", "--rounds", "10", "--window", "16"), False),
)
PROVIDERS = ("heddle", "tcp", "shm")
LIMIT_SECONDS = 60


def environment(build, provider, device):
    env = {name: value for name, value in os.environ.items() if not name.startswith("FI_")}
    env |= {"FI_PROVIDER": provider}
    if provider == "heddle":
        env |= {"FI_PROVIDER_PATH": str(build / "lib/libfabric"), "FI_HEDDLE_DEVICE": device,
                "FI_HEDDLE_WIRE": f"compare-{os.getpid()}", "FI_HEDDLE_IP": "127.0.0.1"}
    return env


def measure(build, provider, device, case):
    """The figure, or None with a line that says why there is none."""
    title, figure, arguments, _ = case
    try:
        run = subprocess.run([build / "bin/heddle_measure_provider", *arguments], capture_output=True, text=True,
                             env=environment(build, provider, device), timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"{provider}, {title}: not done after {LIMIT_SECONDS} s", file=sys.stderr)
        return None
    match = re.search(rf"{figure} ([\d.]+)", run.stdout)
    if run.returncode != 0 or not match:
        print(f"{provider}, {title}: {run.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    value = float(match.group(1))
    return value / 1000 if figure == "messages_per_s" else value


def ratio(case, ours, theirs):
    if not ours or not theirs:
        return "-"
    return f"{theirs / ours if case[3] else ours / theirs:.2f}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="soft")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, device {arguments.device}, "
          f"median of {arguments.rounds} runs\n")
    print("| what | heddle | tcp | shm | heddle to tcp | heddle to shm |\n|---|---|---|---|---|---|")
    missing = False
    for case in CASES:
        runs = {provider: [] for provider in PROVIDERS}
        for _ in range(arguments.rounds):
            for provider in PROVIDERS:
                value = measure(build, provider, arguments.device, case)
                if value is not None:
                    runs[provider].append(value)
        medians = {p: statistics.median(values) if values else None for p, values in runs.items()}
        missing = missing or not medians["heddle"]
        cells = [f"{medians[p]:.2f}" if medians[p] else "-" for p in PROVIDERS]
        cells += [ratio(case, medians["heddle"], medians[p]) for p in PROVIDERS[1:]]
        print(f"| {case[0]} | " + " | ".join(cells) + " |", flush=True)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
