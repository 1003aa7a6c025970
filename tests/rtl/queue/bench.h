// SPDX-License-Identifier: Apache-2.0
// What the benches of units with doorbells and a table port share.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/rtl/queue/bits.h"

namespace heddle::test {

inline constexpr uint32_t kTableRequestBits = 2 + 8 + 16 + 512;
inline constexpr uint32_t kTableResponseBits = 1 + 1 + 512;

template <typename Port>
void PutDoorbell(Port* port, uint32_t page, uint32_t offset, uint64_t data) {
  BitWriter(84).Put(page, 8).Put(offset, 12).Put(data, 64).To(port);
}

// Runs a table operation to its end. `tick` is called for each cycle with the
// request applied and must settle, sample and advance.
template <typename Model, typename Cfg, typename Tick>
std::optional<std::pair<bool, Cfg>> RunTable(Model* dut, contract::TableOp op,
                                             contract::Table table,
                                             uint32_t index, const Cfg& cfg,
                                             uint32_t limit, Tick tick) {
  static_assert(sizeof(Cfg) == 64);
  uint64_t words[8];
  std::memcpy(words, &cfg, 64);
  BitWriter writer(kTableRequestBits);
  writer.Put(static_cast<uint64_t>(op), 2)
      .Put(static_cast<uint64_t>(table), 8)
      .Put(index, 16);
  for (int i = 8; i-- > 0;) {
    writer.Put(words[i], 64);
  }
  for (uint32_t i = 0; i < limit; ++i) {
    dut->tbl_valid_i = 1;
    writer.To(&dut->tbl_req_i);
    bool done = false;
    bool error = false;
    Cfg entry;
    tick([&] {
      BitReader reader(dut->tbl_rsp_o, kTableResponseBits);
      done = reader.Take(1);
      error = reader.Take(1);
      uint64_t data[8];
      for (int w = 8; w-- > 0;) {
        data[w] = reader.Take(64);
      }
      std::memcpy(static_cast<void*>(&entry), data, 64);
    });
    dut->tbl_valid_i = 0;
    if (done) {
      return std::pair(error, entry);
    }
  }
  return std::nullopt;
}

}  // namespace heddle::test
