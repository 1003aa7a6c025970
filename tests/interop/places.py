# SPDX-License-Identifier: Apache-2.0
"""Where a device and the independent peer meet: addresses, the wire, and the device's settings."""

import ipaddress
import pathlib
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/clients"))

import pingpong  # noqa: E402
from taps import Tap as TapProcess  # noqa: E402
from uet.live import Sockets, Tap  # noqa: E402
from uet.messages import Destination  # noqa: E402

PEER_PORT = 7000
TAPPED = {4: {"heddle": "10.9.0.1", "peer": "10.9.0.2"}, 6: {"heddle": "fd00::1", "peer": "fd00::2"}}
ADDRESSES = {"heddle": "127.0.0.1", "peer": "127.0.0.2"}


def endpoint_name(address, port):
    """The name of an endpoint, as libfabric has it: a socket address."""
    address = ipaddress.ip_address(address)
    if address.version == 6:
        return (struct.pack("=H", socket.AF_INET6) + struct.pack(">HI", port, 0) + address.packed + bytes(4)).hex()
    return (struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + address.packed + bytes(8)).hex()


def destination(name):
    """Where UET finds the endpoint of a libfabric name: its port is PIDonFEP and the upper bits of the resource index."""
    data = bytes.fromhex(name)
    family, = struct.unpack_from("=H", data)
    port = int.from_bytes(data[2:4], "big")
    address = data[8:24] if family == socket.AF_INET6 else data[4:8]
    return Destination((str(ipaddress.ip_address(address)), port), port & 0xFFF, port >> 12 << 8 | 1)


class UdpSockets:
    """Two addresses of this machine, and the soft device."""
    settings = {"DEVICE": "soft", "WIRE": "udp", "IP": ADDRESSES["heddle"]}

    @staticmethod
    def open(stack, faults):
        return stack.enter_context(Sockets(ADDRESSES["peer"], faults=faults))


class TappedWire:
    """A one-machine wire, and a tap of it for the peer."""

    def __init__(self, device, ip=4, checksum="zero", record=None, native=False):
        self.name = pingpong.wire_name()
        self.addresses = TAPPED[ip]
        self.settings = {"DEVICE": device, "WIRE": self.name, "IP": self.addresses["heddle"],
                         "ENCAP": "ip" if native else "udp"}
        self.native = native
        self.checksum = checksum
        self.record = record

    def open(self, stack, faults):
        tap = stack.enter_context(TapProcess(self.name, self.addresses["peer"]))
        return stack.enter_context(Tap(tap.path, self.addresses["peer"], PEER_PORT, tap.mac, self.checksum,
                                       faults=faults, record=self.record, native=self.native))
