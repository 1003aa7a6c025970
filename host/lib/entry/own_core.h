// SPDX-License-Identifier: Apache-2.0
// The parts of a libfabric core that libheddle.so.1 brings itself.
#pragma once

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>

#include <cstdarg>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::entry {

// A list of names as in FI_PROVIDER and FI_LOG_PROV: "a,b" lets those through,
// "^a,b" all others, an empty one everything. Case does not matter.
class NameFilter {
 public:
  explicit NameFilter(const char* text);
  bool Passes(std::string_view name) const;

 private:
  bool excludes_ = false;
  std::vector<std::string> names_;
};

// The environment's say in logging, read once. Thread-safe.
class LogFilter {
 public:
  static const LogFilter& Get();

  bool Enabled(const char* provider, fi_log_level level,
               fi_log_subsys subsystem) const;

  // As Enabled, and at most once per FI_LOG_INTERVAL for one `*showtime`.
  bool Ready(const char* provider, fi_log_level level, fi_log_subsys subsystem,
             uint64_t* showtime) const;

 private:
  LogFilter();

  NameFilter providers_;
  NameFilter subsystems_;
  int most_verbose_;
  uint64_t interval_ms_;
};

// Who logs, and where in the source.
struct LogOrigin {
  const char* provider;  // Null: the core.
  fi_log_level level;
  fi_log_subsys subsystem;
  const char* function;
  int line;
};

// One line to standard error, in stock libfabric's format.
void WriteLog(const LogOrigin& origin, const char* format, va_list arguments);

// The environment variables that fi_getparams lists. Thread-safe.
class ParameterTable {
 public:
  static ParameterTable& Get();

  // `provider` may be null. 0, -FI_EINVAL.
  int Define(const char* provider, const char* name, fi_param_type type,
             const std::string& help);

  // Stores at `value` what `type` of the parameter says, char* for strings,
  // which stays valid. 0; -FI_ENOENT: not defined; -FI_ENODATA: not set;
  // -FI_EINVAL: not of its type.
  int Read(const char* provider, const char* name, void* value);

  // A copy for `Free`; 0 or -FI_ENOMEM.
  int List(fi_param** parameters, int* count);
  static void Free(fi_param* parameters) noexcept;

 private:
  struct Parameter {
    std::string name;
    fi_param_type type;
    std::string help;
  };

  ParameterTable();

  std::mutex mutex_;
  std::vector<Parameter> parameters_;
};

// Text for a positive or negative errno, static.
const char* ErrorText(int number) noexcept;

}  // namespace heddle::entry
