// SPDX-License-Identifier: Apache-2.0
// Random frames, good and malformed, against a parser written from the wire
// layouts alone.
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/frames/worked.h"
#include "tests/rtl/net/rx_parser_bench.h"

namespace heddle::test {
namespace {

namespace wire = contract::wire;
using contract::CrcOrder;
using contract::PdsType;

TEST(RxParserTest, GoodFramesBecomePacketsAndAlignedPayload) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    contract::PortCfg port = PortVariant(variant);
    port.payload_mtu = static_cast<uint16_t>(1024u << variant % 4);
    RxParserBench bench(1 + variant, port);
    bench.gap = variant % 3 ? 0 : 0.3;
    for (int i = 0; i < 400; ++i) {
      bench.Post(GoodFrame(bench.rng(), RandomShape(bench.rng(), port), port));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
    EXPECT_EQ(bench.packets, 400u);
  }
}

TEST(RxParserTest, MalformedFramesAreDroppedAndCountedByTheFirstReason) {
  std::map<Statistic, uint64_t> counts;
  for (uint32_t variant = 0; variant < 2 * kVariants; ++variant) {
    contract::PortCfg port = PortVariant(variant % kVariants);
    port.payload_mtu = variant % 2 ? 1024 : 8192;
    RxParserBench bench(11 + variant, port);
    bench.gap = variant % 3 ? 0 : 0.3;
    for (int i = 0; i < 1000; ++i) {
      Shape shape = RandomShape(bench.rng(), port);
      if (i % 4 != 0) shape.payload %= 200;
      Built built = Build(bench.rng(), shape, port);
      if (bench.rng().Chance(0.05)) {  // The other family.
        built = Build(bench.rng(), shape, PortVariant(variant % kVariants ^ 1));
      } else if (bench.rng().Chance(0.05)) {
        built.frame = NeighborFrame(bench.rng(), port, bench.rng().Chance(0.5),
                                    bench.rng().Chance(0.5) ? 135 : 136);
        built.form = {};
        built.end = built.frame.size();
      }
      if (bench.rng().Chance(0.7)) {
        built.frame = Mutated(std::move(built), port, bench.rng());
      }
      bench.Post(std::move(built.frame), bench.rng().Chance(0.03));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
    for (const auto& [reason, count] : bench.counts) counts[reason] += count;
  }
  for (const Statistic reason :
       {Statistic::kRxFrames, Statistic::kDropMacError,
        Statistic::kDropTruncated, Statistic::kDropEthertype,
        Statistic::kDropIpHeader, Statistic::kDropIpChecksum,
        Statistic::kDropIpAddress, Statistic::kDropUdpPort, Statistic::kDropCrc,
        Statistic::kDropPdsType, Statistic::kDropSes, Statistic::kDropVlan}) {
    EXPECT_GE(counts[reason], 10u) << static_cast<int>(reason);
  }
}

constexpr Trims kTrims{.path = 3, .lasthop = 44};

// By their DSCP, whatever their lengths say: requests of both directions
// without what is behind the PDS header, other packets not at all.
TEST(RxParserTest, TrimmedRequestsAreOfferedWithoutLengthsCrcAndSes) {
  std::map<Statistic, uint64_t> counts;
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    RxParserBench bench(500 + variant, port);
    bench.SetTrims(kTrims);
    sim::base::Random& rng = bench.rng();
    for (int i = 0; i < 400; ++i) {
      const Built built = Build(rng, RandomShape(rng, port), port);
      const uint8_t dscp = rng.Chance(0.5) ? kTrims.path : kTrims.lasthop;
      const size_t kept =
          built.form.l4_bytes() + 16 + (rng.Chance(0.5) ? 0 : rng.Below(80));
      Bytes frame = Trimmed(built, dscp, kept, rng.Chance(0.5), rng);
      if (rng.Chance(0.1)) {  // The IP header is judged as ever.
        frame[built.form.l3 + rng.Below(20)] ^=
            static_cast<uint8_t>(1u << rng.Below(8));
      }
      bench.Post(std::move(frame), rng.Chance(0.03));
      bench.Post(GoodFrame(rng, RandomShape(rng, port), port));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
    for (const auto& [reason, count] : bench.counts) counts[reason] += count;
  }
  EXPECT_GE(counts[Statistic::kRxFrames], 6000u);
  EXPECT_GE(counts[Statistic::kDropTrimmed], 1000u);
}

TEST(RxParserTest, TrimmedFrameHasAtLeast16BytesOfThePdsHeader) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    RxParserBench bench(600 + variant, port);
    bench.SetTrims(kTrims);
    const Built built = Build(bench.rng(), {Kind::kRequest, 500}, port);
    for (size_t kept = 0; kept < 48; ++kept) {
      bench.Post(Trimmed(built, kTrims.path, kept, kept % 2, bench.rng()));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(20000));
    const size_t least = built.form.l4_bytes() + 16;
    EXPECT_EQ(bench.packets, 48 - least);
    EXPECT_EQ(bench.counts[Statistic::kDropTruncated], least);
  }
}

TEST(RxParserTest, NothingIsTrimmedByItsLengthOrWithoutTheSetting) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    RxParserBench bench(700 + variant, port);
    sim::base::Random& rng = bench.rng();
    const Built built = Build(rng, {Kind::kRequest, 500}, port);
    bench.Post(Trimmed(built, kTrims.path, 24, true, rng));
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(20000));
    bench.SetTrims(kTrims);
    bench.Post(Trimmed(built, 0, 24, true, rng));
    bench.Post(Trimmed(built, kTrims.path + 1, 24, false, rng));
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(20000));
    EXPECT_EQ(bench.counts[Statistic::kDropTruncated], 3u);
  }
}

// READs and their data beyond what lengths and MTU allow, by one byte.
TEST(RxParserTest, ReadsAndTheirDataKeepToTheirLengths) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    RxParserBench bench(300 + variant, port);
    const auto post = [&](Kind kind, size_t payload, size_t word,
                          uint32_t add) {
      Built built = Build(bench.rng(), {kind, payload}, port);
      built.frame.resize(built.end);
      // A 32-bit field behind the PDS header.
      const uint8_t* pds = built.frame.data() + built.form.pds();
      const bool cc = wire::PdsPrologue::Decode(pds).type == PdsType::kAckCc;
      const size_t at =
          built.form.pds() + 12 + word + (cc ? wire::PdsAckCc::kBytes : 0);
      uint32_t value =
          uint32_t{Half(built.frame, at)} << 16 | Half(built.frame, at + 2);
      value += add;
      PutHalf(built.frame, at, value >> 16);
      PutHalf(built.frame, at + 2, value & 0xffff);
      Finish(built.frame, built.form, port.crc, bench.rng());
      bench.Post(std::move(built.frame));
    };
    constexpr size_t kRequestLength = 40, kModifiedLength = 12;
    for (int i = 0; i < 8; ++i) {
      for (const size_t over : {size_t{0}, size_t{1}}) {
        post(Kind::kRead, port.payload_mtu + over, 0, 0);
        post(Kind::kReturnData, port.payload_mtu + over, 0, 0);
        post(Kind::kAckData, 16, kModifiedLength,
             0U - static_cast<uint32_t>(over));
        post(Kind::kReturnData, 100, kModifiedLength,
             0U - static_cast<uint32_t>(over) * 1001);
        post(Kind::kRead, 100, kRequestLength,
             0U - static_cast<uint32_t>(over));
      }
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
    EXPECT_GE(bench.counts[Statistic::kDropSes], 16U);
    EXPECT_GT(bench.packets, 40U);
  }
}

// A packet's length and the payload that it leaves agree beyond any MTU, too:
// the payload of the next packet follows.
TEST(RxParserTest, ARequestBeyondAnyPayloadMtuLeavesNoPayload) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    contract::PortCfg port = PortVariant(variant);
    port.payload_mtu = variant % 2 ? 4096 : 8192;
    RxParserBench bench(350 + variant, port);
    for (const size_t payload : {8191, 8192, 8193, 9114, 12000, 16000}) {
      bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, payload}, port));
      bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, 100}, port));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(200000));
    EXPECT_EQ(bench.packets, 12U);
  }
}

// Corruption that keeps the UDP checksum right, at each byte of frames of many
// lengths: what the CRC covers is never taken, and what it does not cover is.
TEST(RxParserTest, TheCrcCatchesAChangeOfAnyByteThatItCovers) {
  for (uint32_t variant = kFirstWithCrc; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    RxParserBench bench(100 + variant, port);
    bench.gap = 0;
    uint64_t intact = 0, crc_errors = 0;
    for (size_t payload = 0; payload < 2 * kStrobe + 3; ++payload) {
      const Built built = Build(bench.rng(), {Kind::kRequest, payload}, port);
      const size_t udp = built.form.l4();
      // MAC addresses, TTL or hop limit.
      for (const size_t at :
           {size_t{0}, size_t{8}, built.form.l3 + (port.ipv6 ? 7 : 8)}) {
        Bytes frame = built.frame;
        frame[at] ^= 0x40;
        if (!port.ipv6) {
          PutHalf(frame, built.form.l3 + 10, 0);
          PutHalf(frame, built.form.l3 + 10,
                  ~OnesSum(frame.data() + built.form.l3, 20));
        }
        bench.Post(std::move(frame));
        ++intact;
      }
      for (size_t at = built.form.source(); at < built.end; ++at) {
        // Of a long payload, what is near its ends.
        if (at > udp + 100 && at + 2 * kStrobe < built.end) continue;
        const bool native = built.form.native;
        // UDP checksum.
        if (!native && (at == udp + 6 || at == udp + 7)) continue;
        Bytes frame = built.frame;
        frame[at] ^= static_cast<uint8_t>(1u << bench.rng().Below(8));
        if (!port.ipv6) {
          PutHalf(frame, built.form.l3 + 10, 0);
          PutHalf(frame, built.form.l3 + 10,
                  ~OnesSum(frame.data() + built.form.l3, 20));
        }
        PutUdpSum(frame, built.form, built.end, UdpSum::kRight, bench.rng());
        // Address, port and length have reasons of their own.
        const bool own_reason =
            (at >= udp - (port.ipv6 ? 16 : 4) && at < udp) ||
            (!native && at >= udp + 2 && at < udp + 6);
        crc_errors += !own_reason;
        bench.Post(std::move(frame));
      }
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
    EXPECT_EQ(bench.packets, intact);
    // A change of type or header may be a frame shorter than its header.
    EXPECT_GE(bench.counts[Statistic::kDropCrc] +
                  bench.counts[Statistic::kDropTruncated],
              crc_errors);
    EXPECT_GT(bench.counts[Statistic::kDropCrc], crc_errors * 9 / 10);
  }
}

TEST(RxParserTest, ShortFramesBackToBackAreAllJudgedAndTaken) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    RxParserBench bench(200 + variant, port);
    bench.gap = 0;
    const bool has_crc = port.crc != CrcOrder::kNone;
    for (int i = 0; i < 2000; ++i) {
      const auto kind = static_cast<Kind>(1 + bench.rng().Below(4));
      Built built = Build(bench.rng(), {kind}, port);
      if (i % 3 == 0 && has_crc) {
        built.frame[built.end - 1 - bench.rng().Below(4)] ^= 0x10;
        PutUdpSum(built.frame, built.form, built.end, UdpSum::kRight,
                  bench.rng());
      }
      bench.Post(std::move(built.frame));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(100000));
    EXPECT_EQ(bench.packets, has_crc ? 1333u : 2000u);
    EXPECT_EQ(bench.counts[Statistic::kDropCrc], has_crc ? 667u : 0u);
  }
}

TEST(RxParserTest, OnlyFramesOfThePortsVlanAreTaken) {
  struct Case {
    uint16_t port;
    std::vector<uint16_t> tags;  // Outermost last.
    Statistic reason;
  };
  const Case cases[] = {
      {0, {}, Statistic::kRxFrames},
      {0, {0}, Statistic::kRxFrames},
      {0, {5}, Statistic::kDropVlan},
      {5, {}, Statistic::kDropVlan},
      {5, {0}, Statistic::kDropVlan},
      {5, {5}, Statistic::kRxFrames},
      {5, {4}, Statistic::kDropVlan},
      {4095, {4095}, Statistic::kRxFrames},
      {5, {5, 5}, Statistic::kDropEthertype},
      {0, {0, 0}, Statistic::kDropEthertype},
      {5, {5, 0}, Statistic::kDropVlan},
  };
  for (uint8_t ipv6 = 0; ipv6 < 2; ++ipv6) {
    for (const Case& c : cases) {
      contract::PortCfg port = PortVariant(ipv6);
      RxParserBench bench(300, port);
      Built built;
      do {
        built = Build(bench.rng(), {Kind::kRequest, 100}, port);
      } while (built.form.l3 != 14);
      for (const uint16_t vid : c.tags) {
        InsertTag(built.frame, vid, bench.rng());
      }
      port.vlan = c.port;
      bench.SetPort(port);
      // Cut inside the IP header, and inside a tag if there is one.
      for (const size_t size : {built.frame.size(), size_t{30}, size_t{17}}) {
        built.frame.resize(size);
        bench.Post(built.frame);
      }
      ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000));
      EXPECT_GE(bench.counts[c.reason], 1u)
          << "port " << c.port << ", " << c.tags.size() << " tags";
    }
  }
}

TEST(RxParserTest, AnyUdpChecksumIsAccepted) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    RxParserBench bench(310 + variant, port);
    for (const UdpSum sum : {UdpSum::kZero, UdpSum::kRight, UdpSum::kWrong}) {
      for (size_t payload = 0; payload < 2 * kStrobe; ++payload) {
        bench.Post(
            Build(bench.rng(), {Kind::kRequest, payload}, port, sum).frame);
      }
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(100000));
    EXPECT_EQ(bench.packets, 6 * kStrobe);
  }
}

TEST(RxParserTest, ACrcOfTheOtherByteOrderIsWrong) {
  for (uint32_t variant = kFirstWithCrc; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    contract::PortCfg other = port;
    other.crc = port.crc == CrcOrder::kMsbFirst ? CrcOrder::kLsbFirst
                                                : CrcOrder::kMsbFirst;
    RxParserBench bench(315 + variant, port);
    uint64_t wrong = 0;
    for (size_t payload = 0; payload < 2 * kStrobe; ++payload) {
      const Built built = Build(bench.rng(), {Kind::kRequest, payload}, other);
      const uint8_t* crc = &built.frame[built.end - 4];
      wrong += crc[0] != crc[3] || crc[1] != crc[2];
      bench.Post(built.frame);
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(100000));
    EXPECT_EQ(bench.counts[Statistic::kDropCrc], wrong);
    EXPECT_GT(wrong, kStrobe);
  }
}

// Whole, with each length of padding, and with each bit of the CRC wrong.
TEST(RxParserTest, FramesOfTheReferenceProviderAreAccepted) {
  for (const WorkedFrame& reference : kWorkedFrames) {
    if (reference.received != Statistic::kRxFrames) continue;
    SCOPED_TRACE(reference.name);
    RxParserBench bench(318, WorkedPort(reference));
    const Bytes frame = WorkedBytes(reference);
    for (size_t padding = 0; padding < 2 * kStrobe; ++padding) {
      Bytes padded = frame;
      const Bytes more = RandomBytes(bench.rng(), padding);
      padded.insert(padded.end(), more.begin(), more.end());
      bench.Post(std::move(padded));
    }
    for (size_t bit = 0; bit < 32; ++bit) {
      Bytes damaged = frame;
      damaged[frame.size() - 4 + bit / 8] ^=
          static_cast<uint8_t>(1u << bit % 8);
      bench.Post(std::move(damaged));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(100000));
    EXPECT_EQ(bench.packets, 2 * kStrobe);
    EXPECT_EQ(bench.counts[Statistic::kDropCrc], 32u);
  }
}

// Where a field of a header is in the record.
struct Recorded {
  const char* header;
  const char* field;
  const char* record;
};
constexpr Recorded kRecorded[] = {
    {"pds_request", "type", "pds_type"},
    {"pds_request", "next_hdr", "next_hdr"},
    {"pds_request", "retx", "retx"},
    {"pds_request", "ar", "ar"},
    {"pds_request", "syn", "syn"},
    {"pds_request", "clear_psn_offset", "offset"},
    {"pds_request", "psn", "psn"},
    {"pds_request", "spdcid", "spdcid"},
    {"pds_request", "dpdcid", "dpdcid"},
    {"pds_request", "psn_offset", "psn_offset"},
    {"pds_ack", "type", "pds_type"},
    {"pds_ack", "next_hdr", "next_hdr"},
    {"pds_ack", "m", "m"},
    {"pds_ack", "retx", "retx"},
    {"pds_ack", "p", "probe"},
    {"pds_ack", "req", "req"},
    {"pds_ack", "ack_psn_offset", "offset"},
    {"pds_ack", "cack_psn", "psn"},
    {"pds_ack", "spdcid", "spdcid"},
    {"pds_ack", "dpdcid", "dpdcid"},
    {"pds_nack", "type", "pds_type"},
    {"pds_nack", "next_hdr", "next_hdr"},
    {"pds_nack", "retx", "retx"},
    {"pds_nack", "nack_code", "nack_code"},
    {"pds_nack", "nack_psn", "psn"},
    {"pds_nack", "spdcid", "spdcid"},
    {"pds_nack", "dpdcid", "dpdcid"},
    {"pds_nack", "payload", "pds_payload"},
    {"pds_cp", "type", "pds_type"},
    {"pds_cp", "cp_type", "next_hdr"},
    {"pds_cp", "retx", "retx"},
    {"pds_cp", "ar", "ar"},
    {"pds_cp", "syn", "syn"},
    {"pds_cp", "psn", "psn"},
    {"pds_cp", "spdcid", "spdcid"},
    {"pds_cp", "dpdcid", "dpdcid"},
    {"pds_cp", "payload", "pds_payload"},
    {"ses_std", "opcode", "opcode"},
    {"ses_std", "dc", "dc"},
    {"ses_std", "ie", "ie"},
    {"ses_std", "rel", "rel"},
    {"ses_std", "hd", "hd"},
    {"ses_std", "som", "som"},
    {"ses_std", "message_id", "message_id"},
    {"ses_std", "job_id", "job_id"},
    {"ses_std", "pid_on_fep", "pid_on_fep"},
    {"ses_std", "resource_index", "resource_index"},
    {"ses_std", "buffer_offset", "buffer_offset"},
    {"ses_std", "initiator", "initiator"},
    {"ses_std", "match_bits", "match_bits"},
    {"ses_std", "header_data", "header_data"},
    {"ses_std", "message_offset", "message_offset"},
    {"ses_std", "request_length", "request_length"},
    {"ses_response", "opcode", "response"},
    {"ses_response", "return_code", "return_code"},
    {"ses_response", "message_id", "message_id"},
    {"ses_response", "job_id", "job_id"},
    {"ses_response_data", "opcode", "response"},
    {"ses_response_data", "return_code", "return_code"},
    {"ses_response_data", "read_request_message_id", "message_id"},
    {"ses_response_data", "job_id", "job_id"},
    {"ses_response_data", "modified_length", "request_length"},
    {"ses_response_data", "message_offset", "message_offset"},
};

// The bench compares record and payload with the same verdict.
TEST(RxParserTest, EachWorkedFrameIsRecordedOrDroppedAsStated) {
  for (const WorkedFrame& frame : kWorkedFrames) {
    SCOPED_TRACE(testing::Message() << frame.name << ", " << frame.title);
    const Bytes bytes = WorkedBytes(frame);
    RxParserBench bench(319, WorkedPort(frame));
    Verdict verdict = Judge(bytes, false, bench.port());
    EXPECT_EQ(verdict.reason, frame.received);
    if (frame.received == Statistic::kRxFrames) {
      EXPECT_EQ(verdict.fields["source_port"], frame.entropy);
      EXPECT_EQ(verdict.fields["dscp"], frame.dscp);
      for (const Recorded& field : kRecorded) {
        if (!HasHeader(frame, field.header)) continue;
        const uint64_t stated = WorkedValue(frame, field.header, field.field);
        const bool half = std::string_view(field.record) == "offset";
        EXPECT_EQ(verdict.fields[field.record], half ? stated & 0xffff : stated)
            << field.header << '.' << field.field;
      }
      if (!HasHeader(frame, "ses_atomic")) {
        EXPECT_EQ(verdict.payload, FromHex(frame.payload));
      }
    }
    bench.Post(bytes);
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000));
    EXPECT_EQ(bench.counts[frame.received], 1u);
  }
}

TEST(RxParserTest, AFrameForTheOtherFamilysAddressIsNotOurs) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    contract::PortCfg other = PortVariant(variant ^ 1);
    other.local_fa_lo = port.local_fa_lo;
    other.local_fa_hi = port.local_fa_hi;
    RxParserBench bench(320 + variant, port);
    bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, 20}, other));
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000));
    EXPECT_EQ(bench.counts[Statistic::kDropIpAddress], 1u);
  }
}

// UDP at a port of native IP, native IP at one of UDP, and another number.
TEST(RxParserTest, AnotherEncapsulationIsDroppedByTheIpHeader) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    contract::PortCfg other = PortVariant(variant ^ 4);
    RxParserBench bench(325 + variant, port);
    bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, 20}, other));
    other.ip_protocol = contract::kNativeIpProtocol - 1;
    bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, 20}, other));
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000));
    EXPECT_EQ(bench.counts[Statistic::kDropIpHeader], 2u);
  }
}

TEST(RxParserTest, EachBitOfAnIpv6AddressIsCompared) {
  contract::PortCfg port = PortVariant(1);
  RxParserBench bench(330, port);
  for (size_t bit = 0; bit < 128; ++bit) {
    Built built = Build(bench.rng(), {Kind::kRequest, 20}, port);
    built.frame[built.form.l3 + 24 + bit / 8] ^=
        static_cast<uint8_t>(1u << bit % 8);
    PutUdpSum(built.frame, built.form, built.end, UdpSum::kRight, bench.rng());
    bench.Post(std::move(built.frame));
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
  EXPECT_EQ(bench.counts[Statistic::kDropIpAddress], 128u);
}

// Neither offered nor counted as dropped, even when no packet finds room.
TEST(RxParserTest, NeighborFramesAreLeftToTheSlowPath) {
  for (uint32_t variant = 0; variant < 4; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    RxParserBench bench(340 + variant, port);
    bench.may_overflow = true;
    bench.take = 0;
    for (int i = 0; i < 70; ++i) {
      bench.Post(GoodFrame(bench.rng(), {Kind::kAck}, port));
    }
    for (int i = 0; i < 10; ++i) {
      bench.Post(NeighborFrame(bench.rng(), port, true));
      bench.Post(NeighborFrame(bench.rng(), port, false, 135));
      bench.Post(NeighborFrame(bench.rng(), port, false, 136));
      bench.Post(NeighborFrame(bench.rng(), port, false, 134));
      bench.Post(NeighborFrame(bench.rng(), port, true), true);
      contract::PortCfg other = port;
      other.vlan = 6;
      bench.Post(NeighborFrame(bench.rng(), other, true));
    }
    ASSERT_NO_FATAL_FAILURE(bench.RunInput(10000));
    bench.take = 1;
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
    EXPECT_EQ(bench.packets, 64u);
    EXPECT_EQ(bench.counts[Statistic::kDropOverflow], 6u);
    EXPECT_EQ(bench.counts[Statistic::kRxFrames], 64u + 30u);
    EXPECT_EQ(bench.counts[Statistic::kDropIpHeader], 10u);
    EXPECT_EQ(bench.counts[Statistic::kDropMacError], 10u);
    EXPECT_EQ(bench.counts[Statistic::kDropVlan], 10u);
  }
}

TEST(RxParserTest, NothingElseIsTakenForAFrameOfOurs) {
  RxParserBench bench(21);
  for (int i = 0; i < 3000; ++i) {
    bench.Post(RandomBytes(bench.rng(), 1 + bench.rng().Below(200)));
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(1000000));
  EXPECT_EQ(bench.packets, 0u);
}

// Unhurried: nothing is taken, so what finds no room is dropped whole.
TEST(RxParserTest, FramesThatFindNoRoomAreDroppedWholeAndCounted) {
  for (const size_t payload : {size_t{8}, size_t{4096}}) {
    RxParserBench bench(31 + payload);
    bench.may_overflow = true;
    bench.gap = 0;
    for (int round = 0; round < 3; ++round) {
      bench.take = 0;
      for (int i = 0; i < 100; ++i) {
        bench.Post(
            GoodFrame(bench.rng(), {Kind::kRequest, payload}, bench.port()));
      }
      ASSERT_NO_FATAL_FAILURE(bench.RunInput(200000));
      bench.take = 0.7;
      ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(200000));
    }
    const uint64_t dropped = bench.counts[Statistic::kDropOverflow];
    EXPECT_EQ(bench.packets + dropped, 300u);
    // 64 short frames or 64 KiB of payload find room.
    EXPECT_GE(bench.packets, 3u * (payload == 8 ? 64 : 65536 / payload));
    EXPECT_GE(dropped, 3u * 30);
    std::cout << bench.packets / 3 << " frames of " << payload << " bytes\n";
  }
}

// Overflow while frames keep coming and the reader is slow.
TEST(RxParserTest, ASlowReaderSeesOnlyWholePackets) {
  RxParserBench bench(41);
  bench.may_overflow = true;
  bench.gap = 0;
  bench.take = 0.2;
  for (int i = 0; i < 600; ++i) {
    bench.Post(GoodFrame(bench.rng(), RandomShape(bench.rng(), bench.port()),
                         bench.port()));
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(2000000));
  EXPECT_GT(bench.counts[Statistic::kDropOverflow], 20u);
}

TEST(RxParserTest, ADisabledPortCountsFramesOnly) {
  contract::PortCfg port = DefaultPort();
  port.enable = 0;
  RxParserBench bench(51, port);
  for (int i = 0; i < 50; ++i) {
    Built built = Build(bench.rng(), {Kind::kRequest, 100}, port);
    if (i % 2) built.frame = Mutated(std::move(built), port, bench.rng());
    bench.Post(std::move(built.frame));
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
  port.enable = 1;
  bench.SetPort(port);
  bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, 100}, port));
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
  EXPECT_EQ(bench.packets, 1u);
}

TEST(RxParserTest, APacketIsOfferedTwoCyclesAfterItsLastBeat) {
  for (uint32_t variant = 0; variant < kVariants; ++variant) {
    const contract::PortCfg port = PortVariant(variant);
    RxParserBench bench(61, port);
    bench.gap = 0;
    bench.Post(GoodFrame(bench.rng(), {Kind::kRequest, 1000}, port));
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
    EXPECT_EQ(bench.first_valid() - bench.last_sent(), 2);
    EXPECT_EQ(bench.first_pay() - bench.last_sent(), 6);
  }
}

TEST(RxParserTest, PacketOfAFrameWithAWrongCrcIsSquashed) {
  contract::PortCfg port = DefaultPort();
  port.crc = contract::CrcOrder::kMsbFirst;
  RxParserBench bench(62, port);
  bench.gap = 0;
  for (int i = 0; i < 50; ++i) {
    Bytes frame = GoodFrame(bench.rng(), {Kind::kRequest, 100}, port);
    if (i % 2 == 0) frame.back() ^= 1;
    bench.Post(std::move(frame));
    if (bench.rng().Chance(0.5)) continue;
    ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(10000));
  EXPECT_EQ(bench.packets, 25u);
  EXPECT_EQ(bench.counts[Statistic::kDropCrc], 25u);
  EXPECT_EQ(bench.squashed, 25u) << "all were taken ahead of the verdict";
}

// Those that wait for a verdict, or to be taken, are offered first.
TEST(RxParserTest, PacketWaitsForThoseBeforeIt) {
  contract::PortCfg port = DefaultPort();
  port.crc = contract::CrcOrder::kMsbFirst;
  RxParserBench bench(63, port);
  bench.gap = 0;
  bench.take = 0.3;
  for (int i = 0; i < 200; ++i) {
    Bytes frame = GoodFrame(bench.rng(), {Kind::kRequest, 8}, port);
    if (i % 3 == 0) frame.back() ^= 1;
    bench.Post(std::move(frame));
    for (uint32_t steps = bench.rng().Below(20); steps > 0; --steps) {
      ASSERT_NO_FATAL_FAILURE(bench.Step());
    }
  }
  ASSERT_NO_FATAL_FAILURE(bench.RunToEnd(100000));
  EXPECT_EQ(bench.packets, 133u);
  EXPECT_GT(bench.squashed, 0u);
  EXPECT_LT(bench.squashed, 67u);
}

}  // namespace
}  // namespace heddle::test
