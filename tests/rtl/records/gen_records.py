#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C++ view of the packed structs, enums and constants of SystemVerilog packages.

Usage: gen_records.py --output HEADER [--verilator PROGRAM] [--contract PACKAGE=HEADER] [--include DIR] PACKAGE.sv...

Verilator reads the packages; packed.h moves what the header defines to and from
ports. Each typedef keeps its name (`dma_req_t` becomes DmaReq), its fields keep
theirs:

  logic                     bool
  logic [N:0], up to 64     the smallest unsigned integer
  logic [127:0] fa          uint64_t fa_hi, fa_lo (65 to 128 bits)
  logic [575:0]             Wide<576>
  an enum                   enum class without the prefix that its values share
  a struct                  a struct
  [N:0] of these            std::array, element 0 at the lower index

Structs and enums of PACKAGE that HEADER defines are used from there; others of it
are written if a record contains them. Declarations without a C++ view (unions,
signed vectors, ...) are left out; a comment gives the reason.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

KEYWORDS = set("""
alignas alignof and asm auto bool break case catch char class concept const constexpr continue decltype default delete do
double else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
nullptr operator or private protected public register requires return short signed sizeof static struct switch template
this throw true try typedef typeid typename union unsigned using virtual void volatile while xor
""".split())


class NoView(Exception):
    """A declaration without a C++ view; the text is the reason."""


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def type_name(name):
    return camel(re.sub(r"_[te]$", "", name))


def constant_name(name):
    return f"k{name[0].upper()}{name[1:]}"


def field_name(name):
    return name + "_" if name in KEYWORDS else name


def uint(bits):
    return f"uint{next(size for size in (8, 16, 32, 64) if bits <= size)}_t"


def value(const):
    """A constant as Verilator prints it: 32'shff."""
    match = re.fullmatch(r"(\d+)'(s?)h([0-9a-f]+)", const)
    if not match:
        raise NoView(f"{const} is no integer")
    return int(match.group(3), 16)


def place(element):
    """File, line and column."""
    file, line, column = element.get("loc").split(",")[:3]
    return file, int(line), int(column)


def range_of(element):
    left, right = (value(const.get("name")) for const in element.find("range"))
    return left, right


class Contract:
    """The package that has a C++ view of its own, and what that defines."""

    def __init__(self, argument):
        self.package, _, self.header = argument.partition("=")
        text = pathlib.Path(self.header).read_text() if self.header else ""
        self.names = set(re.findall(r"^(?:struct|enum class) (\w+)", text, re.M))

    def defines(self, name):
        package, own = name.split("::")
        return package == self.package and type_name(own) in self.names


class Types:
    """The type table of a netlist."""

    def __init__(self, tree, contract):
        self.contract = contract
        table = tree.find("netlist/typetable")
        self.by_id = {element.get("id"): element for element in table}
        self.references = [(place(e), e) for e in table if e.tag in ("refdtype", "basicdtype", "packarraydtype", "structdtype")]
        self.enums = {e.get("name"): e for e in table.iter("enumdtype") if e.get("name")}

    def width(self, element):
        tag = element.tag
        if tag == "basicdtype":
            if element.get("left") is None:
                if element.get("name") not in ("logic", "bit"):
                    raise NoView(f"{element.get('name')} is no vector")
                return 1
            return abs(int(element.get("left")) - int(element.get("right"))) + 1
        if tag == "packarraydtype":
            left, right = range_of(element)
            return (abs(left - right) + 1) * self.width(self.by_id[element.get("sub_dtype_id")])
        if tag == "structdtype":
            return sum(self.width(self.by_id[m.get("sub_dtype_id")]) for m in element)
        if tag in ("refdtype", "enumdtype"):
            return self.width(self.by_id[element.get("sub_dtype_id")])
        raise NoView(f"{tag.removesuffix('dtype')} is not supported")

    def between(self, before, member):
        """Types that stand in the source between two members."""
        return [e for where, e in self.references if where[0] == before[0] and before < where < place(member)]

    def enum_named(self, package, name):
        own = f"{package}::{name}"
        found = [own] if own in self.enums else [n for n in self.enums if n.split("::")[-1] == name]
        if len(found) > 1:
            raise NoView(f"{name} is declared in several packages")
        return found[0] if found else None

    def qualified(self, name):
        return ("contract::" if self.contract.defines(name) else "") + type_name(name.split("::")[1])


class Field:
    def __init__(self, name, kind, low, bits):
        self.name, self.kind, self.low, self.bits = name, kind, low, bits


def kind_of(types, element, enum):
    """C++ type of a member that stands for itself."""
    tag = element.tag
    if tag == "refdtype":
        return kind_of(types, types.by_id[element.get("sub_dtype_id")], enum)
    if tag == "structdtype":
        if not element.get("name"):
            raise NoView("a struct without a typedef")
        return types.qualified(element.get("name"))
    if tag == "packarraydtype":
        left, right = range_of(element)
        element_kind = kind_of(types, types.by_id[element.get("sub_dtype_id")], enum)
        if left < right:
            raise NoView("an array that counts up")
        return f"std::array<{element_kind}, {left - right + 1}>"
    bits = types.width(element)
    if enum:
        return types.qualified(enum)
    if element.get("signed"):
        raise NoView("a signed vector")
    if element.get("name") in ("logic", "bit") and element.get("left") is None:
        return "bool"
    return uint(bits) if bits <= 64 else f"Wide<{bits}>"


def fields_of(types, struct):
    """Fields, the most significant first."""
    package = struct.get("name").split("::")[0]
    fields, low, before, enum = [], types.width(struct), place(struct), None
    for member in struct:
        element = types.by_id[member.get("sub_dtype_id")]
        bits = types.width(element)
        low -= bits
        name = member.get("name")
        try:
            # Verilator resolves an enum to its bits, but keeps the reference. One type may declare several fields.
            if declared := types.between(before, member):
                names = [e.get("name") for e in declared if e.tag == "refdtype"]
                enum = types.enum_named(package, names[0]) if names else None
            before = place(member)
            kind = kind_of(types, element, enum)
        except NoView as reason:
            raise NoView(f"field {name}: {reason}") from None
        if kind.startswith("Wide<") and bits <= 128:
            fields += [Field(f"{name}_hi", "uint64_t", low + 64, bits - 64), Field(f"{name}_lo", "uint64_t", low, 64)]
        else:
            fields.append(Field(field_name(name), kind, low, bits))
    return fields


def write_struct(types, struct):
    name = type_name(struct.get("name").split("::")[1])
    fields = fields_of(types, struct)
    out = [f"// {struct.get('name')}", f"struct {name} {{", f"  static constexpr size_t kBits = {types.width(struct)};", ""]
    out += [f"  {field.kind} {field.name} = {{}};" for field in fields]
    out += ["", "  template <typename Record, typename Visit>", "  static void Fields(Record& record, Visit&& visit) {"]
    out += [f'    visit("{f.name}", record.{f.name}, {f.low}, {f.bits});' for f in fields]
    return [*out, "  }", "};"]


def without_prefix(names):
    """Names without the words that all of them begin with."""
    words = [re.findall(r"[A-Z][^A-Z]*|^[^A-Z]+", name) for name in names]
    common = 0
    while len(names) > 1 and all(len(w) > common + 1 and w[common] == words[0][common] for w in words):
        common += 1
    return ["".join(w[common:]) for w in words]


def write_enum(types, enum):
    items = enum.findall("enumitem")
    bits = types.width(enum)
    if bits > 64:
        raise NoView("an enum of more than 64 bits")
    names = without_prefix([item.get("name") for item in items])
    out = [f"// {enum.get('name')}", f"enum class {type_name(enum.get('name').split('::')[1])} : {uint(bits)} {{"]
    out += [f"  k{name} = {value(item.find('const').get('name'))}," for name, item in zip(names, items)]
    return [*out, "};"]


def write_constant(types, var):
    element = types.by_id[var.get("dtype_id")]
    bits = types.width(element)
    if var.find("const") is None:
        raise NoView("not a plain constant")
    if bits > 64:
        raise NoView(f"a constant of {bits} bits")
    number = value(var.find("const").get("name"))
    kind = "bool" if bits == 1 else uint(bits)
    if element.get("signed"):
        kind, number = kind.removeprefix("u"), number - (number >> bits - 1 << bits)
    literal = ("true" if number else "false") if kind == "bool" else str(number) + ("" if element.get("signed") else "u")
    return [f"inline constexpr {kind} {constant_name(var.get('name'))} = {literal};"]


def declarations(tree, contract):
    """(element, writer) of each constant, enum and struct, after what they need."""
    for package in sorted(tree.iter("package"), key=place):
        if package.get("name") != contract.package:
            yield from ((var, write_constant) for var in package.findall("var")
                        if var.get("localparam") or var.get("param"))
    writers = {"enumdtype": write_enum, "structdtype": write_struct}
    for element in tree.find("netlist/typetable"):
        name = element.get("name") or ""
        if "::" in name and element.tag in writers and not contract.defines(name):
            yield element, writers[element.tag]


def header(tree, contract):
    types = Types(tree, contract)
    written, missing = {}, set()  # C++ name: its text.
    for element, write in declarations(tree, contract):
        name = element.get("name")
        own = type_name(name.split("::")[1]) if "::" in name else constant_name(name)
        try:
            text = write(types, element)
            if needed := missing.intersection(re.findall(r"\w+", " ".join(text[1:]))):
                raise NoView(f"{min(needed)} has none")
        except NoView as reason:
            missing.add(own)
            text = [f"// No view of {name}: {reason}."]
        if own in written:
            raise SystemExit(f"gen_records.py: {name}: there is another {own}")
        written[own] = (text, name.startswith(f"{contract.package}::"))
    used = " ".join(line for text, optional in written.values() if not optional for line in text)
    body = []
    for own, (text, optional) in written.items():
        if not optional or re.search(rf"\b{own}\b", used):
            body += text if len(text) == 1 else ["", *text]
    return "\n".join([
        "// SPDX-License-Identifier: Apache-2.0",
        "// Generated by tests/rtl/records/gen_records.py.",
        "#pragma once", "",
        "#include <array>", "#include <cstddef>", "#include <cstdint>", "",
        *([f'#include "{contract.header}"'] if contract.header else []),
        '#include "tests/rtl/records/packed.h"', "",
        "namespace heddle::rtl {", "", *body, "", "}  // namespace heddle::rtl", ""])


def user_of(sources):
    """A module with a variable of a type of each package: Verilator drops a package that nothing refers to."""
    variables = []
    for source in sources:
        text = re.sub(r"//.*|/\*.*?\*/", "", pathlib.Path(source).read_text())
        for package, body in re.findall(r"\bpackage\s+(\w+)(.*?)\bendpackage\b", text, re.S):
            if names := re.findall(r"\}\s*(\w+)\s*;", body):  # The last one is no field.
                variables.append(f"  {package}::{names[-1]} {package}_user;")
    return "\n".join(["module records_user;", *variables, "endmodule", ""])


def elaborate(verilator, sources, include):
    """The netlist of the packages. The models report the warnings of Verilator."""
    with tempfile.TemporaryDirectory() as directory:
        output, user = pathlib.Path(directory) / "packages.xml", pathlib.Path(directory) / "records_user.sv"
        user.write_text(user_of(sources))
        command = [verilator, "--xml-only", "--xml-output", str(output), "--Mdir", directory, "-Wno-lint", "-Wno-style",
                   "-Wno-fatal", *(f"-I{path}" for path in include), *sources, str(user)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return ElementTree.parse(output)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--verilator", default="verilator")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--contract", default="")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("sources", nargs="+")
    arguments = parser.parse_args()
    text = header(elaborate(arguments.verilator, arguments.sources, arguments.include), Contract(arguments.contract))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
