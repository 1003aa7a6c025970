// SPDX-License-Identifier: Apache-2.0
// Collective operations, their results computed again from the definition.
#include <stdlib.h>

#include "check.h"

static void reductions(int count) {
  int64_t* in = malloc((size_t)count * sizeof *in);
  int64_t* out = malloc((size_t)count * sizeof *out);

  CHECK(in != NULL && out != NULL);
  for (int i = 0; i < count; i++) in[i] = (int64_t)i * (rank + 1);
  MPI_Allreduce(in, out, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; i++)
    CHECK(out[i] == (int64_t)i * ranks * (ranks + 1) / 2);
  MPI_Scan(in, out, count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  for (int i = 0; i < count; i++) CHECK(out[i] == in[i]);
  MPI_Reduce(in, out, count, MPI_INT64_T, MPI_MIN, ranks - 1, MPI_COMM_WORLD);
  for (int i = 0; rank == ranks - 1 && i < count; i++) CHECK(out[i] == i);
  free(in);
  free(out);
}

static void exchanges(size_t bytes) {
  uint8_t* out = malloc(bytes * (size_t)ranks);
  uint8_t* in = malloc(bytes * (size_t)ranks);

  CHECK(out != NULL && in != NULL);
  for (int to = 0; to < ranks; to++)
    fill(out + bytes * (size_t)to, bytes, (uint32_t)(rank * ranks + to));
  MPI_Alltoall(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE,
               MPI_COMM_WORLD);
  for (int from = 0; from < ranks; from++)
    verify(in + bytes * (size_t)from, bytes, (uint32_t)(from * ranks + rank));
  MPI_Allgather(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE,
                MPI_COMM_WORLD);
  for (int from = 0; from < ranks; from++)
    verify(in + bytes * (size_t)from, bytes, (uint32_t)(from * ranks));
  for (int root = 0; root < ranks; root++) {
    fill(in, bytes, rank == root ? (uint32_t)root + 500 : 1);
    MPI_Bcast(in, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    verify(in, bytes, (uint32_t)root + 500);
  }
  free(out);
  free(in);
}

void collectives(void) {
  begin("reductions");
  reductions(1);
  reductions(3000);
  begin("exchanges");
  exchanges(8);
  exchanges(5000);
  exchanges(200000);
}

// One-sided communication over two-sided messages (osc pt2pt).
void windows(void) {
  enum { kSlots = 2000 };
  int64_t* memory = NULL;
  MPI_Win window;

  begin("windows");
  MPI_Win_allocate(kSlots * (MPI_Aint)sizeof *memory, sizeof *memory,
                   MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int i = 0; i < kSlots; i++) memory[i] = rank;
  const int right = (rank + 1) % ranks;
  int64_t values[kSlots];
  int64_t one = 1;

  MPI_Win_fence(0, window);
  MPI_Get(values, kSlots, MPI_INT64_T, right, 0, kSlots, MPI_INT64_T, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kSlots; i++) CHECK(values[i] == right);
  for (int i = 0; i < kSlots; i++) values[i] = (int64_t)rank * kSlots + i;
  MPI_Put(values, kSlots - 1, MPI_INT64_T, right, 0, kSlots - 1, MPI_INT64_T,
          window);
  for (int to = 0; to < ranks; to++)
    MPI_Accumulate(&one, 1, MPI_INT64_T, to, kSlots - 1, 1, MPI_INT64_T,
                   MPI_SUM, window);
  MPI_Win_fence(0, window);
  const int left = (rank + ranks - 1) % ranks;
  for (int i = 0; i < kSlots - 1; i++)
    CHECK(memory[i] == (int64_t)left * kSlots + i);
  CHECK(memory[kSlots - 1] == rank + ranks);
  MPI_Win_free(&window);
}
