// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/vfio_user_reference.h"

#include <linux/pci_regs.h>
#include <linux/vfio.h>

#include <algorithm>
#include <cstring>

namespace heddle::fuzz {
namespace {

using sim::vfio_user::Command;
using sim::vfio_user::DmaMap;
using sim::vfio_user::DmaUnmap;
using sim::vfio_user::Header;
using sim::vfio_user::RegionAccess;
using sim::vfio_user::Version;

template <typename T>
T Front(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof(value), bytes.size()));
  return value;
}

// Bytes that a request has at least.
size_t FixedBytes(Command command) {
  switch (command) {
    case Command::kVersion:
    case Command::kDeviceGetInfo:
      return 4;
    case Command::kDmaMap:
    case Command::kDeviceGetRegionInfo:
      return 32;
    case Command::kDmaUnmap:
      return 24;
    case Command::kDeviceSetIrqs:
      return 20;
    case Command::kDeviceGetIrqInfo:
    case Command::kRegionRead:
    case Command::kRegionWrite:
      return 16;
    default:
      return 0;
  }
}

}  // namespace

void VfioUserReference::Sent(std::span<const std::byte> bytes) {
  stream_.insert(stream_.end(), bytes.begin(), bytes.end());
  while (!malformed_ && stream_.size() >= sizeof(Header)) {
    Request request{
        .header = Front<Header>(stream_), .body = {}, .number = ++number_};
    const size_t whole = request.header.bytes;
    if (whole < sizeof(Header) || whole > sim::vfio_user::kMaxMessageBytes) {
      malformed_ = true;
      return;
    }
    if (stream_.size() < whole) {
      return;
    }
    request.body.assign(stream_.begin() + sizeof(Header),
                        stream_.begin() + static_cast<long>(whole));
    stream_.erase(stream_.begin(), stream_.begin() + static_cast<long>(whole));
    malformed_ = IsMalformed(request);
    if (!malformed_) {
      Accept(request);
      open_.push_back(std::move(request));
    }
  }
}

bool VfioUserReference::IsMalformed(const Request& request) const {
  const std::span<const std::byte> body = request.body;
  if ((request.header.flags & sim::vfio_user::kFlagTypeMask) != 0 ||
      body.size() < FixedBytes(request.header.command)) {
    return true;
  }
  switch (request.header.command) {
    case Command::kVersion:
      return greeted_ || Front<Version>(body).major != 0 ||
             (body.size() > sizeof(Version) && body.back() != std::byte{0});
    case Command::kRegionWrite:
      return !greeted_ || body.size() - sizeof(RegionAccess) <
                              Front<RegionAccess>(body).count;
    default:
      return !greeted_;
  }
}

void VfioUserReference::Accept(const Request& request) {
  const std::span<const std::byte> body = request.body;
  if (request.header.command == Command::kVersion) {
    greeted_ = true;
  } else if (request.header.command == Command::kDmaMap) {
    AskForMap(request);
  } else if (request.header.command == Command::kRegionWrite) {
    const auto access = Front<RegionAccess>(body);
    const uint64_t at = PCI_COMMAND - access.offset;
    if (access.region == VFIO_PCI_CONFIG_REGION_INDEX && at < access.count &&
        (std::to_integer<int>(body[sizeof(access) + at]) &
         PCI_COMMAND_MASTER) != 0) {
      const std::lock_guard lock(mutex_);
      master_ = true;
    }
  }
}

void VfioUserReference::AskForMap(const Request& request) {
  const auto map = Front<DmaMap>(request.body);
  const std::lock_guard lock(mutex_);
  mapped_.push_back(
      {.first = map.address,
       .last = map.address + (map.bytes - 1),
       .writable = (map.flags & sim::vfio_user::kDmaWritable) != 0,
       .number = request.number});
}

std::string VfioUserReference::EndMap(const Request& request, bool done) {
  const std::lock_guard lock(mutex_);
  const auto mapping = std::find_if(
      mapped_.begin(), mapped_.end(),
      [&](const Mapping& other) { return other.number == request.number; });
  if (!done) {
    mapped_.erase(mapping);
    return {};
  }
  if (mapping->last < mapping->first) {
    return "a mapping of no bytes is accepted";
  }
  mapping->sure = true;
  const bool overlaps =
      std::any_of(mapped_.begin(), mapped_.end(), [&](const Mapping& other) {
        return other.sure && other.number != mapping->number &&
               other.first <= mapping->last && other.last >= mapping->first;
      });
  return overlaps ? "mappings that overlap are accepted" : "";
}

// `known`: that it succeeded.
std::string VfioUserReference::EndUnmap(const Request& request, bool known) {
  const auto unmap = Front<DmaUnmap>(request.body);
  const bool all = unmap.flags == sim::vfio_user::kUnmapAll;
  if ((unmap.flags != 0 && !all) || (!all && unmap.bytes == 0)) {
    return {};
  }
  const uint64_t first = all ? 0 : unmap.address;
  const uint64_t more = std::min(unmap.bytes - 1, UINT64_MAX - first);
  const uint64_t last = all ? UINT64_MAX : first + more;
  const std::lock_guard lock(mutex_);
  const auto is_touched = [&](const Mapping& mapping) {
    return mapping.number < request.number && mapping.first <= last &&
           mapping.last >= first;
  };
  const auto is_cut = [&](const Mapping& mapping) {
    return is_touched(mapping) &&
           (mapping.first < first || mapping.last > last);
  };
  const bool cuts = std::any_of(mapped_.begin(), mapped_.end(), is_cut);
  const bool surely = std::any_of(
      mapped_.begin(), mapped_.end(),
      [&](const Mapping& mapping) { return mapping.sure && is_cut(mapping); });
  if (known && surely) {
    return "an unmap that cuts a mapping succeeds";
  }
  if (known || !cuts) {
    mapped_.remove_if(is_touched);
  } else if (!surely) {
    // It succeeded unless one is there of which nobody was told.
    for (Mapping& mapping : mapped_) {
      mapping.sure = mapping.sure && !is_touched(mapping);
    }
  }
  return {};
}

std::string VfioUserReference::Answered(const Header& answer,
                                        std::span<const std::byte> body) {
  while (!open_.empty() && !open_.front().wanted()) {
    const Request quiet = std::move(open_.front());
    open_.pop_front();
    if (quiet.header.command == Command::kDmaUnmap) {
      (void)EndUnmap(quiet, /*known=*/false);
    }
  }
  if (open_.empty() || answer.id != open_.front().header.id ||
      answer.command != open_.front().header.command) {
    return "a reply to no request";
  }
  const Request request = std::move(open_.front());
  open_.pop_front();
  const bool done = answer.error == 0;
  const uint32_t flags = sim::vfio_user::kFlagReply |
                         (done ? 0u : uint32_t{sim::vfio_user::kFlagError});
  if (answer.flags != flags || (!done && !body.empty())) {
    return "an answer that is none of the protocol";
  }
  switch (request.header.command) {
    case Command::kDmaMap:
      return EndMap(request, done);
    case Command::kDmaUnmap:
      return done ? EndUnmap(request, /*known=*/true) : std::string();
    case Command::kRegionRead:
      return done && body.size() != sizeof(RegionAccess) +
                                        Front<RegionAccess>(request.body).count
                 ? "a read of another length than asked for"
                 : "";
    default:
      return {};
  }
}

void VfioUserReference::Settle() {
  while (!open_.empty() && !open_.front().wanted()) {
    if (open_.front().header.command == Command::kDmaUnmap) {
      (void)EndUnmap(open_.front(), /*known=*/false);
    }
    open_.pop_front();
  }
}

bool VfioUserReference::due() const {
  return std::any_of(open_.begin(), open_.end(),
                     [](const Request& request) { return request.wanted(); });
}

bool VfioUserReference::MayAccess(uint64_t iova, uint64_t bytes,
                                  bool write) const {
  const std::lock_guard lock(mutex_);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t at = iova + done;
    const auto in =
        std::find_if(mapped_.begin(), mapped_.end(), [&](const Mapping& range) {
          return range.first <= at && range.last >= at &&
                 (range.writable || !write);
        });
    if (in == mapped_.end() || at < iova) {
      return false;
    }
    done += std::min(in->last - at, bytes - done - 1) + 1;
  }
  return master_;
}

}  // namespace heddle::fuzz
