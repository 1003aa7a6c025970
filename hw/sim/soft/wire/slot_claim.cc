// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/soft/wire/slot_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include "hw/sim/clock.h"
#include "hw/sim/route.h"

namespace heddle::sim::soft {
namespace {

// Binds `fd` to the abstract name; the errno, 0 for success.
int BindName(int fd, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // An abstract name starts with a zero byte.
  const size_t bytes = std::min(name.size(), sizeof(address.sun_path) - 1);
  name.copy(&address.sun_path[1], bytes);
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  // NOLINTNEXTLINE: the sockets API takes its addresses so.
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0
             ? 0
             : errno;
}

}  // namespace

Result<SlotClaim> SlotClaim::Take(const WireAddress& address) {
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) {
    return Errno{errno};
  }
  // Not always the first: a new function should not get what is still on its
  // way to the last one.
  const auto start = static_cast<uint32_t>(static_cast<uint64_t>(getpid()) +
                                           MonotonicNs() / kNsPerSecond);
  for (uint32_t i = 0; i < kSlots; ++i) {
    const uint32_t slot = (start + i) % kSlots;
    const int error = BindName(
        fd.get(), "heddle/udp/" + address.Text() + "/" + std::to_string(slot));
    if (error == 0) {
      return SlotClaim(std::move(fd), static_cast<uint8_t>(slot));
    }
    if (error != EADDRINUSE) {
      return Errno{error};
    }
  }
  return Errno{EBUSY};
}

}  // namespace heddle::sim::soft
