// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/udp_receiver.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace heddle::soft::udp {
namespace {

template <typename Value>
Value Get(const cmsghdr* part) {
  Value value{};
  std::memcpy(&value, CMSG_DATA(part), sizeof(value));
  return value;
}

}  // namespace

UdpReceiver::UdpReceiver() : bytes_(kBatch * kSlotBytes) {
  for (size_t slot = 0; slot < kBatch; ++slot) {
    vectors_[slot] = {.iov_base = &bytes_[slot * kSlotBytes],
                      .iov_len = kSlotBytes};
    Prepare(slot);
  }
}

void UdpReceiver::Prepare(size_t slot) {
  msghdr& header = messages_[slot].msg_hdr;
  header = {};
  header.msg_name = &names_[slot].storage;
  header.msg_namelen = sizeof(names_[slot].storage);
  header.msg_iov = &vectors_[slot];
  header.msg_iovlen = 1;
  header.msg_control = controls_[slot].bytes.data();
  header.msg_controllen = kControlBytes;
}

bool UdpReceiver::Fill(int fd, uint16_t port, NetworkErrors* errors) {
  constexpr int kTries = 8;  // An error of the past takes a call's place.
  int taken = -1;
  for (size_t slot = 0; slot < count_; ++slot) {
    Prepare(slot);  // The kernel wrote its answers there.
  }
  for (int i = 0; i < kTries && taken < 0; ++i) {
    ++calls_;
    taken = recvmmsg(fd, messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (taken < 0) {
      if (errno == EAGAIN) {
        break;
      }
      DrainErrorQueue(fd, errors);
    }
  }
  next_ = 0;
  count_ = taken > 0 ? static_cast<size_t>(taken) : 0;
  current_.destination_port = port;
  if (count_ > 0) {
    Open();
  }
  return count_ > 0;
}

void UdpReceiver::Open() {
  const size_t length = messages_[next_].msg_len;
  offset_ = 0;
  segment_ = std::max<size_t>(length, 1);
  current_.source = AddressOf(names_[next_]);
  current_.source_port = PortOf(names_[next_]);
  current_.tos = 0;
  msghdr& header = messages_[next_].msg_hdr;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
       part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_TOS) {
      current_.tos = Get<uint8_t>(part);
    } else if (part->cmsg_level == IPPROTO_IPV6 &&
               part->cmsg_type == IPV6_TCLASS) {
      current_.tos = static_cast<uint8_t>(Get<int>(part));
    } else if (part->cmsg_level == IPPROTO_UDP && part->cmsg_type == UDP_GRO) {
      segment_ = static_cast<size_t>(std::max(Get<int>(part), 1));
    }
  }
}

ReceivedDatagram UdpReceiver::Next() {
  const size_t length = messages_[next_].msg_len;
  const size_t bytes = std::min(segment_, length - offset_);
  current_.bytes =
      std::span(bytes_).subspan(next_ * kSlotBytes + offset_, bytes);
  const ReceivedDatagram result = current_;
  offset_ += bytes;
  if (offset_ >= length) {
    ++next_;
    if (!empty()) {
      Open();
    }
  }
  return result;
}

}  // namespace heddle::soft::udp
