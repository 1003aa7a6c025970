#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# fi_pingpong with the host, whose server listens at HEDDLE_PORT.
. /guest_functions.sh
export FI_HEDDLE_DEVICE=vfio LD_LIBRARY_PATH="$HEDDLE_LIBRARIES"

has_network() { ip link set eth0 up && ip addr add 10.0.2.15/24 dev eth0; }

claim "the guest has a network" has_network
claim "fi_pingpong passes between guest and host" \
  fi_pingpong -p heddle -e rdm -c -P "$HEDDLE_PORT" 10.0.2.2
exit $failed
