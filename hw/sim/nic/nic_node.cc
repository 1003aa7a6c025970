// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/nic/nic_node.h"

#include <array>
#include <optional>
#include <utility>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/device/statistic_names.h"
#include "hw/sim/model/model_stopped.h"

namespace heddle::sim::nic {
namespace {

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kBitsPerByte = 8;

device::MemoryOptions WithBusWidth(device::MemoryOptions options) {
  options.bus_bytes = NicModel::BusBytes();
  return options;
}

}  // namespace

NicNode::NicNode(const NicNodeOptions& options, pins::MacLink* mac,
                 firmware::Switch* ports, NicModel::InterruptSink interrupt,
                 std::function<void()> advance)
    : memory_(WithBusWidth(options.memory)),
      model_(options.model, &memory_, mac, std::move(interrupt)),
      advance_(std::move(advance)),
      firmware_(*this, *ports, object_heap_, options.board) {}

void NicNode::Start() {
  try {
    firmware_.Start();
  } catch (const model::ModelStopped&) {
    // Thrown by our own bus out of the control program; the model says why.
  }
}

void NicNode::SetLink(bool up) {
  if (up == link_up_ || model_.failed()) {
    return;
  }
  link_up_ = up;
  try {
    firmware_.SetLink(up);
  } catch (const model::ModelStopped&) {
    // As above.
  }
}

void NicNode::ServeFirmware() {
  if (!model_.management_event() || model_.failed()) {
    return;
  }
  try {
    firmware_.Step();
  } catch (const model::ModelStopped&) {
    // As above.
  }
}

bool NicNode::AdvanceUntil(const std::function<bool()>& done,
                           const char* what) {
  for (uint32_t i = 0; i < kAccessLimitCycles; ++i) {
    if (model_.failed()) {
      return false;
    }
    advance_();
    if (done()) {
      return true;
    }
  }
  model_.Fail(std::string(what) + " not answered");
  return false;
}

uint32_t NicNode::Access(bool write, uint32_t offset, uint32_t value) {
  model_.StartManagement(write, offset, value);
  std::optional<uint32_t> result;
  const auto done = [this, &result] {
    result = model_.TakeManagement();
    return result.has_value();
  };
  if (!AdvanceUntil(done, "management access")) {
    // The control program may poll a register that will never change.
    throw model::ModelStopped(model_.failure());
  }
  return *result;
}

uint32_t NicNode::Read(uint32_t offset) {
  return Access(false, offset, 0);
}

void NicNode::Write(uint32_t offset, uint32_t value) {
  Access(true, offset, value);
}

uint64_t NicNode::ReadBar(uint32_t address, uint32_t bytes) {
  const uint64_t all_ones = ~uint64_t{0};
  std::optional<uint64_t> word;
  model_.bar().StartRead(address);
  const auto done = [this, &word] {
    word = model_.bar().TakeRead();
    return word.has_value();
  };
  if (!AdvanceUntil(done, "BAR read")) {
    word = all_ones;
  }
  const uint32_t shift = address % kWordBytes * kBitsPerByte;
  const uint64_t mask = bytes == kWordBytes
                            ? all_ones
                            : (uint64_t{1} << (bytes * kBitsPerByte)) - 1;
  return *word >> shift & mask;
}

void NicNode::WriteBar(uint32_t address, uint64_t value, uint32_t bytes) {
  model_.bar().Write(address, value, bytes);
  AdvanceUntil([this] { return model_.bar().quiet(); }, "BAR write");
}

uint32_t NicNode::CountOpenPdcs() {
  uint32_t count = 0;
  try {
    count = Read(contract::kMgmtOpenPdcsOffset);
  } catch (const model::ModelStopped&) {
    return 0;
  }
  return ((count & contract::kMgmtOpenPdcsInitiatorMask) >>
          contract::kMgmtOpenPdcsInitiatorLsb) +
         ((count & contract::kMgmtOpenPdcsTargetMask) >>
          contract::kMgmtOpenPdcsTargetLsb);
}

std::string NicNode::StatisticsText() {
  std::string text;
  for (const device::StatisticName& statistic : device::kStatisticNames) {
    const uint32_t address = pins::kBar0Address +
                             contract::kBar0StatisticsOffset +
                             static_cast<uint32_t>(statistic.value) *
                                 contract::kBar0StatisticsStride;
    text += std::string(statistic.name) + ' ' +
            std::to_string(ReadBar(address, kWordBytes)) + '\n';
  }
  return text;
}

}  // namespace heddle::sim::nic
