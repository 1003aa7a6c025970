// SPDX-License-Identifier: Apache-2.0
// Reads results of VFIO that contain a chain of capabilities.
#pragma once

#include <linux/vfio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "driver/vfio/kernel.h"

namespace heddle::vfio {

// Copies a structure out of a result. False, without a change of `out`, when it
// exceeds the result.
template <typename T>
bool ReadAt(const std::vector<std::byte>& info, size_t offset, T* out) {
  if (offset > info.size() || sizeof(T) > info.size() - offset) {
    return false;
  }
  std::memcpy(out, info.data() + offset, sizeof(T));
  return true;
}

// Calls `visit(id, offset)` for each capability from `first` on (0: none). A
// chain that leaves the result or does not advance ends there.
template <typename Visit>
void ForEachCapability(const std::vector<std::byte>& info, uint32_t first,
                       Visit visit) {
  uint32_t offset = first;
  vfio_info_cap_header header{};
  while (offset != 0 && ReadAt(info, offset, &header)) {
    visit(header.id, size_t{offset});
    if (header.next <= offset) {
      return;
    }
    offset = header.next;
  }
}

// Requests a result of unknown length whose structure `Head` begins with
// `argsz`: once for the length, once for all. `question` has the other
// arguments of the request.
template <typename Head>
Result<bool> ReadInfo(Kernel& kernel, int fd, unsigned long request,
                      const Head& question, std::vector<std::byte>& info) {
  constexpr uint32_t kMost = 1u << 20;  // No answer is as long.
  uint32_t bytes = sizeof(Head);
  for (;;) {
    Head head = question;
    head.argsz = bytes;
    info.assign(bytes, std::byte{0});
    std::memcpy(info.data(), &head, sizeof(head));
    const Result<int> asked = kernel.Control(fd, request, info.data());
    if (!asked.ok()) {
      return asked.error();
    }
    std::memcpy(&head, info.data(), sizeof(head));
    if (head.argsz <= bytes) {
      return true;
    }
    if (head.argsz > kMost) {
      return Errno{EIO};
    }
    bytes = head.argsz;
  }
}

}  // namespace heddle::vfio
