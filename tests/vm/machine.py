# SPDX-License-Identifier: Apache-2.0
"""A virtual machine with the NIC's functions as PCI devices, under TCG."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

# What the guest writes to the exit port, times two, plus one.
PASSED = 33
_REPORT_S = 30


class Qemu:
    """QEMU unpacked beside the system, run by its own loader and libraries."""

    def __init__(self, root):
        root = pathlib.Path(root)
        self._libraries = root / "usr/lib/x86_64-linux-gnu"
        self._share = root / "usr/share"
        self._program = root / "usr/bin/qemu-system-x86_64"

    def command(self, *arguments):
        return [str(self._libraries / "ld-linux-x86-64.so.2"), "--library-path",
                str(self._libraries), str(self._program),
                "-L", str(self._share / "qemu"),
                "-L", str(self._share / "seabios"), *arguments]

    def version(self):
        return subprocess.run(self.command("--version"), text=True, check=True,
                              capture_output=True).stdout.splitlines()[0]


def machine_arguments(kernel, initramfs, sockets, network=False):
    """For `sockets`, one function each behind a root port and an IOMMU; with
    `network`, the host at 10.0.2.2."""
    devices = ["-netdev", "user,id=net", "-device",
               "virtio-net-pci,netdev=net,romfile="] if network else []
    for index, path in enumerate(sockets):
        devices += [
            "-device", f"pcie-root-port,id=port{index},slot={index + 1}",
            "-device", json.dumps({
                "driver": "vfio-user-pci", "bus": f"port{index}",
                "socket": {"type": "unix", "path": str(path)},
                "x-msg-timeout": 60000})]
    return [
        "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
        "-m", "1G",
        # Private memory would be written to and never be seen by the guest.
        "-object", "memory-backend-memfd,id=memory,size=1G,share=on",
        "-machine", "memory-backend=memory",
        "-display", "none", "-vga", "none", "-nodefaults", "-no-user-config",
        "-no-reboot", "-serial", "stdio", "-monitor", "none",
        "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
        # A virtual IOMMU is told of unmapping in caching mode only.
        "-device", "intel-iommu,intremap=on,caching-mode=on",
        *devices, "-kernel", str(kernel.image), "-initrd", str(initramfs),
        # The timer check is missed on a busy host. Huge pages spare thousands of
        # mappings.
        "-append", "console=ttyS0 quiet panic=-1 mitigations=off "
                   "no_timer_check intel_iommu=on hugepages=64"]


@contextlib.contextmanager
def server(program, sockets, settings, log, device="soft"):
    """heddle-nicd, once it serves; its process is yielded."""
    # QEMU hides SR-IOV from its guests.
    command = [str(program), "--device", device, "--all-on"]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    with open(log, "w") as out:
        process = subprocess.Popen([*command, *map(str, sockets)], text=True,
                                   stdout=subprocess.PIPE, stderr=out)
    try:
        if "serving" not in process.stdout.readline():
            raise RuntimeError("heddle-nicd did not start:\n" +
                               pathlib.Path(log).read_text())
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def refusals(log):
    """What the server refused of its clients' memory, a list for each client:
    (`read` or `write`, IOVA)."""
    text = pathlib.Path(log).read_text()
    clients = []
    for count, first in re.findall(
            r": the client's memory: (\d+) accesses refused(.*)", text):
        accesses = re.findall(r"(read|write) of 0x[0-9a-f]+ at (0x[0-9a-f]+)",
                              first)
        # The log names the first of many.
        accesses += [("more", "?")] * (int(count) - len(accesses))
        clients.append(accesses)
    return clients


def run(qemu, arguments, log, limit_s, watch=None, report=None):
    """Runs a guest to its end; QEMU's status, or None after `limit_s`.

    `watch`, a process that the guest's devices live in: the guest is ended when
    it dies, because it may wait for them for ever. `report` is called now and
    then with the last line of the log.
    """
    start = time.monotonic()
    end = start + limit_s
    next_report = start + _REPORT_S
    with open(log, "w") as out:
        process = subprocess.Popen(qemu.command(*arguments),
                                   stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT,
                                   env=dict(os.environ))
        while True:
            try:
                return process.wait(1)
            except subprocess.TimeoutExpired:
                now = time.monotonic()
                if report is not None and now > next_report:
                    next_report = now + _REPORT_S
                    report(now - start, _last_line(log))
                gone = watch is not None and watch.poll() is not None
                if gone or now > end:
                    process.kill()
                    process.wait()
                    return None


def _last_line(log):
    lines = pathlib.Path(log).read_text(errors="replace").splitlines()
    return lines[-1].strip() if lines else "nothing yet"
