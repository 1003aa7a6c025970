// SPDX-License-Identifier: Apache-2.0
// The data path of a backend, from the templates of its calls. Included where
// the backend is known (host/lib/entry).
#pragma once

#include "host/lib/backend/model.h"
#include "host/lib/ofi/cq_read.h"
#include "host/lib/ofi/data_path.h"
#include "host/lib/ofi/message_ops.h"
#include "host/lib/ofi/rma_ops.h"
#include "host/lib/ofi/tagged_ops.h"

namespace heddle::ofi {

template <backend::Model Model>
constexpr DataPath MakeDataPath(const backend::Backend& backend) noexcept {
  return {.backend = &backend,
          .message_ops = MakeMessageOps<Model>,
          .tagged_ops = MakeTaggedOps<Model>,
          .rma_ops = MakeRmaOps<Model>,
          .make_queue = MakeQueue<Model>};
}

}  // namespace heddle::ofi
