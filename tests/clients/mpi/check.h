// SPDX-License-Identifier: Apache-2.0
// The cases of the MPI program share data that identify their message, and end
// the job at the first difference.
#ifndef HEDDLE_TESTS_CLIENTS_MPI_CHECK_H_
#define HEDDLE_TESTS_CLIENTS_MPI_CHECK_H_

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

// Ends the job with a line that names case, rank and place when `holds` is 0.
#define CHECK(holds) check((holds) != 0, #holds, __FILE__, __LINE__)
void check(int holds, const char* text, const char* file, int line);

// A case by its name, for the lines of `check`.
void begin(const char* name);

// Byte `at` of a message that `seed` names.
uint8_t pattern(uint32_t seed, size_t at);
void fill(uint8_t* data, size_t bytes, uint32_t seed);
// Ends the job unless `data` is what `fill` made.
void verify(const uint8_t* data, size_t bytes, uint32_t seed);

extern int rank;
extern int ranks;

// Cases; each is called by all ranks.
void point_to_point(void);
void many_unexpected(int messages);
void collectives(void);
void windows(void);

#endif
