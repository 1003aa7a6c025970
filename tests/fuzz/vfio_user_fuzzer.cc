// SPDX-License-Identifier: Apache-2.0
// Fuzzes the vfio-user server in front of a soft function: an input is what one
// client sends, with descriptors, and puts into its memory.
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/vfio_user/channel.h"
#include "hw/sim/vfio_user/connection.h"
#include "hw/sim/vfio_user/nic_function.h"
#include "tests/fuzz/reader.h"
#include "tests/fuzz/vfio_user_reference.h"
#include "tests/sim/vfio_user/bytes.h"

namespace heddle::fuzz {
namespace {

using sim::base::OwnedFd;
using sim::vfio_user::Bytes;
using sim::vfio_user::Channel;
using sim::vfio_user::Command;
using sim::vfio_user::Connection;
using sim::vfio_user::DmaMap;
using sim::vfio_user::DmaUnmap;
using sim::vfio_user::Header;
using sim::vfio_user::NicFunction;
using sim::vfio_user::RegionAccess;
using sim::vfio_user::Version;

constexpr uint64_t kPage = 4096;
constexpr uint32_t kFilePages = 16;
// The input's IOVAs are pages from here on, so that they meet.
constexpr uint64_t kIova = 0x100000;
constexpr uint32_t kConfig = VFIO_PCI_CONFIG_REGION_INDEX;

// What the harness spoils, to show that a property can fail.
bool Spoils(std::string_view what) {
  static const char* const chosen = std::getenv("HEDDLE_FUZZ_BREAK");
  return chosen != nullptr && what == chosen;
}

[[noreturn]] void Break(const std::string& property) {
  std::fprintf(stderr, "PROPERTY: %s\n", property.c_str());
  std::abort();
}

size_t OpenFds() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// What a client has at hand to send along.
class Descriptors {
 public:
  Descriptors() {
    for (OwnedFd& file : files_) {
      file = OwnedFd(memfd_create("client", MFD_ALLOW_SEALING | MFD_CLOEXEC));
      if (ftruncate(file.get(), kFilePages * kPage) != 0) {
        Break("memfd");
      }
    }
    memory_ = static_cast<uint8_t*>(mmap(nullptr, kFilePages * kPage,
                                         PROT_READ | PROT_WRITE, MAP_SHARED,
                                         files_[0].get(), 0));
    if (memory_ == MAP_FAILED ||
        fcntl(files_[0].get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
        fcntl(files_[1].get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
      Break("memory of the client");
    }
    read_only_ = OwnedFd(
        open(("/proc/self/fd/" + std::to_string(files_[1].get())).c_str(),
             O_RDONLY | O_CLOEXEC));
    null_ = OwnedFd(open("/dev/null", O_RDWR | O_CLOEXEC));
    event_ = OwnedFd(eventfd(0, EFD_CLOEXEC));
    full_ = OwnedFd(eventfd(0, EFD_CLOEXEC));
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      Break("pipe");
    }
    close(ends[0]);
    pipe_ = OwnedFd(ends[1]);
  }

  int Get(uint8_t choice) {
    constexpr uint64_t kMost = UINT64_MAX - 1;
    if (choice % 8 == 6) {
      (void)fcntl(full_.get(), F_SETFL, O_NONBLOCK);
      [[maybe_unused]] const ssize_t done =
          write(full_.get(), &kMost, sizeof(kMost));
      (void)fcntl(full_.get(), F_SETFL, 0);
    }
    const std::array<int, 8> all = {
        files_[0].get(), event_.get(), files_[1].get(), files_[2].get(),
        pipe_.get(),     null_.get(),  full_.get(),     read_only_.get()};
    return all[choice % all.size()];
  }
  uint8_t* memory() { return memory_; }

 private:
  // Two are sealed; the first is also seen here.
  std::array<OwnedFd, 3> files_;
  uint8_t* memory_ = nullptr;
  OwnedFd read_only_, null_, event_, full_, pipe_;
};

// The server's function, the same for all inputs.
struct Server {
  Server() {
    sim::device::DeviceOptions options;
    options.wire.name = "fuzz-" + std::to_string(getpid());
    options.wire.ip = 0x0a000001;
    std::string message;
    auto opened = NicFunction::Open(options, {}, &message);
    if (!opened.ok()) {
      Break(message);
    }
    function = std::move(opened.value());
    function->Observe([this](uint64_t iova, uint64_t bytes, bool write) {
      const std::lock_guard lock(mutex);
      if (reference == nullptr || Spoils("dma") ||
          !reference->MayAccess(iova, bytes, write)) {
        Break("DMA outside mapped memory, of " + std::to_string(bytes) +
              " bytes");
      }
    });
  }
  void Expect(VfioUserReference* client) {
    const std::lock_guard lock(mutex);
    reference = client;
  }

  std::mutex mutex;
  VfioUserReference* reference = nullptr;
  Descriptors descriptors;
  std::unique_ptr<NicFunction> function;
};

class Client {
 public:
  explicit Client(Server& server) : server_(server) {
    server_.Expect(&reference_);
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      Break("socketpair");
    }
    channel_ = std::make_unique<Channel>(OwnedFd(ends[0]));
    connection_ =
        std::make_unique<Connection>(OwnedFd(ends[1]), *server.function);
  }
  ~Client() {
    if (!Spoils("next")) {
      server_.function->Detach();
    }
    server_.Expect(nullptr);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool open() const { return connection_ != nullptr; }

  void Execute(Reader input) {
    if (input.Byte() % 8 != 0) {
      Ask(Command::kVersion, Bytes(Version{}));
    }
    for (int i = 0; i < kMostSteps && open() && !input.empty(); ++i) {
      Step(input);
    }
  }

  // One whole message; its answer is in `answer_`.
  void Ask(Command command, const std::vector<std::byte>& body,
           const std::vector<int>& fds = {}, uint32_t flags = 0) {
    const Header header{
        .id = ++id_,
        .command = command,
        .bytes = static_cast<uint32_t>(sizeof(Header) + body.size()),
        .flags = flags,
        .error = 0};
    std::vector<std::byte> bytes = Bytes(header);
    bytes.insert(bytes.end(), body.begin(), body.end());
    Send(bytes, fds);
  }
  void WriteRegister(uint32_t region, uint64_t offset, uint64_t value,
                     uint32_t bytes) {
    std::vector<std::byte> body =
        Bytes(RegionAccess{.offset = offset, .region = region, .count = bytes},
              value);
    body.resize(sizeof(RegionAccess) + bytes);
    Ask(Command::kRegionWrite, body);
  }
  uint64_t ReadRegister(uint32_t region, uint64_t offset, uint32_t bytes) {
    Ask(Command::kRegionRead,
        Bytes(
            RegionAccess{.offset = offset, .region = region, .count = bytes}));
    uint64_t value = 0;
    if (answer_.header.error == 0 &&
        answer_.body.size() == sizeof(RegionAccess) + bytes) {
      std::memcpy(&value, answer_.body.data() + sizeof(RegionAccess), bytes);
    }
    return value;
  }

 private:
  static constexpr int kMostSteps = 64;

  void Step(Reader& input);
  void SendMap(Reader& input);
  void SendInterrupts(Reader& input);
  void SendAdmin(Reader& input);
  std::vector<int> TakeFds(Reader& input);

  void Send(std::span<const std::byte> bytes, const std::vector<int>& fds);
  void Pump();
  void TakeAnswers();
  void End(const std::string& why);

  Server& server_;
  VfioUserReference reference_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Connection> connection_;
  sim::vfio_user::Message answer_;
  uint16_t id_ = 0;
  uint16_t admin_ = 0;     // Commands so far.
  bool many_fds_ = false;  // More than a message takes.
};

std::vector<int> Client::TakeFds(Reader& input) {
  std::vector<int> fds;
  const uint8_t form = input.Byte();
  const size_t count = form % 16 < 8 ? 0 : form % 16 == 15 ? 17 : form % 16 - 7;
  fds.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    fds.push_back(server_.descriptors.Get(input.Byte()));
  }
  many_fds_ = many_fds_ || count > 1;
  return fds;
}

void Client::Send(std::span<const std::byte> bytes,
                  const std::vector<int>& fds) {
  iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()),
              .iov_len = bytes.size()};
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
  }
  if (bytes.empty() || !open()) {
    return;
  }
  if (sendmsg(channel_->fd(), &message, MSG_NOSIGNAL) !=
      static_cast<ssize_t>(bytes.size())) {
    Break("a message that the socket has no room for");
  }
  reference_.Sent(bytes);
  Pump();
}

// Until the server has read all, and all it said has been read.
void Client::Pump() {
  for (;;) {
    const bool goes_on = connection_->Serve();
    TakeAnswers();
    if (!goes_on) {
      End(connection_->why());
      return;
    }
    pollfd more{
        .fd = connection_->fd(), .events = connection_->events(), .revents = 0};
    if (poll(&more, 1, 0) == 0) {
      break;
    }
  }
  reference_.Settle();
  if (reference_.malformed() && !Spoils("malformed")) {
    Break("a message that is none is not the end of its connection");
  }
  if (reference_.due()) {
    Break("an answer is missing");
  }
}

void Client::TakeAnswers() {
  while (channel_->Receive(&answer_) == Channel::Progress::kMessage) {
    if (Spoils("answer")) {
      continue;
    }
    const std::string broken =
        reference_.Answered(answer_.header, answer_.body);
    if (!broken.empty()) {
      Break(broken);
    }
  }
}

void Client::End(const std::string& why) {
  if (!many_fds_ && (!reference_.malformed() || Spoils("malformed")) &&
      why.find("less data than interrupts") == std::string::npos) {
    Break("a connection ended without a reason: " + why);
  }
  connection_.reset();
}

void Client::SendMap(Reader& input) {
  const uint8_t form = input.Byte();
  DmaMap map{.argsz = sizeof(DmaMap),
             .flags = form & 3u,
             .offset = input.Below(kFilePages + 1) * kPage,
             .address = kIova + input.Below(16) * kPage,
             .bytes = (1 + input.Below(4)) * kPage};
  if ((form & 0xc0) == 0xc0) {  // Anything.
    map.flags = input.Byte();
    map.offset = input.Double();
    map.address = input.Double();
    map.bytes = input.Double();
  }
  std::vector<int> fds;
  if ((form & 0x20) == 0) {
    fds.push_back(server_.descriptors.Get(form >> 2));
  }
  Ask(Command::kDmaMap, Bytes(map), fds, form == 0xff ? 0x10 : 0);
}

void Client::SendInterrupts(Reader& input) {
  vfio_irq_set set{};
  set.argsz = sizeof(set);
  set.index = input.Byte() % 8;
  set.flags = input.Byte();
  set.start = input.Byte() % 16;
  set.count = input.Byte() % 20;
  if (set.start == 15) {
    set.start = input.Word();
    set.count = input.Word();
  }
  const std::vector<int> fds = TakeFds(input);
  std::vector<std::byte> body = Bytes(set);
  const auto data = std::as_bytes(input.Bytes(input.Byte() % 20));
  body.insert(body.end(), data.begin(), data.end());
  Ask(Command::kDeviceSetIrqs, body, fds);
}

// Memory with both admin rings, as far as there is none yet, and a command.
void Client::SendAdmin(Reader& input) {
  constexpr uint32_t kLog2 = 4;
  constexpr uint32_t kEntryBytes = sizeof(contract::AdminCommand);
  if (admin_ == 0) {
    WriteRegister(kConfig, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER,
                  2);
    Ask(Command::kDmaMap,
        Bytes(DmaMap{.argsz = sizeof(DmaMap),
                     .flags = 3,
                     .offset = 0,
                     .address = kIova,
                     .bytes = 2 * kPage}),
        {server_.descriptors.Get(0)});
    WriteRegister(0, contract::kBar0AdminCommandBaseOffset, kIova, 8);
    WriteRegister(0, contract::kBar0AdminAnswerBaseOffset, kIova + kPage, 8);
    WriteRegister(0, contract::kBar0AdminSizeOffset, kLog2, 4);
    admin_ = static_cast<uint16_t>(
        ReadRegister(0, contract::kBar0AdminTailOffset, 4));
  }
  uint8_t* const entry = server_.descriptors.memory() +
                         (admin_ % (1u << kLog2)) * size_t{kEntryBytes};
  std::memset(entry, 0, kEntryBytes);
  const auto bytes = input.Bytes(1 + input.Byte() % kEntryBytes);
  std::copy(bytes.begin(), bytes.end(), entry);
  ++admin_;
  WriteRegister(0, contract::kBar0AdminTailOffset, admin_, 4);
}

void Client::Step(Reader& input) {
  constexpr std::array<uint32_t, 4> kWidths = {4, 8, 1, 2};
  switch (input.Byte() % 12) {
    case 0: {
      const auto bytes = std::as_bytes(input.Bytes(input.Byte() % 64));
      many_fds_ = true;  // Whose they become is not known.
      Send(bytes, TakeFds(input));
      break;
    }
    case 1: {
      const auto command = static_cast<Command>(input.Byte() % 16);
      const uint8_t form = input.Byte();
      const auto body = std::as_bytes(input.Bytes(input.Byte() % 80));
      const std::vector<int> fds = TakeFds(input);
      Ask(command, {body.begin(), body.end()}, fds,
          form < 8      ? 0x10
          : form == 255 ? 1
                        : 0);
      break;
    }
    case 2:
      SendMap(input);
      break;
    case 3: {
      const uint8_t form = input.Byte();
      const DmaUnmap unmap{.argsz = sizeof(DmaUnmap),
                           .flags = form < 16     ? 2u
                                    : form == 255 ? 1u
                                                  : 0u,
                           .address = kIova + input.Below(16) * kPage,
                           .bytes = input.Below(17) * kPage};
      Ask(Command::kDmaUnmap, Bytes(unmap), {}, form % 16 == 9 ? 0x10 : 0);
      break;
    }
    case 4: {
      const uint32_t width = kWidths[input.Byte() % 4];
      const uint32_t region = input.Byte() % 10;
      const uint64_t offset = input.Half() & ~uint64_t{3};
      WriteRegister(region, offset, input.Double(), width);
      break;
    }
    case 5: {
      const uint32_t width = kWidths[input.Byte() % 4];
      (void)ReadRegister(input.Byte() % 10, input.Half() & ~uint64_t{3}, width);
      break;
    }
    case 6: {
      const uint64_t page = input.Byte() * kPage;
      const uint64_t offset = input.Byte() * uint64_t{8};
      WriteRegister(2, page + offset, input.Double(), 8);
      break;
    }
    case 7: {
      const uint32_t width = kWidths[input.Byte() % 4];
      WriteRegister(kConfig, input.Half() % kPage, input.Double(), width);
      break;
    }
    case 8:
      SendInterrupts(input);
      break;
    case 9: {
      const size_t at = input.Below(kFilePages) * kPage + input.Byte() * 8u;
      const auto bytes = input.Bytes(input.Byte() % 96);
      std::copy(bytes.begin(), bytes.end(), server_.descriptors.memory() + at);
      break;
    }
    case 10:
      SendAdmin(input);
      break;
    default:
      Ask(Command::kDeviceReset, {});
      admin_ = 0;
      break;
  }
}

// The next client finds the function as after power-on.
void Probe(Server& server) {
  Client next(server);
  next.Ask(Command::kVersion, Bytes(Version{}));
  const bool fresh =
      next.open() && next.ReadRegister(kConfig, PCI_COMMAND, 2) == 0 &&
      next.ReadRegister(0, contract::kBar0MagicOffset, 4) ==
          contract::kBar0MagicReset &&
      (next.ReadRegister(0, contract::kBar0DeviceStatusOffset, 4) &
       contract::kBar0DeviceStatusReadyMask) != 0 &&
      next.ReadRegister(0, contract::kBar0AdminCommandBaseOffset, 8) == 0 &&
      next.ReadRegister(4, 0, 8) == 0;
  if (!fresh) {
    Break("the next client does not find the function as after power-on");
  }
}

}  // namespace
}  // namespace heddle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heddle::fuzz;  // NOLINT: all that is here.
  static auto* const server = new Server;
  static const bool warm = [] {
    Probe(*server);
    return true;
  }();
  const size_t before = OpenFds();
  {
    Client client(*server);
    client.Execute(Reader({data, size}));
  }
  if (Spoils("fd")) {
    dup(0);
  }
  if (warm && OpenFds() != before) {
    Break("file descriptors stay open");
  }
  Probe(*server);
  return 0;
}
