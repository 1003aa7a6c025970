// SPDX-License-Identifier: Apache-2.0
// The sockets of a function: those of its endpoints, and those its requests
// come from.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "driver/result.h"
#include "firmware/base/hal.h"
#include "hw/sim/base/owned_fd.h"
#include "hw/sim/frame/wire_address.h"
#include "hw/soft/udp/interface.h"
#include "hw/soft/udp/pace.h"
#include "hw/soft/udp/udp_receiver.h"
#include "hw/soft/udp/udp_sender.h"
#include "hw/soft/udp/udp_socket.h"

namespace heddle::soft::udp {

// Thread safety: `Flush` and `Fill` by one thread at a time, the rest from any.
class UdpSockets {
 public:
  // Errors, with a line in `*message`: EADDRINUSE when another has
  // `shared_port`; those of the system calls.
  static Result<std::unique_ptr<UdpSockets>> Open(
      const Interface& interface, const sim::frame::WireAddress& address,
      uint16_t shared_port, std::string* message);

  // Ports of endpoints, as of firmware::Switch. Of a port that another process
  // has nothing is known but that: `owner` stays 0. Names of one port in
  // several spaces share its socket, and so belong to one function.
  firmware::PortClaim Claim(const firmware::PortName& name);
  // The port is free for another endpoint of this function, and its socket goes
  // on to hear and answer peers whose last ACK was lost: until `CloseReleased`
  // of `close_ns` or later.
  void Release(const firmware::PortName& name, uint64_t close_ns);
  void CloseReleased(uint64_t now_ns);
  // When the first of the released sockets is to close; UINT64_MAX: none is.
  uint64_t first_close_ns() const { return first_close_ns_; }

  // The port that requests with `entropy` come from, 49152 or above.
  uint16_t EntropyPort(uint16_t entropy) const {
    return entropy_[entropy / kEntropyRun % kEntropySockets].port;
  }
  // Receive buffer of one socket, as the kernel counts it.
  uint32_t receive_bytes() const;
  // Whether an endpoint has, or had of late, a socket at `port`.
  bool Has(uint16_t port) const;

  void Flush(UdpSender* sender, NetworkErrors* errors);
  // Fills an empty receiver from the next socket that has something; false if
  // none has.
  bool Fill(UdpReceiver* receiver, NetworkErrors* errors);

  // `Fill` has sockets left that the last system call reported as readable.
  bool HasReady() const { return ready_next_ < ready_count_; }

  // Remembers a socket that has something, for the next `Fill` to start with.
  // Any thread.
  bool HasNews() const;
  // Ends a `Sleep` until `TakeKicks`; it is no news.
  void Kick();
  void TakeKicks();
  void Sleep(uint64_t timeout_ns) const;

  static constexpr uint32_t kEntropySockets = 8;
  static constexpr uint32_t kFirstEntropyPort = 49152;

 private:
  enum class Kind : uint32_t { kShared, kEndpoint, kEntropy };
  struct Bound {
    sim::base::OwnedFd fd;
    uint16_t port = 0;
  };
  struct Released {
    uint16_t port = 0;
    uint64_t close_ns = 0;
  };
  // What epoll says of a socket.
  struct Ready {
    Kind kind;
    uint32_t index;  // Port of an endpoint, number of another.
    bool error;
  };

  UdpSockets(const Interface& interface, const sim::frame::WireAddress& address,
             uint16_t shared_port);

  int OpenAll();
  int OpenEntropy(Bound* socket);
  int Watch(int fd, Kind kind, uint32_t index) const;
  // Binds an endpoint's port; the errno, 0 for success.
  int Bind(uint16_t port);
  bool ClaimedInAnySpace(uint32_t port) const;
  int BindSocket(uint16_t port);
  void CloseReleasedUntil(uint64_t now_ns);
  void UpdateFirstClose();
  static Ready ReadyOf(uint64_t data, bool error);
  // Fill `ready_`: with what `HasNews` found, with all that epoll reports.
  bool TakeFound();
  bool TakeEvents();
  int SocketAt(uint16_t port) const;
  // Under `mutex_`: what is ready, or negative if it is gone meanwhile.
  int SocketOf(const Ready& ready, uint16_t* port) const;

  const Interface interface_;
  const sim::frame::WireAddress address_;
  const uint16_t shared_port_;
  sim::base::OwnedFd epoll_;
  sim::base::OwnedFd kick_;
  Bound shared_;
  std::array<Bound, kEntropySockets> entropy_;

  // By port: a socket that is in use must not be closed.
  mutable std::mutex mutex_;
  std::vector<sim::base::OwnedFd> endpoints_;
  std::set<std::pair<uint32_t, uint32_t>> claims_;  // {port, space}.
  std::deque<Released> released_;  // Those that close first are in front.
  std::atomic<uint64_t> first_close_ns_ = UINT64_MAX;

  static constexpr size_t kEvents = 32;
  std::array<Ready, kEvents> ready_{};
  size_t ready_count_ = 0;
  size_t ready_next_ = 0;
  // An epoll event that `HasNews` found, until a `Fill` takes it; 0: none.
  mutable std::atomic<uint64_t> found_ = 0;
};

}  // namespace heddle::soft::udp
