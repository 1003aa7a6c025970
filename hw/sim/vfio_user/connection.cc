// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/connection.h"

#include <poll.h>
#include <sys/socket.h>

namespace heddle::sim::vfio_user {

bool Connection::End(const std::string& why) {
  why_ = why;
  return false;
}

short Connection::events() const {
  return channel_.sending() ? POLLOUT : POLLIN;
}

void Connection::Finish() {
  shutdown(fd(), SHUT_RD);
  while (Serve() && !channel_.sending()) {
  }
}

bool Connection::Serve() {
  if (!channel_.Flush()) {
    return End("client gone");
  }
  Message request;
  for (int i = 0; i < kBurst && !channel_.sending(); ++i) {
    switch (channel_.Receive(&request)) {
      case Channel::Progress::kMore:
        return true;
      case Channel::Progress::kClosed:
        return End("client gone");
      case Channel::Progress::kBad:
        return End("client ended: " + channel_.why());
      case Channel::Progress::kMessage:
        break;
    }
    Answer answer;
    if (!session_.Handle(std::move(request), &answer)) {
      return End("client ended: " + session_.why());
    }
    if (answer.wanted && !channel_.Queue(answer.header, answer.body)) {
      return End("client gone");
    }
    request = {};
  }
  return true;
}

}  // namespace heddle::sim::vfio_user
