// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/nic/lockstep_world.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::sim::nic {
namespace {

constexpr uint32_t kIpA = 0x0a000001;

std::unique_ptr<LockstepWorld> Create(LockstepOptions options = {}) {
  if (options.addresses.empty()) {
    options.addresses = {kIpA, kIpA + 1};
  }
  std::string message;
  auto world = LockstepWorld::Create(options, &message);
  EXPECT_TRUE(world.ok()) << message;
  return world.ok() ? std::move(world.value()) : nullptr;
}

TEST(LockstepWorldTest, NicsComeUpReadyAndAtRest) {
  const auto world = Create();
  ASSERT_NE(world, nullptr);
  EXPECT_TRUE(world->quiet());
  std::string message;
  for (size_t nic = 0; nic < 2; ++nic) {
    Device& device = world->device(nic);
    EXPECT_TRUE(WaitReady(device, kReadyLimit, message).ok()) << message;
    EXPECT_EQ(device.ReadRegister32(contract::kBar0MagicOffset),
              contract::kBar0MagicReset);
  }
  EXPECT_EQ(world->device(1).name(), "rtl1");
}

TEST(LockstepWorldTest, WorldAtRestForGoodDoesNotBurnCycles) {
  const auto world = Create();
  ASSERT_NE(world, nullptr);
  world->Step(1000);
  const uint64_t evaluated = world->evaluated_cycles();
  world->Step(1000000);
  EXPECT_EQ(world->evaluated_cycles(), evaluated);
}

TEST(LockstepWorldTest, FailedModelSaysSoAndHangsNobody) {
  const auto world = Create();
  ASSERT_NE(world, nullptr);
  world->model(1).Fail("broken on purpose");
  Device& device = world->device(1);
  EXPECT_TRUE(device.failed());
  EXPECT_NE(device.failure().find("broken on purpose"), std::string::npos);
  EXPECT_NE(world->failure().find("rtl1"), std::string::npos);
  EXPECT_EQ(device.ReadRegister32(contract::kBar0MagicOffset), UINT32_MAX);
  EXPECT_EQ(device.ReadRegister64(contract::kBar0CapabilityOffset), UINT64_MAX);
  device.WriteRegister32(contract::kBar0AdminTailOffset, 1);
  world->Step(100);
  EXPECT_FALSE(device.Reset().ok());
  EXPECT_FALSE(world->device(0).failed());
  EXPECT_EQ(world->device(0).ReadRegister32(contract::kBar0MagicOffset),
            contract::kBar0MagicReset);
}

TEST(LockstepWorldTest, TraceIsAnFstFile) {
  const std::string path =
      testing::TempDir() + "heddle-trace-" + std::to_string(getpid()) + ".fst";
  {
    LockstepOptions options;
    options.trace = path;
    const auto world = Create(options);
    ASSERT_NE(world, nullptr);
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_GT(bytes.size(), 1000u);
  EXPECT_EQ(bytes[0], 0) << "FST begins with its header block";
  unlink(path.c_str());
}

TEST(LockstepWorldTest, NoNicsOrTooManyAreRefused) {
  std::string message;
  auto none = LockstepWorld::Create({}, &message);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error(), Errno{EINVAL});
  LockstepOptions options;
  options.addresses.assign(65, kIpA);
  EXPECT_FALSE(LockstepWorld::Create(options, &message).ok());
  options.addresses = {kIpA};
  options.capture = "/nonexistent/x.pcap";
  EXPECT_FALSE(LockstepWorld::Create(options, &message).ok());
  EXPECT_NE(message.find("/nonexistent/x.pcap"), std::string::npos);
}

}  // namespace
}  // namespace heddle::sim::nic
