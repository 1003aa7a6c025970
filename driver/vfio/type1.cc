// SPDX-License-Identifier: Apache-2.0
#include <linux/vfio.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "driver/vfio/info_capabilities.h"
#include "driver/vfio/iommu.h"
#include "driver/vfio/kernel_fd.h"

namespace heddle::vfio {
namespace {

constexpr const char* kContainer = "/dev/vfio/vfio";
// The range that every IOMMU maps, for kernels that do not report it: above the
// interrupt window of x86, below the 39 bits of small IOMMUs.
constexpr IovaRange kCommonRange = {.first = uint64_t{1} << 32,
                                    .last = (uint64_t{1} << 39) - 1};

IommuLimits LimitsFrom(const std::vector<std::byte>& info) {
  IommuLimits limits;
  vfio_iommu_type1_info head{};
  std::memcpy(&head, info.data(), sizeof(head));
  if ((head.flags & VFIO_IOMMU_INFO_PGSIZES) != 0 && head.iova_pgsizes != 0) {
    limits.page_bytes = uint64_t{1} << std::countr_zero(head.iova_pgsizes);
  }
  const uint32_t first =
      (head.flags & VFIO_IOMMU_INFO_CAPS) != 0 ? head.cap_offset : 0;
  ForEachCapability(info, first, [&](uint16_t id, size_t offset) {
    if (id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) {
      vfio_iommu_type1_info_cap_iova_range ranges{};
      if (!ReadAt(info, offset, &ranges)) {
        return;
      }
      for (uint32_t i = 0; i < ranges.nr_iovas; ++i) {
        vfio_iova_range range{};
        if (!ReadAt(info, offset + sizeof(ranges) + i * sizeof(range),
                    &range)) {
          return;
        }
        limits.usable.push_back({.first = range.start, .last = range.end});
      }
    } else if (id == VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL) {
      vfio_iommu_type1_info_dma_avail avail{};
      if (ReadAt(info, offset, &avail)) {
        limits.entries = avail.avail;
      }
    }
  });
  if (limits.usable.empty()) {
    limits.usable.push_back(kCommonRange);
  }
  return limits;
}

class Type1 final : public Iommu {
 public:
  explicit Type1(Kernel& kernel) : kernel_(kernel) {}

  int device_fd() const override { return device_.fd(); }
  const IommuLimits& limits() const override { return limits_; }
  const char* kind() const override { return "group"; }

  Result<bool> Map(void* address, uint64_t bytes, uint64_t iova,
                   bool writable) override {
    vfio_iommu_type1_dma_map map{};
    map.argsz = sizeof(map);
    map.flags = VFIO_DMA_MAP_FLAG_READ |
                (writable ? uint32_t{VFIO_DMA_MAP_FLAG_WRITE} : 0u);
    map.vaddr = reinterpret_cast<uintptr_t>(address);
    map.iova = iova;
    map.size = bytes;
    return Done(kernel_.Control(container_.fd(), VFIO_IOMMU_MAP_DMA, &map));
  }

  Result<bool> Unmap(uint64_t iova, uint64_t bytes) override {
    vfio_iommu_type1_dma_unmap unmap{};
    unmap.argsz = sizeof(unmap);
    unmap.iova = iova;
    unmap.size = bytes;
    const Result<int> done =
        kernel_.Control(container_.fd(), VFIO_IOMMU_UNMAP_DMA, &unmap);
    if (done.ok() && unmap.size != bytes) {
      return Errno{EIO};
    }
    return Done(done);
  }

  Result<bool> Attach(const PciFunction& function, const std::string& vf_token,
                      std::string& message);

 private:
  static Result<bool> Done(const Result<int>& answer) {
    if (!answer.ok()) {
      return answer.error();
    }
    return true;
  }

  // The steps of `Attach`, in this order.
  Result<bool> OpenContainer(std::string& message);
  Result<bool> OpenGroup(const std::string& path, std::string& message);
  Result<bool> SetIommu(const std::string& group, std::string& message);
  Result<bool> TakeDevice(const std::string& group, const std::string& name,
                          const std::string& vf_token, std::string& message);

  Kernel& kernel_;
  IommuLimits limits_;
  // Closed from the last: device, group, container.
  KernelFd container_;
  KernelFd group_;
  KernelFd device_;
};

Errno Explain(std::string& message, const std::string& object, Errno error,
              const std::string& cure) {
  message = object + ": " + std::strerror(static_cast<int>(error)) + cure;
  return error;
}

Result<bool> Type1::OpenGroup(const std::string& path, std::string& message) {
  const Result<int> group = kernel_.Open(path);
  if (!group.ok()) {
    const Errno error = group.error();
    return Explain(message, path, error,
                   error == Errno{EBUSY}
                       ? "; another process, or this one, has a function "
                         "of this IOMMU group open"
                   : error == Errno{EACCES}
                       ? "; give the file to this user (chown), or run as root"
                       : "; is vfio-pci bound to the function (heddle bind)?");
  }
  group_ = KernelFd(kernel_, group.value());
  vfio_group_status status{};
  status.argsz = sizeof(status);
  const Result<int> asked =
      kernel_.Control(group_.fd(), VFIO_GROUP_GET_STATUS, &status);
  if (!asked.ok()) {
    return Explain(message, path + ": VFIO_GROUP_GET_STATUS", asked.error(),
                   "");
  }
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    return Explain(message, path, Errno{EPERM},
                   "; not all functions of this IOMMU group are bound to "
                   "vfio-pci or to no driver");
  }
  return true;
}

Result<bool> Type1::OpenContainer(std::string& message) {
  const Result<int> container = kernel_.Open(kContainer);
  if (!container.ok()) {
    return Explain(message, kContainer, container.error(),
                   "; modprobe vfio-pci");
  }
  container_ = KernelFd(kernel_, container.value());
  const Result<int> version =
      kernel_.Control(container_.fd(), VFIO_GET_API_VERSION, nullptr);
  if (!version.ok() || version.value() != VFIO_API_VERSION) {
    return Explain(message, std::string(kContainer) + ": VFIO_GET_API_VERSION",
                   version.ok() ? Errno{EPROTO} : version.error(), "");
  }
  return true;
}

Result<bool> Type1::SetIommu(const std::string& group, std::string& message) {
  int container = container_.fd();
  Result<int> done =
      kernel_.Control(group_.fd(), VFIO_GROUP_SET_CONTAINER, &container);
  if (!done.ok()) {
    return Explain(message, group + ": VFIO_GROUP_SET_CONTAINER", done.error(),
                   "");
  }
  // The value travels as the pointer.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* const kind = reinterpret_cast<void*>(uintptr_t{VFIO_TYPE1v2_IOMMU});
  done = kernel_.Control(container_.fd(), VFIO_SET_IOMMU, kind);
  if (!done.ok()) {
    return Explain(message,
                   std::string(kContainer) + ": VFIO_SET_IOMMU (type 1 v2)",
                   done.error(),
                   done.error() == Errno{EPERM}
                       ? "; the platform has no interrupt remapping"
                       : "");
  }
  std::vector<std::byte> info;
  const Result<bool> read = ReadInfo<vfio_iommu_type1_info>(
      kernel_, container_.fd(), VFIO_IOMMU_GET_INFO, {}, info);
  if (!read.ok()) {
    return Explain(message, std::string(kContainer) + ": VFIO_IOMMU_GET_INFO",
                   read.error(), "");
  }
  limits_ = LimitsFrom(info);
  return true;
}

Result<bool> Type1::TakeDevice(const std::string& group,
                               const std::string& name,
                               const std::string& vf_token,
                               std::string& message) {
  std::string request = name;
  if (!vf_token.empty()) {
    request += " vf_token=" + vf_token;
  }
  const Result<int> device =
      kernel_.Control(group_.fd(), VFIO_GROUP_GET_DEVICE_FD, request.data());
  if (!device.ok()) {
    return Explain(message, group + ": VFIO_GROUP_GET_DEVICE_FD " + name,
                   device.error(),
                   device.error() == Errno{EACCES}
                       ? "; the owner of the physical function has set a VF "
                         "token, and it is not this one"
                       : "");
  }
  device_ = KernelFd(kernel_, device.value());
  return true;
}

Result<bool> Type1::Attach(const PciFunction& function,
                           const std::string& vf_token, std::string& message) {
  const std::string name = function.address.ToString();
  if (!function.iommu_group) {
    return Explain(message, name, Errno{ENODEV},
                   "; it is in no IOMMU group: turn the IOMMU on "
                   "(intel_iommu=on), bind it to vfio-pci");
  }
  const std::string group =
      "/dev/vfio/" + std::to_string(*function.iommu_group);
  Result<bool> done = OpenContainer(message);
  if (done.ok()) {
    done = OpenGroup(group, message);
  }
  if (done.ok()) {
    done = SetIommu(group, message);
  }
  return done.ok() ? TakeDevice(group, name, vf_token, message) : done;
}

}  // namespace

Result<std::unique_ptr<Iommu>> AttachGroup(Kernel& kernel,
                                           const PciFunction& function,
                                           const std::string& vf_token,
                                           std::string& message) {
  auto iommu = std::make_unique<Type1>(kernel);
  const Result<bool> attached = iommu->Attach(function, vf_token, message);
  if (!attached.ok()) {
    return attached.error();
  }
  return std::unique_ptr<Iommu>(std::move(iommu));
}

}  // namespace heddle::vfio
