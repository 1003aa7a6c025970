// SPDX-License-Identifier: Apache-2.0
// Memory that comes and goes at the same addresses while messages are under way
// to and from its neighbours, and to itself: runs in the guest. The server
// counts what the functions were refused; the host looks at that.
#include <rdma/fi_ext_heddle.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/host/ofi/rma_fixture.h"

namespace heddle::test {
namespace {

constexpr size_t kAreaBytes = 131072;
constexpr size_t kSlots = 4;
constexpr uint8_t kUntouched = 0x77;

int Rounds() {
  const char* text = std::getenv("HEDDLE_TEST_ROUNDS");
  return text == nullptr ? 1000 : std::atoi(text);
}

// Pages that keep their address when they are replaced by others.
class Area {
 public:
  Area() { Map(); }
  ~Area() { munmap(address_, kAreaBytes); }
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;

  uint8_t* data() const { return address_; }
  void Replace() {
    EXPECT_EQ(munmap(address_, kAreaBytes), 0);
    Map();
  }

 private:
  void Map() {
    const int fixed = address_ == nullptr ? 0 : MAP_FIXED_NOREPLACE;
    void* const got = mmap(address_, kAreaBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    ASSERT_NE(got, MAP_FAILED);
    ASSERT_TRUE(address_ == nullptr || got == address_);
    address_ = static_cast<uint8_t*>(got);
  }

  uint8_t* address_ = nullptr;
};

// What writes and a message use: the source of all, a target for each kind.
struct Slot {
  Area source;
  Area target;
  Area inbox;
  std::unique_ptr<Region> region;
  size_t offset = 0;
  std::vector<uint8_t> data;
  int pending = 0;  // Completions.
  bool written = false;
  bool closed = false;  // The region, before the write was complete.
};

class GuestRemapTest : public DeliveredTest {
 protected:
  // New pages at the old addresses; a write to one, a message to another, from
  // the third.
  void Start(Slot& slot, int round, bool is_long) {
    constexpr size_t kMost = 9000;  // Three or four pages.
    constexpr size_t kLong = 100000;
    const auto n = static_cast<size_t>(round);
    slot.offset = n * 67 % 4096;
    slot.data = Pattern(is_long ? kLong : 1 + n * 131 % kMost,
                        static_cast<uint32_t>(round));
    slot.source.Replace();
    slot.target.Replace();
    slot.inbox.Replace();
    uint8_t* const source = slot.source.data() + slot.offset;
    uint8_t* const target = slot.target.data() + slot.offset;
    const size_t bytes = slot.data.size();
    std::copy(slot.data.begin(), slot.data.end(), source);
    slot.region = std::make_unique<Region>(*b, target, bytes);
    slot.written = false;
    ASSERT_EQ(fi_recv(b->ep, slot.inbox.data() + slot.offset, bytes, nullptr,
                      FI_ADDR_UNSPEC, &slot),
              0);
    const int writes = is_long ? 4 : 1;
    for (int i = 0; i < writes; ++i) {
      ASSERT_EQ(fi_write(a->ep, source, bytes, nullptr, to_b, 0,
                         slot.region->key(), &slot),
                0);
    }
    ASSERT_EQ(fi_send(a->ep, source, bytes, nullptr, to_b, &slot), 0);
    slot.pending = writes + 2;
  }

  // Takes a write's target away under it; what is there next is not for it.
  void CloseUnderWay(Slot& slot) {
    slot.region.reset();
    slot.closed = true;
    slot.target.Replace();
    std::fill_n(slot.target.data(), kAreaBytes, kUntouched);
  }

  void TakeOne(fid_cq* cq) {
    const auto done = Take(cq);
    ASSERT_TRUE(done.has_value());
    const bool failed = done->error;
    auto* const slot = static_cast<Slot*>(failed ? done->failure.op_context
                                                 : done->entry.op_context);
    --slot->pending;
    if (!failed) {
      slot->written |= (done->entry.flags & FI_WRITE) != 0;
      return;
    }
    ASSERT_TRUE(slot->closed) << fi_strerror(done->failure.err);
    ASSERT_TRUE((done->failure.flags & FI_WRITE) != 0);
    ASSERT_EQ(done->failure.err, FI_EKEYREJECTED);
    ++refused_;
  }

  void Finish(Slot& slot) {
    // The last is the receive: they are received in the order of the slots.
    while (slot.pending != 0 && !HasFatalFailure()) {
      TakeOne(slot.pending == 1 ? b->rx_cq : a->tx_cq);
    }
  }

  void Check(Slot& slot) {
    const uint8_t* const inbox = slot.inbox.data() + slot.offset;
    ASSERT_TRUE(std::equal(slot.data.begin(), slot.data.end(), inbox));
    const uint8_t* const target = slot.target.data();
    if (slot.closed) {
      ASSERT_TRUE(std::all_of(target, target + kAreaBytes, [](uint8_t byte) {
        return byte == kUntouched;
      })) << "written to after its region was closed";
      slot.closed = false;
      return;
    }
    ASSERT_TRUE(slot.written);
    ASSERT_TRUE(
        std::equal(slot.data.begin(), slot.data.end(), target + slot.offset));
    slot.region.reset();
  }

  int refused_ = 0;
};

TEST_F(GuestRemapTest, MemoryComesAndGoesUnderTraffic) {
  constexpr int kCloseEach = 16;
  std::array<Slot, kSlots> slots;
  const int rounds = Rounds();
  int closed = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Slot& slot = slots[static_cast<size_t>(round) % kSlots];
    if (round >= static_cast<int>(kSlots)) {
      ASSERT_NO_FATAL_FAILURE(Finish(slot));
      ASSERT_NO_FATAL_FAILURE(Check(slot));
    }
    const bool closes = round % kCloseEach == 0;
    ASSERT_NO_FATAL_FAILURE(Start(slot, round, /*is_long=*/closes));
    if (closes) {
      CloseUnderWay(slot);
      ++closed;
    }
  }
  for (Slot& slot : slots) {
    ASSERT_NO_FATAL_FAILURE(Finish(slot));
    ASSERT_NO_FATAL_FAILURE(Check(slot));
  }
  std::printf(
      "guest: %d buffers of each kind came and went, %d regions were closed "
      "under way, %d writes found theirs closed\n",
      rounds, closed, refused_);
}

// Of the kernel's limit of mappings, which each function takes when it is
// opened.
TEST_F(PairTest, RefusedMappingIsLoggedOnceWithItsCure) {
  std::ofstream("/sys/module/vfio_iommu_type1/parameters/dma_entry_limit")
      << 200;
  ASSERT_NO_FATAL_FAILURE(Open());
  testing::internal::CaptureStderr();
  std::vector<uint8_t> room(kAreaBytes);
  ssize_t result = 0;
  for (int i = 0; i < 1000 && result == 0; ++i) {
    result = fi_recv(b->ep, room.data(), room.size(), nullptr, FI_ADDR_UNSPEC,
                     nullptr);
  }
  const ssize_t again = fi_recv(b->ep, room.data(), room.size(), nullptr,
                                FI_ADDR_UNSPEC, nullptr);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result, -FI_ENOSPC);
  EXPECT_EQ(again, -FI_ENOSPC);
  const size_t cure = log.find("dma_entry_limit");
  ASSERT_NE(cure, std::string::npos) << log;
  EXPECT_EQ(log.find("dma_entry_limit", cure + 1), std::string::npos) << log;
  EXPECT_NE(log.find(b->info->domain_attr->name), std::string::npos) << log;
}

}  // namespace
}  // namespace heddle::test
