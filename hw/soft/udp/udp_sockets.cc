// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/udp_sockets.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "hw/sim/base/clock.h"

namespace heddle::soft::udp {
namespace {

constexpr uint32_t kPortNumbers = 65536;
constexpr uint32_t kIndexBits = 32;
// In an event that was found, beside its data.
constexpr uint64_t kFound = uint64_t{1} << 63;
constexpr uint64_t kFoundError = uint64_t{1} << 62;

}  // namespace

UdpSockets::UdpSockets(const Interface& interface,
                       const sim::frame::WireAddress& address,
                       uint16_t shared_port)
    : interface_(interface),
      address_(address),
      shared_port_(shared_port),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      kick_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      endpoints_(kPortNumbers) {}

Result<std::unique_ptr<UdpSockets>> UdpSockets::Open(
    const Interface& interface, const sim::frame::WireAddress& address,
    uint16_t shared_port, std::string* message) {
  std::unique_ptr<UdpSockets> sockets(
      new UdpSockets(interface, address, shared_port));
  const int error = sockets->OpenAll();
  if (error == 0) {
    return sockets;
  }
  *message = "UDP sockets at " + address.Text();
  if (error == EADDRINUSE && shared_port != 0) {
    message->append(" port " + std::to_string(shared_port) +
                    ": another process has the port; one process for each "
                    "address, or no FI_HEDDLE_UDP_PORT");
  } else {
    message->append(std::string(": ") + strerror(error));
  }
  return Errno{error};
}

int UdpSockets::OpenAll() {
  if (epoll_.get() < 0 || kick_.get() < 0) {
    return EMFILE;
  }
  int error = 0;
  if (shared_port_ != 0) {
    auto socket = OpenUdpSocket(interface_, address_, shared_port_);
    if (!socket.ok()) {
      return static_cast<int>(socket.error());
    }
    shared_ = {.fd = std::move(socket.value()), .port = shared_port_};
    error = Watch(shared_.fd.get(), Kind::kShared, 0);
  }
  for (uint32_t i = 0; i < kEntropySockets && error == 0; ++i) {
    error = OpenEntropy(&entropy_[i]);
    if (error == 0) {
      error = Watch(entropy_[i].fd.get(), Kind::kEntropy, i);
    }
  }
  return error;
}

int UdpSockets::OpenEntropy(Bound* socket) {
  constexpr uint32_t kRange = kPortNumbers - kFirstEntropyPort;
  // Functions start apart, so that they do not try each other's ports.
  const uint64_t start =
      sim::base::MonotonicNs() / 1000 + static_cast<uint64_t>(getpid());
  for (uint32_t i = 0; i < kRange; ++i) {
    const auto port =
        static_cast<uint16_t>(kFirstEntropyPort + (start + i) % kRange);
    auto opened = OpenUdpSocket(interface_, address_, port);
    if (opened.ok()) {
      *socket = {.fd = std::move(opened.value()), .port = port};
      return 0;
    }
    if (opened.error() != Errno{EADDRINUSE}) {
      return static_cast<int>(opened.error());
    }
  }
  return EADDRINUSE;
}

int UdpSockets::Watch(int fd, Kind kind, uint32_t index) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(kind) << kIndexBits | index;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

int UdpSockets::Bind(uint16_t port) {
  int error = 0;
  if (endpoints_[port].get() >= 0) {
    std::erase_if(released_,
                  [port](const Released& one) { return one.port == port; });
    UpdateFirstClose();
  } else if (shared_port_ == 0) {
    error = BindSocket(port);
    if (error == EMFILE && !released_.empty()) {
      CloseReleasedUntil(UINT64_MAX);
      error = BindSocket(port);
    }
  }
  return error;
}

bool UdpSockets::ClaimedInAnySpace(uint32_t port) const {
  const auto found = claims_.lower_bound({port, 0});
  return found != claims_.end() && found->first == port;
}

int UdpSockets::BindSocket(uint16_t port) {
  auto socket = OpenUdpSocket(interface_, address_, port);
  if (!socket.ok()) {
    return static_cast<int>(socket.error());
  }
  const int error = Watch(socket.value().get(), Kind::kEndpoint, port);
  if (error == 0) {
    endpoints_[port] = std::move(socket.value());
  }
  return error;
}

firmware::PortClaim UdpSockets::Claim(const firmware::PortName& name) {
  firmware::PortClaim claim{};
  if (name.port >= kPortNumbers) {
    return claim;
  }
  const std::lock_guard lock(mutex_);
  if (name.port != 0) {
    if (claims_.contains({name.port, name.space})) {
      claim.owner = static_cast<uint32_t>(getpid());
    } else if (Bind(static_cast<uint16_t>(name.port)) == 0) {
      claims_.emplace(name.port, name.space);
      claim.granted = true;
      claim.port = name.port;
    }
    return claim;
  }
  constexpr uint32_t kRange = kPortNumbers - kFirstEntropyPort;
  const auto start = static_cast<uint32_t>(getpid()) % kRange;
  for (uint32_t i = 0; i < kRange && !claim.granted; ++i) {
    const auto number =
        static_cast<uint16_t>(kFirstEntropyPort + (start + i) % kRange);
    // Nor one whose peers may still talk to its last owner.
    const bool used =
        ClaimedInAnySpace(number) || endpoints_[number].get() >= 0;
    const int error = used ? EADDRINUSE : Bind(number);
    if (error != 0 && error != EADDRINUSE) {
      break;  // No port will do, as when file descriptors run out.
    }
    claim.granted = error == 0;
    claim.port = number;
  }
  if (claim.granted) {
    claims_.emplace(claim.port, name.space);
  }
  claim.exhausted = !claim.granted;
  return claim;
}

void UdpSockets::Release(const firmware::PortName& name, uint64_t close_ns) {
  const std::lock_guard lock(mutex_);
  if (claims_.erase({name.port, name.space}) == 0 ||
      ClaimedInAnySpace(name.port)) {
    return;
  }
  if (endpoints_[name.port].get() >= 0) {
    released_.push_back(
        {.port = static_cast<uint16_t>(name.port), .close_ns = close_ns});
    UpdateFirstClose();
  }
}

void UdpSockets::CloseReleased(uint64_t now_ns) {
  if (first_close_ns_ <= now_ns) {
    const std::lock_guard lock(mutex_);
    CloseReleasedUntil(now_ns);
  }
}

void UdpSockets::CloseReleasedUntil(uint64_t now_ns) {
  while (!released_.empty() && released_.front().close_ns <= now_ns) {
    endpoints_[released_.front().port] = {};  // Leaves epoll, too.
    released_.pop_front();
  }
  UpdateFirstClose();
}

void UdpSockets::UpdateFirstClose() {
  first_close_ns_ = released_.empty() ? UINT64_MAX : released_.front().close_ns;
}

uint32_t UdpSockets::receive_bytes() const {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  const int fd = entropy_[0].fd.get();
  return getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) == 0
             ? static_cast<uint32_t>(bytes)
             : 0;
}

bool UdpSockets::Has(uint16_t port) const {
  const std::lock_guard lock(mutex_);
  return endpoints_[port].get() >= 0;
}

int UdpSockets::SocketAt(uint16_t port) const {
  if (endpoints_[port].get() >= 0) {
    return endpoints_[port].get();
  }
  for (const Bound& socket : entropy_) {
    if (socket.port == port) {
      return socket.fd.get();
    }
  }
  return -1;
}

void UdpSockets::Flush(UdpSender* sender, NetworkErrors* errors) {
  const std::lock_guard lock(mutex_);
  sender->Flush([this](uint16_t port) { return SocketAt(port); }, errors);
}

int UdpSockets::SocketOf(const Ready& ready, uint16_t* port) const {
  switch (ready.kind) {
    case Kind::kEndpoint:
      *port = static_cast<uint16_t>(ready.index);
      return endpoints_[ready.index].get();
    case Kind::kEntropy:
      *port = entropy_[ready.index].port;
      return entropy_[ready.index].fd.get();
    case Kind::kShared:
      *port = shared_port_;
      return shared_.fd.get();
  }
  return -1;
}

void UdpSockets::TakeKicks() {
  uint64_t kicks = 0;
  // It fails when there is none.
  static_cast<void>(read(kick_.get(), &kicks, sizeof(kicks)) < 0);
}

UdpSockets::Ready UdpSockets::ReadyOf(uint64_t data, bool error) {
  return {.kind = static_cast<Kind>(data >> kIndexBits),
          .index = static_cast<uint32_t>(data),
          .error = error};
}

bool UdpSockets::TakeFound() {
  const uint64_t found = found_.exchange(0, std::memory_order_relaxed);
  ready_[0] =
      ReadyOf(found & ~(kFound | kFoundError), (found & kFoundError) != 0);
  ready_next_ = 0;
  ready_count_ = found != 0 ? 1 : 0;
  return found != 0;
}

bool UdpSockets::TakeEvents() {
  std::array<epoll_event, kEvents> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEvents, 0);
  ready_next_ = 0;
  ready_count_ = count > 0 ? static_cast<size_t>(count) : 0;
  for (size_t i = 0; i < ready_count_; ++i) {
    ready_[i] = ReadyOf(events[i].data.u64, (events[i].events & EPOLLERR) != 0);
  }
  return ready_count_ > 0;
}

bool UdpSockets::Fill(UdpReceiver* receiver, NetworkErrors* errors) {
  // A look at all sockets only if those known so far had nothing.
  bool looked = false;
  for (bool first = true;; first = false) {
    while (ready_next_ < ready_count_) {
      const Ready ready = ready_[ready_next_++];
      uint16_t port = 0;
      const std::lock_guard lock(mutex_);
      const int fd = SocketOf(ready, &port);
      if (fd < 0) {
        continue;
      }
      if (ready.error) {
        DrainErrorQueue(fd, errors);
      }
      if (receiver->Fill(fd, port, errors)) {
        return true;
      }
    }
    if (first && TakeFound()) {
      continue;
    }
    if (looked || !TakeEvents()) {
      return false;
    }
    looked = true;
  }
}

bool UdpSockets::HasNews() const {
  epoll_event event;  // A poll of the descriptor costs twice as much.
  if (epoll_wait(epoll_.get(), &event, 1, 0) <= 0) {
    return false;
  }
  found_.store(event.data.u64 | kFound |
                   ((event.events & EPOLLERR) != 0 ? kFoundError : 0),
               std::memory_order_relaxed);
  return true;
}

void UdpSockets::Kick() {
  const uint64_t one = 1;
  // It cannot fail but when it is kicked already.
  static_cast<void>(write(kick_.get(), &one, sizeof(one)) < 0);
}

void UdpSockets::Sleep(uint64_t timeout_ns) const {
  std::array<pollfd, 2> poll_fds{
      {{.fd = epoll_.get(), .events = POLLIN, .revents = 0},
       {.fd = kick_.get(), .events = POLLIN, .revents = 0}}};
  const timespec timeout = sim::base::ToTimespec(timeout_ns);
  ppoll(poll_fds.data(), poll_fds.size(), &timeout, nullptr);
}

}  // namespace heddle::soft::udp
