// SPDX-License-Identifier: Apache-2.0
// One connection of a vfio-user client: messages with their file descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hw/sim/base/owned_fd.h"
#include "hw/sim/vfio_user/protocol.h"

namespace heddle::sim::vfio_user {

struct Message {
  Header header;
  std::vector<std::byte> body;  // Behind the header.
  std::vector<base::OwnedFd> fds;
};

// Thread safety: none. Ownership: of the socket.
class Channel {
 public:
  explicit Channel(base::OwnedFd socket) : socket_(std::move(socket)) {}

  enum class Progress : uint8_t {
    kMore,     // Nothing whole yet; poll the socket.
    kMessage,  // There is one.
    kClosed,   // The client has gone.
    kBad,      // What it sent is no message; `why()` says more.
  };

  // Reads on without blocking, never past the message's end: descriptors
  // travel with the first byte of the message they belong to.
  Progress Receive(Message* message);

  // Sends a whole message, waiting for room. False when the other end has gone.
  [[nodiscard]] bool Send(const Header& header, std::span<const std::byte> body,
                          std::span<const int> fds);
  // Sends what there is room for and keeps the rest for `Flush`; never waits.
  [[nodiscard]] bool Queue(const Header& header,
                           std::span<const std::byte> body);
  [[nodiscard]] bool Flush();
  bool sending() const { return !unsent_.empty(); }

  int fd() const { return socket_.get(); }
  const std::string& why() const { return why_; }

 private:
  // Reads up to `target` bytes of the message in all; kMessage when they are
  // there.
  Progress Fill(size_t target);

  // Sends from the front of `bytes` what there is room for, `fds` with it; so
  // many, or -1 when the other end has gone.
  ssize_t SendSome(std::span<const std::byte> bytes, std::span<const int> fds);

  base::OwnedFd socket_;
  std::vector<std::byte> buffer_;
  std::vector<std::byte> unsent_;
  std::vector<base::OwnedFd> fds_;
  std::string why_;
};

}  // namespace heddle::sim::vfio_user
