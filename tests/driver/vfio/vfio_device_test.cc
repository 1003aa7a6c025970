// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/vfio_device.h"

#include <gtest/gtest.h>
#include <linux/vfio.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "driver/base/mmio.h"
#include "driver/vfio/uapi.h"
#include "tests/driver/vfio/fake_kernel.h"

namespace heddle::vfio {
namespace {

class VfioDeviceTest : public testing::TestWithParam<Attachment> {
 protected:
  Result<std::unique_ptr<VfioDevice>> Open(
      const PciFunction& function = FakeKernel::Function()) {
    return VfioDevice::Open(kernel_, function,
                            {.attachment = GetParam(), .vf_token = token_},
                            message_);
  }
  // Opens, and fails the test if it does not.
  std::unique_ptr<VfioDevice> Opened() {
    auto opened = Open();
    EXPECT_TRUE(opened.ok()) << message_;
    return opened.ok() ? std::move(opened.value()) : nullptr;
  }
  void ExpectNothingLeft() const {
    EXPECT_EQ(kernel_.open_files(), 0u);
    EXPECT_EQ(kernel_.mapped_files(), 0u);
    EXPECT_EQ(kernel_.dma_mappings(), 0u);
  }
  static bool WaitFor(int fd) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    constexpr int kLimitMs = 20'000;
    return poll(&entry, 1, kLimitMs) == 1;
  }
  // The other thread has to get there.
  static void WaitFailed(const Device& device) {
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!device.failed() && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(device.failed());
  }

  FakeKernel kernel_;
  std::string token_;
  std::string message_;
};

TEST_P(VfioDeviceTest, OpensAndLeavesNothingBehind) {
  {
    const auto device = Opened();
    ASSERT_NE(device, nullptr);
    EXPECT_EQ(device->name(), "0000:01:00.0");
    EXPECT_TRUE(kernel_.bus_master());
    EXPECT_FALSE(device->failed());
    // MSI-X, error and request.
    EXPECT_EQ(kernel_.interrupts_on(), kernel_.vectors + 2);
    static char memory[10000];
    ASSERT_TRUE(device->Map(memory, sizeof(memory)).ok());
    EXPECT_EQ(kernel_.dma_mappings(), 1u);
  }
  ExpectNothingLeft();
  EXPECT_EQ(kernel_.interrupts_on(), 0u);
  EXPECT_FALSE(kernel_.bus_master());
}

TEST_P(VfioDeviceTest, EachCallFailingInTurnIsAClearErrorAndLeaksNothing) {
  int failures = 0;
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 200);
    kernel_.FailCall(n, Errno{EREMOTEIO});
    message_.clear();
    const auto opened = Open();
    if (kernel_.failed_call().empty()) {
      EXPECT_TRUE(opened.ok()) << message_;
      break;  // It makes no more than `n` calls.
    }
    ++failures;
    EXPECT_FALSE(opened.ok()) << kernel_.failed_call();
    EXPECT_NE(message_.find(": "), std::string::npos)
        << kernel_.failed_call() << ": " << message_;
    SCOPED_TRACE(kernel_.failed_call());
    ExpectNothingLeft();
    EXPECT_EQ(kernel_.interrupts_on(), 0u);
  }
  EXPECT_GT(failures, 20);
}

TEST_P(VfioDeviceTest, EachCallFailingWhileItClosesLeaksNothing) {
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 100);
    auto device = Opened();
    ASSERT_NE(device, nullptr);
    static char memory[10000];
    ASSERT_TRUE(device->Map(memory, sizeof(memory)).ok());
    kernel_.FailCall(n, Errno{EIO});
    device.reset();
    ExpectNothingLeft();
    if (kernel_.failed_call().empty()) {
      break;
    }
  }
}

TEST_P(VfioDeviceTest, FunctionThatIsGoneFails) {
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  std::memset(kernel_.bar(0).data(), 0xff, kernel_.bar(0).size());
  WaitFailed(*device);
  EXPECT_NE(device->failure().find("does not answer"), std::string::npos)
      << device->failure();
  EXPECT_FALSE(kernel_.bus_master());
  EXPECT_TRUE(WaitFor(device->interrupt_fd(0)));
}

TEST_P(VfioDeviceTest, RegistersAreThoseOfBar0) {
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  const uint32_t slow = kernel_.slow_accesses();
  device->WriteRegister64(0x40, 0x1122334455667788);
  EXPECT_EQ(device->ReadRegister64(0x40), 0x1122334455667788u);
  EXPECT_EQ(device->ReadRegister32(0x44), 0x11223344u);
  device->WriteRegister32(0x40, 0xffffffff);
  uint64_t word = 0;
  std::memcpy(&word, kernel_.bar(0).data() + 0x40, sizeof(word));
  EXPECT_EQ(word, 0x11223344ffffffffu);
  EXPECT_EQ(kernel_.slow_accesses(), slow);
}

TEST_P(VfioDeviceTest, DoorbellIsAStoreIntoBar2) {
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  const Doorbell doorbell = device->doorbell(3 * contract::kDoorbellPageBytes);
  EXPECT_EQ(doorbell.notify, nullptr);
  Ring(doorbell, 77);
  uint64_t word = 0;
  std::memcpy(&word, kernel_.bar(2).data() + 3 * contract::kDoorbellPageBytes,
              sizeof(word));
  EXPECT_EQ(word, 77u);
  const PushWindow window = device->push_window(contract::kPushWindowOffset);
  EXPECT_NE(window.address, nullptr);
  EXPECT_FALSE(window.gathers);
}

TEST_P(VfioDeviceTest, DoorbellOutsideTheMappedAreasGoesThroughTheKernel) {
  constexpr uint64_t kPage = contract::kDoorbellPageBytes;
  kernel_.mappable_doorbells = {{0, 2 * kPage - 1}, {4 * kPage, 8 * kPage - 1}};
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(kernel_.mapped_files(), 3u);  // BAR0 and both areas.
  for (const uint32_t page : {1u, 3u, 4u, 9u}) {
    const Doorbell doorbell =
        device->doorbell(page * contract::kDoorbellPageBytes);
    EXPECT_EQ(doorbell.notify == nullptr, page == 1 || page == 4) << page;
    Ring(doorbell, page);
    uint64_t word = 0;
    std::memcpy(&word, kernel_.bar(2).data() + page * kPage, sizeof(word));
    EXPECT_EQ(word, page);
  }
  EXPECT_EQ(device->push_window(3 * kPage).address, nullptr);
}

TEST_P(VfioDeviceTest, EachVectorHasItsEventfd) {
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  ASSERT_TRUE(kernel_.Raise(VFIO_PCI_MSIX_IRQ_INDEX, 5));
  EXPECT_TRUE(WaitFor(device->interrupt_fd(5)));
  EXPECT_NE(device->interrupt_fd(4), device->interrupt_fd(5));
  EXPECT_EQ(device->interrupt_fd(kernel_.vectors), -1);
  uint64_t times = 0;
  EXPECT_EQ(read(device->interrupt_fd(4), &times, sizeof(times)), -1);
}

TEST_P(VfioDeviceTest, PcieErrorFailsTheDeviceAndWakesSleepers) {
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  ASSERT_TRUE(kernel_.Raise(VFIO_PCI_ERR_IRQ_INDEX, 0));
  WaitFailed(*device);
  EXPECT_TRUE(WaitFor(device->interrupt_fd(2)));
  EXPECT_EQ(device->failure().rfind(
                "0000:01:00.0: the kernel reports a PCIe error", 0),
            0u)
      << device->failure();
}

TEST_P(VfioDeviceTest, UnplugFailsTheDevice) {
  auto device = Opened();
  ASSERT_NE(device, nullptr);
  ASSERT_TRUE(kernel_.Raise(VFIO_PCI_REQ_IRQ_INDEX, 0));
  WaitFailed(*device);
  EXPECT_NE(device->failure().find("wants the function back"),
            std::string::npos);
  device.reset();
  ExpectNothingLeft();
}

TEST_P(VfioDeviceTest, MappingThatDoesNotEndStopsTheFunction) {
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  static char memory[100];
  const Iova iova = device->Map(memory, sizeof(memory)).value();
  kernel_.unmap_hangs_on = true;
  device->Unmap(iova, sizeof(memory));
  EXPECT_TRUE(device->failed());
  EXPECT_FALSE(kernel_.bus_master());
}

TEST_P(VfioDeviceTest, ResetComesBackAsBusMaster) {
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  ASSERT_TRUE(device->Reset().ok());
  EXPECT_EQ(kernel_.resets(), 1u);
  EXPECT_TRUE(kernel_.bus_master());
  kernel_.FailControl(VFIO_DEVICE_RESET, Errno{EAGAIN});
  EXPECT_EQ(device->Reset().error(), Errno{EIO});
}

TEST_P(VfioDeviceTest, FunctionWithoutVectorsStillOpens) {
  kernel_.vectors = 0;
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->interrupt_fd(0), -1);
}

TEST_P(VfioDeviceTest, BarThatIsTooSmallIsAnotherNic) {
  kernel_.bar2_bytes = 8192;
  const auto opened = Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{ENXIO});
  EXPECT_NE(message_.find("0000:01:00.0: region 2: has 8192 bytes"),
            std::string::npos)
      << message_;
  ExpectNothingLeft();
}

TEST_P(VfioDeviceTest, FunctionThatKeepsNoBusMasterIsRefused) {
  kernel_.keeps_command = false;
  const auto opened = Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{EIO});
  ExpectNothingLeft();
}

TEST_P(VfioDeviceTest, FunctionOfAnotherDriverIsNamedWithTheCure) {
  PciFunction function = FakeKernel::Function();
  function.driver = "mlx5_core";
  const auto opened = Open(function);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{ENODEV});
  EXPECT_EQ(message_,
            "0000:01:00.0: driven by mlx5_core, not by vfio-pci; heddle bind "
            "0000:01:00.0");
}

INSTANTIATE_TEST_SUITE_P(, VfioDeviceTest,
                         testing::Values(Attachment::kGroup,
                                         Attachment::kIommufd),
                         [](const auto& of) {
                           return of.param == Attachment::kGroup ? "Group"
                                                                 : "Iommufd";
                         });

class AttachTest : public VfioDeviceTest {};

TEST_P(AttachTest, IommufdIsPreferredWhereItIs) {
  EXPECT_STREQ(Opened()->attachment(), "iommufd");
}

TEST_P(AttachTest, KernelWithoutIommufdTakesTheGroup) {
  kernel_.iommufd = false;
  EXPECT_STREQ(Opened()->attachment(), "group");
  ExpectNothingLeft();
}

TEST_P(AttachTest, OlderKernelTakesTheGroup) {
  PciFunction function = FakeKernel::Function();
  function.vfio_device.clear();
  const auto opened = Open(function);
  ASSERT_TRUE(opened.ok()) << message_;
  EXPECT_STREQ(opened.value()->attachment(), "group");
}

TEST_P(AttachTest, TokenOfTheOwnerOpensAVirtualFunction) {
  kernel_.vf_token = "8ed6fbf5-1d0c-4d4c-9b42-3c0b2ac9ee30";
  token_ = kernel_.vf_token;
  EXPECT_STREQ(Opened()->attachment(), "group");
  EXPECT_EQ(kernel_.device_request(),
            "0000:01:00.0 vf_token=8ed6fbf5-1d0c-4d4c-9b42-3c0b2ac9ee30");
}

TEST_P(AttachTest, WrongTokenSaysSo) {
  kernel_.vf_token = "8ed6fbf5-1d0c-4d4c-9b42-3c0b2ac9ee30";
  token_ = "00000000-0000-0000-0000-000000000000";
  const auto opened = Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{EACCES});
  EXPECT_NE(message_.find("VF token"), std::string::npos) << message_;
  EXPECT_EQ(message_.find(token_), std::string::npos) << "it is a secret";
  ExpectNothingLeft();
}

TEST_P(AttachTest, GroupThatIsNotWhollyOursIsRefused) {
  kernel_.iommufd = false;
  kernel_.viable = false;
  const auto opened = Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{EPERM});
  EXPECT_NE(message_.find("not all functions"), std::string::npos);
  ExpectNothingLeft();
}

TEST_P(AttachTest, FunctionWithoutAGroupAsksForTheIommu) {
  kernel_.iommufd = false;
  PciFunction function = FakeKernel::Function();
  function.iommu_group.reset();
  const auto opened = Open(function);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(message_.find("intel_iommu=on"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(, AttachTest, testing::Values(Attachment::kAny));

TEST(AttachNamedTest, IommufdThatIsNamedIsNotReplaced) {
  FakeKernel kernel;
  std::string message;
  PciFunction function = FakeKernel::Function();
  function.vfio_device.clear();
  auto opened = VfioDevice::Open(kernel, function,
                                 {.attachment = Attachment::kIommufd}, message);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{ENOTSUP});
  opened = VfioDevice::Open(
      kernel, FakeKernel::Function(),
      {.attachment = Attachment::kIommufd, .vf_token = "a"}, message);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{ENOTSUP});
}

TEST(AttachNamedTest, FunctionThatAnotherProcessHasBoundIsBusy) {
  FakeKernel kernel;
  std::string message;
  kernel.FailControl(uapi::kDeviceBindIommufd, Errno{EINVAL});
  const auto opened =
      VfioDevice::Open(kernel, FakeKernel::Function(),
                       {.attachment = Attachment::kIommufd}, message);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{EBUSY});
  EXPECT_NE(message.find("another process uses the function"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace heddle::vfio
