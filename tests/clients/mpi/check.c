// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <stdio.h>

int rank;
int ranks;
static const char* current = "start";

void begin(const char* name) {
  current = name;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%s\n", name);
    fflush(stdout);
  }
}

void check(int holds, const char* text, const char* file, int line) {
  if (!holds) {
    fprintf(stderr, "rank %d, %s: %s:%d: %s does not hold\n", rank, current,
            file, line, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

uint8_t pattern(uint32_t seed, size_t at) {
  const uint64_t mixed = (seed + at * 2654435761U) * 0x9e3779b97f4a7c15U;
  return (uint8_t)(mixed >> 56);
}

void fill(uint8_t* data, size_t bytes, uint32_t seed) {
  for (size_t at = 0; at < bytes; at++) data[at] = pattern(seed, at);
}

void verify(const uint8_t* data, size_t bytes, uint32_t seed) {
  size_t at = 0;

  while (at < bytes && data[at] == pattern(seed, at)) at++;
  if (at != bytes)
    fprintf(stderr, "rank %d: byte %zu of %zu is wrong\n", rank, at, bytes);
  CHECK(at == bytes);
}
