// SPDX-License-Identifier: Apache-2.0
// The calls of the data path, one set of tables per backend.
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "host/lib/backend/device.h"
#include "host/lib/ofi/transfer_call.h"

namespace heddle::ofi {

class CompletionQueue;
class Domain;

// How the tables of an object are chosen.
struct DataPath {
  const backend::Backend* backend = nullptr;
  fi_ops_msg (*message_ops)(const CallTraits& traits) noexcept = nullptr;
  fi_ops_tagged (*tagged_ops)(const CallTraits& traits) noexcept = nullptr;
  fi_ops_rma (*rma_ops)(const CallTraits& traits) noexcept = nullptr;
  // A queue that is not open yet, with the table of its domain's threading
  // model; null for a format that there is not. Throws std::bad_alloc.
  CompletionQueue* (*make_queue)(Domain* domain, fi_cq_format format,
                                 void* context) = nullptr;
};

// Makes a backend's known, before the first domain is opened; `path` outlives
// the process.
void AddDataPath(const DataPath& path) noexcept;

// That of the devices of our own, which is made known first. Precondition: it
// was.
const DataPath& FirstDataPath() noexcept;

// Null for a backend that was not made known.
const DataPath* FindDataPath(const backend::Backend& backend) noexcept;

}  // namespace heddle::ofi
