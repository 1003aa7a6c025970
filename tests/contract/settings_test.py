# SPDX-License-Identifier: Apache-2.0
"""The generator refuses a setting that could mean two things, and leaves nothing of one out."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hw/contract"))

from generator import settings  # noqa: E402

SPEC = {
    "parameter": [{"name": "job_max", "value": 99}],
    "enum": [{"name": "order", "values": [{"name": "first"}, {"name": "last"}]}],
}
NUMBER = {"name": "rto_ns", "type": "number", "min": 1, "max": 9, "default": 2, "obeyed_by": ["soft"], "help": "Time"}
DEVICES = ("[[device]]", 'name = "soft"', 'is = "a model"', 'library = "libsoft.so"', "default = true",
           "[[device]]", 'name = "rtl"', 'is = "RTL"', 'library = "libsim.so"',
           "[[device]]", 'name = "vfio"', 'is = "a NIC"')
CHOICE = {"name": "crc", "type": "choice", "words": ["a", "b"], "default": "a", "obeyed_by": ["rtl"], "help": "Order"}


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def load(*entries, devices=DEVICES):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "settings.toml"
        path.write_text("\n".join([*devices, *(line for entry in entries for line in
                                             ("[[setting]]", *(f"{key} = {toml(value)}" for key, value in entry.items())))]))
        return settings.load(path, SPEC)


def without(entry, *keys):
    return {key: value for key, value in entry.items() if key not in keys}


class SettingIsRefusedFor(unittest.TestCase):
    def refused(self, message, *entries):
        with self.assertRaisesRegex(settings.SettingsError, message):
            load(*entries)

    def test_nothing_when_it_is_good(self):
        self.assertEqual(len(load(NUMBER, CHOICE)[1]), 2)

    def test_a_missing_key(self):
        for key in ("help", "obeyed_by"):
            self.refused(f"setting rto_ns: no {key}", without(NUMBER, key))
        self.refused("setting rto_ns: no range", without(NUMBER, "min"))
        self.refused("setting crc: no words", without(CHOICE, "words"))
        self.refused("setting vf: no takes", {"name": "vf", "type": "uuid", "obeyed_by": ["vfio"], "help": "Token"})

    def test_an_unknown_key_type_or_party(self):
        self.refused("unknown key unit", {**NUMBER, "unit": "ns"})
        self.refused("unknown type time", {**NUMBER, "type": "time"})
        self.refused("obeyed_by names library, soft, rtl, vfio", {**NUMBER, "obeyed_by": ["hard"]})
        self.refused("obeyed_by names", {**NUMBER, "obeyed_by": []})

    def test_a_default_out_of_the_range(self):
        self.refused("default is out of range", {**NUMBER, "default": 10})
        self.refused("default is out of range", {**without(NUMBER, "min", "max"), "values": [1, 4]})
        self.refused("fallback is out of range", {**without(NUMBER, "default"), "fallback": 10})
        self.refused("default is none of the words", {**CHOICE, "default": "c"})

    def test_an_unset_number_that_could_be_a_value(self):
        self.refused("0 is a value and cannot mean unset", {**without(NUMBER, "default"), "min": 0})

    def test_a_range_that_is_none(self):
        self.refused("not a range", {**NUMBER, "max": 1})
        self.refused("not a range", {**NUMBER, "max": 1 << 64})
        self.refused("ascending order", {**without(NUMBER, "min", "max"), "values": [2, 1]})

    def test_a_name_of_the_contract_that_it_does_not_have(self):
        self.refused("the contract has no parameter job_min", {**NUMBER, "max": "job_min"})
        self.refused("unknown enum colour", {**CHOICE, "enum": "colour"})
        self.refused("order has no middle", {**CHOICE, "enum": "order", "words": {"a": "first", "b": "middle"}})
        self.refused("the contract has an enum of this name", {**CHOICE, "name": "order"})

    def test_a_name_that_stands_twice(self):
        self.refused("setting rto_ns: stands twice", NUMBER, NUMBER)
        self.refused("setting rto_ns: stands twice", NUMBER, {**CHOICE, "option": "rto_ns"})
        self.refused("setting rx_loss: stands twice", {**NUMBER, "name": "loss", "directions": True},
                     {**NUMBER, "name": "rx_loss"})

    def test_kinds_of_device_that_mean_two_things(self):
        soft, rtl, vfio = DEVICES[:5], DEVICES[5:9], DEVICES[9:]
        for message, devices in (("a name of its own", (*soft, *soft[:4], *vfio)),
                                 ("no other, is without a library", (*soft, *vfio, *rtl)),
                                 ("no other, is without a library", (*soft, *rtl)),
                                 ("one is the default", (*rtl, *vfio)),
                                 ("device vfio: name, is; library, default", (*soft, *vfio[:2]))):
            with self.assertRaisesRegex(settings.SettingsError, message):
                load(NUMBER, devices=devices)

    def test_help_that_ends_a_sentence(self):
        self.refused("without full stop", {**NUMBER, "help": "Time."})


class Views(unittest.TestCase):
    def test_a_setting_is_in_each(self):
        table = load({**NUMBER, "max": "job_max"}, {**CHOICE, "option": "sum"},
                     {"name": "loss", "type": "real", "max": 1, "default": 0, "obeyed_by": ["soft", "rtl"],
                      "directions": True, "help": "Probability that a frame {direction} is lost"},
                     {"name": "device", "type": "device", "takes": "vfio:ADDRESS", "obeyed_by": ["library"],
                      "help": "Device: {kinds}; unset: soft"})
        struct, rows, page = (view(table, "settings.toml")
                              for view in (settings.struct, settings.rows_header, settings.page))
        self.assertIn("  uint8_t rto_ns = 2;\n  Crc crc = Crc::kA;\n", struct)
        self.assertIn("ParseNumber(text, 1u, 99u, &out->rto_ns)", rows)
        self.assertIn('{"CRC", "sum", SettingType::kText', rows)
        self.assertIn("ParseReal(text, 0, 1, &out->rx.loss)", rows)
        self.assertIn("| `RTO_NS` | number | 1 to 99 | 2 | soft | Time. |", page)
        self.assertIn("| `LOSS` | probability | 0 to 1 | 0 | soft, rtl | Probability that a frame sent is lost. |", page)
        self.assertIn("| `RX_LOSS` | probability | 0 to 1 | 0 | soft, rtl | Probability that a frame received is", page)
        self.assertIn("`CRC` is `sum` there", page)
        self.assertIn('DeviceKind kRtlKind = {"rtl", "libsim.so", kObeyedByRtl};', struct)
        self.assertIn("kDeviceKinds = {kSoftKind, kRtlKind, kVfioKind};", struct)
        self.assertIn("DeviceKind kDefaultKind = kSoftKind;", struct)
        self.assertIn("| `DEVICE` | text | soft, rtl, vfio, vfio:ADDRESS | none | library | "
                      "Device: soft is a model, rtl is RTL, vfio is a NIC; unset: soft. |", page)


if __name__ == "__main__":
    unittest.main()
