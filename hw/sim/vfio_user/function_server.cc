// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/function_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "hw/sim/vfio_user/connection.h"

namespace heddle::sim::vfio_user {
namespace {

// Whether somebody listens at that address, also with no room for one more.
bool IsServed(const sockaddr_un& address) {
  const OwnedFd probe(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)) == 0 ||
         errno == EAGAIN;
}

// Whether something has that name that no server left there.
bool IsOther(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode);
}

}  // namespace

Result<std::unique_ptr<FunctionServer>> FunctionServer::Open(
    const std::string& path, std::unique_ptr<NicFunction> function,
    std::string* message) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto failed = [&](const char* call, int error) {
    *message = path + ": " + call + ": " + std::strerror(error);
    return Errno{error};
  };
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return failed("name of a socket", ENAMETOOLONG);
  }
  path.copy(address.sun_path, path.size());
  OwnedFd listener(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) {
    return failed("socket", errno);
  }
  if (IsServed(address)) {
    return failed("bind", EADDRINUSE);
  }
  if (IsOther(path)) {
    return failed("is no socket", EEXIST);
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return failed("unlink", errno);
  }
  // Whoever may connect controls the function: the owner alone.
  const mode_t old = umask(0177);
  const int bound =
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address));
  const int error = errno;
  umask(old);
  if (bound != 0) {
    return failed("bind", error);
  }
  if (listen(listener.get(), 1) != 0) {
    return failed("listen", errno);
  }
  return std::unique_ptr<FunctionServer>(
      new FunctionServer(path, std::move(listener), std::move(function)));
}

FunctionServer::~FunctionServer() {
  unlink(path_.c_str());
}

void FunctionServer::Say(const std::string& what) const {
  std::fprintf(stderr, "heddle-nicd: %s: %s\n", path_.c_str(), what.c_str());
}

void FunctionServer::Run(int stop_fd, FunctionSwitch* power) {
  for (bool goes_on = true; goes_on;) {
    std::array<pollfd, 2> fds = {
        {{stop_fd, POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
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
  OwnedFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client.valid()) {
    return;
  }
  if (power != nullptr && !power->on()) {
    Say("client turned away: the virtual function is off");
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

bool FunctionServer::Serve(OwnedFd client, int stop_fd, FunctionSwitch* power) {
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
        Say("client ended: the virtual function was turned off");
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
