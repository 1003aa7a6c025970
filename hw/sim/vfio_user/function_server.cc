// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/function_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "hw/sim/vfio_user/connection.h"

namespace heddle::sim::vfio_user {
Result<std::unique_ptr<FunctionServer>> FunctionServer::Open(
    const std::string& path, std::unique_ptr<NicFunction> function,
    std::string* message) {
  // A client that may connect controls the function.
  auto listener = base::UnixListener::Open(path, SOCK_STREAM, message);
  if (!listener.ok()) {
    return listener.error();
  }
  return std::unique_ptr<FunctionServer>(
      new FunctionServer(std::move(listener.value()), std::move(function)));
}

void FunctionServer::Say(const std::string& what) const {
  std::fprintf(stderr, "heddle-nicd: %s: %s\n", listener_.path().c_str(),
               what.c_str());
}

void FunctionServer::Run(int stop_fd, FunctionSwitch* power) {
  for (bool goes_on = true; goes_on;) {
    std::array<pollfd, 2> fds = {
        {{stop_fd, POLLIN, 0}, {listener_.fd(), POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      Say(std::string("poll: ") + std::strerror(errno));
      return;
    }
    if (fds[0].revents != 0) {
      return;
    }
    Admit(stop_fd, power, &goes_on);
  }
}

void FunctionServer::Admit(int stop_fd, FunctionSwitch* power, bool* goes_on) {
  base::OwnedFd client = listener_.Accept();
  if (!client.valid()) {
    return;
  }
  if (power != nullptr && !power->on()) {
    Say("client refused: the virtual function is disabled");
    return;
  }
  Say("client connected");
  try {
    *goes_on = Serve(std::move(client), stop_fd, power);
  } catch (const std::exception& exception) {
    Say(std::string("client ended: ") + exception.what());
  }
  Say("the client's memory: " + function_->TakeRefused().Text());
  function_->Detach();
}

bool FunctionServer::Serve(base::OwnedFd client, int stop_fd,
                           FunctionSwitch* power) {
  Connection connection(std::move(client), *function_);
  constexpr size_t kFirstVector = 3;
  std::array<pollfd, kFirstVector + NicFunction::kVectors> fds{};
  fds[0] = {.fd = stop_fd, .events = POLLIN, .revents = 0};
  // A negative descriptor is never ready.
  fds[2] = {.fd = power == nullptr ? -1 : power->changed_fd(),
            .events = POLLIN,
            .revents = 0};
  for (uint32_t i = 0; i < NicFunction::kVectors; ++i) {
    fds[kFirstVector + i] = {
        .fd = function_->raised_fd(i), .events = POLLIN, .revents = 0};
  }
  for (;;) {
    fds[1] = {
        .fd = connection.fd(), .events = connection.events(), .revents = 0};
    if (poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) {
        continue;
      }
      Say(std::string("poll: ") + std::strerror(errno));
      return false;
    }
    if (fds[0].revents != 0) {
      connection.Finish();
      return false;
    }
    if (fds[2].revents != 0) {
      power->Forget();
      if (!power->on()) {
        connection.Finish();
        Say("client disconnected: the virtual function was disabled");
        return true;
      }
    }
    for (uint32_t i = 0; i < NicFunction::kVectors; ++i) {
      if (fds[kFirstVector + i].revents != 0) {
        function_->Forward(i);
      }
    }
    if (fds[1].revents != 0 && !connection.Serve()) {
      Say(connection.why());
      return true;
    }
  }
}

}  // namespace heddle::sim::vfio_user
