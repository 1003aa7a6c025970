// SPDX-License-Identifier: Apache-2.0
// The calls of the data path on Heddle's own devices.
#include "host/lib/entry/data_paths.h"
#include "host/lib/nic/model.h"
#include "host/lib/ofi/make_data_path.h"

namespace heddle::entry {

void AddDataPaths() noexcept {
  static constexpr ofi::DataPath kNic =
      ofi::MakeDataPath<nic::Model>(nic::kBackend);
  ofi::AddDataPath(kNic);
}

}  // namespace heddle::entry
