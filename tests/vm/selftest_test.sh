#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# `heddle selftest` on every function; it says when each step is done.
. /guest_functions.sh
export LD_LIBRARY_PATH="$HEDDLE_LIBRARIES"

claim "heddle list" heddle list
for function in $FUNCTIONS; do
  claim "heddle selftest $function" heddle selftest "$function"
done
exit $failed
