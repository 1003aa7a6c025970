// SPDX-License-Identifier: Apache-2.0
// The data paths of all backends.
#pragma once

namespace heddle::entry {

// Makes them known to `ofi`. Once, before the first call of the API.
void AddDataPaths() noexcept;

}  // namespace heddle::entry
