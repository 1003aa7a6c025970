#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges providers by heddle-conformance and compares the verdicts with expected.toml.

Usage: judge.py --build DIR [--providers NAME,...] [--record] [--page FILE]
                [--setting NAME=VALUE ...] [--require N[,N-M]] [--except NUMBER ...]

NAME is one of the columns below, or `soft`, `rtl`, `stock` or `all` for several.
Two run at a time. A verdict that differs, to the better too, is a failure; --record
writes the verdicts into expected.toml instead, whose sentences a person adds. --page
writes docs/conformance.md. --setting is an environment variable of Heddle, for
devices whose verdicts have to be those of `soft`. The requirements of --require
are judged, without those of --except.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected.toml"
REQUIREMENTS = 293
AT_ONCE = 2
LIMIT_S = 60  # For a test.
WAIT_S = 5  # For a wait in a test, in seconds of the processor.
VERDICTS = ("no test", "not offered", "refused", "pass", "fail", "hung", "crashed")
# Sentences beside the verdicts: see `missing_sentences`.
SENTENCES = ("untested", "ours", "stock_differs", "right")

# The stock providers report what interfaces there are: the same on each machine. Their verbs provider reads the
# kernel's symbols twice in each process, for 0.2 s of each test: not here.
NAMESPACE = """
mount --bind /dev/null /proc/kallsyms || true
ip link set lo up
ip link add conformance0 type veth peer name conformance1
for side in 0 1; do
  ip link set conformance$side addrgenmode none
  ip address add 198.51.100.$side/31 dev conformance$side
  ip link set conformance$side up
done
exec "$@"
"""


@dataclasses.dataclass(frozen=True)
class Column:
    name: str
    provider: str
    groups: tuple  # From the narrowest: an entry of expected.toml for a group holds for its columns.
    limit_s: int
    wait_s: int
    device: str = ""
    form: str = ""

    def environment(self, build, settings):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("FI_", "LD_LIBRARY"))}
        if not self.device:
            return clean
        form = ({"FI_PROVIDER_PATH": str(build / "lib/libfabric")} if self.form == "plug-in" else
                {"LD_LIBRARY_PATH": str(build / "lib/heddle/drop-in")})
        wire = f"conformance-{os.getpid()}-{self.device}-{self.form}"
        return clean | form | {"FI_HEDDLE_DEVICE": self.device, "FI_HEDDLE_WIRE": wire} | settings

    def prefix(self):
        if self.device:
            return []
        return ["unshare", "-mn" if os.geteuid() == 0 else "-rmn", "bash", "-ec", NAMESPACE, "bash"]


def ours(device, form):
    # Requirement 123 takes 100 s on rtl, and five times that on a machine that is busy, in part also of the processor.
    limit_s, wait_s = (20 * LIMIT_S, 12 * WAIT_S) if device == "rtl" else (LIMIT_S, WAIT_S)
    return Column(f"{device} {form}", "heddle", (f"{device} {form}", form, device, "heddle", "all"), limit_s, wait_s,
                  device, form)


def stock(provider):
    return Column(provider, provider, (provider, "stock", "all"), LIMIT_S, WAIT_S)


# The slowest first.
COLUMNS = (
    ours("rtl", "plug-in"), ours("rtl", "drop-in"), stock("udp;ofi_rxd"), stock("shm"), stock("tcp;ofi_rxm"),
    stock("sockets"), ours("soft", "plug-in"), ours("soft", "drop-in"),
)
STOCK = [column.name for column in COLUMNS if not column.device]
OURS = [column.name for column in COLUMNS if column.device]


class Failure(Exception):
    """A provider could not be judged."""


def chosen(text):
    """Columns of a list of names."""
    names = text.split(",")
    found = [column for column in COLUMNS if any(name in column.groups for name in names)]
    for name in names:
        if not any(name in column.groups for column in COLUMNS):
            known = sorted({name for column in COLUMNS for name in column.groups})
            raise Failure(f"--providers {name}: there are {', '.join(known)}")
    return found


def numbers(text):
    """The numbers of 1-3,5."""
    ends = [part.split("-") for part in text.split(",")]
    return {number for part in ends for number in range(int(part[0]), int(part[-1]) + 1)}


def ranges(numbers):
    """Ascending numbers as --require takes them: 1-3,5."""
    runs = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def run(column, build, settings, ignored=()):
    """Rows by number, and the seconds that it took; the ignored requirements have no row."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "verdicts.json"
        start = time.monotonic()
        command = [*column.prefix(), build / "bin/heddle-conformance", "--provider", column.provider, "--json", path,
                   "--limit-s", str(column.limit_s), "--wait-s", str(column.wait_s)]
        if ignored:
            command += ["--require", ranges(n for n in range(1, REQUIREMENTS + 1) if n not in ignored)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env=column.environment(build, settings), check=False)
        if done.returncode not in (0, 1) or not path.exists():
            raise Failure(f"{column.name}: {done.stderr.strip() or f'status {done.returncode}'}")
        rows = json.loads(path.read_text())["requirements"]
    return {row["number"]: row for row in rows}, time.monotonic() - start


def expectations(path=EXPECTED):
    """{number: table} of expected.toml; raises Failure for what it may not hold."""
    tables = {}
    known = set(SENTENCES) | {group for column in COLUMNS for group in column.groups}
    for key, table in tomllib.loads(path.read_text()).items():
        for name, value in table.items():
            if name not in known:
                raise Failure(f"{path.name}: {key}: no column or sentence {name}")
            if name not in SENTENCES and value not in VERDICTS:
                raise Failure(f"{path.name}: {key}: {name}: no verdict {value}")
        tables[int(key)] = table
    if sorted(tables) != list(range(1, REQUIREMENTS + 1)):
        raise Failure(f"{path.name}: not a table for each of 1 to {REQUIREMENTS}")
    return tables


def expected(table, column):
    return next((table[group] for group in column.groups if group in table), "")


def verdicts_of(table):
    return {column.name: expected(table, column) for column in COLUMNS}


def missing_sentences(table):
    """Sentences that the verdicts of a requirement need and that are not there, and those there for nothing."""
    verdicts = verdicts_of(table)
    mine, theirs = [verdicts[name] for name in OURS], [verdicts[name] for name in STOCK]
    passes = "pass" in mine
    needed = {
        # Why there is no test, and what shows it of Heddle.
        "untested": set(mine + theirs) == {"no test"},
        # Heddle does not pass, though there is a test.
        "ours": any(verdict in ("fail", "hung", "crashed") for verdict in mine),
        # Stock is looser than the page, or does not offer it.
        "stock_differs": passes and any(verdict != "pass" for verdict in theirs),
        # Why the test is right though no stock provider passes it.
        "right": "no test" not in theirs and "pass" not in theirs,
    }
    return [f"{'needs' if needs else 'has no use for'} a sentence {name}"
            for name, needs in needed.items() if needs != bool(table.get(name))]


def compact(verdicts):
    """A short table with these verdicts by column."""
    def wrong(table):
        return sum(expected(table, column) != verdicts[column.name] for column in COLUMNS)

    table = {}
    # From the widest group: the verdict of most of its columns, if that saves entries for them.
    for group in ("all", "heddle", "stock", "soft", "rtl", "plug-in", "drop-in"):
        members = [verdicts[column.name] for column in COLUMNS if group in column.groups]
        trial = table | {group: max(members, key=members.count)}
        if wrong(trial) < wrong(table) - (group != "all"):
            table = trial
    for column in COLUMNS:
        if expected(table, column) != verdicts[column.name]:
            table[column.name] = verdicts[column.name]
    return table


HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# Verdict of each requirement by provider, for judge.py. A key is a column ("shm", "soft drop-in"), a device or form of
# ours, "heddle", "stock" or "all"; the narrowest counts. Sentences:
#   untested       why there is no test; a test of Heddle that shows it is in backquotes
#   ours           why a verdict of ours is a failure
#   stock_differs  what a stock provider that does not pass does instead
#   right          why a test that no stock provider passes is right
"""


def write_expectations(tables, path=EXPECTED):
    def quoted(text):
        return json.dumps(text, ensure_ascii=False)

    def key(name):
        return name if name.replace("-", "").replace("_", "").isalnum() else quoted(name)

    lines = [HEADER]
    for number, table in sorted(tables.items()):
        lines.append(f"[{number}]")
        lines += [f"{key(name)} = {quoted(value)}" for name, value in table.items()]
        lines.append("")
    path.write_text("\n".join(lines))


def cell(verdicts):
    return " / ".join(dict.fromkeys(verdicts))


def page(tables, rows):
    """docs/conformance.md from the expectations and the program's rows."""
    counted = []
    for column in COLUMNS:
        found = [expected(table, column) for table in tables.values()]
        counts = [str(found.count(verdict)) for verdict in VERDICTS]
        counted.append(f"| {column.name} | {' | '.join(counts)} |")
    columns = [("soft", ["soft plug-in", "soft drop-in"]), ("rtl", ["rtl plug-in", "rtl drop-in"]),
               *((name, [name]) for name in sorted(STOCK))]
    tested = sum(bool(row["tests"]) for row in rows.values())
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->", "# Conformance", "",
        "Generated by `make conformance` from `tests/conformance`: what the manual pages of libfabric 1.17 require (fi_getinfo,",
        "fi_domain, fi_endpoint, fi_cm, fi_setup, in this order), the tests that show it, and the verdict on each provider: Heddle on",
        "the devices `soft` and `rtl`, and the stock providers of Debian's libfabric 1.17.0-3. Two verdicts in a cell are those of the",
        "plug-in and of the drop-in. [The program](../tests/conformance/README.md) explains the verdicts.", "",
        f"{tested} of {REQUIREMENTS} requirements have tests.", "",
        f"| Provider | {' | '.join(VERDICTS)} |", f"|---|{'---|' * len(VERDICTS)}", *counted, "",
        f"| # | Requirement | Tests | {' | '.join(name for name, _ in columns)} |", f"|---|---|---|{'---|' * len(columns)}",
    ]
    for number, table in sorted(tables.items()):
        verdicts = verdicts_of(table)
        tests = ", ".join(f"`{name}`" for name in rows[number]["tests"])
        cells = " | ".join(cell([verdicts[name] for name in names]) for _, names in columns)
        lines.append(f"| {number} | {rows[number]['meaning'].replace('*', chr(92) + '*')} | {tests} | {cells} |")
    titles = (("Differences", "Why verdicts are no `pass`, where Heddle passes or where no stock provider does.", SENTENCES[1:]),
              ("Without a test", "Why there is no test here, and which test of Heddle shows it.", SENTENCES[:1]))
    for title, meaning, names in titles:
        lines += ["", f"## {title}", "", meaning, "", "| # | |", "|---|---|"]
        for number, table in sorted(tables.items()):
            text = " ".join(table[name] for name in names if name in table)
            if text:
                lines.append(f"| {number} | {text} |")
    return "\n".join(lines) + "\n"


def listed(build):
    """The rows without verdicts: numbers, meanings and tests."""
    text = subprocess.run([build / "bin/heddle-conformance", "--list"], capture_output=True, text=True, check=True).stdout
    rows = {}
    for line in text.splitlines():
        if line.startswith("     "):
            rows[max(rows)]["tests"].append(line.strip())
        else:
            number, meaning = line.strip().split("  ", 1)
            rows[int(number)] = {"meaning": meaning, "tests": []}
    return rows


def judge(columns, build, settings, ignored=()):
    """{name: rows}; prints a line for each column as it ends."""
    found = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        running = {pool.submit(run, column, build, settings, ignored): column for column in columns}
        for done in concurrent.futures.as_completed(running):
            rows, seconds = done.result()
            found[running[done].name] = rows
            counts = {}
            for row in rows.values():
                counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
            print(f"{running[done].name:<13}{seconds:>5.0f} s  " +
                  ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts), flush=True)
    return found


def compare(found, tables):
    """Lines about verdicts that are not the expected ones."""
    lines = []
    for column in COLUMNS:
        for number, row in found.get(column.name, {}).items():
            wanted = expected(tables[number], column)
            if row["verdict"] != wanted:
                lines.append(f"{column.name}: {number}: {row['verdict']}, expected {wanted}: {row['meaning']}\n    "
                             f"{', '.join(row['tests'])}\n    {row['reason'] or 'no reason'}")
    return lines


def record(found, tables):
    """The expectations with the verdicts that were found."""
    updated = {}
    for number in range(1, REQUIREMENTS + 1):
        table = tables.get(number, {})
        verdicts = {name: verdict or "no test" for name, verdict in verdicts_of(table).items()}
        verdicts.update({name: rows[number]["verdict"] for name, rows in found.items() if number in rows})
        updated[number] = compact(verdicts) | {name: table[name] for name in SENTENCES if name in table}
    return updated


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--providers", default="all")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--setting", action="append", default=[])
    parser.add_argument("--require", type=numbers, default=range(1, REQUIREMENTS + 1))
    parser.add_argument("--except", type=int, action="append", default=[], dest="ignored")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    settings = dict(setting.split("=", 1) for setting in arguments.setting)
    columns = chosen(arguments.providers)
    ignored = arguments.ignored + [n for n in range(1, REQUIREMENTS + 1) if n not in arguments.require]
    found = judge(columns, build, settings, ignored) if columns else {}
    if arguments.record:
        write_expectations(record(found, expectations() if EXPECTED.exists() else {}))
    tables = expectations()
    lines = compare(found, tables)
    lines += [f"expected.toml: {number} {what}" for number, table in tables.items() for what in missing_sentences(table)]
    if arguments.page:
        arguments.page.write_text(page(tables, listed(build)))
    for line in lines:
        print(line)
    print(f"{len(lines)} differences from expected.toml")
    return 1 if lines else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"judge.py: {failure}")
