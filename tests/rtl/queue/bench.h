// SPDX-License-Identifier: Apache-2.0
// What the benches of units with doorbells and a table port share.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {

template <typename Port>
void PutDoorbell(Port* port, uint32_t page, uint32_t offset, uint64_t data) {
  rtl::Drive(*port, rtl::Doorbell{.page = static_cast<uint8_t>(page),
                                  .offset = static_cast<uint16_t>(offset),
                                  .data = data});
}

// Runs a table operation to its end. `tick` is called for each cycle with the
// request applied and must settle, sample and advance.
template <typename Model, typename Cfg, typename Tick>
std::optional<std::pair<bool, Cfg>> RunTable(Model* dut, contract::TableOp op,
                                             contract::Table table,
                                             uint32_t index, const Cfg& cfg,
                                             uint32_t limit, Tick tick) {
  rtl::TableReq request = {
      .op = op, .sel = table, .index = static_cast<uint16_t>(index)};
  request.data = request.data.From(cfg);
  for (uint32_t i = 0; i < limit; ++i) {
    dut->tbl_valid_i = 1;
    rtl::Drive(dut->tbl_req_i, request);
    rtl::TableRsp response;
    tick([&] { response = rtl::Sample<rtl::TableRsp>(dut->tbl_rsp_o); });
    dut->tbl_valid_i = 0;
    if (response.done) {
      return std::pair(response.error, response.data.template To<Cfg>());
    }
  }
  return std::nullopt;
}

}  // namespace heddle::test
