// SPDX-License-Identifier: Apache-2.0
#include "host/lib/entry/own_core.h"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "host/lib/core/info_memory.h"

namespace heddle::entry {
namespace {

constexpr const char* kLevelNames[] = {"warn", "trace", "info", "debug"};
constexpr const char* kSubsystemNames[] = {
    "core", "fabric", "domain", "ep_ctrl", "ep_data",
    "av",   "cq",     "eq",     "mr",      "cntr"};

// Warnings say that the user must act, so that they are on by default.
int VerbosityOf(const char* text) {
  if (text != nullptr) {
    for (int level = FI_LOG_WARN; level < FI_LOG_MAX; ++level) {
      if (strcasecmp(text, kLevelNames[level]) == 0) {
        return level;
      }
    }
  }
  return FI_LOG_WARN;
}

bool IsSubsystem(fi_log_subsys subsystem) {
  return static_cast<size_t>(subsystem) < std::size(kSubsystemNames);
}

uint64_t NowMs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// FI_<PROVIDER>_<NAME> in capitals.
std::string VariableName(const char* provider, const char* name) {
  std::string text = "FI_";
  if (provider != nullptr) {
    text += std::string(provider) + "_";
  }
  text += name;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(toupper(c)); });
  return text;
}

template <typename Number>
int ParseNumber(const char* text, void* value) {
  Number number = 0;
  const char* end = text + strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stop != end) {
    return -FI_EINVAL;
  }
  memcpy(value, &number, sizeof(number));
  return FI_SUCCESS;
}

int ParseBool(const char* text, void* value) {
  for (const char* word : {"1", "on", "true", "yes"}) {
    if (strcasecmp(text, word) == 0) {
      const int number = 1;
      memcpy(value, &number, sizeof(number));
      return FI_SUCCESS;
    }
  }
  for (const char* word : {"0", "off", "false", "no"}) {
    if (strcasecmp(text, word) == 0) {
      const int number = 0;
      memcpy(value, &number, sizeof(number));
      return FI_SUCCESS;
    }
  }
  return -FI_EINVAL;
}

}  // namespace

NameFilter::NameFilter(const char* text) {
  if (text == nullptr) {
    return;
  }
  excludes_ = *text == '^';
  std::string_view rest = excludes_ ? text + 1 : text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    names_.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
}

bool NameFilter::Passes(std::string_view name) const {
  const bool named = std::any_of(
      names_.begin(), names_.end(), [name](const std::string& candidate) {
        return candidate.size() == name.size() &&
               strncasecmp(candidate.data(), name.data(), name.size()) == 0;
      });
  return names_.empty() || named != excludes_;
}

const LogFilter& LogFilter::Get() {
  // Never destroyed: logging goes on in exit handlers.
  static const LogFilter* const filter = new LogFilter;
  return *filter;
}

LogFilter::LogFilter()
    : providers_(secure_getenv("FI_LOG_PROV")),
      subsystems_(secure_getenv("FI_LOG_SUBSYS")),
      most_verbose_(VerbosityOf(secure_getenv("FI_LOG_LEVEL"))),
      interval_ms_(2000) {
  if (const char* text = secure_getenv("FI_LOG_INTERVAL")) {
    ParseNumber<uint64_t>(text, &interval_ms_);
  }
}

bool LogFilter::Enabled(const char* provider, fi_log_level level,
                        fi_log_subsys subsystem) const {
  return static_cast<int>(level) <= most_verbose_ && IsSubsystem(subsystem) &&
         subsystems_.Passes(kSubsystemNames[subsystem]) &&
         providers_.Passes(provider != nullptr ? provider : "core");
}

bool LogFilter::Ready(const char* provider, fi_log_level level,
                      fi_log_subsys subsystem, uint64_t* showtime) const {
  if (!Enabled(provider, level, subsystem)) {
    return false;
  }
  const uint64_t now = NowMs();
  if (now < *showtime) {
    return false;
  }
  *showtime = now + interval_ms_;
  return true;
}

void WriteLog(const LogOrigin& origin, const char* format, va_list arguments) {
  char text[1024];
  const size_t level =
      std::min(static_cast<size_t>(origin.level), std::size(kLevelNames) - 1);
  int used =
      snprintf(text, sizeof(text), "libfabric:%d:%lld::%s:%s:%s():%d<%s> ",
               getpid(), static_cast<long long>(time(nullptr)),
               origin.provider != nullptr ? origin.provider : "core",
               IsSubsystem(origin.subsystem) ? kSubsystemNames[origin.subsystem]
                                             : "unknown",
               origin.function != nullptr ? origin.function : "unknown",
               origin.line, kLevelNames[level]);
  used = std::clamp(used, 0, static_cast<int>(sizeof(text)) - 1);
  vsnprintf(text + used, sizeof(text) - static_cast<size_t>(used), format,
            arguments);
  // One call per line, so that those of several processes do not mix.
  fputs(text, stderr);
}

ParameterTable& ParameterTable::Get() {
  static auto* const table = new ParameterTable;
  return *table;
}

ParameterTable::ParameterTable() {
  const auto add = [this](const char* name, fi_param_type type,
                          const char* help) {
    parameters_.push_back({VariableName(nullptr, name), type, help});
  };
  add("log_level", FI_PARAM_STRING,
      "Specify logging level: warn, trace, info, debug (default: warn)");
  add("log_prov", FI_PARAM_STRING,
      "Specify specific provider to log (default: all)");
  add("log_subsys", FI_PARAM_STRING,
      "Specify specific subsystem to log (default: all)");
  add("log_interval", FI_PARAM_INT,
      "Delay in ms between rate limited log messages (default 2000)");
  add("provider", FI_PARAM_STRING,
      "Only use specified provider (default: all available)");
}

int ParameterTable::Define(const char* provider, const char* name,
                           fi_param_type type, const std::string& help) {
  if (name == nullptr || *name == '\0' || help.empty() ||
      static_cast<unsigned>(type) > FI_PARAM_SIZE_T) {
    return -FI_EINVAL;
  }
  Parameter made = {VariableName(provider, name), type, help};
  if (provider != nullptr) {
    made.help = std::string(provider) + ": " + help;
  }
  const std::lock_guard lock(mutex_);
  const bool known = std::any_of(
      parameters_.begin(), parameters_.end(),
      [&](const Parameter& other) { return other.name == made.name; });
  if (!known) {
    parameters_.push_back(std::move(made));
  }
  return FI_SUCCESS;
}

int ParameterTable::Read(const char* provider, const char* name, void* value) {
  if (name == nullptr || value == nullptr) {
    return -FI_EINVAL;
  }
  const std::string variable = VariableName(provider, name);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(
      parameters_.begin(), parameters_.end(),
      [&](const Parameter& other) { return other.name == variable; });
  if (found == parameters_.end()) {
    return -FI_ENOENT;
  }
  char* text = secure_getenv(variable.c_str());
  if (text == nullptr || *text == '\0') {
    return -FI_ENODATA;
  }
  switch (found->type) {
    case FI_PARAM_STRING:
      memcpy(value, &text, sizeof(text));
      return FI_SUCCESS;
    case FI_PARAM_INT:
      return ParseNumber<int>(text, value);
    case FI_PARAM_BOOL:
      return ParseBool(text, value);
    case FI_PARAM_SIZE_T:
      return ParseNumber<size_t>(text, value);
  }
  return -FI_EINVAL;
}

int ParameterTable::List(fi_param** parameters, int* count) {
  const std::lock_guard lock(mutex_);
  // One more, all null, ends the list for `Free`.
  auto* list =
      static_cast<fi_param*>(calloc(parameters_.size() + 1, sizeof(fi_param)));
  if (list == nullptr) {
    return -FI_ENOMEM;
  }
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const Parameter& parameter = parameters_[index];
    const char* value = secure_getenv(parameter.name.c_str());
    list[index].name = core::DuplicateText(parameter.name.c_str());
    list[index].type = parameter.type;
    list[index].help_string = core::DuplicateText(parameter.help.c_str());
    list[index].value = value != nullptr ? core::DuplicateText(value) : nullptr;
    if (list[index].name == nullptr || list[index].help_string == nullptr ||
        (value != nullptr && list[index].value == nullptr)) {
      Free(list);
      return -FI_ENOMEM;
    }
  }
  *parameters = list;
  *count = static_cast<int>(parameters_.size());
  return FI_SUCCESS;
}

void ParameterTable::Free(fi_param* parameters) noexcept {
  if (parameters == nullptr) {
    return;
  }
  for (fi_param* entry = parameters;
       entry->name != nullptr || entry->help_string != nullptr; ++entry) {
    free(const_cast<char*>(entry->name));
    free(const_cast<char*>(entry->help_string));
    free(const_cast<char*>(entry->value));
  }
  free(parameters);
}

const char* ErrorText(int number) noexcept {
  if (number < 0 && number != INT32_MIN) {
    number = -number;
  }
  switch (number) {
    case FI_EOTHER:
      return "Unspecified error";
    case FI_ETOOSMALL:
      return "Provided buffer is too small";
    case FI_EOPBADSTATE:
      return "Operation not permitted in current state";
    case FI_EAVAIL:
      return "Error available";
    case FI_EBADFLAGS:
      return "Flags not supported";
    case FI_ENOEQ:
      return "Missing or unavailable event queue";
    case FI_EDOMAIN:
      return "Invalid resource domain";
    case FI_ENOCQ:
      return "Missing or unavailable completion queue";
    case FI_ECRC:
      return "CRC error";
    case FI_ETRUNC:
      return "Truncation error";
    case FI_ENOKEY:
      return "Required key not available";
    case FI_ENOAV:
      return "Missing or unavailable address vector";
    case FI_EOVERRUN:
      return "Queue has been overrun";
    case FI_ENORX:
      return "Receiver not ready, no receive buffers available";
    default:
      break;
  }
  const char* text = number >= 0 && number < FI_ERRNO_OFFSET
                         ? strerrordesc_np(number)
                         : nullptr;
  return text != nullptr ? text : "Unknown error";
}

}  // namespace heddle::entry
