# SPDX-License-Identifier: Apache-2.0
"""The C++ view follows the RTL, and a name that the RTL no longer has is not in the view."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
GENERATOR = pathlib.Path(__file__).resolve().parent / "gen_records.py"
CXX = os.environ.get("CXX", "c++")

PACKAGE = """
package some_pkg;
  localparam int unsigned Width = 5;
  typedef enum logic [1:0] {ModeOff, ModeOn} mode_e;
  typedef struct packed {
    logic [Width-1:0] index;
    mode_e            mode;
    logic             valid;
  } some_t;
endpackage
"""


class Records(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def generate(self, *packages):
        sources = []
        for number, text in enumerate(packages):
            sources.append(self.directory / f"package{number}.sv")
            sources[-1].write_text(text)
        command = [sys.executable, "-B", GENERATOR, "--output", self.directory / "records.h", *sources]
        return subprocess.run(command, capture_output=True, text=True)

    def header(self, *packages):
        done = self.generate(*packages)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.directory / "records.h").read_text()

    def compile(self, body, *packages):
        """Errors of the compiler in `body`, which includes the records of the packages."""
        self.header(*packages)
        source = self.directory / "user.cc"
        source.write_text(f'#include "records.h"\nusing namespace heddle;\nint main() {{ {body} }}\n')
        command = [CXX, "-std=c++20", "-fsyntax-only", f"-I{ROOT}", source]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        self.assertEqual(done.returncode == 0, not done.stderr, done.stderr)
        return done.stderr

    def test_field_keeps_its_place(self):
        body = self.header(PACKAGE)
        for line in ('visit("index", record.index, 3, 5);', 'visit("mode", record.mode, 1, 2);', "Mode mode = {};",
                     'visit("valid", record.valid, 0, 1);', "kWidth = 5u;", "  kOn = 1,"):
            self.assertIn(line, body)

    def test_field_that_moved_is_followed(self):
        moved = PACKAGE.replace("    logic             valid;\n", "").replace("packed {\n", "packed {\n    logic valid;\n")
        body = self.header(moved)
        self.assertIn('visit("valid", record.valid, 7, 1);', body)
        self.assertIn('visit("mode", record.mode, 0, 2);', body)

    def test_width_that_grew_is_followed(self):
        body = self.header(PACKAGE.replace("Width = 5", "Width = 9"))
        self.assertIn("uint16_t index = {};", body)
        self.assertIn('visit("index", record.index, 3, 9);', body)

    def test_record_compiles(self):
        self.assertEqual(self.compile("return rtl::Some{.index = 3, .mode = rtl::Mode::kOn}.valid;", PACKAGE), "")

    def test_name_that_is_gone_fails_to_compile_by_name(self):
        gone = PACKAGE.replace("valid", "present")
        self.assertRegex(self.compile("return rtl::Some{}.valid;", gone), "'struct heddle::rtl::Some' has no member named 'valid'")
        gone = PACKAGE.replace("some_t", "other_t")
        self.assertRegex(self.compile("return rtl::Some{}.valid;", gone), "'Some' is not a member of 'heddle::rtl'")
        gone = PACKAGE.replace("ModeOn", "ModeFast")
        self.assertRegex(self.compile("return int(rtl::Mode::kOn);", gone), "'kOn' is not a member of 'heddle::rtl::Mode'")

    def test_port_of_another_width_fails_to_compile(self):
        body = "uint32_t port; rtl::Drive(port, rtl::Some{}); return 0;"
        self.assertIn("the port is of another type than the record", self.compile(body, PACKAGE))

    def test_warning_of_verilator_does_not_fail_it(self):
        warned = PACKAGE.replace("Width = 5;", "Width = 5;\n  localparam logic [3:0] Narrow = 8'd200;")
        with self.subTest("Verilator warns"):
            source = self.directory / "warned.sv"
            source.write_text(warned)
            done = subprocess.run(["verilator", "--lint-only", "-Wall", source], capture_output=True, text=True)
            self.assertIn("%Warning-WIDTH", done.stderr)
        self.assertIn("kNarrow = 8u;", self.header(warned))

    def test_error_of_verilator_names_its_line(self):
        done = self.generate(PACKAGE.replace("mode_e            mode", "mood_e            mode"))
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"package0.sv:7:(?s:.*)mood_e")

    def test_same_name_in_two_packages_is_refused(self):
        done = self.generate(PACKAGE, PACKAGE.replace("some_pkg", "next_pkg"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is another", done.stderr)

    def test_declarations_without_a_view_are_explained(self):
        odd = (GENERATOR.parent / "odd_pkg.sv").read_text()
        body = self.header(odd + PACKAGE.replace("Width = 5", "Span = 5").replace("Width-1", "Span-1"))
        self.assertIn("// No view of odd_pkg::without_view_t: union is not supported.", body)
        signed = PACKAGE.replace("logic             valid", "logic signed [3:0] valid")
        self.assertIn("// No view of some_pkg::some_t: field valid: a signed vector.", self.header(signed))
        up = PACKAGE.replace("logic             valid", "logic [0:3][1:0] valid")
        self.assertIn("// No view of some_pkg::some_t: field valid: an array that counts up.", self.header(up))
        nameless = PACKAGE.replace("logic             valid;", "struct packed {logic a;} valid;")
        self.assertIn("// No view of some_pkg::some_t: field valid: a struct without a typedef.", self.header(nameless))
        wide = PACKAGE.replace("Width = 5;", "Width = 5;\n  localparam logic [99:0] Wide = 100'd1;")
        self.assertIn("// No view of Wide: a constant of 100 bits.", self.header(wide))

    def test_package_without_constants_is_read(self):
        package = PACKAGE.replace("  localparam int unsigned Width = 5;\n", "").replace("Width", "5")
        body = self.header(package.replace("endpackage", "  typedef struct packed { logic a; } last_t;\nendpackage"))
        for line in ("struct Some {", "struct Last {", "enum class Mode"):
            self.assertIn(line, body)

    def test_contract_is_used_where_its_header_defines_it(self):
        contract = """
package base_pkg;
  typedef enum logic [7:0] {StatusOk} status_e;
  typedef struct packed { logic [7:0] kind; } entry_t;
  typedef struct packed { logic [3:0] kind; } wire_t;
  typedef struct packed { logic [3:0] kind; } unused_t;
endpackage
"""
        user = """
package user_pkg;
  import base_pkg::*;
  typedef struct packed { status_e status; entry_t entry; wire_t on_wire; } user_t;
endpackage
"""
        (self.directory / "base.h").write_text("enum class Status : uint8_t {\n};\nstruct Entry {\n};\n")
        for name, text in (("base.sv", contract), ("user.sv", user)):
            (self.directory / name).write_text(text)
        subprocess.run([sys.executable, "-B", GENERATOR, "--output", "records.h", "--contract", "base_pkg=base.h",
                        "base.sv", "user.sv"], cwd=self.directory, check=True)
        body = (self.directory / "records.h").read_text()
        for line in ('#include "base.h"', "contract::Status status", "contract::Entry entry", "Wire on_wire",
                     "struct Wire {"):
            self.assertIn(line, body)
        self.assertNotIn("struct Entry", body)
        self.assertNotIn("Unused", body)


if __name__ == "__main__":
    unittest.main()
