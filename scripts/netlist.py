# SPDX-License-Identifier: Apache-2.0
"""Size and depth of a netlist of Xilinx cells, as Yosys writes it in JSON.

Levels are LUTs in a row: a LUT6 counts 1, the read of a LUT RAM 1, a carry chain 0.5
to enter and 0.1 for each of its CARRY4; a register, a block RAM or a DSP starts and
ends a path. An input of the unit starts no path from register to register.
"""

import collections
import re

REGISTER = re.compile(r"FD|LD|SRL|RAMB|URAM|DSP")
LUT_RAM = re.compile(r"RAM\d")
# Most LUTs in a row at 250 MHz on UltraScale+, at 0.3 to 0.35 ns each.
LEVELS = 12
CLOCKS = {"C", "CLK", "CLKARDCLK", "CLKBWRCLK", "WCLK"}
ENTER_CARRY, ALONG_CARRY = 0.5, 0.1


def is_bit(bit):
    """Constants are strings."""
    return isinstance(bit, int)


def luts_of_ram(kind):
    """LUTs that a LUT RAM takes, by its name: RAM64M8, RAM256X1D."""
    match = re.match(r"RAM(\d+)(?:M(\d*)|X\d+([SDQ]\d*))", kind)
    if match[3] is None:
        return int(match[2] or 4) // (2 if match[2] == "16" else 1)
    return max(1, int(match[1]) // 64) * {"S": 1, "D": 2, "Q": 4}[match[3][0]]


def sizes(module):
    """{"lut", "lut_ram", "ff", "latch", "bram36", "dsp"} of a module."""
    kinds = collections.Counter(cell["type"] for cell in module["cells"].values())

    def total(pattern):
        return sum(count for kind, count in kinds.items() if re.match(pattern, kind))

    return {"lut": total(r"LUT\d"),
            "lut_ram": sum(luts_of_ram(kind) * count for kind, count in kinds.items() if LUT_RAM.match(kind)),
            "ff": total("FD"), "latch": total("LD"), "bram36": total("RAMB36") + total("RAMB18") / 2, "dsp": total("DSP")}


def bits_of(cell, direction, names=None):
    for port, way in cell["port_directions"].items():
        if way == direction and (names is None or names(port)):
            for index, bit in enumerate(cell["connections"][port]):
                if is_bit(bit):
                    yield port, index, bit


def read_address(port):
    """Whether a port of a LUT RAM is the address of the data output `port`."""
    if port.startswith("DO") and port != "DO":
        return lambda name: name == "ADDR" + port[2:]
    if port == "DPO":
        return lambda name: name.startswith("DPRA")
    return lambda name: re.fullmatch(r"A\d*|ADDR", name)


def steps(cell, port, index):
    """The input bits that an output bit of a cell that is no register follows from, with the levels between."""
    kind = cell["type"]
    if LUT_RAM.match(kind):
        return [(bit, 1) for _, _, bit in bits_of(cell, "input", read_address(port))]
    if kind.startswith("CARRY"):
        return [(bit, ALONG_CARRY if name == "CI" else ENTER_CARRY) for name, at, bit in bits_of(cell, "input")
                if name not in ("S", "DI") or at <= index]
    free = kind == "INV" or kind.startswith(("BUF", "MUXF"))
    return [(bit, 0 if free else 1) for _, _, bit in bits_of(cell, "input")]


class Paths:
    """The longest path to each bit, from registers alone or from the inputs too."""

    def __init__(self, module, inputs):
        self.cells = module["cells"]
        self.drivers = {bit: (name, port, index) for name, cell in self.cells.items()
                        for port, index, bit in bits_of(cell, "output")}
        self.inputs = inputs
        self.levels = {}    # Bit to levels; None where no path begins.
        self.previous = {}
        self.loops = 0

    def start(self, bit):
        """Levels with which a path begins at a bit: None if none does."""
        if bit not in self.drivers:
            return 0 if self.inputs else None
        kind = self.cells[self.drivers[bit][0]]["type"]
        if REGISTER.match(kind):
            return 0
        return 1 if LUT_RAM.match(kind) else None

    def before(self, bit):
        if bit not in self.drivers:
            return []
        name, port, index = self.drivers[bit]
        cell = self.cells[name]
        return [] if REGISTER.match(cell["type"]) else steps(cell, port, index)

    def visit(self, root):
        """Levels of a bit. Depth first without recursion: paths are long."""
        open_bits = set()
        stack = [(root, None)]
        while stack:
            bit, sources = stack.pop()
            if sources is None:
                if bit in self.levels:
                    continue
                open_bits.add(bit)
                sources = self.before(bit)
                missing = [source for source, _ in sources if source not in self.levels]
                self.loops += sum(source in open_bits for source in missing)
                stack.append((bit, sources))
                stack += [(source, None) for source in missing if source not in open_bits]
                continue
            best, via = self.start(bit), None
            for source, step in sources:
                level = self.levels.get(source)
                if level is not None and (best is None or level + step > best):
                    best, via = level + step, source
            self.levels[bit], self.previous[bit] = best, via
            open_bits.discard(bit)
        return self.levels[root]

    def back(self, bit):
        """Bits of the longest path to a bit, its first one first."""
        path = []
        while bit is not None:
            path.append(bit)
            bit = self.previous[bit]
        return path[::-1]


def ends(module, outputs):
    """{bit: what it enters} where paths end: inputs of registers and RAMs, and the unit's outputs."""
    found = {}
    for cell in module["cells"].values():
        if REGISTER.match(cell["type"]) or LUT_RAM.match(cell["type"]):
            for port, _, bit in bits_of(cell, "input"):
                if port not in CLOCKS:
                    found[bit] = cell
    if outputs:
        for name, port in module["ports"].items():
            if port["direction"] == "output":
                found.update((bit, name) for bit in port["bits"] if is_bit(bit))
    return found


def names_of(module):
    """{bit: name of its net}, of those that the source names."""
    names = {}
    for name, net in module["netnames"].items():
        if "$" not in name:
            for bit in net["bits"]:
                names.setdefault(bit, name)
    return names


def name_of_end(end, names):
    """The output of a register or a RAM, by a name of the source."""
    if isinstance(end, str):
        return end
    return next((names[bit] for _, _, bit in bits_of(end, "output") if bit in names), end["type"])


def deepest(module, ports):
    """(levels, path as names, ends deeper than LEVELS, loops); `ports` has the unit's inputs and outputs count."""
    paths = Paths(module, ports)
    ended = ends(module, ports)
    levels = {bit: paths.visit(bit) for bit in ended}
    reached = {bit: level for bit, level in levels.items() if level is not None}
    if not reached:
        return 0, [], 0, paths.loops
    last = max(reached, key=lambda bit: (reached[bit], -bit))
    names = names_of(module)
    path = [names[bit] for bit in paths.back(last) if bit in names] + [name_of_end(ended[last], names)]
    path = [name for at, name in enumerate(path) if at == 0 or path[at - 1] != name]
    return round(reached[last], 1), path, sum(level > LEVELS for level in reached.values()), paths.loops


def measure(netlist, unit):
    """Sizes and depth of a unit of a netlist that was flattened."""
    module = netlist["modules"][unit]
    registers, path, deep, loops = deepest(module, False)
    with_ports, port_path, _, _ = deepest(module, True)
    return {"unit": unit, **sizes(module), "levels": registers, "path": path, "deep": deep,
            "port_levels": with_ports, "port_path": port_path, "loops": loops}
