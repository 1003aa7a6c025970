// SPDX-License-Identifier: Apache-2.0
// Remote memory access and counters of the loopback device.
#include <cstring>

#include "hw/contract/memory_key.h"
#include "tests/host/nic/loopback_device.h"

namespace heddle::test {

using contract::CompletionKind;
using contract::ReturnCode;
using contract::Status;

std::optional<contract::RegionCfg> LoopbackDevice::FindRegion(
    uint64_t key) const {
  const uint32_t limit = bus_.region_limits & 0xffff;
  const bool user = contract::IsUserKey(key);
  const auto index = static_cast<uint32_t>(
      key & ((uint64_t{1} << contract::kKeyIndexBits) - 1));
  const uint32_t first = user ? contract::RegionSetOfKey(key, limit) : index;
  for (uint32_t i = 0; i < (user ? contract::kRegionWays : 1); ++i) {
    const auto region =
        bus_.Table<contract::RegionCfg>(contract::Table::kRegion, first + i);
    if (region.enable != 0 && region.key == key) {
      return region;
    }
  }
  return std::nullopt;
}

bool LoopbackDevice::Access(uint32_t context, const contract::TxCtxCfg& source,
                            LoopbackDevice& initiator, Message& message) {
  const contract::RxCtxCfg cfg = rx_cfg(context);
  const bool tell = (cfg.flags & contract::kRxCtxFlagRegionEvent) != 0 ||
                    (message.desc.flags & contract::kTxFlagHeaderData) != 0;
  // Two: the initiator's completion may go to the same queue.
  const uint32_t used = cq_[cfg.cq].produced - cq_[cfg.cq].consumed;
  if (tell && used + 2 > 1U << cq_cfg(cfg.cq).log2) {
    return false;
  }
  const ReturnCode code = Touch(cfg, source, initiator, message);
  if (code != ReturnCode::kOk) {
    message.status = Status::kRemoteError;
    message.detail = static_cast<uint16_t>(code);
    return true;
  }
  if (tell) {
    ReportAccess(context, source, initiator.address(), message);
  }
  return true;
}

ReturnCode LoopbackDevice::Touch(const contract::RxCtxCfg& reached,
                                 const contract::TxCtxCfg& source,
                                 LoopbackDevice& initiator,
                                 const Message& message) {
  const contract::TxDesc& desc = message.desc;
  const bool write = desc.opcode == contract::Opcode::kWrite;
  const auto region = FindRegion(desc.match_bits);
  const bool bound = region.has_value() &&
                     (region->flags & contract::kRegionFlagEndpoint) != 0;
  if (!region.has_value() || region->job_id != source.job_id ||
      (bound &&
       (region->pid_on_fep != reached.pid_on_fep ||
        region->resource_index != reached.resource_index / contract::kRiBlock *
                                      contract::kRiBlock))) {
    return ReturnCode::kBadMkey;
  }
  const uint8_t needed = write ? contract::kRegionFlagRemoteWrite
                               : contract::kRegionFlagRemoteRead;
  if ((region->flags & needed) == 0) {
    return ReturnCode::kPermViolation;
  }
  if (desc.length > region->length) {
    return ReturnCode::kUnsupportedSize;
  }
  const uint64_t offset = desc.remote_offset - region->address_base;
  if (offset > region->length || desc.length > region->length - offset) {
    return ReturnCode::kBadAddr;
  }
  const uint64_t at = region->iova + offset;
  if (write) {
    if (desc.length != 0 && !Write(at, message.payload.data(), desc.length)) {
      return ReturnCode::kHostUnsuccessCmpl;
    }
    Count(region->counter, true);
    Count(reached.counter_remote_write, true);
    return ReturnCode::kOk;
  }
  std::vector<std::byte> data(desc.length);
  if (desc.length != 0 && !Read(at, data.data(), data.size())) {
    return ReturnCode::kHostUnsuccessCmpl;
  }
  Count(reached.counter_remote_read, true);
  return initiator.Scatter(message, data.data()) ? ReturnCode::kOk
                                                 : ReturnCode::kInitiatorErr;
}

bool LoopbackDevice::Scatter(const Message& message, const std::byte* data) {
  for (const contract::TxSegment& piece : message.pieces) {
    if (!Write(piece.iova, data, piece.length)) {
      return false;
    }
    data += piece.length;
  }
  return true;
}

void LoopbackDevice::ReportAccess(uint32_t context,
                                  const contract::TxCtxCfg& source,
                                  const FabricAddress& source_fa,
                                  const Message& message) {
  const bool has_data = (message.desc.flags & contract::kTxFlagHeaderData) != 0;
  Produce(rx_cfg(context).cq,
          {.length = message.desc.length,
           .message_length = message.desc.length,
           .header_data = has_data ? message.desc.header_data : 0,
           .match_bits = message.desc.match_bits,
           .source_fa_lo = source_fa.lo,
           .source_fa_hi = source_fa.hi,
           .peer = uint32_t{source.source_pid} << 12U | source.source_ri,
           .queue_head = rx_[context].head,
           .status = Status::kOk,
           .opcode = message.desc.opcode,
           .flags = static_cast<uint8_t>(
               (has_data ? contract::kCompletionFlagHeaderData : 0) |
               (source_fa.ipv6 ? contract::kCompletionFlagSourceIpv6 : 0)),
           .context = static_cast<uint8_t>(context),
           .kind = CompletionKind::kTarget});
}

void LoopbackDevice::TakeCounterDoorbell(uint32_t counter, uint32_t reg,
                                         uint64_t value) {
  CounterState& state = counters_[counter];
  switch (reg) {
    case contract::kDoorbellCounterSetOffset:
      state.value = value;
      break;
    case contract::kDoorbellCounterAddOffset:
      state.value += value;
      break;
    case contract::kDoorbellCounterSetErrorsOffset:
      state.errors = value;
      break;
    case contract::kDoorbellCounterAddErrorsOffset:
      state.errors += value;
      break;
    default:
      Fail("counter doorbell that there is none");
      return;
  }
  ++state.echo;
  StoreCounter(counter);
}

void LoopbackDevice::Count(uint8_t counter_plus_1, bool ok) {
  if (counter_plus_1 != 0) {
    CounterState& state = counters_[counter_plus_1 - 1U];
    ++(ok ? state.value : state.errors);
    StoreCounter(counter_plus_1 - 1U);
  }
}

void LoopbackDevice::StoreCounter(uint32_t counter) {
  const auto cfg =
      bus_.Table<contract::CounterCfg>(contract::Table::kCounter, counter);
  const CounterState& state = counters_[counter];
  // The echo last: it says that the rest is there.
  if (cfg.enable == 0 ||
      !Write(cfg.cell + offsetof(contract::CounterCell, value), &state.value,
             sizeof(uint64_t)) ||
      !Write(cfg.cell + offsetof(contract::CounterCell, errors), &state.errors,
             sizeof(uint64_t)) ||
      !Write(cfg.cell + offsetof(contract::CounterCell, echo), &state.echo,
             sizeof(uint64_t))) {
    Fail("counter is not enabled or its cell not mapped");
  }
}

}  // namespace heddle::test
