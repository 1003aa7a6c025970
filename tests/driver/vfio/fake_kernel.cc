// SPDX-License-Identifier: Apache-2.0
#include "tests/driver/vfio/fake_kernel.h"

#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "driver/vfio/uapi.h"

namespace heddle::vfio {
namespace {

constexpr uint64_t kPage = 4096;

template <typename T>
T Load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
void Store(void* to, const T& value) {
  std::memcpy(to, &value, sizeof(value));
}

// Copies `answer` as far as the caller has room, and says how long it is.
Result<int> Reply(void* argument, std::vector<std::byte> answer) {
  const auto argsz = Load<uint32_t>(argument);
  const auto bytes = static_cast<uint32_t>(answer.size());
  Store(answer.data(), bytes);
  std::memcpy(argument, answer.data(), std::min(argsz, bytes));
  return 0;
}

template <typename T>
void Append(std::vector<std::byte>* to, const T& value) {
  const size_t at = to->size();
  to->resize(at + sizeof(value));
  std::memcpy(to->data() + at, &value, sizeof(value));
}

// As a message of the driver has it.
std::string NameOf(unsigned long request) {
  static const std::map<unsigned long, const char*> names = {
      {VFIO_GET_API_VERSION, "VFIO_GET_API_VERSION"},
      {VFIO_SET_IOMMU, "VFIO_SET_IOMMU"},
      {VFIO_IOMMU_GET_INFO, "VFIO_IOMMU_GET_INFO"},
      {VFIO_IOMMU_MAP_DMA, "VFIO_IOMMU_MAP_DMA"},
      {VFIO_IOMMU_UNMAP_DMA, "VFIO_IOMMU_UNMAP_DMA"},
      {VFIO_GROUP_GET_STATUS, "VFIO_GROUP_GET_STATUS"},
      {VFIO_GROUP_SET_CONTAINER, "VFIO_GROUP_SET_CONTAINER"},
      {VFIO_GROUP_GET_DEVICE_FD, "VFIO_GROUP_GET_DEVICE_FD"},
      {VFIO_DEVICE_GET_INFO, "VFIO_DEVICE_GET_INFO"},
      {VFIO_DEVICE_GET_REGION_INFO, "VFIO_DEVICE_GET_REGION_INFO"},
      {VFIO_DEVICE_GET_IRQ_INFO, "VFIO_DEVICE_GET_IRQ_INFO"},
      {VFIO_DEVICE_SET_IRQS, "VFIO_DEVICE_SET_IRQS"},
      {VFIO_DEVICE_RESET, "VFIO_DEVICE_RESET"},
      {uapi::kDeviceBindIommufd, "VFIO_DEVICE_BIND_IOMMUFD"},
      {uapi::kDeviceAttachIommufd, "VFIO_DEVICE_ATTACH_IOMMUFD_PT"},
      {uapi::kIoasAlloc, "IOMMU_IOAS_ALLOC"},
      {uapi::kIoasIovaRanges, "IOMMU_IOAS_IOVA_RANGES"},
      {uapi::kIoasMap, "IOMMU_IOAS_MAP"},
      {uapi::kIoasUnmap, "IOMMU_IOAS_UNMAP"},
  };
  const auto name = names.find(request);
  return name == names.end() ? std::to_string(request) : name->second;
}

}  // namespace

FakeKernel::FakeKernel() : config_(kPage), bar0_(contract::kBar0Bytes) {}

FakeKernel::~FakeKernel() {
  for (const auto& [fd, kind] : files_) {
    if (kind == Kind::kEvent) {
      close(fd);
    }
  }
}

PciFunction FakeKernel::Function() {
  PciFunction function;
  function.address = {.domain = 0, .bus = 1, .device = 0, .function = 0};
  function.driver = PciFunction::kDriver;
  function.iommu_group = 3;
  function.vfio_device = "vfio0";
  return function;
}

void FakeKernel::FailCall(int n, Errno error) {
  calls_ = 0;
  fail_at_ = n;
  fail_with_ = error;
  failed_call_.clear();
}

void FakeKernel::FailControl(unsigned long request, Errno error) {
  fail_control_[request] = error;
}

std::optional<Errno> FakeKernel::Trouble(const std::string& what) {
  if (calls_++ != fail_at_) {
    return std::nullopt;
  }
  failed_call_ = what;
  return fail_with_;
}

bool FakeKernel::bus_master() const {
  return (Load<uint16_t>(config_.data() + PCI_COMMAND) & PCI_COMMAND_MASTER) !=
         0;
}

std::span<std::byte> FakeKernel::bar(uint32_t index) {
  return index == 0 ? bar0_ : bar2_;
}

bool FakeKernel::Raise(uint32_t index, uint32_t vector) {
  const std::scoped_lock lock(mutex_);
  const auto line = lines_.find({index, vector});
  constexpr uint64_t kOne = 1;
  return line != lines_.end() &&
         write(line->second, &kOne, sizeof(kOne)) == sizeof(kOne);
}

Result<int> FakeKernel::NewFile(Kind kind) {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) {
    return Errno{errno};
  }
  files_[fd] = kind;
  return fd;
}

Result<int> FakeKernel::Open(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  if (const auto trouble = Trouble("open " + path)) {
    return *trouble;
  }
  if (path == "/dev/vfio/vfio") {
    return NewFile(Kind::kContainer);
  }
  if (path == "/dev/vfio/3") {
    return NewFile(Kind::kGroup);
  }
  if (path == "/dev/vfio/devices/vfio0") {
    return NewFile(Kind::kDevice);
  }
  if (path == "/dev/iommu" && iommufd) {
    return NewFile(Kind::kIommufd);
  }
  return Errno{ENOENT};
}

void FakeKernel::Close(int fd) {
  const std::scoped_lock lock(mutex_);
  const auto file = files_.find(fd);
  if (file == files_.end()) {
    return;
  }
  // The last file of an address space ends its mappings.
  if (file->second == Kind::kContainer || file->second == Kind::kIommufd) {
    dma_.clear();
    locked_ = 0;
    has_iommu_ = attached_ = false;
  } else if (file->second == Kind::kGroup) {
    in_container_ = false;
  } else if (file->second == Kind::kDevice) {
    lines_.clear();
    const uint16_t command = Load<uint16_t>(config_.data() + PCI_COMMAND);
    Store(config_.data() + PCI_COMMAND,
          static_cast<uint16_t>(command & ~PCI_COMMAND_MASTER));
  }
  files_.erase(file);
  close(fd);
}

Result<int> FakeKernel::CreateEvent() {
  const std::scoped_lock lock(mutex_);
  if (const auto trouble = Trouble("eventfd")) {
    return *trouble;
  }
  return NewFile(Kind::kEvent);
}

Result<int> FakeKernel::Control(int fd, unsigned long request, void* argument) {
  const std::scoped_lock lock(mutex_);
  if (const auto trouble = Trouble(NameOf(request))) {
    return *trouble;
  }
  if (const auto failing = fail_control_.find(request);
      failing != fail_control_.end()) {
    const Errno error = failing->second;
    fail_control_.erase(failing);
    return error;
  }
  const auto file = files_.find(fd);
  if (file == files_.end()) {
    return Errno{EBADF};
  }
  switch (file->second) {
    case Kind::kContainer:
      return ControlContainer(request, argument);
    case Kind::kGroup:
      return ControlGroup(request, argument);
    case Kind::kDevice:
      return ControlDevice(request, argument);
    case Kind::kIommufd:
      return ControlIommufd(request, argument);
    case Kind::kEvent:
      break;
  }
  return Errno{ENOTTY};
}

Result<int> FakeKernel::ControlContainer(unsigned long request,
                                         void* argument) {
  switch (request) {
    case VFIO_GET_API_VERSION:
      return VFIO_API_VERSION;
    case VFIO_SET_IOMMU:
      if (!in_container_ ||
          reinterpret_cast<uintptr_t>(argument) != VFIO_TYPE1v2_IOMMU) {
        return Errno{EINVAL};
      }
      has_iommu_ = true;
      return 0;
    case VFIO_IOMMU_GET_INFO:
      return has_iommu_ ? IommuInfo(argument) : Result<int>(Errno{EINVAL});
    case VFIO_IOMMU_MAP_DMA: {
      const auto map = Load<vfio_iommu_type1_dma_map>(argument);
      if (!has_iommu_ || map.argsz != sizeof(map) ||
          (map.flags & VFIO_DMA_MAP_FLAG_READ) == 0) {
        return Errno{EINVAL};
      }
      return AddDma(map.iova, map.vaddr, map.size,
                    (map.flags & VFIO_DMA_MAP_FLAG_WRITE) != 0);
    }
    case VFIO_IOMMU_UNMAP_DMA: {
      auto unmap = Load<vfio_iommu_type1_dma_unmap>(argument);
      const Result<uint64_t> removed = RemoveDma(unmap.iova, unmap.size);
      if (!removed.ok()) {
        return removed.error();
      }
      unmap.size = removed.value();
      Store(argument, unmap);
      return 0;
    }
    default:
      return Errno{ENOTTY};
  }
}

Result<int> FakeKernel::IommuInfo(void* argument) const {
  std::vector<std::byte> answer;
  vfio_iommu_type1_info head{};
  head.flags = VFIO_IOMMU_INFO_PGSIZES | VFIO_IOMMU_INFO_CAPS;
  head.iova_pgsizes = ~uint64_t{kPage - 1};
  head.cap_offset = sizeof(head);
  Append(&answer, head);
  vfio_iommu_type1_info_cap_iova_range ranges{};
  ranges.header.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE;
  ranges.header.version = 1;
  ranges.nr_iovas = static_cast<uint32_t>(usable.size());
  ranges.header.next =
      entries ? static_cast<uint32_t>(answer.size() + sizeof(ranges) +
                                      usable.size() * sizeof(vfio_iova_range))
              : 0;
  Append(&answer, ranges);
  for (const IovaRange& range : usable) {
    Append(&answer, vfio_iova_range{range.first, range.last});
  }
  if (entries) {
    vfio_iommu_type1_info_dma_avail avail{};
    avail.header.id = VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL;
    avail.header.version = 1;
    avail.avail = *entries;
    Append(&answer, avail);
  }
  return Reply(argument, std::move(answer));
}

Result<int> FakeKernel::ControlGroup(unsigned long request, void* argument) {
  switch (request) {
    case VFIO_GROUP_GET_STATUS: {
      auto status = Load<vfio_group_status>(argument);
      status.flags = viable ? uint32_t{VFIO_GROUP_FLAGS_VIABLE} : 0;
      Store(argument, status);
      return 0;
    }
    case VFIO_GROUP_SET_CONTAINER: {
      const auto container = files_.find(Load<int>(argument));
      if (container == files_.end() || container->second != Kind::kContainer) {
        return Errno{EINVAL};
      }
      in_container_ = true;
      return 0;
    }
    case VFIO_GROUP_GET_DEVICE_FD:
      device_request_ = static_cast<const char*>(argument);
      if (!has_iommu_) {
        return Errno{EINVAL};
      }
      if (device_request_ !=
          "0000:01:00.0" + (vf_token.empty() ? "" : " vf_token=" + vf_token)) {
        return Errno{vf_token.empty() ? ENODEV : EACCES};
      }
      attached_ = true;
      return NewFile(Kind::kDevice);
    default:
      return Errno{ENOTTY};
  }
}

Result<int> FakeKernel::ControlIommufd(unsigned long request, void* argument) {
  switch (request) {
    case uapi::kIoasAlloc: {
      auto alloc = Load<uapi::IoasAlloc>(argument);
      alloc.out_ioas_id = kIoas;
      Store(argument, alloc);
      return 0;
    }
    case uapi::kIoasIovaRanges: {
      auto ask = Load<uapi::IoasIovaRanges>(argument);
      const uint32_t room = ask.num_iovas;
      ask.num_iovas = static_cast<uint32_t>(usable.size());
      ask.out_iova_alignment = kPage;
      Store(argument, ask);
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      auto* out = reinterpret_cast<uapi::IovaRange*>(ask.allowed_iovas);
      for (uint32_t i = 0; i < std::min(room, ask.num_iovas); ++i) {
        out[i] = {.start = usable[i].first, .last = usable[i].last};
      }
      return room < ask.num_iovas ? Result<int>(Errno{EMSGSIZE})
                                  : Result<int>(0);
    }
    case uapi::kIoasMap: {
      const auto map = Load<uapi::IoasMap>(argument);
      if (map.ioas_id != kIoas || map.size != sizeof(map) ||
          (map.flags & uapi::kIoasMapFixedIova) == 0) {
        return Errno{EINVAL};
      }
      return AddDma(map.iova, map.user_va, map.length,
                    (map.flags & uapi::kIoasMapWriteable) != 0);
    }
    case uapi::kIoasUnmap: {
      auto unmap = Load<uapi::IoasUnmap>(argument);
      const Result<uint64_t> removed = RemoveDma(unmap.iova, unmap.length);
      if (!removed.ok()) {
        return removed.error();
      }
      if (removed.value() == 0) {
        return Errno{ENOENT};
      }
      unmap.length = removed.value();
      Store(argument, unmap);
      return 0;
    }
    default:
      return Errno{ENOTTY};
  }
}

Result<int> FakeKernel::ControlDevice(unsigned long request, void* argument) {
  if (request == uapi::kDeviceBindIommufd) {
    const auto bind = Load<uapi::DeviceBind>(argument);
    const auto file = files_.find(bind.iommufd);
    if (file == files_.end() || file->second != Kind::kIommufd) {
      return Errno{EBADF};
    }
    bound_ = true;
    return 0;
  }
  if (request == uapi::kDeviceAttachIommufd) {
    attached_ = bound_ && Load<uapi::DeviceAttach>(argument).pt_id == kIoas;
    return attached_ ? Result<int>(0) : Result<int>(Errno{EINVAL});
  }
  if (!attached_) {
    return Errno{EINVAL};
  }
  switch (request) {
    case VFIO_DEVICE_GET_INFO: {
      auto info = Load<vfio_device_info>(argument);
      info.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
      info.num_regions = VFIO_PCI_NUM_REGIONS;
      info.num_irqs = VFIO_PCI_NUM_IRQS;
      Store(argument, info);
      return 0;
    }
    case VFIO_DEVICE_GET_REGION_INFO:
      return RegionInfo(argument);
    case VFIO_DEVICE_GET_IRQ_INFO: {
      auto info = Load<vfio_irq_info>(argument);
      info.flags = VFIO_IRQ_INFO_EVENTFD;
      info.count = info.index == VFIO_PCI_MSIX_IRQ_INDEX ? vectors : 1;
      Store(argument, info);
      return 0;
    }
    case VFIO_DEVICE_SET_IRQS:
      return SetInterrupts(static_cast<const std::byte*>(argument));
    case VFIO_DEVICE_RESET:
      ++resets_;
      return 0;
    default:
      return Errno{ENOTTY};
  }
}

Result<int> FakeKernel::RegionInfo(void* argument) const {
  auto head = Load<vfio_region_info>(argument);
  head.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
  head.offset = uint64_t{head.index} << kRegionShift;
  head.cap_offset = 0;
  std::vector<std::byte> capability;
  switch (head.index) {
    case VFIO_PCI_CONFIG_REGION_INDEX:
      head.size = kPage;
      break;
    case VFIO_PCI_BAR0_REGION_INDEX:
      head.size = contract::kBar0Bytes;
      head.flags |= VFIO_REGION_INFO_FLAG_MMAP;
      break;
    case VFIO_PCI_BAR2_REGION_INDEX:
      head.size = bar2_bytes;
      head.flags |= VFIO_REGION_INFO_FLAG_MMAP;
      if (!mappable_doorbells.empty()) {
        head.flags |= VFIO_REGION_INFO_FLAG_CAPS;
        head.cap_offset = sizeof(head);
        vfio_region_info_cap_sparse_mmap sparse{};
        sparse.header.id = VFIO_REGION_INFO_CAP_SPARSE_MMAP;
        sparse.header.version = 1;
        sparse.nr_areas = static_cast<uint32_t>(mappable_doorbells.size());
        Append(&capability, sparse);
        for (const IovaRange& area : mappable_doorbells) {
          Append(&capability, vfio_region_sparse_mmap_area{
                                  area.first, area.last - area.first + 1});
        }
      }
      break;
    default:
      head.size = 0;
      break;
  }
  std::vector<std::byte> answer;
  Append(&answer, head);
  answer.insert(answer.end(), capability.begin(), capability.end());
  return Reply(argument, std::move(answer));
}

Result<int> FakeKernel::SetInterrupts(const std::byte* argument) {
  const auto set = Load<vfio_irq_set>(argument);
  const uint32_t most = set.index == VFIO_PCI_MSIX_IRQ_INDEX ? vectors : 1;
  if (set.flags == (VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER) &&
      set.count == 0) {
    std::erase_if(lines_, [&](const auto& line) {
      return line.first.first == set.index;
    });
    return 0;
  }
  if (set.flags != (VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER) ||
      set.start != 0 || set.count > most ||
      set.argsz != sizeof(set) + set.count * sizeof(int32_t)) {
    return Errno{EINVAL};
  }
  // As Linux: the machine's number of vectors, and none is on.
  if (set.index == VFIO_PCI_MSIX_IRQ_INDEX && set.count > machine_vectors) {
    return static_cast<int>(machine_vectors);
  }
  for (uint32_t i = 0; i < set.count; ++i) {
    lines_[{set.index, i}] =
        Load<int32_t>(argument + sizeof(set) + i * sizeof(int32_t));
  }
  return 0;
}

Result<int> FakeKernel::AddDma(uint64_t iova, uint64_t address, uint64_t bytes,
                               bool writable) {
  if (bytes == 0 || (iova | address | bytes) % kPage != 0) {
    return Errno{EINVAL};
  }
  const bool inside =
      std::any_of(usable.begin(), usable.end(), [&](const IovaRange& range) {
        return iova >= range.first && iova + bytes - 1 <= range.last;
      });
  if (!inside) {
    return Errno{EINVAL};
  }
  for (const auto& [other, dma] : dma_) {
    if (iova < other + dma.bytes && other < iova + bytes) {
      return Errno{EEXIST};
    }
  }
  if (entries && dma_.size() >= *entries) {
    return Errno{ENOSPC};
  }
  if (bytes > lock_limit - std::min(locked_, lock_limit)) {
    return Errno{ENOMEM};
  }
  for (uint64_t page = address; writable && page != address + bytes;
       page += kPage) {
    if (constant_pages.contains(page)) {
      return Errno{EFAULT};
    }
  }
  dma_[iova] = {.address = address, .bytes = bytes, .writable = writable};
  locked_ += bytes;
  return 0;
}

Result<uint64_t> FakeKernel::RemoveDma(uint64_t iova, uint64_t bytes) {
  if (unmap_hangs_on) {
    return Errno{EIO};
  }
  const auto found = dma_.find(iova);
  if (found == dma_.end() || found->second.bytes != bytes) {
    return uint64_t{0};
  }
  locked_ -= bytes;
  dma_.erase(found);
  return bytes;
}

std::span<std::byte> FakeKernel::RegionAt(uint64_t offset) {
  const uint64_t in_region = offset & ((uint64_t{1} << kRegionShift) - 1);
  bar2_.resize(bar2_bytes);
  std::span<std::byte> region;
  switch (offset >> kRegionShift) {
    case VFIO_PCI_CONFIG_REGION_INDEX:
      region = config_;
      break;
    case VFIO_PCI_BAR0_REGION_INDEX:
      region = bar0_;
      break;
    case VFIO_PCI_BAR2_REGION_INDEX:
      region = bar2_;
      break;
    default:
      break;
  }
  return in_region < region.size() ? region.subspan(in_region)
                                   : std::span<std::byte>();
}

Result<void*> FakeKernel::MapFile(int fd, uint64_t offset, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (const auto trouble = Trouble("mmap")) {
    return *trouble;
  }
  const std::span<std::byte> region = RegionAt(offset);
  const auto file = files_.find(fd);
  if (file == files_.end() || file->second != Kind::kDevice ||
      region.size() < bytes) {
    return Errno{EINVAL};
  }
  views_[region.data()] = bytes;
  return static_cast<void*>(region.data());
}

void FakeKernel::UnmapFile(void* address, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto view = views_.find(address);
  if (view != views_.end() && view->second == bytes) {
    views_.erase(view);
  }
}

Result<bool> FakeKernel::ReadAt(int fd, uint64_t offset,
                                std::span<std::byte> out) {
  const std::scoped_lock lock(mutex_);
  if (const auto trouble = Trouble("pread")) {
    return *trouble;
  }
  const std::span<std::byte> region = RegionAt(offset);
  if (!files_.contains(fd) || region.size() < out.size()) {
    return Errno{EINVAL};
  }
  ++slow_accesses_;
  std::copy_n(region.begin(), out.size(), out.begin());
  return true;
}

Result<bool> FakeKernel::WriteAt(int fd, uint64_t offset,
                                 std::span<const std::byte> bytes) {
  const std::scoped_lock lock(mutex_);
  if (const auto trouble = Trouble("pwrite")) {
    return *trouble;
  }
  const std::span<std::byte> region = RegionAt(offset);
  if (!files_.contains(fd) || region.size() < bytes.size()) {
    return Errno{EINVAL};
  }
  ++slow_accesses_;
  const bool command = region.data() == config_.data() + PCI_COMMAND;
  if (!command || keeps_command) {
    std::copy(bytes.begin(), bytes.end(), region.begin());
  }
  return true;
}

}  // namespace heddle::vfio
