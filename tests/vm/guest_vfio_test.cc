// SPDX-License-Identifier: Apache-2.0
// The driver on a real kernel: runs inside a virtual machine in which
// heddle-nicd's functions are PCI devices.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/control/admin_queue.h"
#include "driver/control/device_info.h"
#include "driver/dma/dma_buffer.h"
#include "driver/vfio/kernel.h"
#include "driver/vfio/pci_function.h"
#include "driver/vfio/vfio_device.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/system/harness/bare_endpoint.h"

namespace heddle::vfio {
namespace {

using contract::Completion;
using contract::Status;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit(30);
constexpr size_t kBufferBytes = 65536;
constexpr uint32_t kIp = 0x7f000001;  // Of heddle-nicd, whose default it is.

// A function with an endpoint and a buffer.
struct Node {
  std::unique_ptr<VfioDevice> device;
  std::unique_ptr<AdminQueue> admin;
  DmaBuffer buffer;
  std::unique_ptr<BareEndpoint> endpoint;
};

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(
      std::distance(begin(all), std::filesystem::directory_iterator()));
}

uint64_t FreeHugePages() {
  std::ifstream lines("/proc/meminfo");
  std::string name;
  uint64_t value = 0;
  while (lines >> name) {
    if (name == "HugePages_Free:" && lines >> value) {
      return value;
    }
  }
  return 0;
}

class GuestTest : public testing::Test {
 protected:
  void SetUp() override {
    functions_ = sysfs_.Find(
        {.vendor = contract::kPciVendor, .device = contract::kPciDevice});
    const auto more = sysfs_.Find({.vendor = contract::kPciVendor,
                                   .device = contract::kPciVirtualDevice});
    functions_.insert(functions_.end(), more.begin(), more.end());
    ASSERT_EQ(functions_.size(), 2u);
    for (PciFunction& function : functions_) {
      ASSERT_TRUE(sysfs_.Bind(function.address, message_).ok()) << message_;
      const auto now = sysfs_.Look(function.address);
      ASSERT_TRUE(now.ok());
      function = now.value();
      ASSERT_TRUE(function.bound());
    }
  }

  std::unique_ptr<VfioDevice> Open(size_t which) {
    auto device =
        VfioDevice::Open(Kernel::Real(), functions_[which], {}, message_);
    EXPECT_TRUE(device.ok()) << message_;
    return device.ok() ? std::move(device.value()) : nullptr;
  }

  std::unique_ptr<Node> OpenNode(size_t which, uint32_t port) {
    auto node = std::make_unique<Node>();
    node->device = Open(which);
    if (node->device == nullptr) {
      return nullptr;
    }
    const auto info = WaitReady(*node->device, kReadyLimit, message_);
    auto admin = AdminQueue::Create(*node->device);
    auto buffer = DmaBuffer::Create(*node->device, kBufferBytes);
    if (!info.ok() || !admin.ok() || !buffer.ok()) {
      ADD_FAILURE() << message_;
      return nullptr;
    }
    node->admin = std::move(admin.value());
    node->buffer = std::move(buffer.value());
    BareEndpointOptions shape;
    shape.port = port;
    node->endpoint =
        BareEndpoint::Create(*node->device, *node->admin, shape, &message_);
    EXPECT_NE(node->endpoint, nullptr) << message_;
    return node->endpoint == nullptr ? nullptr : std::move(node);
  }

  // One message from `a`'s buffer at `from` to `b`'s.
  static void Exchange(Node& a, Node& b, Iova from, uint32_t bytes) {
    ASSERT_TRUE(b.endpoint->rx().TryPush(1, b.buffer.iova(), bytes));
    b.endpoint->rx().Publish();
    const SendFields fields{.op_context = 2,
                            .header_data = 0,
                            .peer = 0,
                            .flags = contract::kTxFlagCompletion};
    ASSERT_TRUE(a.endpoint->tx().PushBuffer(fields, from, bytes));
    a.endpoint->tx().Publish();
    std::optional<Completion> sent;
    std::optional<Completion> received;
    const auto deadline = Clock::now() + kLimit;
    while ((!sent || !received) && Clock::now() < deadline) {
      sent = sent ? sent : a.endpoint->PollTx();
      received = received ? received : b.endpoint->PollRx();
    }
    ASSERT_TRUE(sent && received) << a.device->failure() << b.device->failure();
    EXPECT_EQ(sent->status, Status::kOk);
    EXPECT_EQ(received->status, Status::kOk);
    EXPECT_EQ(received->length, bytes);
  }

  void ExpectNoRight() {
    const auto device =
        VfioDevice::Open(Kernel::Real(), functions_[0], {}, message_);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error(), Errno{EACCES});
    EXPECT_NE(message_.find("give the file to this user"), std::string::npos)
        << message_;
  }

  void UseWithinLimit() {
    const auto device = Open(0);
    ASSERT_NE(device, nullptr);
    ASSERT_TRUE(WaitReady(*device, kReadyLimit, message_).ok()) << message_;
    constexpr size_t kMiB = 1 << 20;
    std::vector<std::byte> memory(8 * kMiB);
    const auto within = device->Map(memory.data(), kMiB);
    ASSERT_TRUE(within.ok());
    const auto beyond = device->Map(memory.data(), memory.size());
    ASSERT_FALSE(beyond.ok());
    EXPECT_EQ(beyond.error(), Errno{ENOMEM});
    const std::string why = device->Explain(beyond.error(), memory.size());
    EXPECT_NE(why.find("RLIMIT_MEMLOCK is 4194304: raise it"),
              std::string::npos)
        << why;
    device->Unmap(within.value(), kMiB);
  }

  static constexpr SendFields kSend = {.op_context = 2,
                                       .header_data = 0,
                                       .peer = 0,
                                       .flags = contract::kTxFlagCompletion};
  static constexpr uint32_t kRefusedBytes = 1000;

  template <typename Poll>
  static std::optional<Completion> Await(Poll poll) {
    std::optional<Completion> got;
    const auto deadline = Clock::now() + kLimit;
    while (!got && Clock::now() < deadline) {
      got = poll();
    }
    return got;
  }

  // `b` is to receive at `to`, where it has no memory. The host compares what
  // the server refused with what is printed here and below.
  static void ExpectNotWritten(Node& a, Node& b, Iova to) {
    std::printf("guest: deliberate write at 0x%llx\n",
                static_cast<unsigned long long>(to));
    ASSERT_TRUE(b.endpoint->rx().TryPush(1, to, kRefusedBytes));
    b.endpoint->rx().Publish();
    std::memset(a.buffer.data(), 0x5a, kRefusedBytes);
    ASSERT_TRUE(
        a.endpoint->tx().PushBuffer(kSend, a.buffer.iova(), kRefusedBytes));
    a.endpoint->tx().Publish();
    const auto received = Await([&] { return b.endpoint->PollRx(); });
    ASSERT_TRUE(received);
    EXPECT_NE(received->status, Status::kOk);
    ASSERT_TRUE(Await([&] { return a.endpoint->PollTx(); }));
  }

  // `a` is to send from there.
  static void ExpectNotRead(Node& a, Iova from) {
    std::printf("guest: deliberate read at 0x%llx\n",
                static_cast<unsigned long long>(from));
    ASSERT_TRUE(a.endpoint->tx().PushBuffer(kSend, from, kRefusedBytes));
    a.endpoint->tx().Publish();
    const auto sent = Await([&] { return a.endpoint->PollTx(); });
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->status, Status::kLocalAccess);
  }

  Sysfs sysfs_;
  std::vector<PciFunction> functions_;
  std::string message_;
  std::vector<std::byte> spare_ = std::vector<std::byte>(kBufferBytes);
};

TEST_F(GuestTest, FunctionIsAttachedByItsGroup) {
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 3; ++i) {
    const auto device = Open(0);
    ASSERT_NE(device, nullptr);
    EXPECT_EQ(device->name(), functions_[0].address.ToString());
    std::printf("attached by %s\n", device->attachment());
    EXPECT_EQ(device->ReadRegister32(contract::kBar0MagicOffset),
              contract::kBar0MagicReset);
    EXPECT_TRUE(WaitReady(*device, kReadyLimit, message_).ok()) << message_;
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(GuestTest, FunctionHasOneOwner) {
  const auto device = Open(0);
  ASSERT_NE(device, nullptr);
  const auto second =
      VfioDevice::Open(Kernel::Real(), functions_[0], {}, message_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error(), Errno{EBUSY});
  EXPECT_NE(message_.find("another process"), std::string::npos) << message_;
}

TEST_F(GuestTest, LargeBuffersLieInHugePages) {
  const auto device = Open(0);
  ASSERT_NE(device, nullptr);
  const uint64_t before = FreeHugePages();
  ASSERT_GE(before, 2u) << "the guest has none";
  {
    const auto buffer = DmaBuffer::Create(*device, (3 << 20) + 1);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(buffer.value().bytes(), 2 * DmaBuffer::kHugePageBytes);
    EXPECT_EQ(FreeHugePages(), before - 2);
    EXPECT_EQ(ToInteger(buffer.value().iova()) % DmaBuffer::kHugePageBytes, 0u);
    EXPECT_EQ(device->address_space().mappings(), 1u);
  }
  EXPECT_EQ(FreeHugePages(), before);
}

// A user without privileges, whose limit of locked memory holds.
TEST_F(GuestTest, UserWhoseFilesTheyAreNeedsNoPrivilege) {
  constexpr uid_t kUser = 1000;
  constexpr rlim_t kLocked = 4 << 20;
  const PciFunction& function = functions_[0];
  std::vector<std::string> files = {"/dev/vfio/" +
                                    std::to_string(*function.iommu_group)};
  // Kernels without iommufd name the device file, too.
  const std::string device_file = "/dev/vfio/devices/" + function.vfio_device;
  if (std::filesystem::exists(device_file)) {
    files.push_back(device_file);
    files.push_back("/dev/iommu");
  }
  for (const bool given : {false, true}) {
    for (const std::string& file : files) {
      const uid_t owner = given ? kUser : 0;
      ASSERT_EQ(chown(file.c_str(), owner, owner), 0) << file;
    }
    const pid_t child = fork();
    if (child == 0) {
      const rlimit limit = {.rlim_cur = kLocked, .rlim_max = kLocked};
      EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
      EXPECT_EQ(setgid(kUser) + setuid(kUser), 0);
      given ? UseWithinLimit() : ExpectNoRight();
      std::fflush(stdout);
      _exit(HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (const std::string& file : files) {
    ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  }
}

TEST_F(GuestTest, MessagesPassBetweenFunctionsThroughTheIommu) {
  const auto a = OpenNode(0, 100);
  const auto b = OpenNode(1, 200);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  a->endpoint->AddPeer(kIp, b->endpoint->grant());
  for (const uint32_t bytes : {0u, 1u, 64u, 4096u, 65536u}) {
    SCOPED_TRACE(bytes);
    for (uint32_t i = 0; i < bytes; ++i) {
      a->buffer.data()[i] = static_cast<std::byte>(i * 3 + bytes);
    }
    Exchange(*a, *b, a->buffer.iova(), bytes);
    EXPECT_EQ(std::memcmp(a->buffer.data(), b->buffer.data(), bytes), 0);
  }
}

TEST_F(GuestTest, InterruptWakesASleeper) {
  const auto a = OpenNode(0, 100);
  const auto b = OpenNode(1, 200);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  a->endpoint->AddPeer(kIp, b->endpoint->grant());
  const int fd = b->device->interrupt_fd(0);
  ASSERT_GE(fd, 0);
  b->endpoint->rx_cq().Arm();
  ASSERT_TRUE(b->endpoint->rx().TryPush(1, b->buffer.iova(), 1000));
  b->endpoint->rx().Publish();
  const SendFields fields{.op_context = 2,
                          .header_data = 0,
                          .peer = 0,
                          .flags = contract::kTxFlagCompletion};
  ASSERT_TRUE(a->endpoint->tx().PushBuffer(fields, a->buffer.iova(), 1000));
  a->endpoint->tx().Publish();
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  constexpr int kLimitMs = 30'000;
  ASSERT_EQ(poll(&readable, 1, kLimitMs), 1) << "no interrupt";
  const auto received = b->endpoint->PollRx();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->length, 1000u);
}

// The application's memory changes under the same address.
TEST_F(GuestTest, RemappedMemoryIsReadAnew) {
  const auto a = OpenNode(0, 100);
  const auto b = OpenNode(1, 200);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  a->endpoint->AddPeer(kIp, b->endpoint->grant());
  constexpr uint32_t kBytes = 20000;
  void* address = nullptr;
  for (int round = 0; round < 50; ++round) {
    address = mmap(address, kBufferBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS |
                       (address == nullptr ? 0 : MAP_FIXED_NOREPLACE),
                   -1, 0);
    ASSERT_NE(address, MAP_FAILED);
    std::memset(address, 'a' + round % 26, kBytes);
    const auto iova = a->device->Map(address, kBytes);
    ASSERT_TRUE(iova.ok());
    Exchange(*a, *b, iova.value(), kBytes);
    EXPECT_EQ(std::memcmp(address, b->buffer.data(), kBytes), 0) << round;
    a->device->Unmap(iova.value(), kBytes);
    ASSERT_EQ(munmap(address, kBufferBytes), 0);
  }
}

// What the driver does not map, the device does not reach: a message from where
// nothing is mapped any more, and one to there.
TEST_F(GuestTest, UnmappedAddressIsNotReached) {
  const auto a = OpenNode(0, 100);
  const auto b = OpenNode(1, 200);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  a->endpoint->AddPeer(kIp, b->endpoint->grant());
  const auto stale = [&](Node& node) {
    const Result<Iova> iova = node.device->Map(spare_.data(), kRefusedBytes);
    EXPECT_TRUE(iova.ok());
    node.device->Unmap(iova.value(), kRefusedBytes);
    return iova.value();
  };
  ExpectNotWritten(*a, *b, stale(*b));
  ExpectNotRead(*a, stale(*a));
  EXPECT_EQ(spare_, std::vector<std::byte>(kBufferBytes));
}

// Each function has an address space of its own.
TEST_F(GuestTest, MemoryOfAnotherFunctionIsNotReached) {
  const auto a = OpenNode(0, 100);
  const auto b = OpenNode(1, 200);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  a->endpoint->AddPeer(kIp, b->endpoint->grant());
  // Both have given out the same addresses so far: one beyond those.
  const auto beyond = [&](Node& node) {
    Result<Iova> iova = Errno{ENOSPC};
    for (int i = 0; i < 64; ++i) {
      iova = node.device->Map(spare_.data(), kRefusedBytes);
      EXPECT_TRUE(iova.ok());
    }
    return iova.value();
  };
  const Iova of_a = beyond(*a);
  ExpectNotWritten(*a, *b, of_a);
  EXPECT_EQ(spare_, std::vector<std::byte>(kBufferBytes));
  a->device->Unmap(of_a, kRefusedBytes);
  ExpectNotRead(*a, beyond(*b));
}

TEST_F(GuestTest, ResetLeavesAWorkingFunction) {
  const auto device = Open(0);
  ASSERT_NE(device, nullptr);
  ASSERT_TRUE(WaitReady(*device, kReadyLimit, message_).ok());
  ASSERT_TRUE(device->Reset().ok());
  EXPECT_TRUE(WaitReady(*device, kReadyLimit, message_).ok()) << message_;
  EXPECT_TRUE(AdminQueue::Create(*device).ok());
}

TEST_F(GuestTest, FunctionIsGivenBack) {
  for (const PciFunction& function : functions_) {
    ASSERT_TRUE(sysfs_.Unbind(function.address, message_).ok()) << message_;
    EXPECT_FALSE(sysfs_.Look(function.address).value().bound());
  }
}

}  // namespace
}  // namespace heddle::vfio
