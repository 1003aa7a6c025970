// SPDX-License-Identifier: Apache-2.0
// The vfio-user protocol of one connection: requests to answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hw/sim/vfio_user/channel.h"
#include "hw/sim/vfio_user/function.h"
#include "hw/sim/vfio_user/protocol.h"

namespace heddle::sim::vfio_user {

struct Answer {
  bool wanted = true;  // False: the client asked for none.
  Header header;
  std::vector<std::byte> body;
};

// Two kinds of wrong: what the protocol lets a client ask but this function
// does not have is answered with an errno; what is no message of the protocol
// ends the connection. Neither touches the function.
//
// Thread safety: none. Ownership: borrows the function.
class Session {
 public:
  explicit Session(Function& function) : function_(function) {}

  // False when the connection must end; `why()` says so in one line.
  [[nodiscard]] bool Handle(Message request, Answer* answer);

  const std::string& why() const { return why_; }

 private:
  using Body = std::span<const std::byte>;

  // Each fills the answer's body, or sets its error; false as above.
  bool OnVersion(Body body, Answer* answer);
  bool OnDmaMap(Body body, std::vector<base::OwnedFd> fds, Answer* answer);
  bool OnDmaUnmap(Body body, Answer* answer);
  bool OnDeviceInfo(Body body, Answer* answer);
  bool OnRegionInfo(Body body, Answer* answer);
  bool OnInterruptInfo(Body body, Answer* answer);
  bool OnSetInterrupts(Body body, std::vector<base::OwnedFd> fds,
                       Answer* answer);
  bool OnRegionRead(Body body, Answer* answer);
  bool OnRegionWrite(Body body, Answer* answer);
  bool Dispatch(Message request, Answer* answer);

  // A structure at the front of a body; false when it is too short.
  template <typename T>
  bool Take(Body body, T* out);
  bool Bad(const std::string& why);

  Function& function_;
  bool greeted_ = false;
  std::string why_;
};

}  // namespace heddle::sim::vfio_user
