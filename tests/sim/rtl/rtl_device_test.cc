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

namespace heddle::sim {

device::DeviceKind device::TestedDevice() {
  return {.name = "rtl",
          .domain = "rtl0",
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
}

}  // namespace
}  // namespace rtl
}  // namespace heddle::sim
