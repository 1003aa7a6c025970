# SPDX-License-Identifier: Apache-2.0
"""Headers as rows of bit fields, most significant bit first."""

import dataclasses


class Malformed(Exception):
    """Bytes that are no packet."""


class Header:
    """Base of a dataclass whose LAYOUT lists (field, bits) in wire order.

    A field named "" is reserved: zero when sent, ignored when received. One with negative bits is signed.
    """

    LAYOUT = ()

    def __init_subclass__(cls):
        cls.BITS = sum(abs(bits) for _, bits in cls.LAYOUT)
        cls.BYTES = cls.BITS // 8
        assert cls.BITS % 8 == 0, cls

    def encode(self):
        value = 0
        for name, bits in self.LAYOUT:
            width = abs(bits)
            field = int(getattr(self, name)) if name else 0
            low, high = (-(1 << (width - 1)), 1 << (width - 1)) if bits < 0 else (0, 1 << width)
            if not low <= field < high:
                raise ValueError(f"{type(self).__name__}.{name} = {field:#x} has no room in {width} bits")
            value = value << width | field & ((1 << width) - 1)
        return value.to_bytes(self.BYTES, "big")

    @classmethod
    def decode(cls, data):
        if len(data) < cls.BYTES:
            raise Malformed(f"{cls.__name__} needs {cls.BYTES} bytes, there are {len(data)}")
        value = int.from_bytes(data[:cls.BYTES], "big")
        fields = {}
        rest = cls.BITS
        for name, bits in cls.LAYOUT:
            width = abs(bits)
            rest -= width
            field = value >> rest & ((1 << width) - 1)
            if bits < 0 and field >> (width - 1):
                field -= 1 << width
            if name:
                fields[name] = field
        return cls(**fields)

    def replaced(self, **changes):
        return dataclasses.replace(self, **changes)
