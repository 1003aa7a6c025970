// SPDX-License-Identifier: Apache-2.0
// Pieces of a message, and memory that stays mapped, for the layers above.
#pragma once

#include "driver/dma/registrar.h"

namespace heddle::nic {

using Segment = heddle::Segment;
using Region = heddle::MappedRegion;
using LocalPiece = heddle::LocalPiece;

// Most pieces of one message.
inline constexpr size_t kMaxSegments = Registrar::kMaxSegments;

}  // namespace heddle::nic
