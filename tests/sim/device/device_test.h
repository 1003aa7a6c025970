// SPDX-License-Identifier: Apache-2.0
// Free-running devices on the one-machine wire: what every kind is tested with.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "driver/control/admin_queue.h"
#include "driver/control/device_info.h"
#include "driver/device.h"
#include "driver/dma/dma_buffer.h"
#include "driver/result.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/clock.h"
#include "hw/sim/device/device_options.h"
#include "tests/system/harness/bare_endpoint.h"

namespace heddle::sim::device {

// The kind that a test program is about; each has a definition of its own.
struct DeviceKind {
  const char* name;
  const char* domain;  // Name of its first one.
  const char* thread;  // Name of its thread.
  Result<std::unique_ptr<Device>> (*open)(const DeviceOptions& options,
                                          std::string* message);
};
DeviceKind TestedDevice();

using contract::Completion;
using contract::Status;

inline constexpr uint32_t kIpA = 0x0a000001;
inline constexpr uint32_t kIpB = 0x0a000002;
inline constexpr uint64_t kLimitNs = 200000000000;
inline constexpr size_t kBufferBytes = 65536;

// A device with one endpoint at `port` and a buffer.
struct Node {
  static std::unique_ptr<Node> Open(const DeviceOptions& options, uint32_t port,
                                    const DeviceKind& kind = TestedDevice()) {
    return Open(options, {.port = port}, kind);
  }
  static std::unique_ptr<Node> Open(const DeviceOptions& options,
                                    const BareEndpointOptions& shape,
                                    const DeviceKind& kind = TestedDevice()) {
    auto node = std::make_unique<Node>();
    std::string error;
    auto device = kind.open(options, &error);
    if (!device.ok()) {
      ADD_FAILURE() << error;
      return nullptr;
    }
    node->device = std::move(device.value());
    auto info = WaitReady(*node->device, kReadyLimit, error);
    auto admin = AdminQueue::Create(*node->device);
    auto buffer = DmaBuffer::Create(*node->device, kBufferBytes);
    if (!info.ok() || !admin.ok() || !buffer.ok()) {
      ADD_FAILURE() << error;
      return nullptr;
    }
    node->admin = std::move(admin.value());
    node->buffer = std::move(buffer.value());
    node->Begin(shape);
    return node->endpoint == nullptr ? nullptr : std::move(node);
  }
  // Another endpoint in place of the one that is there.
  void Begin(const BareEndpointOptions& shape) {
    std::string error;
    endpoint.reset();
    endpoint = BareEndpoint::Create(*device, *admin, shape, &error);
    EXPECT_NE(endpoint, nullptr) << error;
  }

  // The grant of an endpoint at `port` of another process.
  static EndpointGrant GrantOf(uint32_t port) {
    return {.endpoint = 0,
            .port = port,
            .pid_on_fep = static_cast<uint16_t>(port % 4096),
            .resource_index =
                static_cast<uint16_t>(port / 4096 * contract::kRiBlock)};
  }

  void PostReceive(uint32_t bytes) {
    EXPECT_TRUE(endpoint->rx().TryPush(1, buffer.iova(), bytes));
    endpoint->rx().Publish();
  }
  void PostSend(uint32_t peer, uint32_t bytes) {
    const SendFields fields{.op_context = 2,
                            .header_data = 0,
                            .peer = peer,
                            .flags = contract::kTxFlagCompletion};
    EXPECT_TRUE(endpoint->tx().PushBuffer(fields, buffer.iova(), bytes));
    endpoint->tx().Publish();
  }
  void Step() {
    const ProgressHook hook = device->progress_hook();
    hook.step(hook.cookie);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<AdminQueue> admin;
  DmaBuffer buffer;
  std::unique_ptr<BareEndpoint> endpoint;
};

class DeviceTest : public testing::Test {
 protected:
  DeviceOptions Options(uint32_t ip) const {
    DeviceOptions options;
    options.wire.name = name_;
    options.wire.ip = ip;
    return options;
  }
  std::string File(const std::string& suffix) const {
    return testing::TempDir() + "heddle-" + name_ + suffix;
  }
  static std::map<std::string, uint64_t> ReadStatistics(
      const std::string& path) {
    std::map<std::string, uint64_t> statistics;
    std::ifstream file(path);
    std::string name;
    uint64_t value = 0;
    while (file >> name >> value) {
      statistics[name] = value;
    }
    return statistics;
  }
  // Both completions of one message from `a` to `b`, devices polled by us.
  static void Exchange(Node& a, Node& b, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) {
      a.buffer.data()[i] = static_cast<std::byte>(i * 3 + bytes);
    }
    b.PostReceive(bytes);
    a.PostSend(0, bytes);
    ExpectCompletions(a, b, bytes);
    EXPECT_EQ(std::memcmp(a.buffer.data(), b.buffer.data(), bytes), 0);
  }
  // Both completions of a message of `bytes` that was posted at both ends.
  static void ExpectCompletions(Node& a, Node& b, uint32_t bytes) {
    std::optional<Completion> sent;
    std::optional<Completion> received;
    const uint64_t deadline = base::MonotonicNs() + kLimitNs;
    while ((!sent || !received) && base::MonotonicNs() < deadline) {
      a.Step();
      b.Step();
      sent = sent ? sent : a.endpoint->PollTx();
      received = received ? received : b.endpoint->PollRx();
    }
    ASSERT_TRUE(sent && received) << a.device->failure() << b.device->failure();
    EXPECT_EQ(sent->status, Status::kOk) << "detail " << sent->detail;
    EXPECT_EQ(received->status, Status::kOk);
    EXPECT_EQ(received->length, bytes);
  }
  // Names of this process's threads.
  static int Threads(const std::string& name, bool* signals_blocked) {
    int count = 0;
    DIR* const directory = opendir("/proc/self/task");
    while (const dirent* entry = readdir(directory)) {
      const std::string base = std::string("/proc/self/task/") + entry->d_name;
      std::ifstream comm(base + "/comm");
      std::string text;
      std::getline(comm, text);
      if (text != name) {
        continue;
      }
      ++count;
      std::ifstream status(base + "/status");
      while (std::getline(status, text)) {
        if (text.rfind("SigBlk:", 0) == 0) {
          const uint64_t mask = std::stoull(text.substr(7), nullptr, 16);
          *signals_blocked = (mask >> (SIGTERM - 1) & 1) != 0 &&
                             (mask >> (SIGALRM - 1) & 1) != 0;
        }
      }
    }
    closedir(directory);
    return count;
  }

  const std::string name_ =
      std::string(TestedDevice().domain) + '-' + std::to_string(getpid()) +
      "-" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace heddle::sim::device
