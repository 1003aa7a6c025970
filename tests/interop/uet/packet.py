# SPDX-License-Identifier: Apache-2.0
"""UET packets: from the PDS header to the end of the payload, without encapsulation and CRC."""

import dataclasses

from . import pds, ses
from .layout import Header, Malformed
from .ses import AtomicExtension

SES_CLASSES = {
    pds.Next.REQUEST_SMALL: ses.Small, pds.Next.REQUEST_MEDIUM: ses.Medium, pds.Next.REQUEST_STD: ses.Standard,
    pds.Next.RESPONSE: ses.Response, pds.Next.RESPONSE_DATA: ses.ResponseData,
    pds.Next.RESPONSE_DATA_SMALL: ses.ResponseDataSmall,
}
REQUESTS = (pds.Next.REQUEST_SMALL, pds.Next.REQUEST_MEDIUM, pds.Next.REQUEST_STD)


@dataclasses.dataclass(frozen=True)
class Packet:
    pds: Header
    ses: Header | None = None
    extension: AtomicExtension | None = None
    payload: bytes = b""

    def encode(self):
        headers = (self.pds, self.ses, self.extension)
        return b"".join(header.encode() for header in headers if header is not None) + self.payload


def decode(data):
    """The packet that `data` is. Raises Malformed."""
    header = pds.decode(data)
    data = data[header.BYTES:]
    if header.next == pds.Next.NONE:
        if data:
            raise Malformed(f"{len(data)} bytes after a {type(header).__name__} without SES header")
        return Packet(header)
    if header.next not in SES_CLASSES:
        raise Malformed(f"next_hdr {header.next}")
    semantic = SES_CLASSES[header.next].decode(data)
    data = data[semantic.BYTES:]
    extension = None
    if header.next in REQUESTS and semantic.opcode in ses.ATOMICS:
        extension = AtomicExtension.decode(data)
        data = data[extension.BYTES:]
    return Packet(header, semantic, extension, bytes(data))
