// SPDX-License-Identifier: Apache-2.0
// The C++ and the SystemVerilog view of the contract agree bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "Vcontract_probe.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"

namespace heddle {
namespace {

// A field of a layout, as the C++ headers read it.
struct Field {
  const char* name;
  size_t bytes;        // Of the layout.
  bool wire;           // Packet header, else struct in host memory.
  unsigned bits;       // Of the field.
  unsigned case_bit;   // Selector of the union, from the first bit on the wire.
  unsigned case_bits;  // 0 when there is no union.
  uint64_t case_value;
  uint64_t (*read)(const uint8_t*);
};

struct Constant {
  const char* name;
  uint64_t value;
};

template <typename T>
T Struct(const uint8_t* in) {
  T value;
  std::memcpy(&value, in, sizeof(value));
  return value;
}

// kFields and kConstants, in the order of the probe's `index_i`.
#include "probe_table.h"

constexpr int kRounds = 200;
constexpr uint32_t kSeed = 20261120;

void PutBits(uint8_t* bytes, unsigned bit, unsigned bits, uint64_t value) {
  for (unsigned i = 0; i < bits; ++i) {
    const unsigned at = bit + i;
    const auto mask = static_cast<uint8_t>(0x80u >> (at % 8));
    const bool set = ((value >> (bits - 1 - i)) & 1) != 0;
    bytes[at / 8] = static_cast<uint8_t>(set ? bytes[at / 8] | mask
                                             : bytes[at / 8] & ~mask);
  }
}

class Probe {
 public:
  static constexpr size_t kBytes = sizeof(Vcontract_probe::host_i);

  uint64_t Field(const std::array<uint8_t, kBytes>& bytes, size_t index) {
    std::array<uint8_t, sizeof(model_.wire_i)> reversed;
    std::reverse_copy(bytes.begin(), bytes.begin() + reversed.size(),
                      reversed.begin());
    std::memcpy(&model_.host_i, bytes.data(), kBytes);
    std::memcpy(&model_.wire_i, reversed.data(), reversed.size());
    model_.index_i = static_cast<uint16_t>(index);
    model_.eval();
    return model_.field_o;
  }

  uint64_t Constant(size_t index) {
    model_.index_i = static_cast<uint16_t>(index);
    model_.eval();
    return model_.constant_o;
  }

 private:
  VerilatedContext context_;
  Vcontract_probe model_{&context_};
};

TEST(ContractViews, EveryFieldOfEveryLayoutIsTheSameBits) {
  RecordProperty("seed", std::to_string(kSeed));
  std::mt19937 random(kSeed);
  Probe probe;
  for (int round = 0; round < kRounds; ++round) {
    std::array<uint8_t, Probe::kBytes> bytes;
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    for (size_t i = 0; i < std::size(kFields); ++i) {
      const Field& field = kFields[i];
      PutBits(bytes.data(), field.case_bit, field.case_bits, field.case_value);
      const uint64_t mask = ~uint64_t{0} >> (64 - field.bits);
      ASSERT_EQ(field.read(bytes.data()) & mask, probe.Field(bytes, i))
          << field.name << ", seed " << kSeed << ", round " << round;
    }
  }
}

TEST(ContractViews, EveryConstantHasTheSameValue) {
  Probe probe;
  for (size_t i = 0; i < std::size(kConstants); ++i) {
    EXPECT_EQ(kConstants[i].value, probe.Constant(i)) << kConstants[i].name;
  }
}

// Together with the first test: what `Encode` writes is what RTL reads.
template <typename Header>
void ExpectEncodeInvertsDecode(const char* name, std::mt19937& random) {
  for (int round = 0; round < kRounds; ++round) {
    std::array<uint8_t, Header::kBytes> bytes;
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    const Header header = Header::Decode(bytes.data());
    std::array<uint8_t, Header::kBytes> again;
    again.fill(0xa5);
    header.Encode(again.data());
    ASSERT_EQ(Header::Decode(again.data()), header) << name;
    if (round % 2 == 0) continue;
    // A second encoding is the same bytes: no bit depends on what was there.
    std::array<uint8_t, Header::kBytes> zeroed{};
    header.Encode(zeroed.data());
    ASSERT_EQ(again, zeroed) << name;
  }
}

TEST(ContractViews, EncodeInvertsDecodeForEveryHeader) {
  std::mt19937 random(kSeed);
  using namespace contract::wire;  // NOLINT: one test, a list of names.
  ExpectEncodeInvertsDecode<Ethernet>("ethernet", random);
  ExpectEncodeInvertsDecode<Vlan>("vlan", random);
  ExpectEncodeInvertsDecode<Ipv4>("ipv4", random);
  ExpectEncodeInvertsDecode<Ipv6>("ipv6", random);
  ExpectEncodeInvertsDecode<Udp>("udp", random);
  ExpectEncodeInvertsDecode<Entropy>("entropy", random);
  ExpectEncodeInvertsDecode<CrcTrailer>("crc_trailer", random);
  ExpectEncodeInvertsDecode<PdsPrologue>("pds_prologue", random);
  ExpectEncodeInvertsDecode<PdsRequest>("pds_request", random);
  ExpectEncodeInvertsDecode<PdsCcState>("pds_cc_state", random);
  ExpectEncodeInvertsDecode<PdsAck>("pds_ack", random);
  ExpectEncodeInvertsDecode<PdsAckCc>("pds_ack_cc", random);
  ExpectEncodeInvertsDecode<PdsNack>("pds_nack", random);
  ExpectEncodeInvertsDecode<PdsCp>("pds_cp", random);
  ExpectEncodeInvertsDecode<PdsNegotiation>("pds_negotiation", random);
  ExpectEncodeInvertsDecode<PdsUud>("pds_uud", random);
  ExpectEncodeInvertsDecode<SesStd>("ses_std", random);
  ExpectEncodeInvertsDecode<SesSmall>("ses_small", random);
  ExpectEncodeInvertsDecode<SesMedium>("ses_medium", random);
  ExpectEncodeInvertsDecode<SesTokens>("ses_tokens", random);
  ExpectEncodeInvertsDecode<SesRendezvous>("ses_rendezvous", random);
  ExpectEncodeInvertsDecode<SesAtomic>("ses_atomic", random);
  ExpectEncodeInvertsDecode<SesCswap>("ses_cswap", random);
  ExpectEncodeInvertsDecode<SesResponse>("ses_response", random);
  ExpectEncodeInvertsDecode<SesResponseData>("ses_response_data", random);
  ExpectEncodeInvertsDecode<SesResponseDataSmall>("ses_response_data_small",
                                                  random);
}

}  // namespace
}  // namespace heddle
