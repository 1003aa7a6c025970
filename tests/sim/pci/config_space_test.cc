// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pci/config_space.h"

#include <gtest/gtest.h>
#include <linux/pci_regs.h>

#include <array>
#include <cstring>
#include <map>
#include <random>

#include "tests/seed.h"

namespace heddle::sim::pci {
namespace {

constexpr uint64_t kControlBytes = 65536;
constexpr uint64_t kDoorbellBytes = 1 << 20;

ConfigOptions Physical() {
  ConfigOptions options;
  options.vendor = 0x1234;
  options.device = 0x4844;
  options.revision = 3;
  options.subsystem = 1;
  options.bars[0] = {.bytes = kControlBytes};
  options.bars[2] = {
      .bytes = kDoorbellBytes, .wide = true, .prefetchable = true};
  options.bars[4] = {.bytes = 4096};
  options.msix_vectors = 32;
  options.msix_pending_offset = 0x800;
  options.virtual_functions = 4;
  options.virtual_device = 0x4845;
  return options;
}

ConfigOptions Virtual() {
  ConfigOptions options = Physical();
  options.virtual_functions = 0;
  return options;
}

class ConfigSpaceTest : public testing::Test {
 protected:
  template <typename T>
  T Read(uint32_t offset) {
    T value{};
    EXPECT_TRUE(
        space_.Read(offset, std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }
  template <typename T>
  ConfigSpace::Effect Write(uint32_t offset, T value) {
    ConfigSpace::Effect effect;
    EXPECT_TRUE(
        space_.Write(offset, std::as_bytes(std::span(&value, 1)), &effect));
    return effect;
  }
  // Offsets of the capabilities by id, found as a driver finds them.
  std::map<uint32_t, uint32_t> Capabilities() {
    std::map<uint32_t, uint32_t> found;
    for (uint32_t at = Read<uint8_t>(PCI_CAPABILITY_LIST); at != 0;
         at = Read<uint8_t>(at + PCI_CAP_LIST_NEXT)) {
      EXPECT_TRUE(found.emplace(Read<uint8_t>(at), at).second);
    }
    return found;
  }
  std::map<uint32_t, uint32_t> ExtendedCapabilities() {
    std::map<uint32_t, uint32_t> found;
    for (uint32_t at = PCI_CFG_SPACE_SIZE; at != 0;
         at = PCI_EXT_CAP_NEXT(Read<uint32_t>(at))) {
      EXPECT_TRUE(found.emplace(PCI_EXT_CAP_ID(Read<uint32_t>(at)), at).second);
    }
    return found;
  }

  ConfigSpace space_{Physical()};
};

TEST_F(ConfigSpaceTest, HeaderIdentifiesTheFunction) {
  EXPECT_EQ(Read<uint16_t>(PCI_VENDOR_ID), 0x1234);
  EXPECT_EQ(Read<uint16_t>(PCI_DEVICE_ID), 0x4844);
  EXPECT_EQ(Read<uint8_t>(PCI_REVISION_ID), 3);
  EXPECT_EQ(Read<uint32_t>(PCI_CLASS_REVISION) >> 8, 0x020000u);
  EXPECT_EQ(Read<uint8_t>(PCI_HEADER_TYPE), 0);
  EXPECT_EQ(Read<uint8_t>(PCI_INTERRUPT_PIN), 0);
  EXPECT_NE(Read<uint16_t>(PCI_STATUS) & PCI_STATUS_CAP_LIST, 0);
}

TEST_F(ConfigSpaceTest, CapabilitiesAreChained) {
  const auto found = Capabilities();
  EXPECT_EQ(found.size(), 3u);
  EXPECT_EQ(found.at(PCI_CAP_ID_PM), ConfigSpace::kPowerManagement);
  EXPECT_EQ(found.at(PCI_CAP_ID_EXP), ConfigSpace::kExpress);
  EXPECT_EQ(found.at(PCI_CAP_ID_MSIX), ConfigSpace::kMsix);
  const auto extended = ExtendedCapabilities();
  EXPECT_EQ(extended.size(), 2u);
  EXPECT_EQ(extended.at(PCI_EXT_CAP_ID_ERR), ConfigSpace::kErrors);
  EXPECT_EQ(extended.at(PCI_EXT_CAP_ID_SRIOV), ConfigSpace::kSriov);
}

TEST_F(ConfigSpaceTest, BarsTellTheirSizeAndKeepTheirAddress) {
  Write<uint32_t>(PCI_BASE_ADDRESS_0, UINT32_MAX);
  EXPECT_EQ(Read<uint32_t>(PCI_BASE_ADDRESS_0),
            ~(kControlBytes - 1) & UINT32_MAX);
  Write<uint32_t>(PCI_BASE_ADDRESS_2, UINT32_MAX);
  Write<uint32_t>(PCI_BASE_ADDRESS_3, UINT32_MAX);
  EXPECT_EQ(Read<uint32_t>(PCI_BASE_ADDRESS_2),
            (~(kDoorbellBytes - 1) & UINT32_MAX) |
                PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
  EXPECT_EQ(Read<uint32_t>(PCI_BASE_ADDRESS_3), UINT32_MAX);
  Write<uint32_t>(PCI_BASE_ADDRESS_2, 0xd0123456);
  Write<uint32_t>(PCI_BASE_ADDRESS_3, 0x38);
  EXPECT_EQ(Read<uint32_t>(PCI_BASE_ADDRESS_2), 0xd010000cu);
  EXPECT_EQ(Read<uint32_t>(PCI_BASE_ADDRESS_3), 0x38u);
  Write<uint32_t>(PCI_BASE_ADDRESS_5, UINT32_MAX);
  EXPECT_EQ(Read<uint32_t>(PCI_BASE_ADDRESS_5), 0u);
}

TEST_F(ConfigSpaceTest, CommandTurnsMemoryAndMasteringOn) {
  EXPECT_FALSE(space_.bus_master());
  EXPECT_FALSE(space_.memory_space());
  Write<uint16_t>(PCI_COMMAND, UINT16_MAX);
  EXPECT_TRUE(space_.bus_master());
  EXPECT_TRUE(space_.memory_space());
  EXPECT_EQ(Read<uint16_t>(PCI_COMMAND) & PCI_COMMAND_IO, 0);
}

TEST_F(ConfigSpaceTest, OnlyWholeAccessesAreTaken) {
  std::array<std::byte, 8> bytes{};
  ConfigSpace::Effect effect;
  EXPECT_FALSE(space_.Read(0, std::span(bytes).first(3)));
  EXPECT_FALSE(space_.Read(0, std::span(bytes).first(8)));
  EXPECT_FALSE(space_.Read(2, std::span(bytes).first(4)));
  EXPECT_FALSE(space_.Read(ConfigSpace::kBytes, std::span(bytes).first(1)));
  EXPECT_FALSE(space_.Read(UINT32_MAX, std::span(bytes).first(1)));
  EXPECT_FALSE(
      space_.Write(PCI_COMMAND + 1, std::span(bytes).first(2), &effect));
  EXPECT_FALSE(space_.Write(0, {}, &effect));
  EXPECT_TRUE(space_.Read(ConfigSpace::kBytes - 4, std::span(bytes).first(4)));
}

TEST_F(ConfigSpaceTest, FunctionLevelResetClearsAllButErrors) {
  Write<uint16_t>(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
  Write<uint32_t>(PCI_BASE_ADDRESS_0, 0xe0000000);
  Write<uint16_t>(ConfigSpace::kMsix + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE);
  space_.Report(ConfigSpace::Error::kPoisoned);
  const uint32_t control = ConfigSpace::kExpress + PCI_EXP_DEVCTL;
  const auto effect = Write<uint16_t>(
      control,
      static_cast<uint16_t>(Read<uint16_t>(control) | PCI_EXP_DEVCTL_BCR_FLR));
  EXPECT_TRUE(effect.reset);
  EXPECT_FALSE(space_.bus_master());
  EXPECT_FALSE(space_.msix_enabled());
  EXPECT_EQ(Read<uint32_t>(PCI_BASE_ADDRESS_0), 0u);
  EXPECT_EQ(Read<uint16_t>(control) & PCI_EXP_DEVCTL_BCR_FLR, 0);
  EXPECT_EQ(Read<uint32_t>(ConfigSpace::kErrors + PCI_ERR_UNCOR_STATUS),
            uint32_t{PCI_ERR_UNC_POISON_TLP});
}

TEST_F(ConfigSpaceTest, PowerStateIsKept) {
  Write<uint16_t>(ConfigSpace::kPowerManagement + PCI_PM_CTRL, 3);
  EXPECT_EQ(Read<uint16_t>(ConfigSpace::kPowerManagement + PCI_PM_CTRL) &
                PCI_PM_CTRL_STATE_MASK,
            3);
  Write<uint16_t>(ConfigSpace::kPowerManagement + PCI_PM_CTRL, 0);
  EXPECT_EQ(Read<uint16_t>(ConfigSpace::kPowerManagement + PCI_PM_CTRL) &
                PCI_PM_CTRL_STATE_MASK,
            0);
}

TEST_F(ConfigSpaceTest, MsixIsEnabledMaskedAndDescribed) {
  EXPECT_EQ((Read<uint16_t>(ConfigSpace::kMsix + PCI_MSIX_FLAGS) &
             PCI_MSIX_FLAGS_QSIZE) +
                1,
            32);
  EXPECT_EQ(Read<uint32_t>(ConfigSpace::kMsix + PCI_MSIX_TABLE), 4u);
  EXPECT_EQ(Read<uint32_t>(ConfigSpace::kMsix + PCI_MSIX_PBA), 0x804u);
  Write<uint16_t>(ConfigSpace::kMsix + PCI_MSIX_FLAGS, UINT16_MAX);
  EXPECT_TRUE(space_.msix_enabled());
  EXPECT_TRUE(space_.msix_masked());
  EXPECT_EQ(Read<uint16_t>(ConfigSpace::kMsix + PCI_MSIX_FLAGS) &
                PCI_MSIX_FLAGS_QSIZE,
            31);
}

TEST_F(ConfigSpaceTest, VirtualFunctionsAreTurnedOnAndOff) {
  const uint32_t number = ConfigSpace::kSriov + PCI_SRIOV_NUM_VF;
  const uint32_t control = ConfigSpace::kSriov + PCI_SRIOV_CTRL;
  EXPECT_EQ(Read<uint16_t>(ConfigSpace::kSriov + PCI_SRIOV_TOTAL_VF), 4);
  EXPECT_EQ(Read<uint16_t>(ConfigSpace::kSriov + PCI_SRIOV_VF_DID), 0x4845);
  EXPECT_EQ(Write<uint16_t>(number, 3), ConfigSpace::Effect{});
  EXPECT_EQ(space_.active_functions(), 0);
  EXPECT_TRUE(Write<uint16_t>(control, PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE)
                  .virtual_functions);
  EXPECT_EQ(space_.active_functions(), 3);
  // Their number stands while they are on.
  EXPECT_FALSE(Write<uint16_t>(number, 1).virtual_functions);
  EXPECT_EQ(space_.active_functions(), 3);
  EXPECT_TRUE(Write<uint16_t>(control, 0).virtual_functions);
  EXPECT_EQ(space_.active_functions(), 0);
  Write<uint16_t>(number, 1);
  EXPECT_EQ(Read<uint16_t>(number), 1);
}

TEST_F(ConfigSpaceTest, MoreVirtualFunctionsThanThereAreIsNone) {
  Write<uint16_t>(ConfigSpace::kSriov + PCI_SRIOV_NUM_VF, 5);
  EXPECT_EQ(Read<uint16_t>(ConfigSpace::kSriov + PCI_SRIOV_NUM_VF), 0);
}

TEST_F(ConfigSpaceTest, BarsOfVirtualFunctionsTellTheirSize) {
  const uint32_t bar = ConfigSpace::kSriov + PCI_SRIOV_BAR;
  Write<uint32_t>(bar, UINT32_MAX);
  EXPECT_EQ(Read<uint32_t>(bar), ~(kControlBytes - 1) & UINT32_MAX);
}

TEST_F(ConfigSpaceTest, ResetTurnsVirtualFunctionsOff) {
  Write<uint16_t>(ConfigSpace::kSriov + PCI_SRIOV_NUM_VF, 2);
  Write<uint16_t>(ConfigSpace::kSriov + PCI_SRIOV_CTRL, PCI_SRIOV_CTRL_VFE);
  const auto effect = Write<uint16_t>(ConfigSpace::kExpress + PCI_EXP_DEVCTL,
                                      PCI_EXP_DEVCTL_BCR_FLR);
  EXPECT_TRUE(effect.reset);
  EXPECT_TRUE(effect.virtual_functions);
  EXPECT_EQ(space_.active_functions(), 0);
}

TEST_F(ConfigSpaceTest, VirtualFunctionHasNoSriov) {
  space_ = ConfigSpace(Virtual());
  EXPECT_EQ(ExtendedCapabilities().size(), 1u);
  Write<uint16_t>(ConfigSpace::kSriov + PCI_SRIOV_NUM_VF, 2);
  Write<uint16_t>(ConfigSpace::kSriov + PCI_SRIOV_CTRL, PCI_SRIOV_CTRL_VFE);
  EXPECT_EQ(space_.active_functions(), 0);
}

TEST_F(ConfigSpaceTest, ErrorsAreReportedAsEnabledMaskedAndSevere) {
  using Error = ConfigSpace::Error;
  using Message = ConfigSpace::Message;
  const uint32_t status = ConfigSpace::kErrors + PCI_ERR_UNCOR_STATUS;
  const uint32_t mask = ConfigSpace::kErrors + PCI_ERR_UNCOR_MASK;
  const uint32_t severity = ConfigSpace::kErrors + PCI_ERR_UNCOR_SEVER;
  EXPECT_EQ(space_.Report(Error::kPoisoned), Message::kNone);
  EXPECT_EQ(Read<uint32_t>(status), uint32_t{PCI_ERR_UNC_POISON_TLP});
  Write<uint32_t>(status, UINT32_MAX);
  EXPECT_EQ(Read<uint32_t>(status), 0u);

  Write<uint16_t>(ConfigSpace::kExpress + PCI_EXP_DEVCTL,
                  PCI_EXP_DEVCTL_NFERE | PCI_EXP_DEVCTL_FERE);
  EXPECT_EQ(space_.Report(Error::kPoisoned), Message::kNonFatal);
  EXPECT_EQ(space_.Report(Error::kMalformed), Message::kFatal);
  Write<uint32_t>(severity, PCI_ERR_UNC_POISON_TLP);
  EXPECT_EQ(space_.Report(Error::kPoisoned), Message::kFatal);
  EXPECT_EQ(space_.Report(Error::kMalformed), Message::kNonFatal);
  Write<uint32_t>(mask, PCI_ERR_UNC_POISON_TLP);
  EXPECT_EQ(space_.Report(Error::kPoisoned), Message::kNone);
}

TEST_F(ConfigSpaceTest, RandomWritesNeverChangeWhatIsFixed) {
  std::mt19937 random(TestSeed());
  for (int i = 0; i < 20000; ++i) {
    const uint32_t bytes = 1u << (random() % 3);
    const uint32_t offset = static_cast<uint32_t>(random()) %
                            (i % 2 != 0 ? ConfigSpace::kBytes : 0x200) / bytes *
                            bytes;
    const auto value = static_cast<uint32_t>(random());
    ConfigSpace::Effect effect;
    ASSERT_TRUE(space_.Write(
        offset, std::as_bytes(std::span(&value, 1)).first(bytes), &effect));
  }
  EXPECT_EQ(Read<uint32_t>(PCI_VENDOR_ID), 0x48441234u);
  EXPECT_EQ(Capabilities().size(), 3u);
  EXPECT_EQ(ExtendedCapabilities().size(), 2u);
  EXPECT_LE(space_.active_functions(), 4);
}

}  // namespace
}  // namespace heddle::sim::pci
