// SPDX-License-Identifier: Apache-2.0
// Datagrams of sockets, many for a system call.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hw/soft/udp/udp_socket.h"

namespace heddle::soft::udp {

// One datagram. `bytes` are valid until the next `Fill`.
struct ReceivedDatagram {
  sim::frame::WireAddress source;
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint8_t tos = 0;
  std::span<const uint8_t> bytes;
};

// Takes what a socket has, then hands it out one by one. The kernel may have
// joined datagrams of one sender. Nothing allocates after construction.
// Thread safety: none.
class UdpReceiver {
 public:
  UdpReceiver();

  // Precondition: `empty()`. Takes a batch from `fd`, which is bound to `port`.
  // False if it has none.
  bool Fill(int fd, uint16_t port, NetworkErrors* errors);
  bool empty() const { return next_ == count_; }
  uint64_t calls() const { return calls_; }  // System calls so far.
  // Precondition: not `empty()`.
  ReceivedDatagram Next();

 private:
  static constexpr size_t kBatch = 16;
  // A joined datagram is as large as IP allows.
  static constexpr size_t kSlotBytes = 65536;
  static constexpr size_t kControlBytes = 256;

  struct alignas(cmsghdr) Control {
    std::array<uint8_t, kControlBytes> bytes;
  };

  // Makes a slot fit for a system call.
  void Prepare(size_t slot);
  // Reads what the kernel says beside the bytes of the next slot.
  void Open();

  std::vector<uint8_t> bytes_;
  std::array<mmsghdr, kBatch> messages_{};
  std::array<iovec, kBatch> vectors_{};
  std::array<SocketName, kBatch> names_;
  std::array<Control, kBatch> controls_{};
  uint64_t calls_ = 0;
  size_t count_ = 0;
  size_t next_ = 0;     // Slot that is being handed out,
  size_t offset_ = 0;   // from here on,
  size_t segment_ = 0;  // in pieces of so many bytes.
  ReceivedDatagram current_;
};

}  // namespace heddle::soft::udp
