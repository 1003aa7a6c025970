// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace heddle::sim::vfio_user {

Channel::Progress Channel::Fill(size_t target) {
  while (buffer_.size() < target) {
    std::array<std::byte, kMaxMessageBytes> data;
    iovec piece{.iov_base = data.data(), .iov_len = target - buffer_.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxMessageFds * sizeof(int))>
        control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got =
        recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return Progress::kMore;
    }
    if (got <= 0) {
      return Progress::kClosed;
    }
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
        continue;
      }
      const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
        fds_.emplace_back(fd);
      }
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
      why_ = "more file descriptors than " + std::to_string(kMaxMessageFds);
      return Progress::kBad;
    }
    buffer_.insert(buffer_.end(), data.begin(), data.begin() + got);
  }
  return Progress::kMessage;
}

Channel::Progress Channel::Receive(Message* message) {
  Progress progress = Fill(sizeof(Header));
  if (progress != Progress::kMessage) {
    return progress;
  }
  Header header;
  std::memcpy(&header, buffer_.data(), sizeof(header));
  if (header.bytes < sizeof(header) || header.bytes > kMaxMessageBytes) {
    why_ = "a message of " + std::to_string(header.bytes) + " bytes";
    return Progress::kBad;
  }
  progress = Fill(header.bytes);
  if (progress != Progress::kMessage) {
    return progress;
  }
  message->header = header;
  message->body.assign(buffer_.begin() + sizeof(header), buffer_.end());
  message->fds = std::exchange(fds_, {});
  buffer_.clear();
  return Progress::kMessage;
}

bool Channel::Send(const Header& header, std::span<const std::byte> body,
                   std::span<const int> fds) {
  std::vector<std::byte> bytes(sizeof(header) + body.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::copy(body.begin(), body.end(), bytes.begin() + sizeof(header));
  std::vector<char> control(CMSG_SPACE(fds.size_bytes()));
  for (size_t sent = 0; sent < bytes.size();) {
    iovec piece{.iov_base = bytes.data() + sent,
                .iov_len = bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (sent == 0 && !fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
    }
    const ssize_t done =
        sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done >= 0) {
      sent += static_cast<size_t>(done);
      continue;
    }
    if (errno == EAGAIN) {
      pollfd room{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace heddle::sim::vfio_user
