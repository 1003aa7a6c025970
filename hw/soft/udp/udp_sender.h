// SPDX-License-Identifier: Apache-2.0
// Datagrams gathered for sockets, many for a system call.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hw/soft/udp/udp_frame.h"
#include "hw/soft/udp/udp_socket.h"

namespace heddle::soft::udp {

// A queue of at most `kBatch` datagrams, sent in order. Datagrams of one flow
// and one size that follow each other leave as one with segments where the
// kernel can do that. Nothing allocates after construction.
// Thread safety: none.
class UdpSender {
 public:
  static constexpr size_t kBatch = 64;

  // Of up to `max_bytes` each; `index` of the interface.
  UdpSender(size_t max_bytes, uint32_t index);

  // Space for the next datagram, of `max_bytes`; also while the queue is full.
  std::span<uint8_t> Room() {
    room_ = full() ? kBatch : At(count_);
    return Slot(room_);
  }
  bool full() const { return count_ == kBatch; }
  bool empty() const { return count_ == 0; }
  // Takes the first `bytes` bytes of the last `Room` to `flow`. Precondition:
  // not full.
  void Add(const UdpFlow& flow, size_t bytes);

  // Sends what the sockets take; the rest stays. A datagram that the kernel
  // refuses is lost and counted. `socket_of(port)` is the file descriptor bound
  // to a source port, negative if there is none any more.
  using SocketOf = std::function<int(uint16_t port)>;
  void Flush(const SocketOf& socket_of, NetworkErrors* errors);

  uint64_t sent() const { return sent_; }
  uint64_t calls() const { return calls_; }  // System calls so far.
  uint64_t sent_bytes() const { return sent_bytes_; }
  uint64_t lost() const { return lost_; }
  // Whether the last `Flush` left something.
  bool blocked() const { return blocked_; }

 private:
  struct Entry {
    UdpFlow flow;
    size_t bytes = 0;
  };
  struct alignas(cmsghdr) Control {
    std::array<uint8_t, 64> bytes;
  };

  size_t At(size_t position) const { return (first_ + position) % kBatch; }
  std::span<uint8_t> Slot(size_t slot) {
    return std::span(bytes_).subspan(slot * max_bytes_, max_bytes_);
  }
  // Builds messages for the longest run of one socket; how many datagrams are
  // in each.
  size_t Prepare();
  size_t Segments(size_t position, size_t limit) const;
  void PrepareMessage(size_t message, size_t position, size_t segments);
  // As sendmmsg does; one message costs less without it.
  int Send(int fd, size_t messages);
  // Takes datagrams off the front.
  void Lose(size_t datagrams);
  void Remove(size_t datagrams);
  // Deals with a refusal of the first message.
  void Refused(int error, NetworkErrors* errors);

  const size_t max_bytes_;
  const uint32_t index_;
  bool can_segment_ = true;   // The kernel and the interface can.
  bool segmentation_ = true;  // In this `Flush`.
  bool retried_ = false;      // The first message was refused once.
  bool blocked_ = false;
  size_t first_ = 0;
  size_t count_ = 0;
  size_t room_ = 0;  // Slot of the last `Room`.
  uint64_t sent_ = 0;
  uint64_t calls_ = 0;
  uint64_t sent_bytes_ = 0;
  uint64_t lost_ = 0;
  std::vector<uint8_t> bytes_;
  std::array<Entry, kBatch> entries_;
  std::array<mmsghdr, kBatch> messages_{};
  std::array<size_t, kBatch> segments_{};  // Datagrams of each message.
  std::array<iovec, kBatch> vectors_{};
  std::array<SocketName, kBatch> names_;
  std::array<Control, kBatch> controls_{};
};

}  // namespace heddle::soft::udp
