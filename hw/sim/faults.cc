// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/faults.h"

#include <cstddef>
#include <utility>

#include "hw/contract/gen/heddle_wire.h"

namespace heddle::sim {

namespace {

constexpr size_t kWord = 2;  // Of the internet checksum.
constexpr uint32_t kMostPairs = 4;
constexpr uint32_t kMostBits = 8;
constexpr uint32_t kByteBits = 8;
constexpr uint32_t kTries = 4096;  // Most words of an ACK are alike.

}  // namespace

bool CorruptSilently(uint64_t seed, Frame* frame) {
  const Datagram datagram = FindDatagram(*frame);
  constexpr size_t kHeader = contract::wire::Udp::kBytes;
  if (datagram.bytes < kHeader + 2 * kWord) {
    return false;
  }
  const auto words = static_cast<uint32_t>((datagram.bytes - kHeader) / kWord);
  uint8_t* const payload = frame->data() + datagram.offset + kHeader;
  const Frame before = *frame;
  Random random(seed);
  uint32_t pairs = 1 + random.Below(kMostPairs);
  // A later pair may undo an earlier one.
  for (uint32_t i = 0; i < kTries && (pairs > 0 || *frame == before); ++i) {
    const uint32_t bit = random.Below(kWord * kByteBits);
    const auto mask = static_cast<uint8_t>(1U << bit % kByteBits);
    uint8_t& one = payload[random.Below(words) * kWord + bit / kByteBits];
    uint8_t& other = payload[random.Below(words) * kWord + bit / kByteBits];
    if (((one ^ other) & mask) != 0) {
      one ^= mask;
      other ^= mask;
      pairs -= pairs > 0 ? 1 : 0;
    }
  }
  return *frame != before;
}

void Damage(uint64_t seed, Frame* frame) {
  constexpr size_t kHeader = contract::wire::Ethernet::kBytes;
  if (frame->size() <= kHeader) {
    return;
  }
  Random random(seed);
  const uint32_t bits = 1 + random.Below(kMostBits);
  for (uint32_t i = 0; i < bits; ++i) {
    const size_t at =
        kHeader + random.Below(static_cast<uint32_t>(frame->size() - kHeader));
    (*frame)[at] ^= static_cast<uint8_t>(1U << random.Below(kByteBits));
  }
}

FaultInjector::FaultInjector(const FaultOptions& options)
    : options_(options),
      active_(options.loss > 0 || options.duplicate > 0 ||
              options.reorder > 0 || options.corrupt > 0 ||
              options.bad_fcs > 0),
      // Not the generator of the memory model, which has the same seed.
      random_(options.seed ^ 0x6661756c74),
      damage_(options.seed ^ 0x64616d616765) {}

FaultDecision FaultInjector::Next() {
  FaultDecision decision;
  if (!active_) {
    return decision;
  }
  // All draws are made for each frame: a decision does not shift later ones.
  decision.lost = random_.Chance(options_.loss);
  decision.duplicated = random_.Chance(options_.duplicate) && !decision.lost;
  const bool reordered = random_.Chance(options_.reorder) && !decision.lost;
  const uint32_t overtaking = 1 + random_.Below(kMaxOvertaking);
  decision.overtaken_by = reordered ? overtaking : 0;
  decision.corrupted = damage_.Chance(options_.corrupt) && !decision.lost;
  decision.bad_fcs = damage_.Chance(options_.bad_fcs) && !decision.lost;
  decision.damage_seed = damage_.Next();
  lost_ += decision.lost;
  duplicated_ += decision.duplicated;
  reordered_ += reordered;
  return decision;
}

void FaultInjector::Apply(const FaultDecision& decision, LineFrame* frame) {
  if (decision.corrupted &&
      CorruptSilently(decision.damage_seed, &frame->bytes)) {
    ++corrupted_;
  }
  if (decision.bad_fcs) {
    Damage(decision.damage_seed, &frame->bytes);
    frame->bad_fcs = true;
    ++bad_fcs_;
  }
}

void FaultyLine::Push(Frame bytes, std::vector<LineFrame>* out) {
  const FaultDecision decision = injector_.Next();
  LineFrame frame{.bytes = std::move(bytes), .route = {}, .bad_fcs = false};
  frame.route = FindRoute(frame.bytes);
  const size_t waiting = held_.size();
  if (decision.duplicated) {
    out->push_back(frame);
  }
  injector_.Apply(decision, &frame);
  if (decision.overtaken_by > 0) {
    held_.push_back({std::move(frame), decision.overtaken_by});
  } else if (!decision.lost) {
    out->push_back(std::move(frame));
  }
  // Frames held before this one was sent have been passed once more; a lost
  // frame counts, so that nothing is held for long on a bad line.
  for (size_t i = 0, index = 0; i < waiting; ++i) {
    if (--held_[index].remaining == 0) {
      out->push_back(std::move(held_[index].frame));
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      ++index;
    }
  }
}

void FaultyLine::Flush(std::vector<LineFrame>* out) {
  for (Held& held : held_) {
    out->push_back(std::move(held.frame));
  }
  held_.clear();
}

}  // namespace heddle::sim
