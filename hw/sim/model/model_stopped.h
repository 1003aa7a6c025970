// SPDX-License-Identifier: Apache-2.0
// How a Verilated model ends on an assertion, $stop, $finish or an internal
// error: by an exception out of `eval`, not by ending the process.
#pragma once

#include <stdexcept>
#include <string>

namespace heddle::sim::model {

// The model that threw must not be evaluated again.
class ModelStopped : public std::runtime_error {
 public:
  explicit ModelStopped(const std::string& reason)
      : std::runtime_error(reason) {}
};

}  // namespace heddle::sim::model
