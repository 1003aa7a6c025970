// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/udp_sender.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace heddle::soft::udp {
namespace {

// Of one message with segments, by the kernel and by IP.
constexpr size_t kMaxSegments = 64;
constexpr size_t kMaxSegmentedBytes = 65000;

// Appends a control message; `at` grows.
template <typename Value>
void Put(msghdr* header, cmsghdr** at, int level, int type, Value value) {
  cmsghdr* const part = *at;
  part->cmsg_level = level;
  part->cmsg_type = type;
  part->cmsg_len = CMSG_LEN(sizeof(value));
  std::memcpy(CMSG_DATA(part), &value, sizeof(value));
  header->msg_controllen += CMSG_SPACE(sizeof(value));
  // NOLINTNEXTLINE: the next part stands behind this one.
  *at = reinterpret_cast<cmsghdr*>(reinterpret_cast<uint8_t*>(part) +
                                   CMSG_SPACE(sizeof(value)));
}

}  // namespace

// One slot more than the queue has, so that there is always room to write to.
UdpSender::UdpSender(size_t max_bytes, uint32_t index)
    : max_bytes_(max_bytes), index_(index), bytes_((kBatch + 1) * max_bytes) {}

void UdpSender::Add(const UdpFlow& flow, size_t bytes) {
  const size_t slot = At(count_);
  if (room_ != slot) {
    // Written while the queue was full.
    std::memcpy(Slot(slot).data(), Slot(room_).data(), bytes);
  }
  entries_[slot] = {flow, bytes};
  ++count_;
}

size_t UdpSender::Segments(size_t position, size_t limit) const {
  const Entry& first = entries_[At(position)];
  size_t segments = 1;
  size_t bytes = first.bytes;
  while (segmentation_ && segments < std::min(limit, kMaxSegments)) {
    const Entry& next = entries_[At(position + segments)];
    bytes += next.bytes;
    if (next.flow != first.flow || next.bytes > first.bytes ||
        bytes > kMaxSegmentedBytes) {
      break;
    }
    ++segments;
    if (next.bytes < first.bytes) {
      break;  // The last segment may be shorter, no other.
    }
  }
  return segments;
}

void UdpSender::PrepareMessage(size_t message, size_t position,
                               size_t segments) {
  for (size_t i = 0; i < segments; ++i) {
    const size_t slot = At(position + i);
    vectors_[position + i] = {.iov_base = Slot(slot).data(),
                              .iov_len = entries_[slot].bytes};
  }
  const Entry& entry = entries_[At(position)];
  names_[message] =
      MakeName(entry.flow.destination, entry.flow.destination_port, index_);
  segments_[message] = segments;
  msghdr& header = messages_[message].msg_hdr;
  header = {};
  header.msg_name = &names_[message].storage;
  header.msg_namelen = names_[message].bytes;
  header.msg_iov = &vectors_[position];
  header.msg_iovlen = segments;
  header.msg_control = controls_[message].bytes.data();
  // NOLINTNEXTLINE: aligned for it.
  auto* at = reinterpret_cast<cmsghdr*>(controls_[message].bytes.data());
  const bool ipv6 = entry.flow.destination.ipv6;
  Put<int>(&header, &at, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP,
           ipv6 ? IPV6_TCLASS : IP_TOS, entry.flow.tos);
  if (segments > 1) {
    Put<uint16_t>(&header, &at, IPPROTO_UDP, UDP_SEGMENT,
                  static_cast<uint16_t>(entry.bytes));
  }
}

size_t UdpSender::Prepare() {
  const uint16_t port = entries_[At(0)].flow.source_port;
  size_t run = 1;
  while (run < count_ && entries_[At(run)].flow.source_port == port) {
    ++run;
  }
  size_t messages = 0;
  for (size_t position = 0; position < run;) {
    const size_t segments = Segments(position, run - position);
    PrepareMessage(messages++, position, segments);
    position += segments;
  }
  return messages;
}

void UdpSender::Remove(size_t datagrams) {
  count_ -= datagrams;
  // From the start once it is empty: slots that were used last are in caches.
  first_ = count_ == 0 ? 0 : At(datagrams);
  retried_ = false;
}

void UdpSender::Lose(size_t datagrams) {
  lost_ += datagrams;
  Remove(datagrams);
}

void UdpSender::Refused(int error, NetworkErrors* errors) {
  if (!retried_) {
    retried_ = true;  // It may have been the error of another datagram.
    return;
  }
  if (segments_[0] > 1) {
    // The single datagrams show whether it is them. EIO: the interface cannot
    // compute their checksums; others are about this path.
    segmentation_ = false;
    can_segment_ = can_segment_ && error != EIO && error != EOPNOTSUPP;
    retried_ = false;
    return;
  }
  CountNetworkError(error, errors);
  Lose(1);
}

int UdpSender::Send(int fd, size_t messages) {
  if (messages > 1) {
    return sendmmsg(fd, messages_.data(), static_cast<unsigned>(messages),
                    MSG_DONTWAIT);
  }
  const ssize_t bytes = sendmsg(fd, &messages_[0].msg_hdr, MSG_DONTWAIT);
  messages_[0].msg_len = bytes > 0 ? static_cast<unsigned>(bytes) : 0;
  return bytes < 0 ? -1 : 1;
}

void UdpSender::Flush(const SocketOf& socket_of, NetworkErrors* errors) {
  blocked_ = false;
  segmentation_ = can_segment_;
  while (count_ > 0) {
    const size_t messages = Prepare();
    const int fd = socket_of(entries_[At(0)].flow.source_port);
    if (fd < 0) {
      Lose(segments_[0]);
      continue;
    }
    ++calls_;
    const int taken = Send(fd, messages);
    if (taken > 0) {
      size_t datagrams = 0;
      for (size_t i = 0; i < static_cast<size_t>(taken); ++i) {
        datagrams += segments_[i];
        sent_bytes_ += messages_[i].msg_len;
      }
      sent_ += datagrams;
      Remove(datagrams);
      continue;
    }
    if (errno == EAGAIN) {
      blocked_ = true;
      return;
    }
    if (errno == ENOBUFS) {
      Lose(segments_[0]);  // The interface's queue is full: wires lose.
      continue;
    }
    if (errno != EINTR) {
      Refused(errno, errors);
    }
  }
}

}  // namespace heddle::soft::udp
