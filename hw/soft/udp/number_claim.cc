// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/number_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include "hw/sim/base/clock.h"
#include "hw/sim/base/random.h"
#include "hw/sim/frame/route.h"

namespace heddle::soft::udp {
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

Result<NumberClaim> NumberClaim::Take(const sim::frame::WireAddress& address,
                                      const char* kind, uint64_t start,
                                      uint32_t count) {
  sim::base::OwnedFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) {
    return Errno{errno};
  }
  const std::string prefix = "heddle/udp/" + address.Text() + "/" + kind + "/";
  for (uint32_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint32_t>((start + i) % count);
    const int error = BindName(fd.get(), prefix + std::to_string(number));
    if (error == 0) {
      return NumberClaim(std::move(fd), number);
    }
    if (error != EADDRINUSE) {
      return Errno{error};
    }
  }
  return Errno{EBUSY};
}

Result<NumberClaim> NumberClaim::TakePdcidBlock(
    const sim::frame::WireAddress& address) {
  sim::base::Random start(sim::base::MonotonicNs() ^
                          static_cast<uint64_t>(getpid()));
  return Take(address, "pdcids", start.Next() % sim::frame::kPdcidBlocks,
              sim::frame::kPdcidBlocks);
}

Result<NumberClaim> NumberClaim::TakeOrdinal(
    const sim::frame::WireAddress& address) {
  return Take(address, "ordinal", 0, sim::frame::kMaxMacFunctions);
}

}  // namespace heddle::soft::udp
