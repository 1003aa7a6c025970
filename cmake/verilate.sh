#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Verilates a module and archives its objects:
# verilate.sh VERILATOR DIRECTORY PREFIX JOBS CXX CCACHE OPT_FAST OPT_SLOW ARGUMENT...
set -eu
verilator=$1 directory=$2 prefix=$3 jobs=$4 cxx=$5 ccache=$6 fast=$7 slow=$8
shift 8
mkdir -p "$directory"
"$verilator" --cc --Mdir "$directory" --prefix "$prefix" -CFLAGS -fPIC "$@"
rm -f "$directory/${prefix}__ALL.a"
# Not the caller's make flags: this make is no part of its job server.
env -u MAKEFLAGS -u MFLAGS make --no-print-directory -s -C "$directory" -j "$jobs" \
  -f "$prefix.mk" "${prefix}__ALL.a" CXX="$cxx" LINK="$cxx" OBJCACHE="$ccache" \
  OPT_FAST="$fast" OPT_SLOW="$slow" VM_PARALLEL_BUILDS=1 >/dev/null
sed "s|^[^:]*:|$directory/${prefix}__ALL.a:|" "$directory/${prefix}__ver.d" \
  >"$directory/depfile"
