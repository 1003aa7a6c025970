// SPDX-License-Identifier: Apache-2.0
// Host memory that is not at its IOVA in this process.
#pragma once

#include <cstdint>
#include <span>

namespace heddle::sim::device {

// Whoever maps and unmaps keeps that apart from the device's accesses.
class MappedMemory {
 public:
  // Where the byte at `iova` is, and how many from there on, at most `bytes`,
  // follow it. Empty when it is not mapped for the access. Good until the
  // mapping ends.
  virtual std::span<uint8_t> Find(uint64_t iova, uint64_t bytes,
                                  bool write) const = 0;

  // An access was refused, because of these bytes.
  virtual void NoteRefused(uint64_t iova, uint64_t bytes, bool write) = 0;

 protected:
  ~MappedMemory() = default;
};

}  // namespace heddle::sim::device
