# SPDX-License-Identifier: Apache-2.0
"""The seed of random tests: HEDDLE_TEST_SEED, or a new one. It is printed."""

import os
import secrets


def of_this_run():
    value = int(os.environ.get("HEDDLE_TEST_SEED") or secrets.randbits(63))
    print(f"HEDDLE_TEST_SEED={value}", flush=True)
    return value
