// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/rx_context.h"

namespace heddle::nic {

Result<bool> RxContext::CreateRing(Device& device, const RxOptions& options,
                                   size_t slot_bytes) {
  const size_t slots = std::clamp<size_t>(std::bit_ceil(options.operations),
                                          size_t{1} << contract::kRingLog2Min,
                                          size_t{1} << contract::kRingLog2Max);
  ring_log2_ = static_cast<uint8_t>(std::countr_zero(slots));
  ring_bytes_ = slot_bytes << ring_log2_;
  peers_ = options.peers;
  refuses_strangers_ = options.refuse_strangers;
  in_place_ = options.in_place;
  reports_targets_ = options.report_targets;
  owner_context_ = options.owner_context;
  auto memory = DmaBuffer::Create(device, ring_bytes_ + sizeof(uint64_t));
  if (!memory.ok()) {
    return memory.error();
  }
  memory_ = std::move(memory.value());
  return true;
}

Result<Registrar> RxContext::CreateRegistrar(Device& device,
                                             const RxOptions& options,
                                             size_t tickets) const {
  return Registrar::Create(
      device, {.copy_limit_bytes = in_place_ ? 0 : options.copy_limit_bytes,
               .tickets = static_cast<uint32_t>(tickets),
               .slabs = {},
               .on_refused = options.on_refused});
}

}  // namespace heddle::nic
