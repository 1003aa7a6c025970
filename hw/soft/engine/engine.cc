// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "host/lib/semantics/match_rule.h"
#include "hw/contract/doorbell_page.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/engine/engine_parts.h"
#include "hw/soft/engine/initiator.h"
#include "hw/soft/engine/lazy_table.h"
#include "hw/soft/engine/target.h"

namespace heddle::soft::engine {

using contract::Table;
using contract::wire::SesStd;
using transport::MessageCarrier;
using transport::MessageIndex;
using transport::Request;
using transport::ReturnData;
using transport::Verdict;

namespace {

// Entries have the layout of the contract's structs.
template <typename T>
T EntryAs(Engine::ConstEntry entry) {
  static_assert(sizeof(T) == Engine::kEntryBytes);
  T cfg;
  std::memcpy(&cfg, entry.data(), sizeof(cfg));
  return cfg;
}

}  // namespace

// What a reset replaces.
struct Units {
  Units(const EngineLimits& limits, HostAccess* host, Statistics* statistics,
        InterruptSink* interrupts, uint64_t seed)
      : queues(limits.cqs, host, statistics, interrupts),
        counters(limits.counters, host, statistics),
        initiator(limits, {host, statistics, &queues, &counters}, seed),
        target(limits, {host, statistics, &queues, &counters}, ~seed) {
    initiator.Connect(&target.matching());
    target.Connect(&initiator);
  }

  CompletionQueues queues;
  Counters counters;
  Initiator initiator;
  Target target;
};

class Engine::Impl {
 public:
  Impl(const EngineLimits& limits, DmaPort* memory, InterruptSink* interrupts,
       uint64_t seed)
      : limits_(limits),
        host_(memory, &statistics_),
        interrupts_(interrupts),
        seed_(seed) {
    Reset();
  }

  void Connect(MessageCarrier* transport) {
    transport_ = transport;
    units_->initiator.Connect(transport);
    units_->target.Connect(transport);
  }

  bool WriteTable(Table table, uint32_t index, ConstEntry entry);
  bool ReadTable(Table table, uint32_t index, Entry entry) const;
  DrainState Drain(Table table, uint32_t index);
  bool Doorbell(uint32_t bar2_offset, uint64_t value);
  void Reset();

  Initiator& initiator() { return units_->initiator; }
  const Initiator& initiator() const { return units_->initiator; }
  Target& target() { return units_->target; }
  const Statistics& statistics() const { return statistics_; }

 private:
  using Copy = std::array<uint8_t, kEntryBytes>;
  using Copies = LazyTable<Copy, 64>;

  static constexpr size_t kTables = 9;

  static uint32_t Entries(const EngineLimits& limits, Table table);
  bool Apply(Table table, uint32_t index, ConstEntry entry);
  void TxDoorbell(uint32_t context, uint32_t offset, uint64_t value);
  void RxDoorbell(uint32_t context, uint32_t offset, uint64_t value);

  EngineLimits limits_;
  Statistics statistics_;
  HostAccess host_;
  InterruptSink* interrupts_;
  uint64_t seed_;
  MessageCarrier* transport_ = nullptr;
  std::unique_ptr<Units> units_;
  std::vector<Copies> written_;  // By table.
};

uint32_t Engine::Impl::Entries(const EngineLimits& limits, Table table) {
  switch (table) {
    case Table::kPort:
      return 1;
    case Table::kTxCtx:
      return limits.tx_contexts;
    case Table::kRxCtx:
      return limits.rx_contexts;
    case Table::kCq:
      return limits.cqs;
    case Table::kNextHop:
      return limits.next_hops;
    case Table::kRegion:
      return limits.regions;
    case Table::kCounter:
      return limits.counters;
    case Table::kTransport:
    case Table::kNone:
      break;
  }
  return 0;
}

void Engine::Impl::Reset() {
  units_ = std::make_unique<Units>(limits_, &host_, &statistics_, interrupts_,
                                   seed_);
  // Tokens of one life name nothing in another.
  seed_ = semantics::MatchHash(seed_).OfTag(0x9e3779b97f4a7c15);
  written_.clear();
  for (size_t table = 0; table < kTables; ++table) {
    written_.emplace_back(Entries(limits_, static_cast<Table>(table)));
  }
  if (transport_ != nullptr) {
    Connect(transport_);
  }
}

bool Engine::Impl::WriteTable(Table table, uint32_t index, ConstEntry entry) {
  if (static_cast<size_t>(table) >= written_.size() ||
      index >= written_[static_cast<size_t>(table)].size() ||
      !Apply(table, index, entry)) {
    return false;
  }
  std::memcpy(written_[static_cast<size_t>(table)].Make(index).data(),
              entry.data(), entry.size());
  return true;
}

bool Engine::Impl::Apply(Table table, uint32_t index, ConstEntry entry) {
  switch (table) {
    case Table::kPort: {
      const auto port = EntryAs<contract::PortCfg>(entry);
      initiator().SetPort(port);
      target().SetPort(port);
      return true;
    }
    case Table::kTxCtx:
      return initiator().WriteContext(index,
                                      EntryAs<contract::TxCtxCfg>(entry));
    case Table::kRxCtx:
      return target().WriteContext(index, EntryAs<contract::RxCtxCfg>(entry));
    case Table::kCq: {
      const bool known =
          units_->queues.Write(index, EntryAs<contract::CqCfg>(entry));
      initiator().Unblock();
      return known;
    }
    case Table::kNextHop:
      return true;  // The wire's.
    case Table::kRegion:
      return target().regions().Write(index,
                                      EntryAs<contract::RegionCfg>(entry));
    case Table::kCounter:
      return units_->counters.Write(index,
                                    EntryAs<contract::CounterCfg>(entry));
    case Table::kTransport:
    case Table::kNone:
      break;
  }
  return false;
}

bool Engine::Impl::ReadTable(Table table, uint32_t index, Entry entry) const {
  if (static_cast<size_t>(table) >= written_.size() ||
      index >= written_[static_cast<size_t>(table)].size()) {
    return false;
  }
  const Copy* const copy = written_[static_cast<size_t>(table)].Find(index);
  if (copy == nullptr) {
    std::fill(entry.begin(), entry.end(), uint8_t{0});
  } else {
    std::copy(copy->begin(), copy->end(), entry.begin());
  }
  return true;
}

Engine::DrainState Engine::Impl::Drain(Table table, uint32_t index) {
  if (static_cast<size_t>(table) >= written_.size() ||
      index >= written_[static_cast<size_t>(table)].size()) {
    return DrainState::kNoEntry;
  }
  // Each access to host memory begins and ends within one call, after a look at
  // the life of the entry it is for: what was disabled has nothing under way.
  if (table == Table::kTxCtx) {
    return initiator().Quiet(index) ? DrainState::kDone : DrainState::kPending;
  }
  return DrainState::kDone;
}

void Engine::Impl::TxDoorbell(uint32_t context, uint32_t offset,
                              uint64_t value) {
  if (offset == contract::kDoorbellTailOffset) {
    initiator().Tail(context, static_cast<uint16_t>(
                                  value & contract::kDoorbellTailCountMask));
  } else if (offset == contract::kDoorbellOpOffset &&
             (value & contract::kDoorbellOpOpcodeMask) ==
                 static_cast<uint64_t>(contract::DoorbellOp::kAvInvalidate)) {
    initiator().InvalidateAddresses(context);
  }
}

void Engine::Impl::RxDoorbell(uint32_t context, uint32_t offset,
                              uint64_t value) {
  RxRings& rings = target().rings();
  if (offset == contract::kDoorbellTailOffset) {
    const auto tail =
        static_cast<uint16_t>(value & contract::kDoorbellTailCountMask);
    if (!rings.Publish(context, tail)) [[unlikely]] {
      target().matching().Publish(context, tail);
    }
  } else if (offset == contract::kDoorbellOpOffset &&
             (value & contract::kDoorbellOpOpcodeMask) ==
                 static_cast<uint64_t>(contract::DoorbellOp::kCancel)) {
    const auto argument =
        static_cast<uint32_t>(value >> contract::kDoorbellOpArgumentLsb);
    if (!rings.Cancel(context, static_cast<uint16_t>(argument))) {
      target().matching().Cancel(context, argument);
    }
  }
}

bool Engine::Impl::Doorbell(uint32_t bar2_offset, uint64_t value) {
  using contract::ObjectOfPage;
  const uint32_t page = bar2_offset / contract::kDoorbellPageBytes;
  const uint32_t offset = bar2_offset % contract::kDoorbellPageBytes;
  const uint32_t in_bank = contract::PageInBank(page);
  if (in_bank < contract::kRxPageFirst) {
    TxDoorbell(ObjectOfPage(page, contract::kTxPageFirst), offset, value);
    return true;
  }
  if (in_bank < contract::kCqPageFirst) {
    RxDoorbell(ObjectOfPage(page, contract::kRxPageFirst), offset, value);
    // A receive may have taken a message that waits at its sender.
    return initiator().requests_ready();
  }
  if (in_bank < contract::kCounterPageFirst) {
    if (offset == contract::kDoorbellCqConsumerOffset &&
        units_->queues.Consumed(ObjectOfPage(page, contract::kCqPageFirst),
                                value)) {
      target().rings().Work();
      target().matching().Work();
      const bool requests = initiator().requests_ready();
      return initiator().Unblock() || requests;
    }
  } else {
    units_->counters.Doorbell(ObjectOfPage(page, contract::kCounterPageFirst),
                              offset, value);
  }
  return false;
}

Engine::Engine(const EngineLimits& limits, DmaPort* memory,
               InterruptSink* interrupts, uint64_t seed)
    : impl_(std::make_unique<Impl>(limits, memory, interrupts, seed)) {}

Engine::~Engine() = default;

void Engine::Connect(MessageCarrier* transport) {
  impl_->Connect(transport);
}

bool Engine::WriteTable(Table table, uint32_t index, ConstEntry entry) {
  return impl_->WriteTable(table, index, entry);
}

bool Engine::ReadTable(Table table, uint32_t index, Entry entry) const {
  return impl_->ReadTable(table, index, entry);
}

Engine::DrainState Engine::Drain(Table table, uint32_t index) {
  return impl_->Drain(table, index);
}

bool Engine::Doorbell(uint32_t bar2_offset, uint64_t value) {
  return impl_->Doorbell(bar2_offset, value);
}

bool Engine::Progress(uint32_t descriptors) {
  impl_->target().matching().Work();
  return impl_->initiator().Progress(descriptors);
}

bool Engine::idle() const {
  return std::as_const(*impl_).initiator().idle();
}

void Engine::Reset() {
  impl_->Reset();
}

void Engine::StopListening() {
  impl_->target().rings().StopListening();
  impl_->initiator().StopListening();
}

uint64_t Engine::statistic(contract::Statistic which) const {
  return impl_->statistics().value(which);
}

Engine::Built Engine::BuildRequest(MessageIndex message, uint32_t index,
                                   std::span<uint8_t> out) {
  return impl_->initiator().BuildRequest(message, index, out);
}

void Engine::OnAcknowledged(MessageIndex message, uint32_t packets) {
  impl_->initiator().OnAcknowledged(message, packets);
}

void Engine::OnResponse(MessageIndex message,
                        const contract::wire::SesResponse& response,
                        std::span<const uint8_t> data, uint32_t data_offset) {
  impl_->initiator().OnResponse(message, response, data, data_offset);
}

bool Engine::OnRestart(MessageIndex message) {
  return impl_->initiator().OnRestart(message);
}

void Engine::OnAbandoned(MessageIndex message, contract::Status status,
                         uint16_t detail, bool transmitted) {
  impl_->initiator().OnAbandoned(message, status, detail, transmitted);
}

Verdict Engine::OnReturnData(const Request& request) {
  return impl_->initiator().OnReturnData(request);
}

bool Engine::Listens(std::span<const uint8_t> ses) const {
  return impl_->target().rings().listens() ||
         (impl_->initiator().defers() && ses.size() >= SesStd::kBytes &&
          SesStd::Decode(ses.data()).opcode ==
              contract::SesOpcode::kDeferrableRtr);
}

Verdict Engine::OnRequest(const Request& request, bool may_guarantee) {
  return impl_->target().OnRequest(request, may_guarantee);
}

Engine::Built Engine::BuildReturn(const ReturnData& data,
                                  std::span<uint8_t> out) {
  return impl_->target().BuildReturn(data, out);
}

void Engine::OnReturnRetired(const ReturnData& data) {
  impl_->target().OnReturnRetired(data);
}

void Engine::OnTargetClosed(const wire::FabricAddress& source, uint16_t spdcid,
                            bool in_error) {
  impl_->target().OnTargetClosed(source, spdcid, in_error);
}

}  // namespace heddle::soft::engine
