// SPDX-License-Identifier: Apache-2.0
// One RDM endpoint of a process that a test directs by lines on standard input:
//
//   peers NAME ...        learns its peers, in the order of their numbers
//   circle SELF BYTES DISTANCE ...  SELF is this process's own number: sends a
//                         message to the peers at these distances in the
//                         circle of all, and takes one from those behind
//   ping PEER COUNT BYTES sends COUNT messages and takes each one's echo
//   echo COUNT            echoes COUNT messages
//   mesh SELF COUNT BYTES PAUSE PEER ...  exchanges COUNT messages each way
//   with
//                         each of the peers, all at once; prints `lost PEER
//                         ERROR` when a send to one fails and goes on without
//                         it. With PAUSE 1 it prints `half` when it has half of
//                         some peer's, and waits for a line. A peer that is
//                         behind and silent for a second is sent more, which is
//                         how its end is found out.
//   close                 closes everything and ends with 0
//
// It prints `name NAME` once it is open, `done` after each command, and `error
// CALL NUMBER TEXT` when a call of the API fails, and then ends with 3. With
// `-p PORT` it binds that port. The end of the input is as `close`.
#define _POSIX_C_SOURCE 200809L  // NOLINT: strdup.

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  kMaxPeers = 64,
  kMaxBytes = 16384,
  kReceives = 16,
  kMaxCount = 4096,
  kAhead = 8,
  kFailed = 3,
};

// Ahead of each message's bytes.
struct Header {
  uint32_t from;  // The sender's number.
  uint32_t number;
  uint32_t bytes;
  uint32_t reply_to;
};

static struct fi_info* info;
static struct fid_fabric* fabric;
static struct fid_domain* domain;
static struct fid_cq* send_cq;
static struct fid_cq* receive_cq;
static struct fid_av* av;
static struct fid_ep* ep;
static fi_addr_t peers[kMaxPeers];
static unsigned peer_count;
static unsigned char receive_buffers[kReceives][kMaxBytes];
static unsigned char send_buffer[kMaxBytes];

static void Check(const char* call, long result) {
  if (result < 0) {
    printf("error %s %ld %s\n", call, result, fi_strerror((int)-result));
    fflush(stdout);
    exit(kFailed);
  }
}

// After a call that may have found no room.
static void MakeProgress(ssize_t result) {
  if (result == -FI_EAGAIN) {
    fi_cq_read(send_cq, NULL, 0);
  }
}

static void PostReceive(unsigned slot) {
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN) {
    result = fi_recv(ep, receive_buffers[slot], kMaxBytes, NULL, FI_ADDR_UNSPEC,
                     receive_buffers[slot]);
    MakeProgress(result);
  }
  Check("fi_recv", result);
}

static void Open(const char* port) {
  struct fi_info* const hints = fi_allocinfo();
  hints->caps = FI_MSG;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup("heddle");
  hints->rx_attr->size = kReceives;
  Check("fi_getinfo",
        fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
  fi_freeinfo(hints);
  if (port != NULL) {
    ((struct sockaddr_in*)info->src_addr)->sin_port =
        htons((uint16_t)atoi(port));
  }
  struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG,
                               .size = 2 * kReceives};
  struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
  Check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
  Check("fi_domain", fi_domain(fabric, info, &domain, NULL));
  Check("fi_cq_open", fi_cq_open(domain, &cq_attr, &send_cq, NULL));
  Check("fi_cq_open", fi_cq_open(domain, &cq_attr, &receive_cq, NULL));
  Check("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
  Check("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
  Check("fi_ep_bind", fi_ep_bind(ep, &send_cq->fid, FI_TRANSMIT));
  Check("fi_ep_bind", fi_ep_bind(ep, &receive_cq->fid, FI_RECV));
  Check("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
  Check("fi_enable", fi_enable(ep));
  for (unsigned i = 0; i < kReceives; ++i) {
    PostReceive(i);
  }
}

static void Close(void) {
  struct fid* const objects[] = {&ep->fid,      &av->fid,     &receive_cq->fid,
                                 &send_cq->fid, &domain->fid, &fabric->fid};
  for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); ++i) {
    Check("fi_close", fi_close(objects[i]));
  }
  fi_freeinfo(info);
}

static void PrintName(void) {
  unsigned char name[64];
  size_t bytes = sizeof(name);
  Check("fi_getname", fi_getname(&ep->fid, name, &bytes));
  fputs("name ", stdout);
  for (size_t i = 0; i < bytes; ++i) {
    printf("%02x", name[i]);
  }
  putchar('\n');
}

static void LearnPeers(char* names) {
  for (char* name = strtok(names, " \n");
       name != NULL && peer_count < kMaxPeers; name = strtok(NULL, " \n")) {
    unsigned char address[64];
    const size_t bytes = strlen(name) / 2;
    for (size_t i = 0; i < bytes; ++i) {
      unsigned value = 0;
      sscanf(name + 2 * i, "%2x", &value);
      address[i] = (unsigned char)value;
    }
    if (fi_av_insert(av, address, 1, &peers[peer_count], 0, NULL) != 1) {
      Check("fi_av_insert", -FI_EADDRNOTAVAIL);
    }
    ++peer_count;
  }
}

// One completion if there is one.
static bool Take(struct fid_cq* cq, struct fi_cq_msg_entry* entry) {
  const ssize_t result = fi_cq_read(cq, entry, 1);
  if (result == -FI_EAVAIL) {
    struct fi_cq_err_entry failure = {0};
    fi_cq_readerr(cq, &failure, 0);
    Check("completion", -(long)failure.err);
  }
  if (result != -FI_EAGAIN) {
    Check("fi_cq_read", result);
  }
  return result == 1;
}

static unsigned char Pattern(const struct Header* header, uint32_t at) {
  return (unsigned char)(header->from * 7 + header->number * 13 + at * 31 +
                         (at >> 8));
}

// The bytes of a message that is `header`, in the send buffer.
static void Fill(const struct Header* header) {
  memcpy(send_buffer, header, sizeof(*header));
  for (uint32_t i = sizeof(*header); i < header->bytes; ++i) {
    send_buffer[i] = Pattern(header, i);
  }
}

static struct Header Verify(const unsigned char* buffer, size_t bytes) {
  struct Header header = {0};
  memcpy(&header, buffer, sizeof(header));
  bool good = bytes >= sizeof(header) && bytes == header.bytes;
  for (uint32_t i = sizeof(header); good && i < header.bytes; ++i) {
    good = buffer[i] == Pattern(&header, i);
  }
  if (!good) {
    Check("content", -FI_EIO);
  }
  return header;
}

// Takes one message, if there is one.
static bool Receive(struct Header* header) {
  struct fi_cq_msg_entry entry;
  if (!Take(receive_cq, &entry)) {
    return false;
  }
  const unsigned char* const buffer = entry.op_context;
  *header = Verify(buffer, entry.len);
  PostReceive((unsigned)((buffer - receive_buffers[0]) / kMaxBytes));
  return true;
}

// Sends what the send buffer holds, one at a time.
static void StartSend(unsigned peer, size_t bytes) {
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN) {
    result = fi_send(ep, send_buffer, bytes, NULL, peers[peer], NULL);
    MakeProgress(result);
  }
  Check("fi_send", result);
}

// To the peers at `distances` in the circle, and from those as far behind.
static void Circle(unsigned self, uint32_t bytes, const char* distances) {
  bool seen[kMaxPeers] = {false};
  unsigned receivers[kMaxPeers];
  unsigned count = 0;
  unsigned distance = 0;
  int used = 0;
  while (count < kMaxPeers &&
         sscanf(distances, "%u%n", &distance, &used) == 1) {
    receivers[count++] = (self + distance) % peer_count;
    distances += used;
  }
  unsigned received = 0;
  unsigned sent = 0;
  bool sending = false;
  struct Header header;
  struct fi_cq_msg_entry entry;
  while (sent < count || received < count) {
    if (!sending && sent < count) {
      const struct Header mine = {self, sent, bytes, self};
      Fill(&mine);
      StartSend(receivers[sent], bytes);
      sending = true;
    }
    if (sending && Take(send_cq, &entry)) {
      sending = false;
      ++sent;
    }
    if (Receive(&header)) {
      if (header.from >= peer_count || seen[header.from]) {
        Check("a second message of one peer", -FI_EOTHER);
      }
      seen[header.from] = true;
      ++received;
    }
  }
}

static void Ping(unsigned peer, uint32_t count, uint32_t bytes) {
  struct Header header;
  struct fi_cq_msg_entry entry;
  for (uint32_t number = 0; number < count; ++number) {
    const struct Header mine = {peer, number, bytes, 0};
    Fill(&mine);
    StartSend(peer, bytes);
    while (!Take(send_cq, &entry)) {
    }
    while (!Receive(&header)) {
    }
    if (header.number != number) {
      Check("order of echoes", -FI_EOTHER);
    }
  }
}

// What this process has exchanged with a peer in a mesh.
struct Exchange {
  bool takes_part;
  bool sending;
  uint32_t sent;
  uint32_t received;
  time_t active;  // The second in which something was sent or received.
  bool seen[kMaxCount];
  unsigned char message[kMaxBytes];
};
static struct Exchange exchanges[kMaxPeers];

static time_t Seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

// Sends the next message to `peer` unless that peer is far behind.
static void MeshSend(unsigned self, unsigned peer, uint32_t count,
                     uint32_t bytes) {
  struct Exchange* const with = &exchanges[peer];
  if (!with->takes_part || with->sending || with->sent == count ||
      (with->sent >= with->received + kAhead && Seconds() < with->active + 2)) {
    return;
  }
  const struct Header mine = {self, with->sent, bytes, self};
  Fill(&mine);
  memcpy(with->message, send_buffer, bytes);
  const ssize_t result =
      fi_send(ep, with->message, bytes, NULL, peers[peer], with);
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
  struct Exchange* with = NULL;
  if (result == -FI_EAVAIL) {
    struct fi_cq_err_entry failure = {0};
    fi_cq_readerr(send_cq, &failure, 0);
    with = failure.op_context;
    with->takes_part = false;
    printf("lost %u %d\n", (unsigned)(with - exchanges), failure.err);
    fflush(stdout);
  } else if (result == 1) {
    with = entry.op_context;
    ++with->sent;
  } else if (result != -FI_EAGAIN) {
    Check("fi_cq_read", result);
  }
  if (with != NULL) {
    with->sending = false;
  }
}

static void MeshReceive(uint32_t count) {
  struct Header header;
  if (!Receive(&header)) {
    return;
  }
  if (header.from >= peer_count || header.number >= count ||
      exchanges[header.from].seen[header.number]) {
    Check("a message twice, or of nobody", -FI_EOTHER);
  }
  exchanges[header.from].seen[header.number] = true;
  ++exchanges[header.from].received;
  exchanges[header.from].active = Seconds();
}

static void Mesh(unsigned self, uint32_t count, uint32_t bytes, bool pause,
                 const char* numbers) {
  memset(exchanges, 0, sizeof(exchanges));
  unsigned peer = 0;
  int used = 0;
  while (sscanf(numbers, "%u%n", &peer, &used) == 1 && peer < kMaxPeers) {
    exchanges[peer].takes_part = true;
    numbers += used;
  }
  bool complete = count > kMaxCount;
  while (!complete) {
    complete = true;
    MeshTake();
    MeshReceive(count);
    for (peer = 0; peer < peer_count; ++peer) {
      const struct Exchange* const with = &exchanges[peer];
      MeshSend(self, peer, count, bytes);
      complete = complete && (!with->takes_part ||
                              (with->sent == count && with->received == count));
      if (pause && with->received >= count / 2) {
        char line[16];
        pause = false;
        puts("half");
        fflush(stdout);
        Check("half", fgets(line, sizeof(line), stdin) != NULL ? 0 : -FI_EIO);
      }
    }
  }
}

// Sends back what comes, to peer 0.
static void Echo(uint32_t count) {
  struct Header header;
  struct fi_cq_msg_entry entry;
  for (uint32_t i = 0; i < count; ++i) {
    while (!Receive(&header)) {
    }
    Fill(&header);
    StartSend(header.reply_to, header.bytes);
    while (!Take(send_cq, &entry)) {
    }
  }
}

// False after `close`.
static bool Obey(char* line) {
  unsigned number = 0;
  unsigned count = 0;
  unsigned bytes = 0;
  unsigned pause = 0;
  int used = 0;
  if (strncmp(line, "peers ", 6) == 0) {
    LearnPeers(line + 6);
  } else if (sscanf(line, "circle %u %u%n", &number, &bytes, &used) == 2) {
    Circle(number, bytes, line + used);
  } else if (sscanf(line, "ping %u %u %u", &number, &count, &bytes) == 3) {
    Ping(number, count, bytes);
  } else if (sscanf(line, "mesh %u %u %u %u%n", &number, &count, &bytes, &pause,
                    &used) == 4) {
    Mesh(number, count, bytes, pause != 0, line + used);
  } else if (sscanf(line, "echo %u", &count) == 1) {
    Echo(count);
  } else if (strncmp(line, "close", 5) == 0) {
    return false;
  } else {
    Check("command", -FI_EINVAL);
  }
  return true;
}

int main(int argc, char** argv) {
  Open(argc == 3 && strcmp(argv[1], "-p") == 0 ? argv[2] : NULL);
  PrintName();
  fflush(stdout);
  static char line[8192];
  while (fgets(line, sizeof(line), stdin) != NULL && Obey(line)) {
    puts("done");
    fflush(stdout);
  }
  Close();
  puts("closed");
  return 0;
}
