# SPDX-License-Identifier: Apache-2.0
"""Prints `Class.method` of every unittest in a file: list_tests.py FILE."""

import importlib.util
import pathlib
import sys
import unittest

path = pathlib.Path(sys.argv[1])
spec = importlib.util.spec_from_file_location(path.stem, path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)


def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


for case in cases(unittest.defaultTestLoader.loadTestsFromModule(module)):
    print(".".join(case.id().rsplit(".", 2)[1:]))
