// SPDX-License-Identifier: Apache-2.0
// The core that this form of the library runs in, made known to the rest.
#pragma once

namespace heddle::entry {

// services_own.cc or services_stock.cc, by the form.
void UseThisCore() noexcept;

}  // namespace heddle::entry
