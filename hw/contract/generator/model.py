# SPDX-License-Identifier: Apache-2.0
"""Loads the contract and refuses what is ambiguous or incomplete."""

import hashlib
import json
import tomllib

from generator import names

# Keys an entry may have; the first group is required.
KEYS = {
    "contract": ("name major minor", ""),
    "parameter": ("name value unit doc", ""),
    "enum": ("name bits doc values", "flags"),
    "value": ("name value doc", ""),
    "space": ("name bytes doc", ""),
    "register": ("space name offset bits access doc",
                 "reset count stride fields pages"),
    "register field": ("name lsb bits unit doc", ""),
    "struct": ("name bytes doc fields", ""),
    "struct field": ("name offset bytes doc", "unit enum flags count"),
    "wire": ("name bytes doc fields", ""),
    "wire field": ("name bits doc", "unit enum signed"),
    "select": ("select bits cases", ""),
    "case": ("value fields", ""),
}


class ContractError(Exception):
    """The contract could mean two things, or leaves something out."""


def require(condition, message):
    if not condition:
        raise ContractError(message)


def check_keys(kind, entry, where):
    required, optional = (set(group.split()) for group in KEYS[kind])
    missing = required - set(entry)
    require("doc" not in missing, f"{where}: no doc")
    require(not missing, f"{where}: no {', '.join(sorted(missing))}")
    unknown = set(entry) - required - optional
    require(not unknown, f"{where}: unknown key {', '.join(sorted(unknown))}")
    require(entry.get("doc", "x").strip(), f"{where}: no doc")
    require(entry.get("unit", "x").strip(), f"{where}: no unit")
    if "name" in entry:
        legal = names.legal_field if kind in ("struct field", "wire field") else names.legal
        require(legal(entry["name"]), f"{where}: not lower_snake, or a C++ keyword")


def check_unique(values, where, what):
    seen = set()
    for value in values:
        require(value not in seen, f"{where}: duplicate {what} {value}")
        seen.add(value)


def check_parameter(parameter):
    where = f"parameter {parameter.get('name')}"
    check_keys("parameter", parameter, where)
    require(0 <= parameter["value"] < 1 << 64, f"{where}: not a 64-bit value")


def check_enum(enum):
    where = f"enum {enum.get('name')}"
    check_keys("enum", enum, where)
    require(1 <= enum["bits"] <= 64, f"{where}: 1 to 64 bits")
    for value in enum["values"]:
        at = f"{where}.{value.get('name')}"
        check_keys("value", value, at)
        number = value["value"]
        require(0 <= number < 1 << enum["bits"], f"{at}: does not fit {enum['bits']} bits")
        require(not enum.get("flags") or number.bit_count() == 1, f"{at}: a flag is one bit")
    check_unique((v["name"] for v in enum["values"]), where, "name")
    check_unique((v["value"] for v in enum["values"]), where, "value")


def check_register(register, spaces):
    where = f"register {register.get('name')}"
    check_keys("register", register, where)
    require(register["space"] in spaces, f"{where}: unknown space {register['space']}")
    require(register["bits"] in (32, 64), f"{where}: 32 or 64 bits")
    require(register["access"] in ("ro", "rw", "wo"), f"{where}: access is ro, rw or wo")
    require(0 <= register.get("reset", 0) < 1 << register["bits"], f"{where}: reset too wide")
    size = register["bits"] // 8
    require(register["offset"] % size == 0, f"{where}: misaligned")
    require(("count" in register) == ("stride" in register), f"{where}: count and stride go together")
    stride = register.get("stride", size)
    require(stride >= size and stride % size == 0, f"{where}: stride overlaps or is misaligned")
    end = register["offset"] + stride * register.get("count", 1)
    require(end <= spaces[register["space"]]["bytes"], f"{where}: outside its space")
    fields = register.get("fields", [])
    last = 0
    for field in fields:
        at = f"{where}.{field.get('name')}"
        check_keys("register field", field, at)
        require(field["bits"] >= 1, f"{at}: no bits")
        require(field["lsb"] >= last, f"{at}: overlap")
        last = field["lsb"] + field["bits"]
        require(last <= register["bits"], f"{at}: wider than the register")
    check_unique((f["name"] for f in fields), where, "name")


def check_register_overlap(registers):
    """Registers with different `pages` share offsets, on pages of their own."""

    def span(register):
        size = register.get("stride", register["bits"] // 8) * register.get("count", 1)
        return register["offset"], register["offset"] + size

    for i, one in enumerate(registers):
        for other in registers[:i]:
            apart = one.get("pages") and other.get("pages") and one["pages"] != other["pages"]
            if one["space"] != other["space"] or apart:
                continue
            (a, a_end), (b, b_end) = span(one), span(other)
            require(a_end <= b or b_end <= a,
                    f"register {one['name']}: overlap with {other['name']}")


def check_enum_reference(field, key, bits, enums, where):
    if key not in field:
        return
    enum = enums.get(field[key])
    require(enum is not None, f"{where}: unknown enum {field[key]}")
    require(bool(enum.get("flags")) == (key == "flags"),
            f"{where}: {field[key]} is {'' if enum.get('flags') else 'not '}an enum of flags")
    require(enum["bits"] == bits, f"{where}: {field[key]} has {enum['bits']} bits, the field {bits}")


def check_struct(struct, enums):
    where = f"struct {struct.get('name')}"
    check_keys("struct", struct, where)
    end = 0
    for field in struct["fields"]:
        at = f"{where}.{field.get('name')}"
        check_keys("struct field", field, at)
        size = field["bytes"]
        require(size in (1, 2, 4, 8), f"{at}: 1, 2, 4 or 8 bytes")
        require(field["offset"] >= end, f"{at}: overlap")
        require(field["offset"] == end, f"{at}: gap")
        require(field["offset"] % size == 0, f"{at}: misaligned")
        require("enum" not in field or "flags" not in field, f"{at}: enum and flags")
        require("count" not in field or ("enum" not in field and field["count"] >= 2),
                f"{at}: an array has at least two plain elements")
        check_enum_reference(field, "enum", 8 * size, enums, at)
        check_enum_reference(field, "flags", 8 * size, enums, at)
        end += size * field.get("count", 1)
    require(end == struct["bytes"], f"{where}: fields fill {end} of {struct['bytes']} bytes")
    check_unique((f["name"] for f in struct["fields"]), where, "name")


def check_wire_field(field, enums, where):
    at = f"{where}.{field.get('name')}"
    check_keys("wire field", field, at)
    require(1 <= field["bits"] <= 64, f"{at}: 1 to 64 bits")
    require(not (field.get("signed") and "enum" in field), f"{at}: a signed enum")
    check_enum_reference(field, "enum", field["bits"], enums, at)
    return field["bits"]


def check_wire(wire, enums):
    where = f"wire {wire.get('name')}"
    check_keys("wire", wire, where)
    total, seen, selects = 0, [], 0
    for entry in wire["fields"]:
        if "select" not in entry:
            total += check_wire_field(entry, enums, where)
            seen.append(entry)
            continue
        selects += 1
        at = f"{where} select {entry['select']}"
        check_keys("select", entry, at)
        selector = [f for f in seen if f["name"] == entry["select"]]
        require(selector, f"{at}: the selector is not an earlier field")
        for case in entry["cases"]:
            check_keys("case", case, at)
            require(0 <= case["value"] < 1 << selector[0]["bits"], f"{at}: case {case['value']} cannot occur")
            bits = sum(check_wire_field(f, enums, where) for f in case["fields"])
            require(bits == entry["bits"], f"{at}: case {case['value']} has {bits} of {entry['bits']} bits")
        check_unique((c["value"] for c in entry["cases"]), at, "value")
        require(len(entry["cases"]) >= 2, f"{at}: one case is no choice")
        seen += [f for case in entry["cases"] for f in case["fields"]]
        total += entry["bits"]
    require(selects <= 1, f"{where}: more than one select")
    require(total == 8 * wire["bytes"], f"{where}: fields fill {total} of {8 * wire['bytes']} bits")
    check_unique((f["name"] for f in seen), where, "name")


def check(spec):
    """Raises ContractError for a contract that could mean two things."""
    kinds = ("parameter", "enum", "space", "register", "struct", "wire")
    unknown = set(spec) - set(kinds) - {"contract"}
    require(not unknown, f"unknown table {', '.join(sorted(unknown))}")
    for kind in kinds:
        spec.setdefault(kind, [])
    check_keys("contract", spec["contract"], "contract")
    for parameter in spec["parameter"]:
        check_parameter(parameter)
    for enum in spec["enum"]:
        check_enum(enum)
    for space in spec["space"]:
        check_keys("space", space, f"space {space.get('name')}")
    for kind in ("parameter", "enum", "space", "struct", "wire"):
        check_unique((e["name"] for e in spec[kind]), kind, "name")
    enums = {e["name"]: e for e in spec["enum"]}
    spaces = {s["name"]: s for s in spec["space"]}
    for register in spec["register"]:
        check_register(register, spaces)
    check_unique((names.register(r) for r in spec["register"]), "register", "name")
    check_register_overlap(spec["register"])
    for struct in spec["struct"]:
        check_struct(struct, enums)
    for wire in spec["wire"]:
        check_wire(wire, enums)


def contract_hash(spec):
    """64 bits that differ when two sides would not understand each other.

    It covers the parsed file without its prose, so that a corrected sentence does not
    make a driver refuse a simulator.
    """

    def bare(node):
        if isinstance(node, dict):
            return {k: bare(v) for k, v in node.items() if k not in ("doc", "unit")}
        return [bare(n) for n in node] if isinstance(node, list) else node

    text = json.dumps(bare(spec), sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def load(path):
    """The checked contract in `path`, with its hash under `hash`."""
    spec = tomllib.loads(path.read_text())
    value = contract_hash(spec)
    check(spec)
    spec["hash"] = value
    return spec
