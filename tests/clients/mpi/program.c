// SPDX-License-Identifier: Apache-2.0
// An MPI program that checks all that it receives: program [MESSAGES], of which
// so many are sent before any is received. Prints `ok` at its end.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

int main(int argc, char** argv) {
  const int messages = argc > 1 ? atoi(argv[1]) : 1000;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  point_to_point();
  many_unexpected(messages);
  collectives();
  windows();
  begin("end");
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
