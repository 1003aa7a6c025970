// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks: matching, probes, truncation, cancellation.
#include <stdlib.h>

#include "check.h"

enum { kLargest = 16 << 20, kLetters = 64, kLetterBytes = 300 };

static uint8_t* reserve(size_t bytes) {
  uint8_t* memory = malloc(bytes + 1);

  CHECK(memory != NULL);
  return memory;
}

// Around the ring, each size once with the receive first and once without.
static void sizes(void) {
  static const int bytes[] = {0,     1,     8,     64,      65,
                              192,   193,   4095,  4096,    4097,
                              16384, 16385, 65536, 1 << 20, kLargest};
  const int right = (rank + 1) % ranks;
  const int left = (rank + ranks - 1) % ranks;
  uint8_t* out = reserve(kLargest);
  uint8_t* in = reserve(kLargest);

  begin("sizes");
  for (size_t i = 0; i < 2 * sizeof bytes / sizeof *bytes; i++) {
    const int length = bytes[i / 2];
    const int early = i % 2 == 0;
    MPI_Request request;
    MPI_Status status;
    int count = -1;

    fill(out, (size_t)length, (uint32_t)(rank * 100) + (uint32_t)i);
    if (early)
      MPI_Irecv(in, kLargest, MPI_BYTE, left, length % 1000, MPI_COMM_WORLD,
                &request);
    MPI_Request sent;
    MPI_Isend(out, length, MPI_BYTE, right, length % 1000, MPI_COMM_WORLD,
              &sent);
    if (!early) {
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Irecv(in, kLargest, MPI_BYTE, left, length % 1000, MPI_COMM_WORLD,
                &request);
    }
    MPI_Wait(&request, &status);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == length);
    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == length % 1000);
    verify(in, (size_t)length, (uint32_t)(left * 100) + (uint32_t)i);
  }
  free(out);
  free(in);
}

// Letter `number` of `from`, in which both are written.
static void send_letters(int to, int tag) {
  uint8_t letter[kLetterBytes];

  for (int number = 0; number < kLetters; number++) {
    fill(letter, sizeof letter, (uint32_t)(rank * kLetters + number));
    MPI_Send(letter, kLetterBytes, MPI_BYTE, to, tag + number % 4,
             MPI_COMM_WORLD);
  }
}

// Wildcards take messages of one sender in the order in which it sent them.
static void wildcards(void) {
  begin("wildcards");
  if (rank != 0) {
    send_letters(0, 10);
    return;
  }
  int* next = calloc((size_t)ranks, sizeof *next);
  CHECK(next != NULL);
  for (int i = 0; i < kLetters * (ranks - 1); i++) {
    uint8_t letter[kLetterBytes];
    MPI_Status status;

    MPI_Recv(letter, kLetterBytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
             MPI_COMM_WORLD, &status);
    const int from = status.MPI_SOURCE;
    CHECK(status.MPI_TAG == 10 + next[from] % 4);
    verify(letter, kLetterBytes, (uint32_t)(from * kLetters + next[from]));
    next[from]++;
  }
  free(next);
}

// Receives posted in the opposite order of the sends, all before and all after.
static void opposite_order(int posted_first) {
  MPI_Request requests[kLetters];
  uint8_t letters[kLetters][kLetterBytes];

  begin(posted_first ? "opposite order, posted first"
                     : "opposite order, sent first");
  if (ranks < 2 || rank > 1) return;
  if (rank == 1) {
    if (posted_first)
      MPI_Recv(NULL, 0, MPI_BYTE, 0, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < kLetters; i++) {
      fill(letters[i], kLetterBytes, (uint32_t)i);
      MPI_Isend(letters[i], kLetterBytes, MPI_BYTE, 0, 100 + i, MPI_COMM_WORLD,
                &requests[i]);
    }
    if (!posted_first) MPI_Send(NULL, 0, MPI_BYTE, 0, 999, MPI_COMM_WORLD);
    MPI_Waitall(kLetters, requests, MPI_STATUSES_IGNORE);
    return;
  }
  if (!posted_first)
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = kLetters - 1; i >= 0; i--)
    MPI_Irecv(letters[i], kLetterBytes, MPI_BYTE, 1, 100 + i, MPI_COMM_WORLD,
              &requests[i]);
  if (posted_first) MPI_Send(NULL, 0, MPI_BYTE, 1, 999, MPI_COMM_WORLD);
  MPI_Waitall(kLetters, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kLetters; i++)
    verify(letters[i], kLetterBytes, (uint32_t)i);
}

// A probed message is the one that the next receive gets; no other receive gets
// a matched one.
static void probes(void) {
  begin("probes");
  if (rank > 1 || ranks < 2) return;
  enum { kLength = 5000, kMessages = 4 };
  static uint8_t messages[kMessages][kLength];
  const int length = kLength;
  uint8_t* data = messages[0];
  if (rank == 1) {
    MPI_Request requests[kMessages];

    for (int i = 0; i < kMessages; i++) {
      fill(messages[i], (size_t)(length - i), (uint32_t)i);
      MPI_Isend(messages[i], length - i, MPI_BYTE, 0, 7, MPI_COMM_WORLD,
                &requests[i]);
    }
    MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
    return;
  }
  MPI_Status status;
  MPI_Message first;
  MPI_Message second;
  int count = 0;
  int found = 0;

  MPI_Iprobe(1, 8, MPI_COMM_WORLD, &found, &status);
  CHECK(!found);
  MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  CHECK(count == length && status.MPI_SOURCE == 1 && status.MPI_TAG == 7);
  MPI_Mprobe(1, 7, MPI_COMM_WORLD, &first, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  CHECK(count == length);
  while (!found) MPI_Improbe(1, 7, MPI_COMM_WORLD, &found, &second, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  CHECK(count == length - 1);
  // The third overtakes the two that are matched; they in the other order.
  MPI_Recv(data, length, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  verify(data, (size_t)length - 2, 2);
  MPI_Mrecv(data, length, MPI_BYTE, &second, MPI_STATUS_IGNORE);
  verify(data, (size_t)length - 1, 1);
  MPI_Mrecv(data, length, MPI_BYTE, &first, MPI_STATUS_IGNORE);
  verify(data, (size_t)length, 0);
  MPI_Recv(data, length, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  verify(data, (size_t)length - 3, 3);
}

static void truncation(int posted_first) {
  enum { kSent = 9000, kRoom = 100 };
  static uint8_t data[kSent];

  begin(posted_first ? "truncation, posted first" : "truncation, sent first");
  if (rank > 1 || ranks < 2) return;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 1) {
    if (posted_first)
      MPI_Recv(NULL, 0, MPI_BYTE, 0, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fill(data, kSent, 77);
    MPI_Send(data, kSent, MPI_BYTE, 0, 20, MPI_COMM_WORLD);
  } else {
    MPI_Request request;
    MPI_Status status;

    if (!posted_first) MPI_Probe(1, 20, MPI_COMM_WORLD, &status);
    data[kRoom] = 0xa5;
    MPI_Irecv(data, kRoom, MPI_BYTE, 1, 20, MPI_COMM_WORLD, &request);
    if (posted_first) MPI_Send(NULL, 0, MPI_BYTE, 1, 21, MPI_COMM_WORLD);
    const int result = MPI_Wait(&request, &status);
    int class = MPI_SUCCESS;
    MPI_Error_class(result, &class);
    CHECK(class == MPI_ERR_TRUNCATE);
    CHECK(data[kRoom] == 0xa5);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// Two receives would match: the cancelled one gets nothing.
static void cancellation(void) {
  begin("cancellation");
  if (rank > 1 || ranks < 2) return;
  uint8_t data[2] = {1, 2};
  if (rank == 1) {
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    data[0] = 42;
    MPI_Send(data, 1, MPI_BYTE, 0, 30, MPI_COMM_WORLD);
    return;
  }
  MPI_Request cancelled;
  MPI_Request waits;
  MPI_Status status;
  int was = 0;

  MPI_Irecv(&data[0], 1, MPI_BYTE, 1, 30, MPI_COMM_WORLD, &cancelled);
  MPI_Irecv(&data[1], 1, MPI_BYTE, 1, 30, MPI_COMM_WORLD, &waits);
  MPI_Cancel(&cancelled);
  MPI_Wait(&cancelled, &status);
  MPI_Test_cancelled(&status, &was);
  CHECK(was);
  MPI_Send(NULL, 0, MPI_BYTE, 1, 31, MPI_COMM_WORLD);
  MPI_Wait(&waits, MPI_STATUS_IGNORE);
  CHECK(data[0] == 1 && data[1] == 42);
}

void point_to_point(void) {
  sizes();
  wildcards();
  opposite_order(1);
  opposite_order(0);
  probes();
  truncation(1);
  truncation(0);
  cancellation();
}

// The receiver waits for the last message before the others, so all of them
// arrive before their receives.
void many_unexpected(int messages) {
  enum { kBulk = 40, kLast = 41 };

  begin("many unexpected");
  if (rank > 1 || ranks < 2) return;
  if (rank == 1) {
    MPI_Request* requests = malloc((size_t)messages * sizeof *requests);
    int* values = malloc((size_t)messages * sizeof *values);

    CHECK(requests != NULL && values != NULL);
    for (int i = 0; i < messages; i++) {
      values[i] = i * 3;
      MPI_Isend(&values[i], 1, MPI_INT, 0, i + 1 == messages ? kLast : kBulk,
                MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(values);
    return;
  }
  MPI_Probe(1, kLast, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < messages; i++) {
    int value = -1;

    MPI_Recv(&value, 1, MPI_INT, 1, i + 1 == messages ? kLast : kBulk,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == i * 3);
  }
}
