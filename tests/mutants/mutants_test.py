# SPDX-License-Identifier: Apache-2.0
"""The patches of this folder, without building them: `make mutants` does that."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(HERE))

import run  # noqa: E402

FEWEST = 40
FOLDERS = ("host/lib/semantics/", "hw/soft/engine/", "host/lib/nic/", "host/lib/ofi/")


class Patches(unittest.TestCase):
    def test_each_applies(self):
        for path in run.mutants().values():
            done = run.apply(ROOT, path, "--check")
            self.assertEqual(done.returncode, 0, f"{path.name}: {done.stderr}")

    def test_one_that_does_not_apply_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "old.patch"
            text = next(iter(run.mutants().values())).read_text()
            path.write_text(text.replace("\n-", "\n-gone "))
            self.assertNotEqual(run.apply(ROOT, path, "--check").returncode, 0)

    def test_each_changes_a_line_of_the_product(self):
        self.assertGreaterEqual(len(run.mutants()), FEWEST)
        folders = set()
        for path in run.mutants().values():
            lines = path.read_text().splitlines()
            removed = [line for line in lines if line.startswith("-") and not line.startswith("---")]
            added = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
            self.assertEqual(len(removed), 1, path.name)
            self.assertLessEqual(len(added), 1, path.name)
            file = next(line for line in lines if line.startswith("+++ "))[len("+++ b/"):]
            self.assertTrue(file.startswith(FOLDERS), f"{path.name}: {file}")
            folders.add(next(folder for folder in FOLDERS if file.startswith(folder)))
        self.assertEqual(folders, set(FOLDERS))

    def test_each_names_a_test_of_the_program(self):
        listed = subprocess.run([BUILD / "bin/heddle-conformance", "--list"], capture_output=True, text=True,
                                check=True).stdout.split()
        for path in run.mutants().values():
            self.assertIn(run.catcher(path), listed, path.name)


class Choice(unittest.TestCase):
    def test_depends_on_the_commit_alone(self):
        names = list(run.mutants())
        first = run.choose(names, 3)
        self.assertEqual(len(set(first)), 3)
        self.assertEqual(run.choose(list(reversed(names)), 3), first)


class Usage(unittest.TestCase):
    def test_unknown_name_is_refused(self):
        done = subprocess.run([sys.executable, HERE / "run.py", "--build", BUILD, "nosuch"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no mutant nosuch", done.stderr)


if __name__ == "__main__":
    unittest.main()
