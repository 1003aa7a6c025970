// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/soft_device.h"

#include <memory>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "hw/sim/base/clock.h"
#include "hw/sim/base/virtual_time.h"
#include "tests/sim/device/device_test.h"
#include "tests/sim/device/soft_kind.h"

namespace heddle::sim::device {

DeviceKind TestedDevice() {
  return SoftKind();
}

namespace {

using SoftDeviceTest = DeviceTest;

TEST_F(SoftDeviceTest, HasTheNameOfItsDomain) {
  std::string message;
  const auto device = TestedDevice().open(Options(kIpA), &message);
  ASSERT_TRUE(device.ok()) << message;
  EXPECT_EQ(device.value()->name(), "soft0");
  EXPECT_EQ(device.value()->interrupt_fd(1000), -1);
}

TEST_F(SoftDeviceTest, AnIdleDeviceSleeps) {
  const auto a = Node::Open(Options(kIpA), 100);
  ASSERT_TRUE(a);
  const uint64_t cpu_before = base::ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  base::SleepNs(300000000);
  const uint64_t cpu = base::ClockNs(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  EXPECT_LT(cpu, 60000000u) << "ns of CPU in 300 ms of idleness";
}

// The time that devices of `InVirtualTime` join: a kind has no argument.
base::VirtualTime* joined = nullptr;

DeviceKind InVirtualTime() {
  DeviceKind kind = SoftKind();
  kind.open = [](const DeviceOptions& options,
                 std::string* message) -> Result<std::unique_ptr<Device>> {
    auto device = soft::SoftDevice::Open(options, message, {.time = joined});
    if (!device.ok()) {
      return device.error();
    }
    return std::unique_ptr<Device>(std::move(device.value()));
  };
  return kind;
}

class VirtualSoftDeviceTest : public DeviceTest {
 protected:
  VirtualSoftDeviceTest() { joined = &time_; }

  std::unique_ptr<Node> Open(uint32_t ip, double loss) const {
    DeviceOptions options = Options(ip);
    options.faults.tx = {.seed = ip, .loss = loss};
    options.settings.rto_ns = kRtoNs;
    return Node::Open(options, ip == kIpA ? 100 : 200, InVirtualTime());
  }

  static constexpr uint64_t kRtoNs = 10'000'000'000;
  base::VirtualTime time_;
};

TEST_F(VirtualSoftDeviceTest, ATimeOutTakesNoTime) {
  const auto a = Open(kIpA, 0.1);
  const auto b = Open(kIpB, 0.1);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->device->now_ns(), time_.now_ns());
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  const uint64_t start_ns = time_.now_ns();
  for (int i = 0; i < 20; ++i) {
    Exchange(*a, *b, 8192);
  }
  EXPECT_GT(time_.now_ns() - start_ns, kRtoNs);
  bool blocked = false;
  EXPECT_EQ(Threads(InVirtualTime().thread, &blocked), 0);
}

TEST_F(VirtualSoftDeviceTest, PeersOfAKilledDeviceFindOut) {
  const auto a = Open(kIpA, 0);
  const auto b = Open(kIpB, 0);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  Exchange(*a, *b, 64);
  static_cast<soft::SoftDevice&>(*b->device).Kill();
  EXPECT_TRUE(b->device->failed());
  a->PostSend(0, 64);
  std::optional<Completion> sent;
  const uint64_t limit_ns = time_.now_ns() + 100 * kRtoNs;
  while (!sent && time_.now_ns() < limit_ns) {
    a->Step();
    sent = a->endpoint->PollTx();
  }
  ASSERT_TRUE(sent);
  EXPECT_NE(sent->status, Status::kOk);
}

}  // namespace
}  // namespace heddle::sim::device
