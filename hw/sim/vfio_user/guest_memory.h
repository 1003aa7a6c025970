// SPDX-License-Identifier: Apache-2.0
// Memory that a vfio-user client has mapped for a function.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "driver/result.h"
#include "hw/sim/base/owned_fd.h"

namespace heddle::sim::vfio_user {

// A client behind an IOMMU maps page by page, all of the same few files: each
// file is mapped once, whole, while anything of it is.
//
// Trust: the client is not trusted. A file of which an access could fail is
// refused: one that may be made shorter, one of huge pages, which its owner may
// punch out when the system has no more; so is a range beyond its end.
//
// Thread safety: none; who accesses memory and who unmaps it share a lock, so
// that `Unmap` returns when no access is under way.
class GuestMemory {
 public:
  GuestMemory() = default;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;

  // [iova, iova + bytes) is `file` from `offset` on. Without a file the range
  // is known, but nothing in it is reached. Errors: EINVAL for an empty or
  // wrapping range or one beyond the file's end, EEXIST when it overlaps
  // another, EPERM when the file is not sealed against shrinking or of huge
  // pages, ENOSPC for more than the limits below, ENOMEM.
  Result<bool> Map(uint64_t iova, uint64_t bytes, base::OwnedFd file,
                   uint64_t offset, bool writable);

  // What one client may take of this process, which serves others, too.
  static constexpr size_t kMostMappings = size_t{1} << 20;
  static constexpr size_t kMostFiles = 64;  // A file that grew counts again.
  static constexpr uint64_t kMostFileBytes = uint64_t{1} << 40;

  // Ends every mapping inside [first, last]; so many. EINVAL, and all stay,
  // when one reaches out of it.
  Result<size_t> Unmap(uint64_t first, uint64_t last);

  // Copies all bytes or none; false when one of them is not mapped for it.
  [[nodiscard]] bool Read(uint64_t iova, std::span<uint8_t> out);
  [[nodiscard]] bool Write(uint64_t iova, std::span<const uint8_t> bytes);

  // Where the byte at `iova` is, and how many from there on, at most `bytes`,
  // follow it in this process. Empty when it is not mapped for the access.
  // Good until the next `Unmap`.
  std::span<uint8_t> Find(uint64_t iova, uint64_t bytes, bool write) const;

  size_t mappings() const { return mapped_.size(); }
  size_t files() const { return files_.size(); }

 private:
  // Of all views.
  struct Taken {
    uint64_t bytes = 0;
    size_t views = 0;
  };
  // A file's mapping in this process.
  class View {
   public:
    View(uint8_t* address, uint64_t bytes, Taken* taken)
        : address_(address), bytes_(bytes), taken_(taken) {
      taken_->bytes += bytes_;
      ++taken_->views;
    }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    ~View();
    uint8_t* address() const { return address_; }
    uint64_t bytes() const { return bytes_; }

   private:
    uint8_t* address_;
    uint64_t bytes_;
    Taken* taken_;
  };
  using FileId = std::pair<uint64_t, uint64_t>;  // Device, inode.

  struct Mapping {
    uint64_t last = 0;
    uint8_t* address = nullptr;  // Null: not reached.
    bool writable = false;
    std::shared_ptr<View> view = {};
    FileId file = {};
  };

  Result<std::shared_ptr<View>> ViewOf(const base::OwnedFd& file, FileId* id);
  bool Overlaps(uint64_t first, uint64_t last) const;
  void Erase(std::map<uint64_t, Mapping>::iterator mapping);
  // Calls `visit(span, position)` for each piece, if all are mapped.
  template <typename Visit>
  bool ForEach(uint64_t iova, uint64_t bytes, bool write, Visit visit);

  Taken taken_;
  std::map<uint64_t, Mapping> mapped_;  // By first IOVA, disjoint.
  std::map<FileId, std::weak_ptr<View>> files_;
};

}  // namespace heddle::sim::vfio_user
