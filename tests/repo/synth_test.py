# SPDX-License-Identifier: Apache-2.0
"""`scripts/synth`: figures of a netlist, limits and the page."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import netlist  # noqa: E402


def load():
    loader = importlib.machinery.SourceFileLoader("synth_script", str(ROOT / "scripts/synth"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("synth_script", loader))
    loader.exec_module(module)
    return module


SYNTH = load()


def cell(kind, inputs, outputs):
    """A cell with one-bit ports, or more where a list is given."""
    ports = {**inputs, **outputs}
    return {"type": kind, "port_directions": {**dict.fromkeys(inputs, "input"), **dict.fromkeys(outputs, "output")},
            "connections": {port: bits if isinstance(bits, list) else [bits] for port, bits in ports.items()}}


def register(d, q):
    return cell("FDRE", {"C": 1, "CE": "1", "D": d, "R": "0"}, {"Q": q})


def module(cells, ports=(), names=()):
    return {"cells": {f"c{at}": each for at, each in enumerate(cells)},
            "ports": {name: {"direction": way, "bits": [bit]} for name, way, bit in ports},
            "netnames": {name: {"bits": [bit]} for name, bit in names}}


class Depth(unittest.TestCase):
    def test_luts_between_two_registers_count_one_each(self):
        unit = module([register(12, 10), cell("LUT2", {"I0": 10, "I1": "1"}, {"O": 11}),
                       cell("LUT1", {"I0": 11}, {"O": 12})], names=[("state_q", 10), ("next", 12), ("$auto$1", 11)])
        self.assertEqual(netlist.deepest(unit, False), (2, ["state_q", "next", "state_q"], 0, 0))

    def test_ports_count_only_with_ports(self):
        unit = module([cell("LUT1", {"I0": 10}, {"O": 11}), cell("LUT1", {"I0": 11}, {"O": 12}), register(12, 13),
                       cell("LUT1", {"I0": 13}, {"O": 14}), register(14, 15)],
                      [("in_i", "input", 10), ("out_o", "output", 15)])
        self.assertEqual(netlist.deepest(unit, False)[0], 1)
        self.assertEqual(netlist.deepest(unit, True)[0], 2)

    def test_a_carry_chain_counts_half_to_enter_and_a_tenth_along(self):
        chain = [cell("CARRY4", {"CI": ci, "S": [20, "0"], "DI": ["0", "0"]}, {"CO": [co, co + 1]})
                 for ci, co in (("0", 30), (31, 40), (41, 50))]
        self.assertEqual(netlist.deepest(module([register(51, 20), *chain]), False)[0], 0.7)

    def test_an_output_of_a_carry_does_not_depend_on_higher_inputs(self):
        late = [register(20, 10), cell("LUT1", {"I0": 10}, {"O": 11}), cell("LUT1", {"I0": 11}, {"O": 12})]
        low = cell("CARRY4", {"CI": "0", "S": [10, 12], "DI": ["0", "0"]}, {"CO": [20, 21]})
        self.assertEqual(netlist.deepest(module([*late, low]), False)[0], 0.5)

    def test_a_lut_ram_is_read_in_one_level_and_written_at_the_end_of_a_path(self):
        ram = cell("RAM64M8", {"ADDRA": [11], "ADDRH": [14], "DIA": [16], "WE": "1", "WCLK": 1}, {"DOA": [15]})
        unit = module([register(15, 10), cell("LUT1", {"I0": 10}, {"O": 11}), ram])
        self.assertEqual(netlist.deepest(unit, False)[0], 2)
        contents = module([cell("RAM64M8", {"ADDRA": [], "WCLK": 1}, {"DOA": [15]}), register(15, 10)])
        self.assertEqual(netlist.deepest(contents, False)[0], 1)

    def test_block_rams_end_paths(self):
        unit = module([cell("RAMB36E2", {"ADDR": 11, "CLKARDCLK": 1}, {"DOUT": 10}),
                       cell("LUT1", {"I0": 10}, {"O": 11})])
        self.assertEqual(netlist.deepest(unit, False)[0], 1)

    def test_ends_deeper_than_twelve_are_counted(self):
        luts = [cell("LUT1", {"I0": bit}, {"O": bit + 1}) for bit in range(10, 23)]
        unit = module([register(22, 10), register(23, 100), register(15, 101), *luts])
        self.assertEqual(netlist.deepest(unit, False)[::2], (13, 1))

    def test_a_loop_is_counted_and_ends(self):
        unit = module([cell("LUT2", {"I0": 11, "I1": 12}, {"O": 10}), cell("LUT1", {"I0": 10}, {"O": 11}), register(10, 12)])
        self.assertEqual(netlist.deepest(unit, False)[3], 1)


class Size(unittest.TestCase):
    def test_cells_count_by_kind(self):
        kinds = ("LUT2", "LUT6", "FDRE", "FDSE", "RAMB36E2", "RAMB18E2", "DSP48E2", "LDCE", "RAM64M8", "RAM256X1D", "CARRY4")
        self.assertEqual(netlist.sizes(module([cell(kind, {}, {}) for kind in kinds])),
                         {"lut": 2, "lut_ram": 16, "ff": 2, "latch": 1, "bram36": 1.5, "dsp": 1})

    def test_luts_of_a_ram_follow_from_its_name(self):
        for kind, luts in {"RAM32M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM64X1D": 2, "RAM64X1S": 1, "RAM512X1S": 8}.items():
            self.assertEqual(netlist.luts_of_ram(kind), luts, kind)


def result(unit, lut=10, levels=3):
    return {"unit": unit, "lut": lut, "lut_ram": 0, "ff": 1, "latch": 0, "bram36": 0.5, "dsp": 0, "levels": levels,
            "path": [f"n{at}" for at in range(12)], "deep": 0, "port_levels": levels, "port_path": [], "loops": 0}


class Page(unittest.TestCase):
    def test_a_missed_limit_is_bold(self):
        self.assertIn("| 10 |", SYNTH.row(result("heddle_cq")))
        self.assertIn("| **10,001** (10,000) |", SYNTH.row(result("heddle_cq", 10001)))
        self.assertIn("| **12.1** (12) |", SYNTH.row(result("heddle_cq", levels=12.1)))
        self.assertIn("| 40 |", SYNTH.row(result("heddle_bar", levels=40)))

    def test_one_unit_replaces_its_rows_only(self):
        rows = {unit: SYNTH.row(result(unit)) for unit in ("heddle_bar", "heddle_cq")}
        paths = {unit: SYNTH.path_row(result(unit)) for unit in rows}
        page = SYNTH.page_text("", rows, paths)
        self.assertEqual(SYNTH.read_page(page), (rows, paths))
        new = SYNTH.row(result("heddle_cq", 77))
        self.assertEqual(SYNTH.read_page(SYNTH.page_text(page, {"heddle_cq": new}, paths))[0], rows | {"heddle_cq": new})

    def test_a_unit_that_failed_has_its_cause_and_no_path(self):
        page = SYNTH.page_text("", {"heddle_cq": SYNTH.empty_row("heddle_cq", "not mapped in 5 s")}, {})
        self.assertIn("| `heddle_cq` | not mapped in 5 s |", page)
        old = SYNTH.page_text("", {"heddle_cq": SYNTH.row(result("heddle_cq"))}, {"heddle_cq": SYNTH.path_row(result("heddle_cq"))})
        page = SYNTH.page_text(old, {"heddle_cq": SYNTH.empty_row("heddle_cq", "not mapped in 5 s")}, {})
        self.assertNotIn("n0", page)

    def test_the_page_is_of_units_that_there_are(self):
        rows, paths = SYNTH.read_page((ROOT / "docs/synthesis.md").read_text())
        modules = {path.stem for path in (ROOT / "hw/rtl").rglob("heddle_*.sv")}
        self.assertNotEqual(rows, {})
        self.assertEqual((rows.keys() | paths.keys()) - modules, set())

    def test_units_with_a_limit_are_measured_by_default(self):
        self.assertEqual(SYNTH.LIMITS.keys() - set(SYNTH.default_units()), set())
        self.assertIn("heddle_bar", SYNTH.default_units())
        self.assertNotIn("heddle_nic", SYNTH.default_units())


class Program(unittest.TestCase):
    def test_an_unknown_unit_is_refused(self):
        run = subprocess.run([ROOT / "scripts/synth", "heddle_nothing"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("synth: no unit heddle_nothing", run.stderr)


if __name__ == "__main__":
    unittest.main()
