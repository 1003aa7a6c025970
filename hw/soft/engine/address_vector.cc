// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/address_vector.h"

namespace heddle::soft::engine {

const VectorEntry* AddressVector::Load(uint32_t context,
                                       const contract::TxCtxCfg& cfg,
                                       uint32_t index, Line& line) {
  contract::AvEntry entry;
  if (index >= cfg.av_entries ||
      !host_->ReadStruct(cfg.av_base + uint64_t{index} * sizeof(entry),
                         &entry)) {
    return nullptr;
  }
  const bool ipv6 = (entry.flags & contract::kAvFlagIpv6) != 0;
  if ((entry.flags & contract::kAvFlagValid) == 0 || ipv6 != ipv6_ ||
      entry.next_hop >= next_hops_) {
    return nullptr;
  }
  line.valid = true;
  line.context = context;
  line.index = index;
  line.epoch = epochs_[context];
  line.peer = {{entry.fa_lo, entry.fa_hi, ipv6},
               entry.pid_on_fep,
               entry.resource_index,
               entry.next_hop};
  return &line.peer;
}

}  // namespace heddle::soft::engine
