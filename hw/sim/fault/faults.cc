// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/fault/faults.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>

#include "hw/contract/gen/heddle_wire.h"

namespace heddle::sim::fault {

namespace {

constexpr size_t kWord = 2;  // Of the internet checksum.
constexpr uint32_t kMostPairs = 4;
constexpr uint32_t kMostBits = 8;
constexpr uint32_t kByteBits = 8;
constexpr uint32_t kTries = 4096;  // Most words of an ACK are alike.

// A seed for what `values` identify, unrelated to those of other values.
uint64_t Derive(uint64_t seed, std::initializer_list<uint64_t> values) {
  for (const uint64_t value : values) {
    seed = base::Random(base::Random(seed).Next() ^ value).Next();
  }
  return seed;
}

constexpr size_t kChecksumAt = 10;  // In an IPv4 header.

// Of a frame with a datagram.
uint8_t* FindIpHeader(frame::Frame* frame) {
  constexpr size_t kTypeAt = contract::wire::Ethernet::kBytes - kWord;
  constexpr uint8_t kVlanHigh = 0x81;
  const size_t tag =
      (*frame)[kTypeAt] == kVlanHigh ? contract::wire::Vlan::kBytes : 0;
  return frame->data() + contract::wire::Ethernet::kBytes + tag;
}

bool IsRequest(contract::PdsType type) {
  using contract::PdsType;
  return type == PdsType::kRodReq || type == PdsType::kRudReq ||
         type == PdsType::kRodCcReq || type == PdsType::kRudCcReq;
}

}  // namespace

LineFaults LineFaults::OfPort(const frame::WireAddress& address,
                              uint32_t ordinal) const {
  enum Direction : uint8_t { kTx, kRx };
  const uint64_t family = address.ipv6 ? 1 : 0;
  LineFaults port = *this;
  port.tx.seed =
      Derive(tx.seed, {family, address.hi, address.lo, ordinal, kTx});
  port.rx.seed =
      Derive(rx.seed, {family, address.hi, address.lo, ordinal, kRx});
  return port;
}

bool CorruptSilently(uint64_t seed, frame::Frame* frame, uint8_t ip_protocol) {
  const frame::Datagram datagram = frame::FindDatagram(*frame, ip_protocol);
  const size_t header = datagram.layer4_bytes;
  if (datagram.bytes < header + 2 * kWord) {
    return false;
  }
  const auto words = static_cast<uint32_t>((datagram.bytes - header) / kWord);
  uint8_t* const payload = frame->data() + datagram.offset + header;
  const frame::Frame before = *frame;
  base::Random random(seed);
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

void Damage(uint64_t seed, frame::Frame* frame) {
  constexpr size_t kHeader = contract::wire::Ethernet::kBytes;
  if (frame->size() <= kHeader) {
    return;
  }
  base::Random random(seed);
  const uint32_t bits = 1 + random.Below(kMostBits);
  for (uint32_t i = 0; i < bits; ++i) {
    const size_t at =
        kHeader + random.Below(static_cast<uint32_t>(frame->size() - kHeader));
    (*frame)[at] ^= static_cast<uint8_t>(1U << random.Below(kByteBits));
  }
}

bool MarkCongestion(frame::Frame* frame, uint8_t ip_protocol) {
  constexpr uint8_t kCe = 3;
  if (frame::FindDatagram(*frame, ip_protocol).bytes == 0) {
    return false;
  }
  uint8_t* const ip = FindIpHeader(frame);
  if (ip[0] >> 4 == 6) {
    auto header = contract::wire::Ipv6::Decode(ip);
    const bool marked = header.ecn == kCe;
    header.ecn = kCe;
    header.Encode(ip);
    return !marked;
  }
  const uint8_t before = ip[1];
  ip[1] |= kCe;
  // RFC 1624: HC' = ~(~HC + ~m + m'). The field is the low byte of its word.
  const uint32_t checksum =
      uint32_t{ip[kChecksumAt]} << 8 | ip[kChecksumAt + 1];
  uint32_t sum = (~checksum & 0xffff) + uint32_t{ip[1]} - before;
  sum = (sum & 0xffff) + (sum >> 16);
  ip[kChecksumAt] = static_cast<uint8_t>(~sum >> 8);
  ip[kChecksumAt + 1] = static_cast<uint8_t>(~sum);
  return ip[1] != before;
}

bool TrimRequest(uint8_t dscp, frame::Frame* frame, uint8_t ip_protocol) {
  constexpr size_t kKeptOfPds = 16;
  constexpr size_t kShortest = 60;
  const frame::Datagram datagram = frame::FindDatagram(*frame, ip_protocol);
  const size_t kept = datagram.layer4_bytes + kKeptOfPds;
  if (datagram.bytes <= kept ||
      !IsRequest(contract::wire::PdsPrologue::Decode(
                     frame->data() + datagram.offset + datagram.layer4_bytes)
                     .type)) {
    return false;
  }
  uint8_t* const ip = FindIpHeader(frame);
  if (ip[0] >> 4 == 6) {
    auto header = contract::wire::Ipv6::Decode(ip);
    header.dscp = dscp;
    header.payload_length = static_cast<uint16_t>(kept);
    header.Encode(ip);
  } else {
    auto header = contract::wire::Ipv4::Decode(ip);
    header.dscp = dscp;
    header.total_length =
        static_cast<uint16_t>(contract::wire::Ipv4::kBytes + kept);
    header.checksum = 0;
    header.Encode(ip);
    uint32_t sum = 0;
    for (size_t i = 0; i < contract::wire::Ipv4::kBytes; i += kWord) {
      sum += uint32_t{ip[i]} << 8 | ip[i + 1];
    }
    sum = ~((sum & 0xffff) + (sum >> 16));
    ip[kChecksumAt] = static_cast<uint8_t>(sum >> 8);
    ip[kChecksumAt + 1] = static_cast<uint8_t>(sum);
  }
  frame->resize(datagram.offset + kept);
  frame->resize(std::max(frame->size(), kShortest));
  return true;
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
  if (decision.corrupted && CorruptSilently(decision.damage_seed, &frame->bytes,
                                            options_.ip_protocol)) {
    ++corrupted_;
  }
  if (decision.bad_fcs) {
    Damage(decision.damage_seed, &frame->bytes);
    frame->bad_fcs = true;
    ++bad_fcs_;
  }
}

}  // namespace heddle::sim::fault
