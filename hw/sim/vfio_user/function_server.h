// SPDX-License-Identifier: Apache-2.0
// Serves one PCI function on one UNIX socket.
#pragma once

#include <memory>
#include <string>

#include "driver/result.h"
#include "hw/sim/base/owned_fd.h"
#include "hw/sim/base/unix_listener.h"
#include "hw/sim/vfio_user/function_switch.h"
#include "hw/sim/vfio_user/nic_function.h"

namespace heddle::sim::vfio_user {

// One client at a time; the function is as after power-on for each. A client
// that dies or sends what is no message ends its connection, no more.
//
// Ownership: of the function and the socket.
class FunctionServer {
 public:
  // Errors: those of `UnixListener::Open`, with a line in `message`.
  static Result<std::unique_ptr<FunctionServer>> Open(
      const std::string& path, std::unique_ptr<NicFunction> function,
      std::string* message);
  FunctionServer(const FunctionServer&) = delete;
  FunctionServer& operator=(const FunctionServer&) = delete;

  // Until `stop_fd` is readable. Writes lines to stderr for each client: how
  // it ended, what the function was refused of its memory.
  // While `power`, when not null, is off, clients are turned away.
  void Run(int stop_fd, FunctionSwitch* power = nullptr);

 private:
  FunctionServer(base::UnixListener listener,
                 std::unique_ptr<NicFunction> function)
      : listener_(std::move(listener)), function_(std::move(function)) {}

  // False when the server is to stop.
  bool Serve(base::OwnedFd client, int stop_fd, FunctionSwitch* power);
  void Admit(int stop_fd, FunctionSwitch* power, bool* goes_on);
  void Say(const std::string& what) const;

  const base::UnixListener listener_;
  std::unique_ptr<NicFunction> function_;
};

}  // namespace heddle::sim::vfio_user
