// SPDX-License-Identifier: Apache-2.0
// Runs each input in a child process, so that all start from the same state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tests/fuzz/fuzz_nic.h"

namespace heddle::fuzz {

// Runs `body` on a copy of this process and tells libFuzzer which lines of the
// RTL it reached. Prints the property and aborts if one did not hold; the child
// dies with this process.
void RunIsolated(const FuzzNic& nic, const std::function<void()>& body);

// Which of `kScenes` has frames of the form `form` (any) and messages on RUD or
// ROD.
inline constexpr size_t kScenes = 12;
size_t SceneNumber(uint8_t form, bool rud);

// That scene, created at its first use.
Scene& SceneOf(uint8_t form, bool rud = false);

}  // namespace heddle::fuzz
