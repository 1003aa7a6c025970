// SPDX-License-Identifier: Apache-2.0
#include "firmware/mgmt/table_port.h"

#include "firmware/mgmt/poll_limit.h"

namespace heddle::firmware {

Status TablePort::WriteWords(contract::Table table, uint32_t index,
                             const Words& words) {
  for (uint32_t i = 0; i < contract::kMgmtTableDataCount; ++i) {
    bus_.Write(
        contract::kMgmtTableDataOffset + i * contract::kMgmtTableDataStride,
        words.word[i]);
  }
  Start(table, index, contract::TableOp::kWrite);
  for (uint32_t i = 0; i < kPollLimit; ++i) {
    const uint32_t control = bus_.Read(contract::kMgmtTableControlOffset);
    if ((control & contract::kMgmtTableControlGoMask) == 0) {
      return Outcome(control);
    }
  }
  return {Module::kTablePort, kStuck, StatusClass::kTimeout};
}

void TablePort::StartDrain(contract::Table table, uint32_t index) {
  Start(table, index, contract::TableOp::kDrain);
}

bool TablePort::DrainRuns(Status& status) {
  const uint32_t control = bus_.Read(contract::kMgmtTableControlOffset);
  if ((control & contract::kMgmtTableControlGoMask) != 0) {
    return true;
  }
  status = Outcome(control);
  return false;
}

bool TablePort::Runs() {
  return (bus_.Read(contract::kMgmtTableControlOffset) &
          contract::kMgmtTableControlGoMask) != 0;
}

void TablePort::Start(contract::Table table, uint32_t index,
                      contract::TableOp op) {
  bus_.Write(contract::kMgmtTableControlOffset,
             index << contract::kMgmtTableControlIndexLsb |
                 static_cast<uint32_t>(table)
                     << contract::kMgmtTableControlTableLsb |
                 static_cast<uint32_t>(op) << contract::kMgmtTableControlOpLsb |
                 contract::kMgmtTableControlGoMask);
}

Status TablePort::Outcome(uint32_t control) {
  if ((control & contract::kMgmtTableControlErrorMask) == 0) {
    return {};
  }
  const uint32_t table = GetField(control, contract::kMgmtTableControlTableMask,
                                  contract::kMgmtTableControlTableLsb);
  return {Module::kTablePort, static_cast<uint8_t>(table),
          StatusClass::kRefused};
}

}  // namespace heddle::firmware
