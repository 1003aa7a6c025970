// SPDX-License-Identifier: Apache-2.0
#include "firmware/mgmt/slow_path.h"

#include "firmware/base/field.h"

namespace heddle::firmware {
namespace {

constexpr uint32_t kWordBytes = sizeof(uint32_t);
constexpr uint32_t kByteBits = 8;

}  // namespace

bool SlowPath::Receive(Frame& frame) {
  frame.bytes = GetField(bus_.Read(contract::kMgmtSlowPathRxStatusOffset),
                         contract::kMgmtSlowPathRxStatusBytesMask,
                         contract::kMgmtSlowPathRxStatusBytesLsb);
  if (frame.bytes == 0) {
    return false;
  }
  if (frame.bytes > sizeof(frame.byte)) {
    frame.bytes = sizeof(frame.byte);
  }
  uint32_t word = 0;
  for (uint32_t i = 0; i < frame.bytes; ++i) {
    if (i % kWordBytes == 0) {
      word = bus_.Read(contract::kMgmtSlowPathRxDataOffset + i);
    }
    frame.byte[i] =
        static_cast<uint8_t>(word >> (kByteBits * (i % kWordBytes)));
  }
  Discard();
  return true;
}

void SlowPath::Discard() {
  bus_.Write(contract::kMgmtSlowPathRxStatusOffset,
             contract::kMgmtSlowPathRxStatusPopMask);
}

bool SlowPath::Send(const Frame& frame) {
  uint32_t polls = 0;
  while ((bus_.Read(contract::kMgmtSlowPathTxControlOffset) &
          contract::kMgmtSlowPathTxControlGoMask) != 0) {
    if (++polls == kSendPolls) {
      return false;
    }
  }
  for (uint32_t i = 0; i < frame.bytes; i += kWordBytes) {
    uint32_t word = 0;
    for (uint32_t j = 0; j < kWordBytes && i + j < frame.bytes; ++j) {
      word |= static_cast<uint32_t>(frame.byte[i + j]) << (kByteBits * j);
    }
    bus_.Write(contract::kMgmtSlowPathTxDataOffset + i, word);
  }
  bus_.Write(contract::kMgmtSlowPathTxControlOffset,
             contract::kMgmtSlowPathTxControlGoMask |
                 frame.bytes << contract::kMgmtSlowPathTxControlBytesLsb);
  return true;
}

}  // namespace heddle::firmware
