// SPDX-License-Identifier: Apache-2.0
// Host memory behind the NIC's AXI4 master: adversarial in order and time,
// checked against the mapped ranges.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "driver/device.h"
#include "driver/result.h"
#include "hw/sim/base/random.h"
#include "hw/sim/base/range_table.h"
#include "hw/sim/device/memory_options.h"

namespace heddle::sim::pins {

inline constexpr uint32_t kAxiIds = 512;
inline constexpr uint32_t kMaxBusBytes = 64;

// Responses of AXI4.
enum class AxiResponse : uint8_t { kOkay = 0, kSlvErr = 2 };

// What the NIC drives, one clock cycle.
struct AxiFromDevice {
  bool ar_valid = false;
  bool aw_valid = false;
  bool w_valid = false;
  bool w_last = false;
  bool r_ready = false;
  bool b_ready = false;
  uint16_t ar_id = 0;
  uint16_t aw_id = 0;
  uint8_t ar_len = 0;
  uint8_t aw_len = 0;
  uint8_t ar_size = 0;
  uint8_t aw_size = 0;
  uint8_t ar_burst = 1;
  uint8_t aw_burst = 1;
  uint8_t ar_user = 0;
  uint8_t aw_user = 0;
  uint64_t ar_address = 0;
  uint64_t aw_address = 0;
  uint64_t w_strobe = 0;
  const uint8_t* w_data = nullptr;  // `bus_bytes` bytes, lane 0 first.
};

// What host memory drives, one clock cycle.
struct AxiToDevice {
  bool ar_ready = false;
  bool aw_ready = false;
  bool w_ready = false;
  bool r_valid = false;
  bool r_last = false;
  bool b_valid = false;
  AxiResponse r_response = AxiResponse::kOkay;
  AxiResponse b_response = AxiResponse::kOkay;
  uint16_t r_id = 0;
  uint16_t b_id = 0;
  std::array<uint8_t, kMaxBusBytes> r_data{};
};

// One access that was refused.
struct BlockedAccess {
  bool write;
  uint8_t owner;  // AxUSER.
  uint64_t address;
  uint64_t bytes;
};

// AXI4 slave over the memory of this process, or over an arena.
//
// Order: beats of one read ID return in order, beats of different IDs in any
// order, interleaved. Writes of one ID commit in order, of different IDs in any
// order. A read samples memory either when it is accepted or when its first
// beat returns, so that posted writes pass it and it passes posted writes.
// Bytes of a commit become visible in any order, except that the last 8 bytes
// of an aligned 64-byte write are stored last, with release order (and an
// aligned 8-byte write is one such store).
//
// Bounds: a read beat with no mapped byte in it is answered SLVERR; unmapped
// bytes beside mapped ones read as poison, because a bus has no strobes for
// reads. A write with an enabled byte outside is refused as a whole, SLVERR.
// Both are counted and logged.
//
// Thread safety: `Map`, `Unmap` and the counters from any thread; `Drive` and
// `Sample` from the thread that steps the model.
class HostMemory {
 public:
  explicit HostMemory(const device::MemoryOptions& options);

  // Errors: EINVAL for an empty or wrapping range.
  Result<Iova> Map(uint64_t iova, size_t bytes);

  // Ends one mapping of exactly this range (otherwise does nothing). Accesses
  // accepted before are done when it returns; later ones are refused unless
  // another range holds their bytes.
  void Unmap(uint64_t iova, size_t bytes);

  // Calls `work` when all accesses accepted before are done, while none is
  // accepted.
  void Quiesce(const std::function<void()>& work);

  // Once per clock cycle: `Drive` before the device's outputs settle, then
  // `Sample` with the settled outputs.
  const AxiToDevice& Drive();
  void Sample(const AxiFromDevice& device);

  // True if nothing is queued or under way.
  bool quiet() const;
  // Writes of completion size or smaller committed so far: whoever polls
  // memory may find something new.
  uint64_t visible_commits() const { return visible_commits_; }
  uint64_t blocked_reads() const { return blocked_reads_; }
  uint64_t blocked_writes() const { return blocked_writes_; }
  // The first `kMaxLog` refused accesses.
  std::vector<BlockedAccess> blocked() const;
  // True once the device broke a rule of AXI4; `protocol_error` says which.
  bool broken() const { return broken_; }
  std::string protocol_error() const;

  static constexpr size_t kMaxLog = 64;
  static constexpr size_t kMaxReads = 512;
  static constexpr size_t kMaxWrites = 512;

 private:
  struct Burst {
    uint16_t id;
    uint8_t user;
    uint8_t size_log2;
    uint32_t beats;
    uint64_t address;

    // Address of the first byte of beat `index`.
    uint64_t BeatAddress(uint32_t index) const;
    uint64_t End() const;
  };
  struct ReadBeat {
    AxiResponse response;
    std::array<uint8_t, kMaxBusBytes> data;
  };
  struct Read {
    Burst burst;
    uint64_t ready_cycle;
    bool sampled;
    uint32_t next_beat;
    std::vector<ReadBeat> beats;
  };
  struct WriteBeat {
    uint64_t strobe;
    std::array<uint8_t, kMaxBusBytes> data;
  };
  struct Write {
    Burst burst;
    std::vector<WriteBeat> beats;
    uint64_t commit_cycle;
    bool complete;  // All beats arrived.
    bool committed;
    uint64_t response_cycle;
    AxiResponse response;
  };

  uint8_t* Pointer(uint64_t iova) const;
  // As `MappedMemory::Find`.
  std::span<uint8_t> Piece(uint64_t iova, uint64_t bytes, bool write) const;
  bool Covers(uint64_t iova, uint64_t bytes) const;
  void FinishReads(uint64_t first, uint64_t last);
  void FinishWrites(uint64_t first, uint64_t last);
  void CheckBurst(const Burst& burst);
  void AcceptRead(const AxiFromDevice& device);
  void AcceptWriteBeat(const AxiFromDevice& device);
  void SampleRead(Read& read);
  void SampleReadBeat(const Burst& burst, uint32_t index, ReadBeat& beat);
  void Commit(Write& write);
  void CommitBytes(uint64_t iova, const uint8_t* data, uint64_t bytes);
  void CommitDue();
  void ChooseRead();
  void ChooseResponse();
  void Break(const char* rule);
  void Log(bool write, const Burst& burst, uint64_t address, uint64_t bytes);

  uint32_t Delay(uint32_t below) {
    return options_.steady ? below / 2 : random_.Below(below);
  }

  const device::MemoryOptions options_;
  mutable std::mutex mutex_;
  base::Random random_;
  uint64_t cycle_ = 0;
  AxiToDevice out_;
  std::vector<std::deque<Read>> reads_;  // By ID.
  std::vector<uint16_t> read_ids_;       // IDs with reads, in no order.
  size_t read_count_ = 0;
  std::deque<Write> writes_;  // In order of acceptance.
  size_t open_writes_ = 0;    // At the back of `writes_`, data still missing.
  base::RangeTable ranges_;
  std::vector<BlockedAccess> log_;
  std::string protocol_error_;
  std::atomic<bool> broken_ = false;
  std::atomic<uint64_t> visible_commits_ = 0;
  std::atomic<uint64_t> blocked_reads_ = 0;
  std::atomic<uint64_t> blocked_writes_ = 0;
};

}  // namespace heddle::sim::pins
