# SPDX-License-Identifier: Apache-2.0
"""heddle-wire tap: a port of a one-machine wire at a UNIX socket. HEDDLE_BUILD names the build directory."""

import pathlib
import signal
import socket
import subprocess
import tempfile

from endpoints import BUILD, DEADLINE_S

TOOL = BUILD / "bin/heddle-wire"


class Tap:
    """A process that serves one. It is ready when the constructor returns; it ends with the block."""

    def __init__(self, wire, address, path=None):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(path or pathlib.Path(self.folder.name, "tap"))
        self.process = subprocess.Popen([TOOL, "-w", wire, "tap", address, self.path], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        words = self.process.stdout.readline().split()
        if words[:1] != [address]:
            status = self.process.wait(DEADLINE_S)
            raise AssertionError(f"heddle-wire tap ended with {status}: {self.process.stderr.read()}")
        self.mac = bytes.fromhex(words[2].replace(":", ""))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        self.process.stdout.close()
        self.process.stderr.close()
        self.folder.cleanup()

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(DEADLINE_S)
        client.connect(str(self.path))
        return client

    def end(self, by=signal.SIGTERM):
        """Ends it: its status, its counts of frames, and its log."""
        self.process.send_signal(by)
        out, log = self.process.communicate(timeout=DEADLINE_S)
        rows = (line.split() for line in out.splitlines())
        return self.process.returncode, {name: int(count) for name, count in rows}, log
