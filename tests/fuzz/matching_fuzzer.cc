// SPDX-License-Identifier: Apache-2.0
// Soft engines whose hosts write anything into their rings, and whose peers
// send anything: match descriptors, cancellations, deferrable and rendezvous
// headers, requests to restart under forged tokens, forged responses.
//
// An input is a byte for the order in which the fabric delivers, then
// operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/fuzz/reader.h"
#include "tests/fuzz/soft_host.h"

namespace heddle::fuzz {
namespace {

using contract::MatchDesc;
using contract::MatchOp;
using contract::SesOpcode;
using contract::Status;
using contract::TxDesc;
using contract::wire::SesStd;
using soft::engine::FakeFabric;

constexpr uint32_t kMaxOperations = 128;
constexpr uint32_t kMaxSends = 48;
constexpr uint32_t kSettleSteps = 100'000;
constexpr uint64_t kNowhere = 0x1000;  // Never mapped.
constexpr uint64_t kPage = 4096;
// The other host, itself, and two that no fabric has.
constexpr std::array<uint64_t, 4> kStrangers = {0, 1, 3, 9};
constexpr uint32_t kInitiator = uint32_t{SoftHost::kPid} << contract::kPidBits;
constexpr uint64_t kProbeTag = 0x6865'6464'6c65'0a0d;

class Run {
 public:
  explicit Run(uint8_t seed) : fabric_(seed) { fabric_.hostile = true; }

  void Execute(Reader input) {
    for (uint32_t i = 0; i < kMaxOperations && !input.empty(); ++i) {
      Operation(&input);
    }
    Probe();
    Finish();
  }

 private:
  // Where a descriptor may point.
  uint64_t Address(Reader* input, const SoftHost& host) {
    const uint8_t where = input->Byte();
    switch (where % 4) {
      case 0:
      case 1:
        return host.buffers + uint64_t{where} * 64;
      case 2:  // Its end is not mapped.
        return GuardedMemory::kEnd - where;
      default:
        return where < 128 ? kNowhere + where : input->Double();
    }
  }

  // Changes some bytes, or all.
  template <typename T>
  static void Spoil(Reader* input, uint8_t how, T* what) {
    std::array<uint8_t, sizeof(T)> bytes;
    std::memcpy(bytes.data(), what, sizeof(T));
    if (how % 8 == 7) {
      const auto raw = input->Bytes(bytes.size());
      std::copy(raw.begin(), raw.end(), bytes.begin());
    } else if (how % 8 >= 5) {
      for (uint32_t i = 0; i < how % 8U - 4; ++i) {
        const uint8_t at = input->Byte();
        bytes[at % bytes.size()] = input->Byte();
      }
    }
    std::memcpy(what, bytes.data(), sizeof(T));
  }

  void WriteSend(Reader* input, SoftHost& host) {
    if (sends_++ >= kMaxSends) {
      return;
    }
    const uint8_t form = input->Byte();
    TxDesc desc{.opcode = (form & 1) != 0 ? contract::Opcode::kSend
                                          : contract::Opcode::kTaggedSend,
                .flags = contract::kTxFlagCompletion,
                .position = host.sends_written,
                .peer = form >> 1 & 1U,
                .op_context = ++contexts_,
                .match_bits = form >> 2 & 3U};
    std::vector<uint8_t> extension;
    if ((form & 16) != 0) {
      desc.flags |= contract::kTxFlagDeliveryComplete;
    }
    if ((form & 32) != 0) {
      desc.flags |= contract::kTxFlagInline;
      desc.length = input->Byte() % 16;
    } else {
      desc.segments = 1;
      desc.local_iova = Address(input, host);
      desc.length = input->Half() % 8192;
      desc.local_length = desc.length;
    }
    Spoil(input, input->Byte(), &desc);
    if (desc.ext_slots != 0) {
      const auto raw = input->Bytes(desc.ext_slots % 4 * 64);
      extension.assign(raw.begin(), raw.end());
    }
    host.WriteSend(desc, extension);
  }

  void WriteMatch(Reader* input, SoftHost& host) {
    const uint8_t form = input->Byte();
    MatchDesc desc{.opcode = static_cast<MatchOp>(form % 8),
                   .flags = contract::kMatchFlagAnySource,
                   .position = host.written[SoftHost::kOpen],
                   .op_context = ++contexts_,
                   .match_bits = form >> 3 & 3U};
    const uint8_t rule = input->Byte();
    if ((rule & 1) != 0) {
      desc.ignore_bits = (rule & 2) != 0 ? 3 : ~uint64_t{0};
    }
    if ((rule & 12) == 12) {
      desc.flags = 0;
      desc.source_fa_lo = rule >> 4 & 1U;
      desc.initiator = kInitiator;
    }
    if (desc.opcode == MatchOp::kReceive ||
        desc.opcode == MatchOp::kReceiveClaimed) {
      desc.local_iova = Address(input, host);
      desc.length = input->Half() % 8192;
      if ((rule & 32) != 0) {
        desc.flags |= contract::kMatchFlagMultiRecv;
        desc.min_free = input->Byte() * 8U;
      }
    }
    if ((rule & 64) != 0) {  // The claim of an earlier one.
      desc.op_context = contexts_ - input->Below(8);
    }
    Spoil(input, input->Byte(), &desc);
    host.WriteMatch(SoftHost::kOpen, desc);
  }

  void Begin(Reader* input, SoftHost& host) {
    contract::RxCtxCfg cfg = host.rx[SoftHost::kOpen];
    const uint8_t form = input->Byte();
    cfg.flags = static_cast<uint8_t>(
        contract::kRxCtxFlagMatch |
        ((form & 1) != 0 ? 0 : contract::kRxCtxFlagTagged));
    cfg.unexpected_bytes = static_cast<uint32_t>(form >> 1 & 3) * 4096;
    // The end of a longer one is not mapped, or nothing of it.
    if ((form & 8) != 0) {
      cfg.unexpected_base =
          (form & 16) != 0 ? GuardedMemory::kEnd - kPage : kPage;
    }
    const uint8_t sizes = input->Byte();
    cfg.unexpected_messages = 1 + sizes % 16;
    cfg.receives = 1 + (sizes >> 4);
    cfg.copy_limit = input->Half();
    host.Begin(cfg);
  }

  // A packet that no engine sent, to `host`.
  void Forge(Reader* input, SoftHost& host) {
    const uint8_t form = input->Byte();
    Tap::Seen packet{.source = {0, 0, false},
                     .pdc = 1,
                     .spdcid = 77,
                     .ordered = (form & 1) != 0,
                     .ses = std::vector<uint8_t>(SesStd::kBytes)};
    SesStd header;
    if ((form & 2) != 0 && !host.tap.seen.empty()) {
      const auto back = input->Below(
          static_cast<uint32_t>(std::min<size_t>(host.tap.seen.size(), 255)));
      packet = host.tap.seen[back];
      if (packet.ses.size() < SesStd::kBytes) {
        return;
      }
      header = SesStd::Decode(packet.ses.data());
    } else {
      packet.source.lo = kStrangers[form >> 2 & 3U];
      const uint8_t kind = input->Byte();
      header.opcode = static_cast<SesOpcode>(kind % 32);
      header.som = (kind & 32) != 0 ? 0 : 1;
      header.eom = (kind & 64) != 0 ? 0 : 1;
      header.message_id = input->Byte();
      header.job_id = SoftHost::kJob;
      header.pid_on_fep = SoftHost::kPid;
      header.resource_index = SoftHost::RiOf(SoftHost::kOpen);
      header.initiator = kInitiator;
      header.match_bits = input->Byte() & 3U;
      header.request_length = input->Half() % 8192;
      packet.ses.resize(SesStd::kBytes +
                        std::min(header.request_length, SoftHost::kMtu));
      if (header.som == 0) {
        header.message_offset = input->Byte() % 4U * SoftHost::kMtu;
        header.payload_length = SoftHost::kMtu;
      }
      if (kind % 32 >= 6 && kind % 32 <= 12) {
        // The first tokens of the first entries.
        const uint8_t tokens = input->Byte();
        const uint64_t two = uint64_t{0x10001U + (tokens & 7U)} << 32U |
                             (0x10001U + (tokens >> 3 & 7U));
        (header.opcode == SesOpcode::kDeferrableRtr ? header.match_bits
                                                    : header.buffer_offset) =
            (tokens & 128) != 0 ? two & ~uint64_t{UINT32_MAX} : two;
      }
    }
    header.Encode(packet.ses.data());
    const uint8_t changes = input->Byte();
    for (uint32_t i = 0; i < changes % 4U; ++i) {
      const uint8_t at = input->Byte();
      packet.ses[at % packet.ses.size()] = input->Byte();
    }
    if ((changes & 64) != 0) {
      packet.ses.resize(input->Byte() % (packet.ses.size() + 1));
    }
    soft::transport::Request request;
    request.source = packet.source;
    request.pdc = packet.pdc;
    request.spdcid = packet.spdcid;
    request.ordered = packet.ordered;
    request.next_hdr = contract::NextHdr::kRequestStd;
    request.ses = packet.ses;
    CheckVerdict(host.engine.OnRequest(request, (changes & 128) == 0));
  }

  // Refused, dropped, or answered with a code that there is.
  static void CheckVerdict(const soft::transport::Verdict& verdict) {
    using Kind = soft::transport::Verdict::Kind;
    if (verdict.kind == Kind::kAccepted && verdict.respond &&
        verdict.response.return_code == contract::ReturnCode::kNull &&
        verdict.response.opcode == contract::SesResponse::kResponse) {
      Break("a packet is answered with no code");
    }
  }

  void Change(Reader* input, SoftHost& host) {
    const uint8_t count = input->Byte();
    auto& changes =
        (count & 128) != 0 ? host.tap.of_response : host.tap.of_request;
    for (uint32_t i = 0; i <= count % 3U; ++i) {
      const uint8_t offset = input->Byte();
      changes.push_back({offset, input->Byte()});
    }
  }

  // A peer dies, restarts, or its PDC ends.
  void EndPeer(Reader* input, SoftHost& host) {
    const uint8_t what = input->Byte();
    const size_t node = &host == &hosts_[0] ? 0 : 1;
    switch (what % 4) {
      case 0:
        fabric_.Abandon(node, Status::kPeerUnreachable, 0);
        break;
      case 1:
        fabric_.Restart(node);
        break;
      default:
        host.engine.OnTargetClosed({what >> 2 & 3U, 0, false},
                                   (what & 16) != 0 ? 77 : what >> 5,
                                   what % 4 == 2);
        break;
    }
  }

  void Step(uint32_t steps) {
    for (uint32_t i = 0; i < steps; ++i) {
      for (SoftHost& host : hosts_) {
        host.Progress();
      }
      for (int turn = 0; turn < 4; ++turn) {
        (void)fabric_.Step();
      }
    }
  }

  void Operation(Reader* input) {
    const uint8_t code = input->Byte();
    SoftHost& host = hosts_[code >> 4 & 1U];
    switch (code & 15) {
      case 0:
      case 1:
        WriteSend(input, host);
        host.RingSends(host.sends_written);
        break;
      case 2:
        host.RingSends(static_cast<uint16_t>(host.sends_written + (code >> 5)));
        break;
      case 3:
      case 4:
      case 5:
        WriteMatch(input, host);
        if ((code & 0x20) == 0) {
          host.RingMatches(SoftHost::kOpen, host.written[SoftHost::kOpen]);
        }
        break;
      case 6:
        host.RingMatches(
            SoftHost::kOpen,
            (code & 0x20) != 0
                ? input->Half()
                : static_cast<uint16_t>(host.written[SoftHost::kOpen] +
                                        (code >> 6)));
        break;
      case 7:
        host.Doorbell(
            contract::kRxPageFirst + SoftHost::kOpen,
            contract::kDoorbellOpOffset,
            static_cast<uint64_t>(contract::DoorbellOp::kCancel) |
                uint64_t{(code & 0x20) != 0 ? input->Word()
                                            : contexts_ - input->Below(8)}
                    << contract::kDoorbellOpArgumentLsb);
        break;
      case 8:
      case 9:
        Forge(input, host);
        break;
      case 10:
        Change(input, host);
        break;
      case 11:
        EndPeer(input, host);
        break;
      case 12:
        Begin(input, host);
        break;
      case 13:
        fabric_.guarantees = (code & 0x20) != 0;
        break;
      case 14:
        host.TakeAll();
        break;
      default:
        Step(1 + (code >> 5));
        break;
    }
  }

  // A tagged message from host 2 to the good context of each of the others.
  void Probe() {
    fabric_.guarantees = true;
    SoftHost& good = hosts_[2];
    for (uint32_t peer = 0; peer < 2; ++peer) {
      SoftHost& host = hosts_[peer];
      constexpr uint64_t kMine = 1'000'000;
      host.tap.of_request.clear();
      if (Spoils("late")) {
        host.memory.Close();
      }
      host.TakeAll();
      host.WriteMatch(SoftHost::kGood,
                      {.opcode = MatchOp::kReceive,
                       .position = host.written[SoftHost::kGood],
                       .length = 100,
                       .op_context = kMine,
                       .local_iova = host.buffers,
                       .match_bits = kProbeTag,
                       .source_fa_lo = 2,
                       .initiator = kInitiator});
      host.RingMatches(SoftHost::kGood, host.written[SoftHost::kGood]);
      good.WriteSend({.opcode = contract::Opcode::kTaggedSend,
                      .flags = contract::kTxFlagCompletion,
                      .position = good.sends_written,
                      .peer = peer,
                      .length = 100,
                      .rx_index = SoftHost::kGood,
                      .segments = 1,
                      .op_context = kMine,
                      .match_bits = Spoils("probe") ? 6U : kProbeTag,
                      .local_iova = good.buffers,
                      .local_length = 100},
                     {});
      good.RingSends(good.sends_written);
      bool sent = false;
      bool received = false;
      for (uint32_t i = 0; i < 2000 && !(sent && received); ++i) {
        Step(1);
        const auto entry = host.Take(SoftHost::kGood);
        received |= entry && entry->status == Status::kOk &&
                    entry->length == 100 && entry->match_bits == kProbeTag;
        sent |= good.Take(SoftHost::kSends).has_value();
      }
      if (!sent || !received) {
        Break("a message between good contexts does not get through");
      }
    }
  }

  // The contexts end, then their peers: nothing is left.
  void Finish() {
    for (SoftHost& host : hosts_) {
      host.EndSends();
      host.EndReceives(SoftHost::kOpen);
      host.EndReceives(SoftHost::kGood);
      host.memory.Close();
    }
    // A message to a peer that does not exist ends with its PDC.
    for (uint32_t i = 0; i < kSettleSteps && !Idle(); ++i) {
      Step(1);
      if (i % 256 == 255) {
        for (size_t node = 0; node < hosts_.size(); ++node) {
          fabric_.Abandon(node, Status::kPeerUnreachable, 0);
        }
      }
    }
    if (!Idle() || Spoils("hang")) {
      Break("an engine does not come to rest");
    }
  }

  bool Idle() const {
    return std::all_of(hosts_.begin(), hosts_.end(),
                       [](const SoftHost& host) { return host.engine.idle(); });
  }

  FakeFabric fabric_;
  std::array<SoftHost, 3> hosts_{SoftHost(&fabric_), SoftHost(&fabric_),
                                 SoftHost(&fabric_)};
  uint32_t contexts_ = 0;
  uint32_t sends_ = 0;
};

// The expectations of the fabric are properties, too. GoogleTest's own break on
// failure raises SIGTRAP, upon which libFuzzer keeps no input.
class FailureIsBroken : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) {
      Break(std::string("the fabric's: ") + result.summary());
    }
  }
};

}  // namespace
}  // namespace heddle::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  testing::UnitTest::GetInstance()->listeners().Append(
      new heddle::fuzz::FailureIsBroken);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::fuzz::Reader input({data, size});
  heddle::fuzz::Run(input.Byte()).Execute(input);
  return 0;
}
