// SPDX-License-Identifier: Apache-2.0
#include "driver/control/function.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "driver/vfio/opening_turn.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/driver/vfio/fake_kernel.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using vfio::FakeKernel;

std::string Hex(uint16_t value) {
  char text[8];
  std::snprintf(text, sizeof(text), "0x%04x", value);
  return text;
}

// One kernel with one function of ours, and a sysfs of files that shows it
// among others.
class FunctionTest : public testing::Test {
 protected:
  FunctionTest()
      : root_(fs::path(testing::TempDir()) /
              ("functions." + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "bus/pci/drivers/vfio-pci");
    fs::create_directories(root_ / "kernel/iommu_groups/3");
    Add(kName, contract::kPciVendor, contract::kPciDevice);
    Bind(kName);
    access_.kernel = &kernel_;
    access_.sysfs = vfio::Sysfs(root_);
    Set<uint32_t>(contract::kBar0MagicOffset, contract::kBar0MagicReset);
    Set<uint32_t>(contract::kBar0VersionOffset,
                  contract::kContractMajor << contract::kBar0VersionMajorLsb);
    Set<uint32_t>(contract::kBar0DeviceStatusOffset,
                  contract::kBar0DeviceStatusReadyMask);
  }
  ~FunctionTest() override { fs::remove_all(root_); }

  fs::path Path(const std::string& name) const {
    return root_ / "bus/pci/devices" / name;
  }
  void Add(const std::string& name, uint16_t vendor, uint16_t device) {
    fs::create_directories(Path(name));
    std::ofstream(Path(name) / "vendor") << Hex(vendor);
    std::ofstream(Path(name) / "device") << Hex(device);
  }
  void Bind(const std::string& name) {
    fs::create_directory_symlink("../../drivers/vfio-pci",
                                 Path(name) / "driver");
    fs::create_directory_symlink("../../../../kernel/iommu_groups/3",
                                 Path(name) / "iommu_group");
  }
  template <typename T>
  void Set(uint32_t offset, T value) {
    std::memcpy(kernel_.bar(0).data() + offset, &value, sizeof(value));
  }
  Errno ErrorOf(const std::string& name) {
    message_.clear();
    const auto opened = OpenFunction(name, access_, message_);
    return opened.ok() ? Errno{0} : opened.error();
  }
  bool Says(const std::string& text) const {
    return message_.find(text) != std::string::npos;
  }

  static constexpr const char* kName = "0000:01:00.0";
  const fs::path root_;
  FakeKernel kernel_;
  FunctionAccess access_;
  std::string message_;
};

TEST_F(FunctionTest, PhysicalAndVirtualOnesAreFoundByAddress) {
  Add("0000:01:00.2", contract::kPciVendor, contract::kPciVirtualDevice);
  Add("0000:00:01.0", contract::kPciVendor, contract::kPciDevice);
  Add("0000:02:00.0", 0x8086, contract::kPciDevice);
  const auto found = FindFunctions(access_.sysfs);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].address.ToString(), "0000:00:01.0");
  EXPECT_EQ(found[1].address.ToString(), kName);
  EXPECT_EQ(found[2].address.ToString(), "0000:01:00.2");
}

TEST_F(FunctionTest, OpenedOneIsReadyAndNamedByItsAddress) {
  Set<uint64_t>(contract::kBar0CapabilityOffset, 0x1234);
  {
    const auto opened = OpenFunction("01:00.0", access_, message_);
    ASSERT_TRUE(opened.ok()) << message_;
    EXPECT_EQ(opened.value().device->name(), kName);
    EXPECT_EQ(opened.value().info.capability, 0x1234u);
  }
  EXPECT_EQ(kernel_.open_files(), 0u);
}

TEST_F(FunctionTest, RefusalsNameObjectCauseAndCure) {
  EXPECT_EQ(ErrorOf("eth0"), Errno{EINVAL});
  EXPECT_TRUE(Says("eth0: not a PCI address; specify one like 0000:01:00.0"))
      << message_;
  EXPECT_EQ(ErrorOf("0000:07:00.0"), Errno{ENODEV});
  EXPECT_TRUE(Says("0000:07:00.0: no such PCI function; lspci -d 1234:4844"))
      << message_;
  Add("0000:02:00.0", 0x8086, 0x1572);
  EXPECT_EQ(ErrorOf("0000:02:00.0"), Errno{ENODEV});
  EXPECT_TRUE(Says("0000:02:00.0: is a 8086:1572, not a Heddle NIC"))
      << message_;
  Add("0000:03:00.0", contract::kPciVendor, contract::kPciDevice);
  EXPECT_EQ(ErrorOf("0000:03:00.0"), Errno{ENODEV});
  EXPECT_TRUE(
      Says("driven by nobody, not by vfio-pci; heddle bind "
           "0000:03:00.0"))
      << message_;
  fs::remove(Path(kName) / "iommu_group");
  EXPECT_EQ(ErrorOf(kName), Errno{ENODEV});
  EXPECT_TRUE(Says("no IOMMU group: turn the IOMMU on")) << message_;
}

TEST_F(FunctionTest, KernelsRefusalsNameTheCure) {
  const struct {
    int call;
    Errno error;
    const char* cure;
  } cases[] = {
      {0, Errno{ENOENT}, "/dev/vfio/vfio: No such file or directory; modprobe"},
      {2, Errno{EACCES}, "/dev/vfio/3: Permission denied; give the file"},
      {2, Errno{EBUSY}, "another process, or this one, has a function of this"},
  };
  for (const auto& [call, error, cure] : cases) {
    kernel_.FailCall(call, error);
    EXPECT_EQ(ErrorOf(kName), error);
    EXPECT_TRUE(Says(cure)) << message_;
    EXPECT_EQ(kernel_.open_files(), 0u);
  }
}

TEST_F(FunctionTest, OneThatIsNotReadyIsNotHandedOut) {
  Set<uint32_t>(contract::kBar0DeviceStatusOffset,
                contract::kBar0DeviceStatusFatalMask);
  EXPECT_EQ(ErrorOf(kName), Errno{EIO});
  EXPECT_TRUE(Says("0000:01:00.0: its firmware stopped")) << message_;
  EXPECT_EQ(kernel_.open_files(), 0u);
}

TEST_F(FunctionTest, OneProcessAtATimeHasTheTurn) {
  const auto address = *vfio::PciAddress::Parse(kName);
  {
    const vfio::OpeningTurn first(access_.sysfs, address);
    EXPECT_TRUE(first.taken());
    // A lock of another description, as another process has.
    const vfio::OpeningTurn second(access_.sysfs, address,
                                   std::chrono::milliseconds(5));
    EXPECT_FALSE(second.taken());
  }
  EXPECT_TRUE(vfio::OpeningTurn(access_.sysfs, address).taken());
}

TEST_F(FunctionTest, RefusedMappingIsExplained) {
  kernel_.lock_limit = 1 << 20;
  const auto opened = OpenFunction(kName, access_, message_);
  ASSERT_TRUE(opened.ok()) << message_;
  const Device& device = *opened.value().device;
  EXPECT_NE(device.Explain(Errno{ENOSPC}, 4096).find("0 mappings exist"),
            std::string::npos);
  EXPECT_EQ(device.Explain(Errno{EFAULT}, 4096),
            "mapping 4096 bytes for the device: Bad address");
}

}  // namespace
}  // namespace heddle
