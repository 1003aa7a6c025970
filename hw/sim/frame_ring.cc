// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/frame_ring.h"

#include <algorithm>
#include <cstring>

namespace heddle::sim {
namespace {

constexpr uint64_t kRecordAlign = 16;

// Ahead of each frame.
struct Record {
  uint32_t bytes;
  uint32_t magic;
  uint64_t position;  // Of the record: a stale one is recognised.
};
static_assert(sizeof(Record) == kRecordAlign);
constexpr uint32_t kRecordMagic = 0x4d415246;

uint64_t RecordBytes(uint64_t frame_bytes) {
  return sizeof(Record) +
         (frame_bytes + kRecordAlign - 1) / kRecordAlign * kRecordAlign;
}

void CopyIn(FrameRingMemory* memory, uint64_t position,
            std::span<const uint8_t> bytes) {
  const uint64_t offset = position % kFrameRingBytes;
  const uint64_t first = std::min(bytes.size(), kFrameRingBytes - offset);
  std::memcpy(&memory->data[offset], bytes.data(), first);
  std::memcpy(memory->data.data(), bytes.data() + first, bytes.size() - first);
}

void CopyOut(const FrameRingMemory* memory, uint64_t position,
             std::span<uint8_t> bytes) {
  const uint64_t offset = position % kFrameRingBytes;
  const uint64_t first = std::min(bytes.size(), kFrameRingBytes - offset);
  std::memcpy(bytes.data(), &memory->data[offset], first);
  std::memcpy(bytes.data() + first, memory->data.data(), bytes.size() - first);
}

}  // namespace

FrameRingProducer::FrameRingProducer(FrameRingMemory* memory)
    : memory_(memory), tail_(memory->tail.load(std::memory_order_acquire)) {}

FrameRingProducer::Outcome FrameRingProducer::Push(
    std::span<const uint8_t> frame) {
  const uint64_t need = RecordBytes(frame.size());
  const uint64_t used = tail_ - memory_->head.load(std::memory_order_acquire);
  if (used > kFrameRingBytes || tail_ % kRecordAlign != 0) {
    return Outcome::kCorrupt;
  }
  if (kFrameRingBytes - used < need) {
    return Outcome::kFull;
  }
  const Record record{static_cast<uint32_t>(frame.size()), kRecordMagic, tail_};
  std::array<uint8_t, sizeof(Record)> bytes{};
  std::memcpy(bytes.data(), &record, sizeof(record));
  CopyIn(memory_, tail_, bytes);
  CopyIn(memory_, tail_ + sizeof(Record), frame);
  tail_ += need;
  memory_->tail.store(tail_, std::memory_order_release);
  return Outcome::kSent;
}

FrameRingConsumer::FrameRingConsumer(FrameRingMemory* memory)
    : memory_(memory), head_(memory->head.load(std::memory_order_acquire)) {}

void FrameRingConsumer::Discard(FrameRingMemory* memory) {
  memory->head.store(memory->tail.load(std::memory_order_acquire),
                     std::memory_order_release);
}

FrameRingConsumer::Outcome FrameRingConsumer::Pop(Frame* frame) {
  if (corrupt_) {
    return Outcome::kCorrupt;
  }
  const uint64_t filled = memory_->tail.load(std::memory_order_acquire) - head_;
  if (filled == 0) {
    return Outcome::kEmpty;
  }
  Record record{};
  std::array<uint8_t, sizeof(Record)> bytes{};
  CopyOut(memory_, head_, bytes);
  std::memcpy(&record, bytes.data(), sizeof(record));
  corrupt_ = filled > kFrameRingBytes || filled < sizeof(Record) ||
             head_ % kRecordAlign != 0 || record.magic != kRecordMagic ||
             record.position != head_ || record.bytes < kMinFrameBytes ||
             record.bytes > kMaxWireFrameBytes ||
             RecordBytes(record.bytes) > filled;
  if (corrupt_) {
    return Outcome::kCorrupt;
  }
  frame->resize(record.bytes);
  CopyOut(memory_, head_ + sizeof(Record), *frame);
  head_ += RecordBytes(record.bytes);
  memory_->head.store(head_, std::memory_order_seq_cst);
  return Outcome::kFrame;
}

}  // namespace heddle::sim
