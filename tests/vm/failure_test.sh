#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# libheddle when a function goes away: one test, ended when it prints
# HEDDLE_LAST_LINE, if that is set.
. /guest_functions.sh
export FI_HEDDLE_DEVICE=vfio FI_HEDDLE_DEAD_NS=5000000000
export LD_LIBRARY_PATH="$HEDDLE_LIBRARIES"

if [ -z "$HEDDLE_LAST_LINE" ]; then
  exec /guest_failure_test --gtest_filter="$HEDDLE_TESTS"
fi
: >/tmp/log  # Before tail looks for it.
/guest_failure_test --gtest_filter="$HEDDLE_TESTS" >/tmp/log 2>&1 &
tail -f /tmp/log &
tail=$!
wait_for grep -q "$HEDDLE_LAST_LINE" /tmp/log && kill $tail
grep "$HEDDLE_LAST_LINE" /tmp/log
