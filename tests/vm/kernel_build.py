# SPDX-License-Identifier: Apache-2.0
"""A small kernel from Debian's source package, for what Debian's own leave out."""

import os
import pathlib
import shutil
import subprocess


class BuiltKernel:
    """A kernel without modules, in `directory`; built by the first who asks. Of
    the source, 1.8 GB when it is built, nothing stays."""

    def __init__(self, directory, source, fragment):
        """`source(where)` unpacks a kernel's source to `where`, if it is not
        there."""
        self._directory = pathlib.Path(directory)
        self._source = source
        self._fragment = pathlib.Path(fragment)
        self.image = self._directory / "bzImage"
        self._release = self._directory / "release"
        self.modules = None

    def build(self):
        wanted = self._fragment.read_text()
        used = self._directory / "fragment"
        if (used.exists() and used.read_text() == wanted and
                self._release.exists()):
            return
        tree = self._directory / "source"
        self._source(tree)
        self._make(tree, "tinyconfig")
        with open(tree / ".config", "a") as config:
            config.write(wanted)
        self._make(tree, "olddefconfig")
        self._check(tree, wanted)
        self._make(tree, f"-j{os.cpu_count()}", "bzImage")
        self.image.write_bytes((tree / "arch/x86/boot/bzImage").read_bytes())
        self._release.write_bytes(
            (tree / "include/config/kernel.release").read_bytes())
        used.write_text(wanted)
        shutil.rmtree(tree)

    @property
    def version(self):
        return f"{self._release.read_text().strip()}, built here"

    @staticmethod
    def _check(tree, wanted):
        """What depends on something that is off is dropped without a word."""
        made = (tree / ".config").read_text().splitlines()
        lost = [line for line in wanted.splitlines()
                if line.startswith("CONFIG_") and line not in made]
        if lost:
            raise RuntimeError("the kernel's configuration does not take " +
                               ", ".join(lost))

    def _make(self, tree, *targets):
        log = self._directory / "build.log"
        with open(log, "a") as out:
            # The build is in nobody's way.
            done = subprocess.run(["nice", "-n", "19", "make", "-s", *targets],
                                  cwd=tree, stdout=out, stderr=out)
        if done.returncode != 0:
            raise RuntimeError(f"make {' '.join(targets)} of the kernel failed; "
                               f"see {log}")
