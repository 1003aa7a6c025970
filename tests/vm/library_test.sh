#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# libheddle on the NIC's functions: fi_info, the API's tests, fi_pingpong.
. /guest_functions.sh
export FI_HEDDLE_DEVICE=vfio FI_HEDDLE_DEAD_NS=5000000000

lists_all() {
  for function in $FUNCTIONS; do
    grep -q "domain: $function" /tmp/info || return 1
  done
  [ "$(grep -c '^provider: heddle' /tmp/info)" = "$(grep -c provider /tmp/info)" ]
}
lists() {
  "$@" fi_info -p heddle >/tmp/info
  cat /tmp/info
  lists_all
}
with_drop_in() { LD_LIBRARY_PATH="$HEDDLE_LIBRARIES" "$@"; }
with_plug_in() {
  FI_PROVIDER_PATH="$HEDDLE_PLUG_IN" FI_PROVIDER=heddle "$@"
}

# pingpong FORM ARGUMENTS...: one process on each of the first two functions.
pingpong() {
  form=$1
  shift
  set -- -p heddle -e rdm -c "$@"
  FI_HEDDLE_DEVICE=vfio:$first "$form" fi_pingpong "$@" -B 7000 >/tmp/server 2>&1 &
  server=$!
  wait_for listens 7000
  FI_HEDDLE_DEVICE=vfio:$second "$form" fi_pingpong "$@" -P 7000 127.0.0.1 2>&1 &&
    wait $server && return
  cat /tmp/server
  return 1
}

first=${FUNCTIONS%% *}
second=${FUNCTIONS#* }
second=${second%% *}
claim "fi_info lists every function" lists with_drop_in
claim "fi_pingpong passes between two functions, drop-in" pingpong with_drop_in
claim "fi_pingpong passes between two functions, plug-in" pingpong with_plug_in -S 4096
claim "tests of messages" with_drop_in /rdm_msg_test --gtest_filter="$HEDDLE_MSG_TESTS"
claim "tests of remote memory access" with_drop_in /rma_test --gtest_filter="$HEDDLE_RMA_TESTS"
exit $failed
