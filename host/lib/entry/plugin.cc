// SPDX-License-Identifier: Apache-2.0
// Entry point of libheddle-fi.so.
#include "host/lib/entry/plugin.h"

#include "host/lib/base/guard.h"
#include "host/lib/base/version.h"
#include "host/lib/core/getinfo.h"
#include "host/lib/core/settings.h"
#include "host/lib/entry/data_paths.h"
#include "host/lib/entry/services.h"
#include "host/lib/ofi/fabric.h"

namespace {

// NOLINTNEXTLINE(readability-function-size): the signature is libfabric's.
int PluginGetInfo(uint32_t version, const char* node, const char* service,
                  uint64_t flags, const fi_info* hints,
                  fi_info** info) noexcept {
  // The core has brought older layouts to that of its own version, which is
  // not below `version`.
  return heddle::core::GetInfo(
      {version, node, service, flags, hints, &heddle::core::kNewestLayout},
      info);
}

int PluginFabric(fi_fabric_attr* attr, fid_fabric** fabric,
                 void* context) noexcept {
  return heddle::base::Guard(
      [&] { return heddle::ofi::Fabric::Open(attr, fabric, context); });
}

// Source: fi_provider(3). The core asks for `cleanup` at exit, when threads of
// the application may still be in the library: nothing is freed.
void PluginCleanup() noexcept {}

fi_provider provider = {
    .version = heddle::base::kProviderVersion,
    .fi_version = heddle::core::kApiVersion,
    .context = {},
    .name = heddle::base::kProviderName,
    .getinfo = PluginGetInfo,
    .fabric = PluginFabric,
    .cleanup = PluginCleanup,
};

}  // namespace

namespace heddle::entry {

fi_provider* PluginProvider() noexcept {
  return &provider;
}

}  // namespace heddle::entry

extern "C" __attribute__((visibility("default"))) fi_provider*
fi_prov_ini() noexcept {
  heddle::entry::UseThisCore();
  heddle::entry::AddDataPaths();
  heddle::core::DefineSettings();
  return &provider;
}
