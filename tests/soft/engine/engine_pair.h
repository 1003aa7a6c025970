// SPDX-License-Identifier: Apache-2.0
// Two engines on one fabric: what `a_` does to memory of `b_`.
#pragma once

#include <cstdint>
#include <numeric>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"

namespace heddle::soft::engine {

// Ordered and unordered contexts.
class EnginePairTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr uint32_t kBytes = 64 * 1024;
  static constexpr uint32_t kRegion = 3;

  EnginePairTest() {
    std::iota(local_, local_ + kBytes, uint8_t{1});
    a_.tx.ordered = GetParam() ? 0xff : 0;
    a_.Restart();
  }
  void Run() { Settle(fabric_, {&a_, &b_}); }
  // An operation of `a_` on the region.
  contract::TxDesc Op(contract::Opcode opcode, uint64_t offset,
                      uint32_t length) {
    contract::TxDesc descriptor = a_.Rma(opcode, 1, local_, length);
    descriptor.match_bits = region_.key;
    descriptor.remote_offset = offset;
    return descriptor;
  }
  void DisableTxContext() {
    contract::TxCtxCfg off = a_.tx;
    off.enable = 0;
    ASSERT_TRUE(a_.Write(contract::Table::kTxCtx, 0, off));
  }

  FakeFabric fabric_{TestSeed()};
  EngineNode a_{&fabric_};
  EngineNode b_{&fabric_};
  uint8_t* local_ = a_.Allocate(kBytes);
  // Around the region: no operation may write there.
  uint8_t* before_ = b_.Allocate(64);
  uint8_t* remote_ = b_.Allocate(kBytes);
  uint8_t* after_ = b_.Allocate(64);
  contract::RegionCfg region_ = b_.Region(
      kRegion, remote_, kBytes,
      contract::kRegionFlagRemoteRead | contract::kRegionFlagRemoteWrite);
};

}  // namespace heddle::soft::engine
