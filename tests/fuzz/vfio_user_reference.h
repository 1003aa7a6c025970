// SPDX-License-Identifier: Apache-2.0
// What a vfio-user client may expect: its messages read once more, by other
// means than the server's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "hw/sim/vfio_user/protocol.h"

namespace heddle::fuzz {

// Reads along what the client sends and is answered: which bytes are no
// message, which answers are due, and what memory the function may reach.
//
// Thread safety: `MayAccess` from any thread.
class VfioUserReference {
 public:
  using Header = sim::vfio_user::Header;

  void Sent(std::span<const std::byte> bytes);
  // What an answer breaks; empty for nothing.
  std::string Answered(const Header& answer, std::span<const std::byte> body);
  // The server has read all that was sent.
  void Settle();

  // True once bytes were sent that are no message.
  bool malformed() const { return malformed_; }
  // True while an answer to a message is missing.
  bool due() const;
  // Whether an access lies in one mapping, or several that touch, and the
  // function may have been made bus master.
  bool MayAccess(uint64_t iova, uint64_t bytes, bool write) const;

 private:
  struct Request {
    Header header;
    std::vector<std::byte> body;
    uint64_t number = 0;
    bool wanted() const {
      return (header.flags & sim::vfio_user::kFlagNoReply) == 0;
    }
  };
  struct Mapping {
    uint64_t first = 0;
    uint64_t last = 0;
    bool writable = false;
    uint64_t number = 0;  // Of its request.
    bool sure = false;    // Else perhaps refused.
  };

  bool IsMalformed(const Request& request) const;
  void Accept(const Request& request);
  void AskForMap(const Request& request);
  std::string EndMap(const Request& request, bool done);
  std::string EndUnmap(const Request& request, bool known);

  bool greeted_ = false;
  bool malformed_ = false;
  uint64_t number_ = 0;
  std::vector<std::byte> stream_;
  std::deque<Request> open_;

  mutable std::mutex mutex_;  // What follows.
  bool master_ = false;
  std::list<Mapping> mapped_;
};

}  // namespace heddle::fuzz
