// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>

#include "driver/vfio/iommu.h"
#include "driver/vfio/kernel_fd.h"
#include "driver/vfio/uapi.h"

namespace heddle::vfio {
namespace {

constexpr const char* kIommufd = "/dev/iommu";

class Iommufd final : public Iommu {
 public:
  explicit Iommufd(Kernel& kernel) : kernel_(kernel) {}

  int device_fd() const override { return device_.fd(); }
  const IommuLimits& limits() const override { return limits_; }
  const char* kind() const override { return "iommufd"; }

  Result<bool> Map(void* address, uint64_t bytes, uint64_t iova,
                   bool writable) override {
    uapi::IoasMap map;
    map.flags = uapi::kIoasMapFixedIova | uapi::kIoasMapReadable |
                (writable ? uint32_t{uapi::kIoasMapWriteable} : 0u);
    map.ioas_id = ioas_;
    map.user_va = reinterpret_cast<uintptr_t>(address);
    map.length = bytes;
    map.iova = iova;
    return Done(kernel_.Control(iommufd_.fd(), uapi::kIoasMap, &map));
  }

  Result<bool> Unmap(uint64_t iova, uint64_t bytes) override {
    uapi::IoasUnmap unmap;
    unmap.ioas_id = ioas_;
    unmap.iova = iova;
    unmap.length = bytes;
    const Result<int> done =
        kernel_.Control(iommufd_.fd(), uapi::kIoasUnmap, &unmap);
    if (done.ok() && unmap.length != bytes) {
      return Errno{EIO};
    }
    return Done(done);
  }

  Result<bool> Attach(const PciFunction& function, std::string& message);

 private:
  static Result<bool> Done(const Result<int>& answer) {
    if (!answer.ok()) {
      return answer.error();
    }
    return true;
  }

  Result<bool> Open(const std::string& path, KernelFd* out,
                    std::string& message);
  // An ioctl of `Attach`; its failure is described by `what`.
  Result<bool> Ask(int fd, unsigned long request, void* argument,
                   const std::string& what, std::string& message);
  Result<bool> ReadLimits(std::string& message);

  Kernel& kernel_;
  IommuLimits limits_;
  uint32_t ioas_ = 0;
  // Closed from the last: the device first.
  KernelFd iommufd_;
  KernelFd device_;
};

Result<bool> Iommufd::Open(const std::string& path, KernelFd* out,
                           std::string& message) {
  const Result<int> opened = kernel_.Open(path);
  if (!opened.ok()) {
    const Errno error = opened.error();
    message = path + ": " + std::strerror(static_cast<int>(error));
    if (error == Errno{EACCES}) {
      message += "; give the file to this user (chown), or run as root";
    } else if (error == Errno{EBUSY}) {
      message += "; another process, or this one, has it open";
    }
    return error;
  }
  *out = KernelFd(kernel_, opened.value());
  return true;
}

Result<bool> Iommufd::Ask(int fd, unsigned long request, void* argument,
                          const std::string& what, std::string& message) {
  const Result<int> done = kernel_.Control(fd, request, argument);
  if (!done.ok()) {
    message = what + ": " + std::strerror(static_cast<int>(done.error()));
  }
  return Done(done);
}

Result<bool> Iommufd::ReadLimits(std::string& message) {
  std::vector<uapi::IovaRange> ranges;
  uapi::IoasIovaRanges question;
  for (;;) {
    question = {};
    question.ioas_id = ioas_;
    question.num_iovas = static_cast<uint32_t>(ranges.size());
    question.allowed_iovas = reinterpret_cast<uintptr_t>(ranges.data());
    const Result<int> asked =
        kernel_.Control(iommufd_.fd(), uapi::kIoasIovaRanges, &question);
    // EMSGSIZE: there are more than there is room for.
    if (!asked.ok() && asked.error() != Errno{EMSGSIZE}) {
      message = std::string(kIommufd) + ": IOMMU_IOAS_IOVA_RANGES: " +
                std::strerror(static_cast<int>(asked.error()));
      return asked.error();
    }
    constexpr uint32_t kMost = 1u << 16;
    if (question.num_iovas > kMost) {
      message = std::string(kIommufd) + ": IOMMU_IOAS_IOVA_RANGES: " +
                std::to_string(question.num_iovas) + " ranges";
      return Errno{EIO};
    }
    if (question.num_iovas <= ranges.size()) {
      ranges.resize(question.num_iovas);
      break;
    }
    ranges.resize(question.num_iovas);
  }
  for (const uapi::IovaRange& range : ranges) {
    limits_.usable.push_back({.first = range.start, .last = range.last});
  }
  // The alignment is that of the CPU's pages, or more.
  if (question.out_iova_alignment > limits_.page_bytes) {
    limits_.page_bytes = question.out_iova_alignment;
  }
  return true;
}

Result<bool> Iommufd::Attach(const PciFunction& function,
                             std::string& message) {
  const std::string node = "/dev/vfio/devices/" + function.vfio_device;
  Result<bool> done = Open(node, &device_, message);
  if (done.ok()) {
    done = Open(kIommufd, &iommufd_, message);
  }
  if (!done.ok()) {
    return done;
  }
  uapi::DeviceBind bind;
  bind.iommufd = iommufd_.fd();
  done = Ask(device_.fd(), uapi::kDeviceBindIommufd, &bind,
             node + ": VFIO_DEVICE_BIND_IOMMUFD", message);
  if (!done.ok()) {
    // The file opens any number of times; this error indicates a second one.
    if (done.error() != Errno{EINVAL}) {
      return done;
    }
    message += "; another process, or this one, has it open";
    return Errno{EBUSY};
  }
  uapi::IoasAlloc alloc;
  done = Ask(iommufd_.fd(), uapi::kIoasAlloc, &alloc,
             std::string(kIommufd) + ": IOMMU_IOAS_ALLOC", message);
  if (!done.ok()) {
    return done;
  }
  ioas_ = alloc.out_ioas_id;
  uapi::DeviceAttach attach;
  attach.pt_id = ioas_;
  done = Ask(device_.fd(), uapi::kDeviceAttachIommufd, &attach,
             node + ": VFIO_DEVICE_ATTACH_IOMMUFD_PT", message);
  return done.ok() ? ReadLimits(message) : done;
}

}  // namespace

Result<std::unique_ptr<Iommu>> AttachIommufd(Kernel& kernel,
                                             const PciFunction& function,
                                             std::string& message) {
  auto iommu = std::make_unique<Iommufd>(kernel);
  const Result<bool> attached = iommu->Attach(function, message);
  if (!attached.ok()) {
    return attached.error();
  }
  return std::unique_ptr<Iommu>(std::move(iommu));
}

}  // namespace heddle::vfio
