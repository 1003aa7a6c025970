# SPDX-License-Identifier: Apache-2.0
"""Each check of `make lint` passes a clean tree and fails a broken one."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/checks"))

import architecture  # noqa: E402

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build"))
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
TOP = SPDX + """module heddle_nic #(parameter int unsigned DataW = 512) (
  input  logic clk_i,
  input  logic [DataW-1:0] data_i,
  output logic [DataW-1:0] data_o
);
  always_ff @(posedge clk_i) data_o <= data_i;
endmodule
"""


class LintOf(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "build").mkdir()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def lint(self, check, **env):
        command = [sys.executable, "-B", str(ROOT / "scripts/lint"), "--root", str(self.root), "--build",
                   str(self.root / "build"), check]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})

    def passes(self, check):
        run = self.lint(check)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertNotIn("NOT RUN", run.stdout)

    def fails(self, check, message):
        run = self.lint(check)
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn(message, run.stdout)

    def copy(self, *names):
        for name in names:
            source, target = ROOT / name, self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)

    def test_spdx_finds_a_file_without_licence(self):
        self.write("driver/a.cc", SPDX)
        self.write("VERSION", "1\n")
        self.passes("spdx")
        self.write("driver/b.cc", "int x;\n")
        self.fails("spdx", "driver/b.cc:1: no SPDX")

    def test_todo_finds_a_tag_without_issue(self):
        self.write("driver/a.cc", "// TO" "DO(#7): with an issue.\n")
        self.passes("todo")
        self.write("driver/a.cc", "\n// TO" "DO: later.\n")
        self.fails("todo", "driver/a.cc:2: tag without an issue")

    def test_links_finds_one_that_leads_nowhere(self):
        self.write("docs/a.md", "[b](../b.md#part), [web](https://example.org/x), [here](#here)\n")
        self.write("b.md", "\n")
        self.passes("links")
        self.write("docs/a.md", "\n[b](b.md)\n")
        self.fails("links", "docs/a.md:2: link to b.md")

    def test_citations_finds_a_section_that_is_not_there(self):
        self.write("docs/uet.md", "## 4. Messages\n### 4.2 Request\n### 4.14 Answers\n")
        self.write("driver/a.cc", "// UET 4.2, 4.14.\n")
        self.passes("citations")
        self.write("driver/a.cc", "\n// UET 4.2, 4.1.\n")
        self.fails("citations", "driver/a.cc:2: docs/uet.md has no section 4.1")
        self.write("driver/a.cc", "// Plan \u00a73.\n")
        self.fails("citations", "driver/a.cc:1: cites a section of no page of this repository")

    def test_layering_knows_who_may_include_whom(self):
        allowed = {
            "firmware/a.cc": "hw/contract/gen/heddle_contract.h", "driver/a.cc": "driver/dma/b.h",
            "hw/sim/device/a.cc": "driver/device.h", "hw/sim/nic/a.cc": "firmware/control_program.h",
            "hw/sim/fault/a.cc": "hw/sim/frame/b.h", "hw/sim/wire/a.cc": "hw/soft/frame/b.h",
            "hw/sim/rtl/a.cc": "hw/sim/pins/b.h", "hw/sim/entry/a.cc": "hw/soft/b.h", "hw/sim/vfio_user/a.cc": "hw/sim/pci/b.h",
            "hw/soft/a.cc": "hw/sim/device/b.h", "hw/soft/b.cc": "hw/soft/engine/b.h", "hw/soft/udp/a.cc": "hw/sim/fault/b.h",
            "hw/soft/engine/a.cc": "host/lib/semantics/b.h",
            "host/lib/base/a.cc": "driver/result.h", "host/lib/backend/a.h": "host/lib/base/b.h",
            "host/lib/nic/a.cc": "driver/queue/b.h", "host/lib/nic/b.cc": "host/lib/backend/b.h",
            "host/lib/core/a.cc": "host/lib/nic/b.h", "host/lib/ofi/a.cc": "host/lib/backend/b.h",
            "host/lib/ofi/b.cc": "host/lib/core/b.h", "host/lib/entry/a.cc": "host/lib/ofi/b.h",
            "tests/driver/a.cc": "hw/sim/b.h", "bench/a.cc": "host/lib/nic/b.h",
            "tools/a.cc": "host/lib/core/b.h",
        }
        for name, target in allowed.items():
            self.write(name, f'#include "{target}"\n')
        self.write("hw/rtl/a.sv", '`include "heddle_assert.svh"\n')
        self.passes("layering")
        forbidden = {
            "firmware/a.cc": "driver/device.h", "driver/a.cc": "hw/sim/b.h", "driver/b.cc": "host/lib/core/a.h",
            "hw/sim/base/a.cc": "hw/sim/frame/b.h", "hw/sim/frame/a.cc": "hw/sim/fault/b.h",
            "hw/sim/fault/a.cc": "hw/sim/wire/b.h", "hw/sim/wire/a.cc": "hw/sim/device/b.h",
            "hw/sim/wire/b.cc": "hw/soft/shared/b.h", "hw/sim/device/a.cc": "hw/sim/pins/b.h",
            "hw/sim/device/b.cc": "driver/queue/b.h", "hw/sim/pins/a.cc": "hw/sim/nic/b.h",
            "hw/sim/nic/a.cc": "hw/sim/rtl/b.h", "hw/sim/nic/b.cc": "host/lib/core/a.h", "hw/sim/rtl/a.cc": "hw/soft/b.h",
            "hw/sim/model/a.cc": "hw/sim/base/b.h", "hw/sim/pci/a.cc": "driver/device.h",
            "hw/sim/vfio_user/a.cc": "hw/sim/entry/b.h", "hw/sim/entry/a.cc": "driver/queue/b.h",
            "hw/soft/a.cc": "hw/sim/pins/b.h", "hw/soft/b.cc": "driver/queue/b.h", "hw/soft/wire/a.cc": "hw/soft/frame/b.h",
            "hw/soft/frame/a.cc": "hw/soft/udp/b.h", "hw/soft/transport/a.cc": "hw/soft/engine/b.h",
            "hw/soft/engine/a.cc": "hw/soft/b.h", "hw/soft/control/a.cc": "hw/soft/shared/b.h",
            "hw/soft/shared/a.cc": "hw/soft/udp/b.h", "hw/soft/udp/a.cc": "hw/sim/wire/b.h",
            "host/lib/base/a.cc": "host/lib/backend/b.h", "host/lib/base/b.h": "hw/contract/gen/heddle_contract.h", "host/lib/backend/a.h": "host/lib/nic/b.h",
            "host/lib/backend/b.h": "hw/contract/gen/heddle_contract.h",
            "host/lib/nic/a.cc": "host/lib/core/b.h", "host/lib/core/c.cc": "host/lib/ofi/b.h",
            "host/lib/ofi/a.cc": "driver/device.h", "host/lib/ofi/b.cc": "host/lib/entry/b.h",
            "host/lib/ofi/c.cc": "host/lib/nic/b.h", "host/lib/ofi/d.h": "hw/contract/gen/heddle_contract.h",
            "host/lib/entry/a.cc": "driver/device.h",
            "host/lib/verbs/a.cc": "driver/device.h", "host/lib/semantics/a.cc": "host/lib/nic/b.h",
            "host/include/rdma/a.h": "host/lib/core/b.h", "driver/c.cc": "tests/driver/a.h",
            "host/lib/core/a.cc": "bench/a.h", "tools/b.cc": "host/lib/ofi/b.h", "host/lib/core/b.cc": "tools/a.h",
        }
        for name, target in forbidden.items():
            with self.subTest(name=name, target=target):
                path = self.write(name, f'\n#include "{target}"\n')
                self.fails("layering", f"{name}:2:")
                path.write_text("")

    def test_architecture_is_drawn_from_the_includes(self):
        self.write("driver/a.h", "#pragma once\n")
        source = self.write("host/lib/nic/a.cc", '#include "driver/a.h"\n')
        page = self.write("docs/architecture.md", f"# A\n{architecture.BEGIN}\n{architecture.END}\nB\n")
        self.fails("architecture", "run `make architecture`")
        page.write_text(architecture.updated(self.root)[1])
        self.passes("architecture")
        self.assertRegex(page.read_text(), r'l1\["host/lib/nic"\]\n  l1 --> l0\n')
        source.write_text('#include "driver/a.h"\n#include "host/lib/base/b.h"\n')
        self.fails("architecture", "run `make architecture`")
        self.write("host/lib/base/b.h", '#include "driver/a.h"\n')
        page.write_text(architecture.updated(self.root)[1])
        self.assertRegex(page.read_text(), r'(?s)"driver".*"host/lib/base".*"host/lib/nic"\]\n  l1 --> l0\n  l2 --> l1\n```')

    def test_layering_lets_no_file_of_the_simulation_lie_loose(self):
        for name in ("hw/sim/a.h", "hw/sim/more/a.cc"):
            path = self.write(name, "")
            self.fails("layering", f"{name}:1: in no layer of hw/sim")
            path.unlink()

    def test_layering_keeps_verilated_models_in_simulation_and_tests(self):
        self.write("hw/sim/nic/a.cc", '#include "Vheddle_nic.h"\n')
        self.passes("layering")
        self.write("host/lib/core/a.cc", '#include "Vheddle_nic.h"\n')
        self.fails("layering", "only hw/sim and tests")

    def test_namespaces_are_those_of_the_folders_in_the_simulation(self):
        allowed = {
            "hw/sim/wire/a.h": "namespace heddle::sim::wire {\n}", "hw/sim/wire/b.cc": "namespace {\n}",
            "hw/soft/wire/a.h": "namespace heddle::soft::wire {\n}",
            "hw/sim/frame/route.cc": "namespace heddle::sim::frame {\nnamespace wire = contract::wire;\n}",
            "driver/a.h": "namespace heddle::driver {\n}",
        }
        for name, text in allowed.items():
            self.write(name, f"{text}\n")
        self.passes("namespaces")
        forbidden = {
            "hw/sim/wire/a.h": "namespace heddle", "hw/sim/pci/a.h": "namespace heddle::sim",
            "hw/soft/engine/a.cc": "namespace heddle::soft",
            "hw/soft/engine/b.h": "namespace heddle::soft::transport",
            "hw/soft/a.h": "inline namespace soft",
        }
        for name, opening in forbidden.items():
            with self.subTest(name=name):
                path = self.write(name, f"\n{opening} {{\n")
                self.fails("namespaces", f"{name}:2: {opening.removeprefix('inline ')}, in a folder that is heddle::")
                path.unlink()
        self.write("hw/soft/b.h", "class Alone {};\n")
        self.fails("namespaces", "hw/soft/b.h:1: not in namespace heddle::soft")

    def test_literals_finds_an_offset_written_as_a_number(self):
        self.write("driver/a.cc", "void F() { d.ReadRegister32(kBar0MagicOffset); }\n")
        self.passes("literals")
        for line in ("d.ReadRegister32(0x4)", "d.WriteRegister64(256, v)", "d.doorbell(0x1000)", "if (port == 4793)",
                     "if (magic == 0x454C4448)"):
            with self.subTest(line=line):
                self.write("driver/a.cc", f"\n{line};\n")
                self.fails("literals", "driver/a.cc:2:")

    def test_contract_finds_a_stale_view(self):
        self.copy("hw/contract", "docs/contract.md", "docs/uet-profile.md", "docs/settings.md")
        self.passes("contract")
        page = self.root / "docs/contract.md"
        page.write_text(page.read_text() + "x")
        self.fails("contract", "stale generated files: contract.md")

    def test_format_finds_a_line_that_clang_format_would_change(self):
        self.copy(".clang-format")
        self.write("driver/a.cc", "int value = 1;\n")
        self.passes("format")
        self.write("driver/a.cc", "int  value=1;\n")
        self.fails("format", "driver/a.cc:1:")

    def write_compiled(self, **texts):
        """Files of driver/, as one target."""
        sources = [self.write(f"driver/{name}.cc", text) for name, text in texts.items()]
        self.write("build/compile_commands.json", json.dumps(
            [{"directory": str(self.root), "file": str(source), "command": f"c++ -std=c++20 -c {source}"}
             for source in sources]))

    def test_tidy_finds_a_name_against_the_rules(self):
        self.copy(".clang-tidy")
        self.write_compiled(a="int GoodName() { return 1; }\n")
        self.passes("tidy")
        self.write("driver/a.cc", "int bad_Name() { return 1; }\n")
        self.fails("tidy", "readability-identifier-naming")

    def test_tidy_names_file_and_line_of_files_read_together(self):
        self.copy(".clang-tidy")
        self.write_compiled(a="int GoodName() { return 1; }\n// No end of line.", b="\nint bad_Name() { return 1; }\n",
                            c="int Read(int which) {\n  const int* p = nullptr;\n  return which > 3 ? *p : 0;\n}\n")
        self.fails("tidy", "driver/b.cc:2:5: error: invalid case style")
        self.fails("tidy", "driver/c.cc:3:22: error: Dereference of null pointer")

    def test_tidy_reads_files_alone_that_do_not_go_together(self):
        self.copy(".clang-tidy")
        alike = "namespace {{ int Same() {{ return 1; }} }}\nint {}() {{ return Same(); }}\n"
        self.write_compiled(a=alike.format("GoodName"), b=alike.format("OtherName"))
        self.passes("tidy")
        self.write("driver/b.cc", alike.format("bad_Name"))
        self.fails("tidy", "driver/b.cc:2:5: error: invalid case style")

    def test_tidy_keeps_to_the_rules_of_a_folder(self):
        self.copy(".clang-tidy")
        self.write("driver/.clang-tidy", 'InheritParentConfig: true\nChecks: "-readability-identifier-naming"\n')
        self.write_compiled(a="int bad_Name() { return 1; }\n", b="int GoodName() { return 1; }\n")
        self.passes("tidy")

    def test_tidy_says_when_it_could_not_run(self):
        run = self.lint("tidy", HEDDLE_TEST_REQUIRE_ALL="0")
        self.assertIn("NOT RUN: no ", run.stdout)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(self.lint("tidy", HEDDLE_TEST_REQUIRE_ALL="1").returncode, 1)

    def test_verilator_finds_a_warning_at_one_width(self):
        self.copy("hw/rtl/lint")
        self.write("hw/rtl/heddle_nic.sv", TOP)
        self.passes("verilator")
        self.write("hw/rtl/heddle_nic.sv", TOP.replace("endmodule", "logic [255:0] x;\n  assign x = data_o[255:0];\n"
                                                       "  if (DataW == 256) assign x[0] = ^x;\nendmodule"))
        self.fails("verilator", "verilator at 256 bits")

    def yosys(self, top):
        """Runs the check with the Yosys that this build has, or the registry's."""
        cache = BUILD / "yosys/0.55.944"
        if cache.exists():
            target = self.root / "build/yosys"
            target.mkdir(exist_ok=True)
            if not (target / cache.name).exists():
                (target / cache.name).symlink_to(cache)
        self.write("hw/rtl/heddle_nic.sv", top)
        run = self.lint("yosys", HEDDLE_TEST_REQUIRE_ALL="0")
        if "NOT RUN" in run.stdout:
            self.skipTest(run.stdout.strip())
        return run

    def test_yosys_finds_what_it_cannot_elaborate(self):
        self.write("hw/rtl/heddle_pkg.sv", SPDX + "package heddle_pkg;\n  localparam int unsigned W = 4;\n"
                   "  typedef struct packed { logic [W-1:0] a; logic b; } pair_t;\nendpackage\n")
        imports = TOP.replace("heddle_nic ", "heddle_nic\n  import heddle_pkg::*;\n").replace(
            "data_o <= data_i", "data_o <= {data_i[DataW-1:$bits(pair_t)], pair_o}").replace(
            "endmodule", "  pair_t pair_o;\n  assign pair_o = data_i[$bits(pair_t)-1:0];\nendmodule")
        for top in (TOP, imports):
            run = self.yosys(top)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        run = self.yosys(TOP.replace("endmodule", "  heddle_missing u_missing (.clk_i);\nendmodule"))
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("heddle_missing", run.stdout)


if __name__ == "__main__":
    unittest.main()
