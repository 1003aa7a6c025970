# SPDX-License-Identifier: Apache-2.0
"""What implementations of UET do differently, all of it legal."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Options:
    """Defaults are the peer's own way; `reference` is that of the reference provider."""
    job_id: int = 1
    payload_mtu: int = 1024  # Bytes.
    initiator: int = 16
    relative: bool = False  # Addressing of requests.
    window: int = 1024  # PSNs that this side tracks, and has in flight.
    syn_packets: int = 256  # PSNs sent before the first ACK.
    rto_s: float = 0.02
    rto_doubles: bool = True
    max_rto_s: float = 1.0
    retries: int = 15  # Of a packet, before its PDC fails.
    resend_only_nacked: bool = False  # After ROD_OOO; else everything from the gap on.
    reorder_rod: bool = False  # Keeps packets of an ordered PDC behind a gap; else drops them with ROD_OOO.
    ack_bytes: int = 16384  # Unacknowledged payload that triggers an ACK.
    ack_min_bytes: int = 1024  # What each packet counts at least.
    ack_cc: bool = True  # ACKs have MP_Range, SACK and the state of NSCC.
    first_message_id: int = 1
    read_eom: bool = True  # Whether a READ of one packet has eom.
    read_by_response_id: bool = False  # Finds the READ of returned data by response_message_id.
    clear_at_once: bool = False  # Clear Command after each guaranteed answer; else when nothing else carries it.
    clear_s: float = 0.001
    defer_from: int | None = None  # Bytes from which a send without order is deferrable.
    probes: bool = True  # Answers a Probe; else NACK UNEXP_EVENT.
    lowest_pdcid: bool = False  # Else a random one.
    close_s: float = 2.0  # A closed PDC answers repeated packets for so long.

    @classmethod
    def reference(cls, **changes):
        return cls(**{"relative": True, "window": 128, "syn_packets": 128, "rto_s": 0.005, "rto_doubles": False,
                      "retries": 5, "resend_only_nacked": True, "reorder_rod": True, "ack_cc": False,
                      "first_message_id": 0, "read_eom": False, "read_by_response_id": True, "clear_at_once": True,
                      "defer_from": 8192, "probes": False, "lowest_pdcid": True} | changes)
