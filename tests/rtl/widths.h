// SPDX-License-Identifier: Apache-2.0
// Sizes of hw/rtl/heddle_pkg.sv that many records contain.
#pragma once

namespace heddle::test {

inline constexpr unsigned kGenBits = 28;                   // GenW.
inline constexpr unsigned kTxOpBits = 984 + 2 * kGenBits;  // tx_op_t.
inline constexpr unsigned kMsgPacketBits = 457 + kGenBits;
inline constexpr unsigned kMsgDoneBits = 198 + 2 * kGenBits;

}  // namespace heddle::test
