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
import threading
import time
import tomllib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] /
                       "scripts/clients"))
import pingpong  # noqa: E402
from tests.vm import initramfs, machine, packages  # noqa: E402

_HERE = pathlib.Path(__file__).resolve().parent
_BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"]).resolve()
_CACHE = pathlib.Path(os.environ.get("HEDDLE_VM_CACHE",
                                     _BUILD / "vm")).resolve()
_REPORTS = _BUILD / "reports" / "vm"
_LIMIT_S = 420
# Of the API's tests those that differ on a device behind a kernel and an IOMMU:
# memory in every way, sleeping, closing, errors. In a guest that is emulated they
# take seconds each; all of them run on the same device in a process.
_MSG_TESTS = ":".join([
    "CallerMemoryTest.*", "OpenObjectsTest.*",
    "MessageTest.CarriesEverySizeUnchanged",
    "MessageTest.GathersAndScattersUpToTheLimit",
    "MessageTest.TruncationIsTheReceiversErrorOnly",
    "MessageTest.SmallCompletionQueueLosesNothing",
    "MessageTest.Re*", "MessageTest.AutoProgressNeedsNoCallOfTheReceiver",
    "WaitTest.BlockedReaderWakesForAMessage",
    "WaitTest.SignalWakesABlockedReader",
    "WaitTest.DescriptorTellsOfEntriesAfterTryWait",
    "WaitTest.EachWaitingQueueHasItsOwnDescriptor",
    "BadUseTest.CloseDiscardsWhatIsOutstanding",
    "BadUseTest.PortsAreClaimedOnce", "StatisticsTest.DomainCountsItsOwnMessages",
    "ObjectsTest.InheritedObjectsAreRefusedInAForkedChild"])
_RMA_TESTS = ":".join([
    "MemoryTest.*Anew", "TransferTest.*EverySize*",
    "TransferTest.GathersAndScattersSegmentsOfBothSides",
    "TransferTest.ManyAtOnceAllArrive", "RegionTest.ClosedRegionIsTouchedNoMore",
    "RegionTest.SeveralMayCoverTheSameMemory",
    "CounterTest.EachKindOfOperationCountsWhereItBelongs",
    "ErrorTest.BytesOutsideTheRegion", "DataTest.SenderIsNamedToThoseWhoAsk",
    "LevelTest.DeliveryCompleteMeansThatTheDataAreThere"])
# As many as any of them opens.
_FUNCTIONS = 3
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
        self.wire = f"vm-{os.getpid()}"

    def files(self):
        """What every guest has."""
        files = initramfs.Initramfs()
        for name in ["proc", "sys", "dev", "tmp", "sbin", "etc"]:
            files.add_directory(name)
        files.add("etc/hosts", b"127.0.0.1 localhost\n", 0o644)
        files.add_file(_HERE / "guest_init.sh", "init")
        files.add_file(_HERE / "guest_functions.sh", "guest_functions.sh")
        files.add_program(shutil.which("busybox"), "bin/busybox")
        files.add_modules(self.kernel, self.modules)
        return files

    def add_script(self, files, name, **variables):
        """The guest's test is the script `name`, which knows `variables`."""
        lines = [f"export {key}='{value}'" for key, value in
                 {"HEDDLE_PCI": _pci_identities(),
                  "HEDDLE_LIBRARIES": initramfs.OUR_LIBRARIES,
                  **variables}.items()]
        first, rest = (_HERE / name).read_text().split("\n", 1)
        files.add("test", "\n".join([first, *lines, rest]).encode())

    def add_library(self, files):
        """libheddle in both forms, with stock programs."""
        plug_in = "/usr/lib/libfabric"
        for name in ["fi_info", "fi_pingpong"]:
            program = shutil.which(name)
            files.add_program(program, f"usr/bin/{name}")
            files.add_program(program, f"usr/bin/{name}",
                              _BUILD / "lib/heddle/drop-in")
        files.add_program(_BUILD / "lib/libfabric/libheddle-fi.so",
                          f"{plug_in}/libheddle-fi.so")
        return {"HEDDLE_PLUG_IN": plug_in}

    def boot(self, files, functions=2, settings=None, kill_at=None,
             network=False):
        """Boots a guest with `files` and as many functions; it has to pass.

        When the guest prints a line with `kill_at`, heddle-nicd is killed."""
        image = self.directory / "initramfs.gz"
        files.write(image)
        sockets = [self.directory / f"function{i}" for i in range(functions)]
        log = _REPORTS / f"{self.id().rsplit('.', 1)[-1]}.log"
        server_log = log.with_suffix(".nicd.log")
        log.unlink(missing_ok=True)
        wire = {"wire": self.wire}
        start = time.monotonic()
        with machine.server(_BUILD / "bin/heddle-nicd", sockets,
                            wire | (settings or {}), server_log) as process:
            if kill_at is not None:
                killer = threading.Thread(target=_kill_at,
                                          args=(kill_at, log, process))
                killer.start()
                self.addCleanup(killer.join)
            status = machine.run(
                self.qemu,
                machine.machine_arguments(self.kernel, image, sockets, network),
                log, _LIMIT_S, watch=process if kill_at is None else None)
        print(f"vm: guest ended after {time.monotonic() - start:.0f} s, "
              f"QEMU's status {status}")
        if status != machine.PASSED:
            sys.stderr.write(log.read_text(errors="replace"))
            sys.stderr.write(server_log.read_text(errors="replace"))
            self.fail(f"the guest did not pass: QEMU ended with {status}, "
                      f"not {machine.PASSED}; see {log}")
        return log.read_text(errors="replace")


def _kill_at(text, log, process):
    """Kills `process` when `text` is in the file `log`; gives up with the guest."""
    end = time.monotonic() + _LIMIT_S
    while process.poll() is None and time.monotonic() < end:
        if log.exists() and text in log.read_text(errors="replace"):
            process.kill()
        time.sleep(0.05)


def _pci_identities():
    """vendor:device of the NIC's functions, as sysfs writes them."""
    contract = tomllib.loads(
        (_HERE.parents[1] / "hw/contract/heddle.toml").read_text())
    value = {p["name"]: p["value"] for p in contract["parameter"]}
    return " ".join(f"{value['pci_vendor']:#06x}:{value[name]:#06x}"
                    for name in ["pci_device", "pci_virtual_device"])


class GroupTest(Guest):
    """Debian 12's kernel: group, container, type 1."""

    def test_driver_works_through_the_iommu(self):
        files = self.files()
        files.add_program(_BUILD / "bin/guest_vfio_test", "test")
        log = self.boot(files)
        self.assertIn("[  PASSED  ]", log)

    def test_library_works_on_functions(self):
        files = self.files()
        variables = self.add_library(files)
        for name in ["rdm_msg_test", "rma_test"]:
            files.add_program(_BUILD / "tests" / name, name)
        self.add_script(files, "library_test.sh", **variables,
                        HEDDLE_TEST_ROUNDS=60,
                        HEDDLE_MSG_TESTS=_MSG_TESTS, HEDDLE_RMA_TESTS=_RMA_TESTS)
        log = self.boot(files, functions=_FUNCTIONS)
        self.assertEqual(log.count("[  PASSED  ]"), 2)
        self.assertNotIn("not ok", log)

    def boot_failure(self, test, last_line="", **boot):
        files = self.files()
        files.add_program(_BUILD / "bin/guest_failure_test",
                          "guest_failure_test")
        self.add_script(files, "failure_test.sh",
                        HEDDLE_TESTS=f"GuestFailureTest.{test}",
                        HEDDLE_LAST_LINE=last_line)
        self.assertIn(last_line or "[  PASSED  ] 1 test",
                      self.boot(files, **boot))

    def test_function_is_unplugged_under_traffic(self):
        self.boot_failure("UnplugEndsTrafficAndTheKernelGetsTheFunction")

    def test_server_is_killed(self):
        self.boot_failure("DeathOfTheServerEndsWhatIsOutstanding",
                          "guest: the fault was reported",
                          kill_at="guest: the server may go")

    def test_pingpong_passes_between_guest_and_host(self):
        settings = {"FI_HEDDLE_DEVICE": "soft", "FI_HEDDLE_WIRE": self.wire,
                    "FI_HEDDLE_IP": "10.77.0.2", "FI_HEDDLE_JOB_ID": "4711"}
        host = pingpong.Pingpong(
            pingpong.environment(_BUILD, "drop-in", **settings), self.directory)
        server, port = host.start_server(time.monotonic() + _LIMIT_S)
        self.addCleanup(pingpong.stop, server)
        files = self.files()
        files.add_modules(self.kernel, ["virtio_pci", "virtio_net"])
        self.add_library(files)
        self.add_script(files, "host_test.sh", HEDDLE_PORT=port,
                        FI_HEDDLE_JOB_ID="4711")
        log = self.boot(files, functions=1, settings={"address": "10.77.0.1"},
                        network=True)
        self.assertNotIn("not ok", log)
        self.assertEqual(server.wait(20), 0)
        self.assertEqual(len(host.check_rows("server")),
                         len(pingpong.DEFAULT_SIZES))


if __name__ == "__main__":
    unittest.main()
