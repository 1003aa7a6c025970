#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# Memory that comes and goes under traffic, then accesses to what has gone.
. /guest_functions.sh
export FI_HEDDLE_DEVICE=vfio FI_HEDDLE_DEAD_NS=5000000000
# Buffers are mapped for their operation, but for the shortest.
export FI_HEDDLE_BOUNCE_LIMIT=512
export LD_LIBRARY_PATH="$HEDDLE_LIBRARIES"

claim "memory comes and goes under traffic" \
  /guest_remap_test --gtest_filter="${HEDDLE_TESTS:-*}"
claim "an unmapped address is not reached" \
  /guest_vfio_test --gtest_filter=GuestTest.UnmappedAddressIsNotReached
exit $failed
