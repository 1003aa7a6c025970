# SPDX-License-Identifier: Apache-2.0
"""Checks of text, C++ and generated files; each yields its complaints."""

import bisect
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

CXX = (".cc", ".h")
HDL = (".sv", ".svh")
# Files that cannot carry a comment, or are a licence themselves.
NO_SPDX = {"LICENSE", "VERSION"}
FUZZ_INPUTS = "tests/fuzz/corpus/"

# Permitted includes: the first rule whose prefix fits the including file, and the files that it may include. Every
# file may include its own layer, none may include tests.
CONTRACT = ("hw/contract/gen/", "hw/contract/doorbell_page.h", "hw/contract/fabric_address.h",
            "hw/contract/fabric_address_text.h", "hw/contract/ip_protocol.h", "hw/contract/memory_key.h",
            "hw/contract/settings/", "hw/contract/split_number.h")
DEVICE = ("driver/base/hex.h", "driver/device.h", "driver/result.h", "driver/sim_factory.h")
# The simulated NIC below the devices, with what of the device soft is below it.
FRAME = CONTRACT + ("driver/result.h", "firmware/base/hal.h", "hw/sim/base/", "hw/sim/frame/")
SOFT_FRAME = ("hw/soft/rules/", "hw/soft/wire/", "hw/soft/frame/", "hw/soft/transport/")
WIRE = FRAME + ("hw/sim/fault/", "hw/sim/wire/")
SIM_DEVICE = WIRE + DEVICE + ("firmware/", "hw/sim/device/")
SIM_NIC = SIM_DEVICE + ("hw/sim/model/", "hw/sim/pins/", "hw/sim/nic/")
PUBLIC = ("host/include/", "driver/result.h")
BASE = PUBLIC + ("host/lib/base/",)
BACKEND = BASE + ("host/lib/backend/",)
CORE = BACKEND + CONTRACT + ("host/lib/nic/", "host/lib/verbs/", "host/lib/core/")
LAYERS = (
    ("hw/contract/", ()),
    ("hw/rtl/", CONTRACT),
    ("firmware/", CONTRACT),
    ("driver/", CONTRACT),
    ("host/lib/semantics/", CONTRACT),
    ("hw/sim/base/", ("driver/result.h",)),
    ("hw/sim/frame/", FRAME),
    ("hw/soft/rules/", CONTRACT),
    ("hw/soft/wire/", CONTRACT + ("firmware/base/hal.h", "hw/soft/rules/")),
    ("hw/soft/frame/", CONTRACT + ("hw/sim/frame/", "hw/soft/wire/")),
    ("hw/soft/transport/", CONTRACT + ("hw/sim/base/", "hw/soft/rules/", "hw/soft/wire/")),
    ("hw/soft/engine/", CONTRACT + ("host/lib/semantics/",) + SOFT_FRAME),
    ("hw/soft/control/", CONTRACT + ("firmware/", "hw/soft/engine/") + SOFT_FRAME),
    ("hw/sim/fault/", FRAME),
    ("hw/sim/wire/", WIRE + SOFT_FRAME),
    ("hw/soft/shared/", WIRE + SOFT_FRAME),
    ("hw/soft/udp/", FRAME + SOFT_FRAME + ("hw/sim/fault/",)),
    ("hw/sim/device/", SIM_DEVICE),
    ("hw/sim/tool/", SIM_DEVICE),
    ("hw/soft/", SIM_DEVICE + ("host/lib/semantics/", "hw/soft/")),
    ("hw/sim/model/", ()),
    ("hw/sim/pins/", SIM_DEVICE + ("hw/sim/pins/",)),
    ("hw/sim/nic/", SIM_NIC),
    ("hw/sim/rtl/", SIM_NIC + ("hw/sim/rtl/",)),
    ("hw/sim/pci/", CONTRACT),
    ("hw/sim/vfio_user/", SIM_NIC + ("hw/sim/rtl/", "hw/sim/pci/", "hw/soft/")),
    ("hw/sim/entry/", SIM_NIC + ("hw/sim/rtl/", "hw/soft/")),
    ("host/lib/base/", PUBLIC),
    ("host/lib/backend/", BASE),
    ("host/lib/nic/", BACKEND + CONTRACT + ("driver/", "host/lib/semantics/")),
    ("host/lib/verbs/", BACKEND + ("host/lib/semantics/",)),
    ("host/lib/core/", CORE),
    ("host/lib/ofi/", BACKEND + ("host/lib/core/",)),
    ("host/lib/entry/", CORE + ("host/lib/ofi/",)),
    ("host/include/", ()),
    ("tools/", CONTRACT + ("driver/", "host/lib/base/", "host/lib/core/", "host/lib/entry/services.h",
                           "host/include/")),
    ("tests/", ("",)),
    ("bench/", ("",)),
)


# Files that clang-tidy reads as one.
MOST_TOGETHER = 10
TIDY_HEADERS = "/(driver|firmware|host/lib|hw/sim|hw/soft|tools|bench)/"


class CannotRun(Exception):
    """A tool or an input is missing."""


def files(root, *suffixes):
    """Paths below root of tracked and new files, without ignored ones."""
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"]
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    return sorted(n for n in set(names) if n.endswith(suffixes or "") and (root / n).is_file())


def handwritten(root, *suffixes):
    return [n for n in files(root, *suffixes) if not n.startswith("hw/contract/gen/")]


def lines(root, name):
    return enumerate((root / name).read_text(errors="replace").splitlines(), 1)


def check_spdx(root, _build):
    for name in files(root):
        head = (root / name).read_text(errors="replace").splitlines()[:3]
        if name in NO_SPDX or name.startswith(FUZZ_INPUTS):
            continue
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
            yield f"{name}:1: no SPDX-License-Identifier: Apache-2.0 in the first three lines"


def check_todo(root, _build):
    tag = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")
    for name in files(root, *CXX, *HDL, ".py", ".sh", ".cmake", ".txt", ".toml", ".mjs", "Makefile"):
        for number, line in lines(root, name):
            if tag.search(line) and "checks/source.py" not in name and not name.startswith("tests/repo/"):
                yield f"{name}:{number}: tag without an issue number, e.g. (#12)"


def check_links(root, _build):
    """Relative links of the documents lead somewhere."""
    for name in files(root, ".md"):
        for number, line in lines(root, name):
            for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", line):
                if "://" not in target and not (root / name).parent.joinpath(target).exists():
                    yield f"{name}:{number}: link to {target}, which is not there"


def check_citations(root, _build):
    """A section that a line cites as `UET 2.15` is a heading of docs/uet.md, and a line cites no document that is not
    here."""
    page = root / "docs/uet.md"
    sections = set(re.findall(r"^#+ ([\d.]+\d)[. ]", page.read_text(), re.M)) if page.exists() else set()
    cited = re.compile(r"\bUET ((?:\d+\.\d+(?:, | to | and )?)+)")
    for name in files(root, *CXX, *HDL, ".py", ".md", ".toml", ".c"):
        if name.startswith(("tests/repo/", "scripts/checks/")):
            continue
        for number, line in lines(root, name):
            if "§" in line or "design.md" in line:
                yield f"{name}:{number}: cites a section of no page of this repository"
            for found in cited.findall(line):
                for section in re.findall(r"\d+\.\d+", found):
                    if section not in sections:
                        yield f"{name}:{number}: docs/uet.md has no section {section}"


def layer_of(name):
    return next(((prefix, reach) for prefix, reach in LAYERS if name.startswith(prefix)), (None, ()))


def may_include(name, target):
    own, reach = layer_of(name)
    if own is None or target.startswith(own):
        return True
    return target.startswith(reach)


def check_layering(root, _build):
    include = re.compile(r'^\s*[#`]include\s+"([^"]+)"')
    for name in handwritten(root, *CXX, *HDL):
        if name.startswith("hw/sim/") and layer_of(name)[0] is None:
            yield f"{name}:1: in no layer of hw/sim"
        for number, line in lines(root, name):
            match = include.match(line)
            # A Verilated class or a header of the same folder names no folder.
            if match and "/" in match.group(1) and not may_include(name, match.group(1)):
                yield f"{name}:{number}: {layer_of(name)[0]} may not include {match.group(1)}"
            elif match and match.group(1).startswith("V") and not name.startswith(("hw/sim/", "tests/", "bench/")):
                yield f"{name}:{number}: only hw/sim and tests use a Verilated model"


def check_namespaces(root, _build):
    """In hw/sim and hw/soft a folder is a namespace: classes of two folders may have the same name."""
    opening = re.compile(r"^\s*(?:inline\s+)?namespace\s+([\w:]+)\s*(?:\{|$)")
    for name in handwritten(root, *CXX):
        if not name.startswith(("hw/sim/", "hw/soft/")):
            continue
        own = "heddle::" + "::".join(name.split("/")[1:-1])
        opened = [(number, match[1]) for number, line in lines(root, name) if (match := opening.match(line))]
        yield from (f"{name}:{number}: namespace {other}, in a folder that is {own}"
                    for number, other in opened if other != own)
        # A .cc may hold nothing but functions that others declare: `main`, hooks of a library.
        if not opened and name.endswith(".h"):
            yield f"{name}:1: not in namespace {own}"


def check_literals(root, _build):
    """Numbers that the contract names."""
    number = r"(0[xX][0-9a-fA-F]+|\d+)\b"
    patterns = (
        (re.compile(rf"(Read|Write)Register(32|64)\(\s*{number}"), "register offset as a number"),
        (re.compile(rf"\bdoorbell\(\s*{number}"), "doorbell offset as a number"),
        (re.compile(r"(?i)0x454c4448|\b4793\b|'h12b9|0x12b9"), "number that the contract names"),
    )
    for name in handwritten(root, *CXX, *HDL):
        if name.startswith("tests/"):
            continue
        for at, line in lines(root, name):
            for pattern, what in patterns:
                if pattern.search(re.sub(r"//.*", "", line)):
                    yield f"{name}:{at}: {what}"


def check_contract(root, _build):
    command = [sys.executable, str(root / "hw/contract/gen_contract.py"), str(root / "hw/contract/heddle.toml"),
               str(root / "hw/contract/gen"), str(root / "docs"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    if run.returncode:
        yield f"hw/contract/heddle.toml:1: {run.stderr.strip()}"


def check_format(root, _build):
    names = handwritten(root, *CXX)
    if not names:
        return
    run = subprocess.run(["clang-format", "--dry-run", "--Werror", *names], cwd=root, capture_output=True, text=True)
    if run.returncode:
        yield from (line for line in run.stderr.splitlines() if ": error:" in line)


def is_analyzed(name):
    # The analyzer looks at what users run, not at wires, Verilated NICs and measurements.
    return not name.startswith(("hw/sim/", "bench/"))


def run_tidy(path, root, database, analyzed):
    """Complaints about a file, and whether the compiler has none."""
    # The public headers are C and keep to libfabric's names.
    run = subprocess.run(["clang-tidy", "--quiet", "-p", str(database), "--header-filter", TIDY_HEADERS,
                          *([] if analyzed else ["--checks=-clang-analyzer-*"]), str(path)],
                         cwd=root, capture_output=True, text=True)
    found = [line.removeprefix(f"{root}/") for line in run.stdout.splitlines()
             if re.search(r": (error|warning):", line)]
    if run.returncode and not found:
        found = [f"{path}:1: {run.stderr.strip()}"]
    return found, "[clang-diagnostic-" not in run.stdout


def tidy_arguments(entry):
    """The command without arguments of the other compiler alone."""
    return {**entry, "command": re.sub(r"^.*?ccache ", "", entry["command"])}


def tidy_groups(names, entries, root):
    """Files of one folder and target, compiled alike, a few at a time; most work first."""
    groups = {}
    for name in names:
        entry = entries[str(root / name)]
        alike = entry["command"].replace(entry["file"], "").replace(os.path.basename(name), "")
        groups.setdefault((os.path.dirname(name), alike, is_analyzed(name)), []).append(name)
    parts = []
    for together in groups.values():
        count = -(-len(together) // MOST_TOGETHER)
        parts += [together[i::count] for i in range(count)]
    return sorted(parts, key=lambda part: -sum((root / n).stat().st_size for n in part))


class TidyGroup:
    """Several files as one: the headers of a file cost several times what the file does. A file that does not go
    together with the others, since both give something the same name, is looked at by itself."""

    def __init__(self, names, number, own, entry, root):
        self.names, self.root = names, root
        self.path = own / os.path.dirname(names[0]) / f"{number}.cc"
        self.first_lines, texts, line = [], [], 1
        for name in names:
            text = (root / name).read_text()
            text += "" if text.endswith("\n") else "\n"
            self.first_lines.append(line)
            texts.append(text)
            line += text.count("\n")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(texts))
        command = entry["command"].replace(entry["file"], str(self.path))
        self.entry = {**entry, "file": str(self.path), "command": command}

    def where(self, complaint):
        """The complaint with the name and line of the file that it is about."""
        match = re.match(re.escape(str(self.path).removeprefix(f"{self.root}/")) + r":(\d+)(:.*)", complaint)
        if not match:
            return complaint
        line = int(match[1])
        index = bisect.bisect_right(self.first_lines, line) - 1
        return f"{self.names[index]}:{line - self.first_lines[index] + 1}{match[2]}"

    def complaints(self, database):
        analyzed = is_analyzed(self.names[0])
        found, compiled = run_tidy(self.path, self.root, database, analyzed)
        if compiled:
            return [self.where(line) for line in found]
        return [line for n in self.names for line in run_tidy(n, self.root, database, analyzed)[0]]


def check_tidy(root, build):
    """Every .cc of the product. Tests are left out: GoogleTest's macros make
    them as slow as all the rest together."""
    database = build / "compile_commands.json"
    if not database.exists():
        raise CannotRun(f"no {database}; run cmake first")
    entries = {e["file"]: tidy_arguments(e) for e in reversed(json.loads(database.read_text()))}
    own = build / "tidy"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir()
    names = [n for n in handwritten(root, ".cc") if not n.startswith("tests/") and str(root / n) in entries]
    for rules in files(root, ".clang-tidy"):
        (own / rules).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / rules, own / rules)
    groups = [TidyGroup(part, i, own, entries[str(root / part[0])], root)
              for i, part in enumerate(tidy_groups(names, entries, root))]
    (own / "compile_commands.json").write_text(json.dumps([*entries.values(), *(g.entry for g in groups)]))
    if (build / "build.ninja").exists():
        subprocess.run(["cmake", "--build", str(build), "--target", "heddle_model_sources"], check=True,
                       stdout=subprocess.DEVNULL)
    seen = set()  # A header complains in every group that includes it.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for complaints in pool.map(lambda g: g.complaints(own), groups):
            yield from (c for c in complaints if c not in seen)
            seen.update(complaints)
