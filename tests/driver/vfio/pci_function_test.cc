// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/pci_function.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace heddle::vfio {
namespace {

namespace fs = std::filesystem;

// A sysfs of files: nothing happens when they are written.
class SysfsTest : public testing::Test {
 protected:
  SysfsTest()
      : root_(fs::path(testing::TempDir()) /
              ("sysfs." + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "bus/pci/drivers");
    fs::create_directories(root_ / "bus/pci/devices");
    Write("bus/pci/drivers_probe", "");
  }
  ~SysfsTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string Read(const std::string& path) {
    std::ifstream stream(root_ / path);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void AddDriver(const std::string& name) {
    Write("bus/pci/drivers/" + name + "/unbind", "");
  }
  void Add(const std::string& bdf, const std::string& vendor,
           const std::string& device, const std::string& driver = "") {
    const std::string path = "bus/pci/devices/" + bdf;
    Write(path + "/vendor", vendor + "\n");
    Write(path + "/device", device + "\n");
    Write(path + "/numa_node", "-1\n");
    Write(path + "/driver_override", "(null)\n");
    if (!driver.empty()) {
      fs::create_directory_symlink("../../drivers/" + driver,
                                   root_ / path / "driver");
    }
  }

  const fs::path root_;
  std::string message_;
};

TEST(PciAddressTest, IsReadAndWritten) {
  const auto address = PciAddress::Parse("0000:3b:1f.7");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->bus, 0x3b);
  EXPECT_EQ(address->device, 0x1f);
  EXPECT_EQ(address->function, 7);
  EXPECT_EQ(address->ToString(), "0000:3b:1f.7");
  EXPECT_EQ(PciAddress::Parse("3b:1f.7"), address);
  EXPECT_EQ(PciAddress::Parse("10000:00:02.0")->ToString(), "10000:00:02.0");
  for (const char* bad : {"", ":", "0000:00:00", "0000:00:20.0", "0000:00:1f.8",
                          "00:00:00:00.0", "0000:1g:00.0", "0000:00:00.0 ",
                          "-1:00:00.0", "0000:100:00.0", "00.0:00"}) {
    EXPECT_FALSE(PciAddress::Parse(bad)) << bad;
  }
}

TEST_F(SysfsTest, FunctionsOfTheIdentityAreFoundByAddress) {
  AddDriver("vfio-pci");
  Add("0000:02:00.1", "0x1234", "0x4844");
  Add("0000:02:00.0", "0x1234", "0x4844", "vfio-pci");
  Add("0000:01:00.0", "0x8086", "0x4844");
  const std::string path = "bus/pci/devices/0000:02:00.0/";
  Write(path + "numa_node", "1\n");
  fs::create_directories(root_ / (path + "vfio-dev/vfio4"));
  fs::create_directory_symlink("../../../kernel/iommu_groups/17",
                               root_ / (path + "iommu_group"));
  fs::create_directory_symlink("../0000:02:00.0",
                               root_ / "bus/pci/devices/0000:02:00.1/physfn");

  const auto found = Sysfs(root_).Find({.vendor = 0x1234, .device = 0x4844});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].address.ToString(), "0000:02:00.0");
  EXPECT_TRUE(found[0].bound());
  EXPECT_EQ(found[0].iommu_group, 17u);
  EXPECT_EQ(found[0].numa_node, 1);
  EXPECT_EQ(found[0].vfio_device, "vfio4");
  EXPECT_FALSE(found[0].physical_function);
  EXPECT_FALSE(found[1].bound());
  EXPECT_EQ(found[1].driver, "");
  EXPECT_EQ(found[1].iommu_group, std::nullopt);
  EXPECT_EQ(found[1].numa_node, -1);
  EXPECT_EQ(found[1].physical_function, found[0].address);
}

TEST_F(SysfsTest, MachineWithoutPciHasNone) {
  EXPECT_TRUE(Sysfs(root_ / "nowhere").Find({}).empty());
  const auto looked = Sysfs(root_).Look({.bus = 9});
  ASSERT_FALSE(looked.ok());
  EXPECT_EQ(looked.error(), Errno{ENODEV});
}

TEST_F(SysfsTest, BindingAsksForVfioAloneAndNoticesARefusal) {
  AddDriver("vfio-pci");
  AddDriver("mlx5_core");
  Add("0000:02:00.0", "0x1234", "0x4844", "mlx5_core");
  const auto bound = Sysfs(root_).Bind({.bus = 2}, message_);
  EXPECT_EQ(Read("bus/pci/devices/0000:02:00.0/driver_override").substr(0, 8),
            "vfio-pci");
  EXPECT_EQ(Read("bus/pci/drivers/mlx5_core/unbind"), "0000:02:00.0");
  EXPECT_EQ(Read("bus/pci/drivers_probe"), "0000:02:00.0");
  // This kernel did nothing.
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error(), Errno{ENXIO});
  EXPECT_NE(message_.find("0000:02:00.0: vfio-pci did not bind to it"),
            std::string::npos);
}

TEST_F(SysfsTest, BindingTwiceChangesNothing) {
  AddDriver("vfio-pci");
  Add("0000:02:00.0", "0x1234", "0x4844", "vfio-pci");
  EXPECT_TRUE(Sysfs(root_).Bind({.bus = 2}, message_).ok());
  EXPECT_EQ(Read("bus/pci/drivers_probe"), "");
}

TEST_F(SysfsTest, BindingNamesWhatIsMissing) {
  Result<bool> bound = Sysfs(root_).Bind({.bus = 7}, message_);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error(), Errno{ENODEV});
  EXPECT_EQ(message_, "0000:07:00.0: no such PCI function; lspci lists them");

  Add("0000:02:00.0", "0x1234", "0x4844");
  bound = Sysfs(root_).Bind({.bus = 2}, message_);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error(), Errno{ENXIO});
  EXPECT_NE(message_.find("modprobe vfio-pci"), std::string::npos);

  AddDriver("vfio-pci");
  fs::remove(root_ / "bus/pci/devices/0000:02:00.0/driver_override");
  fs::create_directory(root_ / "bus/pci/devices/0000:02:00.0/driver_override");
  bound = Sysfs(root_).Bind({.bus = 2}, message_);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error(), Errno{EISDIR});
  EXPECT_NE(message_.find("driver_override: cannot be written"),
            std::string::npos);
}

TEST_F(SysfsTest, UnbindingTakesItFromVfioOnly) {
  AddDriver("vfio-pci");
  AddDriver("nvme");
  Add("0000:02:00.0", "0x1234", "0x4844", "vfio-pci");
  Add("0000:03:00.0", "0x1234", "0x4844", "nvme");
  EXPECT_TRUE(Sysfs(root_).Unbind({.bus = 2}, message_).ok());
  EXPECT_EQ(Read("bus/pci/drivers/vfio-pci/unbind"), "0000:02:00.0");
  EXPECT_EQ(Read("bus/pci/devices/0000:02:00.0/driver_override").front(), '\n');

  const auto unbound = Sysfs(root_).Unbind({.bus = 3}, message_);
  ASSERT_FALSE(unbound.ok());
  EXPECT_EQ(unbound.error(), Errno{EBUSY});
  EXPECT_EQ(message_, "0000:03:00.0: driven by nvme, not by vfio-pci");
}

}  // namespace
}  // namespace heddle::vfio
