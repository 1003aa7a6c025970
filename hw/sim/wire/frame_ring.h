// SPDX-License-Identifier: Apache-2.0
// Frames from one port to another through memory that both can write.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hw/sim/frame/frame.h"

namespace heddle::sim::wire {

inline constexpr uint64_t kFrameRingBytes = 262144;

// The shared part. All zero is an empty ring.
struct FrameRingMemory {
  alignas(64) std::atomic<uint64_t> head;  // Bytes consumed, free-running.
  std::atomic<uint32_t> producer_waits;    // Consumer wakes the producer.
  // Which producer wrote last, and where it began.
  std::atomic<uint32_t> epoch;
  std::atomic<uint64_t> start;
  alignas(64) std::atomic<uint64_t> tail;  // Bytes produced, free-running.
  alignas(64) std::array<uint8_t, kFrameRingBytes> data;
};

// Sending end. Frames become visible whole, with one release store, so a sender
// may die at any point.
class FrameRingProducer {
 public:
  enum class Outcome : uint8_t { kSent, kFull, kCorrupt };
  // How long frames are written; for speed alone. `kStreamed`, past the caches,
  // suits a consumer on another core, and no other.
  enum class Stores : uint8_t { kCached, kStreamed };

  // Continues after what the last producer wrote, sound or not. `epoch` differs
  // from those of the ring's former producers.
  FrameRingProducer(FrameRingMemory* memory, uint32_t epoch,
                    Stores stores = Stores::kCached);

  // `kCorrupt`: the consumer's place makes no sense; it may fix that. A
  // streamed frame becomes visible with `Publish`, with the next that is not
  // streamed, or with `kFull`.
  Outcome Push(std::span<const uint8_t> frame, frame::FrameMarks marks = {});
  // Makes visible what was pushed. Once for a burst: it waits for the streamed
  // frames to be in memory.
  void Publish();
  // What the consumer has taken; tells a slow one from a stopped one.
  uint64_t consumed() const {
    return memory_->head.load(std::memory_order_acquire);
  }
  uint64_t produced() const { return tail_; }
  // True if the consumer has not yet taken everything.
  bool pending() const { return consumed() != tail_; }
  // Asks to be woken when there is room. What became free before is not told
  // of: `Push` again.
  void Wait() { memory_->producer_waits.store(1, std::memory_order_seq_cst); }

 private:
  // Bytes that are free, at least `need` if the consumer has left that many;
  // empty if its place makes no sense.
  std::optional<uint64_t> Free(uint64_t need);
  void ReleaseTail();

  FrameRingMemory* memory_;
  const bool streams_;
  bool streamed_ = false;  // Frames that were streamed wait for `Publish`.
  uint64_t tail_;
  // As last seen: the consumer's cache line is fetched when it has to be.
  uint64_t head_;
};

// Receiving end. Trusts nothing in the ring.
class FrameRingConsumer {
 public:
  enum class Outcome : uint8_t { kFrame, kEmpty, kCorrupt };

  // Starts behind what was consumed last.
  explicit FrameRingConsumer(FrameRingMemory* memory);

  // Drops what is in the ring; only by its consumer.
  static void Discard(FrameRingMemory* memory);

  // `kCorrupt` lasts until the ring has another producer.
  Outcome Pop(frame::Frame* frame, frame::FrameMarks* marks = nullptr);
  // The producer has written nothing after what was taken.
  bool empty() const {
    return memory_->tail.load(std::memory_order_acquire) == head_;
  }
  // True once if the producer asked to be woken and there is room for several
  // frames: a wake for each frame costs more than the frame.
  bool TakeProducerWait() {
    return memory_->producer_waits.load(std::memory_order_seq_cst) != 0 &&
           memory_->tail.load(std::memory_order_acquire) - head_ <=
               kFrameRingBytes / 2 &&
           memory_->producer_waits.exchange(0, std::memory_order_seq_cst) != 0;
  }

 private:
  Outcome Read(frame::Frame* frame, frame::FrameMarks* marks);
  // Starts to fetch what follows `position`, up to `end`, from memory.
  void FetchAhead(uint64_t position, uint64_t end);
  void Advance(uint64_t head);

  FrameRingMemory* memory_;
  uint64_t head_;
  uint64_t fetched_;  // The end of what was fetched.
  bool corrupt_ = false;
  uint32_t mended_epoch_ = 0;  // Of the producer last given a new start.
};

}  // namespace heddle::sim::wire
