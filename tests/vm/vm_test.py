# SPDX-License-Identifier: Apache-2.0
"""Our driver on a real kernel: VFIO in a virtual machine whose PCI devices are
served by heddle-nicd. `make test-vm`.

HEDDLE_BUILD is the build directory; HEDDLE_VM_CACHE keeps QEMU and kernels
between runs (default: vm in the build directory).
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.vm import initramfs, machine, packages  # noqa: E402

_HERE = pathlib.Path(__file__).resolve().parent
_BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"]).resolve()
_CACHE = pathlib.Path(os.environ.get("HEDDLE_VM_CACHE",
                                     _BUILD / "vm")).resolve()
_REPORTS = _BUILD / "reports" / "vm"
_LIMIT_S = 240
_QEMU_SUITE = "forky"  # The first with QEMU 10.1 or later.


class Guest(unittest.TestCase):
    """One boot for each test."""

    suite = "bookworm"
    modules = ["vfio-pci", "vfio_iommu_type1"]

    @classmethod
    def setUpClass(cls):
        _CACHE.mkdir(parents=True, exist_ok=True)
        _REPORTS.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        tools = packages.AptRoot(_CACHE, _QEMU_SUITE)
        tools.unpack_with_dependencies("qemu-system-x86", _CACHE / "qemu")
        kernels = packages.AptRoot(_CACHE, cls.suite)
        kernels.unpack_kernel(_CACHE / f"kernel-{cls.suite}")
        cls.qemu = machine.Qemu(_CACHE / "qemu")
        cls.kernel = packages.Kernel(_CACHE / f"kernel-{cls.suite}")
        downloaded = tools.downloaded_bytes + kernels.downloaded_bytes
        print(f"vm: {cls.qemu.version()}; guest kernel {cls.kernel.version}; "
              f"downloaded {downloaded / 1e6:.1f} MB in "
              f"{time.monotonic() - start:.0f} s")

    def setUp(self):
        self._directory = tempfile.TemporaryDirectory(prefix="heddle-vm.")
        self.addCleanup(self._directory.cleanup)
        self.directory = pathlib.Path(self._directory.name)

    def boot(self, program, functions=2, settings=None):
        """Boots a guest that runs `program` as its test; it has to pass."""
        files = initramfs.Initramfs()
        for name in ["proc", "sys", "dev", "tmp", "sbin"]:
            files.add_directory(name)
        files.add_file(_HERE / "guest_init.sh", "init")
        files.add_program(shutil.which("busybox"), "bin/busybox")
        files.add_modules(self.kernel, self.modules)
        files.add_program(program, "test")
        image = self.directory / "initramfs.gz"
        files.write(image)
        sockets = [self.directory / f"function{i}" for i in range(functions)]
        log = _REPORTS / f"{self.id().rsplit('.', 1)[-1]}.log"
        server_log = log.with_suffix(".nicd.log")
        wire = {"wire": f"vm-{os.getpid()}"}
        start = time.monotonic()
        with machine.server(_BUILD / "bin/heddle-nicd", sockets,
                            wire | (settings or {}), server_log) as process:
            status = machine.run(
                self.qemu,
                machine.machine_arguments(self.kernel, image, sockets), log,
                _LIMIT_S, process)
        print(f"vm: guest ended after {time.monotonic() - start:.0f} s, "
              f"QEMU's status {status}")
        if status != machine.PASSED:
            sys.stderr.write(log.read_text(errors="replace"))
            sys.stderr.write(server_log.read_text(errors="replace"))
            self.fail(f"the guest did not pass: QEMU ended with {status}, "
                      f"not {machine.PASSED}; see {log}")
        return log.read_text(errors="replace")


class GroupTest(Guest):
    """Debian 12's kernel: group, container, type 1."""

    def test_driver_works_through_the_iommu(self):
        log = self.boot(_BUILD / "bin/guest_vfio_test")
        self.assertIn("[  PASSED  ]", log)


if __name__ == "__main__":
    unittest.main()
