// SPDX-License-Identifier: Apache-2.0
// Continuous traffic that records the fate of each operation, and memory that
// peers may write.
#pragma once

#include <inttypes.h>
#include <stdbool.h>

// A peer, and where it may be written.
struct Target {
  unsigned peer;
  bool writable;
  uint64_t address;
  uint64_t key;
};

// Registers memory that peers may read and write, and prints `region ADDRESS
// KEY`.
void OfferRegion(void);
// Closes it, if it is there.
void CloseRegion(void);

// Writes it full of `value`; prints `wrote ERROR`, 0 if it succeeded.
void Write(const struct Target* target, unsigned char value);
// Reads it; prints `read ERROR DATA`, the data in hexadecimal.
void Read(const struct Target* target);

// The command `stream SELF BYTES PEER [ADDRESS KEY]`: sends messages of up to
// BYTES, numbered from 0, to the peer, several at a time; with a key,
// operations 1, 5, 9 and so on are writes. Receives messages; a duplicate ends
// the process. Obeys these lines:
//
//   drain   posts no more; prints `drained` when no operation is outstanding
//   state   prints a line of JSON: `posted`, the number of operations; those
//           `completed`, as ranges of numbers; those that `failed`, as pairs of
//           number and error; messages `received`, as ranges by the sender's
//           SELF; `timeouts`, the expirations of retransmission timers
//   end     ends the command
void Stream(uint32_t self, uint32_t bytes, const struct Target* target);
