// SPDX-License-Identifier: Apache-2.0
// A client of a function: its messages, answered in order.
#pragma once

#include <string>
#include <utility>

#include "hw/sim/base/owned_fd.h"
#include "hw/sim/vfio_user/channel.h"
#include "hw/sim/vfio_user/function.h"
#include "hw/sim/vfio_user/session.h"

namespace heddle::sim::vfio_user {

// Never waits: whoever owns it polls `fd()` for `events()`. A client that does
// not take its answers is not asked for more.
//
// Thread safety: as its function's. Ownership: borrows the function.
class Connection {
 public:
  Connection(base::OwnedFd socket, Function& function)
      : channel_(std::move(socket)), session_(function) {}

  // Answers what has come, `kBurst` messages at most. False when the connection
  // must end; `why()` says so in one line.
  [[nodiscard]] bool Serve();

  // Answers what has been asked and lets nothing more be asked; what the client
  // does not take is lost. QEMU 11 aborts when a connection ends that owes it
  // an answer.
  void Finish();

  int fd() const { return channel_.fd(); }
  short events() const;
  const std::string& why() const { return why_; }

  // So many, then others have their turn.
  static constexpr int kBurst = 64;

 private:
  bool End(const std::string& why);

  Channel channel_;
  Session session_;
  std::string why_;
};

}  // namespace heddle::sim::vfio_user
