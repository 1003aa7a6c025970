// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/kernel.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace heddle::vfio {
namespace {

class RealKernel final : public Kernel {
 public:
  Result<int> Open(const std::string& path) override {
    return Answer(open(path.c_str(), O_RDWR | O_CLOEXEC));
  }

  void Close(int fd) override { close(fd); }

  Result<int> Control(int fd, unsigned long request, void* argument) override {
    return Answer(ioctl(fd, request, argument));
  }

  Result<void*> MapFile(int fd, uint64_t offset, size_t bytes) override {
    void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                         static_cast<off_t>(offset));
    if (address == MAP_FAILED) {
      return Errno{errno};
    }
    return address;
  }

  void UnmapFile(void* address, size_t bytes) override {
    munmap(address, bytes);
  }

  Result<bool> ReadAt(int fd, uint64_t offset,
                      std::span<std::byte> out) override {
    return Whole(pread(fd, out.data(), out.size(), static_cast<off_t>(offset)),
                 out.size());
  }

  Result<bool> WriteAt(int fd, uint64_t offset,
                       std::span<const std::byte> bytes) override {
    return Whole(
        pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
        bytes.size());
  }

  Result<int> CreateEvent() override {
    return Answer(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }

 private:
  static Result<int> Answer(int value) {
    if (value < 0) {
      return Errno{errno};
    }
    return value;
  }

  static Result<bool> Whole(ssize_t moved, size_t wanted) {
    if (moved < 0) {
      return Errno{errno};
    }
    if (static_cast<size_t>(moved) != wanted) {
      return Errno{EIO};
    }
    return true;
  }
};

}  // namespace

Kernel& Kernel::Real() {
  static RealKernel kernel;
  return kernel;
}

}  // namespace heddle::vfio
