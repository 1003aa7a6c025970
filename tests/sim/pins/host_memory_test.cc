// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pins/host_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/pins/axi_master.h"

namespace heddle::sim::pins {
namespace {

constexpr uint64_t kBase = 0x10000;
constexpr size_t kArenaBytes = 65536;
constexpr uint64_t kSeeds = 30;

// Host memory over an arena that is wholly mapped, and a master on it.
struct Bench {
  explicit Bench(device::MemoryOptions options = {}, bool map = true)
      : arena(kArenaBytes), memory(Complete(options)), master(&memory, bus) {
    for (size_t i = 0; i < arena.size(); ++i) {
      arena[i] = static_cast<uint8_t>(i * 7 + i / 256);
    }
    if (map) {
      EXPECT_TRUE(memory.Map(kBase, kArenaBytes).ok());
    }
  }
  device::MemoryOptions Complete(device::MemoryOptions options) {
    bus = options.bus_bytes;
    options.arena = arena;
    options.arena_iova = kBase;
    return options;
  }
  uint8_t& At(uint64_t iova) { return arena[iova - kBase]; }

  uint32_t bus = 0;
  std::vector<uint8_t> arena;
  HostMemory memory;
  AxiMaster master;
};

device::MemoryOptions Seeded(uint64_t seed) {
  device::MemoryOptions options;
  options.seed = seed;
  return options;
}

TEST(HostMemoryTest, ReadReturnsAfterTheRoundTripWithTheData) {
  Bench bench;
  bench.master.Read(5, kBase + 256, 2);
  ASSERT_TRUE(bench.master.Finish());
  ASSERT_EQ(bench.master.beats.size(), 2u);
  EXPECT_GE(bench.master.cycles(), 150u);
  EXPECT_EQ(bench.master.beats[0].id, 5u);
  EXPECT_FALSE(bench.master.beats[0].last);
  EXPECT_TRUE(bench.master.beats[1].last);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(bench.master.beats[0].data[i], bench.At(kBase + 256 + i));
    EXPECT_EQ(bench.master.beats[1].data[i], bench.At(kBase + 320 + i));
  }
}

TEST(HostMemoryTest, ReadsOfOneIdKeepTheirOrderOthersMix) {
  uint32_t mixed = 0;
  uint32_t interleaved = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Bench bench(Seeded(seed));
    for (uint16_t i = 0; i < 12; ++i) {
      bench.master.Read(i % 3, kBase + 256u * i, 4);
    }
    ASSERT_TRUE(bench.master.Finish());
    ASSERT_EQ(bench.master.beats.size(), 48u);
    std::map<uint16_t, uint32_t> seen;  // Beats per ID.
    uint16_t last_id = 0;
    bool in_burst = false;
    for (const AxiMaster::Beat& beat : bench.master.beats) {
      const uint32_t n = seen[beat.id]++;
      const uint64_t address =
          kBase + 256u * (beat.id + 3 * (n / 4)) + 64 * (n % 4);
      ASSERT_EQ(beat.data[0], bench.At(address));
      ASSERT_EQ(beat.data[63], bench.At(address + 63));
      ASSERT_EQ(beat.last, n % 4 == 3);
      interleaved += in_burst && beat.id != last_id;
      mixed += beat.id < last_id;
      last_id = beat.id;
      in_burst = !beat.last;
    }
  }
  EXPECT_GT(mixed, kSeeds);
  EXPECT_GT(interleaved, kSeeds);
}

TEST(HostMemoryTest, ReadsAreServedOneBeatPerCycle) {
  device::MemoryOptions options;
  options.read_jitter_cycles = 0;
  Bench bench(options);
  constexpr uint32_t kReads = 200;
  for (uint32_t i = 0; i < kReads; ++i) {
    bench.master.Read(static_cast<uint16_t>(i % 64), kBase + 256u * (i % 200),
                      4);
  }
  ASSERT_TRUE(bench.master.Finish());
  EXPECT_LE(bench.master.cycles(), 150 + 4 * kReads + 10);
}

// Order in which single-byte writes became visible, cycle by cycle.
std::vector<uint32_t> CommitOrder(Bench& bench, uint32_t writes) {
  std::vector<uint32_t> order;
  std::set<uint32_t> seen;
  for (int cycle = 0; cycle < 5000 && seen.size() < writes; ++cycle) {
    bench.master.Cycle();
    for (uint32_t i = 0; i < writes; ++i) {
      if (bench.At(kBase + 64u * i) == 0xee && seen.insert(i).second) {
        order.push_back(i);
      }
    }
  }
  return order;
}

TEST(HostMemoryTest, WritesOfOneIdCommitInOrder) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Bench bench(Seeded(seed));
    for (uint32_t i = 0; i < 16; ++i) {
      bench.master.Write(7, kBase + 64u * i, {0xee});
    }
    const auto order = CommitOrder(bench, 16);
    ASSERT_EQ(order.size(), 16u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    ASSERT_TRUE(bench.master.Finish());
    EXPECT_EQ(bench.master.responses.size(), 16u);
  }
}

TEST(HostMemoryTest, WritesOfDifferentIdsCommitInAnyOrder) {
  uint32_t disordered = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Bench bench(Seeded(seed));
    for (uint32_t i = 0; i < 16; ++i) {
      bench.master.Write(static_cast<uint16_t>(i), kBase + 64u * i, {0xee});
    }
    const auto order = CommitOrder(bench, 16);
    ASSERT_EQ(order.size(), 16u);
    disordered += !std::is_sorted(order.begin(), order.end());
  }
  EXPECT_GT(disordered, kSeeds / 2);
}

// Payload, then a completion on the same ID, as the NIC does it. True if the
// completion was seen before the whole payload.
bool CompletionPrecedesPayload(const device::MemoryOptions& options) {
  Bench bench(options);
  std::fill(bench.arena.begin(), bench.arena.end(), 0);
  bench.master.Write(0, kBase, std::vector<uint8_t>(1024, 0x55));
  bench.master.Write(0, kBase + 4096, std::vector<uint8_t>(64, 0x66));
  for (int cycle = 0; cycle < 2000; ++cycle) {
    bench.master.Cycle();
    if (bench.At(kBase + 4096 + 63) == 0x66) {
      return std::any_of(bench.arena.begin(), bench.arena.begin() + 1024,
                         [](uint8_t byte) { return byte != 0x55; });
    }
  }
  ADD_FAILURE() << "no completion";
  return false;
}

TEST(HostMemoryTest, CompletionNeverPrecedesItsPayload) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_FALSE(CompletionPrecedesPayload(Seeded(seed))) << "seed " << seed;
  }
}

TEST(HostMemoryTest, CompletionPrecedesItsPayloadWhenWriteOrderIsBroken) {
  uint32_t caught = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    device::MemoryOptions options = Seeded(seed);
    options.ignore_write_order = true;
    caught += CompletionPrecedesPayload(options);
  }
  EXPECT_GT(caught, kSeeds / 4);
}

TEST(HostMemoryTest, PostedWritesAndReadsPassEachOther) {
  uint32_t read_passed = 0;   // Old data though the write was offered first.
  uint32_t write_passed = 0;  // New data though the read was accepted first.
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    {
      Bench bench(Seeded(seed));
      bench.At(kBase) = 0;
      bench.master.Write(1, kBase, {0xee});
      bench.master.Read(1, kBase, 1);
      ASSERT_TRUE(bench.master.Finish());
      read_passed += bench.master.beats[0].data[0] == 0;
    }
    Bench bench(Seeded(seed));
    bench.At(kBase) = 0;
    bench.master.Read(1, kBase, 1);
    bench.master.Cycle();
    bench.master.Cycle();
    bench.master.Write(1, kBase, {0xee});
    ASSERT_TRUE(bench.master.Finish());
    write_passed += bench.master.beats[0].data[0] == 0xee;
  }
  EXPECT_GT(read_passed, 0u);
  EXPECT_GT(write_passed, 0u);
}

TEST(HostMemoryTest, SameSeedSameBehaviour) {
  const auto run = [](uint64_t seed) {
    Bench bench(Seeded(seed));
    for (uint16_t i = 0; i < 20; ++i) {
      bench.master.Read(i, kBase + 64u * i, 1);
      bench.master.Write(i, kBase + 8192 + 64u * i, {1, 2, 3});
    }
    EXPECT_TRUE(bench.master.Finish());
    std::vector<uint16_t> ids;
    for (const auto& beat : bench.master.beats) {
      ids.push_back(beat.id);
    }
    for (const auto& response : bench.master.responses) {
      ids.push_back(response.id);
    }
    return ids;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

TEST(HostMemoryTest, ReadOutsideIsAnsweredWithAnErrorAndLogged) {
  Bench bench({}, false);
  ASSERT_TRUE(bench.memory.Map(kBase, 64).ok());
  bench.master.Read(2, kBase, 2);
  ASSERT_TRUE(bench.master.Finish());
  EXPECT_EQ(bench.master.beats[0].response, AxiResponse::kOkay);
  EXPECT_EQ(bench.master.beats[1].response, AxiResponse::kSlvErr);
  EXPECT_EQ(bench.memory.blocked_reads(), 1u);
  EXPECT_EQ(bench.memory.blocked_writes(), 0u);
  ASSERT_EQ(bench.memory.blocked().size(), 1u);
  EXPECT_EQ(bench.memory.blocked()[0].address, kBase + 64);
  EXPECT_FALSE(bench.memory.blocked()[0].write);
}

TEST(HostMemoryTest, UnmappedBytesBesideMappedOnesReadAsPoison) {
  Bench bench({}, false);
  ASSERT_TRUE(bench.memory.Map(kBase + 10, 4).ok());
  bench.master.Read(2, kBase, 1);
  ASSERT_TRUE(bench.master.Finish());
  EXPECT_EQ(bench.memory.blocked_reads(), 0u);
  const auto& data = bench.master.beats[0].data;
  for (size_t i = 0; i < 64; ++i) {
    const bool mapped = i >= 10 && i < 14;
    EXPECT_EQ(data[i], mapped ? bench.At(kBase + i) : 0xdb) << i;
  }
}

TEST(HostMemoryTest, WriteWithOneByteOutsideIsRefusedWhole) {
  Bench bench({}, false);
  ASSERT_TRUE(bench.memory.Map(kBase, 100).ok());
  const std::vector<uint8_t> before = bench.arena;
  bench.master.Write(2, kBase, std::vector<uint8_t>(101, 0xee));
  ASSERT_TRUE(bench.master.Finish());
  EXPECT_EQ(bench.arena, before);
  EXPECT_EQ(bench.master.responses.at(0).response, AxiResponse::kSlvErr);
  EXPECT_EQ(bench.memory.blocked_writes(), 1u);
}

TEST(HostMemoryTest, DisabledBytesAreNoAccess) {
  Bench bench({}, false);
  ASSERT_TRUE(bench.memory.Map(kBase + 3, 70).ok());
  const uint8_t outside = bench.At(kBase + 2);
  bench.master.Write(2, kBase + 3, std::vector<uint8_t>(70, 0xee));
  ASSERT_TRUE(bench.master.Finish());
  EXPECT_EQ(bench.master.responses.at(0).response, AxiResponse::kOkay);
  EXPECT_EQ(bench.memory.blocked_writes(), 0u);
  EXPECT_EQ(bench.At(kBase + 2), outside);
  EXPECT_EQ(bench.At(kBase + 3), 0xee);
  EXPECT_EQ(bench.At(kBase + 72), 0xee);
}

TEST(HostMemoryTest, AfterUnmapNothingTouchesTheRange) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Bench bench(Seeded(seed));
    ASSERT_TRUE(bench.memory.Map(kBase, 128).ok());
    bench.master.Write(1, kBase, std::vector<uint8_t>(64, 0xee));
    bench.master.Read(1, kBase + 64, 1);
    const uint8_t old = bench.At(kBase + 64);
    for (int i = 0; i < 4; ++i) {
      bench.master.Cycle();  // Both are accepted, neither is done.
    }
    bench.memory.Unmap(kBase, kArenaBytes);
    EXPECT_EQ(bench.At(kBase), 0xee) << "accepted before, so done now";
    bench.memory.Unmap(kBase, 128);
    // The memory goes to somebody else.
    std::fill(bench.arena.begin(), bench.arena.end(), 0x11);
    bench.master.Write(1, kBase, std::vector<uint8_t>(64, 0xcc));
    ASSERT_TRUE(bench.master.Finish());
    EXPECT_EQ(bench.master.beats.at(0).data[0], old);
    EXPECT_EQ(bench.At(kBase), 0x11);
    EXPECT_EQ(bench.memory.blocked_writes(), 1u);
  }
}

TEST(HostMemoryTest, UnmapLeavesWhatAnotherRangeHolds) {
  Bench bench({}, false);
  ASSERT_TRUE(bench.memory.Map(kBase, 128).ok());
  ASSERT_TRUE(bench.memory.Map(kBase + 64, 128).ok());
  bench.memory.Unmap(kBase, 128);
  bench.master.Write(1, kBase + 64, std::vector<uint8_t>(64, 0xee));
  ASSERT_TRUE(bench.master.Finish());
  EXPECT_EQ(bench.At(kBase + 64), 0xee);
}

TEST(HostMemoryTest, BadRangesAreRefused) {
  Bench bench({}, false);
  EXPECT_FALSE(bench.memory.Map(kBase, 0).ok());
  EXPECT_FALSE(bench.memory.Map(UINT64_MAX - 5, 100).ok());
  EXPECT_FALSE(bench.memory.Map(kBase + 1, kArenaBytes).ok());
}

TEST(HostMemoryTest, BurstAcrossAPageBreaksTheModel) {
  Bench bench;
  bench.master.Read(1, kBase + 4096 - 64, 2);
  for (int i = 0; i < 5; ++i) {
    bench.master.Cycle();
  }
  EXPECT_TRUE(bench.memory.broken());
  EXPECT_NE(bench.memory.protocol_error().find("4 KiB"), std::string::npos);
}

TEST(HostMemoryTest, StallsDelayButLoseNothing) {
  for (const uint32_t bus : {8u, 16u, 32u, 64u}) {
    SCOPED_TRACE(bus);
    device::MemoryOptions options;
    options.bus_bytes = bus;
    options.stall = 0.5;
    Bench bench(options);
    std::vector<uint8_t> bytes(1000);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<uint8_t>(i);
    }
    bench.master.Write(1, kBase + 4096 + 13, bytes);
    bench.master.Read(2, kBase + 8192, 16);
    ASSERT_TRUE(bench.master.Finish());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(),
                           bench.arena.begin() + 4096 + 13));
    EXPECT_EQ(bench.master.beats.size(), 16u);
  }
}

// Neighbours as the device sees them, in two places that are none; the second
// may only be read.
class TwoPieces final : public device::MappedMemory {
 public:
  std::span<uint8_t> Find(uint64_t iova, uint64_t bytes,
                          bool write) const override {
    if (gone || iova < kBase || iova >= kBase + 2 * kPiece) {
      return {};
    }
    const uint64_t at = (iova - kBase) % kPiece;
    const size_t which = (iova - kBase) / kPiece;
    if (write && which == 1 && !writable) {
      return {};
    }
    return std::span(memory[which]).subspan(at, std::min(bytes, kPiece - at));
  }
  void NoteRefused(uint64_t iova, uint64_t bytes, bool write) override {
    refused.push_back({write, 0, iova, bytes});
  }

  static constexpr uint64_t kPiece = 96;
  mutable std::array<std::array<uint8_t, 200>, 2> memory{};
  bool writable = true;
  bool gone = false;
  std::vector<BlockedAccess> refused;
};

TEST(HostMemoryTest, MappedMemoryIsReachedWhereItIs) {
  TwoPieces pieces;
  device::MemoryOptions options;
  options.mapped = &pieces;
  Bench bench(options, false);
  std::vector<uint8_t> data(128);
  std::iota(data.begin(), data.end(), uint8_t{1});
  bench.master.Write(1, kBase + 32, data);
  ASSERT_TRUE(bench.master.Finish());
  EXPECT_EQ(bench.master.responses.at(0).response, AxiResponse::kOkay);
  for (size_t i = 0; i < data.size(); ++i) {
    const size_t at = 32 + i;
    EXPECT_EQ(pieces.memory[at / TwoPieces::kPiece][at % TwoPieces::kPiece],
              data[i]);
  }
  bench.master.Read(1, kBase + 64, 1);
  ASSERT_TRUE(bench.master.Finish());
  EXPECT_EQ(bench.master.beats.at(0).data[0], data[32]);
  EXPECT_EQ(bench.master.beats.at(0).data[63], data[95]);
  // One byte of it cannot be written: none is.
  pieces.writable = false;
  bench.master.Write(1, kBase + 40, std::vector<uint8_t>(57, 0xee));
  ASSERT_TRUE(bench.master.Finish());
  EXPECT_EQ(bench.master.responses.at(1).response, AxiResponse::kSlvErr);
  EXPECT_EQ(pieces.memory[0][40], data[8]);
  ASSERT_EQ(pieces.refused.size(), 1u);
  EXPECT_TRUE(pieces.refused[0].write);
  EXPECT_EQ(pieces.refused[0].address, kBase + 40);
}

TEST(HostMemoryTest, WhatWasAcceptedIsDoneBeforeMappedMemoryGoes) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    TwoPieces pieces;
    device::MemoryOptions options = Seeded(seed);
    options.mapped = &pieces;
    Bench bench(options, false);
    pieces.memory[0][64] = 0x33;
    bench.master.Write(1, kBase, std::vector<uint8_t>(64, 0xee));
    bench.master.Read(1, kBase + 64, 1);
    for (int i = 0; i < 4; ++i) {
      bench.master.Cycle();  // Both are accepted, neither is done.
    }
    bench.memory.Quiesce([&] {
      EXPECT_EQ(pieces.memory[0][0], 0xee);
      pieces.memory[0].fill(0);
      pieces.gone = true;
    });
    ASSERT_TRUE(bench.master.Finish());
    EXPECT_EQ(bench.master.beats.at(0).data[0], 0x33);
    EXPECT_EQ(pieces.memory[0][0], 0);
  }
}

TEST(HostMemoryTest, InTheProcessAnIovaIsAnAddress) {
  alignas(64) std::array<uint8_t, 128> memory_of_test{};
  HostMemory memory(device::MemoryOptions{});
  // NOLINTNEXTLINE: as a device of the process sees it.
  const auto iova = reinterpret_cast<uint64_t>(memory_of_test.data());
  ASSERT_TRUE(memory.Map(iova, memory_of_test.size()).ok());
  AxiMaster master(&memory, 64);
  master.Write(1, iova + 64, std::vector<uint8_t>(64, 0xee));
  ASSERT_TRUE(master.Finish());
  EXPECT_EQ(memory_of_test[63], 0);
  EXPECT_EQ(memory_of_test[64], 0xee);
  EXPECT_EQ(memory_of_test[127], 0xee);
  EXPECT_EQ(memory.visible_commits(), 1u);
}

}  // namespace
}  // namespace heddle::sim::pins
