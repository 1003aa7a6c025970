// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/rtl/rtl_device.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/sim_factory.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/clock.h"
#include "tests/sim/device/device_test.h"

extern "C" HeddleSimOpen heddle_sim_open;
extern "C" HeddleSimIdentity heddle_sim_identity;

namespace heddle::sim {

device::DeviceKind device::TestedDevice() {
  return {.domain = "rtl0",
          .thread = "heddle-rtl",
          .open = [](const device::DeviceOptions& options,
                     std::string* message) -> Result<std::unique_ptr<Device>> {
            auto device = rtl::RtlDevice::Open(options, message);
            if (!device.ok()) {
              return device.error();
            }
            return std::unique_ptr<Device>(std::move(device.value()));
          }};
}

namespace rtl {
namespace {

using contract::Completion;
using contract::Status;
using RtlDeviceTest = device::DeviceTest;

TEST_F(RtlDeviceTest, IdleDeviceSleeps) {
  const std::string statistics = File(".stats");
  device::DeviceOptions options = Options(device::kIpA);
  options.settings.statistics = statistics;
  auto a = device::Node::Open(options, 100);
  ASSERT_TRUE(a);
  // Neither its own thread nor a poller makes the model move.
  const uint64_t cpu_before = base::ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  const uint64_t start = base::MonotonicNs();
  while (base::MonotonicNs() - start < 300000000) {
    base::SleepNs(1000000);
  }
  const uint64_t cpu = base::ClockNs(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  EXPECT_LT(cpu, 60000000u) << "ns of CPU in 300 ms of idleness";
  for (int i = 0; i < 2000; ++i) {
    a->Step();
  }
  a.reset();
  const auto values = ReadStatistics(statistics);
  EXPECT_LT(values.at("cycles"), 15000u);
  unlink(statistics.c_str());
}

// A waveform is of one device, and of `rtl` alone.
TEST_F(RtlDeviceTest, TraceIsWrittenByTheDeviceThatHasSignals) {
  const std::string file = File(".fst");
  const std::array<HeddleSimOption, 2> options = {
      {{.name = "wire", .value = name_.c_str()},
       {.name = "trace", .value = file.c_str()}}};
  HeddleSimError error{};
  std::unique_ptr<Device> device(
      heddle_sim_open("rtl", kDeviceAbi, contract::kContractHash,
                      options.data(), options.size(), &error));
  ASSERT_NE(device, nullptr) << error.message;
  device.reset();
  EXPECT_GT(std::filesystem::file_size(file), 0U);
  EXPECT_EQ(unlink(file.c_str()), 0);
  EXPECT_EQ(heddle_sim_open("soft", kDeviceAbi, contract::kContractHash,
                            options.data(), options.size(), &error),
            nullptr);
  EXPECT_EQ(error.error, EINVAL);
  EXPECT_EQ(std::string(error.message), "simulator setting trace=" + file +
                                            ": only the device rtl obeys it");
}

TEST_F(RtlDeviceTest, FactoryRefusesOtherVersionsWithBothNumbers) {
  HeddleSimError error{};
  EXPECT_EQ(heddle_sim_open("rtl", kDeviceAbi + 1, contract::kContractHash,
                            nullptr, 0, &error),
            nullptr);
  EXPECT_EQ(error.error, EPROTO);
  EXPECT_NE(std::string(error.message).find(std::to_string(kDeviceAbi + 1)),
            std::string::npos);
  EXPECT_EQ(heddle_sim_open("rtl", kDeviceAbi, contract::kContractHash ^ 1,
                            nullptr, 0, &error),
            nullptr);
  EXPECT_EQ(error.error, EPROTO);
  EXPECT_EQ(heddle_sim_open("hard", kDeviceAbi, contract::kContractHash,
                            nullptr, 0, &error),
            nullptr);
  EXPECT_EQ(error.error, EINVAL);
  const HeddleSimOption option{.name = "wire", .value = name_.c_str()};
  const std::unique_ptr<Device> device(heddle_sim_open(
      "rtl", kDeviceAbi, contract::kContractHash, &option, 1, &error));
  ASSERT_NE(device, nullptr) << error.message;
  EXPECT_EQ(device->name(), "rtl0");
  EXPECT_EQ(device->ReadRegister32(contract::kBar0MagicOffset),
            contract::kBar0MagicReset);
  EXPECT_EQ(device->interrupt_fd(1000), -1);
}

TEST_F(RtlDeviceTest, IdentityIsThatOfTheDevice) {
  HeddleSimError error{};
  for (const char* kind : {"rtl", "soft"}) {
    // Registers that do not change: up to the limits, and the counts.
    std::array<uint64_t, 8> known{};
    ASSERT_EQ(heddle_sim_identity(kind, kDeviceAbi, contract::kContractHash,
                                  known.data(), known.size(), &error),
              0)
        << error.message;
    const HeddleSimOption option{.name = "wire", .value = name_.c_str()};
    const std::unique_ptr<Device> device(heddle_sim_open(
        kind, kDeviceAbi, contract::kContractHash, &option, 1, &error));
    ASSERT_NE(device, nullptr) << error.message;
    for (const uint32_t word : {0U, 1U, 2U, 3U, 6U, 7U}) {
      EXPECT_EQ(known[word], device->ReadRegister64(word * 8)) << kind << word;
    }
  }
  uint64_t unknown = 0;
  EXPECT_EQ(heddle_sim_identity("hard", kDeviceAbi, contract::kContractHash,
                                &unknown, 1, &error),
            EINVAL);
  EXPECT_EQ(heddle_sim_identity("rtl", kDeviceAbi + 1, contract::kContractHash,
                                &unknown, 1, &error),
            EPROTO);
}

}  // namespace
}  // namespace rtl
}  // namespace heddle::sim
