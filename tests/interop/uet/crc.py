# SPDX-License-Identifier: Apache-2.0
"""CRC-32C (Castagnoli)."""

import struct

_POLYNOMIAL = 0x82F63B78  # Reflected.


def _tables():
    first = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        first.append(value)
    tables = [first]
    for _ in range(7):
        tables.append([first[value & 0xFF] ^ value >> 8 for value in tables[-1]])
    return tables


_T0, _T1, _T2, _T3, _T4, _T5, _T6, _T7 = _tables()


def crc32c(data):
    crc = 0xFFFFFFFF
    whole = len(data) & ~7
    for low, high in struct.iter_unpack("<II", memoryview(data)[:whole]):
        low ^= crc
        crc = (_T7[low & 0xFF] ^ _T6[low >> 8 & 0xFF] ^ _T5[low >> 16 & 0xFF] ^ _T4[low >> 24] ^
               _T3[high & 0xFF] ^ _T2[high >> 8 & 0xFF] ^ _T1[high >> 16 & 0xFF] ^ _T0[high >> 24])
    for byte in data[whole:]:
        crc = _T0[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
