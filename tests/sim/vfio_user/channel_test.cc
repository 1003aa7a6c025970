// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/channel.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace heddle::sim::vfio_user {
namespace {

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() { SetUpAgain(); }

  void SetUpAgain() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()),
              0);
    server_ = std::make_unique<Channel>(base::OwnedFd(ends[0]));
    client_ = std::make_unique<Channel>(base::OwnedFd(ends[1]));
  }

  static Header HeaderOf(size_t body, uint16_t id = 1) {
    return {.id = id,
            .command = Command::kRegionWrite,
            .bytes = static_cast<uint32_t>(sizeof(Header) + body),
            .flags = 0,
            .error = 0};
  }
  void Push(const void* bytes, size_t count) {
    ASSERT_EQ(send(client_->fd(), bytes, count, 0),
              static_cast<ssize_t>(count));
  }

  std::unique_ptr<Channel> server_;
  std::unique_ptr<Channel> client_;
  Message message_;
};

TEST_F(ChannelTest, MessageArrivesWithItsBodyAndDescriptors) {
  const std::array<std::byte, 5> body = {std::byte{1}, std::byte{2}};
  const base::OwnedFd event(eventfd(0, EFD_CLOEXEC));
  ASSERT_TRUE(client_->Send(HeaderOf(5, 77), body, std::array{event.get()}));
  ASSERT_EQ(server_->Receive(&message_), Channel::Progress::kMessage);
  EXPECT_EQ(message_.header.id, 77);
  EXPECT_EQ(message_.body.size(), 5u);
  EXPECT_EQ(message_.body[1], std::byte{2});
  ASSERT_EQ(message_.fds.size(), 1u);
  // It is the same event.
  constexpr uint64_t kOne = 1;
  ASSERT_EQ(write(message_.fds[0].get(), &kOne, sizeof(kOne)), 8);
  uint64_t got = 0;
  ASSERT_EQ(read(event.get(), &got, sizeof(got)), 8);
  EXPECT_EQ(server_->Receive(&message_), Channel::Progress::kMore);
}

// A greedy reader gives a message the descriptors of its successor.
TEST_F(ChannelTest, DescriptorsStayWithTheirMessage) {
  const base::OwnedFd event(eventfd(0, EFD_CLOEXEC));
  ASSERT_TRUE(client_->Send(HeaderOf(0, 1), {}, {}));
  ASSERT_TRUE(client_->Send(HeaderOf(0, 2), {}, std::array{event.get()}));
  ASSERT_TRUE(client_->Send(HeaderOf(0, 3), {}, {}));
  for (const size_t fds : {size_t{0}, size_t{1}, size_t{0}}) {
    ASSERT_EQ(server_->Receive(&message_), Channel::Progress::kMessage);
    EXPECT_EQ(message_.fds.size(), fds) << message_.header.id;
  }
}

TEST_F(ChannelTest, MessageMayComeByteByByte) {
  const Header header = HeaderOf(3);
  std::array<char, sizeof(header) + 3> bytes{};
  std::memcpy(bytes.data(), &header, sizeof(header));
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(server_->Receive(&message_), Channel::Progress::kMore);
    Push(&bytes[i], 1);
  }
  EXPECT_EQ(server_->Receive(&message_), Channel::Progress::kMessage);
  EXPECT_EQ(message_.body.size(), 3u);
}

TEST_F(ChannelTest, LengthThatCannotBeIsBad) {
  for (const uint32_t bytes : {0u, 15u, kMaxMessageBytes + 1, UINT32_MAX}) {
    SetUpAgain();
    Header header = HeaderOf(0);
    header.bytes = bytes;
    Push(&header, sizeof(header));
    EXPECT_EQ(server_->Receive(&message_), Channel::Progress::kBad) << bytes;
    EXPECT_NE(server_->why().find(std::to_string(bytes)), std::string::npos);
  }
}

TEST_F(ChannelTest, ClientThatGoesIsNoticedAnywhere) {
  const Header header = HeaderOf(100);
  for (const size_t sent : {size_t{0}, size_t{7}, sizeof(header)}) {
    SetUpAgain();
    if (sent != 0) {
      Push(&header, sent);
    }
    client_.reset();
    EXPECT_EQ(server_->Receive(&message_), Channel::Progress::kClosed) << sent;
    // Once more to a socket that may still take the first.
    EXPECT_FALSE(server_->Send(HeaderOf(0), {}, {}) &&
                 server_->Send(HeaderOf(0), {}, {}));
  }
}

TEST_F(ChannelTest, LongMessagesWaitForRoom) {
  constexpr int kMessages = 300;  // More than a socket holds.
  const std::vector<std::byte> body(kMaxMessageBytes - sizeof(Header));
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_TRUE(client_->Send(HeaderOf(body.size()), body, {}));
    }
  });
  int got = 0;
  while (got < kMessages) {
    const Channel::Progress progress = server_->Receive(&message_);
    ASSERT_TRUE(progress == Channel::Progress::kMessage ||
                progress == Channel::Progress::kMore);
    got += progress == Channel::Progress::kMessage ? 1 : 0;
  }
  sender.join();
}

// However few come with each of its bytes.
TEST_F(ChannelTest, MessageWithTooManyDescriptorsIsBad) {
  const base::OwnedFd event(eventfd(0, EFD_CLOEXEC));
  const std::array<int, 2> pair = {event.get(), event.get()};
  // Each byte of a header, as a piece with descriptors of its own.
  for (size_t i = 0; i < kMaxMessageFds / pair.size() + 1; ++i) {
    EXPECT_EQ(server_->Receive(&message_), Channel::Progress::kMore);
    char byte = 0;
    iovec piece{.iov_base = &byte, .iov_len = 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(pair))> control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(pair));
    std::memcpy(CMSG_DATA(part), pair.data(), sizeof(pair));
    ASSERT_EQ(sendmsg(client_->fd(), &message, 0), 1);
  }
  EXPECT_EQ(server_->Receive(&message_), Channel::Progress::kBad);
  EXPECT_NE(server_->why().find("16"), std::string::npos);
}

TEST_F(ChannelTest, QueuedMessagesWaitForRoomWithoutTheirSender) {
  const std::vector<std::byte> body(kMaxMessageBytes - sizeof(Header));
  int queued = 0;
  while (!server_->sending()) {
    ASSERT_TRUE(server_->Queue(HeaderOf(body.size(), 1), body));
    ++queued;
  }
  ASSERT_TRUE(server_->Queue(HeaderOf(0, 2), {}));
  while (queued >= 0) {
    ASSERT_TRUE(server_->Flush());
    const Channel::Progress progress = client_->Receive(&message_);
    if (progress == Channel::Progress::kMessage) {
      EXPECT_EQ(message_.header.id, queued == 0 ? 2 : 1);
      --queued;
    }
  }
  EXPECT_FALSE(server_->sending());
}

}  // namespace
}  // namespace heddle::sim::vfio_user
