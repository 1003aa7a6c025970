// SPDX-License-Identifier: Apache-2.0
// One RDM endpoint that the independent peer is tested against. It is directed
// by lines on standard input:
//
//   peers NAME        the peer, which all operations go to
//   receive COUNT     receives COUNT messages, in order unless -u; prints
//                     `received COUNT`
//   send NUMBER BYTES sends a message
//   region BYTES      registers memory that peers may read and write, filled
//                     with pattern 0; prints `region KEY`
//   dump              prints the memory as `dump HEX`
//   write KEY OFFSET BYTES SHIFT  writes pattern SHIFT
//   read KEY OFFSET BYTES         reads pattern 0, and verifies it
//   wait              waits for all operations; prints `done`
//   close             closes everything, prints `closed` and ends with 0
//
// Several operations are in flight at a time. Byte `at` of pattern SHIFT is
// SHIFT + 31 * at + at / 256; a write's pattern begins at the write, that of
// the memory at its start. A failed call or wrong data print `error ...` and
// end the process. With -u operations have no order.
#define _POSIX_C_SOURCE 200809L  // NOLINT: getline, getopt.

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/clients/messages.h"

enum { kInFlight = 8, kMaxRegionBytes = 1 << 18 };

struct Operation {
  bool outstanding;
  bool read;
  uint64_t offset;
  size_t bytes;
  unsigned char data[kMaxBytes];
};

static struct Operation operations[kInFlight];
static unsigned char region[kMaxRegionBytes];
static size_t region_bytes;
static struct fid_mr* memory;

static unsigned char Pattern(uint64_t shift, uint64_t at) {
  return (unsigned char)(shift + at * 31 + (at >> 8));
}

static void End(struct Operation* operation) {
  operation->outstanding = false;
  for (size_t i = 0; operation->read && i < operation->bytes; ++i) {
    if (operation->data[i] != Pattern(0, operation->offset + i)) {
      Check("data of a read", -FI_EIO);
    }
  }
}

// Ends an operation that completed, if there is one.
static void Progress(void) {
  struct fi_cq_msg_entry entry;
  if (Take(send_cq, &entry)) {
    End(entry.op_context);
  }
}

static struct Operation* NextFree(size_t bytes, bool read) {
  Check("size", bytes <= kMaxBytes ? 0 : -FI_EINVAL);
  for (;;) {
    for (unsigned i = 0; i < kInFlight; ++i) {
      struct Operation* const operation = &operations[i];
      if (!operation->outstanding) {
        operation->outstanding = true;
        operation->read = read;
        operation->bytes = bytes;
        return operation;
      }
    }
    Progress();
  }
}

static void WaitForAll(void) {
  for (unsigned i = 0; i < kInFlight; ++i) {
    while (operations[i].outstanding) {
      Progress();
    }
  }
}

static void SendOne(uint32_t number, uint32_t bytes) {
  struct Operation* const operation = NextFree(bytes, false);
  const struct Header header = {0, number, bytes, 0};
  Fill(&header, operation->data);
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN) {
    result =
        fi_send(ep, operation->data, bytes, NULL, PeerAddress(0), operation);
    Progress();
  }
  Check("fi_send", result);
}

static void Access(bool read, uint64_t key, uint64_t offset, uint32_t bytes,
                   uint64_t shift) {
  struct Operation* const operation = NextFree(bytes, read);
  operation->offset = offset;
  for (uint32_t i = 0; i < bytes; ++i) {
    operation->data[i] = read ? 0 : Pattern(shift, i);
  }
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN) {
    result = read ? fi_read(ep, operation->data, bytes, NULL, PeerAddress(0),
                            offset, key, operation)
                  : fi_write(ep, operation->data, bytes, NULL, PeerAddress(0),
                             offset, key, operation);
    Progress();
  }
  Check(read ? "fi_read" : "fi_write", result);
}

static void ReceiveAll(uint32_t count, bool ordered) {
  bool* const seen = calloc(count, sizeof(bool));
  struct Header header;
  for (uint32_t i = 0; i < count; ++i) {
    while (!Receive(&header)) {
    }
    if (header.number >= count || seen[header.number] ||
        (ordered && header.number != i)) {
      Check("order of messages", -FI_EOTHER);
    }
    seen[header.number] = true;
  }
  free(seen);
  printf("received %" PRIu32 "\n", count);
}

static void OfferRegion(uint32_t bytes) {
  Check("size", bytes <= kMaxRegionBytes ? 0 : -FI_EINVAL);
  region_bytes = bytes;
  for (uint32_t i = 0; i < bytes; ++i) {
    region[i] = Pattern(0, i);
  }
  Check("fi_mr_reg",
        fi_mr_reg(domain, region, bytes, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 0,
                  0, &memory, NULL));
  printf("region %" PRIu64 "\n", fi_mr_key(memory));
}

static void Dump(void) {
  fputs("dump ", stdout);
  for (size_t i = 0; i < region_bytes; ++i) {
    printf("%02x", region[i]);
  }
  putchar('\n');
}

// False after `close`.
static bool Obey(char* line, bool ordered) {
  uint32_t number = 0;
  uint32_t bytes = 0;
  uint64_t key = 0;
  uint64_t offset = 0;
  uint64_t shift = 0;
  if (strncmp(line, "peers ", 6) == 0) {
    LearnPeers(line + 6);
    puts("done");
  } else if (sscanf(line, "receive %" SCNu32, &number) == 1) {
    ReceiveAll(number, ordered);
  } else if (sscanf(line, "send %" SCNu32 " %" SCNu32, &number, &bytes) == 2) {
    SendOne(number, bytes);
  } else if (sscanf(line, "region %" SCNu32, &bytes) == 1) {
    OfferRegion(bytes);
  } else if (strncmp(line, "dump", 4) == 0) {
    Dump();
  } else if (sscanf(line, "write %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu64,
                    &key, &offset, &bytes, &shift) == 4) {
    Access(false, key, offset, bytes, shift);
  } else if (sscanf(line, "read %" SCNu64 " %" SCNu64 " %" SCNu32, &key,
                    &offset, &bytes) == 3) {
    Access(true, key, offset, bytes, 0);
  } else if (strncmp(line, "wait", 4) == 0) {
    WaitForAll();
    puts("done");
  } else if (strncmp(line, "close", 5) == 0) {
    return false;
  } else {
    Check("command", -FI_EINVAL);
  }
  fflush(stdout);
  return true;
}

int main(int argc, char** argv) {
  struct Options options = {.rma = true};
  for (int option = 0; (option = getopt(argc, argv, "u")) != -1;) {
    if (option != 'u') {
      return EXIT_FAILURE;
    }
    options.unordered = true;
  }
  Open(&options);
  PrintName();
  fflush(stdout);
  char* line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) >= 0 && Obey(line, !options.unordered)) {
  }
  free(line);
  if (memory != NULL) {
    Check("fi_close", fi_close(&memory->fid));
  }
  Close();
  puts("closed");
  return 0;
}
