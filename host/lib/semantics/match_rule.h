// SPDX-License-Identifier: Apache-2.0
// What a receive asks for and what a message brings, for matching.
#pragma once

#include <bit>
#include <cstdint>

namespace heddle::semantics {

// Endpoint that sent a message. On a Heddle device {source address, UET
// initiator}; other backends put what tells their peers apart.
struct Source {
  uint64_t address_lo = 0;  // Of IPv4, the low 32 bits.
  uint64_t address_hi = 0;  // 0 for IPv4.
  uint32_t initiator = 0;
  bool ipv6 = false;

  bool operator==(const Source&) const = default;
};

// What a message brings.
struct Envelope {
  uint64_t tag = 0;  // 0 for untagged messages, which have lists of their own.
  Source source;
};

// What a receive asks for. Without FI_DIRECTED_RECV `any_source` stays set
// (libfabric 52).
struct MatchRule {
  uint64_t tag = 0;
  uint64_t ignore = 0;  // Bits of the tag that do not count.
  bool any_source = true;
  Source source;

  // Every bit of the tag counts: such rules are found by hashing.
  bool exact() const noexcept { return ignore == 0; }

  // libfabric 211: (rule.tag & ~ignore) == (tag & ~ignore).
  bool Matches(const Envelope& message) const noexcept {
    return ((tag ^ message.tag) & ~ignore) == 0 &&
           (any_source || source == message.source);
  }
};

// Hash of {tag, source} and of {tag, any source}, by a seed: peers choose tags,
// so that only who knows the seed can make them collide.
class MatchHash {
 public:
  explicit MatchHash(uint64_t seed) : seed_(seed) {}

  uint64_t OfTag(uint64_t tag) const noexcept { return Mix(seed_ ^ tag); }
  uint64_t Of(uint64_t tag, const Source& source) const noexcept {
    const uint64_t rest =
        uint64_t{source.initiator} << 1U | static_cast<uint64_t>(source.ipv6);
    return Mix(Mix(Mix(OfTag(tag) ^ source.address_lo) ^ source.address_hi) ^
               rest ^ (uint64_t{1} << 63U));
  }

  // Power of two of buckets that keeps `entries` keys apart.
  static uint32_t Buckets(uint32_t entries) noexcept {
    return std::bit_ceil(entries < 4 ? 8U : entries * 2);
  }

 private:
  // Finalizer of MurmurHash3: a bijection, so that keys that differ in one word
  // never meet on the way.
  static uint64_t Mix(uint64_t hash) noexcept {
    hash = (hash ^ hash >> 33U) * 0xff51afd7ed558ccdULL;
    hash = (hash ^ hash >> 33U) * 0xc4ceb9fe1a85ec53ULL;
    return hash ^ hash >> 33U;
  }

  uint64_t seed_;
};

}  // namespace heddle::semantics
