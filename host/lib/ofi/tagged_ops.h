// SPDX-License-Identifier: Apache-2.0
// The calls of fi_tagged(3): those of messages, with a tag.
#pragma once

#include <rdma/fi_tagged.h>

#include "host/lib/ofi/message_ops.h"

namespace heddle::ofi {

// Before fi_enable.
inline constexpr auto kDisabledTaggedOps =
    RefuseMessages<fi_ops_tagged>(base::kNotEnabled);

// As `MakeMessageOps`; without the capability all answer -FI_ENOSYS.
template <typename Model>
fi_ops_tagged MakeTaggedOps(const CallTraits& traits) noexcept {
  auto ops = traits.caps.tag_sends || traits.caps.tag_receives
                 ? RefuseMessages<fi_ops_tagged>(base::kNotOffered)
                 : RefuseMessages<fi_ops_tagged>(base::kNotImplemented);
  if constexpr (backend::MatchingModel<Model>) {
    ChooseCalls(traits.locked, traits.plain_transmit,
                [&]<typename Locking, bool kPlain>() {
                  if (traits.caps.tag_sends) {
                    SendOps<Model, Locking, kPlain, uint64_t>::Fill(&ops);
                  }
                });
    ChooseCalls(traits.locked, traits.plain_receive,
                [&]<typename Locking, bool kPlain>() {
                  if (traits.caps.tag_receives) {
                    ReceiveOps<typename Model::Match, Locking, kPlain, uint64_t,
                               uint64_t>::Fill(&ops);
                  }
                });
  }
  return ops;
}

}  // namespace heddle::ofi
