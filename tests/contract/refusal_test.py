# SPDX-License-Identifier: Apache-2.0
"""The generator refuses a contract that could mean two things."""

import contextlib
import copy
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "hw/contract"))

import gen_contract  # noqa: E402
from generator import model  # noqa: E402

GOOD = {
    "contract": {"name": "heddle", "major": 1, "minor": 0},
    "parameter": [{"name": "depth", "value": 8, "unit": "entries", "doc": "Depth."}],
    "enum": [
        {"name": "colour", "bits": 8, "doc": "Colour.", "values": [
            {"name": "red", "value": 0, "doc": "Red."}, {"name": "blue", "value": 1, "doc": "Blue."}]},
        {"name": "mood", "bits": 8, "flags": True, "doc": "Mood.", "values": [
            {"name": "calm", "value": 1, "doc": "Calm."}, {"name": "glad", "value": 2, "doc": "Glad."}]},
    ],
    "space": [{"name": "bar", "bytes": 64, "doc": "Space."}],
    "register": [
        {"space": "bar", "name": "id", "offset": 0, "bits": 32, "access": "ro", "reset": 7, "doc": "Id.", "fields": [
            {"name": "low", "lsb": 0, "bits": 8, "unit": "-", "doc": "Low."},
            {"name": "high", "lsb": 16, "bits": 16, "unit": "-", "doc": "High."}]},
        {"space": "bar", "name": "cells", "offset": 16, "bits": 64, "count": 4, "stride": 8, "access": "rw",
         "doc": "Cells."},
        {"space": "bar", "name": "tail", "offset": 8, "bits": 64, "access": "wo", "pages": "a", "doc": "Tail."},
        {"space": "bar", "name": "head", "offset": 8, "bits": 64, "access": "wo", "pages": "b", "doc": "Head."},
    ],
    "struct": [{"name": "desc", "bytes": 16, "doc": "Descriptor.", "fields": [
        {"name": "colour", "offset": 0, "bytes": 1, "enum": "colour", "doc": "Colour."},
        {"name": "mood", "offset": 1, "bytes": 1, "flags": "mood", "doc": "Mood."},
        {"name": "count", "offset": 2, "bytes": 2, "doc": "Count."},
        {"name": "words", "offset": 4, "bytes": 4, "count": 3, "doc": "Words."}]}],
    "wire": [{"name": "head", "bytes": 4, "doc": "Header.", "fields": [
        {"name": "kind", "bits": 8, "enum": "colour", "doc": "Kind."},
        {"name": "syn", "bits": 1, "doc": "Selector."},
        {"name": "delta", "bits": 7, "signed": True, "doc": "Delta."},
        {"select": "syn", "bits": 16, "cases": [
            {"value": 0, "fields": [{"name": "peer", "bits": 16, "doc": "Peer."}]},
            {"value": 1, "fields": [{"name": "info", "bits": 4, "doc": "Info."},
                                    {"name": "offset", "bits": 12, "doc": "Offset."}]}]}]}],
}


class ContractIsRefusedFor(unittest.TestCase):
    def refused(self, message, change):
        spec = copy.deepcopy(GOOD)
        change(spec)
        with self.assertRaisesRegex(model.ContractError, message):
            model.check(spec)

    def test_nothing_when_it_is_good(self):
        model.check(copy.deepcopy(GOOD))

    def test_a_missing_doc_of_each_kind_of_entry(self):
        for path in (("parameter", 0), ("enum", 0), ("enum", 0, "values", 0), ("space", 0), ("register", 0),
                     ("register", 0, "fields", 0), ("struct", 0), ("struct", 0, "fields", 0), ("wire", 0),
                     ("wire", 0, "fields", 0), ("wire", 0, "fields", 3, "cases", 0, "fields", 0)):
            for doc in (None, " "):
                def drop(spec, path=path, doc=doc):
                    node = spec
                    for step in path:
                        node = node[step]
                    node["doc"] = doc
                    if doc is None:
                        del node["doc"]
                with self.subTest(path=path, doc=doc):
                    self.refused("no doc", drop)

    def test_an_unknown_key(self):
        self.refused("unknown key unt", lambda s: s["parameter"][0].update(unt="x"))

    def test_an_unknown_table(self):
        self.refused("unknown table regs", lambda s: s.update(regs=[]))

    def test_a_missing_unit(self):
        self.refused("no unit", lambda s: s["parameter"][0].pop("unit"))

    def test_a_name_that_cpp_reserves(self):
        self.refused("C\\+\\+ keyword", lambda s: s["struct"][0]["fields"][2].update(name="operator"))

    def test_a_name_that_is_not_lower_snake(self):
        self.refused("not lower_snake", lambda s: s["struct"][0].update(name="Desc"))

    def test_duplicate_names(self):
        for kind in ("parameter", "enum", "space", "register", "struct", "wire"):
            with self.subTest(kind=kind):
                self.refused("duplicate name", lambda s, k=kind: s[k].append(copy.deepcopy(s[k][0])))
        self.refused("duplicate name colour", lambda s: s["struct"][0]["fields"][2].update(name="colour"))
        self.refused("duplicate name red", lambda s: s["enum"][0]["values"][1].update(name="red"))
        self.refused("duplicate name low", lambda s: s["register"][0]["fields"][1].update(name="low"))
        self.refused("duplicate name syn",
                     lambda s: s["wire"][0]["fields"][3]["cases"][0]["fields"][0].update(name="syn"))

    def test_duplicate_values(self):
        self.refused("duplicate value 0", lambda s: s["enum"][0]["values"][1].update(value=0))

    def test_a_value_wider_than_its_enum(self):
        self.refused("does not fit 8 bits", lambda s: s["enum"][0]["values"][1].update(value=256))

    def test_a_flag_of_two_bits(self):
        self.refused("a flag is one bit", lambda s: s["enum"][1]["values"][1].update(value=3))

    def test_a_parameter_wider_than_64_bits(self):
        self.refused("not a 64-bit value", lambda s: s["parameter"][0].update(value=1 << 64))

    def test_registers_that_share_an_offset(self):
        self.refused("overlap with id", lambda s: s["register"][1].update(offset=0))
        self.refused("overlap with tail", lambda s: s["register"][3].update(pages="a"))
        self.refused("overlap with tail", lambda s: s["register"][3].pop("pages"))

    def test_a_register_inside_an_array(self):
        self.refused("overlap", lambda s: s["register"][2].update(offset=24))

    def test_a_misaligned_register(self):
        self.refused("misaligned", lambda s: s["register"][0].update(offset=2))
        self.refused("misaligned", lambda s: s["register"][1].update(offset=20))

    def test_a_stride_below_the_width(self):
        self.refused("stride", lambda s: s["register"][1].update(stride=4))

    def test_a_count_without_stride(self):
        self.refused("count and stride", lambda s: s["register"][1].pop("stride"))

    def test_a_register_outside_its_space(self):
        self.refused("outside its space", lambda s: s["register"][1].update(count=7))

    def test_an_unknown_space(self):
        self.refused("unknown space bar9", lambda s: s["register"][0].update(space="bar9"))

    def test_an_unknown_access(self):
        self.refused("access is", lambda s: s["register"][0].update(access="w1c"))

    def test_a_register_of_16_bits(self):
        self.refused("32 or 64 bits", lambda s: s["register"][0].update(bits=16))

    def test_a_reset_wider_than_its_register(self):
        self.refused("reset too wide", lambda s: s["register"][0].update(reset=1 << 32))

    def test_register_fields_that_overlap(self):
        self.refused("id.high: overlap", lambda s: s["register"][0]["fields"][1].update(lsb=7))

    def test_a_register_field_beyond_the_register(self):
        self.refused("wider than the register", lambda s: s["register"][0]["fields"][1].update(bits=17))

    def test_struct_fields_that_overlap(self):
        self.refused("desc.mood: overlap", lambda s: s["struct"][0]["fields"][1].update(offset=0))

    def test_a_gap_between_struct_fields(self):
        self.refused("desc.words: gap", lambda s: s["struct"][0]["fields"][3].update(offset=8))

    def test_a_misaligned_struct_field(self):
        def misalign(spec):
            del spec["struct"][0]["fields"][1]
            spec["struct"][0]["fields"][1]["offset"] = 1
        self.refused("desc.count: misaligned", misalign)

    def test_a_struct_that_its_fields_do_not_fill(self):
        self.refused("fields fill 16 of 32 bytes", lambda s: s["struct"][0].update(bytes=32))

    def test_a_struct_field_of_three_bytes(self):
        self.refused("1, 2, 4 or 8 bytes", lambda s: s["struct"][0]["fields"][2].update(bytes=3))

    def test_an_array_of_one(self):
        self.refused("at least two", lambda s: s["struct"][0]["fields"][3].update(count=1))

    def test_an_unknown_enum(self):
        self.refused("unknown enum shade", lambda s: s["struct"][0]["fields"][0].update(enum="shade"))
        self.refused("unknown enum shade", lambda s: s["wire"][0]["fields"][0].update(enum="shade"))

    def test_an_enum_of_another_width(self):
        self.refused("colour has 8 bits, the field 16", lambda s: s["struct"][0]["fields"][2].update(enum="colour"))
        self.refused("colour has 8 bits, the field 1", lambda s: s["wire"][0]["fields"][1].update(enum="colour"))

    def test_flags_used_as_an_enum_and_the_reverse(self):
        self.refused("mood is an enum of flags", lambda s: s["struct"][0]["fields"][0].update(enum="mood"))
        self.refused("colour is not an enum of flags", lambda s: s["struct"][0]["fields"][1].update(flags="colour"))

    def test_a_wire_header_that_its_fields_do_not_fill(self):
        self.refused("fields fill 31 of 32 bits", lambda s: s["wire"][0]["fields"][2].update(bits=6))

    def test_a_case_of_another_width(self):
        self.refused("case 1 has 15 of 16 bits",
                     lambda s: s["wire"][0]["fields"][3]["cases"][1]["fields"][1].update(bits=11))

    def test_a_case_that_cannot_occur(self):
        self.refused("case 2 cannot occur", lambda s: s["wire"][0]["fields"][3]["cases"][1].update(value=2))

    def test_two_cases_for_one_value(self):
        self.refused("duplicate value 0", lambda s: s["wire"][0]["fields"][3]["cases"][1].update(value=0))

    def test_a_choice_of_one_case(self):
        self.refused("one case is no choice", lambda s: s["wire"][0]["fields"][3]["cases"].pop())

    def test_a_selector_that_comes_later(self):
        self.refused("not an earlier field", lambda s: s["wire"][0]["fields"].insert(0, s["wire"][0]["fields"].pop()))

    def test_two_unions_in_one_header(self):
        def twice(spec):
            spec["wire"][0]["fields"].append(copy.deepcopy(spec["wire"][0]["fields"][3]))
        self.refused("more than one select", twice)

    def test_a_signed_enum(self):
        self.refused("a signed enum", lambda s: s["wire"][0]["fields"][0].update(signed=True))

    def test_a_wire_field_wider_than_64_bits(self):
        self.refused("1 to 64 bits", lambda s: s["wire"][0]["fields"][2].update(bits=65))


class ContractHash(unittest.TestCase):
    def test_differs_when_a_value_differs(self):
        other = copy.deepcopy(GOOD)
        other["enum"][0]["values"][1]["value"] = 2
        self.assertNotEqual(model.contract_hash(GOOD), model.contract_hash(other))

    def test_is_the_same_when_only_prose_differs(self):
        other = copy.deepcopy(GOOD)
        other["enum"][0]["doc"] = other["parameter"][0]["unit"] = "Other words."
        self.assertEqual(model.contract_hash(GOOD), model.contract_hash(other))


class StaleOutput(unittest.TestCase):
    source = ROOT / "hw/contract/heddle.toml"

    def run_generator(self, directory, *options):
        gen_contract.main([str(self.source), f"{directory}/gen", f"{directory}/docs", *options])

    def test_is_refused_by_check_and_named(self):
        with tempfile.TemporaryDirectory() as directory:
            self.run_generator(directory)
            self.run_generator(directory, "--check")
            for path in sorted(pathlib.Path(directory).rglob("*.*")):
                text = path.read_text()
                path.write_text(text + "\n")
                with self.assertRaisesRegex(SystemExit, f"stale generated files: {path.name}"):
                    self.run_generator(directory, "--check")
                path.write_text(text)

    def test_is_not_in_the_repository(self):
        gen_contract.main([str(self.source), str(ROOT / "hw/contract/gen"), str(ROOT / "docs"), "--check"])

    def test_a_missing_output_is_stale(self):
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaisesRegex(SystemExit, "heddle_wire.h"):
                self.run_generator(directory, "--check")


if __name__ == "__main__":
    unittest.main()
