# SPDX-License-Identifier: Apache-2.0
"""The check `english` finds the words of the glossary in added lines, and in no others."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
IDENTITY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


class English(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        self.root.mkdir()
        self.write("docs/glossary.md", (ROOT / "docs/glossary.md").read_text())
        self.git("init", "-q", "-b", "main")
        self.commit()
        self.write("README.md", "Text.\n")
        self.commit()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *arguments, root=None):
        subprocess.run(["git", "-C", str(root or self.root), *arguments], check=True, capture_output=True,
                       env={**os.environ, **IDENTITY})

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "tests: Change")

    def land(self, name, text):
        """Commits a file, and another commit after it."""
        self.write(name, text)
        self.commit()
        self.write("c.md", f"{name}.\n")
        self.commit()

    def complaints(self, root=None):
        command = [sys.executable, "-B", str(ROOT / "scripts/lint"), "--root", str(root or self.root), "english"]
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HEDDLE_TEST_REQUIRE_ALL": "1"})
        self.assertNotIn("Traceback", run.stderr)
        found = run.stdout.splitlines()[:-1]
        self.assertEqual(run.returncode, 1 if found else 0, run.stdout + run.stderr)
        return found

    def assert_finds(self, name, text, *expected):
        self.write(name, text)
        found = self.complaints()
        self.assertEqual(len(found), len(expected), found)
        for line, message in zip(found, expected):
            self.assertIn(message, line)

    def test_complaint_names_the_word_and_the_word_to_write(self):
        self.assert_finds("a.md", "One.\n\nThe target sends again.\n",
                          "a.md:3: `sends again`: write retransmit (docs/glossary.md)")

    def test_forms_of_a_word_are_found_and_parts_of_others_are_not(self):
        self.assert_finds("a.md", "It forgets it.\nIt gives\tup.\nThe unheard, un-heard hearsay.\nForgotten!\n",
                          "a.md:1: `forgets`", "a.md:2: `gives\tup`", "a.md:4: `Forgotten`")

    def test_words_in_code_spans_and_links_are_not_prose(self):
        self.assert_finds("a.md", "See `tell`, ``ask``, [it](docs/glossary.md#tell), https://example.org/tell.\n")

    def test_fragments_are_found_and_questions_are_not(self):
        self.assert_finds("a.md", "Of the target.\nWhat is it?\nIt is. What it holds.\nSome of the table.\n",
                          "a.md:1: `Of ...`", "a.md:3: `What ...`")

    def test_comments_and_messages_of_cxx_and_rtl_are_read_and_code_is_not(self):
        self.assert_finds(
            "driver/a.cc", 'int told;  // Told twice.\n/* Fine,\n * and behind. */\nLog("nobody is there");\nKey("nobody");\n',
            "driver/a.cc:1: `Told`", "driver/a.cc:1: `told`", "driver/a.cc:3: `behind`", "driver/a.cc:4: `nobody`")
        self.write("driver/a.cc", "")
        self.assert_finds("hw/rtl/a.sv", "logic x_i;  // Heard of.\n", "hw/rtl/a.sv:1: `Heard`")

    def test_scripts_are_read(self):
        self.assert_finds("a.py", 'x = "whoever it is"\n\n\ndef f():\n    """Fine,\n    and told.\n    """\n    # It asks.\n',
                          "a.py:1: `whoever`", "a.py:6: `told`", "a.py:8: `asks`")
        self.write("a.py", "")
        self.assert_finds("a.sh", 'echo "it says so"  # Nobody.\n', "a.sh:1: `Nobody`", "a.sh:1: `says`")
        self.write("a.sh", "")
        self.assert_finds("a.toml", 'doc = "Told twice."\n', "a.toml:1: `Told`")

    def test_new_names_are_found_once_and_old_ones_are_not(self):
        self.land("driver/old.h", "bool told_i();\n")
        self.assert_finds("driver/a.cc", "bool told_i();\nbool ToldAll();\nbool x = ToldAll();\nbool AtMostTwo();\nint most_used;\n",
                          "driver/a.cc:2: `ToldAll`", "driver/a.cc:5: `most_used`: write limit")

    def test_old_lines_are_left_alone(self):
        self.write("b.md", "Nobody.\n")
        self.land("driver/a.cc", "// Told.\nint a;\n")
        self.assertEqual(self.complaints(), [])
        self.write("driver/a.cc", "// Told.\nint a;\nint b;\n")
        self.assertEqual(self.complaints(), [])

    def test_lines_that_move_are_left_alone(self):
        self.land("driver/a.cc", "// Told.\nint a;\n")
        self.write("driver/a.cc", "int a;\n")
        self.write("driver/b.cc", "  // Told.\n")
        self.assertEqual(self.complaints(), [])

    def test_last_commit_is_read_where_nothing_else_is_new(self):
        self.write("a.md", "Nobody.\n")
        self.commit()
        self.assertEqual(len(self.complaints()), 1)
        clone = self.root.parent / "clone"
        self.git("clone", "-q", str(self.root), str(clone))
        self.assertEqual(self.complaints(), self.complaints(clone))

    def test_all_commits_since_the_landed_branch_are_read(self):
        clone = self.root.parent / "clone"
        self.git("clone", "-q", str(self.root), str(clone))
        for number, text in enumerate(("Nobody.\n", "Fine.\n", "Also fine.\n")):
            (clone / f"{number}.md").write_text(text)
            self.git("add", "-A", root=clone)
            self.git("commit", "-q", "-m", "tests: Change", root=clone)
        self.assertEqual(len(self.complaints(clone)), 1)

    def test_stale_branch_does_not_hide_what_landed_since(self):
        clone = self.root.parent / "clone"
        self.git("clone", "-q", str(self.root), str(clone))
        self.land("a.md", "Nobody.\n")
        # A fetch by path leaves origin/main where it was.
        self.git("fetch", "-q", str(self.root) + "/.", "main", root=clone)
        self.git("merge", "-q", "--ff-only", "FETCH_HEAD", root=clone)
        self.assertEqual(self.complaints(clone), [])

    def test_first_commit_and_shallow_clone_have_nothing_to_compare(self):
        clone = self.root.parent / "clone"
        self.write("a.md", "Nobody.\n")
        self.commit()
        self.git("clone", "-q", "--depth", "1", f"file://{self.root}", str(clone))
        self.assertEqual(self.complaints(clone), [])

    def test_tree_without_history_cannot_be_checked(self):
        shutil.rmtree(self.root / ".git")
        self.assertIn("no git history", "".join(self.complaints()))


if __name__ == "__main__":
    unittest.main()
