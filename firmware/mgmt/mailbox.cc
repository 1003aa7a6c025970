// SPDX-License-Identifier: Apache-2.0
#include "firmware/mgmt/mailbox.h"

#include "firmware/mgmt/poll_limit.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {
namespace {

constexpr uint32_t WordOffset(uint32_t index) {
  return contract::kMgmtMailboxDataOffset +
         index * contract::kMgmtMailboxDataStride;
}

constexpr uint32_t kWords = sizeof(Mailbox::Block) / sizeof(uint32_t);

}  // namespace

Status Mailbox::ReadHost(uint64_t address, Block& block) {
  const Status status = Run(address, 0);
  if (!status.ok()) {
    return status;
  }
  for (uint32_t i = 0; i < kWords; ++i) {
    block.words[i] = bus_.Read(WordOffset(i));
  }
  return {};
}

Status Mailbox::WriteHost(uint64_t address, const Block& block) {
  for (uint32_t i = 0; i < kWords; ++i) {
    bus_.Write(WordOffset(i), block.words[i]);
  }
  return Run(address, contract::kMgmtMailboxControlToHostMask);
}

bool Mailbox::Runs() {
  return (bus_.Read(contract::kMgmtMailboxControlOffset) &
          contract::kMgmtMailboxControlGoMask) != 0;
}

Status Mailbox::Run(uint64_t address, uint32_t direction) {
  bus_.Write(contract::kMgmtMailboxAddressOffset,
             static_cast<uint32_t>(address));
  bus_.Write(contract::kMgmtMailboxAddressOffset + 4,
             static_cast<uint32_t>(address >> 32));
  bus_.Write(contract::kMgmtMailboxControlOffset,
             direction | contract::kMgmtMailboxControlGoMask |
                 static_cast<uint32_t>(sizeof(Block))
                     << contract::kMgmtMailboxControlBytesLsb);
  for (uint32_t i = 0; i < kPollLimit; ++i) {
    const uint32_t control = bus_.Read(contract::kMgmtMailboxControlOffset);
    if ((control & contract::kMgmtMailboxControlGoMask) != 0) {
      continue;
    }
    if ((control & contract::kMgmtMailboxControlErrorMask) != 0) {
      return {Module::kMailbox, kHostRefused, StatusClass::kRefused};
    }
    return {};
  }
  return {Module::kMailbox, kStuck, StatusClass::kTimeout};
}

}  // namespace heddle::firmware
