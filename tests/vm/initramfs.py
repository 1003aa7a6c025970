# SPDX-License-Identifier: Apache-2.0
"""A guest's initial file system: kernel modules, programs, what they need."""

import gzip
import lzma
import os
import pathlib
import re
import stat
import subprocess

_MAGIC = b"070701"

# In the guest, for LD_LIBRARY_PATH.
OUR_LIBRARIES = "/usr/lib/heddle"


class Initramfs:
    """Files collected first, written at the end as a compressed cpio archive."""

    def __init__(self):
        self._entries = {}  # Guest path: (mode, data).

    def _directory(self, path):
        for part in reversed(pathlib.PurePosixPath(path).parents):
            if str(part) != ".":
                self._entries.setdefault(str(part), (stat.S_IFDIR | 0o755, b""))

    def add(self, path, data, mode=0o755):
        path = path.strip("/")
        self._directory(path)
        self._entries[path] = (stat.S_IFREG | mode, data)

    def add_directory(self, path):
        self._directory(path.strip("/") + "/.")
        self._entries.setdefault(path.strip("/"), (stat.S_IFDIR | 0o755, b""))

    def add_link(self, path, target):
        path = path.strip("/")
        self._directory(path)
        self._entries[path] = (stat.S_IFLNK | 0o777, target.encode())

    def add_file(self, source, path=None, mode=0o755):
        self.add(path or str(source), pathlib.Path(source).read_bytes(), mode)

    def add_program(self, source, path=None, libraries=None):
        """A program or library with all that the loader finds for it, first in
        directory `libraries`. What is not the system's goes to `OUR_LIBRARIES`."""
        self.add_file(source, path)
        environment = dict(os.environ)
        if libraries is not None:
            environment["LD_LIBRARY_PATH"] = str(libraries)
        listed = subprocess.run(["ldd", str(source)], text=True,
                               env=environment, capture_output=True).stdout
        for line in listed.splitlines():
            if "not found" in line:
                raise RuntimeError(f"{source}: {line.strip()}")
            library = (re.search(r"=> (/\S+)", line) or
                       re.match(r"\s*(/\S+) \(", line))
            if library:
                found = pathlib.PurePath(library.group(1))
                ours = found.parts[1] not in ("lib", "lib64", "usr")
                self.add_file(found, f"{OUR_LIBRARIES}/{found.name}"
                              if ours else None)

    def add_modules(self, kernel, names):
        """Modules with those they depend on, named so that their order shows."""
        files = {}
        for path in kernel.modules.rglob("*.ko*"):
            files[path.name.split(".ko")[0].replace("-", "_")] = path
        builtin = {pathlib.PurePath(line).stem.replace("-", "_") for line in
                   (kernel.modules / "modules.builtin").read_text().split()}
        order = []

        def need(name):
            name = name.replace("-", "_")
            if name in builtin or name in (known for known, _ in order):
                return
            if name not in files:
                raise RuntimeError(f"kernel {kernel.version} has no module {name}")
            data = _uncompressed(files[name])
            depends = re.search(rb"\0depends=([^\0]*)\0", data)
            for other in (depends.group(1).decode().split(",")
                          if depends and depends.group(1) else []):
                need(other)
            order.append((name, data))

        for name in names:
            need(name)
        for index, (name, data) in enumerate(order):
            self.add(f"modules/{index:02d}-{name}.ko", data, 0o644)

    def write(self, path):
        with gzip.open(path, "wb", compresslevel=1) as out:
            for number, (name, (mode, data)) in enumerate(
                    [*self._entries.items(), ("TRAILER!!!", (0, b""))]):
                encoded = name.encode() + b"\0"
                fields = [number + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0,
                          len(encoded), 0]
                head = _MAGIC + b"".join(b"%08x" % f for f in fields) + encoded
                out.write(_padded(head) + _padded(data))


def _padded(data):
    return data + bytes(-len(data) % 4)


def _uncompressed(path):
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", str(path)], check=True,
                              capture_output=True).stdout
    return data
