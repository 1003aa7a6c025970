// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L  // NOLINT: strdup.

#include "messages.h"

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxNameBytes = 64 };

struct Peer {
  unsigned char name[kMaxNameBytes];
  fi_addr_t address;
};

struct fid_domain* domain;
struct fid_cq* send_cq;
struct fid_cq* receive_cq;
struct fid_ep* ep;
unsigned peer_count;

static const struct Options* opened_with;
static struct fi_info* info;
static struct fid_fabric* fabric;
static struct fid_av* av;
static struct Peer* peers;
static unsigned char receive_buffers[kReceives][kMaxBytes];
static unsigned char send_buffer[kMaxBytes];

void Check(const char* call, long result) {
  if (result < 0) {
    printf("error %s %ld %s\n", call, result, fi_strerror((int)-result));
    fflush(stdout);
    exit(kFailed);
  }
}

void MakeProgress(ssize_t result) {
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

// Null for an empty one.
static const char* NodeOrNull(const char* node) {
  return node[0] != '\0' ? node : NULL;
}

static void GetInfo(const struct Options* options) {
  struct fi_info* const hints = fi_allocinfo();
  hints->caps = FI_MSG | (options->rma ? FI_RMA : 0);
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup("heddle");
  hints->domain_attr->mr_mode = options->rma ? FI_MR_PROV_KEY : 0;
  hints->rx_attr->size = kReceives;
  hints->tx_attr->op_flags =
      options->delivery_complete ? FI_DELIVERY_COMPLETE : 0;
  const char* node = NULL;
  const char* service = NULL;
  uint64_t flags = 0;
  if (options->source != NULL) {
    node = NodeOrNull(options->source);
    service = options->port;
    flags = FI_SOURCE;
  } else if (options->destination != NULL) {
    node = NodeOrNull(options->destination);
    service = options->destination_port;
  }
  Check("fi_getinfo",
        fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints, &info));
  fi_freeinfo(hints);
  if (options->unordered) {
    info->tx_attr->msg_order = FI_ORDER_NONE;
    info->rx_attr->msg_order = FI_ORDER_NONE;
  }
  if (options->port != NULL && options->source == NULL) {
    ((struct sockaddr_in*)info->src_addr)->sin_port =
        htons((uint16_t)atoi(options->port));
  }
}

static struct Peer* AddPeer(void) {
  struct Peer* const more =
      realloc(peers, (peer_count + 1) * sizeof(struct Peer));
  if (more == NULL) {
    Check("peers", -FI_ENOMEM);
  }
  peers = more;
  return &peers[peer_count++];
}

static void Insert(struct Peer* peer) {
  if (fi_av_insert(av, peer->name, 1, &peer->address, 0, NULL) != 1) {
    Check("fi_av_insert", -FI_EADDRNOTAVAIL);
  }
}

void Open(const struct Options* options) {
  opened_with = options;
  GetInfo(options);
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
  if (peer_count == 0 && info->dest_addr != NULL &&
      info->dest_addrlen <= kMaxNameBytes) {
    memcpy(AddPeer()->name, info->dest_addr, info->dest_addrlen);
  }
  for (unsigned i = 0; i < peer_count; ++i) {
    Insert(&peers[i]);
  }
}

void Close(void) {
  struct fid* const objects[] = {&ep->fid,      &av->fid,     &receive_cq->fid,
                                 &send_cq->fid, &domain->fid, &fabric->fid};
  for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); ++i) {
    Check("fi_close", fi_close(objects[i]));
  }
  fi_freeinfo(info);
}

void Reopen(void) {
  Close();
  Open(opened_with);
}

void PrintName(void) {
  unsigned char name[kMaxNameBytes];
  size_t bytes = sizeof(name);
  Check("fi_getname", fi_getname(&ep->fid, name, &bytes));
  fputs("name ", stdout);
  for (size_t i = 0; i < bytes; ++i) {
    printf("%02x", name[i]);
  }
  putchar('\n');
}

void LearnService(const char* node, const char* service) {
  struct Peer* const peer = AddPeer();
  if (fi_av_insertsvc(av, node, service, &peer->address, 0, NULL) != 1) {
    Check("fi_av_insertsvc", -FI_EADDRNOTAVAIL);
  }
  size_t bytes = sizeof(peer->name);
  Check("fi_av_lookup", fi_av_lookup(av, peer->address, peer->name, &bytes));
}

void LearnPeers(char* names) {
  for (char* name = strtok(names, " \n"); name != NULL;
       name = strtok(NULL, " \n")) {
    const size_t bytes = strlen(name) / 2;
    if (bytes > kMaxNameBytes) {
      Check("peers", -FI_EINVAL);
    }
    struct Peer* const peer = AddPeer();
    for (size_t i = 0; i < bytes; ++i) {
      unsigned value = 0;
      sscanf(name + 2 * i, "%2x", &value);
      peer->name[i] = (unsigned char)value;
    }
    Insert(peer);
  }
}

fi_addr_t PeerAddress(unsigned peer) {
  if (peer >= peer_count) {
    Check("number of a peer", -FI_EINVAL);
  }
  return peers[peer].address;
}

bool Take(struct fid_cq* cq, struct fi_cq_msg_entry* entry) {
  const ssize_t result = fi_cq_read(cq, entry, 1);
  if (result == -FI_EAVAIL) {
    struct fi_cq_err_entry failure = {0};
    fi_cq_readerr(cq, &failure, 0);
    Check("completion", -(long)failure.err);
  }
  if (result == -FI_EAGAIN) {
    sched_yield();  // Hundreds of processes may share a CPU.
  } else {
    Check("fi_cq_read", result);
  }
  return result == 1;
}

static unsigned char Pattern(const struct Header* header, uint32_t at) {
  return (unsigned char)(header->from * 7 + header->number * 13 + at * 31 +
                         (at >> 8));
}

void Fill(const struct Header* header, unsigned char* buffer) {
  memcpy(buffer, header, sizeof(*header));
  for (uint32_t i = sizeof(*header); i < header->bytes; ++i) {
    buffer[i] = Pattern(header, i);
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

bool Receive(struct Header* header) {
  struct fi_cq_msg_entry entry;
  if (!Take(receive_cq, &entry)) {
    return false;
  }
  const unsigned char* const buffer = entry.op_context;
  *header = Verify(buffer, entry.len);
  PostReceive((unsigned)((buffer - receive_buffers[0]) / kMaxBytes));
  return true;
}

void StartSend(unsigned peer, const struct Header* header) {
  Fill(header, send_buffer);
  ssize_t result = -FI_EAGAIN;
  while (result == -FI_EAGAIN) {
    result =
        fi_send(ep, send_buffer, header->bytes, NULL, PeerAddress(peer), NULL);
    MakeProgress(result);
  }
  Check("fi_send", result);
}

void Send(unsigned peer, const struct Header* header) {
  struct fi_cq_msg_entry entry;
  StartSend(peer, header);
  while (!Take(send_cq, &entry)) {
  }
}
