# SPDX-License-Identifier: Apache-2.0
"""What a process with an endpoint prints is found line by line, however it arrives."""

import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/clients"))

from endpoints import DEADLINE_S, Endpoint  # noqa: E402


class EndpointOutput(unittest.TestCase):
    def start(self, text):
        """A process that prints `text` at once, then ends when its input does."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "tests/clients_endpoint"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\nimport os, sys\nos.write(1, {text.encode()!r})\nsys.stdin.read()\n")
        program.chmod(0o755)
        endpoint = Endpoint(dict(os.environ), library=folder.name)
        self.addCleanup(endpoint.__exit__)
        return endpoint

    def test_a_line_that_came_with_the_one_before_is_there(self):
        endpoint = self.start("one\ntwo\n")
        self.assertEqual(endpoint.line(), "one")
        self.assertTrue(endpoint.says(0))
        self.assertEqual(endpoint.line(), "two")
        self.assertFalse(endpoint.says(0))

    def test_a_part_of_a_line_is_no_line(self):
        endpoint = self.start("one\nt")
        self.assertEqual(endpoint.line(), "one")
        self.assertFalse(endpoint.says(0))

    def test_the_end_of_a_process_is_there(self):
        endpoint = self.start("")
        endpoint.process.stdin.close()
        self.assertTrue(endpoint.says(DEADLINE_S))
        self.assertEqual(endpoint.line(), "")


if __name__ == "__main__":
    unittest.main()
