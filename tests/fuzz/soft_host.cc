// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/soft_host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::fuzz {

using contract::Completion;
using contract::MatchDesc;
using contract::Status;
using contract::Table;
using contract::TxDesc;
using soft::engine::Engine;

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kPeers = 8;
constexpr uint8_t kBoth = GuardedMemory::kRead | GuardedMemory::kWrite;

std::string Hex(uint64_t value) {
  char text[20];
  (void)std::snprintf(text, sizeof(text), "0x%llx",
                      static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

void Break(const std::string& property) {
  std::fprintf(stderr, "PROPERTY: %s\n", property.c_str());
  std::abort();
}

bool Spoils(std::string_view what) {
  static const char* const chosen = std::getenv("HEDDLE_FUZZ_BREAK");
  return chosen != nullptr && what == chosen;
}

uint64_t GuardedMemory::Allocate(uint64_t bytes, uint8_t rights) {
  const uint64_t at = kBase + used_;
  used_ += (bytes + kPage - 1) / kPage * kPage;
  if (used_ > kBytes) {
    Break("the arena of the harness is too small");
  }
  if (rights != 0) {
    given_.push_back({at, bytes, rights});
  }
  return at;
}

uint64_t GuardedMemory::Invite(uint64_t iova, uint64_t bytes, uint8_t rights) {
  invited_[++invitations_] = {iova, bytes, rights};
  return invitations_;
}

bool GuardedMemory::Check(uint64_t iova, uint64_t bytes, Right right) const {
  if (closed_) {
    Break("DMA after the end of all contexts");
  }
  const auto has = [&](const Range& range) {
    return range.Has(iova, bytes, right);
  };
  if (!std::any_of(given_.begin(), given_.end(), has) &&
      !std::any_of(invited_.begin(), invited_.end(),
                   [&](const auto& entry) { return has(entry.second); })) {
    Break(std::string("DMA outside what the host named: ") +
          (right == kWrite ? "write of " : "read of ") + std::to_string(bytes) +
          " bytes at " + Hex(iova));
  }
  return iova >= kBase && bytes <= kBytes && iova - kBase <= kBytes - bytes;
}

bool GuardedMemory::Read(uint64_t iova, std::span<uint8_t> out) {
  if (!Check(iova, out.size(), kRead)) {
    return false;
  }
  std::copy_n(&bytes_[iova - kBase], out.size(), out.begin());
  return true;
}

bool GuardedMemory::Write(uint64_t iova, std::span<const uint8_t> bytes) {
  if (!Check(iova, bytes.size(), kWrite)) {
    return false;
  }
  std::copy(bytes.begin(), bytes.end(), &bytes_[iova - kBase]);
  return true;
}

bool GuardedMemory::Store(uint64_t iova, uint64_t value) {
  return Write(iova, {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
}

bool GuardedMemory::Publish(uint64_t iova, std::span<const uint8_t, 64> entry) {
  return Write(iova, entry);
}

soft::transport::Verdict Tap::OnRequest(const soft::transport::Request& request,
                                        bool may_guarantee) {
  constexpr size_t kMost = 8;
  seen.push_back({request.source,
                  request.pdc,
                  request.spdcid,
                  request.ordered,
                  {request.ses.begin(), request.ses.end()}});
  if (seen.size() > kMost) {
    seen.pop_front();
  }
  if (of_request.empty()) {
    return engine_.OnRequest(request, may_guarantee);
  }
  std::vector<uint8_t> ses(request.ses.begin(), request.ses.end());
  for (const Change& change : of_request) {
    ses[change.offset % ses.size()] = change.value;
  }
  of_request.clear();
  soft::transport::Request changed = request;
  changed.ses = ses;
  return engine_.OnRequest(changed, may_guarantee);
}

void Tap::OnResponse(uint32_t message,
                     const contract::wire::SesResponse& response,
                     std::span<const uint8_t> data, uint32_t data_offset) {
  std::array<uint8_t, contract::wire::SesResponse::kBytes> bytes{};
  response.Encode(bytes.data());
  for (const Change& change : of_response) {
    bytes[change.offset % bytes.size()] = change.value;
  }
  of_response.clear();
  engine_.OnResponse(message, contract::wire::SesResponse::Decode(bytes.data()),
                     data, data_offset);
}

template <typename T>
void SoftHost::Write(Table table, uint32_t index, const T& cfg) {
  static_assert(sizeof(T) == Engine::kEntryBytes);
  if (!engine.WriteTable(
          table, index,
          Engine::ConstEntry(reinterpret_cast<const uint8_t*>(&cfg),
                             sizeof(cfg)))) {
    Break("an entry of a table is refused");
  }
}

SoftHost::SoftHost(soft::engine::FakeFabric* fabric)
    : engine({.tx_contexts = 1,
              .rx_contexts = 2,
              .cqs = kQueues,
              .counters = 1,
              .regions = 4,
              .messages = 100,
              .open_messages = 64},
             &memory, this, 1) {
  engine.Connect(fabric->Add(&tap));
  Write(Table::kPort, 0, contract::PortCfg{.payload_mtu = kMtu, .enable = 1});
  for (uint32_t i = 0; i < kQueues; ++i) {
    queues_[i] =
        memory.Allocate(sizeof(Completion) << kCqLog2, GuardedMemory::kWrite);
    Write(Table::kCq, i,
          contract::CqCfg{.base = queues_[i], .log2 = kCqLog2, .enable = 1});
  }
  const uint64_t av =
      memory.Allocate(kPeers * sizeof(contract::AvEntry), GuardedMemory::kRead);
  for (uint32_t i = 0; i < kPeers; ++i) {
    auto& entry =
        memory.At<contract::AvEntry>(av + i * sizeof(contract::AvEntry));
    entry.fa_lo = i;
    entry.pid_on_fep = kPid;
    entry.flags = contract::kAvFlagValid;
  }
  const uint64_t cells = memory.Allocate(64, GuardedMemory::kWrite);
  tx = {.ring_base =
            memory.Allocate(kSlots * sizeof(TxDesc), GuardedMemory::kRead),
        .head_cell = cells,
        .av_base = av,
        .av_entries = kPeers,
        .job_id = kJob,
        .source_pid = kPid,
        .ring_log2 = 6,
        .cq = kSends,
        .enable = 1,
        .ordered = 0xff,
        .flags = contract::kTxCtxFlagDeferrable};
  Write(Table::kTxCtx, 0, tx);
  for (uint32_t i = 0; i < rx.size(); ++i) {
    // As long as any that `Begin` is given, so that it holds nothing else.
    const uint64_t area = memory.Allocate(3 * kPage, i == kOpen ? 0 : kBoth);
    rx[i] = {.ring_base = memory.Allocate(kSlots * sizeof(MatchDesc),
                                          GuardedMemory::kRead),
             .head_cell = cells + 8 * (i + 1),
             .job_id = kJob,
             .pid_on_fep = kPid,
             .resource_index = RiOf(i),
             .ring_log2 = 6,
             .cq = static_cast<uint8_t>(i),
             .enable = 1,
             .flags = contract::kRxCtxFlagMatch | contract::kRxCtxFlagTagged,
             .unexpected_bytes = 2 * kPage,
             .unexpected_base = area,
             .unexpected_messages = 8,
             .copy_limit = 1000,
             .receives = 16};
    Write(Table::kRxCtx, i, rx[i]);
  }
  Begin(rx[kOpen]);
  buffers = memory.Allocate(kBufferBytes, 0);
  std::memset(&memory.At<uint8_t>(buffers), 0x5a, kBufferBytes);
}

void SoftHost::Begin(const contract::RxCtxCfg& cfg) {
  EndReceives(kOpen);
  rx[kOpen] = cfg;
  written[kOpen] = 0;
  area_ = memory.Invite(cfg.unexpected_base, cfg.unexpected_bytes, kBoth);
  std::memset(&memory.At<MatchDesc>(cfg.ring_base), 0xff,
              kSlots * sizeof(MatchDesc));
  Write(Table::kRxCtx, kOpen, cfg);
}

void SoftHost::EndReceives(uint32_t context) {
  contract::RxCtxCfg off = rx[context];
  off.enable = 0;
  Write(Table::kRxCtx, context, off);
  if (engine.Drain(Table::kRxCtx, context) != Engine::DrainState::kDone) {
    Break("a receive context does not drain");
  }
  while (Take(context)) {
  }
  for (const auto& [op_context, posted] : operations_[context]) {
    memory.Revoke(posted.invitation);
  }
  operations_[context].clear();
  if (context == kOpen) {
    memory.Revoke(area_);
  }
}

void SoftHost::EndSends() {
  contract::TxCtxCfg off = tx;
  off.enable = 0;
  Write(Table::kTxCtx, 0, off);
  if (engine.Drain(Table::kTxCtx, 0) == Engine::DrainState::kNoEntry) {
    Break("a transmit context is not there");
  }
}

void SoftHost::Post(Operations* operations, uint64_t op_context, bool multi,
                    uint64_t invitation) {
  Posted& posted = (*operations)[op_context];
  if (posted.count == 0) {
    posted = {.multi = multi, .invitation = invitation};
  } else {
    posted.multi = posted.multi || multi;
    posted.invitation = 0;  // Which of them ends is not known.
  }
  ++posted.count;
}

// A descriptor may claim any slot of the ring as its segments.
void SoftHost::InviteSegments(std::span<const uint8_t> slots) {
  contract::TxSegment segment;
  for (size_t i = 0; i + sizeof(segment) <= slots.size();
       i += sizeof(segment)) {
    std::memcpy(&segment, &slots[i], sizeof(segment));
    memory.Invite(segment.iova, segment.length, GuardedMemory::kRead);
  }
}

void SoftHost::WriteSend(const TxDesc& descriptor,
                         std::span<const uint8_t> extension) {
  const auto slots = static_cast<uint16_t>(1 + (extension.size() + 63) / 64);
  while (sends_written % kSlots + slots > kSlots) {
    memory.At<TxDesc>(tx.ring_base + sends_written % kSlots *
                                         sizeof(TxDesc)) = {.position =
                                                                sends_written};
    Post(&operations_[kSends], 0, false, 0);
    ++sends_written;
  }
  const uint64_t at = tx.ring_base + sends_written % kSlots * sizeof(TxDesc);
  memory.At<TxDesc>(at) = descriptor;
  if (!extension.empty()) {
    std::memcpy(&memory.At<uint8_t>(at + sizeof(TxDesc)), extension.data(),
                extension.size());
  }
  InviteSegments({&memory.At<uint8_t>(at), slots * sizeof(TxDesc)});
  // Extension slots as well: the engine takes them for descriptors where the
  // descriptor before them is refused.
  for (uint16_t i = 0; i < slots; ++i) {
    PostSend(memory.At<TxDesc>(at + i * sizeof(TxDesc)));
  }
  sends_written = static_cast<uint16_t>(sends_written + slots);
}

void SoftHost::PostSend(const TxDesc& descriptor) {
  // No data return for a read: no peer has a region.
  const uint64_t bytes =
      std::max<uint64_t>(descriptor.length, descriptor.local_length);
  Post(&operations_[kSends], descriptor.op_context, false,
       memory.Invite(descriptor.local_iova, bytes, GuardedMemory::kRead));
}

void SoftHost::WriteMatch(uint32_t context, const MatchDesc& descriptor) {
  memory.At<MatchDesc>(rx[context].ring_base +
                       written[context] % kSlots * sizeof(MatchDesc)) =
      descriptor;
  ++written[context];
  const bool multi = (descriptor.flags & contract::kMatchFlagMultiRecv) != 0 &&
                     descriptor.opcode == contract::MatchOp::kReceive;
  Post(&operations_[context], descriptor.op_context, multi,
       Spoils("dma") ? 0
                     : memory.Invite(descriptor.local_iova, descriptor.length,
                                     GuardedMemory::kWrite));
}

void SoftHost::RingSends(uint16_t tail) {
  Doorbell(contract::kTxPageFirst, contract::kDoorbellTailOffset, tail);
}

void SoftHost::RingMatches(uint32_t context, uint16_t tail) {
  Doorbell(contract::kRxPageFirst + context, contract::kDoorbellTailOffset,
           tail);
}

void SoftHost::Doorbell(uint32_t page, uint32_t offset, uint64_t value) {
  (void)engine.Doorbell(page * contract::kDoorbellPageBytes + offset, value);
}

std::optional<Completion> SoftHost::Take(uint32_t cq) {
  const uint32_t at = taken_[cq];
  const auto entry = memory.At<Completion>(
      queues_[cq] + (at & ((1U << kCqLog2) - 1)) * sizeof(Completion));
  if (entry.phase != ((at >> kCqLog2 & 1U) == 0 ? 1 : 0)) {
    return std::nullopt;
  }
  ++taken_[cq];
  Doorbell(contract::kCqPageFirst + cq, contract::kDoorbellCqConsumerOffset,
           taken_[cq]);
  Check(cq, entry);
  if (Spoils("double")) {
    Check(cq, entry);
  }
  return entry;
}

void SoftHost::TakeAll() {
  for (uint32_t cq = 0; cq < kQueues; ++cq) {
    while (Take(cq)) {
    }
  }
}

void SoftHost::Check(uint32_t cq, const Completion& entry) {
  const std::string name = cq == kSends ? "send" : "receive";
  const bool sends = entry.kind == contract::CompletionKind::kTx ||
                     entry.kind == contract::CompletionKind::kTxSilent;
  if (sends != (cq == kSends)) {
    Break("a " + name + " completion of the other kind");
  }
  const uint64_t op_context =
      Spoils("invented") ? ~entry.op_context : entry.op_context;
  // Nothing is returned of a slot that cannot be believed.
  if (entry.status != Status::kOk && op_context == 0) {
    return;
  }
  const auto found = operations_[cq].find(op_context);
  if (found == operations_[cq].end()) {
    Break("a " + name + " completion of nothing that was posted");
  }
  Posted& posted = found->second;
  const bool released =
      (entry.flags & contract::kCompletionFlagBufferReleased) != 0;
  if (posted.multi && !released && entry.status != Status::kBadLength) {
    return;
  }
  if (posted.count == 0) {
    Break("more " + name + " completions than descriptors");
  }
  --posted.count;
  if (posted.count == 0) {
    memory.Revoke(posted.invitation);
  }
}

}  // namespace heddle::fuzz
