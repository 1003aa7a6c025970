# SPDX-License-Identifier: Apache-2.0
"""What `make test-vm` keeps between runs: packages, and a kernel built here."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.vm import kernel_build, packages  # noqa: E402

_MAKEFILE = """\
tinyconfig:
\ttouch .config
olddefconfig:
\ttrue
bzImage:
\tmkdir -p arch/x86/boot include/config
\techo image >arch/x86/boot/bzImage
\techo 6.12.1 >include/config/kernel.release
"""


class OwnDirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)


class LocalApt(packages.AptRoot):
    """apt-get with one package, in place of the network."""

    def __init__(self, directory, package):
        super().__init__(directory, "any")
        self._package = package
        self.fails = None
        self.calls = []

    def _apt(self, program, *arguments):
        self.calls.append(arguments)
        if self.fails in arguments:
            raise RuntimeError(f"{self.fails} failed")
        if "install" in arguments:
            (self._root / "archives/own.deb").write_bytes(self._package)
        return ""


class PackagesTest(OwnDirectory):
    def setUp(self):
        super().setUp()
        tree = self.directory / "tree"
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text(
            "Package: own\nVersion: 1\nArchitecture: all\n"
            "Maintainer: nobody\nDescription: one\n")
        (tree / "file").write_text("content")
        package = self.directory / "own.deb"
        subprocess.run(["dpkg-deb", "-b", tree, package], check=True,
                       capture_output=True)
        self.package = package.read_bytes()
        self.unpacked = self.directory / "unpacked"
        mirror = unittest.mock.patch.object(packages, "mirror",
                                            return_value="http://nowhere")
        mirror.start()
        self.addCleanup(mirror.stop)

    def apt(self):
        return LocalApt(self.directory / "cache", self.package)

    def test_package_is_unpacked_once_and_its_archive_goes(self):
        apt = self.apt()
        apt.unpack_with_dependencies("own", self.unpacked)
        self.assertEqual((self.unpacked / "file").read_text(), "content")
        self.assertEqual(apt.downloaded_bytes, len(self.package))
        self.assertEqual(list(self.directory.rglob("cache/**/*.deb")), [])
        again = self.apt()
        again.unpack_with_dependencies("own", self.unpacked)
        self.assertEqual(again.calls, [])

    def test_what_an_ended_run_left_is_not_taken_for_the_package(self):
        apt = self.apt()
        apt.fails = "install"
        with self.assertRaisesRegex(RuntimeError, "install failed"):
            apt.unpack_with_dependencies("own", self.unpacked)
        (self.directory / "cache/apt-any/archives/own.deb").write_bytes(b"half")
        self.apt().unpack_with_dependencies("own", self.unpacked)
        self.assertEqual((self.unpacked / "file").read_text(), "content")

    def test_lists_that_could_not_be_fetched_are_asked_for_again(self):
        apt = self.apt()
        apt.fails = "update"
        with self.assertRaisesRegex(RuntimeError, "update failed"):
            apt.unpack_with_dependencies("own", self.unpacked)
        self.apt().unpack_with_dependencies("own", self.unpacked)
        self.assertTrue((self.unpacked / "file").exists())


class BuiltKernelTest(OwnDirectory):
    def kernel(self, source):
        return kernel_build.BuiltKernel(self.directory / "kernel", source,
                                        self.directory / "fragment")

    def unpack(self, where):
        where.mkdir(parents=True, exist_ok=True)
        (where / "Makefile").write_text(_MAKEFILE)

    def test_kernel_stays_and_its_source_goes(self):
        (self.directory / "fragment").write_text("CONFIG_A=y\n")
        self.kernel(self.unpack).build()
        kernel = self.kernel(lambda where: self.fail("built again"))
        kernel.build()
        self.assertEqual(kernel.version, "6.12.1, built here")
        self.assertEqual(kernel.image.read_text(), "image\n")
        self.assertFalse((self.directory / "kernel/source").exists())

    def test_other_configuration_is_built_anew(self):
        for text in ["CONFIG_A=y\n", "CONFIG_B=y\n"]:
            (self.directory / "fragment").write_text(text)
            unpacked = []
            self.kernel(lambda where: (unpacked.append(where),
                                       self.unpack(where))).build()
            self.assertEqual(len(unpacked), 1)


if __name__ == "__main__":
    unittest.main()
