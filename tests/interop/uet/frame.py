# SPDX-License-Identifier: Apache-2.0
"""What is around a packet: Ethernet, IP, UDP or the entropy header, and the end-to-end CRC.

Over sockets, the kernel has all of it but the CRC, which counts the headers that the kernel adds.
"""

import dataclasses
import ipaddress
import struct

from .crc import crc32c
from .layout import Malformed

PORT = 4793
CRC_BYTES = 4
CRC_ORDERS = {"msb": "big", "lsb": "little", "none": None}
UDP = 17
NATIVE = 253  # The experimental protocol number of the reference provider.
IPV4, IPV6 = 0x0800, 0x86DD


def seal(addresses, shim, packet, order="msb"):
    """The CRC's bytes. `addresses` are source and destination as on the wire, `shim` is the UDP header with a checksum
    of zero, or the entropy header."""
    if order == "none":
        return b""
    return crc32c(addresses + shim + packet).to_bytes(CRC_BYTES, CRC_ORDERS[order])


def udp_header(source_port, destination_port, body_bytes):
    return struct.pack(">HHHH", source_port, destination_port, 8 + body_bytes, 0)


def seal_datagram(source, destination, packet, order="msb"):
    """The payload of a UDP datagram; source and destination are (address, port, ...)."""
    addresses = b"".join(ipaddress.ip_address(end[0]).packed for end in (source, destination))
    tail = 0 if order == "none" else CRC_BYTES
    return packet + seal(addresses, udp_header(source[1], destination[1], len(packet) + tail), packet, order)


def open_datagram(source, destination, payload, order="msb"):
    """The packet in a UDP payload; None if its CRC is wrong."""
    packet = payload if order == "none" else payload[:-CRC_BYTES]
    return packet if seal_datagram(source, destination, packet, order) == payload else None


def ones_complement(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def udp_checksum(addresses, datagram):
    """Of a datagram whose checksum field is zero; never zero, which would mean that there is none."""
    pseudo = addresses + struct.pack(">IHBB", len(datagram), 0, 0, UDP)
    return ones_complement(pseudo + datagram + bytes(len(datagram) % 2)) or 0xFFFF


@dataclasses.dataclass(frozen=True)
class Frame:
    """An Ethernet frame without FCS. `source` and `destination` are IP addresses; without a destination port the packet
    has the entropy header of native IP. The UDP checksum is zero, right or wrong; of a frame that is read it is
    unknown."""
    destination_mac: bytes
    source_mac: bytes
    source: str
    destination: str
    entropy: int
    packet: bytes
    port: int | None = PORT
    tos: int = 0
    ttl: int = 64
    crc: str = "msb"
    checksum: str = "zero"

    def encode(self):
        addresses = b"".join(ipaddress.ip_address(address).packed for address in (self.source, self.destination))
        tail = 0 if self.crc == "none" else CRC_BYTES
        if self.port is None:
            protocol, shim = NATIVE, struct.pack(">HH", self.entropy, 0)
        else:
            protocol, shim = UDP, udp_header(self.entropy, self.port, len(self.packet) + tail)
        body = shim + self.packet + seal(addresses, shim, self.packet, self.crc)
        if protocol == UDP and self.checksum != "zero":
            value = udp_checksum(addresses, body) ^ (0x5555 if self.checksum == "wrong" else 0)
            body = body[:6] + struct.pack(">H", value or 0xFFFF) + body[8:]
        if len(addresses) == 32:
            kind = IPV6
            head = struct.pack(">IHBB", 6 << 28 | self.tos << 20, len(body), protocol, self.ttl) + addresses
        else:
            kind = IPV4
            head = struct.pack(">BBHHHBBH", 0x45, self.tos, 20 + len(body), 0, 0x4000, self.ttl, protocol, 0) + addresses
            head = head[:10] + struct.pack(">H", ones_complement(head)) + head[12:]
        return self.destination_mac + self.source_mac + struct.pack(">H", kind) + head + body


def decode(data, crc="msb"):
    """The frame that `data` is, with padding or without. Raises Malformed, also for a wrong checksum or CRC."""
    if len(data) < 14 + 20:
        raise Malformed(f"{len(data)} bytes hold no IP header")
    kind = int.from_bytes(data[12:14], "big")
    ip = data[14:]
    if kind == IPV4:
        head, tos, length, _, fragment, ttl, protocol, _ = struct.unpack_from(">BBHHHBBH", ip)
        if head != 0x45 or fragment & 0x3FFF:
            raise Malformed("IPv4 options, or a fragment")
        if ones_complement(ip[:20]):
            raise Malformed("IPv4 header checksum")
        first, start, width = 12, 20, 4
    elif kind == IPV6 and len(ip) >= 40:
        word, length, protocol, ttl = struct.unpack_from(">IHBB", ip)
        tos, length = word >> 20 & 0xFF, length + 40
        if word >> 28 != 6:
            raise Malformed("IP version")
        first, start, width = 8, 40, 16
    else:
        raise Malformed(f"EtherType {kind:#06x}")
    if not start <= length <= len(ip):
        raise Malformed("IP length")
    source, destination = (str(ipaddress.ip_address(ip[at:at + width])) for at in (first, first + width))
    body = ip[start:length]
    shim_bytes = 8 if protocol == UDP else 4
    tail = 0 if crc == "none" else CRC_BYTES
    if protocol not in (UDP, NATIVE) or len(body) < shim_bytes + tail:
        raise Malformed(f"protocol {protocol} with {len(body)} bytes")
    port = None
    shim = body[:shim_bytes]
    entropy = int.from_bytes(shim[:2], "big")
    if protocol == UDP:
        port, udp_bytes = struct.unpack_from(">HH", shim, 2)
        if udp_bytes != len(body):
            raise Malformed("UDP length")
        shim = shim[:6] + b"\0\0"  # A rewritten checksum does not break the CRC.
    packet = body[shim_bytes:len(body) - tail]
    if seal(ip[first:start], shim, packet, crc) != body[len(body) - tail:]:
        raise Malformed("end-to-end CRC")
    return Frame(data[:6], data[6:12], source, destination, entropy, packet, port, tos, ttl, crc)
