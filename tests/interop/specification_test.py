# SPDX-License-Identifier: Apache-2.0
"""What the soft device answers to single packets over UDP sockets."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from bench import message  # noqa: E402
from kinds import OWN, PATIENT, Case as KindsCase  # noqa: E402
from places import ADDRESSES  # noqa: E402
from uet import ses  # noqa: E402
from uet.options import Options  # noqa: E402
from uet.pds import Nack, NackPacket, Next  # noqa: E402
from uet.sender import Content  # noqa: E402
from uet.ses import Answer, Code, Op, Standard  # noqa: E402


class Case(KindsCase):
    def setUp(self):
        super().setUp()
        self.messages = 1

    def connected(self, ordered=True, options=OWN):
        """A bench whose peer has an established PDC to the device, and the key of the device's memory."""
        bench = self.bench(options, ordered, 0.0)
        key = self.offered(bench)
        operation = bench.peer.write(bench.heddle, b"x", key, 0, ordered)
        bench.wire.run(lambda: operation.code is not None)
        self.arrived = []
        bench.wire.log = lambda _, __, to, content: to[0] == ADDRESSES["peer"] and self.arrived.append(content)
        return bench, key

    def answer(self, bench, opcode, payload=b"", length=None, **fields):
        """The SES header of the ACK of one request."""
        pdc, = (pdc for pdc in bench.peer.pdcs.values() if pdc.initiates)
        answers = []
        fields = {"job_id": OWN.job_id, "pid_on_fep": bench.heddle.pid_on_fep, "message_id": 4711,
                  "resource_index": bench.heddle.resource_index} | fields
        header = Standard(opcode, request_length=len(payload) if length is None else length, **fields)
        pdc.tx.push(Content(Next.REQUEST_STD, header, payload=payload, ar=1,
                            done=lambda semantic, _: answers.append(semantic)))
        bench.wire.run(lambda: answers or pdc.ended)
        return answers[0]


class InteropSoftSpecification(Case):
    def test_a_plain_success_is_a_default_response_with_ok(self):
        for ordered in (True, False):
            bench, key = self.connected(ordered)
            answer = self.answer(bench, Op.WRITE, b"abcd", match_bits=key)
            self.assertEqual(answer, ses.Response(Answer.DEFAULT, Code.OK, 4711, OWN.job_id, 4))

    def test_the_crc_has_its_most_significant_byte_first(self):
        self.peer_sends(OWN, True)

    def test_a_deferrable_send_is_executed_as_a_send(self):
        for ordered in (True, False):
            self.peer_sends(Options(**PATIENT | {"defer_from": 0}), ordered)
            bench, _ = self.connected(ordered)
            self.assertEqual(self.answer(bench, Op.DEFERRABLE_SEND, message(0, 64)).code, Code.OK)

    def test_no_op_is_answered(self):
        bench, _ = self.connected()
        self.assertEqual(self.answer(bench, Op.NO_OP, resource_index=0),
                         ses.Response(Answer.DEFAULT, Code.OK, 4711, OWN.job_id, 0))
        self.assertEqual(self.answer(bench, Op.NO_OP, b"abcd").code, Code.UNSUPPORTED_SIZE)

    def test_a_payload_shorter_than_the_message_is_a_violation(self):
        bench, key = self.connected()
        self.assertEqual(self.answer(bench, Op.WRITE, b"x", length=2, match_bits=key).code, Code.OP_VIOLATION)

    def test_read_data_repeat_the_requests_message_id(self):
        self.messages = 20
        self.peer_reads(Options(**PATIENT | {"read_by_response_id": True}), True)

    def test_rod_ooo_names_the_expected_psn(self):
        bench, key = self.connected()
        pdc, = bench.peer.pdcs.values()
        first, emit, sent = pdc.tx.next, bench.wire.emit, []

        def lose_first(*datagram):
            sent.append(datagram)
            if len(sent) > 1:
                emit(*datagram)

        bench.wire.emit = lose_first
        operation = bench.peer.write(bench.heddle, bytes(4096), key)
        bench.wire.run(lambda: operation.code is not None)
        nacks = [content.pds for content in self.arrived if isinstance(content.pds, NackPacket)]
        self.assertEqual([(nack.code, nack.psn, nack.payload) for nack in nacks],
                         [(Nack.ROD_OOO, first + 1 & 0xFFFFFFFF, first)])


if __name__ == "__main__":
    unittest.main()
