// SPDX-License-Identifier: Apache-2.0
// Addresses as the contract states them.
#pragma once

#include "hw/contract/fabric_address.h"

namespace heddle::soft::wire {

using contract::FabricAddress;

}  // namespace heddle::soft::wire
