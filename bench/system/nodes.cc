// SPDX-License-Identifier: Apache-2.0
#include "bench/system/nodes.h"

#include <bit>
#include <stdexcept>
#include <string>

namespace heddle::bench {

sim::frame::WireAddress AddressOf(size_t node, bool ipv6) {
  constexpr uint64_t kUniqueLocal = uint64_t{0xfd} << 56;
  const uint32_t ipv4 = LockstepNodes::Address(node);
  return ipv6 ? sim::frame::WireAddress(kUniqueLocal, ipv4) : ipv4;
}

std::unique_ptr<LockstepNodes> Open(const Conditions& conditions,
                                    const Variant& variant) {
  sim::nic::LockstepOptions options;
  options.seed = conditions.seed;
  options.wire.latency_cycles = conditions.wire_latency_cycles;
  options.wire.faults = {.seed = conditions.seed, .loss = variant.loss};
  options.wire.rx_faults = variant.rx_faults;
  options.cwnd_bytes = variant.cwnd_bytes;
  options.base_rtt_cycles = variant.base_rtt_cycles;
  options.dscp_trimmed = variant.dscp_trimmed;
  options.memory.read_latency_cycles = conditions.read_latency_cycles;
  options.memory.write_delay_cycles = conditions.write_delay_cycles;
  options.memory.steady = variant.steady;
  options.write_errors = variant.write_errors;
  for (size_t node = 0; node < variant.nodes; ++node) {
    options.addresses.push_back(AddressOf(node, variant.ipv6));
  }
  std::string error;
  auto nodes = LockstepNodes::Create(variant.nodes, options, &error,
                                     [&](size_t, BareEndpointOptions& o) {
                                       o.push = variant.push;
                                       o.ordered = variant.ordered;
                                       o.spill = variant.spill;
                                       o.early_release = variant.early_release;
                                       o.av_entries = variant.av_entries;
                                       o.tx_log2 = 10;
                                       o.rx_log2 = 12;
                                       o.cq_log2 = 12;
                                     });
  if (nodes == nullptr) {
    throw std::runtime_error(error);
  }
  return nodes;
}

void Require(bool done, LockstepNodes& nodes, const char* what) {
  if (!done) {
    throw std::runtime_error(std::string(what) +
                             " did not finish: " + nodes.world().failure());
  }
}

uint64_t Register(LockstepNodes& nodes, size_t node, const DmaBuffer& memory) {
  contract::AdminRegisterRegion command = {};
  command.opcode = contract::AdminOpcode::kRegisterRegion;
  command.iova = ToInteger(memory.iova());
  command.length = memory.bytes();
  command.job_id = BareEndpointOptions{}.job_id;
  command.flags = contract::kRegionFlagRemoteRead |
                  contract::kRegionFlagRemoteWrite |
                  contract::kRegionFlagProviderKey;
  const auto answer =
      nodes.admin(node).Execute(std::bit_cast<contract::AdminCommand>(command));
  if (!answer.ok() || answer.value().status != contract::AdminStatus::kOk) {
    throw std::runtime_error("no region registered");
  }
  return answer.value().key;
}

bool PushRma(BareEndpoint& endpoint, const SendFields& fields,
             const RmaAccess& access) {
  if (!endpoint.tx().PushBuffer(fields, access.local, access.bytes)) {
    return false;
  }
  contract::TxDesc& descriptor = endpoint.LastTxDesc();
  descriptor.opcode = access.opcode;
  descriptor.match_bits = access.key;
  return true;
}

}  // namespace heddle::bench
