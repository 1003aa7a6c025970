// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/function_server.h"

#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/vfio_user/channel.h"
#include "hw/sim/vfio_user/connection.h"
#include "tests/sim/vfio_user/client.h"
#include "tests/sim/vfio_user/memory_file.h"

namespace heddle::sim::vfio_user {
namespace {

class FunctionServerTest : public testing::Test {
 protected:
  FunctionServerTest()
      : path_(testing::TempDir() + "function." + std::to_string(getpid())),
        stop_(eventfd(0, EFD_CLOEXEC)) {}
  ~FunctionServerTest() override {
    if (thread_.joinable()) {
      constexpr uint64_t kOne = 1;
      EXPECT_EQ(write(stop_.get(), &kOne, sizeof(kOne)), 8);
      thread_.join();
    }
    server_.reset();
    EXPECT_FALSE(std::filesystem::exists(path_));
  }

  std::unique_ptr<NicFunction> Function() {
    device::DeviceOptions options;
    options.wire.name = "function-" + std::to_string(getpid());
    options.wire.ip = 0x0a000001;
    pci::ConfigOptions config;
    config.vendor = 0x1234;
    config.device = 0x4844;
    auto function = NicFunction::Open(options, config, &message_);
    EXPECT_TRUE(function.ok()) << message_;
    return function.ok() ? std::move(function.value()) : nullptr;
  }
  void Start() {
    auto server = FunctionServer::Open(path_, Function(), &message_);
    ASSERT_TRUE(server.ok()) << message_;
    server_ = std::move(server.value());
    thread_ = std::thread([this] { server_->Run(stop_.get()); });
  }

  const std::string path_;
  const base::OwnedFd stop_;
  std::string message_;
  std::unique_ptr<FunctionServer> server_;
  std::thread thread_;
};

TEST_F(FunctionServerTest, FunctionAnswersAsAPciDevice) {
  Start();
  Client client(path_);
  ASSERT_TRUE(client.connected() && client.Greet());
  EXPECT_EQ(client.Read<uint32_t>(VFIO_PCI_CONFIG_REGION_INDEX, 0),
            0x48441234u);
  // All of it at once, as QEMU does.
  ASSERT_TRUE(
      client.Ask(Command::kRegionRead,
                 Bytes(RegionAccess{.region = VFIO_PCI_CONFIG_REGION_INDEX,
                                    .count = kPage})));
  EXPECT_EQ(client.answer.body.size(), sizeof(RegionAccess) + kPage);
  EXPECT_EQ(client.Read<uint32_t>(VFIO_PCI_BAR0_REGION_INDEX,
                                  contract::kBar0MagicOffset),
            contract::kBar0MagicReset);
  client.Write<uint32_t>(VFIO_PCI_BAR4_REGION_INDEX, 16, 0xfee00000);
  EXPECT_EQ(client.Read<uint32_t>(VFIO_PCI_BAR4_REGION_INDEX, 16), 0xfee00000u);
  ASSERT_TRUE(client.Ask(Command::kDeviceReset, {}));
  EXPECT_EQ(client.Read<uint32_t>(VFIO_PCI_BAR4_REGION_INDEX, 16), 0u);
}

TEST_F(FunctionServerTest, OddAccessesAreRefused) {
  Start();
  Client client(path_);
  ASSERT_TRUE(client.connected() && client.Greet());
  for (const RegionAccess& access :
       std::vector<RegionAccess>{{.offset = 2, .region = 0, .count = 4},
                                 {.offset = 4, .region = 0, .count = 8},
                                 {.offset = 0, .region = 0, .count = 1},
                                 {.offset = 4, .region = 2, .count = 8},
                                 {.offset = 0, .region = 2, .count = 4},
                                 {.offset = 1, .region = 7, .count = 4}}) {
    ASSERT_TRUE(client.Ask(Command::kRegionWrite, Bytes(access, uint64_t{0})));
    EXPECT_NE(client.answer.header.error, 0u)
        << access.region << "+" << access.offset;
  }
}

TEST_F(FunctionServerTest, ClientThatTalksNonsenseEndsAloneAndTheNextIsServed) {
  Start();
  for (const char* nonsense : {"GET / HTTP/1.1\r\n\r\n and more of it", ""}) {
    Client client(path_);
    ASSERT_TRUE(client.connected());
    ASSERT_GE(send(client.channel().fd(), nonsense, std::strlen(nonsense), 0),
              0);
  }
  Client client(path_);
  ASSERT_TRUE(client.connected());
  EXPECT_FALSE(client.Ask(Command::kDeviceReset, {}));
  Client last(path_);
  ASSERT_TRUE(last.connected());
  EXPECT_TRUE(last.Greet());
}

// It neither holds the server up when it is to stop nor fills its memory.
TEST_F(FunctionServerTest, ClientThatTakesNoAnswersIsAskedForNoMore) {
  Start();
  Client client(path_);
  ASSERT_TRUE(client.connected() && client.Greet());
  const auto body = Bytes(
      RegionAccess{.region = VFIO_PCI_CONFIG_REGION_INDEX, .count = kPage});
  Header header{.id = 1,
                .command = Command::kRegionRead,
                .bytes = static_cast<uint32_t>(sizeof(Header) + body.size()),
                .flags = 0,
                .error = 0};
  std::vector<std::byte> bytes = Bytes(header);
  bytes.insert(bytes.end(), body.begin(), body.end());
  // Until it takes nothing for a while; stopping it ends the test.
  pollfd room{.fd = client.channel().fd(), .events = POLLOUT, .revents = 0};
  constexpr int kQuietMs = 200;
  while (poll(&room, 1, kQuietMs) == 1) {
    ASSERT_GT(send(room.fd, bytes.data(), bytes.size(), MSG_DONTWAIT), 0);
  }
}

// Nothing of a client is left for the next one.
// What was sent is answered, the rest is not sent: QEMU survives that.
TEST_F(FunctionServerTest, ConnectionThatIsFinishedOwesNoAnswer) {
  const auto function = Function();
  ASSERT_NE(function, nullptr);
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  Channel client{base::OwnedFd(ends[0])};
  auto server = std::make_unique<Connection>(base::OwnedFd(ends[1]), *function);
  const auto ask = [&](Command command, const std::vector<std::byte>& body) {
    return client.Send(
        {.command = command,
         .bytes = static_cast<uint32_t>(sizeof(Header) + body.size())},
        body, {});
  };
  ASSERT_TRUE(ask(Command::kVersion, Bytes(Version{})));
  const auto read = Bytes(RegionAccess{
      .offset = 0, .region = VFIO_PCI_CONFIG_REGION_INDEX, .count = 4});
  constexpr int kAsked = 3 * Connection::kBurst;
  for (int i = 0; i < kAsked; ++i) {
    ASSERT_TRUE(ask(Command::kRegionRead, read));
  }
  server->Finish();
  EXPECT_FALSE(ask(Command::kRegionRead, read));
  server.reset();
  Message answer;
  int answered = 0;
  while (client.Receive(&answer) == Channel::Progress::kMessage) {
    ++answered;
  }
  EXPECT_EQ(answered, 1 + kAsked);
}

TEST_F(FunctionServerTest, FunctionIsAsAfterPowerOnForEachClient) {
  Start();
  const MemoryFile file(kPage);
  const DmaMap map{.argsz = sizeof(DmaMap),
                   .flags = kDmaReadable | kDmaWritable,
                   .offset = 0,
                   .address = 0x10000,
                   .bytes = kPage};
  for (int i = 0; i < 3; ++i) {
    Client client(path_);
    ASSERT_TRUE(client.connected() && client.Greet());
    EXPECT_EQ(client.Read<uint16_t>(VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND),
              0);
    client.Write<uint16_t>(VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND,
                           PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    ASSERT_TRUE(client.Ask(Command::kDmaMap, Bytes(map), {file.fd()}));
    EXPECT_EQ(client.answer.header.error, 0u) << "the mapping of a former one";
  }
}

TEST_F(FunctionServerTest, SocketIsItsOwnersAloneAndNotTakenTwice) {
  Start();
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto second = FunctionServer::Open(path_, Function(), &message_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error(), Errno{EADDRINUSE});
  EXPECT_NE(message_.find(path_), std::string::npos);
}

TEST_F(FunctionServerTest, SocketOfADeadServerIsReplaced) {
  {
    const base::OwnedFd left(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(left.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)),
              0);
  }
  Start();
  Client client(path_);
  EXPECT_TRUE(client.connected() && client.Greet());
}

// A path given by mistake costs nobody a file.
TEST_F(FunctionServerTest, FileThatIsNoSocketIsKept) {
  std::ofstream(path_) << "precious";
  const auto server = FunctionServer::Open(path_, Function(), &message_);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error(), Errno{EEXIST});
  EXPECT_NE(message_.find(path_), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
  std::filesystem::remove(path_);
}

// Whose queue of clients is full: it would take the next one later.
TEST_F(FunctionServerTest, SocketOfABusyServerIsNotTaken) {
  const base::OwnedFd busy(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  ASSERT_EQ(bind(busy.get(), at, sizeof(address)), 0);
  ASSERT_EQ(listen(busy.get(), 0), 0);
  std::vector<base::OwnedFd> waiting;
  int connected = 0;
  while (connected == 0) {
    waiting.emplace_back(
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    connected = connect(waiting.back().get(), at, sizeof(address));
  }
  const auto server = FunctionServer::Open(path_, Function(), &message_);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error(), Errno{EADDRINUSE});
  EXPECT_TRUE(std::filesystem::exists(path_));
  std::filesystem::remove(path_);
}

}  // namespace
}  // namespace heddle::sim::vfio_user
