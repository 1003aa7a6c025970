// SPDX-License-Identifier: Apache-2.0
#include "tools/heddle/ladder.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/base/hex.h"
#include "hw/contract/gen/heddle_text.h"
#include "tools/heddle/command.h"
#include "tools/heddle/self_loop.h"

namespace heddle::tool {
namespace {

using contract::Statistic;

}  // namespace

const std::array<Ladder::Step, 6> Ladder::kSteps = {
    {{"identity", &Ladder::Identity},
     {"registers", &Ladder::Registers},
     {"memory", &Ladder::Memory},
     {"interrupts", &Ladder::Interrupts},
     {"wire", &Ladder::Wire},
     {"rings", &Ladder::Rings}}};

std::string Ladder::Identity() {
  std::string message;
  const auto info = WaitReady(device_, limit_, message);
  if (!info.ok()) {
    throw CommandError(message);
  }
  info_ = info.value();
  if (!info_.Has(contract::kCapabilitySend)) {
    throw CommandError("the device does not offer send; use a newer image");
  }
  return "a Heddle NIC of contract " +
         std::to_string(contract::kContractMajor) + "." +
         std::to_string(info_.contract_minor) + ", firmware ready, " +
         std::to_string(info_.counts.tx_contexts) +
         " transmit contexts, link " + (info_.link_up ? "up" : "down");
}

// Every bit of the address from `lowest` on, alone, and nothing else with it.
void Ladder::WalkBits(uint32_t offset, uint64_t lowest) {
  for (uint64_t bit = lowest; bit != 0; bit <<= 1) {
    device_.WriteRegister64(offset, bit);
    const uint64_t whole = device_.ReadRegister64(offset);
    const uint64_t halves =
        device_.ReadRegister32(offset) |
        uint64_t{device_.ReadRegister32(offset + sizeof(uint32_t))} << 32;
    if (whole != bit || halves != bit) {
      throw CommandError("the register at " + Hex(offset) + " keeps " +
                         Hex(whole) + ", in halves " + Hex(halves) +
                         ", where " + Hex(bit) + " was written");
    }
  }
  device_.WriteRegister64(offset, 0);
}

std::string Ladder::Registers() {
  constexpr uint64_t kAlignment = 64;
  constexpr uint32_t kNeighbour = contract::kBar0AdminAnswerBaseOffset;
  WalkBits(contract::kBar0AdminCommandBaseOffset, kAlignment);
  if (device_.ReadRegister64(kNeighbour) != 0) {
    throw CommandError("a write of one register changes another");
  }
  WalkBits(kNeighbour, kAlignment);
  int constant = 0;
  for (const auto& what : contract::text::kBar0Registers) {
    if (what.is_writable || what.count != 1 ||
        what.offset >= contract::kBar0DeviceStatusOffset) {
      continue;
    }
    const uint32_t before = device_.ReadRegister32(what.offset);
    device_.WriteRegister32(what.offset, ~before);
    if (device_.ReadRegister32(what.offset) != before) {
      throw CommandError(std::string("a write changes ") + what.name +
                         ", which is constant");
    }
    ++constant;
  }
  return "every address bit of both ring registers in words and halves; " +
         std::to_string(constant) + " constant registers keep what they are";
}

std::string Ladder::Memory() {
  auto admin = AdminQueue::Create(device_, limit_);
  if (!admin.ok()) {
    throw CommandError(std::string("the admin queue: ") +
                       std::strerror(static_cast<int>(admin.error())));
  }
  admin_ = std::move(admin.value());
  constexpr uint32_t kCommands = 4u << AdminQueue::kLog2Entries;
  for (uint32_t i = 0; i < kCommands; ++i) {
    const auto port = admin_->QueryPort();
    if (!port.ok()) {
      throw CommandError("command " + std::to_string(i) + ": " +
                         std::strerror(static_cast<int>(port.error())) + " " +
                         admin_->failure());
    }
    port_ = port.value();
  }
  return std::to_string(kCommands) +
         " commands read from host memory and as many answers written, both "
         "rings wrapped";
}

void Ladder::Interrupt(uint8_t vector) {
  const std::string name = "vector " + std::to_string(vector);
  const int fd = device_.interrupt_fd(vector);
  if (fd < 0) {
    throw CommandError(name +
                       " has no eventfd: this process may open no more files, "
                       "or the machine has no more vectors");
  }
  SelfLoop loop(device_, *admin_, port_, {.vector = vector, .limit = limit_});
  loop.PostForInterrupt();
  pollfd raised{.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&raised, 1, static_cast<int>(limit_.count())) != 1) {
    throw CommandError(name + " is not raised within " +
                       std::to_string(limit_.count()) + " ms");
  }
  uint64_t times = 0;
  if (read(fd, &times, sizeof(times)) != sizeof(times)) {
    throw CommandError(name + " cannot be read");
  }
  const std::string broken = loop.FinishInterrupted();
  if (!broken.empty()) {
    throw CommandError(broken);
  }
}

std::string Ladder::Interrupts() {
  for (uint32_t vector = 0; vector < info_.interrupt_vectors; ++vector) {
    Interrupt(static_cast<uint8_t>(vector));
  }
  return "each of " + std::to_string(info_.interrupt_vectors) +
         " vectors raised by a completion queue armed for it";
}

void Ladder::Exchange(SelfLoop& loop, uint32_t bytes, uint32_t seed) {
  const std::string broken = loop.Exchange(bytes, seed);
  if (!broken.empty()) {
    throw CommandError(broken);
  }
}

std::string Ladder::Wire() {
  SelfLoop loop(device_, *admin_, port_, {.limit = limit_});
  const uint64_t sent = Count(Statistic::kTxFrames);
  const uint64_t received = Count(Statistic::kRxFrames);
  const uint32_t mtu = port_.payload_mtu_bytes;
  uint32_t messages = 0;
  for (const uint32_t bytes :
       {uint32_t{1}, uint32_t{17}, mtu - 1, mtu, mtu + 1, SelfLoop::kBytes}) {
    Exchange(loop, std::min(bytes, SelfLoop::kBytes), ++messages);
  }
  const uint64_t out = Count(Statistic::kTxFrames) - sent;
  const uint64_t in = Count(Statistic::kRxFrames) - received;
  if (out == 0 || in == 0) {
    throw CommandError("messages arrived without frames on the wire");
  }
  return std::to_string(messages) + " messages of 1 to " +
         std::to_string(SelfLoop::kBytes) +
         " bytes to itself, compared byte by byte; " + std::to_string(out) +
         " frames out, " + std::to_string(in) + " in";
}

std::string Ladder::Rings() {
  uint32_t messages = 0;
  {
    SelfLoop loop(device_, *admin_, port_, {.limit = limit_});
    constexpr uint32_t kRounds = 4;
    constexpr uint32_t kSmall = 64;
    for (uint32_t i = 0; i < kRounds * loop.ring_slots(); ++i) {
      Exchange(loop, i % kSmall, i);
      ++messages;
    }
  }
  if (device_.failed()) {
    throw CommandError("the device failed: " + device_.failure());
  }
  return std::to_string(messages) +
         " messages in order; transmit, receive and completion rings wrapped "
         "4 times, contexts destroyed";
}

}  // namespace heddle::tool
