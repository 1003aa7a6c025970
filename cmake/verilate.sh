#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the C++ of a model: verilate.sh VERILATOR DIRECTORY PREFIX ARGUMENT...
# `DIRECTORY/sources` is touched when it is complete, `DIRECTORY/depfile` lists
# the files it was made from.
set -eu
verilator=$1 directory=$2 prefix=$3
shift 3
mkdir -p "$directory"
"$verilator" --cc --Mdir "$directory" --prefix "$prefix" -CFLAGS -fPIC "$@"
sed "s|^[^:]*:|$directory/sources:|" "$directory/${prefix}__ver.d" \
  >"$directory/depfile"
touch "$directory/sources"
