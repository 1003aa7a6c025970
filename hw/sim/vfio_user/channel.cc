// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
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
    if ((message.msg_flags & MSG_CTRUNC) != 0 || fds_.size() > kMaxMessageFds) {
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
  const auto body = std::span(buffer_).last(header.bytes - sizeof(header));
  message->body.assign(body.begin(), body.end());
  message->fds = std::exchange(fds_, {});
  buffer_.clear();
  return Progress::kMessage;
}

ssize_t Channel::SendSome(std::span<const std::byte> bytes,
                          std::span<const int> fds) {
  std::vector<char> control(CMSG_SPACE(fds.size_bytes()));
  iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()),
              .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
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
  return done < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : done;
}

bool Channel::Send(const Header& header, std::span<const std::byte> body,
                   std::span<const int> fds) {
  const auto front = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> bytes(front.begin(), front.end());
  bytes.insert(bytes.end(), body.begin(), body.end());
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t done = SendSome(std::span(bytes).subspan(sent),
                                  sent == 0 ? fds : std::span<const int>());
    if (done < 0) {
      return false;
    }
    sent += static_cast<size_t>(done);
    if (done == 0) {
      pollfd room{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
      poll(&room, 1, -1);
    }
  }
  return true;
}

bool Channel::Queue(const Header& header, std::span<const std::byte> body) {
  const auto front = std::as_bytes(std::span(&header, 1));
  unsent_.insert(unsent_.end(), front.begin(), front.end());
  unsent_.insert(unsent_.end(), body.begin(), body.end());
  return Flush();
}

bool Channel::Flush() {
  while (!unsent_.empty()) {
    const ssize_t done = SendSome(unsent_, {});
    if (done <= 0) {
      return done == 0;
    }
    unsent_.erase(unsent_.begin(), unsent_.begin() + done);
  }
  return true;
}

}  // namespace heddle::sim::vfio_user
