// SPDX-License-Identifier: Apache-2.0
#include "host/lib/base/core_services.h"

namespace heddle::base {
namespace {

constexpr CoreServices kSilent = {
    .log_enabled = [](LogLevel /*level*/,
                      LogSubsystem /*subsystem*/) noexcept { return false; },
    .log = [](LogLevel /*level*/, const LogPlace& /*place*/,
              const char* /*line*/) noexcept {},
    .define_parameter = [](const Parameter& /*parameter*/) noexcept {},
};

constinit const CoreServices* core = &kSilent;

}  // namespace

const CoreServices& Core() noexcept {
  return *core;
}

void UseCore(const CoreServices& services) noexcept {
  core = &services;
}

}  // namespace heddle::base
