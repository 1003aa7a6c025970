// SPDX-License-Identifier: Apache-2.0
// The entry points of libheddle.so.1, each under the versions that stock
// libfabric has for it (exports.map). The default of a name is what the
// installed headers describe, for programs that are linked with this library.
#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include <strings.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "host/lib/base/guard.h"
#include "host/lib/base/version.h"
#include "host/lib/core/getinfo.h"
#include "host/lib/core/info_memory.h"
#include "host/lib/core/settings.h"
#include "host/lib/core/tostr.h"
#include "host/lib/entry/data_paths.h"
#include "host/lib/entry/own_core.h"
#include "host/lib/entry/services.h"
#include "host/lib/ofi/fabric.h"

#define HEDDLE_EXPORT extern "C" __attribute__((visibility("default"), used))

// `symbol` becomes `name` of a version node, or its default.
#define HEDDLE_VERSION_OF(symbol, name, node) \
  __asm__(".symver " #symbol "," #name "@" node)
#define HEDDLE_DEFAULT_VERSION(symbol, name, node) \
  __asm__(".symver " #symbol "," #name "@@" node)

namespace {

// Before the first call of any entry point.
[[maybe_unused]] const bool uses_own_core =
    (heddle::entry::UseThisCore(), heddle::entry::AddDataPaths(), true);

using heddle::base::Guard;
using heddle::core::InfoLayout;

// Source: fi_getinfo(3). An internal flag of a stock core is none here.
constexpr uint64_t kInfoFlags = FI_NUMERICHOST | FI_SOURCE | FI_PROV_ATTR_ONLY;

// Source: fi_getinfo(3), FI_PROVIDER. Read once.
bool ProviderIsEnabled() {
  static const bool enabled =
      heddle::entry::NameFilter(secure_getenv("FI_PROVIDER"))
          .Passes(heddle::base::kProviderName);
  return enabled;
}

int AnswerInfo(const heddle::core::InfoRequest& request,
               fi_info** info) noexcept {
  if (info == nullptr) {
    return -FI_EINVAL;
  }
  *info = nullptr;
  if ((request.flags & ~kInfoFlags) != 0) {
    return -FI_EBADFLAGS;
  }
  if ((request.flags & FI_PROV_ATTR_ONLY) == 0 && !ProviderIsEnabled()) {
    return -FI_ENODATA;
  }
  return heddle::core::GetInfo(request, info);
}

fi_info* DuplicateInfoOf(const InfoLayout& layout,
                         const fi_info* info) noexcept {
  return info == nullptr ? heddle::core::AllocateInfo()
                         : heddle::core::DuplicateInfo(*info, layout);
}

int OpenFabric(const fi_fabric_attr* attr, fid_fabric** fabric,
               void* context) noexcept {
  if (attr == nullptr || attr->prov_name == nullptr || attr->name == nullptr ||
      fabric == nullptr) {
    return -FI_EINVAL;
  }
  if (strcasecmp(attr->prov_name, heddle::base::kProviderName) != 0) {
    return -FI_ENODEV;
  }
  return Guard(
      [&] { return heddle::ofi::Fabric::Open(attr, fabric, context); });
}

char* StoreText(char* buffer, size_t length, const void* data,
                fi_type type) noexcept {
  if (data == nullptr || buffer == nullptr || length == 0) {
    return nullptr;
  }
  try {
    const std::string text = heddle::core::ToText(data, type);
    snprintf(buffer, length, "%s", text.c_str());
    return buffer;
  } catch (...) {
    return nullptr;
  }
}

const char* NameOf(const fi_provider* provider) {
  return provider != nullptr ? provider->name : nullptr;
}

}  // namespace

// NOLINTBEGIN(readability-function-size): the signatures are libfabric's.

// fi_getinfo, fi_dupinfo and fi_freeinfo of one version of the ABI, in the
// layout of struct fi_info that it has. Every fi_info that an application may
// free was made by the library, in the newest layout, whichever entry point it
// came from.
#define HEDDLE_INFO_CALLS(layout, version, attach)                             \
  HEDDLE_EXPORT int HeddleGetInfo##layout(                                     \
      uint32_t api_version, const char* node, const char* service,             \
      uint64_t flags, const fi_info* hints, fi_info** info) noexcept {         \
    return AnswerInfo({api_version, node, service, flags, hints,               \
                       &heddle::core::kLayout##layout},                        \
                      info);                                                   \
  }                                                                            \
  attach(HeddleGetInfo##layout, fi_getinfo, version);                          \
  HEDDLE_EXPORT fi_info* HeddleDupInfo##layout(const fi_info* info) noexcept { \
    return DuplicateInfoOf(heddle::core::kLayout##layout, info);               \
  }                                                                            \
  attach(HeddleDupInfo##layout, fi_dupinfo, version);                          \
  HEDDLE_EXPORT void HeddleFreeInfo##layout(fi_info* info) noexcept {          \
    heddle::core::FreeInfo(info);                                              \
  }                                                                            \
  attach(HeddleFreeInfo##layout, fi_freeinfo, version)

HEDDLE_INFO_CALLS(10, "FABRIC_1.0", HEDDLE_VERSION_OF);
HEDDLE_INFO_CALLS(11, "FABRIC_1.1", HEDDLE_VERSION_OF);
HEDDLE_INFO_CALLS(12, "FABRIC_1.2", HEDDLE_VERSION_OF);
HEDDLE_INFO_CALLS(13, "FABRIC_1.3", HEDDLE_DEFAULT_VERSION);
HEDDLE_INFO_CALLS(17, "FABRIC_1.7", HEDDLE_VERSION_OF);
HEDDLE_INFO_CALLS(18, "FABRIC_1.8", HEDDLE_VERSION_OF);

// The caller's structure has no api_version: anything from 1.0 to 1.4.
HEDDLE_EXPORT int HeddleFabric10(const fi_fabric_attr* old_attr,
                                 fid_fabric** fabric, void* context) noexcept {
  if (old_attr == nullptr) {
    return -FI_EINVAL;
  }
  fi_fabric_attr attr = {};
  memcpy(&attr, old_attr, heddle::core::kLayout10.fabric_attr);
  attr.api_version = FI_VERSION(1, 0);
  return OpenFabric(&attr, fabric, context);
}
HEDDLE_VERSION_OF(HeddleFabric10, fi_fabric, "FABRIC_1.0");

HEDDLE_EXPORT int HeddleFabric11(const fi_fabric_attr* attr,
                                 fid_fabric** fabric, void* context) noexcept {
  return OpenFabric(attr, fabric, context);
}
HEDDLE_DEFAULT_VERSION(HeddleFabric11, fi_fabric, "FABRIC_1.1");

// fi_fabric of 2.0, by info; not in the installed headers.
HEDDLE_EXPORT int HeddleFabric2(const fi_info* info, fid_fabric** fabric,
                                uint64_t flags, void* context) noexcept {
  if (info == nullptr || flags != 0) {
    return -FI_EINVAL;
  }
  return OpenFabric(info->fabric_attr, fabric, context);
}
HEDDLE_DEFAULT_VERSION(HeddleFabric2, fi_fabric2, "FABRIC_1.8");

HEDDLE_EXPORT uint32_t HeddleVersion(void) noexcept {
  return heddle::core::kApiVersion;
}
HEDDLE_DEFAULT_VERSION(HeddleVersion, fi_version, "FABRIC_1.0");

HEDDLE_EXPORT const char* HeddleStrerror(int number) noexcept {
  return heddle::entry::ErrorText(number);
}
HEDDLE_DEFAULT_VERSION(HeddleStrerror, fi_strerror, "FABRIC_1.0");

// One buffer per thread, overwritten by its next call.
HEDDLE_EXPORT char* HeddleToStr(const void* data, fi_type type) noexcept {
  static thread_local char buffer[8192];
  return StoreText(buffer, sizeof(buffer), data, type);
}
HEDDLE_DEFAULT_VERSION(HeddleToStr, fi_tostr, "FABRIC_1.0");

HEDDLE_EXPORT char* HeddleToStrR(char* buffer, size_t length, const void* data,
                                 fi_type type) noexcept {
  return StoreText(buffer, length, data, type);
}
HEDDLE_DEFAULT_VERSION(HeddleToStrR, fi_tostr_r, "FABRIC_1.4");

// No interface of this library is opened by name yet.
HEDDLE_EXPORT int HeddleOpen(uint32_t /*version*/, const char* /*name*/,
                             void* /*attr*/, size_t /*attr_len*/,
                             uint64_t /*flags*/, struct fid** /*fid*/,
                             void* /*context*/) noexcept {
  return -FI_ENOSYS;
}
HEDDLE_DEFAULT_VERSION(HeddleOpen, fi_open, "FABRIC_1.5");

HEDDLE_EXPORT int HeddleGetParams(fi_param** parameters, int* count) noexcept {
  if (parameters == nullptr || count == nullptr) {
    return -FI_EINVAL;
  }
  return Guard([&] {
    static std::once_flag defined;
    std::call_once(defined, heddle::core::DefineSettings);
    return heddle::entry::ParameterTable::Get().List(parameters, count);
  });
}
HEDDLE_DEFAULT_VERSION(HeddleGetParams, fi_getparams, "FABRIC_1.0");

HEDDLE_EXPORT void HeddleFreeParams(fi_param* parameters) noexcept {
  heddle::entry::ParameterTable::Free(parameters);
}
HEDDLE_DEFAULT_VERSION(HeddleFreeParams, fi_freeparams, "FABRIC_1.0");

HEDDLE_EXPORT int HeddleParamDefine(const fi_provider* provider,
                                    const char* name, fi_param_type type,
                                    const char* help_format, ...) noexcept {
  char help[1024] = "";
  if (help_format != nullptr) {
    va_list arguments;
    va_start(arguments, help_format);
    vsnprintf(help, sizeof(help), help_format, arguments);
    va_end(arguments);
  }
  return Guard([&] {
    return heddle::entry::ParameterTable::Get().Define(NameOf(provider), name,
                                                       type, help);
  });
}
HEDDLE_DEFAULT_VERSION(HeddleParamDefine, fi_param_define, "FABRIC_1.0");

HEDDLE_EXPORT int HeddleParamGet(fi_provider* provider, const char* name,
                                 void* value) noexcept {
  return Guard([&] {
    return heddle::entry::ParameterTable::Get().Read(NameOf(provider), name,
                                                     value);
  });
}
HEDDLE_DEFAULT_VERSION(HeddleParamGet, fi_param_get, "FABRIC_1.0");

HEDDLE_EXPORT int HeddleLogEnabled(const fi_provider* provider,
                                   fi_log_level level,
                                   fi_log_subsys subsystem) noexcept {
  return Guard([&]() -> int {
           return heddle::entry::LogFilter::Get().Enabled(NameOf(provider),
                                                          level, subsystem);
         }) == 1;
}
HEDDLE_DEFAULT_VERSION(HeddleLogEnabled, fi_log_enabled, "FABRIC_1.0");

HEDDLE_EXPORT int HeddleLogReady(const fi_provider* provider,
                                 fi_log_level level, fi_log_subsys subsystem,
                                 uint64_t* showtime) noexcept {
  return Guard([&]() -> int {
           return heddle::entry::LogFilter::Get().Ready(NameOf(provider), level,
                                                        subsystem, showtime);
         }) == 1;
}
HEDDLE_DEFAULT_VERSION(HeddleLogReady, fi_log_ready, "FABRIC_1.6");

HEDDLE_EXPORT void HeddleLog(const fi_provider* provider, fi_log_level level,
                             fi_log_subsys subsystem, const char* function,
                             int line, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  heddle::entry::WriteLog({NameOf(provider), level, subsystem, function, line},
                          format, arguments);
  va_end(arguments);
}
HEDDLE_DEFAULT_VERSION(HeddleLog, fi_log, "FABRIC_1.0");

// NOLINTEND(readability-function-size)
