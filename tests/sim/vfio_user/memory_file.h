// SPDX-License-Identifier: Apache-2.0
// Memory of a client, as a file that it hands out.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "hw/sim/base/owned_fd.h"

namespace heddle::sim::vfio_user {

class MemoryFile {
 public:
  explicit MemoryFile(uint64_t bytes, bool sealed = true)
      : bytes_(bytes),
        file_(memfd_create("guest", MFD_ALLOW_SEALING | MFD_CLOEXEC)) {
    if (ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0 ||
        (sealed && fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0)) {
      std::perror("memfd");
      std::abort();
    }
    address_ = static_cast<uint8_t*>(mmap(
        nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0));
  }
  ~MemoryFile() { munmap(address_, bytes_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return file_.get(); }
  base::OwnedFd Copy() const {
    return base::OwnedFd(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  }
  uint8_t* data() const { return address_; }

 private:
  uint64_t bytes_;
  base::OwnedFd file_;
  uint8_t* address_ = nullptr;
};

}  // namespace heddle::sim::vfio_user
