// SPDX-License-Identifier: Apache-2.0
// One RDM endpoint of a process that a test directs by lines on standard input:
//
//   peers NAME ...        learns its peers, in the order of their numbers
//   swap SELF BYTES       SELF is this process's own number: sends a message to
//                         each peer, and receives as many, each from another
//                         sender
//   service NODE PORT     learns one more peer by fi_av_insertsvc
//   ping PEER COUNT BYTES [SELF]  sends COUNT messages and takes each one's
//                         echo; SELF is the number that the peer knows this
//                         process by, 0 if it is missing
//   echo COUNT            echoes COUNT messages
//   mesh SELF COUNT BYTES PAUSE PEER ...  exchanges COUNT messages each way
//                         with each of the peers, all at once; prints `lost
//                         PEER ERROR` when a send to one fails, and continues
//                         without it. With PAUSE 1 it prints `half` when it has
//                         half of some peer's, and waits for a line. A peer
//                         that is behind and silent for a second is sent more,
//                         which is how its end is found out.
//   region                registers memory that peers may read and write, and
//                         prints `region ADDRESS KEY`
//   write PEER ADDRESS KEY [VALUE]  writes a peer's full of the value, 0 if it
//                         is missing; prints `wrote ERROR`, 0 if that succeeded
//   read PEER ADDRESS KEY  reads a peer's; prints `read ERROR DATA`
//   stream ...            see stream.h
//   reopen                closes everything and opens it again, with the same
//                         peers; prints `name NAME`
//   close                 closes everything and ends with 0
//
// It prints `name NAME` once it is open, `done` after each command, and `error
// CALL NUMBER TEXT` when a call of the API fails, and then ends with 3. With
// `-p PORT` it binds that port, with `-d` sends complete once delivered, with
// `-r` it may use RMA. `-s NODE` passes NODE and the port to fi_getinfo as the
// source, `-n NODE -q PORT` as the destination, which is peer 0; an empty NODE
// stands for none. The end of the input is as `close`.
#define _POSIX_C_SOURCE 200809L  // NOLINT: getline, getopt.

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "messages.h"
#include "stream.h"

enum {
  kMaxSenders = 65536,
  kMaxCount = 4096,
  kAhead = 8,
};

static void Swap(uint32_t self, uint32_t bytes) {
  static bool seen[kMaxSenders];
  memset(seen, 0, sizeof(seen));
  unsigned received = 0;
  unsigned sent = 0;
  bool sending = false;
  struct Header header;
  struct fi_cq_msg_entry entry;
  while (sent < peer_count || received < peer_count) {
    if (!sending && sent < peer_count) {
      const struct Header mine = {self, sent, bytes, self};
      StartSend(sent, &mine);
      sending = true;
    }
    if (sending && Take(send_cq, &entry)) {
      sending = false;
      ++sent;
    }
    if (Receive(&header)) {
      if (header.from >= kMaxSenders || seen[header.from]) {
        Check("a second message of one peer", -FI_EOTHER);
      }
      seen[header.from] = true;
      ++received;
    }
  }
}

static void Ping(unsigned peer, uint32_t count, uint32_t bytes, unsigned self) {
  struct Header header;
  for (uint32_t number = 0; number < count; ++number) {
    const struct Header mine = {peer, number, bytes, self};
    Send(peer, &mine);
    while (!Receive(&header)) {
    }
    if (header.number != number) {
      Check("order of echoes", -FI_EOTHER);
    }
  }
}

// What this process has exchanged with a peer in a mesh.
struct Exchange {
  bool sending;
  uint32_t sent;
  uint32_t received;
  time_t active;  // The second in which something was sent or received.
  bool seen[kMaxCount];
  unsigned char message[kMaxBytes];
};
// By peer; null of those that take no part.
static struct Exchange** exchanges;

static time_t Seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

// Sends the next message to `peer` unless that peer is far behind.
static void MeshSend(unsigned self, unsigned peer, uint32_t count,
                     uint32_t bytes) {
  struct Exchange* const with = exchanges[peer];
  if (with == NULL || with->sending || with->sent == count ||
      (with->sent >= with->received + kAhead && Seconds() < with->active + 2)) {
    return;
  }
  const struct Header mine = {self, with->sent, bytes, self};
  Fill(&mine, with->message);
  const ssize_t result = fi_send(ep, with->message, bytes, NULL,
                                 PeerAddress(peer), &exchanges[peer]);
  MakeProgress(result);
  if (result != -FI_EAGAIN) {
    Check("fi_send", result);
    with->sending = true;
    with->active = Seconds();
  }
}

// Takes one completion of a send, good or bad.
static void MeshTake(void) {
  struct fi_cq_msg_entry entry;
  const ssize_t result = fi_cq_read(send_cq, &entry, 1);
  if (result == -FI_EAVAIL) {
    struct fi_cq_err_entry failure = {0};
    fi_cq_readerr(send_cq, &failure, 0);
    struct Exchange** const with = failure.op_context;
    printf("lost %u %d\n", (unsigned)(with - exchanges), failure.err);
    fflush(stdout);
    free(*with);
    *with = NULL;
  } else if (result == 1) {
    struct Exchange* const with = *(struct Exchange**)entry.op_context;
    with->sending = false;
    ++with->sent;
  } else if (result != -FI_EAGAIN) {
    Check("fi_cq_read", result);
  }
}

static void MeshReceive(uint32_t count) {
  struct Header header;
  if (!Receive(&header)) {
    return;
  }
  if (header.from >= peer_count || header.number >= count) {
    Check("the message of an unknown sender", -FI_EOTHER);
  }
  struct Exchange* const with = exchanges[header.from];
  if (with == NULL) {
    return;  // It was in flight when the peer was lost.
  }
  if (with->seen[header.number]) {
    Check("a message twice", -FI_EOTHER);
  }
  with->seen[header.number] = true;
  ++with->received;
  with->active = Seconds();
}

static void Mesh(unsigned self, uint32_t count, uint32_t bytes, bool pause,
                 const char* numbers) {
  exchanges = calloc(peer_count, sizeof(struct Exchange*));
  unsigned peer = 0;
  int used = 0;
  while (sscanf(numbers, "%u%n", &peer, &used) == 1 && peer < peer_count) {
    exchanges[peer] = calloc(1, sizeof(struct Exchange));
    numbers += used;
  }
  bool complete = count > kMaxCount;
  while (!complete) {
    complete = true;
    MeshTake();
    MeshReceive(count);
    for (peer = 0; peer < peer_count; ++peer) {
      MeshSend(self, peer, count, bytes);
      const struct Exchange* const with = exchanges[peer];
      if (with == NULL) {
        continue;
      }
      complete = complete && with->sent == count && with->received == count;
      if (pause && with->received >= count / 2) {
        char line[16];
        pause = false;
        puts("half");
        fflush(stdout);
        Check("half", fgets(line, sizeof(line), stdin) != NULL ? 0 : -FI_EIO);
      }
    }
  }
  for (peer = 0; peer < peer_count; ++peer) {
    free(exchanges[peer]);
  }
  free(exchanges);
}

// Sends back what comes.
static void Echo(uint32_t count) {
  struct Header header;
  for (uint32_t i = 0; i < count; ++i) {
    while (!Receive(&header)) {
    }
    Send(header.reply_to, &header);
  }
}

// False after `close`.
static bool Obey(char* line) {
  unsigned number = 0;
  unsigned count = 0;
  unsigned bytes = 0;
  unsigned pause = 0;
  unsigned self = 0;
  int used = 0;
  char node[256];
  char service[16];
  struct Target target = {0};
  if (strncmp(line, "peers ", 6) == 0) {
    LearnPeers(line + 6);
  } else if (sscanf(line, "service %255s %15s", node, service) == 2) {
    LearnService(node, service);
  } else if (sscanf(line, "swap %u %u", &number, &bytes) == 2) {
    Swap(number, bytes);
  } else if (sscanf(line, "ping %u %u %u %u", &number, &count, &bytes, &self) >=
             3) {
    Ping(number, count, bytes, self);
  } else if (sscanf(line, "mesh %u %u %u %u%n", &number, &count, &bytes, &pause,
                    &used) == 4) {
    Mesh(number, count, bytes, pause != 0, line + used);
  } else if (sscanf(line, "echo %u", &count) == 1) {
    Echo(count);
  } else if (strncmp(line, "region", 6) == 0) {
    OfferRegion();
  } else if (sscanf(line, "write %u %" SCNu64 " %" SCNu64 " %u", &target.peer,
                    &target.address, &target.key, &number) >= 3) {
    Write(&target, (unsigned char)number);
  } else if (sscanf(line, "read %u %" SCNu64 " %" SCNu64, &target.peer,
                    &target.address, &target.key) == 3) {
    Read(&target);
  } else if ((used = sscanf(line, "stream %u %u %u %" SCNu64 " %" SCNu64,
                            &number, &bytes, &target.peer, &target.address,
                            &target.key)) >= 3) {
    target.writable = used == 5;
    Stream(number, bytes, &target);
  } else if (strncmp(line, "reopen", 6) == 0) {
    CloseRegion();
    Reopen();
    PrintName();
  } else if (strncmp(line, "close", 5) == 0) {
    return false;
  } else {
    Check("command", -FI_EINVAL);
  }
  return true;
}

int main(int argc, char** argv) {
  struct Options options = {0};
  for (int option = 0; (option = getopt(argc, argv, "p:drs:n:q:")) != -1;) {
    if (option == 'p') {
      options.port = optarg;
    } else if (option == 'd') {
      options.delivery_complete = true;
    } else if (option == 'r') {
      options.rma = true;
    } else if (option == 's') {
      options.source = optarg;
    } else if (option == 'n') {
      options.destination = optarg;
    } else if (option == 'q') {
      options.destination_port = optarg;
    } else {
      return EXIT_FAILURE;
    }
  }
  // What poll says of standard input is then true of the stream.
  setvbuf(stdin, NULL, _IONBF, 0);
  Open(&options);
  PrintName();
  fflush(stdout);
  char* line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) >= 0 && Obey(line)) {
    puts("done");
    fflush(stdout);
  }
  free(line);
  CloseRegion();
  Close();
  puts("closed");
  return 0;
}
