// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pins/host_memory.h"

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <cstring>

namespace heddle::sim::pins {
namespace {

constexpr uint8_t kPoison = 0xdb;
constexpr uint64_t kPage = 4096;

// A store of 8 bytes that makes everything before it visible first.
void ReleaseStore(uint8_t* target, const uint8_t* data) {
  uint64_t value = 0;
  std::memcpy(&value, data, sizeof(value));
  // NOLINTNEXTLINE: device memory is bytes; the caller checked the alignment.
  __atomic_store_n(reinterpret_cast<uint64_t*>(target), value,
                   __ATOMIC_RELEASE);
}

}  // namespace

uint64_t HostMemory::Burst::BeatAddress(uint32_t index) const {
  const uint64_t bytes = uint64_t{1} << size_log2;
  return index == 0 ? address : (address & ~(bytes - 1)) + index * bytes;
}

uint64_t HostMemory::Burst::End() const {
  return BeatAddress(beats);
}

HostMemory::HostMemory(const device::MemoryOptions& options)
    : options_(options), random_(options.seed), reads_(kAxiIds) {}

uint8_t* HostMemory::Pointer(uint64_t iova) const {
  if (!options_.arena.empty()) {
    return options_.arena.data() + (iova - options_.arena_iova);
  }
  // NOLINTNEXTLINE: an IOVA of an in-process device is an address.
  return reinterpret_cast<uint8_t*>(iova);
}

Result<Iova> HostMemory::Map(uint64_t iova, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool inside =
      options_.arena.empty() ||
      (iova >= options_.arena_iova && bytes <= options_.arena.size() &&
       iova - options_.arena_iova <= options_.arena.size() - bytes);
  if (!inside || !ranges_.Add(iova, bytes)) {
    return Errno{EINVAL};
  }
  return Iova{iova};
}

void HostMemory::FinishReads(uint64_t first, uint64_t last) {
  for (const uint16_t id : read_ids_) {
    for (Read& read : reads_[id]) {
      if (!read.sampled && read.burst.address <= last &&
          read.burst.End() > first) {
        SampleRead(read);
      }
    }
  }
}

void HostMemory::FinishWrites(uint64_t first, uint64_t last) {
  const bool written = std::any_of(
      writes_.begin(), writes_.end(), [first, last](const Write& write) {
        return write.complete && !write.committed &&
               write.burst.address <= last && write.burst.End() > first;
      });
  for (Write& write : writes_) {
    // All of them, in order: committing only those of the range could overtake
    // an earlier write of the same ID.
    if (written && write.complete && !write.committed) {
      Commit(write);
    }
  }
}

void HostMemory::Unmap(uint64_t iova, size_t bytes) {
  const std::lock_guard lock(mutex_);
  FinishReads(iova, iova + bytes - 1);
  FinishWrites(iova, iova + bytes - 1);
  ranges_.Remove(iova, bytes);
}

void HostMemory::Quiesce(const std::function<void()>& work) {
  const std::lock_guard lock(mutex_);
  FinishReads(0, UINT64_MAX);
  FinishWrites(0, UINT64_MAX);
  work();
}

std::span<uint8_t> HostMemory::Piece(uint64_t iova, uint64_t bytes,
                                     bool write) const {
  if (options_.mapped != nullptr) {
    return options_.mapped->Find(iova, bytes, write);
  }
  bool mapped = false;
  const uint64_t run = ranges_.Run(iova, bytes, &mapped);
  return mapped ? std::span(Pointer(iova), run) : std::span<uint8_t>();
}

bool HostMemory::Covers(uint64_t iova, uint64_t bytes) const {
  if (options_.mapped == nullptr) {
    return ranges_.Covers(iova, bytes);
  }
  for (uint64_t done = 0; done < bytes;) {
    const auto piece =
        options_.mapped->Find(iova + done, bytes - done, /*write=*/true);
    if (piece.empty()) {
      return false;
    }
    done += piece.size();
  }
  return true;
}

void HostMemory::Log(bool write, const Burst& burst, uint64_t address,
                     uint64_t bytes) {
  ++(write ? blocked_writes_ : blocked_reads_);
  if (options_.mapped != nullptr) {
    options_.mapped->NoteRefused(address, bytes, write);
  }
  if (log_.size() < kMaxLog) {
    log_.push_back({write, burst.user, address, bytes});
  }
}

std::vector<BlockedAccess> HostMemory::blocked() const {
  const std::lock_guard lock(mutex_);
  return log_;
}

void HostMemory::Break(const char* rule) {
  if (!broken_) {
    protocol_error_ = rule;
    broken_ = true;
  }
}

std::string HostMemory::protocol_error() const {
  const std::lock_guard lock(mutex_);
  return protocol_error_;
}

bool HostMemory::quiet() const {
  return read_count_ == 0 && writes_.empty() && !out_.r_valid && !out_.b_valid;
}

void HostMemory::CheckBurst(const Burst& burst) {
  const uint64_t last = burst.End() - 1;
  if ((uint32_t{1} << burst.size_log2) > options_.bus_bytes) {
    Break("AxSIZE is wider than the bus");
  } else if (burst.address / kPage != last / kPage) {
    Break("burst crosses a 4 KiB boundary");
  }
}

void HostMemory::AcceptRead(const AxiFromDevice& device) {
  Read read{.burst = {.id = device.ar_id,
                      .user = device.ar_user,
                      .size_log2 = device.ar_size,
                      .beats = device.ar_len + 1u,
                      .address = device.ar_address},
            .ready_cycle = cycle_ + options_.read_latency_cycles +
                           Delay(options_.read_jitter_cycles + 1),
            .sampled = false,
            .next_beat = 0,
            .beats = {}};
  CheckBurst(read.burst);
  if (device.ar_burst != 1) {
    Break("ARBURST is not INCR");
  }
  if (broken_) {
    return;
  }
  if (random_.Below(2) == 0) {
    SampleRead(read);
  }
  std::deque<Read>& queue = reads_[device.ar_id];
  if (queue.empty()) {
    read_ids_.push_back(device.ar_id);
  }
  queue.push_back(std::move(read));
  ++read_count_;
}

void HostMemory::SampleRead(Read& read) {
  read.sampled = true;
  read.beats.resize(read.burst.beats);
  for (uint32_t i = 0; i < read.burst.beats; ++i) {
    SampleReadBeat(read.burst, i, read.beats[i]);
  }
}

void HostMemory::SampleReadBeat(const Burst& burst, uint32_t index,
                                ReadBeat& beat) {
  const uint64_t start = burst.BeatAddress(index);
  const uint64_t end = burst.BeatAddress(index + 1);
  const uint64_t lane_base = start & ~uint64_t{options_.bus_bytes - 1};
  beat.response = AxiResponse::kSlvErr;
  beat.data.fill(kPoison);
  for (uint64_t at = start; at < end;) {
    const std::span<uint8_t> piece = Piece(at, end - at, /*write=*/false);
    if (!piece.empty()) {
      std::memcpy(&beat.data[at - lane_base], piece.data(), piece.size());
      beat.response = AxiResponse::kOkay;
    }
    at += std::max<uint64_t>(piece.size(), 1);
  }
  if (beat.response != AxiResponse::kOkay) {
    Log(false, burst, start, end - start);
  }
}

void HostMemory::AcceptWriteBeat(const AxiFromDevice& device) {
  Write& write = writes_[writes_.size() - open_writes_];
  WriteBeat& beat = write.beats.emplace_back();
  beat.strobe = device.w_strobe;
  std::memcpy(beat.data.data(), device.w_data, options_.bus_bytes);
  const bool last = write.beats.size() == write.burst.beats;
  if (last != device.w_last) {
    Break("WLAST does not agree with AWLEN");
    return;
  }
  if (last) {
    write.complete = true;
    write.commit_cycle = cycle_ + 1 + Delay(options_.write_delay_cycles);
    --open_writes_;
  }
}

void HostMemory::CommitBytes(uint64_t iova, const uint8_t* data,
                             uint64_t bytes) {
  const std::span<uint8_t> piece = Piece(iova, bytes, /*write=*/true);
  if (piece.size() < bytes) {  // Mapped in pieces that are not neighbours.
    CommitBytes(iova, data, piece.size());
    CommitBytes(iova + piece.size(), data + piece.size(), bytes - piece.size());
    return;
  }
  uint8_t* const target = piece.data();
  constexpr uint64_t kCell = 8;
  constexpr uint64_t kEntry = 64;
  const bool aligned = reinterpret_cast<uintptr_t>(target) % kCell == 0;
  const bool entry = bytes == kEntry && iova % kEntry == 0 && aligned;
  const bool cell = bytes == kCell && iova % kCell == 0 && aligned;
  if (entry || cell) {
    std::memcpy(target, data, bytes - kCell);
    ReleaseStore(target + bytes - kCell, data + bytes - kCell);
    ++visible_commits_;
  } else {
    std::memcpy(target, data, bytes);
  }
}

void HostMemory::Commit(Write& write) {
  struct Run {
    uint64_t iova;
    uint64_t offset;  // In `bytes`.
    uint64_t length;
  };
  std::vector<uint8_t> bytes;
  std::vector<Run> runs;
  bytes.reserve(uint64_t{options_.bus_bytes} * write.burst.beats);
  for (uint32_t i = 0; i < write.burst.beats; ++i) {
    const uint64_t start = write.burst.BeatAddress(i);
    const uint64_t lane_base = start & ~uint64_t{options_.bus_bytes - 1};
    const uint64_t first = start - lane_base;
    const uint64_t end = write.burst.BeatAddress(i + 1) - lane_base;
    for (uint64_t lane = 0; lane < options_.bus_bytes; ++lane) {
      if ((write.beats[i].strobe >> lane & 1) == 0) {
        continue;
      }
      if (lane < first || lane >= end) {
        Break("WSTRB enables a lane outside the beat");
        continue;
      }
      const uint64_t iova = lane_base + lane;
      if (runs.empty() || runs.back().iova + runs.back().length != iova) {
        runs.push_back({iova, bytes.size(), 0});
      }
      bytes.push_back(write.beats[i].data[lane]);
      ++runs.back().length;
    }
  }
  write.committed = true;
  write.response_cycle = cycle_ + 1 + Delay(options_.response_delay_cycles);
  write.response = AxiResponse::kOkay;
  for (const Run& run : runs) {
    if (!Covers(run.iova, run.length)) {
      Log(true, write.burst, run.iova, run.length);
      write.response = AxiResponse::kSlvErr;
      return;
    }
  }
  for (const Run& run : runs) {
    CommitBytes(run.iova, &bytes[run.offset], run.length);
  }
}

void HostMemory::CommitDue() {
  std::bitset<kAxiIds> waiting;  // IDs with an earlier write not committed.
  for (Write& write : writes_) {
    if (write.committed) {
      continue;
    }
    const bool held = waiting[write.burst.id] && !options_.ignore_write_order;
    if (write.complete && !held && write.commit_cycle <= cycle_) {
      Commit(write);
    } else {
      waiting.set(write.burst.id);
    }
  }
}

void HostMemory::ChooseRead() {
  out_.r_valid = false;
  if (read_ids_.empty() || random_.Chance(options_.stall)) {
    return;
  }
  const size_t offset = random_.Below(static_cast<uint32_t>(read_ids_.size()));
  for (size_t i = 0; i < read_ids_.size(); ++i) {
    const uint16_t id = read_ids_[(offset + i) % read_ids_.size()];
    Read& read = reads_[id].front();
    if (read.ready_cycle > cycle_) {
      continue;
    }
    if (!read.sampled) {
      SampleRead(read);
    }
    const ReadBeat& beat = read.beats[read.next_beat];
    out_.r_valid = true;
    out_.r_id = id;
    out_.r_response = beat.response;
    out_.r_data = beat.data;
    out_.r_last = read.next_beat + 1 == read.burst.beats;
    return;
  }
}

void HostMemory::ChooseResponse() {
  out_.b_valid = false;
  if (writes_.empty() || random_.Chance(options_.stall)) {
    return;
  }
  std::bitset<kAxiIds> waiting;  // Responses of one ID keep their order.
  for (const Write& write : writes_) {
    if (write.committed && write.response_cycle <= cycle_ &&
        !waiting[write.burst.id]) {
      out_.b_valid = true;
      out_.b_id = write.burst.id;
      out_.b_response = write.response;
      return;
    }
    waiting.set(write.burst.id);
  }
}

const AxiToDevice& HostMemory::Drive() {
  const std::lock_guard lock(mutex_);
  ++cycle_;
  if (!writes_.empty()) {
    CommitDue();
  }
  // An offered beat or response is held until it is taken.
  if (!out_.r_valid) {
    ChooseRead();
  }
  if (!out_.b_valid) {
    ChooseResponse();
  }
  out_.ar_ready = read_count_ < kMaxReads && !random_.Chance(options_.stall);
  out_.aw_ready =
      writes_.size() < kMaxWrites && !random_.Chance(options_.stall);
  out_.w_ready = open_writes_ > 0 && !random_.Chance(options_.stall);
  return out_;
}

void HostMemory::Sample(const AxiFromDevice& device) {
  const std::lock_guard lock(mutex_);
  if (out_.r_valid && device.r_ready) {
    std::deque<Read>& queue = reads_[out_.r_id];
    if (++queue.front().next_beat == queue.front().burst.beats) {
      queue.pop_front();
      --read_count_;
      if (queue.empty()) {
        std::erase(read_ids_, out_.r_id);
      }
    }
    out_.r_valid = false;
  }
  if (out_.b_valid && device.b_ready) {
    const auto done = std::find_if(
        writes_.begin(), writes_.end(),
        [this](const Write& write) { return write.burst.id == out_.b_id; });
    writes_.erase(done);
    out_.b_valid = false;
  }
  if (device.w_valid && out_.w_ready) {
    AcceptWriteBeat(device);
  }
  if (device.aw_valid && out_.aw_ready) {
    const Burst burst{.id = device.aw_id,
                      .user = device.aw_user,
                      .size_log2 = device.aw_size,
                      .beats = device.aw_len + 1u,
                      .address = device.aw_address};
    CheckBurst(burst);
    if (device.aw_burst != 1) {
      Break("AWBURST is not INCR");
    }
    writes_.push_back({.burst = burst,
                       .beats = {},
                       .commit_cycle = 0,
                       .complete = false,
                       .committed = false,
                       .response_cycle = 0,
                       .response = AxiResponse::kOkay});
    writes_.back().beats.reserve(burst.beats);
    ++open_writes_;
  }
  if (device.ar_valid && out_.ar_ready) {
    AcceptRead(device);
  }
}

}  // namespace heddle::sim::pins
