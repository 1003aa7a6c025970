// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/open_device.h"

#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "host/lib/base/log.h"
#include "host/lib/base/status.h"
#include "host/lib/nic/backend_device.h"
#include "host/lib/nic/functions.h"

namespace heddle::core {
namespace {

using base::Log;
using base::LogLevel;
using base::LogSubsystem;

// Device kind of a domain name: "rtl0" is the first "rtl".
std::string DeviceKind(const char* name) {
  std::string_view kind(name);
  while (!kind.empty() && kind.back() >= '0' && kind.back() <= '9') {
    kind.remove_suffix(1);
  }
  return std::string(kind);
}

std::vector<const DeviceOpener*>& Openers() {
  static auto* const openers = new std::vector<const DeviceOpener*>;
  return *openers;
}

// One opening, from the name to the device.
class Opening {
 public:
  Opening(const char* name, const Settings& settings, const OwnAddresses& own)
      : name_(name), settings_(settings), own_(own) {}

  int Open(const std::optional<base::SocketAddress>& source,
           OpenedDevice* opened);

 private:
  int OpenSimulated();
  int OpenFunction(const std::string& name);
  int Take(Result<std::unique_ptr<nic::Nic>> opened, const std::string& message,
           LogLevel level);
  int SetTiming();
  int ChooseAddress(const std::optional<base::SocketAddress>& source);

  const char* name_;
  const Settings& settings_;
  const OwnAddresses& own_;
  std::unique_ptr<nic::Nic> nic_;
  base::SocketAddress address_;
};

int Opening::Open(const std::optional<base::SocketAddress>& source,
                  OpenedDevice* opened) {
  const auto function = nic::FunctionName(name_);
  int result = function.has_value() ? OpenFunction(*function) : 0;
  if (result == 0) {
    result = ChooseAddress(source);
  }
  if (result == 0 && !function.has_value()) {
    result = OpenSimulated();
  }
  if (result != 0) {
    return result;
  }
  if (settings_.relative() &&
      !nic_->info().Has(contract::kCapabilityRelative)) {
    Log(LogLevel::kWarn, LogSubsystem::kDomain,
        "domain %s: the device has no relative addressing; unset "
        "FI_HEDDLE_ADDRESSING here and at all peers",
        name_);
    return -FI_EOPNOTSUPP;
  }
  Log(LogLevel::kInfo, LogSubsystem::kDomain,
      "domain %s: address %s, wire '%s', %u transmit and %u receive "
      "contexts, %u completion queues",
      name_, address_.IpText().c_str(), settings_.wire.c_str(),
      nic_->info().counts.tx_contexts, nic_->info().counts.rx_contexts,
      nic_->info().counts.completion_queues);
  opened->device = std::make_unique<nic::BackendDevice>(
      std::move(nic_), std::chrono::nanoseconds(settings_.rto_ns));
  opened->address = address_;
  return 0;
}

// That of the function, else the source that was asked for, else the host's.
int Opening::ChooseAddress(const std::optional<base::SocketAddress>& source) {
  std::optional<base::SocketAddress> own;
  if (nic_ != nullptr) {
    const auto ip = nic_->QueryIp();
    if (!ip.ok()) {
      return base::ToReturnCode(ip.error());
    }
    own = base::SocketAddress::FromText(ip.value());
  }
  if (source.has_value() && !source->is_any()) {
    const base::SocketAddress named = own_.OnWire(*source).WithPort(0);
    if (own.has_value() && named != *own) {
      Log(LogLevel::kWarn, LogSubsystem::kDomain,
          "source address %s is not that of the function, %s",
          source->IpText().c_str(), own->IpText().c_str());
      return -FI_EADDRNOTAVAIL;
    }
    own = named;
  } else if (!own.has_value()) {
    own = own_.Own(source.has_value() ? int{source->family()} : AF_UNSPEC);
  }
  if (!own.has_value()) {
    return -FI_EADDRNOTAVAIL;
  }
  address_ = *own;
  return 0;
}

int Opening::OpenSimulated() {
  std::string message;
  return Take(nic::Nic::Open(DeviceKind(name_),
                             {.path = settings_.sim_path,
                              .settings = SimulatorOptionsOf(
                                  settings_, address_.IpText())},
                             message),
              message, LogLevel::kWarn);
}

int Opening::OpenFunction(const std::string& name) {
  std::string message;
  auto opened = nic::Nic::OpenFunction(name, settings_.vf_token, message);
  // The application continues with the next of those that it was offered.
  const bool others = !opened.ok() && opened.error() == Errno{EBUSY} &&
                      settings_.device.function.empty() &&
                      nic::HasAnotherFunction(name);
  const int result = Take(std::move(opened), message,
                          others ? LogLevel::kInfo : LogLevel::kWarn);
  if (result != 0) {
    return result;
  }
  if (const std::string idle = SetForSimulatorsOnly(settings_); !idle.empty()) {
    Log(LogLevel::kWarn, LogSubsystem::kDomain,
        "domain %s: ignored: %s (simulated devices only)", name_, idle.c_str());
  }
  return SetTiming();
}

int Opening::SetTiming() {
  const Settings defaults;
  if (settings_.rto_ns == defaults.rto_ns &&
      settings_.dead_ns == defaults.dead_ns) {
    return 0;
  }
  const auto set =
      nic_->admin().SetTiming(std::chrono::nanoseconds(settings_.rto_ns),
                              std::chrono::nanoseconds(settings_.dead_ns));
  if (set.ok()) {
    return 0;
  }
  const int error = static_cast<int>(set.error());
  Log(LogLevel::kWarn, LogSubsystem::kDomain,
      "domain %s: FI_HEDDLE_RTO_NS or FI_HEDDLE_DEAD_NS: %s", name_,
      error == EINVAL
          ? "longer than the function can measure"
          : (error == ENOMEM ? nic_->device().Explain(set.error(), 0)
                             : std::string(std::strerror(error)))
                .c_str());
  return base::ToReturnCode(set.error());
}

int Opening::Take(Result<std::unique_ptr<nic::Nic>> opened,
                  const std::string& message, LogLevel level) {
  if (!opened.ok()) {
    Log(level, LogSubsystem::kDomain, "domain %s: %s", name_, message.c_str());
    return base::ToReturnCode(opened.error());
  }
  nic_ = std::move(opened.value());
  return 0;
}

}  // namespace

bool IsFunctionName(const char* domain_name) {
  return nic::FunctionName(domain_name).has_value();
}

void AddOpener(const DeviceOpener& opener) {
  Openers().push_back(&opener);
}

int OpenDevice(const char* domain_name,
               const std::optional<base::SocketAddress>& source,
               const Settings& settings, const OwnAddresses& own,
               OpenedDevice* opened) {
  for (const DeviceOpener* opener : Openers()) {
    if (opener->knows(domain_name)) {
      return opener->open(domain_name, source, settings, own, opened);
    }
  }
  return Opening(domain_name, settings, own).Open(source, opened);
}

}  // namespace heddle::core
