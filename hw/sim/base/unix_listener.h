// SPDX-License-Identifier: Apache-2.0
// A listening UNIX socket with a name in the file system.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "driver/result.h"
#include "hw/sim/base/owned_fd.h"

namespace heddle::sim::base {

// The owner alone may connect. Removes the socket file at its end, unless
// another file has taken that name.
class UnixListener {
 public:
  // `type` is SOCK_STREAM or SOCK_SEQPACKET. A socket file of this user that a
  // former server left is replaced.
  // Errors, with a line in `*message`: EADDRINUSE when a socket is served
  // there, EEXIST when another file is; those of the system calls.
  static Result<UnixListener> Open(const std::string& path, int type,
                                   std::string* message);
  UnixListener(UnixListener&&) = default;
  UnixListener& operator=(UnixListener&&) = delete;
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;
  ~UnixListener();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  // The next client; none when there is none now. Does not block.
  OwnedFd Accept() const;

 private:
  UnixListener(std::string path, OwnedFd fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  OwnedFd fd_;
  dev_t device_ = 0;  // Of the socket file.
  ino_t inode_ = 0;
};

}  // namespace heddle::sim::base
