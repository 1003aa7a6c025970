// SPDX-License-Identifier: Apache-2.0
// The endpoint of a test program, and messages that can be verified.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  kMaxBytes = 32768,
  kReceives = 16,
  kFailed = 3,  // Exit status when a call fails.
};

// Ahead of each message's bytes.
struct Header {
  uint32_t from;  // The sender's number.
  uint32_t number;
  uint32_t bytes;
  uint32_t reply_to;
};

struct Options {
  const char* port;    // NULL: any.
  const char* source;  // Node; an empty one stands for none, NULL: no source.
  const char* destination;  // Node and port of peer 0; likewise.
  const char* destination_port;
  bool delivery_complete;  // Sends complete once they are delivered.
  bool rma;
  bool unordered;  // Messages and RMA have no order.
};

extern struct fid_domain* domain;
extern struct fid_cq* send_cq;
extern struct fid_cq* receive_cq;
extern struct fid_ep* ep;
extern unsigned peer_count;

// Prints `error CALL NUMBER TEXT` and ends the process if `result` is negative.
void Check(const char* call, long result);

// Opens the endpoint and posts receives; `options` must stay valid.
void Open(const struct Options* options);
void Close(void);
// Closes everything and opens it again, with the same peers.
void Reopen(void);
void PrintName(void);

// Appends to the peers those with the names in `names`.
void LearnPeers(char* names);
// Appends the one that fi_av_insertsvc finds.
void LearnService(const char* node, const char* service);
fi_addr_t PeerAddress(unsigned peer);

// After a call that may have found no room.
void MakeProgress(ssize_t result);
// One completion if there is one; one in error ends the process.
bool Take(struct fid_cq* cq, struct fi_cq_msg_entry* entry);

// The bytes of a message that is `header`, in `buffer`.
void Fill(const struct Header* header, unsigned char* buffer);
// Receives one message, if there is one; a bad one ends the process.
bool Receive(struct Header* header);
// Sends a message that is `header`, one at a time.
void StartSend(unsigned peer, const struct Header* header);
// The same, and waits until it has completed.
void Send(unsigned peer, const struct Header* header);
