# SPDX-License-Identifier: Apache-2.0
"""Position of each field of a packet header, for views that are tables."""


def flatten(fields, bit=0, when=None):
    """(field, first bit, (selector, value) or None) of each field, in order."""
    for entry in fields:
        if "select" in entry:
            for case in entry["cases"]:
                yield from flatten(case["fields"], bit, (entry["select"], case["value"]))
        else:
            yield entry, bit, when
        bit += entry["bits"]


def is_reserved(field):
    """Named so by the contract's rule: written as zero."""
    return field["name"].startswith("rsvd")
