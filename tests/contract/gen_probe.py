#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the two sides of the contract's cross-language proof.

Usage: gen_probe.py heddle.toml OUT_DIR

contract_probe.sv shows every field of every layout, and every constant, by
number; probe_table.h reads the same by the same number through the C++ headers.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "hw/contract"))

from generator import model, names, systemverilog  # noqa: E402

LICENCE = "// SPDX-License-Identifier: Apache-2.0"


def struct_fields(spec):
    """(layout, bytes, SV expression, C++ expression, bits, no selector)."""
    for s in spec["struct"]:
        for f in s["fields"]:
            for i in range(f.get("count", 1)):
                index = f"[{i}]" if "count" in f else ""
                yield (s["name"], s["bytes"], f"{s['name']}.{names.sv_field(f['name'])}{index}",
                       f"Struct<contract::{names.camel(s['name'])}>(in).{f['name']}{index}",
                       8 * f["bytes"], (0, 0, 0))


def selector_of(wire, case):
    """(bit, bits, value) of the selector, or no bits."""
    bit = 0
    select = next((f for f in wire["fields"] if "select" in f), None)
    for f in wire["fields"]:
        if select and f.get("name") == select["select"]:
            return bit, f["bits"], case
        bit += f["bits"]
    return 0, 0, 0


def wire_fields(spec):
    for w in spec["wire"]:
        select = next((f for f in w["fields"] if "select" in f), None)
        cases = [c["value"] for c in select["cases"]] if select else [0]
        for case, (variant, fields) in zip(cases, systemverilog.wire_variants(w)):
            for f in fields:
                yield (variant, w["bytes"], f"{variant}_h.{names.sv_field(f['name'])}",
                       f"contract::wire::{names.camel(w['name'])}::Decode(in).{f['name']}",
                       f["bits"], selector_of(w, case))


def constants(spec):
    """(SV name, C++ expression)."""
    yield "ContractMajor", "kContractMajor"
    yield "ContractMinor", "kContractMinor"
    yield "ContractHash", "kContractHash"
    for p in spec["parameter"]:
        yield names.camel(p["name"]), f"k{names.camel(p['name'])}"
    for e in spec["enum"]:
        enum = names.camel(e["name"])
        for v in e["values"]:
            value = names.camel(v["name"])
            yield enum + value, f"k{enum}{value}" if e.get("flags") else f"{enum}::k{value}"
    for r in spec["register"]:
        name = names.register(r)
        both = [f"{name}Offset"] + [f"{name}{x}" for x in ("Count", "Stride") if "count" in r]
        both += [f"{name}Reset"] if "reset" in r else []
        for f in r.get("fields", []):
            both += [f"{name}{names.camel(f['name'])}{x}" for x in ("Lsb", "Bits", "Mask")]
        yield from ((n, f"k{n}") for n in both)
    for w in spec["wire"]:
        name = names.camel(w["name"])
        yield f"{name}Bytes", f"wire::{name}::kBytes"


def sv(spec, fields, values):
    package = f"{spec['contract']['name']}_contract_pkg"
    width = 8 * max(s["bytes"] for s in spec["struct"])
    wire_width = 8 * max(w["bytes"] for w in spec["wire"])
    out = [LICENCE, f"module contract_probe import {package}::*; (",
           f"  input  logic [{width - 1}:0] host_i,  // Byte 0 in the low bits.",
           f"  input  logic [{wire_width - 1}:0] wire_i,  // Byte 0 in the high bits.",
           "  input  logic [15:0] index_i,", "  output logic [63:0] field_o,", "  output logic [63:0] constant_o", ");"]
    for s in spec["struct"]:
        out += [f"  {s['name']}_t {s['name']};", f"  assign {s['name']} = host_i[{8 * s['bytes'] - 1}:0];"]
    for w in spec["wire"]:
        for variant, _ in systemverilog.wire_variants(w):
            out += [f"  {variant}_t {variant}_h;", f"  assign {variant}_h = wire_i[{wire_width - 1}-:{8 * w['bytes']}];"]
    out += ["  always_comb begin", "    unique case (index_i)"]
    out += [f"      16'd{i}: field_o = 64'($unsigned({f[2]}));" for i, f in enumerate(fields)]
    out += ["      default: field_o = '0;", "    endcase", "    unique case (index_i)"]
    out += [f"      16'd{i}: constant_o = 64'({name});" for i, (name, _) in enumerate(values)]
    return "\n".join(out + ["      default: constant_o = '0;", "    endcase", "  end", "endmodule", ""])


def cc(fields, values):
    out = [LICENCE, "#pragma once", "// clang-format off", "inline constexpr Field kFields[] = {"]
    for variant, size, expression, read, bits, (bit, width, value) in fields:
        wire = "true" if "::wire::" in read else "false"
        out += [f'  {{"{variant}: {expression}", {size}, {wire}, {bits}, {bit}, {width}, {value},',
                f"   [](const uint8_t* in) {{ return static_cast<uint64_t>({read}); }}}},"]
    out += ["};", "inline constexpr Constant kConstants[] = {"]
    out += [f'  {{"{name}", static_cast<uint64_t>(contract::{value})}},' for name, value in values]
    return "\n".join(out + ["};", ""])


def main():
    spec = model.load(pathlib.Path(sys.argv[1]))
    out_dir = pathlib.Path(sys.argv[2])
    fields = [*struct_fields(spec), *wire_fields(spec)]
    values = list(constants(spec))
    (out_dir / "contract_probe.sv").write_text(sv(spec, fields, values))
    (out_dir / "probe_table.h").write_text(cc(fields, values))


if __name__ == "__main__":
    main()
