# SPDX-License-Identifier: Apache-2.0
"""The picture of the layers in docs/architecture.md, drawn from the includes.

Usage: architecture.py [--check]

Writes the graph between the two marks of the page, or with --check reports whether it is up to date.
"""

import collections
import functools
import pathlib
import re
import sys

import source

PAGE = "docs/architecture.md"
BEGIN = "<!-- Drawn from the includes by `make architecture`. -->"
END = "<!-- End of the drawing. -->"
# All layers may include the first two, and none the others: arrows to them would hide the rest.
LEFT_OUT = ("hw/contract/", "host/include/", "tests/", "bench/")


def layers():
    return [prefix for prefix, _ in source.LAYERS if not prefix.startswith(LEFT_OUT)]


def layer_of(name):
    return next((prefix for prefix in layers() if name.startswith(prefix)), None)


def edges(root):
    """How many files of one layer include another, by the two."""
    include = re.compile(r'^\s*[#`]include\s+"([^"]+)"', re.M)
    found = collections.Counter()
    for name in source.handwritten(root, *source.CXX):
        own = layer_of(name)
        others = {layer_of(target) for target in include.findall((root / name).read_text(errors="replace"))}
        if own:
            found.update((own, other) for other in others - {own, None})
    return found


def direct(found):
    """Those that follow from no others. Layers point one way: there is no cycle."""
    below = collections.defaultdict(set)
    for own, other in found:
        below[own].add(other)

    @functools.cache
    def reached(layer):
        return below[layer].union(*map(reached, below[layer]))

    return [(own, other) for own, other in found
            if not any(other in reached(between) for between in below[own])]


def drawing(root):
    found = edges(root)
    used = [layer for layer in layers() if any(layer in edge for edge in found)]
    number = {layer: index for index, layer in enumerate(used)}
    lines = ["```mermaid", "graph TD"]
    lines += [f'  l{number[layer]}["{layer.rstrip("/")}"]' for layer in used]
    lines += [f"  l{number[own]} --> l{number[other]}"
              for own, other in sorted(direct(found), key=lambda edge: (number[edge[0]], number[edge[1]]))]
    return "\n".join([*lines, "```"])


def updated(root):
    """The page as it is, and as it should be."""
    text = (root / PAGE).read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return text, f"{before}{BEGIN}\n\n{drawing(root)}\n\n{END}{after}"


def check_architecture(root, _build):
    if not (root / PAGE).exists():
        return
    text, wanted = updated(root)
    if text != wanted:
        yield f"{PAGE}:1: the drawing is not what the includes are; run `make architecture`"


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    if sys.argv[1:] == ["--check"]:
        complaints = list(check_architecture(root, None))
        print("\n".join(complaints))
        return 1 if complaints else 0
    (root / PAGE).write_text(updated(root)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
