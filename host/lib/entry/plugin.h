// SPDX-License-Identifier: Apache-2.0
// The provider as a stock libfabric core sees it.
#pragma once

#include <rdma/providers/fi_prov.h>

namespace heddle::entry {

// Static; the core writes into its `context`.
fi_provider* PluginProvider() noexcept;

}  // namespace heddle::entry
