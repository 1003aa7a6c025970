// SPDX-License-Identifier: Apache-2.0
#include "firmware/net/port.h"

#include "firmware/base/field.h"
#include "hw/contract/ip_protocol.h"

namespace heddle::firmware {
namespace {

constexpr uint32_t kDscps = 64;
constexpr uint32_t kSlots = 1U << contract::kSlotBits;

// A board time that the NIC cannot measure means "as long as possible".
uint32_t SaturatedTicks(uint64_t ns, uint64_t tick_ns) {
  uint32_t ticks = 0;
  return TicksOf(ns, tick_ns, ticks) ? ticks : kMaxTicks;
}

constexpr bool IsPayloadMtu(uint32_t bytes) {
  return bytes == 1024 || bytes == 2048 || bytes == 4096 || bytes == 8192;
}

}  // namespace

bool TicksOf(uint64_t ns, uint64_t tick_ns, uint32_t& ticks) {
  const uint64_t whole = ns / tick_ns + (ns % tick_ns != 0 ? 1 : 0);
  if (whole > kMaxTicks) {
    return false;
  }
  ticks = whole == 0 ? 1 : static_cast<uint32_t>(whole);
  return true;
}

bool Port::BoardIsValid(uint32_t payload_mtu_max_bytes) const {
  return board_.tick_ns != 0 && board_.slot < kSlots &&
         board_.crc <= contract::CrcOrder::kMsbFirst &&
         (board_.ip_protocol == 0 ||
          contract::IsNativeIpProtocol(board_.ip_protocol)) &&
         board_.dscp_trimmed < kDscps && board_.dscp_trimmed_lasthop < kDscps &&
         IsPayloadMtu(board_.payload_mtu) &&
         board_.payload_mtu <= payload_mtu_max_bytes;
}

Status Port::Start(uint32_t payload_mtu_max_bytes) {
  if (!BoardIsValid(payload_mtu_max_bytes)) {
    return {Module::kPort, kBadBoard, StatusClass::kMismatch};
  }
  const uint64_t tick_ns = board_.tick_ns;
  config_ = {
      .local_fa_lo = board_.fa_lo,
      .local_fa_hi = board_.fa_hi,
      .mac = board_.mac & kMacMask,
      .rto_ticks = SaturatedTicks(board_.rto_ns, tick_ns),
      .rto_max_ticks = SaturatedTicks(board_.rto_max_ns, tick_ns),
      .backoff_ticks = SaturatedTicks(board_.backoff_ns, tick_ns),
      .backoff_max_ticks = SaturatedTicks(board_.backoff_max_ns, tick_ns),
      .dead_ticks = SaturatedTicks(board_.dead_ns, tick_ns),
      .payload_mtu = board_.payload_mtu,
      .udp_port = contract::kUetUdpPort,
      .slot = board_.slot,
      .enable = 1,
      .write_errors = static_cast<uint8_t>(board_.write_errors ? 1 : 0),
      .crc = board_.crc,
      .pdc_seed = board_.pdc_seed,
      .ack_delay_ticks = board_.ack_delay_ns == 0
                             ? 0
                             : SaturatedTicks(board_.ack_delay_ns, tick_ns),
  };
  config_.vlan = board_.vlan;
  config_.ipv6 = board_.ipv6 ? 1 : 0;
  config_.ip_protocol = board_.ip_protocol;
  if (config_.rto_max_ticks < config_.rto_ticks) {
    config_.rto_max_ticks = config_.rto_ticks;
  }
  const Status status = WriteTransport(config_.dead_ticks);
  return status.ok() ? tables_.Write(contract::Table::kPort, 0, config_)
                     : status;
}

Status Port::ClosePdcs() {
  return WriteTransport(config_.dead_ticks, true);
}

uint32_t Port::CountOpenPdcs() {
  const uint32_t count = bus_.Read(contract::kMgmtOpenPdcsOffset);
  return GetField(count, contract::kMgmtOpenPdcsInitiatorMask,
                  contract::kMgmtOpenPdcsInitiatorLsb) +
         GetField(count, contract::kMgmtOpenPdcsTargetMask,
                  contract::kMgmtOpenPdcsTargetLsb);
}

Status Port::WriteTransport(uint32_t dead_ticks, bool close) {
  // A target forgets a PDC that was silent for twice DEAD_TIME, and would
  // refuse what comes by it then.
  uint32_t idle_ticks = SaturatedTicks(board_.pdc_idle_ns, board_.tick_ns);
  if (board_.pdc_idle_ns == 0 || idle_ticks > dead_ticks) {
    idle_ticks = dead_ticks;
  }
  const contract::TransportCfg transport{
      .safety_ticks = SaturatedTicks(board_.pdc_safety_ns, board_.tick_ns),
      .idle_ticks = idle_ticks,
      .cwnd_bytes = board_.cwnd_bytes,
      .base_rtt_ns = board_.base_rtt_ns,
      .reorder = board_.reorder,
      .ack_every = board_.ack_every,
      .congestion = static_cast<uint8_t>(board_.congestion ? 1 : 0),
      .close = static_cast<uint8_t>(close ? 1 : 0),
      .tick_ns = static_cast<uint32_t>(board_.tick_ns),
      .dscp_trimmed = board_.dscp_trimmed,
      .dscp_trimmed_lasthop = board_.dscp_trimmed_lasthop,
      .hash_key = {board_.hash_key[0], board_.hash_key[1], board_.hash_key[2]},
      .urgent_dscps = board_.urgent_dscps};
  const Status status =
      tables_.Write(contract::Table::kTransport, 0, transport);
  // A NIC of contract 1.1 has no such table, and nothing that it would rule.
  return status.status_class() == StatusClass::kRefused ? Status{} : status;
}

Port::Timing Port::SetTiming(uint64_t rto_ns, uint64_t dead_ns,
                             Status& status) {
  contract::PortCfg wanted = config_;
  if (rto_ns != 0 && !TicksOf(rto_ns, board_.tick_ns, wanted.rto_ticks)) {
    return Timing::kBadRto;
  }
  if (dead_ns != 0 && !TicksOf(dead_ns, board_.tick_ns, wanted.dead_ticks)) {
    return Timing::kBadDead;
  }
  if (wanted.rto_max_ticks < wanted.rto_ticks) {
    wanted.rto_max_ticks = wanted.rto_ticks;
  }
  status = wanted.dead_ticks == config_.dead_ticks
               ? Status{}
               : WriteTransport(wanted.dead_ticks);
  if (status.ok()) {
    status = tables_.Write(contract::Table::kPort, 0, wanted);
  }
  if (!status.ok()) {
    return Timing::kFailed;
  }
  config_ = wanted;
  return Timing::kSet;
}

}  // namespace heddle::firmware
