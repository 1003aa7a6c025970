// SPDX-License-Identifier: Apache-2.0
// A kernel with one NIC function behind VFIO, by group and by device file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "driver/vfio/iova_allocator.h"
#include "driver/vfio/kernel.h"
#include "driver/vfio/pci_function.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::vfio {

// Keeps the rules of the real one as far as the driver can break them: order of
// the calls, alignment and overlap of mappings, limits, sizes of structures.
// Any call can be made to fail. Events are real eventfds, so that they can be
// waited for; the rest is memory.
class FakeKernel final : public Kernel {
 public:
  FakeKernel();
  ~FakeKernel() override;

  // The function that it has, as sysfs would describe it.
  static PciFunction Function();

  // The call that is the `n`-th from now on (from 0) fails with `error`.
  void FailCall(int n, Errno error);
  // The next call of this ioctl fails so.
  void FailControl(unsigned long request, Errno error);
  // Calls since the last `FailCall`.
  int calls() const { return calls_; }
  // Name of the call that was made to fail, an ioctl by its request; empty:
  // none yet.
  const std::string& failed_call() const { return failed_call_; }

  // What a driver that is gone must not leave behind.
  size_t open_files() const { return files_.size(); }
  size_t mapped_files() const { return views_.size(); }
  size_t dma_mappings() const { return dma_.size(); }
  size_t interrupts_on() const { return lines_.size(); }
  bool bus_master() const;

  struct Dma {
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool writable = false;
  };
  const std::map<uint64_t, Dma>& dma() const { return dma_; }  // By IOVA.
  uint32_t resets() const { return resets_; }
  std::span<std::byte> bar(uint32_t index);
  // Raises vector `vector` of interrupt `index`. False if it is off.
  bool Raise(uint32_t index, uint32_t vector);
  // Accesses of BARs by read or write.
  uint32_t slow_accesses() const { return slow_accesses_; }
  const std::string& device_request() const { return device_request_; }

  // Settings, before the device is opened.
  std::vector<IovaRange> usable = {
      {0x100000, 0xfedfffff}, {uint64_t{1} << 32, (uint64_t{1} << 46) - 1}};
  std::optional<uint32_t> entries = 65535;
  uint64_t lock_limit = UINT64_MAX;   // Bytes of RLIMIT_MEMLOCK.
  std::set<uint64_t> constant_pages;  // This process may not write them.
  std::vector<IovaRange> mappable_doorbells;  // Empty: all of BAR2.
  bool iommufd = true;                        // The kernel has /dev/iommu.
  bool viable = true;
  bool keeps_command = true;
  bool unmap_hangs_on = false;    // Unmapping fails from now on.
  uint32_t vectors = 8;           // Of the function.
  uint32_t machine_vectors = 64;  // That are left for it.
  uint64_t bar2_bytes = contract::kBankBytes;
  std::string vf_token;  // The one that the owner of the PF has set.

  Result<int> Open(const std::string& path) override;
  void Close(int fd) override;
  Result<int> Control(int fd, unsigned long request, void* argument) override;
  Result<void*> MapFile(int fd, uint64_t offset, size_t bytes) override;
  void UnmapFile(void* address, size_t bytes) override;
  Result<bool> ReadAt(int fd, uint64_t offset,
                      std::span<std::byte> out) override;
  Result<bool> WriteAt(int fd, uint64_t offset,
                       std::span<const std::byte> bytes) override;
  Result<int> CreateEvent() override;

 private:
  enum class Kind : uint8_t { kContainer, kGroup, kDevice, kIommufd, kEvent };

  // Whether this call has to fail, and how.
  std::optional<Errno> Trouble(const std::string& what);
  Result<int> NewFile(Kind kind);
  Result<int> ControlContainer(unsigned long request, void* argument);
  Result<int> ControlGroup(unsigned long request, void* argument);
  Result<int> ControlDevice(unsigned long request, void* argument);
  Result<int> ControlIommufd(unsigned long request, void* argument);
  Result<int> IommuInfo(void* argument) const;
  Result<int> RegionInfo(void* argument) const;
  Result<int> SetInterrupts(const std::byte* argument);
  Result<int> AddDma(uint64_t iova, uint64_t address, uint64_t bytes,
                     bool writable);
  Result<uint64_t> RemoveDma(uint64_t iova, uint64_t bytes);
  std::span<std::byte> RegionAt(uint64_t offset);

  static constexpr uint32_t kRegionShift = 40;
  static constexpr uint32_t kIoas = 7;

  mutable std::mutex
      mutex_;  // The device's own thread closes nothing, but asks.
  std::map<int, Kind> files_;
  std::map<void*, size_t> views_;
  std::map<uint64_t, Dma> dma_;
  std::map<std::pair<uint32_t, uint32_t>, int> lines_;  // {index, vector}: fd.
  std::vector<std::byte> config_;
  std::vector<std::byte> bar0_;
  std::vector<std::byte> bar2_;
  bool in_container_ = false;
  bool has_iommu_ = false;
  bool bound_ = false;
  bool attached_ = false;
  uint64_t locked_ = 0;
  uint32_t resets_ = 0;
  uint32_t slow_accesses_ = 0;
  std::string device_request_;
  int calls_ = 0;
  int fail_at_ = -1;
  Errno fail_with_{};
  std::map<unsigned long, Errno> fail_control_;
  std::string failed_call_;
};

}  // namespace heddle::vfio
