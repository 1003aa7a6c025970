// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire/frame_ring.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "hw/sim/base/stream_lines.h"
#include "hw/sim/wire/ring_order.h"

namespace heddle::sim::wire {
namespace {

// Frames share no line, so that one can be streamed to whole lines.
constexpr uint64_t kRecordAlign = base::kLineBytes;

// Ahead of each frame.
struct Record {
  uint32_t bytes;
  uint16_t magic;
  uint16_t flags;
  uint64_t position;  // Of the record: a stale one is recognised.
};
static_assert(sizeof(Record) == 16);
constexpr uint16_t kRecordMagic = 0x5246;
constexpr uint16_t kBadFcs = 1;
constexpr uint16_t kUnchecked = 2;
constexpr uint16_t kStreamed = 4;

// The least that is streamed: the consumer reads a shorter frame sooner from
// the producer's cache.
constexpr size_t kStreamedBytes = 4096;

// While one long frame is processed, memory delivers two.
constexpr uint64_t kFetchedBytes = 8192;

uint64_t RecordBytes(uint64_t frame_bytes) {
  return (sizeof(Record) + frame_bytes + kRecordAlign - 1) / kRecordAlign *
         kRecordAlign;
}

void CopyIn(FrameRingMemory* memory, uint64_t position,
            std::span<const uint8_t> bytes) {
  const uint64_t offset = position % kFrameRingBytes;
  const uint64_t first = std::min(bytes.size(), kFrameRingBytes - offset);
  std::memcpy(&memory->data[offset], bytes.data(), first);
  if (first != bytes.size()) {
    std::memcpy(memory->data.data(), bytes.data() + first,
                bytes.size() - first);
  }
}

void CopyOut(const FrameRingMemory* memory, uint64_t position,
             std::span<uint8_t> bytes) {
  const uint64_t offset = position % kFrameRingBytes;
  const uint64_t first = std::min(bytes.size(), kFrameRingBytes - offset);
  std::memcpy(bytes.data(), &memory->data[offset], first);
  if (first != bytes.size()) {
    std::memcpy(bytes.data() + first, memory->data.data(),
                bytes.size() - first);
  }
}

}  // namespace

FrameRingProducer::FrameRingProducer(FrameRingMemory* memory, uint32_t epoch,
                                     Stores stores)
    : memory_(memory), streams_(base::kStreams && stores == Stores::kStreamed) {
  const uint64_t tail = memory->tail.load(std::memory_order_acquire);
  tail_ = (tail + kRecordAlign - 1) / kRecordAlign * kRecordAlign;
  head_ = memory->head.load(std::memory_order_acquire);
  // The consumer reads `start` once it has seen `epoch`.
  memory->start.store(tail_, std::memory_order_relaxed);
  memory->epoch.store(epoch, std::memory_order_release);
  memory->tail.store(tail_, std::memory_order_release);
}

std::optional<uint64_t> FrameRingProducer::Free(uint64_t need) {
  if (tail_ - head_ > kFrameRingBytes - need) {
    head_ = memory_->head.load(std::memory_order_seq_cst);  // After `Wait`.
    if (tail_ - head_ > kFrameRingBytes) {
      return std::nullopt;
    }
  }
  return kFrameRingBytes - (tail_ - head_);
}

FrameRingProducer::Outcome FrameRingProducer::Push(
    std::span<const uint8_t> frame, frame::FrameMarks marks) {
  const uint64_t need = RecordBytes(frame.size());
  const std::optional<uint64_t> free = Free(need);
  if (!free) {
    return Outcome::kCorrupt;
  }
  if (*free < need) {
    Publish();
    return Outcome::kFull;
  }
  const uint64_t offset = tail_ % kFrameRingBytes;
  const bool streams = streams_ && frame.size() >= kStreamedBytes &&
                       offset + need <= kFrameRingBytes;
  const Record record{
      .bytes = static_cast<uint32_t>(frame.size()),
      .magic = kRecordMagic,
      .flags = static_cast<uint16_t>((marks.bad_fcs ? kBadFcs : 0) |
                                     (marks.unchecked ? kUnchecked : 0) |
                                     (streams ? kStreamed : 0)),
      .position = tail_};
  if (streams) {
    std::array<uint8_t, sizeof(Record)> head;
    std::memcpy(head.data(), &record, sizeof(record));
    base::StreamLines(&memory_->data[offset], head, frame);
  } else {
    CopyIn(memory_, tail_ + sizeof(Record), frame);
    // Aligned, so in one piece.
    std::memcpy(&memory_->data[offset], &record, sizeof(record));
  }
  RingRelease(tail_);
  tail_ += need;
  streamed_ = streamed_ || streams;
  if (!streams) {
    ReleaseTail();
  }
  return Outcome::kSent;
}

void FrameRingProducer::Publish() {
  if (streamed_) {
    ReleaseTail();
  }
}

void FrameRingProducer::ReleaseTail() {
  if (streamed_) {
    base::EndStreaming();
    streamed_ = false;
  }
  memory_->tail.store(tail_, std::memory_order_release);
}

FrameRingConsumer::FrameRingConsumer(FrameRingMemory* memory)
    : memory_(memory),
      head_(memory->head.load(std::memory_order_acquire)),
      fetched_(head_) {}

void FrameRingConsumer::Discard(FrameRingMemory* memory) {
  memory->head.store(memory->tail.load(std::memory_order_acquire),
                     std::memory_order_release);
}

FrameRingConsumer::Outcome FrameRingConsumer::Pop(frame::Frame* frame,
                                                  frame::FrameMarks* marks) {
  if (!corrupt_) {
    const Outcome outcome = Read(frame, marks);
    if (outcome != Outcome::kCorrupt) {
      return outcome;
    }
    corrupt_ = true;
  }
  // The nonsense may be what a former producer left.
  const uint32_t epoch = memory_->epoch.load(std::memory_order_acquire);
  if (epoch == mended_epoch_) {
    return Outcome::kCorrupt;
  }
  mended_epoch_ = epoch;
  Advance(memory_->start.load(std::memory_order_relaxed));
  const Outcome outcome = Read(frame, marks);
  corrupt_ = outcome == Outcome::kCorrupt;
  return outcome;
}

void FrameRingConsumer::FetchAhead(uint64_t position, uint64_t end) {
  const uint64_t wanted = std::min(end - position, kFetchedBytes);
  const uint64_t fetched = fetched_ - position;
  for (uint64_t ahead = fetched <= wanted ? fetched : 0; ahead < wanted;
       ahead += base::kLineBytes) {
    // Into the second cache: fewer misses of the first can be outstanding.
    __builtin_prefetch(&memory_->data[(position + ahead) % kFrameRingBytes],
                       /*rw=*/0, /*locality=*/2);
  }
  fetched_ = position + wanted;
}

void FrameRingConsumer::Advance(uint64_t head) {
  head_ = head;
  memory_->head.store(head_, std::memory_order_seq_cst);
}

FrameRingConsumer::Outcome FrameRingConsumer::Read(frame::Frame* frame,
                                                   frame::FrameMarks* marks) {
  const uint64_t filled = memory_->tail.load(std::memory_order_acquire) - head_;
  if (filled == 0) {
    return Outcome::kEmpty;
  }
  if (filled > kFrameRingBytes || filled < sizeof(Record) ||
      head_ % kRecordAlign != 0) {
    return Outcome::kCorrupt;
  }
  Record record;
  std::memcpy(&record, &memory_->data[head_ % kFrameRingBytes], sizeof(record));
  if (record.magic != kRecordMagic || record.position != head_ ||
      record.bytes < frame::kMinFrameBytes ||
      record.bytes > frame::kMaxWireFrameBytes ||
      RecordBytes(record.bytes) > filled) {
    return Outcome::kCorrupt;
  }
  RingAcquire(head_);
  frame->resize(record.bytes);
  CopyOut(memory_, head_ + sizeof(Record), *frame);
  if (marks != nullptr) {
    *marks = {.bad_fcs = (record.flags & kBadFcs) != 0,
              .unchecked = (record.flags & kUnchecked) != 0};
  }
  const uint64_t next = head_ + RecordBytes(record.bytes);
  if ((record.flags & kStreamed) != 0) {
    FetchAhead(next, head_ + filled);
  }
  Advance(next);
  return Outcome::kFrame;
}

}  // namespace heddle::sim::wire
