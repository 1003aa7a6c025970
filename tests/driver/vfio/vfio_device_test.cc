// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/vfio_device.h"

#include <gtest/gtest.h>
#include <linux/vfio.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
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
    EXPECT_EQ(kernel_.interrupts_on(), 0u);
    EXPECT_FALSE(kernel_.bus_master());
  }
  static bool WaitFor(int fd) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    constexpr int kLimitMs = 200'000;
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
}

TEST_P(VfioDeviceTest, EachCallFailingInTurnIsAClearErrorAndLeaksNothing) {
  std::set<std::string> failed;
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 200);
    kernel_.FailCall(n, Errno{EREMOTEIO});
    message_.clear();
    const auto opened = Open();
    const std::string call = kernel_.failed_call();
    if (call.empty()) {
      EXPECT_TRUE(opened.ok()) << message_;
      break;  // It makes no more than `n` calls.
    }
    SCOPED_TRACE(call);
    failed.insert(call);
    ASSERT_FALSE(opened.ok());
    const bool access = call == "pread" || call == "pwrite";
    EXPECT_EQ(opened.error(), Errno{access ? EIO : EREMOTEIO});
    // What it is about, which call, and why.
    EXPECT_TRUE(message_.starts_with("/dev/") ||
                message_.starts_with("0000:01:00.0: "))
        << message_;
    const std::string what = access                      ? "command register"
                             : call.starts_with("open ") ? call.substr(5)
                                                         : call;
    EXPECT_NE(message_.find(what), std::string::npos) << message_;
    EXPECT_EQ(message_.find("Remote I/O error") == std::string::npos, access)
        << message_;
    ExpectNothingLeft();
  }
  const bool group = GetParam() == Attachment::kGroup;
  std::set<std::string> all = {"mmap",
                               "eventfd",
                               "pread",
                               "pwrite",
                               "VFIO_DEVICE_GET_INFO",
                               "VFIO_DEVICE_GET_REGION_INFO",
                               "VFIO_DEVICE_GET_IRQ_INFO",
                               "VFIO_DEVICE_SET_IRQS"};
  all.merge(
      group ? std::set<std::string>{"open /dev/vfio/vfio", "open /dev/vfio/3",
                                    "VFIO_GET_API_VERSION",
                                    "VFIO_GROUP_GET_STATUS",
                                    "VFIO_GROUP_SET_CONTAINER",
                                    "VFIO_SET_IOMMU", "VFIO_IOMMU_GET_INFO",
                                    "VFIO_GROUP_GET_DEVICE_FD"}
            : std::set<std::string>{
                  "open /dev/vfio/devices/vfio0", "open /dev/iommu",
                  "VFIO_DEVICE_BIND_IOMMUFD", "IOMMU_IOAS_ALLOC",
                  "VFIO_DEVICE_ATTACH_IOMMUFD_PT", "IOMMU_IOAS_IOVA_RANGES"});
  EXPECT_EQ(failed, all);
}

// A device that is used and closed: what fails is answered where it can be,
// nothing stays behind.
TEST_P(VfioDeviceTest, EachCallFailingInUseLeaksNothing) {
  kernel_.mappable_doorbells = {{0, contract::kDoorbellPageBytes - 1}};
  std::set<std::string> failed;
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 100);
    auto device = Opened();
    ASSERT_NE(device, nullptr);
    const uint64_t free = device->address_space().free_bytes();
    alignas(4096) static char memory[8192];
    kernel_.FailCall(n, Errno{EIO});
    const Result<Iova> mapped = device->Map(memory, sizeof(memory));
    const Result<Iova> base = device->Reserve(memory, sizeof(memory));
    ASSERT_TRUE(base.ok());
    const Result<Iova> part = device->MapReserved(base.value(), memory, 4096);
    // Outside what may be mapped: by the kernel.
    Ring(device->doorbell(5 * contract::kDoorbellPageBytes), 1);
    const bool reset = device->Reset().ok();
    if (part.ok()) {
      device->Unmap(part.value(), 4096);
    }
    if (mapped.ok()) {
      device->Unmap(mapped.value(), sizeof(memory));
    }
    device->Release(base.value(), sizeof(memory));
    const std::string call = kernel_.failed_call();
    SCOPED_TRACE(call);
    if (call.empty()) {
      EXPECT_FALSE(device->failed()) << device->failure();
    } else if (call.find("UNMAP") != std::string::npos) {
      EXPECT_TRUE(device->failed());
      EXPECT_NE(device->failure().find("did not end a mapping"),
                std::string::npos);
    } else {
      EXPECT_TRUE(device->failed() || !reset || !mapped.ok() || !part.ok());
      EXPECT_EQ(device->address_space().free_bytes(), free);
      EXPECT_EQ(device->address_space().pinned_bytes(), 0u);
      EXPECT_EQ(kernel_.dma_mappings(), 0u);
    }
    device.reset();
    ExpectNothingLeft();
    if (kernel_.failed_call().empty()) {
      break;
    }
    failed.insert(kernel_.failed_call());
  }
  const bool group = GetParam() == Attachment::kGroup;
  EXPECT_EQ(failed, (std::set<std::string>{
                        group ? "VFIO_IOMMU_MAP_DMA" : "IOMMU_IOAS_MAP",
                        group ? "VFIO_IOMMU_UNMAP_DMA" : "IOMMU_IOAS_UNMAP",
                        "VFIO_DEVICE_RESET", "VFIO_DEVICE_SET_IRQS", "pread",
                        "pwrite"}));
}

TEST_P(VfioDeviceTest, MachineWithFewVectorsLeftGivesThose) {
  kernel_.machine_vectors = 3;
  const auto device = Opened();
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(kernel_.interrupts_on(), 3u + 2u);
  EXPECT_EQ(device->interrupt_fd(3), -1);
  ASSERT_TRUE(kernel_.Raise(VFIO_PCI_MSIX_IRQ_INDEX, 2));
  EXPECT_TRUE(WaitFor(device->interrupt_fd(2)));
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
  std::memcpy(&word,
              kernel_.bar(2).data() + size_t{3} * contract::kDoorbellPageBytes,
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
  EXPECT_EQ(
      device->failure().rfind(
          "0000:01:00.0: the kernel reports an uncorrected PCIe error", 0),
      0u)
      << device->failure();
}

TEST_P(VfioDeviceTest, UnplugFailsTheDevice) {
  auto device = Opened();
  ASSERT_NE(device, nullptr);
  ASSERT_TRUE(kernel_.Raise(VFIO_PCI_REQ_IRQ_INDEX, 0));
  WaitFailed(*device);
  EXPECT_NE(device->failure().find("requests the function"), std::string::npos);
  device.reset();
  ExpectNothingLeft();
}

// One that polls memory only finds out by the hook.
TEST_P(VfioDeviceTest, FailureCallsTheHookOnceFailed) {
  struct Told {
    Device* device;
    std::atomic<int> calls = 0;
    std::atomic<bool> failed = true;
  };
  auto device = Opened();
  ASSERT_NE(device, nullptr);
  Told told = {.device = device.get()};
  const FailureHook hook = {.report =
                                [](void* cookie) {
                                  auto& to = *static_cast<Told*>(cookie);
                                  to.failed = to.device->failed();
                                  ++to.calls;
                                },
                            .cookie = &told};
  device->WatchFailure(hook);
  EXPECT_EQ(told.calls, 0);
  ASSERT_TRUE(kernel_.Raise(VFIO_PCI_REQ_IRQ_INDEX, 0));
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (told.calls == 0 && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
  }
  EXPECT_EQ(told.calls, 1);
  EXPECT_TRUE(told.failed);
  device->WatchFailure(hook);
  EXPECT_EQ(told.calls, 2) << "a device that has failed";
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

TEST_P(VfioDeviceTest, DoorbellsOfAllBanksAreMapped) {
  constexpr uint32_t kBanks = 4;
  kernel_.bar2_bytes = uint64_t{kBanks} * contract::kBankBytes;
  auto opened = Open();
  ASSERT_TRUE(opened.ok()) << message_;
  const uint32_t last =
      kBanks * contract::kBankBytes - contract::kDoorbellPageBytes;
  const Doorbell doorbell = opened.value()->doorbell(last);
  ASSERT_NE(doorbell.address, nullptr);
  Ring(doorbell, 0x1234);
  uint64_t word = 0;
  std::memcpy(&word, kernel_.bar(2).data() + last, sizeof(word));
  EXPECT_EQ(word, 0x1234U);
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
  EXPECT_NE(message.find("another process, or this one, has it open"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace heddle::vfio
