// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pci/config_space.h"

#include <linux/pci_regs.h>

#include <algorithm>

namespace heddle::sim::pci {
namespace {

constexpr uint32_t kMostVirtual = 256;  // Functions of one bus.
// Device Control: what reports errors.
constexpr uint32_t kExpressControl = ConfigSpace::kExpress + PCI_EXP_DEVCTL;
constexpr uint32_t kSriovControl = ConfigSpace::kSriov + PCI_SRIOV_CTRL;
constexpr uint32_t kSriovNumber = ConfigSpace::kSriov + PCI_SRIOV_NUM_VF;
// All that is defined for an endpoint; those of the link are fatal.
constexpr uint32_t kUncorrectable = 0x00577010;
constexpr uint32_t kFatal = 0x00462030 & kUncorrectable;

constexpr uint32_t ExtendedHeader(uint32_t id, uint32_t version,
                                  uint32_t next) {
  return id | version << 16 | next << 20;
}

}  // namespace

ConfigSpace::ConfigSpace(const ConfigOptions& options)
    : physical_(options.virtual_functions != 0) {
  BuildHeader(options);
  BuildCapabilities(options);
  BuildErrors(physical_);
  if (physical_) {
    BuildSriov(options);
  }
  value_ = initial_;
}

void ConfigSpace::Put(uint32_t offset, uint32_t value, uint32_t bytes,
                      uint32_t writable) {
  for (uint32_t i = 0; i < bytes; ++i) {
    initial_[offset + i] = static_cast<uint8_t>(value >> (8 * i));
    writable_[offset + i] = static_cast<uint8_t>(writable >> (8 * i));
  }
}

void ConfigSpace::PutBars(uint32_t offset, const std::array<Bar, 6>& bars) {
  for (uint32_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    if (bar.bytes == 0) {
      continue;
    }
    const uint64_t address = ~(bar.bytes - 1);
    const uint32_t type =
        (bar.wide ? uint32_t{PCI_BASE_ADDRESS_MEM_TYPE_64} : 0u) |
        (bar.prefetchable ? uint32_t{PCI_BASE_ADDRESS_MEM_PREFETCH} : 0u);
    Put(offset + 4 * i, type, 4, static_cast<uint32_t>(address));
    if (bar.wide) {
      ++i;
      Put(offset + 4 * i, 0, 4, static_cast<uint32_t>(address >> 32));
    }
  }
}

void ConfigSpace::BuildHeader(const ConfigOptions& options) {
  Put(PCI_VENDOR_ID, options.vendor, 2);
  Put(PCI_DEVICE_ID, options.device, 2);
  Put(PCI_COMMAND, 0, 2,
      PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
          PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
  Put(PCI_STATUS, PCI_STATUS_CAP_LIST, 2);
  Put(PCI_CLASS_REVISION, options.class_code << 8 | options.revision, 4);
  Put(PCI_CACHE_LINE_SIZE, 0, 1, 0xff);
  PutBars(PCI_BASE_ADDRESS_0, options.bars);
  Put(PCI_SUBSYSTEM_VENDOR_ID, options.vendor, 2);
  Put(PCI_SUBSYSTEM_ID, options.subsystem, 2);
  Put(PCI_CAPABILITY_LIST, kPowerManagement, 1);
  Put(PCI_INTERRUPT_LINE, 0, 1, 0xff);
}

void ConfigSpace::BuildCapabilities(const ConfigOptions& options) {
  Put(kPowerManagement, PCI_CAP_ID_PM | kExpress << 8, 2);
  Put(kPowerManagement + PCI_PM_PMC, 3, 2);
  Put(kPowerManagement + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET, 2,
      PCI_PM_CTRL_STATE_MASK);

  Put(kExpress, PCI_CAP_ID_EXP | kMsix << 8, 2);
  Put(kExpress + PCI_EXP_FLAGS, 2, 2);  // Version 2, endpoint.
  Put(kExpress + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER | 1,
      4);  // 256-byte payloads.
  Put(kExpressControl,
      PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN |
          PCI_EXP_DEVCTL_READRQ_512B,
      2, 0x7fff);
  constexpr uint32_t kGen3x16 = 0x103;
  Put(kExpress + PCI_EXP_LNKCAP, kGen3x16, 4);
  Put(kExpress + PCI_EXP_LNKCTL, 0, 2, 0x01cb);
  Put(kExpress + PCI_EXP_LNKSTA, kGen3x16, 2);

  Put(kMsix, PCI_CAP_ID_MSIX, 2);
  Put(kMsix + PCI_MSIX_FLAGS, options.msix_vectors - 1u, 2,
      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
  Put(kMsix + PCI_MSIX_TABLE, options.msix_table_offset | options.msix_bar, 4);
  Put(kMsix + PCI_MSIX_PBA, options.msix_pending_offset | options.msix_bar, 4);
}

void ConfigSpace::BuildErrors(bool more) {
  Put(kErrors, ExtendedHeader(PCI_EXT_CAP_ID_ERR, 2, more ? kSriov : 0), 4);
  Put(kErrors + PCI_ERR_UNCOR_MASK, 0, 4, kUncorrectable);
  Put(kErrors + PCI_ERR_UNCOR_SEVER, kFatal, 4, kUncorrectable);
  for (uint32_t i = 0; i < 4; ++i) {
    clears_[kErrors + PCI_ERR_UNCOR_STATUS + i] =
        static_cast<uint8_t>(kUncorrectable >> (8 * i));
  }
}

void ConfigSpace::BuildSriov(const ConfigOptions& options) {
  const uint32_t total =
      std::min<uint32_t>(options.virtual_functions, kMostVirtual - 1);
  Put(kSriov, ExtendedHeader(PCI_EXT_CAP_ID_SRIOV, 1, 0), 4);
  Put(kSriovControl, 0, 2, PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE);
  Put(kSriov + PCI_SRIOV_INITIAL_VF, total, 2);
  Put(kSriov + PCI_SRIOV_TOTAL_VF, total, 2);
  Put(kSriovNumber, 0, 2, 0xffff);
  Put(kSriov + PCI_SRIOV_VF_OFFSET, 1, 2);
  Put(kSriov + PCI_SRIOV_VF_STRIDE, 1, 2);
  Put(kSriov + PCI_SRIOV_VF_DID, options.virtual_device, 2);
  Put(kSriov + PCI_SRIOV_SUP_PGSIZE, 0x553, 4);
  Put(kSriov + PCI_SRIOV_SYS_PGSIZE, 1, 4, 0x553);
  PutBars(kSriov + PCI_SRIOV_BAR, options.bars);
}

uint32_t ConfigSpace::Load(uint32_t offset, uint32_t bytes) const {
  uint32_t value = 0;
  for (uint32_t i = 0; i < bytes; ++i) {
    value |= uint32_t{value_[offset + i]} << (8 * i);
  }
  return value;
}

namespace {

bool IsAccess(uint32_t offset, size_t bytes) {
  return (bytes == 1 || bytes == 2 || bytes == 4) && offset % bytes == 0 &&
         offset < ConfigSpace::kBytes;
}

}  // namespace

bool ConfigSpace::Read(uint32_t offset, std::span<std::byte> out) const {
  if (!IsAccess(offset, out.size())) {
    return false;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = std::byte{value_[offset + i]};
  }
  return true;
}

bool ConfigSpace::Write(uint32_t offset, std::span<const std::byte> bytes,
                        Effect* effect) {
  *effect = {};
  if (!IsAccess(offset, bytes.size())) {
    return false;
  }
  const uint16_t active = active_functions();
  const bool fixed = active != 0;  // NumVFs, while they are on.
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto at = static_cast<uint32_t>(offset + i);
    const auto written = static_cast<uint8_t>(bytes[i]);
    uint8_t mask = writable_[at];
    if (fixed && physical_ && (at == kSriovNumber || at == kSriovNumber + 1)) {
      mask = 0;
    }
    value_[at] = static_cast<uint8_t>((value_[at] & ~mask) | (written & mask));
    value_[at] &= static_cast<uint8_t>(~(written & clears_[at]));
    // The bit reads as 0.
    if (at == kExpressControl + 1 &&
        (written & (PCI_EXP_DEVCTL_BCR_FLR >> 8)) != 0) {
      effect->reset = true;
    }
  }
  if (physical_) {
    // More than there are: none.
    if (Load(kSriovNumber, 2) > Load(kSriov + PCI_SRIOV_TOTAL_VF, 2)) {
      value_[kSriovNumber] = value_[kSriovNumber + 1] = 0;
    }
  }
  if (effect->reset) {
    Reset();
  }
  effect->virtual_functions = active_functions() != active;
  return true;
}

void ConfigSpace::Reset() {
  const std::array<uint8_t, kBytes> before = value_;
  value_ = initial_;
  constexpr uint32_t kSticky = kErrors + PCI_ERR_UNCOR_STATUS;
  constexpr uint32_t kStickyEnd = kErrors + PCI_ERR_COR_STATUS;
  std::copy(before.begin() + kSticky, before.begin() + kStickyEnd,
            value_.begin() + kSticky);
}

bool ConfigSpace::bus_master() const {
  return (Load(PCI_COMMAND, 2) & PCI_COMMAND_MASTER) != 0;
}

bool ConfigSpace::memory_space() const {
  return (Load(PCI_COMMAND, 2) & PCI_COMMAND_MEMORY) != 0;
}

bool ConfigSpace::msix_enabled() const {
  return (Load(kMsix + PCI_MSIX_FLAGS, 2) & PCI_MSIX_FLAGS_ENABLE) != 0;
}

bool ConfigSpace::msix_masked() const {
  return (Load(kMsix + PCI_MSIX_FLAGS, 2) & PCI_MSIX_FLAGS_MASKALL) != 0;
}

uint16_t ConfigSpace::active_functions() const {
  if (!physical_ || (Load(kSriovControl, 2) & PCI_SRIOV_CTRL_VFE) == 0) {
    return 0;
  }
  return static_cast<uint16_t>(Load(kSriovNumber, 2));
}

ConfigSpace::Message ConfigSpace::Report(Error error) {
  const uint32_t bit = 1u << static_cast<uint32_t>(error);
  const uint32_t at = kErrors + PCI_ERR_UNCOR_STATUS;
  const uint32_t status = Load(at, 4) | bit;
  for (uint32_t i = 0; i < 4; ++i) {
    value_[at + i] = static_cast<uint8_t>(status >> (8 * i));
  }
  if ((Load(kErrors + PCI_ERR_UNCOR_MASK, 4) & bit) != 0) {
    return Message::kNone;
  }
  const bool fatal = (Load(kErrors + PCI_ERR_UNCOR_SEVER, 4) & bit) != 0;
  const uint32_t enable = fatal ? PCI_EXP_DEVCTL_FERE : PCI_EXP_DEVCTL_NFERE;
  const bool reports = (Load(kExpressControl, 2) & enable) != 0 ||
                       (Load(PCI_COMMAND, 2) & PCI_COMMAND_SERR) != 0;
  if (!reports) {
    return Message::kNone;
  }
  return fatal ? Message::kFatal : Message::kNonFatal;
}

}  // namespace heddle::sim::pci
