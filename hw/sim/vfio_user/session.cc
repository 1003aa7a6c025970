// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/session.h"

#include <fcntl.h>
#include <linux/vfio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace heddle::sim::vfio_user {
namespace {

template <typename T>
void Append(std::vector<std::byte>* to, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to->insert(to->end(), bytes.begin(), bytes.end());
}

// Whether it is an eventfd: a write to anything else may wait for ever, or end
// the process. Such a write does not wait from now on.
bool MakeEvent(const base::OwnedFd& fd) {
  constexpr std::string_view kEvent = "anon_inode:[eventfd]";
  std::array<char, kEvent.size() + 1> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
  const ssize_t bytes = readlink(link.c_str(), name.data(), name.size());
  return bytes == static_cast<ssize_t>(kEvent.size()) &&
         std::string_view(name.data(), kEvent.size()) == kEvent &&
         fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0;
}

void Refuse(Answer* answer, int error) {
  answer->header.error = static_cast<uint32_t>(error);
  answer->body.clear();
}

}  // namespace

bool Session::Bad(const std::string& why) {
  why_ = why;
  return false;
}

template <typename T>
bool Session::Take(Body body, T* out) {
  if (body.size() < sizeof(T)) {
    return Bad("a request of " + std::to_string(body.size()) + " bytes where " +
               std::to_string(sizeof(T)) + " are needed");
  }
  std::memcpy(out, body.data(), sizeof(T));
  return true;
}

bool Session::Handle(Message request, Answer* answer) {
  const Header asked = request.header;
  *answer = {};
  answer->wanted = (asked.flags & kFlagNoReply) == 0;
  if ((asked.flags & kFlagTypeMask) != 0) {
    return Bad("a reply to no request");
  }
  if (!greeted_ && asked.command != Command::kVersion) {
    return Bad("the first message is not VERSION");
  }
  if (!Dispatch(std::move(request), answer)) {
    return false;
  }
  answer->header.id = asked.id;
  answer->header.command = asked.command;
  answer->header.flags =
      kFlagReply | (answer->header.error != 0 ? uint32_t{kFlagError} : 0u);
  answer->header.bytes =
      static_cast<uint32_t>(sizeof(Header) + answer->body.size());
  return true;
}

bool Session::Dispatch(Message request, Answer* answer) {
  const Body body = request.body;
  switch (request.header.command) {
    case Command::kVersion:
      return OnVersion(body, answer);
    case Command::kDmaMap:
      return OnDmaMap(body, std::move(request.fds), answer);
    case Command::kDmaUnmap:
      return OnDmaUnmap(body, answer);
    case Command::kDeviceGetInfo:
      return OnDeviceInfo(body, answer);
    case Command::kDeviceGetRegionInfo:
      return OnRegionInfo(body, answer);
    case Command::kDeviceGetIrqInfo:
      return OnInterruptInfo(body, answer);
    case Command::kDeviceSetIrqs:
      return OnSetInterrupts(body, std::move(request.fds), answer);
    case Command::kRegionRead:
      return OnRegionRead(body, answer);
    case Command::kRegionWrite:
      return OnRegionWrite(body, answer);
    case Command::kDeviceReset:
      if (const Result<bool> done = function_.Reset(); !done.ok()) {
        Refuse(answer, static_cast<int>(done.error()));
      }
      return true;
    case Command::kDeviceGetRegionIoFds:
    case Command::kDmaRead:  // Requests of the server only.
    case Command::kDmaWrite:
    default:
      Refuse(answer, ENOTSUP);
      return true;
  }
}

bool Session::OnVersion(Body body, Answer* answer) {
  Version version;
  if (!Take(body, &version)) {
    return false;
  }
  if (greeted_) {
    return Bad("a second VERSION");
  }
  if (version.major != kMajor) {
    return Bad("protocol version " + std::to_string(version.major) + "." +
               std::to_string(version.minor) + "; this server supports 0.0");
  }
  if (body.size() > sizeof(version) && body.back() != std::byte{0}) {
    return Bad("capabilities whose text does not end");
  }
  greeted_ = true;
  Append(&answer->body,
         Version{.major = kMajor, .minor = std::min(version.minor, kMinor)});
  const std::string text =
      R"({"capabilities":{"max_msg_fds":)" + std::to_string(kMaxMessageFds) +
      R"(,"max_data_xfer_size":)" + std::to_string(kMaxTransferBytes) +
      R"(,"pgsizes":4096}})";
  const auto bytes = std::as_bytes(std::span(text));
  answer->body.insert(answer->body.end(), bytes.begin(), bytes.end());
  answer->body.push_back(std::byte{0});
  return true;
}

bool Session::OnDmaMap(Body body, std::vector<base::OwnedFd> fds,
                       Answer* answer) {
  DmaMap map;
  if (!Take(body, &map)) {
    return false;
  }
  if (fds.size() > 1) {
    return Bad("DMA_MAP with " + std::to_string(fds.size()) +
               " file descriptors");
  }
  if ((map.flags & ~uint32_t{kDmaReadable | kDmaWritable}) != 0) {
    Refuse(answer, EINVAL);
    return true;
  }
  const Result<bool> done =
      function_.MapDma(map.address, map.bytes,
                       fds.empty() ? base::OwnedFd() : std::move(fds.front()),
                       map.offset, (map.flags & kDmaWritable) != 0);
  if (!done.ok()) {
    Refuse(answer, static_cast<int>(done.error()));
  }
  return true;
}

bool Session::OnDmaUnmap(Body body, Answer* answer) {
  DmaUnmap unmap;
  if (!Take(body, &unmap)) {
    return false;
  }
  if ((unmap.flags & ~uint32_t{kUnmapAll}) != 0) {
    Refuse(answer, ENOTSUP);  // Nothing is logged as dirty.
    return true;
  }
  // Also of nothing: a client with an IOMMU requests that.
  Result<size_t> done = size_t{0};
  if ((unmap.flags & kUnmapAll) != 0) {
    done = function_.UnmapDma(0, UINT64_MAX);
  } else if (unmap.bytes != 0) {
    const uint64_t more = std::min(unmap.bytes - 1, UINT64_MAX - unmap.address);
    done = function_.UnmapDma(unmap.address, unmap.address + more);
  }
  if (!done.ok()) {
    Refuse(answer, static_cast<int>(done.error()));
    return true;
  }
  unmap.argsz = sizeof(unmap);
  Append(&answer->body, unmap);
  return true;
}

bool Session::OnDeviceInfo(Body body, Answer* answer) {
  uint32_t argsz = 0;
  if (!Take(body, &argsz)) {
    return false;
  }
  Append(&answer->body, uint32_t{4 * sizeof(uint32_t)});
  Append(&answer->body,
         uint32_t{VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET});
  Append(&answer->body, uint32_t{VFIO_PCI_NUM_REGIONS});
  Append(&answer->body, uint32_t{VFIO_PCI_NUM_IRQS});
  return true;
}

bool Session::OnRegionInfo(Body body, Answer* answer) {
  vfio_region_info info{};
  if (!Take(body, &info)) {
    return false;
  }
  if (info.index >= VFIO_PCI_NUM_REGIONS) {
    Refuse(answer, EINVAL);
    return true;
  }
  info.argsz = sizeof(info);
  info.size = function_.region_bytes(info.index);
  info.flags =
      info.size == 0
          ? 0u
          : uint32_t{VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE};
  info.cap_offset = 0;
  info.offset = 0;
  Append(&answer->body, info);
  return true;
}

bool Session::OnInterruptInfo(Body body, Answer* answer) {
  vfio_irq_info info{};
  if (!Take(body, &info)) {
    return false;
  }
  if (info.index >= VFIO_PCI_NUM_IRQS) {
    Refuse(answer, EINVAL);
    return true;
  }
  info.argsz = sizeof(info);
  info.count = function_.interrupts(info.index);
  info.flags = info.count == 0 ? 0u
               : info.index == VFIO_PCI_MSIX_IRQ_INDEX
                   ? uint32_t{VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE}
                   : uint32_t{VFIO_IRQ_INFO_EVENTFD};
  Append(&answer->body, info);
  return true;
}

bool Session::OnSetInterrupts(Body body, std::vector<base::OwnedFd> fds,
                              Answer* answer) {
  vfio_irq_set set{};
  if (!Take(body, &set)) {
    return false;
  }
  const uint32_t have =
      set.index < VFIO_PCI_NUM_IRQS ? function_.interrupts(set.index) : 0;
  const uint32_t data = set.flags & VFIO_IRQ_SET_DATA_TYPE_MASK;
  const uint32_t action = set.flags & VFIO_IRQ_SET_ACTION_TYPE_MASK;
  const bool inside = set.start <= have && set.count <= have - set.start;
  if (!inside || action != VFIO_IRQ_SET_ACTION_TRIGGER) {
    Refuse(answer, inside ? ENOTSUP : EINVAL);  // Nothing can be masked.
    return true;
  }
  switch (data) {
    case VFIO_IRQ_SET_DATA_NONE:
      // No interrupt named: all of the index are turned off.
      for (uint32_t i = 0; set.count == 0 && i < have; ++i) {
        function_.Connect(set.index, i, base::OwnedFd());
      }
      for (uint32_t i = 0; i < set.count; ++i) {
        function_.Trigger(set.index, set.start + i);
      }
      return true;
    case VFIO_IRQ_SET_DATA_BOOL:
      if (body.size() - sizeof(set) < set.count) {
        return Bad("SET_IRQS with less data than interrupts");
      }
      for (uint32_t i = 0; i < set.count; ++i) {
        if (body[sizeof(set) + i] != std::byte{0}) {
          function_.Trigger(set.index, set.start + i);
        }
      }
      return true;
    case VFIO_IRQ_SET_DATA_EVENTFD:
      // As many descriptors as interrupts, or none: they are turned off.
      if (!fds.empty() && (fds.size() != set.count ||
                           !std::all_of(fds.begin(), fds.end(), MakeEvent))) {
        Refuse(answer, EINVAL);
        return true;
      }
      for (uint32_t i = 0; i < set.count; ++i) {
        function_.Connect(set.index, set.start + i,
                          fds.empty() ? base::OwnedFd() : std::move(fds[i]));
      }
      return true;
    default:
      Refuse(answer, EINVAL);
      return true;
  }
}

namespace {

// Whether an access lies inside its region.
bool IsInside(const Function& function, const RegionAccess& access) {
  if (access.region >= VFIO_PCI_NUM_REGIONS) {
    return false;
  }
  const uint64_t bytes = function.region_bytes(access.region);
  return access.count != 0 && access.count <= kMaxTransferBytes &&
         access.offset <= bytes && access.count <= bytes - access.offset;
}

}  // namespace

bool Session::OnRegionRead(Body body, Answer* answer) {
  RegionAccess access;
  if (!Take(body, &access)) {
    return false;
  }
  if (!IsInside(function_, access)) {
    Refuse(answer, EINVAL);
    return true;
  }
  Append(&answer->body, access);
  answer->body.resize(sizeof(access) + access.count);
  const auto out = std::span(answer->body).subspan(sizeof(access));
  if (!function_.ReadRegion(access.region, access.offset, out)) {
    Refuse(answer, EINVAL);
  }
  return true;
}

bool Session::OnRegionWrite(Body body, Answer* answer) {
  RegionAccess access;
  if (!Take(body, &access)) {
    return false;
  }
  if (body.size() - sizeof(access) < access.count) {
    return Bad("REGION_WRITE of " + std::to_string(access.count) +
               " bytes with " + std::to_string(body.size() - sizeof(access)));
  }
  const Body data = body.subspan(sizeof(access), access.count);
  if (!IsInside(function_, access) ||
      !function_.WriteRegion(access.region, access.offset, data)) {
    Refuse(answer, EINVAL);
    return true;
  }
  Append(&answer->body, access);
  return true;
}

}  // namespace heddle::sim::vfio_user
