# SPDX-License-Identifier: Apache-2.0
"""Our driver on a real kernel: VFIO in a virtual machine whose PCI devices are
served by heddle-nicd. `make test-vm`.

HEDDLE_BUILD is the build directory; HEDDLE_VM_CACHE keeps QEMU and kernels
between runs (default: vm in the build directory).
"""

import concurrent.futures
import io
import itertools
import os
import pathlib
import re
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
from tests.vm import initramfs, kernel_build, machine, packages  # noqa: E402

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
_REMAP_ROUNDS = 1500
# As many as any of them opens.
_FUNCTIONS = 3
_QEMU_SUITE = "forky"  # The first with QEMU 10.1 or later.
_WIRES = itertools.count()
_AT_A_TIME = 2
_LONGEST = ["test_library_works_on_functions",
            "test_memory_comes_and_goes_under_traffic"]


class Guest(unittest.TestCase):
    """One boot for each test."""

    modules = []

    @classmethod
    def take_kernel(cls):
        """The guest's kernel, and the bytes downloaded for it."""
        raise NotImplementedError

    @classmethod
    def prepare(cls):
        """Fetches QEMU and the kernel, before any test."""
        _CACHE.mkdir(parents=True, exist_ok=True)
        _REPORTS.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        print(f"vm: QEMU and kernel are in {_CACHE}, or fetched from "
              f"{packages.mirror()}", flush=True)
        tools = packages.AptRoot(_CACHE, _QEMU_SUITE)
        tools.unpack_with_dependencies("qemu-system-x86", _CACHE / "qemu")
        cls.qemu = machine.Qemu(_CACHE / "qemu")
        cls.kernel, downloaded = cls.take_kernel()
        downloaded += tools.downloaded_bytes
        print(f"vm: {cls.qemu.version()}; guest kernel {cls.kernel.version}; "
              f"{downloaded / 1e6:.1f} MB of packages fetched "
              f"in {time.monotonic() - start:.0f} s", flush=True)

    def setUp(self):
        self._directory = tempfile.TemporaryDirectory(prefix="heddle-vm.")
        self.addCleanup(self._directory.cleanup)
        self.directory = pathlib.Path(self._directory.name)
        self.wire = f"vm-{os.getpid()}-{next(_WIRES)}"

    def files(self):
        """What every guest has."""
        files = initramfs.Initramfs()
        for name in ["proc", "sys", "dev", "tmp", "sbin", "etc"]:
            files.add_directory(name)
        files.add("etc/hosts", b"127.0.0.1 localhost\n", 0o644)
        files.add_file(_HERE / "guest_init.sh", "init")
        files.add_file(_HERE / "guest_functions.sh", "guest_functions.sh")
        files.add_program(shutil.which("busybox"), "bin/busybox")
        if self.modules:
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
             network=False, device="soft"):
        """Boots a guest with `files` and as many functions; it has to pass.

        When the guest prints a line with `kill_at`, heddle-nicd is killed. The
        server has to have refused the accesses to memory that is not mapped
        which the guest says were deliberate, and no others."""
        image = self.directory / "initramfs.gz"
        files.write(image)
        sockets = [self.directory / f"function{i}" for i in range(functions)]
        log = _REPORTS / f"{self.id().rsplit('.', 1)[-1]}.log"
        server_log = log.with_suffix(".nicd.log")
        log.unlink(missing_ok=True)
        wire = {"wire": self.wire}
        start = time.monotonic()
        with machine.server(_BUILD / "bin/heddle-nicd", sockets,
                            wire | (settings or {}), server_log,
                            device) as process:
            if kill_at is not None:
                killer = threading.Thread(target=_kill_at,
                                          args=(kill_at, log, process))
                killer.start()
                self.addCleanup(killer.join)
            status = machine.run(
                self.qemu,
                machine.machine_arguments(self.kernel, image, sockets, network),
                log, _LIMIT_S, watch=process if kill_at is None else None,
                report=lambda seconds, line: self.say(f"{seconds:.0f} s: {line}"))
        self.say(f"guest ended after {time.monotonic() - start:.0f} s, QEMU's "
                 f"status {status}")
        if status != machine.PASSED:
            sys.stderr.write(log.read_text(errors="replace"))
            sys.stderr.write(server_log.read_text(errors="replace"))
            self.fail(f"the guest did not pass: QEMU ended with {status}, "
                      f"not {machine.PASSED}; see {log}")
        said = log.read_text(errors="replace")
        if kill_at is None:
            self.check_refusals(said, machine.refusals(server_log), functions)
        return said

    def check_refusals(self, said, refused, functions):
        self.assertEqual(len(refused), functions, "reports of the server")
        deliberate = re.findall(r"deliberate (read|write) at (0x[0-9a-f]+)", said)
        self.assertEqual(sorted(sum(refused, [])), sorted(deliberate))

    def check_driver(self, attachment):
        files = self.files()
        files.add_program(_BUILD / "bin/guest_vfio_test", "test")
        log = self.boot(files)
        self.assertIn("[  PASSED  ]", log)
        self.assertEqual(set(re.findall(r"attached by (\w+)", log)), {attachment})

    def check_remapping(self, tests="*"):
        files = self.files()
        for name in ["guest_remap_test", "guest_vfio_test"]:
            files.add_program(_BUILD / "bin" / name, name)
        self.add_script(files, "remap_test.sh", HEDDLE_TESTS=tests,
                        HEDDLE_TEST_ROUNDS=_REMAP_ROUNDS)
        log = self.boot(files)
        self.assertEqual(log.count("[  PASSED  ]"), 2)
        self.assertNotIn("not ok", log)
        self.assertEqual(len(re.findall("guest: deliberate", log)), 2)

    def say(self, text):
        print(f"vm: {self.id().rsplit('.', 1)[-1]}: {text}", flush=True)


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

    modules = ["vfio-pci", "vfio_iommu_type1"]

    @classmethod
    def take_kernel(cls):
        suite = "bookworm"
        kernels = packages.AptRoot(_CACHE, suite)
        kernels.unpack_kernel(_CACHE / f"kernel-{suite}")
        return (packages.Kernel(_CACHE / f"kernel-{suite}"),
                kernels.downloaded_bytes)

    def test_driver_works_through_the_iommu(self):
        self.check_driver("group")

    def test_memory_comes_and_goes_under_traffic(self):
        self.check_remapping()

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
        # That a function is taken is nothing to act on while there are others.
        self.assertNotRegex(log, "<warn>.*has a function of this IOMMU group")

    def test_selftest_passes_on_rtl(self):
        files = self.files()
        files.add_program(_BUILD / "bin/heddle", "usr/bin/heddle",
                          _BUILD / "lib/heddle/drop-in")
        self.add_script(files, "selftest_test.sh")
        log = self.boot(files, device="rtl")
        self.assertNotIn("not ok", log)
        self.assertEqual(len(re.findall(r"^ok +rings ", log, re.MULTILINE)), 2)

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


class DeviceFileTest(Guest):
    """A kernel with iommufd and VFIO device files, which none of Debian's has:
    built from Debian's source. Only by name: `make test-vm-iommufd`."""

    @classmethod
    def take_kernel(cls):
        sources = packages.AptRoot(_CACHE, "trixie")
        kernel = kernel_build.BuiltKernel(
            _CACHE / "kernel-iommufd", sources.unpack_kernel_source,
            _HERE / "kernel_iommufd.config")
        kernel.build()
        return kernel, sources.downloaded_bytes

    def test_driver_works_through_iommufd(self):
        self.check_driver("iommufd")

    def test_memory_comes_and_goes_through_iommufd(self):
        # It has no limit of mappings.
        self.check_remapping("GuestRemapTest.*")


def _tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _tests(test)
        else:
            yield test


def _run(test):
    """True if it passed; what there is to say is said at once."""
    stream = io.StringIO()
    result = unittest.TextTestRunner(stream).run(test)
    passed = result.wasSuccessful() and not result.skipped
    test.say("passed" if passed else f"FAILED\n{stream.getvalue().strip()}")
    return passed


def main(names):
    """The tests named, or those of Debian's kernel; two at a time, those that
    take longest first."""
    tests = list(_tests(unittest.defaultTestLoader.loadTestsFromNames(
        names or ["GroupTest"], sys.modules[__name__])))
    try:
        for kind in {type(test) for test in tests}:
            kind.prepare()
    except RuntimeError as error:
        print(f"vm: {error}", file=sys.stderr)
        return 1
    tests.sort(key=lambda test: test.id().rsplit(".", 1)[-1] not in _LONGEST)
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(_AT_A_TIME) as pool:
        passed = sum(pool.map(_run, tests))
    print(f"vm: {passed} of {len(tests)} guests passed in "
          f"{time.monotonic() - start:.0f} s")
    return 0 if tests and passed == len(tests) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
