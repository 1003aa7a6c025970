// SPDX-License-Identifier: Apache-2.0
// A vfio-user client that asks and waits for the answer.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "hw/sim/base/owned_fd.h"
#include "hw/sim/vfio_user/channel.h"
#include "hw/sim/vfio_user/protocol.h"
#include "tests/sim/vfio_user/bytes.h"

namespace heddle::sim::vfio_user {

constexpr uint64_t kPage = 4096;

class Client {
 public:
  explicit Client(const std::string& path)
      : channel_(
            base::OwnedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connected_ =
        connect(channel_.fd(), reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == 0;
  }
  bool connected() const { return connected_; }
  Channel& channel() { return channel_; }

  bool Greet() { return Ask(Command::kVersion, Bytes(Version{})); }

  // False when the server ended the connection.
  bool Ask(Command command, const std::vector<std::byte>& body,
           std::vector<int> fds = {}) {
    const Header header{
        .id = ++id_,
        .command = command,
        .bytes = static_cast<uint32_t>(sizeof(Header) + body.size()),
        .flags = 0,
        .error = 0};
    if (!channel_.Send(header, body, fds)) {
      return false;
    }
    for (;;) {
      pollfd readable{.fd = channel_.fd(), .events = POLLIN, .revents = 0};
      poll(&readable, 1, -1);
      const Channel::Progress progress = channel_.Receive(&answer);
      if (progress != Channel::Progress::kMore) {
        return progress == Channel::Progress::kMessage;
      }
    }
  }
  template <typename T>
  T Read(uint32_t region, uint64_t offset) {
    const RegionAccess access{
        .offset = offset, .region = region, .count = sizeof(T)};
    EXPECT_TRUE(Ask(Command::kRegionRead, Bytes(access)));
    EXPECT_EQ(answer.header.error, 0u);
    T value{};
    if (answer.body.size() >= sizeof(access) + sizeof(value)) {
      std::memcpy(&value, answer.body.data() + sizeof(access), sizeof(value));
    }
    return value;
  }
  template <typename T>
  void Write(uint32_t region, uint64_t offset, T value) {
    const RegionAccess access{
        .offset = offset, .region = region, .count = sizeof(T)};
    EXPECT_TRUE(Ask(Command::kRegionWrite, Bytes(access, value)));
  }

  Message answer;

 private:
  Channel channel_;
  bool connected_ = false;
  uint16_t id_ = 0;
};

}  // namespace heddle::sim::vfio_user
