// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/guest_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace heddle::sim::vfio_user {

GuestMemory::View::~View() {
  munmap(address_, bytes_);
  taken_->bytes -= bytes_;
  --taken_->views;
}

Result<std::shared_ptr<GuestMemory::View>> GuestMemory::ViewOf(
    const base::OwnedFd& file, FileId* id) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) {
    return Errno{errno};
  }
  const int seals = fcntl(file.get(), F_GET_SEALS);
  struct statfs system {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      fstatfs(file.get(), &system) != 0 || system.f_type == HUGETLBFS_MAGIC) {
    return Errno{EPERM};
  }
  const auto bytes = static_cast<uint64_t>(status.st_size);
  *id = {status.st_dev, status.st_ino};
  const auto known = files_.find(*id);
  if (known != files_.end()) {
    if (std::shared_ptr<View> view = known->second.lock();
        view != nullptr && view->bytes() >= bytes) {
      return view;
    }
  }
  if (taken_.views >= kMostFiles || bytes > kMostFileBytes - taken_.bytes) {
    return Errno{ENOSPC};
  }
  void* address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) {
    return Errno{errno};
  }
  auto view =
      std::make_shared<View>(static_cast<uint8_t*>(address), bytes, &taken_);
  files_[*id] = view;
  return view;
}

bool GuestMemory::Overlaps(uint64_t first, uint64_t last) const {
  const auto above = mapped_.upper_bound(last);
  return above != mapped_.begin() && std::prev(above)->second.last >= first;
}

Result<bool> GuestMemory::Map(uint64_t iova, uint64_t bytes, base::OwnedFd file,
                              uint64_t offset, bool writable) {
  const uint64_t last = iova + (bytes - 1);
  if (bytes == 0 || last < iova) {
    return Errno{EINVAL};
  }
  if (Overlaps(iova, last)) {
    return Errno{EEXIST};
  }
  if (mapped_.size() >= kMostMappings) {
    return Errno{ENOSPC};
  }
  Mapping mapping{.last = last, .writable = writable};
  if (file.valid()) {
    Result<std::shared_ptr<View>> view = ViewOf(file, &mapping.file);
    if (!view.ok()) {
      return view.error();
    }
    mapping.view = std::move(view.value());
    if (offset > mapping.view->bytes() ||
        bytes > mapping.view->bytes() - offset) {
      const FileId id = mapping.file;
      mapping.view.reset();
      if (files_[id].expired()) {
        files_.erase(id);
      }
      return Errno{EINVAL};
    }
    mapping.address = mapping.view->address() + offset;
  }
  mapped_.emplace(iova, std::move(mapping));
  return true;
}

void GuestMemory::Erase(std::map<uint64_t, Mapping>::iterator mapping) {
  const FileId id = mapping->second.file;
  const bool had_file = mapping->second.view != nullptr;
  mapped_.erase(mapping);
  if (had_file) {
    const auto file = files_.find(id);
    if (file != files_.end() && file->second.expired()) {
      files_.erase(file);
    }
  }
}

Result<size_t> GuestMemory::Unmap(uint64_t first, uint64_t last) {
  const auto begin = mapped_.lower_bound(first);
  const auto end = mapped_.upper_bound(last);
  const bool cut_in_front =
      begin != mapped_.begin() && std::prev(begin)->second.last >= first;
  const bool cut_behind =
      end != mapped_.begin() && std::prev(end)->second.last > last;
  if (cut_in_front || (cut_behind && std::prev(end)->first <= last)) {
    return Errno{EINVAL};
  }
  size_t ended = 0;
  for (auto at = begin; at != end; ++ended) {
    Erase(at++);
  }
  return ended;
}

std::span<uint8_t> GuestMemory::Find(uint64_t iova, uint64_t bytes,
                                     bool write) const {
  auto at = mapped_.upper_bound(iova);
  if (at == mapped_.begin() || bytes == 0) {
    return {};
  }
  const auto& [first, mapping] = *std::prev(at);
  if (mapping.last < iova || mapping.address == nullptr ||
      (write && !mapping.writable)) {
    return {};
  }
  // Whole address space: does not fit in a count, nor in a file.
  const uint64_t room = mapping.last - iova + 1;
  return {mapping.address + (iova - first), std::min(bytes, room)};
}

template <typename Visit>
bool GuestMemory::ForEach(uint64_t iova, uint64_t bytes, bool write,
                          Visit visit) {
  const bool wraps = bytes != 0 && iova + (bytes - 1) < iova;
  for (uint64_t done = 0; done < bytes;) {
    const std::span<uint8_t> piece =
        wraps ? std::span<uint8_t>() : Find(iova + done, bytes - done, write);
    if (piece.empty()) {
      return false;
    }
    done += piece.size();
  }
  for (uint64_t done = 0; done < bytes;) {
    const std::span<uint8_t> piece = Find(iova + done, bytes - done, write);
    visit(piece, done);
    done += piece.size();
  }
  return true;
}

bool GuestMemory::Read(uint64_t iova, std::span<uint8_t> out) {
  return ForEach(iova, out.size(), false,
                 [&](std::span<uint8_t> piece, uint64_t at) {
                   std::memcpy(out.data() + at, piece.data(), piece.size());
                 });
}

bool GuestMemory::Write(uint64_t iova, std::span<const uint8_t> bytes) {
  return ForEach(iova, bytes.size(), true,
                 [&](std::span<uint8_t> piece, uint64_t at) {
                   std::memcpy(piece.data(), bytes.data() + at, piece.size());
                 });
}

}  // namespace heddle::sim::vfio_user
