// SPDX-License-Identifier: Apache-2.0
// DMA buffers, slabs and the registration rule.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "driver/dma/dma_buffer.h"
#include "driver/dma/registrar.h"
#include "driver/dma/slab_pool.h"
#include "gtest/gtest.h"
#include "tests/driver/fake_device.h"
#include "tests/seed.h"

namespace heddle {
namespace {

template <typename T>
int ErrorOf(const Result<T>& result) {
  return result.ok() ? 0 : static_cast<int>(result.error());
}

// As the device reads and writes it.
uint8_t* At(Iova iova) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<uint8_t*>(ToInteger(iova) - FakeDevice::kIovaOffset);
}

std::vector<uint8_t> Pattern(size_t bytes, uint8_t seed = 1) {
  std::vector<uint8_t> data(bytes);
  std::iota(data.begin(), data.end(), seed);
  return data;
}

// --------------------------------------------------------------- DmaBuffer

TEST(DmaBufferTest, IsZeroedAlignedAndMappedWhileItLives) {
  FakeDevice device;
  for (const size_t bytes :
       {size_t{1}, size_t{4096}, size_t{5000}, size_t{3} << 20}) {
    Result<DmaBuffer> created = DmaBuffer::Create(device, bytes);
    ASSERT_TRUE(created.ok());
    DmaBuffer buffer = std::move(created.value());
    EXPECT_GE(buffer.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 4096, 0U);
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + bytes,
                            [](std::byte b) { return b == std::byte{}; }));
    EXPECT_EQ(At(buffer.iova()), reinterpret_cast<uint8_t*>(buffer.data()));
    EXPECT_TRUE(device.IsMapped(ToInteger(buffer.iova()), buffer.bytes()));
  }
  EXPECT_TRUE(device.mappings.empty());
  EXPECT_EQ(device.bad_unmaps, 0U);
}

TEST(DmaBufferTest, MoveLeavesOneOwner) {
  FakeDevice device;
  {
    DmaBuffer a = std::move(DmaBuffer::Create(device, 4096).value());
    DmaBuffer b = std::move(DmaBuffer::Create(device, 8192).value());
    std::byte* data = a.data();
    b = std::move(a);
    EXPECT_EQ(b.data(), data);
    DmaBuffer c(std::move(b));
    EXPECT_EQ(c.data(), data);
    EXPECT_EQ(c.bytes(), 4096U);
  }
  EXPECT_TRUE(device.mappings.empty());
  EXPECT_EQ(device.bad_unmaps, 0U);
}

TEST(DmaBufferTest, FailuresAreReported) {
  FakeDevice device;
  EXPECT_EQ(ErrorOf(DmaBuffer::Create(device, 0)), EINVAL);
  EXPECT_EQ(ErrorOf(DmaBuffer::Create(device, SIZE_MAX)), EINVAL);
  EXPECT_EQ(ErrorOf(DmaBuffer::Create(device, size_t{1} << 62)), ENOMEM);
  device.map_error = ENOSPC;
  EXPECT_EQ(ErrorOf(DmaBuffer::Create(device, 4096)), ENOSPC);
}

TEST(DmaBufferTest, ChildOfAForkDoesNotShareTheMemory) {
  FakeDevice device;
  DmaBuffer buffer = std::move(DmaBuffer::Create(device, 4096).value());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    unsigned char resident = 0;
    // ENOMEM: nothing is mapped there.
    const bool absent =
        mincore(buffer.data(), 4096, &resident) != 0 && errno == ENOMEM;
    _exit(absent ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// ------------------------------------------------------------------- slabs

TEST(SlabPoolTest, HandsOutDistinctMappedSlabsUntilItIsFull) {
  FakeDevice device;
  SlabPool pool = std::move(
      SlabPool::Create(device, {.small = 4, .medium = 3, .large = 2}).value());
  EXPECT_EQ(device.mappings.size(), 3U) << "all are mapped at creation";
  std::vector<Slab> taken;
  Slab slab;
  while (pool.TryTake(200, slab)) {
    EXPECT_TRUE(device.IsMapped(ToInteger(slab.iova), 256));
    EXPECT_EQ(At(slab.iova), reinterpret_cast<uint8_t*>(slab.address));
    std::memset(slab.address, static_cast<int>(taken.size() + 1), 200);
    taken.push_back(slab);
  }
  EXPECT_EQ(taken.size(), 9U) << "larger slabs serve when small ones are used";
  for (size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(taken[i].address[199]), i + 1);
  }
  EXPECT_FALSE(pool.TryTake(1, slab));
  pool.Return(taken[5]);
  ASSERT_TRUE(pool.TryTake(1, slab));
  EXPECT_EQ(slab.address, taken[5].address);
}

TEST(SlabPoolTest, SlabHoldsWhatWasAskedFor) {
  FakeDevice device;
  SlabPool pool = std::move(SlabPool::Create(device, {}).value());
  for (const uint32_t bytes : {0U, 1U, 256U, 257U, 4096U, 4097U, 65536U}) {
    Slab slab;
    ASSERT_TRUE(pool.TryTake(bytes, slab));
    EXPECT_GE(SlabPool::kSlabBytes[slab.size_class], bytes);
    EXPECT_TRUE(device.IsMapped(ToInteger(slab.iova), bytes));
  }
  Slab slab;
  EXPECT_FALSE(pool.TryTake(65537, slab));
}

TEST(SlabPoolTest, EmptyClassIsRefused) {
  FakeDevice device;
  EXPECT_EQ(ErrorOf(SlabPool::Create(device, {.small = 0})), EINVAL);
  EXPECT_EQ(ErrorOf(SlabPool::Create(device, {.small = 65536})), EINVAL);
  EXPECT_TRUE(device.mappings.empty());
}

// --------------------------------------------------------------- registrar

class RegistrarTest : public ::testing::Test {
 protected:
  void SetUp() override { Open({.tickets = 8, .slabs = {2, 2, 2}}); }

  void Open(const Registrar::Options& options) {
    registrar_ = std::make_unique<Registrar>(
        std::move(Registrar::Create(device_, options).value()));
    idle_mappings_ = device_.mappings.size();
  }

  Prepared Send(std::vector<uint8_t>& data) {
    const Segment segment{.address = data.data(), .bytes = data.size()};
    return registrar_->PrepareSend({&segment, 1});
  }
  Prepared Receive(std::vector<uint8_t>& data) {
    const Segment segment{.address = data.data(), .bytes = data.size()};
    return registrar_->PrepareReceive({&segment, 1});
  }
  // Mappings beyond those of the idle registrar.
  size_t Extra() const { return device_.mappings.size() - idle_mappings_; }

  FakeDevice device_;
  std::unique_ptr<Registrar> registrar_;
  size_t idle_mappings_ = 0;
};

TEST_F(RegistrarTest, SmallBufferIsCopiedSoItsOwnerMayReuseItAtOnce) {
  auto data = Pattern(65536);
  const auto original = data;
  const Prepared prepared = Send(data);
  ASSERT_EQ(prepared.status, Prepared::Status::kOk);
  ASSERT_NE(prepared.ticket, kNoTicket);
  std::fill(data.begin(), data.end(), 0);
  EXPECT_EQ(std::memcmp(At(prepared.iova), original.data(), original.size()),
            0);
  EXPECT_EQ(Extra(), 0U);
  registrar_->FinishSend(prepared.ticket);
  EXPECT_EQ(registrar_->free_tickets(), 8U);
}

TEST_F(RegistrarTest, LargeBufferIsMappedForExactlyTheOperation) {
  auto data = Pattern(65537);
  const Prepared prepared = Send(data);
  ASSERT_EQ(prepared.status, Prepared::Status::kOk);
  EXPECT_EQ(At(prepared.iova), data.data()) << "not copied";
  EXPECT_TRUE(device_.IsMapped(ToInteger(prepared.iova), data.size()));
  EXPECT_EQ(Extra(), 1U);
  registrar_->FinishSend(prepared.ticket);
  EXPECT_EQ(Extra(), 0U);
}

TEST_F(RegistrarTest, ImplicitRegistrationNeverOutlivesItsOperation) {
  // Send, unmap, map other pages at the same address, send again.
  constexpr size_t kBytes = size_t{1} << 20;
  void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  for (int round = 1; round <= 3; ++round) {
    std::memset(pages, round, kBytes);
    const Segment segment{.address = pages, .bytes = kBytes};
    const Prepared prepared = registrar_->PrepareSend({&segment, 1});
    ASSERT_EQ(prepared.status, Prepared::Status::kOk);
    EXPECT_EQ(At(prepared.iova)[kBytes - 1], round);
    registrar_->FinishSend(prepared.ticket);
    EXPECT_FALSE(device_.IsMapped(ToInteger(prepared.iova), 1));
    ASSERT_EQ(munmap(pages, kBytes), 0);
    ASSERT_EQ(mmap(pages, kBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              pages);
  }
  munmap(pages, kBytes);
}

TEST_F(RegistrarTest, ReceivedBytesReachTheUserOnlyAtCompletion) {
  std::vector<uint8_t> data(1000, 0xee);
  const Prepared prepared = Receive(data);
  ASSERT_EQ(prepared.status, Prepared::Status::kOk);
  const auto arrived = Pattern(600);
  std::memcpy(At(prepared.iova), arrived.data(), arrived.size());
  EXPECT_EQ(data, std::vector<uint8_t>(1000, 0xee));
  registrar_->FinishReceive(prepared.ticket, 600);
  EXPECT_TRUE(std::equal(arrived.begin(), arrived.end(), data.begin()));
  EXPECT_EQ(data[600], 0xee) << "only what was placed is written";
  EXPECT_EQ(registrar_->free_tickets(), 8U);
}

TEST_F(RegistrarTest, ReceiveThroughASlabIsTriedInOneStep) {
  std::vector<uint8_t> data(1000, 0xee);
  Ticket ticket = kNoTicket;
  Iova iova{};
  const auto try_copy = [&](size_t bytes) {
    return registrar_->TryCopyReceive(data.data(), bytes, &ticket, &iova);
  };
  EXPECT_FALSE(try_copy(0));
  EXPECT_FALSE(try_copy(Registrar::kDefaultCopyLimitBytes + 1));
  EXPECT_EQ(registrar_->free_tickets(), 8U);
  ASSERT_TRUE(try_copy(data.size()));
  EXPECT_TRUE(registrar_->CopiesOut(ticket));
  const auto arrived = Pattern(600);
  std::memcpy(At(iova), arrived.data(), arrived.size());
  EXPECT_EQ(data, std::vector<uint8_t>(1000, 0xee));
  registrar_->FinishReceive(ticket, 600);
  EXPECT_TRUE(std::equal(arrived.begin(), arrived.end(), data.begin()));
  EXPECT_EQ(data[600], 0xee) << "only what was placed is written";
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(try_copy(1));
  }
  EXPECT_FALSE(try_copy(1)) << "six slabs";
  EXPECT_EQ(registrar_->free_tickets(), 2U);
  Open({.tickets = 1, .slabs = {2, 2, 2}});
  ASSERT_TRUE(try_copy(1));
  EXPECT_FALSE(try_copy(1)) << "one ticket";
  EXPECT_EQ(Extra(), 0U);
}

TEST_F(RegistrarTest, PiecesStayInPlaceUnlessACopyIsCheaper) {
  auto small = Pattern(100);
  auto large = Pattern(70000);
  auto region = MappedRegion::Create(device_, large.data(), large.size());
  ASSERT_TRUE(region.ok());
  const Segment registered = {.address = large.data(),
                              .bytes = large.size(),
                              .region = &region.value()};
  const Segment loose = {.address = small.data(), .bytes = small.size()};
  const Segment none = {};
  // Short and not all registered: one copy.
  const std::array<Segment, 3> loose_ones = {loose, none, loose};
  auto pieces = registrar_->PreparePieces(loose_ones, /*receive=*/false);
  ASSERT_EQ(pieces.status, Prepared::Status::kOk);
  ASSERT_EQ(pieces.count, 1U);
  EXPECT_EQ(pieces.pieces[0].bytes, 200U);
  registrar_->FinishSend(pieces.ticket);
  // Long, or to stay in place: each by itself, and all given back together.
  const std::array<Segment, 4> mixed = {registered, loose, none, loose};
  for (const bool in_place : {false, true}) {
    pieces = registrar_->PreparePieces(mixed, /*receive=*/true, in_place);
    ASSERT_EQ(pieces.status, Prepared::Status::kOk);
    ASSERT_EQ(pieces.count, 3U);
    EXPECT_EQ(At(pieces.pieces[0].iova), large.data());
    EXPECT_EQ(At(pieces.pieces[1].iova), small.data());
    EXPECT_FALSE(registrar_->CopiesOut(pieces.ticket));
    EXPECT_EQ(registrar_->free_tickets(), 6U);
    registrar_->FinishReceive(pieces.ticket, 100000);
    EXPECT_EQ(registrar_->free_tickets(), 8U);
  }
  EXPECT_EQ(large, Pattern(70000));
}

TEST_F(RegistrarTest, ReceiveWithoutDataLeavesTheBufferAlone) {
  std::vector<uint8_t> data(1000, 0xee);
  const Prepared prepared = Receive(data);
  std::memset(At(prepared.iova), 0, 1000);
  registrar_->FinishReceive(prepared.ticket, 0);
  EXPECT_EQ(data, std::vector<uint8_t>(1000, 0xee));
}

TEST_F(RegistrarTest, LengthBeyondTheBufferDoesNotOverrunIt) {
  std::vector<uint8_t> memory(300, 0xee);
  const Segment segment{.address = memory.data(), .bytes = 200};
  const Prepared prepared = registrar_->PrepareReceive({&segment, 1});
  std::memset(At(prepared.iova), 1, 256);
  registrar_->FinishReceive(prepared.ticket, 100000);
  EXPECT_EQ(memory[199], 1);
  EXPECT_EQ(memory[200], 0xee);
}

TEST_F(RegistrarTest, LargeReceiveIsPlacedDirectly) {
  std::vector<uint8_t> data(100000);
  const Prepared prepared = Receive(data);
  EXPECT_EQ(At(prepared.iova), data.data());
  data[5] = 77;
  registrar_->FinishReceive(prepared.ticket, data.size());
  EXPECT_EQ(data[5], 77);
  EXPECT_EQ(Extra(), 0U);
}

TEST_F(RegistrarTest, RegisteredMemoryIsUsedInPlaceAndHoldsNothing) {
  auto data = Pattern(5000);
  MappedRegion region = std::move(
      MappedRegion::Create(device_, data.data(), data.size()).value());
  const Segment segment{
      .address = data.data() + 100, .bytes = 50, .region = &region};
  const Prepared prepared = registrar_->PrepareSend({&segment, 1});
  ASSERT_EQ(prepared.status, Prepared::Status::kOk);
  EXPECT_EQ(prepared.ticket, kNoTicket);
  EXPECT_EQ(At(prepared.iova), data.data() + 100);
  registrar_->FinishSend(prepared.ticket);
  EXPECT_TRUE(device_.IsMapped(ToInteger(prepared.iova), 50));
}

TEST_F(RegistrarTest, RangeOutsideItsRegionIsRefused) {
  auto data = Pattern(5000);
  MappedRegion region =
      std::move(MappedRegion::Create(device_, data.data(), 1000).value());
  for (const auto& [offset, bytes] :
       std::vector<std::pair<size_t, size_t>>{{999, 2}, {1001, 1}, {0, 1001}}) {
    const Segment segment{
        .address = data.data() + offset, .bytes = bytes, .region = &region};
    const Prepared prepared = registrar_->PrepareSend({&segment, 1});
    EXPECT_EQ(prepared.status, Prepared::Status::kFailed);
    EXPECT_EQ(prepared.error, Errno{EINVAL});
  }
}

TEST_F(RegistrarTest, OverlappingRegistrationsEndEachOnItsOwn) {
  auto data = Pattern(300000);
  auto region = std::make_unique<MappedRegion>(std::move(
      MappedRegion::Create(device_, data.data(), data.size()).value()));
  const Prepared whole = Send(data);
  const Prepared again = Send(data);
  ASSERT_EQ(again.status, Prepared::Status::kOk);
  registrar_->FinishSend(whole.ticket);
  region.reset();
  EXPECT_TRUE(device_.IsMapped(ToInteger(again.iova), data.size()));
  registrar_->FinishSend(again.ticket);
  EXPECT_EQ(Extra(), 0U);
  EXPECT_EQ(device_.bad_unmaps, 0U);
}

TEST_F(RegistrarTest, SegmentsAreGatheredAndScatteredInOrder) {
  for (const size_t bytes : {size_t{100}, size_t{30000}}) {
    auto a = Pattern(bytes, 1);
    std::vector<uint8_t> none;
    auto b = Pattern(bytes, 9);
    auto c = Pattern(bytes, 200);
    const Segment segments[] = {{.address = a.data(), .bytes = bytes},
                                {.address = none.data(), .bytes = 0},
                                {.address = b.data(), .bytes = bytes},
                                {.address = c.data(), .bytes = bytes}};
    const Prepared sent = registrar_->PrepareSend(segments);
    ASSERT_EQ(sent.status, Prepared::Status::kOk);
    const Prepared received = registrar_->PrepareReceive(segments);
    ASSERT_EQ(received.status, Prepared::Status::kOk);
    const auto was_a = a;
    const auto was_b = b;
    std::memcpy(At(received.iova), At(sent.iova), 3 * bytes);
    for (auto* part : {&a, &b, &c}) {
      std::fill(part->begin(), part->end(), 0xee);
    }
    registrar_->FinishReceive(received.ticket, 2 * bytes);
    registrar_->FinishSend(sent.ticket);
    EXPECT_EQ(a, was_a);
    EXPECT_EQ(b, was_b);
    EXPECT_EQ(c, std::vector<uint8_t>(bytes, 0xee));
    EXPECT_EQ(Extra(), 0U);
  }
}

TEST_F(RegistrarTest, TooManySegmentsAreRefused) {
  const std::vector<Segment> segments(Registrar::kMaxSegments + 1);
  EXPECT_EQ(registrar_->PrepareSend(segments).error, Errno{EINVAL});
}

TEST_F(RegistrarTest, EmptyBufferNeedsNothing) {
  const Prepared none = registrar_->PrepareSend({});
  EXPECT_EQ(none.status, Prepared::Status::kOk);
  EXPECT_EQ(none.ticket, kNoTicket);
  const Segment empty{};
  EXPECT_EQ(registrar_->PrepareReceive({&empty, 1}).ticket, kNoTicket);
}

TEST_F(RegistrarTest, UsedUpSlabsFallBackToMapping) {
  std::vector<std::vector<uint8_t>> data(7, Pattern(100));
  std::vector<Ticket> tickets;
  for (auto& one : data) {
    const Prepared prepared = Send(one);
    ASSERT_EQ(prepared.status, Prepared::Status::kOk);
    tickets.push_back(prepared.ticket);
  }
  EXPECT_EQ(Extra(), 1U) << "six slabs, the seventh mapped";
  for (const Ticket ticket : tickets) {
    registrar_->FinishSend(ticket);
  }
  EXPECT_EQ(Extra(), 0U);
}

TEST_F(RegistrarTest, UsedUpTicketsAreFullUntilOneIsFinished) {
  auto data = Pattern(10);
  std::vector<Ticket> tickets;
  tickets.reserve(8);
  for (int i = 0; i < 8; ++i) {
    tickets.push_back(Send(data).ticket);
  }
  EXPECT_EQ(std::set<Ticket>(tickets.begin(), tickets.end()).size(), 8U);
  EXPECT_EQ(Send(data).status, Prepared::Status::kFull);
  registrar_->FinishSend(tickets[3]);
  EXPECT_EQ(Send(data).status, Prepared::Status::kOk);
}

TEST_F(RegistrarTest, RefusedMappingIsReportedAndHoldsNothing) {
  auto data = Pattern(100000);
  device_.map_error = ENOMEM;
  const Prepared prepared = Send(data);
  EXPECT_EQ(prepared.status, Prepared::Status::kFailed);
  EXPECT_EQ(prepared.error, Errno{ENOMEM});
  EXPECT_EQ(registrar_->free_tickets(), 8U);
}

TEST_F(RegistrarTest, FirstRefusalOfAMappingIsTold) {
  std::vector<size_t> told;
  Open({.tickets = 8,
        .slabs = {2, 2, 2},
        .on_refused = [&](Errno error, size_t bytes) {
          EXPECT_EQ(error, Errno{ENOSPC});
          told.push_back(bytes);
        }});
  auto data = Pattern(100000);
  EXPECT_EQ(Send(data).status, Prepared::Status::kOk);
  device_.map_error = ENOSPC;
  EXPECT_EQ(Send(data).error, Errno{ENOSPC});
  EXPECT_EQ(Receive(data).error, Errno{ENOSPC});
  EXPECT_EQ(told, std::vector<size_t>{data.size()});
}

TEST_F(RegistrarTest, LimitZeroMapsEverything) {
  Open({.copy_limit_bytes = 0, .slabs = {1, 1, 1}});
  auto data = Pattern(1);
  const Prepared prepared = Send(data);
  EXPECT_EQ(At(prepared.iova), data.data());
  registrar_->FinishSend(prepared.ticket);
}

TEST_F(RegistrarTest, OptionsOutOfRangeAreRefused) {
  EXPECT_EQ(ErrorOf(Registrar::Create(device_, {.copy_limit_bytes = 65537})),
            EINVAL);
  EXPECT_EQ(ErrorOf(Registrar::Create(device_, {.tickets = 0})), EINVAL);
  EXPECT_EQ(ErrorOf(Registrar::Create(device_, {.tickets = 65536})), EINVAL);
}

TEST_F(RegistrarTest, RandomOperationsKeepDataApartAndLeaveNothingBehind) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  struct Operation {
    Ticket ticket;
    Iova iova;
    bool receive;
    std::vector<uint8_t> data;
    std::vector<uint8_t> expected;
  };
  std::vector<std::unique_ptr<Operation>> running;
  for (int i = 0; i < 4000; ++i) {
    if (random() % 2 == 0) {
      auto op = std::make_unique<Operation>();
      const size_t limits[] = {256, 4096, 65536, 200000};
      op->data.resize(1 + random() % limits[random() % 4]);
      op->receive = random() % 2 == 0;
      std::memset(op->data.data(), static_cast<int>(random() % 256),
                  op->data.size());
      op->data.back() = static_cast<uint8_t>(random());
      op->expected = op->data;
      const Prepared prepared =
          op->receive ? Receive(op->data) : Send(op->data);
      if (prepared.status == Prepared::Status::kFull) {
        ASSERT_EQ(running.size(), 8U);
        continue;
      }
      ASSERT_EQ(prepared.status, Prepared::Status::kOk);
      op->ticket = prepared.ticket;
      op->iova = prepared.iova;
      running.push_back(std::move(op));
    } else if (!running.empty()) {
      const size_t index = random() % running.size();
      Operation& op = *running[index];
      ASSERT_TRUE(device_.IsMapped(ToInteger(op.iova), op.data.size()));
      if (op.receive) {
        std::memcpy(At(op.iova), op.expected.data(), op.expected.size());
        registrar_->FinishReceive(op.ticket, op.data.size());
        ASSERT_EQ(op.data, op.expected);
      } else {
        ASSERT_EQ(
            std::memcmp(At(op.iova), op.expected.data(), op.expected.size()),
            0);
        registrar_->FinishSend(op.ticket);
      }
      running.erase(running.begin() + static_cast<ptrdiff_t>(index));
    }
  }
  for (const auto& op : running) {
    registrar_->FinishSend(op->ticket);
  }
  EXPECT_EQ(Extra(), 0U);
  EXPECT_EQ(registrar_->free_tickets(), 8U);
  for (uint32_t i = 0; i < SlabPool::kSlabBytes.size(); ++i) {
    EXPECT_EQ(registrar_->slabs().free_count(i), 2U);
  }
  EXPECT_EQ(device_.bad_unmaps, 0U);
}

}  // namespace
}  // namespace heddle
