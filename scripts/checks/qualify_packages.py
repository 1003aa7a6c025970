#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites SystemVerilog packages and their users for Yosys.

Usage: qualify_packages.py OUT_DIR FILE...

Yosys 0.55 reads one package and `pkg::name`, but neither `import` nor a package
that uses another. So all packages, in the order given, become one package in
`packages.sv`, and a name that an imported package declares is scoped, unless
the importing file declares the same name itself or it follows a dot. Line
numbers of the other files stay the same.
"""

import pathlib
import re
import sys

MERGED = "merged_pkg"
PACKAGE = re.compile(r"^\s*package\s+(\w+)\s*;(.*)^\s*endpackage\b[^\n]*", re.M | re.S)
IMPORT = re.compile(r"\bimport\s+(?:\w+::\*\s*,?\s*)+;")
IMPORTED = re.compile(r"(\w+)::\*")
DECLARATION = re.compile(
    r"\b(?:localparam|parameter)\b[^=;]*?(\w+)\s*="
    r"|\}\s*(\w+_t|\w+_e)\s*;"
    r"|\btypedef\s+[^;{]*?(\w+)\s*;"
    r"|\bfunction\s+automatic\b[^;(]*?(\w+)\s*[;(]")
ENUM = re.compile(r"\benum\b[^{]*\{([^}]*)\}")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|`\w+|\'[bdhosBDHOS]+\w*'
                   r"|(?:\.\s*)?\b[A-Za-z_]\w*\b(?:\s*::\s*\w+)?", re.S)


def declared(text):
    text = COMMENT.sub("", text)
    names = {name for groups in DECLARATION.findall(text) for name in groups if name}
    for body in ENUM.findall(text):
        names |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
    return names


def qualify(text, packages):
    """`text` of a file that is no package, its package names scoped."""
    imported = [p for m in IMPORT.findall(text) for p in IMPORTED.findall(m)]
    text = IMPORT.sub(lambda m: "\n" * m.group().count("\n"), text)
    own = declared(text)
    scope = {name for p in imported for name in packages.get(p, ())} - own

    def scoped(match):
        word = match.group()
        package, _, name = word.partition("::")
        if name and package.strip() in packages:
            return f"{MERGED}::{name.strip()}"
        return f"{MERGED}::{word}" if word in scope else word

    return TOKEN.sub(scoped, text)


def merge(bodies):
    """One package with the contents of all, which refer to each other freely."""
    text = IMPORT.sub("", "\n".join(body for _, body in bodies))
    for name, _ in bodies:
        text = re.sub(rf"\b{name}\s*::\s*", "", text)
    # A name that the scoping missed is an error, not a wire of one bit.
    return f"package {MERGED};\n{text}\nendpackage\n`default_nettype none\n"


def main(arguments):
    out_dir = pathlib.Path(arguments[0])
    out_dir.mkdir(parents=True, exist_ok=True)
    sources = [(pathlib.Path(a), pathlib.Path(a).read_text()) for a in arguments[1:]]
    bodies = [m.groups() for _, text in sources if (m := PACKAGE.search(text))]
    packages = {name: declared(body) for name, body in bodies}
    clashes = sum(map(len, packages.values())) - len(set().union(*packages.values()))
    if clashes:
        sys.exit(f"{clashes} names are declared by more than one package")
    (out_dir / "packages.sv").write_text(merge(bodies))
    for path, text in sources:
        if not PACKAGE.search(text):
            (out_dir / path.name).write_text(qualify(text, packages))


if __name__ == "__main__":
    main(sys.argv[1:])
