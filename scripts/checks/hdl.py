# SPDX-License-Identifier: Apache-2.0
"""Checks of the RTL; each yields its complaints."""

import base64
import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import tarfile

import qualify_packages
from source import CannotRun

TOP = "heddle_nic"
WIDTHS = (64, 128, 256, 512)
# Yosys takes minutes, not seconds, for what Verilator has read at every width.
YOSYS_WIDTH = 512
SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
YOSYS = "0.55.944"
YOSYS_SHA512 = "O9yjd529cPb8R+FO7gpQRw658yGjApBN9JiqMg21+5tONXrGhF9EygKF/vDXrHvoYerYU7QqxIK05tQDhPYgPQ=="


def packages(root):
    rtl = root / "hw/rtl"
    first = [root / "hw/contract/gen/heddle_contract_pkg.sv", rtl / "heddle_pkg.sv"]
    return [p for p in first if p.exists()] + sorted(rtl.glob("*/*_pkg.sv"))


def top_file(root):
    path = root / f"hw/rtl/{TOP}.sv"
    if not path.exists():
        raise CannotRun(f"no {path.relative_to(root)}")
    return path


def check_verilator(root, _build):
    """No warning, at every width; modules are found by file name."""
    rtl = root / "hw/rtl"
    directories = [rtl, *sorted(p for p in rtl.iterdir() if p.is_dir())]
    search = [word for d in directories for word in ("-y", str(d))]
    for width in WIDTHS:
        command = ["verilator", "--lint-only", "-Wall", "--assert", "--no-timing", "--top-module", TOP,
                   f"-GDataW={width}", f"-I{rtl / 'common'}", *search, str(root / "hw/rtl/lint/waivers.vlt"),
                   *map(str, packages(root)), str(top_file(root))]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode or run.stderr:
            yield f"hw/rtl: verilator at {width} bits:\n{run.stderr.strip()}"


def fetch_yosys(build):
    """Folder of npm's @yowasp/yosys, from the registry once and then from build/."""
    folder = build / "yosys" / YOSYS
    if (folder / "gen/bundle.js").exists():
        return folder
    if not shutil.which("npm"):
        raise CannotRun("no npm to fetch @yowasp/yosys; Debian's Yosys 0.23 cannot read packed arrays")
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    run = subprocess.run(["npm", "pack", "--silent", f"@yowasp/yosys@{YOSYS}", "--pack-destination", str(partial)],
                         capture_output=True, text=True, cwd=partial)
    archives = list(partial.glob("*.tgz"))
    if run.returncode or len(archives) != 1:
        raise CannotRun(f"npm pack @yowasp/yosys@{YOSYS}: {run.stderr.strip() or run.stdout.strip()}")
    archive = archives[0].read_bytes()
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != YOSYS_SHA512:
        raise CannotRun(f"@yowasp/yosys@{YOSYS} is not the file that this check was written for")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(partial)
    (partial / "package").rename(folder)
    shutil.rmtree(partial)
    return folder


def run_yosys(folder, script, sources, written_to):
    """Runs a script on sources; the files that it writes land in a folder."""
    if not shutil.which("node"):
        raise CannotRun("no node to run @yowasp/yosys")
    command = ["node", str(SCRIPTS / "yosys.mjs"), str(folder), str(written_to), script, *map(str, sources)]
    return subprocess.run(command, capture_output=True, text=True)


def type_widths(folder, packages_file, types):
    """Bits of each type: Yosys 0.55 supports `$bits` of an expression only."""
    probe = packages_file.with_name("widths.sv")
    ports = ", ".join(f"input {t} w_{t.split('::')[1]}" for t in sorted(types))
    probe.write_text(f"module widths({ports}); endmodule\n")
    run = run_yosys(folder, "read_verilog -sv packages.sv widths.sv; proc; write_json", [packages_file, probe],
                    packages_file.parent)
    if run.returncode:
        raise ValueError(run.stderr)
    netlist = json.loads(run.stdout[run.stdout.index("{"):])
    ports = netlist["modules"]["widths"]["ports"]
    return {t: len(ports[f"w_{t.split('::')[1]}"]["bits"]) for t in types}


def measure_own_types(text):
    """`$bits` of a type that the module declares, through a signal of the type."""
    for name in set(re.findall(r"\$bits\(\s*(\w+_[te])\s*\)", text)):
        text, declared = re.subn(rf"(\}}\s*{name}\s*;|\btypedef\b[^;{{]*\b{name}\s*;)", rf"\1 {name} bits_of_{name};", text)
        if declared != 1:
            raise ValueError(f"$bits({name}): no declaration of the type found")
        text = re.sub(rf"\$bits\(\s*{name}\s*\)", f"$bits(bits_of_{name})", text)
    return text


def write_plain_sources(root, folder, work):
    """Writes the RTL as Yosys 0.55 reads it: its packages as one, packages.sv, and widths of types as numbers.

    Returns the names of the modules' files. Raises ValueError where a type cannot be measured.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    rtl = root / "hw/rtl"
    modules = [p for p in sorted(rtl.rglob("*.sv")) if p not in packages(root)]
    qualify_packages.main([str(work), *map(str, [*packages(root), *modules, *sorted(rtl.rglob("*.svh"))])])
    bits = re.compile(rf"\$bits\(\s*({qualify_packages.MERGED}::\w+_[te])\s*\)")
    texts = {p.name: (work / p.name).read_text() for p in modules}
    types = {t for text in texts.values() for t in bits.findall(text)}
    widths = type_widths(folder, work / "packages.sv", types) if types else {}
    for name, text in texts.items():
        text = bits.sub(lambda m: str(widths[m.group(1)]), text)
        (work / name).write_text(measure_own_types(text))
    return list(texts)


def check_yosys(root, build):
    """Reads and elaborates everything below the top; nothing is simulated."""
    top_file(root)
    folder = fetch_yosys(build)
    work = build / "yosys/rtl"
    try:
        names = write_plain_sources(root, folder, work)
    except ValueError as error:
        yield f"hw/rtl: yosys: {error}"
        return
    script = (f"read_verilog -sv packages.sv {' '.join(names)}; chparam -set DataW {YOSYS_WIDTH} {TOP}; "
              f"hierarchy -check -top {TOP}; proc; check -assert")
    headers = sorted((root / "hw/rtl").rglob("*.svh"))
    run = run_yosys(folder, script, [work / "packages.sv", *(work / n for n in names), *headers], work)
    errors = [line for line in run.stderr.splitlines() if "ERROR" in line or "Warning" in line]
    if run.returncode:
        yield f"hw/rtl: yosys at {YOSYS_WIDTH} bits: " + "\n".join(errors[-20:] or [run.stderr])
