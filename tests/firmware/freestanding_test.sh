#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The firmware compiles for a bare RV32 core: no library, no exceptions, no
# RTTI, and nothing but the compiler's own headers.
# Usage: freestanding_test.sh <clang++> <source directory>
set -eu
clang=$1
root=$2
include=$("$clang" -print-resource-dir)/include
failed=0
count=0
for source in "$root"/firmware/*.cc "$root"/firmware/*/*.cc; do
  count=$((count + 1))
  "$clang" --target=riscv32 -march=rv32imac -std=c++20 -ffreestanding \
    -fno-exceptions -fno-rtti -nostdinc -isystem "$include" -I"$root" \
    -Wall -Wextra -Werror -fsyntax-only "$source" || failed=1
done
[ "$count" -gt 0 ] || { echo "no sources under $root/firmware" >&2; exit 1; }
exit $failed
