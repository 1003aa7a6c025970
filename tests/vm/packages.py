# SPDX-License-Identifier: Apache-2.0
"""Debian packages unpacked beside the system: a newer QEMU, guest kernels.

They come by name through apt and its signed metadata, with an apt root of their
own, so that nothing is installed and no release of this system is touched.
"""

import os
import pathlib
import re
import subprocess

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

_APT_CONFIG = """\
Dir::Etc::sourcelist "{root}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "{root}/lists";
Dir::State::status "{root}/status";
Dir::Cache "{root}";
Dir::Cache::archives "{root}/archives";
APT::Sandbox::User "";
APT::Install-Recommends "false";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Debug::NoLocking "true";
"""


def mirror():
    """The Debian mirror that this system is set up with."""
    for path in sorted(pathlib.Path("/etc/apt").glob("sources.list.d/*.sources")):
        found = re.search(r"^URIs:\s*(\S+)", path.read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    for path in [pathlib.Path("/etc/apt/sources.list")]:
        found = path.exists() and re.search(
            r"^deb\s+(?:\[[^]]*\]\s+)?(\S+)", path.read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    raise RuntimeError("no Debian mirror in /etc/apt; the guest's packages come "
                       "from one")


class AptRoot:
    """Packages of one Debian suite, downloaded to and unpacked in `directory`."""

    def __init__(self, directory, suite):
        self._root = pathlib.Path(directory) / f"apt-{suite}"
        self._suite = suite
        self._is_ready = False
        self.downloaded_bytes = 0

    def _apt(self, program, *arguments):
        environment = dict(os.environ, APT_CONFIG=str(self._root / "apt.conf"),
                           DEBIAN_FRONTEND="noninteractive")
        done = subprocess.run([program, *arguments], env=environment,
                              cwd=self._root / "archives", text=True,
                              capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(arguments)} "
                               f"({self._suite}): {done.stderr.strip()}")
        return done.stdout

    def _prepare(self):
        """Once in a process: lists of an earlier run name packages that the
        mirror may have replaced since."""
        if self._is_ready:
            return
        for name in ["lists/partial", "archives/partial"]:
            (self._root / name).mkdir(parents=True, exist_ok=True)
        (self._root / "status").touch()
        (self._root / "sources.list").write_text(
            f"deb [signed-by={_KEYRING}] {mirror()} {self._suite} main\n")
        (self._root / "apt.conf").write_text(
            _APT_CONFIG.format(root=self._root.resolve()))
        self._apt("apt-get", "-qq", "update")
        self._is_ready = True

    def _fetch(self, *arguments):
        """The packages that apt-get downloads with these arguments."""
        for archive in self._archives():  # Of a run that was ended.
            archive.unlink()
        self._apt("apt-get", "-qq", *arguments)
        archives = self._archives()
        self.downloaded_bytes += sum(a.stat().st_size for a in archives)
        return archives

    def _archives(self):
        return list((self._root / "archives").glob("*.deb"))

    def _unpack(self, archives, directory):
        """All or nothing: a half-unpacked tree is never seen."""
        directory = pathlib.Path(directory)
        partial = directory.with_name(directory.name + ".partial")
        subprocess.run(["rm", "-rf", str(partial)], check=True)
        partial.mkdir(parents=True)
        for archive in sorted(archives):
            subprocess.run(["dpkg-deb", "-x", str(archive), str(partial)],
                           check=True)
        partial.rename(directory)

    def unpack_with_dependencies(self, package, directory):
        """Unpacks a package and all that it depends on, once."""
        if pathlib.Path(directory).exists():
            return
        self._prepare()
        archives = self._fetch("-y", "--download-only", "install", package)
        self._unpack(archives, directory)
        self._forget(archives)

    def unpack_kernel(self, directory):
        """Unpacks the suite's kernel for this architecture, once."""
        if pathlib.Path(directory).exists():
            return
        self._prepare()
        depends = self._apt("apt-cache", "depends", "linux-image-amd64")
        image = re.search(r"Depends: (linux-image-[0-9]\S*)", depends).group(1)
        version = image.removeprefix("linux-image-")
        # Newer releases split the image from its modules.
        known = self._apt("apt-cache", "pkgnames", f"linux-modules-{version}")
        names = ([f"linux-binary-{version}", f"linux-modules-{version}"]
                 if f"linux-modules-{version}" in known.split() else [image])
        archives = self._fetch("download", *names)
        self._unpack(archives, directory)
        self._forget(archives)

    def unpack_kernel_source(self, directory):
        """Unpacks the suite's newest kernel source, once."""
        directory = pathlib.Path(directory)
        if directory.exists():
            return
        self._prepare()
        depends = self._apt("apt-cache", "depends", "linux-source")
        name = re.search(r"Depends: (linux-source-[0-9]\S*)", depends).group(1)
        archives = self._fetch("download", name)
        package = directory.with_name(directory.name + ".package")
        self._unpack(archives, package)
        tree = directory.with_name(directory.name + ".partial")
        subprocess.run(["rm", "-rf", str(tree)], check=True)
        tree.mkdir(parents=True)
        subprocess.run(["tar", "-x", "--strip-components=1", "-C", str(tree), "-f",
                        str(package / f"usr/src/{name}.tar.xz")], check=True)
        tree.rename(directory)
        subprocess.run(["rm", "-rf", str(package)], check=True)
        self._forget(archives)

    @staticmethod
    def _forget(archives):
        for archive in archives:
            archive.unlink()


class Kernel:
    """A kernel as `unpack_kernel` left it."""

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        modules = [*directory.glob("lib/modules/*"),
                   *directory.glob("usr/lib/modules/*")]
        images = [*directory.glob("boot/vmlinuz-*"),
                  *(m / "vmlinuz" for m in modules)]
        self.modules = modules[0]
        self.version = self.modules.name
        self.image = next(i for i in images if i.exists())
