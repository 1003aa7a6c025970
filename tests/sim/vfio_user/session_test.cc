// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hw/sim/vfio_user/guest_memory.h"
#include "tests/seed.h"
#include "tests/sim/vfio_user/client.h"
#include "tests/sim/vfio_user/memory_file.h"

namespace heddle::sim::vfio_user {
namespace {

constexpr uint32_t kVectors = 4;
constexpr uint64_t kRegionBytes = 65536;

// Region 0 is memory, region 7 refuses; what is called is kept.
class RecordedFunction final : public Function {
 public:
  uint64_t region_bytes(uint32_t region) const override {
    EXPECT_LT(region, VFIO_PCI_NUM_REGIONS + 0u);
    return region == 0 || region == 7 ? kRegionBytes : 0;
  }
  bool ReadRegion(uint32_t region, uint64_t offset,
                  std::span<std::byte> out) override {
    EXPECT_LE(offset + out.size(), kRegionBytes);
    ++accesses;
    if (region != 0) {
      return false;
    }
    std::copy_n(registers.begin() + static_cast<long>(offset), out.size(),
                out.begin());
    return true;
  }
  bool WriteRegion(uint32_t region, uint64_t offset,
                   std::span<const std::byte> bytes) override {
    EXPECT_LE(offset + bytes.size(), kRegionBytes);
    ++accesses;
    if (region != 0) {
      return false;
    }
    std::copy(bytes.begin(), bytes.end(),
              registers.begin() + static_cast<long>(offset));
    return true;
  }
  uint32_t interrupts(uint32_t index) const override {
    EXPECT_LT(index, VFIO_PCI_NUM_IRQS + 0u);
    return index == VFIO_PCI_MSIX_IRQ_INDEX  ? kVectors
           : index == VFIO_PCI_ERR_IRQ_INDEX ? 1
                                             : 0;
  }
  void Connect(uint32_t index, uint32_t interrupt,
               base::OwnedFd event) override {
    EXPECT_LT(interrupt, interrupts(index));
    connected[{index, interrupt}] = std::move(event);
  }
  void Trigger(uint32_t index, uint32_t interrupt) override {
    EXPECT_LT(interrupt, interrupts(index));
    triggered.emplace_back(index, interrupt);
  }
  Result<bool> MapDma(uint64_t iova, uint64_t bytes, base::OwnedFd file,
                      uint64_t offset, bool writable) override {
    return memory.Map(iova, bytes, std::move(file), offset, writable);
  }
  Result<size_t> UnmapDma(uint64_t first, uint64_t last) override {
    return memory.Unmap(first, last);
  }
  Result<bool> Reset() override {
    ++resets;
    if (stuck) {
      return Errno{EIO};
    }
    return true;
  }

  // Interrupts that are delivered somewhere.
  size_t on() const {
    size_t count = 0;
    for (const auto& [name, event] : connected) {
      count += event.valid() ? 1 : 0;
    }
    return count;
  }

  std::vector<std::byte> registers = std::vector<std::byte>(kRegionBytes);
  std::map<std::pair<uint32_t, uint32_t>, base::OwnedFd> connected;
  std::vector<std::pair<uint32_t, uint32_t>> triggered;
  GuestMemory memory;
  int resets = 0;
  bool stuck = false;  // Does not come back from a reset.
  int accesses = 0;
};

class SessionTest : public testing::Test {
 protected:
  bool Ask(Command command, std::vector<std::byte> body = {},
           std::vector<base::OwnedFd> fds = {}, uint32_t flags = 0) {
    Message message;
    message.header = {.id = 42,
                      .command = command,
                      .bytes = static_cast<uint32_t>(16 + body.size()),
                      .flags = flags,
                      .error = 0};
    message.body = std::move(body);
    message.fds = std::move(fds);
    return session_->Handle(std::move(message), &answer_);
  }
  bool Greet() { return Ask(Command::kVersion, Bytes(Version{})); }
  template <typename T>
  T Answered() const {
    T value{};
    EXPECT_GE(answer_.body.size(), sizeof(value));
    std::memcpy(&value, answer_.body.data(),
                std::min(sizeof(value), answer_.body.size()));
    return value;
  }
  int error() const { return static_cast<int>(answer_.header.error); }
  static std::vector<base::OwnedFd> Events(int count) {
    std::vector<base::OwnedFd> fds;
    fds.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      fds.emplace_back(eventfd(0, EFD_CLOEXEC));
    }
    return fds;
  }
  bool Set(uint32_t index, uint32_t start, uint32_t count, uint32_t flags,
           std::vector<base::OwnedFd> fds = {}) {
    vfio_irq_set set{};
    set.argsz = sizeof(set);
    set.flags = flags;
    set.index = index;
    set.start = start;
    set.count = count;
    return Ask(Command::kDeviceSetIrqs, Bytes(set), std::move(fds));
  }

  RecordedFunction function_;
  std::optional<Session> session_{std::in_place, function_};
  Answer answer_;
};

TEST_F(SessionTest, VersionIsAgreedFirst) {
  EXPECT_TRUE(Ask(Command::kVersion, Bytes(Version{.major = 0, .minor = 3})));
  EXPECT_EQ(answer_.header.flags, uint32_t{kFlagReply});
  EXPECT_EQ(answer_.header.id, 42);
  EXPECT_EQ(Answered<Version>().minor, 0);
  const std::string text(reinterpret_cast<const char*>(answer_.body.data()) +
                         sizeof(Version));
  EXPECT_EQ(
      text,
      R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":4096,"pgsizes":4096}})");
}

TEST_F(SessionTest, WhatIsNoMessageEndsTheConnection) {
  EXPECT_FALSE(Ask(Command::kDeviceReset));
  EXPECT_EQ(session_->why(), "the first message is not VERSION");
  EXPECT_FALSE(Ask(Command::kVersion, Bytes(Version{.major = 1})));
  EXPECT_FALSE(Ask(Command::kVersion, Bytes(uint16_t{0})));
  EXPECT_FALSE(Ask(Command::kVersion, Bytes(Version{}, 'x')));
  EXPECT_TRUE(Greet());
  EXPECT_FALSE(Greet());
  EXPECT_FALSE(Ask(Command::kDeviceReset, {}, {}, kFlagReply));
  for (const Command command :
       {Command::kDmaMap, Command::kDmaUnmap, Command::kDeviceGetInfo,
        Command::kDeviceGetRegionInfo, Command::kDeviceGetIrqInfo,
        Command::kDeviceSetIrqs, Command::kRegionRead, Command::kRegionWrite}) {
    EXPECT_FALSE(Ask(command, Bytes(uint16_t{0}))) << static_cast<int>(command);
    EXPECT_NE(session_->why().find("a request of 2 bytes"), std::string::npos);
  }
  EXPECT_FALSE(
      Ask(Command::kRegionWrite, Bytes(RegionAccess{.count = 9}, uint64_t{0})));
  EXPECT_EQ(function_.accesses, 0);
  EXPECT_EQ(function_.resets, 0);
}

TEST_F(SessionTest, UnknownCommandsAreNotSupported) {
  ASSERT_TRUE(Greet());
  for (const int command : {0, 6, 11, 12, 14, 15, 999}) {
    EXPECT_TRUE(Ask(static_cast<Command>(command), Bytes(uint64_t{0})));
    EXPECT_EQ(error(), ENOTSUP);
    EXPECT_EQ(answer_.header.flags, uint32_t{kFlagReply | kFlagError});
    EXPECT_EQ(answer_.header.bytes, sizeof(Header));
  }
}

TEST_F(SessionTest, DeviceDescribesItself) {
  ASSERT_TRUE(Greet());
  ASSERT_TRUE(Ask(Command::kDeviceGetInfo, Bytes(std::array<uint32_t, 4>{16})));
  const auto info = Answered<std::array<uint32_t, 4>>();
  EXPECT_EQ(info[1], uint32_t{VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET});
  EXPECT_EQ(info[2], uint32_t{VFIO_PCI_NUM_REGIONS});
  vfio_region_info region{};
  region.argsz = sizeof(region);
  ASSERT_TRUE(Ask(Command::kDeviceGetRegionInfo, Bytes(region)));
  EXPECT_EQ(Answered<vfio_region_info>().size, kRegionBytes);
  region.index = 1;
  ASSERT_TRUE(Ask(Command::kDeviceGetRegionInfo, Bytes(region)));
  EXPECT_EQ(Answered<vfio_region_info>().size, 0u);
  EXPECT_EQ(Answered<vfio_region_info>().flags, 0u);
  region.index = VFIO_PCI_NUM_REGIONS;
  ASSERT_TRUE(Ask(Command::kDeviceGetRegionInfo, Bytes(region)));
  EXPECT_EQ(error(), EINVAL);
  vfio_irq_info irq{};
  irq.index = VFIO_PCI_MSIX_IRQ_INDEX;
  ASSERT_TRUE(Ask(Command::kDeviceGetIrqInfo, Bytes(irq)));
  EXPECT_EQ(Answered<vfio_irq_info>().count, kVectors);
  irq.index = VFIO_PCI_INTX_IRQ_INDEX;
  ASSERT_TRUE(Ask(Command::kDeviceGetIrqInfo, Bytes(irq)));
  EXPECT_EQ(Answered<vfio_irq_info>().count, 0u);
  irq.index = UINT32_MAX;
  ASSERT_TRUE(Ask(Command::kDeviceGetIrqInfo, Bytes(irq)));
  EXPECT_EQ(error(), EINVAL);
}

TEST_F(SessionTest, RegionsAreReadAndWritten) {
  ASSERT_TRUE(Greet());
  const RegionAccess access{.offset = 0x100, .region = 0, .count = 8};
  ASSERT_TRUE(Ask(Command::kRegionWrite, Bytes(access, uint64_t{0x1234567})));
  EXPECT_EQ(error(), 0);
  EXPECT_EQ(Answered<RegionAccess>().count, 8u);
  ASSERT_TRUE(Ask(Command::kRegionRead, Bytes(access)));
  EXPECT_EQ(answer_.body.size(), sizeof(access) + 8);
  uint64_t value = 0;
  std::memcpy(&value, answer_.body.data() + sizeof(access), sizeof(value));
  EXPECT_EQ(value, 0x1234567u);
}

TEST_F(SessionTest, AccessOutsideARegionReachesNothing) {
  ASSERT_TRUE(Greet());
  const std::vector<std::byte> data(kMaxTransferBytes + 1);
  for (const RegionAccess& access : std::vector<RegionAccess>{
           {.offset = kRegionBytes - 4, .region = 0, .count = 8},
           {.offset = UINT64_MAX - 3, .region = 0, .count = 8},
           {.offset = 0, .region = 1, .count = 4},
           {.offset = 0, .region = VFIO_PCI_NUM_REGIONS, .count = 4},
           {.offset = 0, .region = UINT32_MAX, .count = 4},
           {.offset = 0, .region = 0, .count = 0},
           {.offset = 0, .region = 0, .count = kMaxTransferBytes + 1}}) {
    EXPECT_TRUE(Ask(Command::kRegionRead, Bytes(access)));
    EXPECT_EQ(error(), EINVAL);
    std::vector<std::byte> body = Bytes(access);
    body.insert(body.end(), data.begin(), data.end());
    EXPECT_TRUE(Ask(Command::kRegionWrite, std::move(body)));
    EXPECT_EQ(error(), EINVAL);
  }
  EXPECT_EQ(function_.accesses, 0);
  // The function itself may refuse, too.
  EXPECT_TRUE(
      Ask(Command::kRegionRead, Bytes(RegionAccess{.region = 7, .count = 4})));
  EXPECT_EQ(error(), EINVAL);
  EXPECT_TRUE(answer_.body.empty());
}

TEST_F(SessionTest, InterruptsAreConnectedTriggeredAndTurnedOff) {
  ASSERT_TRUE(Greet());
  constexpr uint32_t kEvents =
      VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  constexpr uint32_t kNone =
      VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
  ASSERT_TRUE(Set(VFIO_PCI_MSIX_IRQ_INDEX, 1, 3, kEvents, Events(3)));
  EXPECT_EQ(error(), 0);
  EXPECT_EQ(function_.on(), 3u);
  ASSERT_TRUE(Set(VFIO_PCI_MSIX_IRQ_INDEX, 2, 1, kNone));
  EXPECT_EQ(function_.triggered.size(), 1u);
  EXPECT_EQ(function_.triggered[0].second, 2u);
  ASSERT_TRUE(Set(VFIO_PCI_MSIX_IRQ_INDEX, 3, 1, kEvents));
  EXPECT_EQ(function_.on(), 2u);
  ASSERT_TRUE(Set(VFIO_PCI_MSIX_IRQ_INDEX, 0, 0, kNone));
  EXPECT_EQ(function_.on(), 0u);
}

TEST_F(SessionTest, InterruptsThatThereAreNotAreRefused) {
  ASSERT_TRUE(Greet());
  constexpr uint32_t kEvents =
      VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  const auto refused = [&](uint32_t index, uint32_t start, uint32_t count,
                           int fds) {
    EXPECT_TRUE(Set(index, start, count, kEvents, Events(fds)));
    return error();
  };
  EXPECT_EQ(refused(VFIO_PCI_MSIX_IRQ_INDEX, 0, kVectors + 1, 5), EINVAL);
  EXPECT_EQ(refused(VFIO_PCI_MSIX_IRQ_INDEX, UINT32_MAX, 2, 2), EINVAL);
  EXPECT_EQ(refused(VFIO_PCI_MSIX_IRQ_INDEX, 2, UINT32_MAX, 1), EINVAL);
  EXPECT_EQ(refused(VFIO_PCI_INTX_IRQ_INDEX, 0, 1, 1), EINVAL);
  EXPECT_EQ(refused(99, 0, 1, 1), EINVAL);
  EXPECT_EQ(refused(VFIO_PCI_MSIX_IRQ_INDEX, 0, 3, 2), EINVAL);
  EXPECT_TRUE(Set(VFIO_PCI_MSIX_IRQ_INDEX, 0, 1,
                  VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK));
  EXPECT_EQ(error(), ENOTSUP);
  EXPECT_FALSE(Set(VFIO_PCI_MSIX_IRQ_INDEX, 0, 2,
                   VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER));
  EXPECT_EQ(function_.on(), 0u);
  EXPECT_TRUE(function_.triggered.empty());
}

TEST_F(SessionTest, MemoryIsMappedAndUnmapped) {
  ASSERT_TRUE(Greet());
  const MemoryFile file(65536);
  DmaMap map{.argsz = sizeof(DmaMap),
             .flags = kDmaReadable | kDmaWritable,
             .offset = 4096,
             .address = 0x100000,
             .bytes = 8192};
  std::vector<base::OwnedFd> fds;
  fds.push_back(file.Copy());
  ASSERT_TRUE(Ask(Command::kDmaMap, Bytes(map), std::move(fds)));
  EXPECT_EQ(error(), 0);
  const std::array<uint8_t, 1> byte = {9};
  EXPECT_TRUE(function_.memory.Write(0x100000, byte));
  EXPECT_EQ(file.data()[4096], 9);
  ASSERT_TRUE(Ask(Command::kDmaMap, Bytes(map)));
  EXPECT_EQ(error(), EEXIST);
  map.flags = 8;
  ASSERT_TRUE(Ask(Command::kDmaMap, Bytes(map)));
  EXPECT_EQ(error(), EINVAL);
  EXPECT_FALSE(Ask(Command::kDmaMap, Bytes(map), Events(2)));

  DmaUnmap unmap{
      .argsz = sizeof(DmaUnmap), .address = 0x101000, .bytes = 0x1000};
  ASSERT_TRUE(Ask(Command::kDmaUnmap, Bytes(unmap)));
  EXPECT_EQ(error(), EINVAL) << "half a mapping";
  unmap = {.argsz = sizeof(DmaUnmap), .address = 0, .bytes = 0x100000};
  ASSERT_TRUE(Ask(Command::kDmaUnmap, Bytes(unmap)));
  EXPECT_EQ(error(), 0) << "an unmap of nothing succeeds";
  EXPECT_EQ(function_.memory.mappings(), 1u);
  unmap.bytes = UINT64_MAX;
  ASSERT_TRUE(Ask(Command::kDmaUnmap, Bytes(unmap)));
  EXPECT_EQ(function_.memory.mappings(), 0u);
  unmap.flags = kUnmapDirtyPages;
  ASSERT_TRUE(Ask(Command::kDmaUnmap, Bytes(unmap)));
  EXPECT_EQ(error(), ENOTSUP);
}

TEST_F(SessionTest, EverythingIsUnmappedAtOnce) {
  ASSERT_TRUE(Greet());
  const MemoryFile file(8192);
  ASSERT_TRUE(function_.MapDma(0, 4096, file.Copy(), 0, true).ok());
  ASSERT_TRUE(
      function_.MapDma(UINT64_MAX - 4095, 4096, file.Copy(), 0, true).ok());
  ASSERT_TRUE(Ask(Command::kDmaUnmap, Bytes(DmaUnmap{.flags = kUnmapAll})));
  EXPECT_EQ(function_.memory.mappings(), 0u);
}

TEST_F(SessionTest, ClientMayAskForNoAnswer) {
  ASSERT_TRUE(Greet());
  ASSERT_TRUE(Ask(Command::kDeviceReset, {}, {}, kFlagNoReply));
  EXPECT_FALSE(answer_.wanted);
  EXPECT_EQ(function_.resets, 1);
}

TEST_F(SessionTest, ResetThatFailsIsAnError) {
  ASSERT_TRUE(Greet());
  ASSERT_TRUE(Ask(Command::kDeviceReset));
  EXPECT_EQ(answer_.header.error, 0u);
  function_.stuck = true;
  ASSERT_TRUE(Ask(Command::kDeviceReset));
  EXPECT_EQ(answer_.header.error, uint32_t{EIO});
}

// A write to a pipe without readers would end the server.
TEST_F(SessionTest, InterruptsGoToEventsOnly) {
  ASSERT_TRUE(Greet());
  constexpr uint32_t kEvents =
      VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const base::OwnedFd reader(ends[0]);
  std::vector<base::OwnedFd> fds = Events(1);
  fds.emplace_back(ends[1]);
  ASSERT_TRUE(Set(VFIO_PCI_MSIX_IRQ_INDEX, 0, 2, kEvents, std::move(fds)));
  EXPECT_EQ(error(), EINVAL);
  EXPECT_EQ(function_.on(), 0u);
  // One that is full keeps nobody waiting.
  ASSERT_TRUE(Set(VFIO_PCI_MSIX_IRQ_INDEX, 0, 1, kEvents, Events(1)));
  const base::OwnedFd& event =
      function_.connected[{VFIO_PCI_MSIX_IRQ_INDEX, 0}];
  constexpr uint64_t kFull = UINT64_MAX - 1;
  ASSERT_EQ(write(event.get(), &kFull, sizeof(kFull)), 8);
  EXPECT_EQ(write(event.get(), &kFull, sizeof(kFull)), -1);
}

// Whatever comes: an answer or the end, and nothing outside (the function's own
// expectations).
TEST_F(SessionTest, RandomMessagesAreSurvived) {
  std::mt19937 random(TestSeed());
  ASSERT_TRUE(Greet());
  const MemoryFile file(65536);
  for (int i = 0; i < 50000; ++i) {
    std::vector<std::byte> body(random() % 48);
    for (std::byte& byte : body) {
      // Small numbers are more often right.
      byte =
          static_cast<std::byte>(random() % 4 != 0 ? random() % 3 : random());
    }
    std::vector<base::OwnedFd> fds;
    if (random() % 4 == 0) {
      fds.push_back(file.Copy());
    }
    const bool goes_on = Ask(static_cast<Command>(2 + random() % 14),
                             std::move(body), std::move(fds));
    EXPECT_EQ(goes_on, session_->why().empty());
    if (!goes_on) {
      session_.emplace(function_);
      ASSERT_TRUE(Greet());
    }
  }
}

}  // namespace
}  // namespace heddle::sim::vfio_user
