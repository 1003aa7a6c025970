// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace heddle::sim::base {
namespace {

const sockaddr* AsName(const sockaddr_un& address) {
  // NOLINTNEXTLINE: the sockets API takes its addresses so.
  return reinterpret_cast<const sockaddr*>(&address);
}

// 0 when the name is free, else the errno. A socket file without a server is
// removed.
int FreeName(const sockaddr_un& address, int type) {
  const OwnedFd probe(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) {
    return errno;
  }
  if (connect(probe.get(), AsName(address), sizeof(address)) == 0 ||
      errno == EAGAIN || errno == EPROTOTYPE) {  // No room, or another type.
    return EADDRINUSE;
  }
  if (errno != ECONNREFUSED) {
    return errno == ENOENT ? 0 : errno;
  }
  struct stat status {};
  if (lstat(address.sun_path, &status) != 0) {
    return errno == ENOENT ? 0 : errno;
  }
  if (!S_ISSOCK(status.st_mode)) {
    return EEXIST;
  }
  if (status.st_uid != geteuid()) {
    return EACCES;
  }
  return unlink(address.sun_path) == 0 || errno == ENOENT ? 0 : errno;
}

std::string Explain(int error) {
  switch (error) {
    case EADDRINUSE:
      return "a process serves this socket; choose another name";
    case EEXIST:
      return "is not a socket, and stays unchanged; choose another name";
    case EACCES:
      return "belongs to another user, or cannot be created; choose another "
             "name";
    case ENAMETOOLONG:
      return "name of a socket: has 1 to " +
             std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes";
    default:
      return std::strerror(error);
  }
}

}  // namespace

Result<UnixListener> UnixListener::Open(const std::string& path, int type,
                                        std::string* message) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto failed = [&](int error) {
    *message = path + ": " + Explain(error);
    return Errno{error};
  };
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return failed(ENAMETOOLONG);
  }
  path.copy(address.sun_path, path.size());
  UnixListener listener(
      path, OwnedFd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!listener.fd_.valid()) {
    return failed(errno);
  }
  if (const int error = FreeName(address, type); error != 0) {
    return failed(error);
  }
  const mode_t old = umask(0177);
  const int bound = bind(listener.fd(), AsName(address), sizeof(address));
  const int error = errno;
  umask(old);
  if (bound != 0) {
    return failed(error);
  }
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0) {
    listener.device_ = status.st_dev;
    listener.inode_ = status.st_ino;
  }
  if (listen(listener.fd(), 1) != 0) {
    return failed(errno);
  }
  return listener;
}

UnixListener::~UnixListener() {
  struct stat status {};
  if (fd_.valid() && inode_ != 0 && lstat(path_.c_str(), &status) == 0 &&
      status.st_dev == device_ && status.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

OwnedFd UnixListener::Accept() const {
  return OwnedFd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

}  // namespace heddle::sim::base
