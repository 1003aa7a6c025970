// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire/wire_tap.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace heddle::sim::wire {
namespace {

// Frames in one direction before it is the other's turn.
constexpr int kTurn = 64;
// Between two tries to send to a receiver that is full, which wakes the tap
// when it is not; one that has stopped is found out by trying.
constexpr int kRetryMs = 10;

void Signal(int event_fd) {
  constexpr uint64_t kOne = 1;
  [[maybe_unused]] const ssize_t told = write(event_fd, &kOne, sizeof(kOne));
}

// Turns news of a port into a readable file descriptor, while it lives.
class NewsFd {
 public:
  explicit NewsFd(SharedWire* wire)
      : wire_(wire), fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_.valid()) {
      thread_ = std::thread([this] { Watch(); });
    }
  }
  NewsFd(const NewsFd&) = delete;
  NewsFd& operator=(const NewsFd&) = delete;
  ~NewsFd() {
    stop_ = true;
    if (thread_.joinable()) {
      wire_->Kick();
      thread_.join();
    }
  }

  int fd() const { return fd_.get(); }

 private:
  void Watch() {
    constexpr uint64_t kSleepNs = 1000000000;
    uint32_t seen = wire_->wakes();
    Signal(fd_.get());  // For earlier frames.
    while (!stop_) {
      wire_->Sleep(seen, kSleepNs);
      if (const uint32_t now = wire_->wakes(); now != seen) {
        seen = now;
        Signal(fd_.get());
      }
    }
  }

  SharedWire* const wire_;
  const base::OwnedFd fd_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<WireTap>> WireTap::Open(const WireTapOptions& options,
                                               std::string* message) {
  // The port first: it is what a user of the socket would miss.
  auto wire = SharedWire::Attach({.name = options.wire,
                                  .ip = options.ip,
                                  .crc = options.crc,
                                  .ip_protocol = options.ip_protocol,
                                  .tap = true},
                                 message);
  if (!wire.ok()) {
    return wire.error();
  }
  auto listener =
      base::UnixListener::Open(options.socket, SOCK_SEQPACKET, message);
  if (!listener.ok()) {
    return listener.error();
  }
  return std::unique_ptr<WireTap>(new WireTap(
      std::move(wire.value()), std::move(listener.value()), options.ip));
}

void WireTap::Say(const std::string& what) const {
  std::fprintf(stderr, "heddle-wire: tap %s: %s\n", ip_.Text().c_str(),
               what.c_str());
}

bool WireTap::Run(int stop_fd) {
  const NewsFd news(wire_.get());
  if (news.fd() < 0) {
    Say(std::string("eventfd: ") + std::strerror(errno));
    return false;
  }
  while (Poll(stop_fd, news.fd())) {
  }
  return true;
}

bool WireTap::Poll(int stop_fd, int news_fd) {
  const bool blocked = !outgoing_.empty();
  const auto events =
      static_cast<int16_t>(POLLIN | (queue_.empty() ? 0 : POLLOUT));
  // A negative descriptor is never ready; one whose client has ended always is.
  std::array<pollfd, 4> fds = {{{stop_fd, POLLIN, 0},
                                {news_fd, POLLIN, 0},
                                {listener_.fd(), POLLIN, 0},
                                {blocked ? -1 : client_.get(), events, 0}}};
  const int timeout = more_ ? 0 : blocked ? kRetryMs : -1;
  if (poll(fds.data(), fds.size(), timeout) < 0) {
    return errno == EINTR;
  }
  if (fds[0].revents != 0) {
    return false;
  }
  if (fds[1].revents != 0) {
    uint64_t news = 0;
    [[maybe_unused]] const ssize_t got = read(news_fd, &news, sizeof(news));
  }
  if (fds[2].revents != 0) {
    Admit();
  }
  if (blocked) {
    SendToWire();
  }
  if (fds[3].revents != 0 && outgoing_.empty()) {
    TakeFromClient();
  }
  more_ = TakeFromWire();
  FlushToClient();
  return true;
}

void WireTap::Admit() {
  base::OwnedFd client = listener_.Accept();
  if (!client.valid()) {
    return;
  }
  if (client_.valid()) {
    Say("client refused: another one is connected");
    return;
  }
  client_ = std::move(client);
  said_refused_ = false;
  Say("client connected");
}

void WireTap::Leave(const std::string& why) {
  client_ = base::OwnedFd();
  counts_.dropped_no_client += queue_.size();
  queue_.clear();
  queue_bytes_ = 0;
  Say("client " + why);
}

bool WireTap::TakeFromWire() {
  frame::Frame frame;
  frame::FrameMarks marks;
  int count = 0;
  while (count < kTurn && wire_->Receive(&frame, &marks)) {
    ++count;
    // A frame that was sent after a client connected is that client's, also
    // when its predecessor has only just left.
    if (!client_.valid()) {
      Admit();
    }
    if (marks.bad_fcs) {
      ++counts_.dropped_bad_fcs;
    } else if (!client_.valid()) {
      ++counts_.dropped_no_client;
    } else if (queue_bytes_ + frame.size() > kQueueBytes) {
      ++counts_.dropped_slow_client;
    } else {
      queue_bytes_ += frame.size();
      queue_.push_back(std::move(frame));
    }
  }
  return count == kTurn;
}

void WireTap::FlushToClient() {
  while (client_.valid() && !queue_.empty()) {
    const frame::Frame& frame = queue_.front();
    const ssize_t sent = send(client_.get(), frame.data(), frame.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      // Its end is an event, and what it sent before is taken first.
      return;
    }
    ++counts_.received;
    queue_bytes_ -= frame.size();
    queue_.pop_front();
  }
}

void WireTap::TakeFromClient() {
  for (int i = 0; i < kTurn && client_.valid() && outgoing_.empty(); ++i) {
    if (!ReadFrame()) {
      return;
    }
  }
}

bool WireTap::ReadFrame() {
  const ssize_t bytes =
      recv(client_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (bytes < 0) {
    if (errno == ECONNRESET || errno == EINTR) {
      return true;  // It left without reading; what it sent is still there.
    }
    if (errno != EAGAIN) {
      Leave(std::string("lost: ") + std::strerror(errno));
    }
    return false;
  }
  if (bytes == 0) {
    // Its end, or an empty message.
    pollfd end{client_.get(), POLLIN, 0};
    int queued = 0;
    if (poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0 &&
        ioctl(client_.get(), SIOCINQ, &queued) == 0 && queued == 0) {
      Leave("left");
      return false;
    }
  }
  if (IsAllowed(static_cast<size_t>(bytes))) {
    outgoing_.assign(buffer_.begin(), buffer_.begin() + bytes);
    SendToWire();
  }
  return true;
}

bool WireTap::IsAllowed(size_t bytes) {
  if (bytes < frame::kMinFrameBytes || bytes > frame::kMaxWireFrameBytes) {
    Refuse(&counts_.refused_length,
           bytes < frame::kMinFrameBytes
               ? "a frame of " + std::to_string(bytes) +
                     " bytes has no Ethernet header"
               : "a frame is longer than " +
                     std::to_string(frame::kMaxWireFrameBytes) + " bytes");
    return false;
  }
  const auto source = frame::FindSource(std::span(buffer_).first(bytes));
  // Before it has an address, a host probes whether another one uses it (RFC
  // 5227, RFC 4862).
  const bool unspecified = source && source->hi == 0 && source->lo == 0;
  if (!source || (*source != ip_ && !unspecified)) {
    Refuse(&counts_.refused_source,
           source ? "a frame comes from " + source->Text() +
                        "; this tap sends from its own address alone"
                  : "a frame is neither IP nor ARP");
    return false;
  }
  return true;
}

void WireTap::Refuse(uint64_t* count, const std::string& why) {
  ++*count;
  if (!std::exchange(said_refused_, true)) {
    Say("refused: " + why + "; the next ones of this client are only counted");
  }
}

void WireTap::SendToWire() {
  switch (wire_->Send(outgoing_)) {
    case SharedWire::SendOutcome::kBlocked:
      return;
    case SharedWire::SendOutcome::kSent:
      ++counts_.sent;
      break;
    case SharedWire::SendOutcome::kDropped:
      ++counts_.lost;
      break;
  }
  outgoing_.clear();
}

}  // namespace heddle::sim::wire
