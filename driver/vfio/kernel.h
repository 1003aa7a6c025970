// SPDX-License-Identifier: Apache-2.0
// The system calls that VFIO is driven with; tests put a model in their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "driver/result.h"

namespace heddle::vfio {

// Control path only: BARs are accessed through their mappings, interrupts
// through poll(2).
//
// Thread safety: any thread.
class Kernel {
 public:
  // The real one; lives as long as the process.
  static Kernel& Real();

  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  // open(2) for reading and writing, close-on-exec.
  virtual Result<int> Open(const std::string& path) = 0;
  virtual void Close(int fd) = 0;
  // ioctl(2); the value is what it returned.
  virtual Result<int> Control(int fd, unsigned long request,
                              void* argument) = 0;
  // Shared, readable and writable mapping of a file.
  virtual Result<void*> MapFile(int fd, uint64_t offset, size_t bytes) = 0;
  virtual void UnmapFile(void* address, size_t bytes) = 0;
  // All bytes or an error; EIO for some of them.
  virtual Result<bool> ReadAt(int fd, uint64_t offset,
                              std::span<std::byte> out) = 0;
  virtual Result<bool> WriteAt(int fd, uint64_t offset,
                               std::span<const std::byte> bytes) = 0;
  // eventfd(2), close-on-exec, non-blocking.
  virtual Result<int> CreateEvent() = 0;
};

}  // namespace heddle::vfio
