// SPDX-License-Identifier: Apache-2.0
// Functions of both kinds behind heddle-nicd, each with a client of its own.
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "driver/control/admin_queue.h"
#include "driver/control/device_info.h"
#include "driver/dma/dma_buffer.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/clock.h"
#include "hw/sim/frame/wire_address.h"
#include "hw/sim/pci/config_space.h"
#include "tests/sim/vfio_user/client_device.h"
#include "tests/system/harness/bare_endpoint.h"

namespace heddle::sim::vfio_user {
namespace {

using contract::Completion;
using contract::Status;

constexpr uint64_t kLimitNs = 200000000000;
constexpr uint32_t kIp = 0x0a000001;
constexpr size_t kBufferBytes = 65536;

// A client's driver, one endpoint and a buffer.
struct Host {
  Host(const std::string& path, uint32_t port) : device(path) {
    std::string error = "no connection";
    const bool ready =
        device.connected() && WaitReady(device, kReadyLimit, error).ok();
    auto queue = ready ? AdminQueue::Create(device) : Errno{ENODEV};
    auto memory =
        queue.ok() ? DmaBuffer::Create(device, kBufferBytes) : Errno{ENODEV};
    if (!memory.ok()) {
      throw std::runtime_error(path + ": " + error);
    }
    admin = std::move(queue.value());
    buffer = std::move(memory.value());
    BareEndpointOptions shape;
    shape.port = port;
    endpoint = BareEndpoint::Create(device, *admin, shape, &error);
    if (endpoint == nullptr) {
      throw std::runtime_error(path + ": " + error);
    }
  }

  ClientDevice device;
  std::unique_ptr<AdminQueue> admin;
  DmaBuffer buffer;
  std::unique_ptr<BareEndpoint> endpoint;
};

std::optional<Completion> Await(BareEndpoint& endpoint, bool sent) {
  const uint64_t deadline = base::MonotonicNs() + kLimitNs;
  std::optional<Completion> got;
  while (!got && base::MonotonicNs() < deadline) {
    got = sent ? endpoint.PollTx() : endpoint.PollRx();
    if (!got) {
      usleep(100);
    }
  }
  return got;
}

// Both completions of a message, and its bytes.
void Exchange(Host& from, Host& to, uint32_t peer, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i) {
    from.buffer.data()[i] = static_cast<std::byte>(i * 7 + bytes);
  }
  ASSERT_TRUE(to.endpoint->rx().TryPush(1, to.buffer.iova(), bytes));
  to.endpoint->rx().Publish();
  const SendFields fields{
      .op_context = 2, .peer = peer, .flags = contract::kTxFlagCompletion};
  ASSERT_TRUE(
      from.endpoint->tx().PushBuffer(fields, from.buffer.iova(), bytes));
  from.endpoint->tx().Publish();
  const auto received = Await(*to.endpoint, /*sent=*/false);
  const auto sent = Await(*from.endpoint, /*sent=*/true);
  ASSERT_TRUE(received && sent);
  EXPECT_EQ(received->status, Status::kOk);
  EXPECT_EQ(sent->status, Status::kOk);
  EXPECT_EQ(received->length, bytes);
  EXPECT_EQ(std::memcmp(from.buffer.data(), to.buffer.data(), bytes), 0);
}

// The program, with as many sockets as asked for.
class ServedFunctions : public testing::TestWithParam<const char*> {
 protected:
  ~ServedFunctions() override { EXPECT_EQ(Stop(), 0); }

  void Start(int functions, std::vector<std::string> more = {}) {
    const std::string base = testing::TempDir() + "served." + GetParam() + "." +
                             std::to_string(getpid()) + ".";
    std::vector<std::string> words = {
        HEDDLE_NICD,
        "--device",
        GetParam(),
        "--set",
        "address=10.0.0.1",
        "--set",
        "wire=served-" + std::to_string(getpid())};
    words.insert(words.end(), more.begin(), more.end());
    for (int i = 0; i < functions; ++i) {
      sockets_.push_back(base + std::to_string(i));
      words.push_back(sockets_.back());
    }
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    program_ = fork();
    if (program_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // Also when the test crashes.
      dup2(ends[1], STDOUT_FILENO);
      dup2(log_.get(), STDERR_FILENO);
      std::vector<char*> arguments;
      arguments.reserve(words.size() + 1);
      for (std::string& word : words) {
        arguments.push_back(word.data());
      }
      arguments.push_back(nullptr);
      execv(HEDDLE_NICD, arguments.data());
      _exit(127);
    }
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1) << "heddle-nicd is not ready";
    close(ends[0]);
  }
  // Its status.
  int Stop() {
    if (program_ <= 0) {
      return 0;
    }
    kill(program_, SIGTERM);
    int status = -1;
    waitpid(program_, &status, 0);
    program_ = 0;
    return status;
  }

  // What it wrote, once it has ended.
  std::string Log() const {
    constexpr size_t kMost = 65536;
    std::string text(kMost, '\0');
    const ssize_t bytes = pread(log_.get(), text.data(), text.size(), 0);
    text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
    return text;
  }

  std::vector<std::string> sockets_;
  pid_t program_ = 0;
  const base::OwnedFd log_ = base::OwnedFd(memfd_create("log", MFD_CLOEXEC));
};

std::string NameOf(const testing::TestParamInfo<const char*>& kind) {
  return kind.param;
}
#ifdef HEDDLE_RTL_DEVICE
INSTANTIATE_TEST_SUITE_P(All, ServedFunctions, testing::Values("soft", "rtl"),
                         NameOf);
#else
INSTANTIATE_TEST_SUITE_P(All, ServedFunctions, testing::Values("soft"), NameOf);
#endif

TEST_P(ServedFunctions, MessagesGoBetweenTwoClients) {
  Start(2, {"--all-on"});
  Host a(sockets_[0], 5000);
  Host b(sockets_[1], 5001);
  const frame::WireAddress address(kIp);
  const uint32_t b_at_a = a.endpoint->AddPeer(address, b.endpoint->grant());
  const uint32_t a_at_b = b.endpoint->AddPeer(address, a.endpoint->grant());
  for (const uint32_t bytes : {1u, 100u, 4096u, 65536u}) {
    Exchange(a, b, b_at_a, bytes);
    Exchange(b, a, a_at_b, bytes);
  }
}

// Each with contexts, memory and keys of its own: the numbers are the same in
// all, the data are not.
TEST_P(ServedFunctions, PhysicalAndFourVirtualFunctionsServeAtOnce) {
  constexpr uint32_t kFunctions = 5;
  Start(kFunctions, {"--all-on"});
  std::vector<std::unique_ptr<Host>> hosts;
  for (uint32_t i = 0; i < kFunctions; ++i) {
    hosts.push_back(std::make_unique<Host>(sockets_[i], 5000 + i));
  }
  const uint64_t iova = ToInteger(hosts[0]->buffer.iova());
  for (uint32_t i = 0; i < kFunctions; ++i) {
    EXPECT_EQ(ToInteger(hosts[i]->buffer.iova()), iova) << i;
    Host& next = *hosts[(i + 1) % kFunctions];
    Exchange(*hosts[i], next,
             hosts[i]->endpoint->AddPeer(kIp, next.endpoint->grant()),
             1000 + i);
  }
}

TEST_P(ServedFunctions, InterruptArrivesAtTheClient) {
  Start(2, {"--all-on"});
  Host a(sockets_[0], 5000);
  Host b(sockets_[1], 5001);
  const uint32_t peer = a.endpoint->AddPeer(kIp, b.endpoint->grant());
  b.endpoint->rx_cq().Arm();
  Exchange(a, b, peer, 64);
  pollfd raised{.fd = b.device.interrupt_fd(0), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&raised, 1, kLimitNs / 1000000), 1);
}

// What one client maps is nothing to the other's device; each looks at the
// same IOVA. The server says what it refused.
TEST_P(ServedFunctions, FunctionReachesItsOwnClientsMemoryOnly) {
  Start(2, {"--all-on"});
  auto a = std::make_unique<Host>(sockets_[0], 5000);
  auto b = std::make_unique<Host>(sockets_[1], 5001);
  constexpr uint64_t kSecret = uint64_t{7} << 40;
  a->device.set_next_iova(kSecret);
  auto secret = DmaBuffer::Create(a->device, kPage);
  ASSERT_TRUE(secret.ok());
  ASSERT_EQ(ToInteger(secret.value().iova()), kSecret);
  std::memset(secret.value().data(), 0x5a, kPage);
  const uint32_t b_itself = b->endpoint->AddPeer(kIp, b->endpoint->grant());
  // From there, and to there.
  const SendFields fields{
      .op_context = 1, .peer = b_itself, .flags = contract::kTxFlagCompletion};
  ASSERT_TRUE(b->endpoint->rx().TryPush(1, b->buffer.iova(), 256));
  ASSERT_TRUE(b->endpoint->rx().TryPush(2, Iova{kSecret}, 256));
  b->endpoint->rx().Publish();
  ASSERT_TRUE(b->endpoint->tx().PushBuffer(fields, Iova{kSecret}, 256));
  ASSERT_TRUE(
      b->endpoint->tx().PushBuffer(fields, b->buffer.iova() + 512, 256));
  b->endpoint->tx().Publish();
  for (int i = 0; i < 2; ++i) {
    const auto received = Await(*b->endpoint, /*sent=*/false);
    ASSERT_TRUE(received);
    EXPECT_NE(received->status, Status::kOk) << i;
  }
  for (size_t i = 0; i < kPage; ++i) {
    ASSERT_EQ(secret.value().data()[i], std::byte{0x5a}) << i;
  }
  EXPECT_EQ(b->buffer.data()[0], std::byte{0});
  secret.value() = DmaBuffer();
  a.reset();
  b.reset();
  ASSERT_EQ(Stop(), 0);
  const std::string log = Log();
  EXPECT_NE(log.find(sockets_[0] + ": the client's memory: 0 accesses refused"),
            std::string::npos)
      << log;
  EXPECT_EQ(log.find(sockets_[1] + ": the client's memory: 0 accesses"),
            std::string::npos)
      << log;
  for (const char* what : {"read of 0x", "write of 0x", " at 0x70000000000"}) {
    EXPECT_NE(log.find(what), std::string::npos) << what << " in " << log;
  }
}

// Doorbells of pages that belong to the other's contexts, and its keys.
TEST_P(ServedFunctions, FunctionCannotUseAnothersContextsAndRegions) {
  Start(2, {"--all-on"});
  Host a(sockets_[0], 5000);
  Host b(sockets_[1], 5001);
  // Of b: what a's driver would ring, and all beyond.
  for (uint32_t page = 0; page < contract::kBankBytes / kPage; ++page) {
    const Doorbell doorbell =
        b.device.doorbell(page * static_cast<uint32_t>(kPage));
    if (page > 1) {
      doorbell.notify(doorbell.cookie, doorbell.bar2_offset, 200);
    }
  }
  EXPECT_EQ(a.endpoint->PollTx(), std::nullopt);
  // A region of a, written by b with a's key at b itself.
  contract::AdminRegisterRegion command{};
  command.iova = ToInteger(a.buffer.iova());
  command.length = kBufferBytes;
  command.flags =
      contract::kRegionFlagRemoteWrite | contract::kRegionFlagProviderKey;
  command.job_id = 1;
  const auto region = a.admin->RegisterRegion(command);
  if (!region.ok()) {
    GTEST_FAIL() << "no region: " << static_cast<int>(region.error());
  }
  const uint32_t b_itself = b.endpoint->AddPeer(kIp, b.endpoint->grant());
  const SendFields fields{.opcode = contract::Opcode::kWrite,
                          .op_context = 3,
                          .peer = b_itself,
                          .flags = contract::kTxFlagCompletion,
                          .match_bits = region.value().key};
  ASSERT_TRUE(b.endpoint->tx().PushBuffer(fields, b.buffer.iova(), 64));
  b.endpoint->tx().Publish();
  const auto sent = Await(*b.endpoint, /*sent=*/true);
  ASSERT_TRUE(sent);
  EXPECT_NE(sent->status, Status::kOk);
}

TEST_P(ServedFunctions, VirtualFunctionsAreOnWhenThePhysicalOneSaysSo) {
  Start(3);
  EXPECT_FALSE(ClientDevice(sockets_[1]).connected());
  ClientDevice physical(sockets_[0]);
  ASSERT_TRUE(physical.connected());
  constexpr uint64_t kSriov = pci::ConfigSpace::kSriov;
  physical.WriteConfig(kSriov + PCI_SRIOV_NUM_VF, 1);
  physical.WriteConfig(kSriov + PCI_SRIOV_CTRL,
                       PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE);
  ClientDevice first(sockets_[1]);
  ASSERT_TRUE(first.connected());
  EXPECT_FALSE(ClientDevice(sockets_[2]).connected());
  // Its client loses it when it is turned off.
  physical.WriteConfig(kSriov + PCI_SRIOV_CTRL, 0);
  const uint64_t deadline = base::MonotonicNs() + kLimitNs;
  while (first.Answers() && base::MonotonicNs() < deadline) {
  }
  EXPECT_FALSE(first.Answers());
}

TEST_P(ServedFunctions, ResetEndsWhatWasMadeAndTheFunctionServesOn) {
  Start(2, {"--all-on"});
  Host b(sockets_[1], 5001);
  for (int i = 0; i < 2; ++i) {
    Host a(sockets_[0], 5000);
    const uint32_t peer = a.endpoint->AddPeer(kIp, b.endpoint->grant());
    Exchange(a, b, peer, 4096);
    a.endpoint.reset();
    ASSERT_TRUE(a.device.Reset().ok());
    EXPECT_EQ(a.device.ReadRegister64(contract::kBar0AdminCommandBaseOffset),
              0u);
  }
}

// A client that dies in the middle of it all, and one that unmaps what its
// device reads.
TEST_P(ServedFunctions, MemoryThatGoesAwayUnderTheDeviceIsNoHarm) {
  Start(2, {"--all-on"});
  Host b(sockets_[1], 5001);
  for (int i = 0; i < 2; ++i) {
    Host a(sockets_[0], 5000);
    const uint32_t peer = a.endpoint->AddPeer(kIp, b.endpoint->grant());
    const SendFields fields{
        .op_context = 1, .peer = peer, .flags = contract::kTxFlagCompletion};
    for (int k = 0; k < 16; ++k) {
      ASSERT_TRUE(
          a.endpoint->tx().PushBuffer(fields, a.buffer.iova(), kBufferBytes));
    }
    a.endpoint->tx().Publish();
    a.buffer = DmaBuffer();  // Unmapped under way.
    if (i == 0) {
      a.endpoint.reset();
    }
  }
  Host last(sockets_[0], 5000);
  Exchange(b, last, b.endpoint->AddPeer(kIp, last.endpoint->grant()), 4096);
}

}  // namespace
}  // namespace heddle::sim::vfio_user
