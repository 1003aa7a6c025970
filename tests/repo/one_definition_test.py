# SPDX-License-Identifier: Apache-2.0
"""A build with HEDDLE_ONE_DEFINITION refuses what is defined twice; `make one-definition` builds the libraries so."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(pair CXX)
include({ROOT}/cmake/OneDefinition.cmake)
add_library(parts STATIC first.cc)
set_target_properties(parts PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_library(pair SHARED second.cc)
target_link_libraries(pair PRIVATE parts)
"""
FIRST = """namespace one {
class Window {
 public:
  explicit Window(int size) : size_(size) {}
  int size() const { return size_; }

 private:
  int size_;
};
}  // namespace one
int First() { return one::Window(1).size(); }
"""
SECOND = """namespace one {
class Window {
 public:
  explicit Window(const char* name) : name_(name) {}
  char first() const { return name_[0]; }

 private:
  const char* name_;
};
}  // namespace one
int First();
char Second() { return First() == 1 ? one::Window("pane").first() : ' '; }
"""


class OneDefinition(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        (self.path / "CMakeLists.txt").write_text(PROJECT)

    def build(self, first, second, check="ON"):
        (self.path / "first.cc").write_text(first)
        (self.path / "second.cc").write_text(second)
        build = self.path / "build"
        subprocess.run(["cmake", "-S", self.path, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                        f"-DHEDDLE_ONE_DEFINITION={check}"], check=True, capture_output=True)
        return subprocess.run(["cmake", "--build", build], capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C"})

    def test_a_class_defined_twice_is_named_and_refused(self):
        run = self.build(FIRST, SECOND, check="OFF")
        self.assertEqual(run.returncode, 0, run.stdout)
        run = self.build(FIRST, SECOND)
        self.assertNotEqual(run.returncode, 0, run.stdout)
        self.assertRegex(run.stdout, r"\w+\.cc:2:.*Window.* violates the C\+\+ One Definition Rule")
        for name in ("first.cc:2:", "second.cc:2:"):
            self.assertIn(name, run.stdout)

    def test_classes_of_the_same_name_in_two_namespaces_are_two(self):
        run = self.build(FIRST.replace("one", "other"), SECOND)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_a_variable_of_two_types_is_refused(self):
        first = "extern int count;\nint First() { return count; }\n"
        run = self.build(first, "int count = 1;\nint First();\nint Second() { return First(); }\n")
        self.assertEqual(run.returncode, 0, run.stdout)
        run = self.build(first, "long long count = 1;\nint First();\nint Second() { return First(); }\n")
        self.assertNotEqual(run.returncode, 0, run.stdout)
        self.assertIn("lto-type-mismatch", run.stdout)
        self.assertIn("count", run.stdout)

    def test_the_target_links_every_library_and_the_server(self):
        run = subprocess.run(["make", "-C", ROOT, "-n", "one-definition"], check=True, capture_output=True, text=True)
        self.assertIn("-DHEDDLE_ONE_DEFINITION=ON", run.stdout)
        built = next(line for line in run.stdout.splitlines() if "--build" in line).split()
        self.assertLessEqual({"heddle", "heddle_fi", "heddle-soft", "heddle-nicd"}, set(built))


if __name__ == "__main__":
    unittest.main()
