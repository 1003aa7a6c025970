// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L  // NOLINT: poll.

#include "stream.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_heddle.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

enum {
  kWindow = 8,  // Operations ahead.
  kMaxNumbers = 1 << 20,
  kMaxSenders = 1024,
  kWriteBytes = 64,
  kSmallBytes = 100,
  kWriteEach = 4,
};

struct Operation {
  bool outstanding;
  uint32_t number;
  unsigned char bytes[kMaxBytes];
};

static struct Operation operations[kWindow];
static bool completed[kMaxNumbers];
static int errors[kMaxNumbers];  // Of those that failed.
static uint32_t posted;
static bool* received[kMaxSenders];  // By the sender's number.
static unsigned char region[kWriteBytes];
static struct fid_mr* memory;

void OfferRegion(void) {
  Check("fi_mr_reg",
        fi_mr_reg(domain, region, sizeof(region),
                  FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 0, 0, &memory, NULL));
  // Offsets: the domain is without FI_MR_VIRT_ADDR.
  printf("region 0 %" PRIu64 "\n", fi_mr_key(memory));
}

void CloseRegion(void) {
  if (memory != NULL) {
    Check("fi_close", fi_close(&memory->fid));
    memory = NULL;
  }
}

// Posts a write or a read of operation 0 and waits for its end; its error.
static int Access(bool write, const struct Target* target) {
  unsigned char* const bytes = operations[0].bytes;
  const fi_addr_t peer = PeerAddress(target->peer);
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN) {
    result = write ? fi_write(ep, bytes, kWriteBytes, NULL, peer,
                              target->address, target->key, NULL)
                   : fi_read(ep, bytes, kWriteBytes, NULL, peer,
                             target->address, target->key, NULL);
    MakeProgress(result);
  }
  Check(write ? "fi_write" : "fi_read", result);
  struct fi_cq_msg_entry entry;
  struct fi_cq_err_entry failure = {0};
  do {
    result = fi_cq_read(send_cq, &entry, 1);
  } while (result == -FI_EAGAIN);
  if (result == -FI_EAVAIL) {
    fi_cq_readerr(send_cq, &failure, 0);
  } else {
    Check("fi_cq_read", result);
  }
  return failure.err;
}

void Write(const struct Target* target, unsigned char value) {
  memset(operations[0].bytes, value, kWriteBytes);
  printf("wrote %d\n", Access(true, target));
}

void Read(const struct Target* target) {
  memset(operations[0].bytes, 0xff, kWriteBytes);
  printf("read %d ", Access(false, target));
  for (unsigned i = 0; i < kWriteBytes; ++i) {
    printf("%02x", operations[0].bytes[i]);
  }
  putchar('\n');
}

static void Post(struct Operation* operation, uint32_t self, uint32_t bytes,
                 const struct Target* target) {
  const struct Header mine = {
      self, posted, posted % 2 == 0 ? kSmallBytes : bytes, target->peer};
  operation->number = posted;
  Fill(&mine, operation->bytes);
  const bool write = target->writable && posted % kWriteEach == 1;
  const fi_addr_t peer = PeerAddress(target->peer);
  const ssize_t result =
      write ? fi_write(ep, operation->bytes, kWriteBytes, NULL, peer,
                       target->address, target->key, operation)
            : fi_send(ep, operation->bytes, mine.bytes, NULL, peer, operation);
  MakeProgress(result);
  if (result != -FI_EAGAIN) {
    Check("post", result);
    operation->outstanding = true;
    ++posted;
  }
}

// Takes one completion, if there is one, good or bad.
static void TakeEnd(void) {
  struct fi_cq_msg_entry entry;
  const ssize_t result = fi_cq_read(send_cq, &entry, 1);
  struct Operation* operation = NULL;
  if (result == -FI_EAVAIL) {
    struct fi_cq_err_entry failure = {0};
    fi_cq_readerr(send_cq, &failure, 0);
    operation = failure.op_context;
    errors[operation->number] = failure.err;
  } else if (result == 1) {
    operation = entry.op_context;
    completed[operation->number] = true;
  } else if (result != -FI_EAGAIN) {
    Check("fi_cq_read", result);
  }
  if (operation == NULL) {
    return;
  }
  if (!operation->outstanding) {
    Check("an operation that ends twice", -FI_EOTHER);
  }
  operation->outstanding = false;
}

static void TakeMessage(void) {
  struct Header header;
  if (!Receive(&header)) {
    return;
  }
  if (header.from >= kMaxSenders || header.number >= kMaxNumbers) {
    Check("the message of an unknown sender", -FI_EOTHER);
  }
  if (received[header.from] == NULL) {
    received[header.from] = calloc(kMaxNumbers, sizeof(bool));
  }
  if (received[header.from][header.number]) {
    Check("a message twice", -FI_EOTHER);
  }
  received[header.from][header.number] = true;
}

static void PrintRanges(const bool* set) {
  const char* separator = "[";
  for (uint32_t i = 0; i < kMaxNumbers; ++i) {
    if (set[i] && (i == 0 || !set[i - 1])) {
      printf("%s[%" PRIu32 ", ", separator, i);
      separator = ", ";
    }
    if (set[i] && (i + 1 == kMaxNumbers || !set[i + 1])) {
      printf("%" PRIu32 "]", i);
    }
  }
  fputs(*separator == '[' ? "[]" : "]", stdout);
}

static uint64_t Timeouts(void) {
  struct fi_heddle_ops_statistics* table = NULL;
  Check("fi_open_ops", fi_open_ops(&domain->fid, FI_HEDDLE_STATISTICS, 0,
                                   (void**)&table, NULL));
  const size_t count = table->count(&domain->fid);
  uint64_t* const values = calloc(count, sizeof(uint64_t));
  uint64_t timeouts = 0;
  Check("statistics", table->read(&domain->fid, values, count));
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(table->name(&domain->fid, i), "timeouts") == 0) {
      timeouts = values[i];
    }
  }
  free(values);
  return timeouts;
}

static void PrintState(void) {
  printf("{\"timeouts\": %" PRIu64 ", \"posted\": %" PRIu32 ", \"completed\": ",
         Timeouts(), posted);
  PrintRanges(completed);
  fputs(", \"failed\": [", stdout);
  const char* separator = "";
  for (uint32_t i = 0; i < posted; ++i) {
    if (errors[i] != 0) {
      printf("%s[%" PRIu32 ", %d]", separator, i, errors[i]);
      separator = ", ";
    }
  }
  fputs("], \"received\": {", stdout);
  separator = "";
  for (unsigned i = 0; i < kMaxSenders; ++i) {
    if (received[i] != NULL) {
      printf("%s\"%u\": ", separator, i);
      PrintRanges(received[i]);
      separator = ", ";
    }
  }
  puts("}}");
  fflush(stdout);
}

static void Forget(void) {
  memset(completed, 0, sizeof(completed));
  posted = 0;
  memset(errors, 0, sizeof(errors));
  for (unsigned i = 0; i < kMaxSenders; ++i) {
    free(received[i]);
    received[i] = NULL;
  }
}

static bool IsIdle(void) {
  for (unsigned i = 0; i < kWindow; ++i) {
    if (operations[i].outstanding) {
      return false;
    }
  }
  return true;
}

void Stream(uint32_t self, uint32_t bytes, const struct Target* target) {
  enum { kSend, kDrain, kDrained } phase = kSend;
  Forget();
  for (;;) {
    TakeEnd();
    TakeMessage();
    for (unsigned i = 0; i < kWindow && phase == kSend; ++i) {
      if (!operations[i].outstanding && posted < kMaxNumbers) {
        Post(&operations[i], self, bytes, target);
      }
    }
    if (phase == kDrain && IsIdle()) {
      phase = kDrained;
      puts("drained");
      fflush(stdout);
    }
    struct pollfd input = {.fd = 0, .events = POLLIN};
    if (poll(&input, 1, 0) != 1) {
      continue;
    }
    char line[16];
    if (fgets(line, sizeof(line), stdin) == NULL ||
        strcmp(line, "end\n") == 0) {
      return;
    }
    if (strcmp(line, "drain\n") == 0) {
      phase = kDrain;
    } else if (strcmp(line, "state\n") == 0) {
      PrintState();
    } else {
      Check("command", -FI_EINVAL);
    }
  }
}
