// SPDX-License-Identifier: Apache-2.0
#include "driver/control/admin_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <utility>

#include "driver/base/mmio.h"
#include "driver/control/wait.h"

namespace heddle {
namespace {

constexpr uint32_t kEntries = 1U << AdminQueue::kLog2Entries;
constexpr uint32_t kMask = kEntries - 1;

// The phase is the most significant byte of the answer's last eight.
constexpr size_t kLastWord = sizeof(contract::AdminAnswer) / 8 - 1;
constexpr uint32_t kPhaseLsb = 56;
static_assert(offsetof(contract::AdminAnswer, phase) ==
              sizeof(contract::AdminAnswer) - 1);

template <typename T>
contract::AdminCommand Erase(T command, contract::AdminOpcode opcode) {
  command.opcode = opcode;
  return std::bit_cast<contract::AdminCommand>(command);
}

Result<uint32_t> ObjectOf(Result<contract::AdminAnswer> answer) {
  if (!answer.ok()) {
    return answer.error();
  }
  return answer.value().object;
}

Result<bool> DoneOf(const Result<contract::AdminAnswer>& answer) {
  if (!answer.ok()) {
    return answer.error();
  }
  return true;
}

uint16_t PublishedCount(Device& device) {
  return static_cast<uint16_t>(
      (device.ReadRegister32(contract::kBar0AdminTailOffset) &
       contract::kBar0AdminTailCountMask) >>
      contract::kBar0AdminTailCountLsb);
}

// The count alone wraps; a reset clears both.
bool WasServed(Device& device) {
  return PublishedCount(device) != 0 ||
         device.ReadRegister64(contract::kBar0AdminCommandBaseOffset) != 0;
}

// Phase of the answer to command `count`.
uint8_t PhaseOf(uint16_t count) {
  return ((count >> AdminQueue::kLog2Entries) & 1) != 0 ? 0 : 1;
}

}  // namespace

int AdminErrno(contract::AdminOpcode opcode, contract::AdminStatus status) {
  switch (status) {
    case contract::AdminStatus::kOk:
      return 0;
    case contract::AdminStatus::kUnsupported:
      return EOPNOTSUPP;
    case contract::AdminStatus::kInvalid:
      return EINVAL;
    case contract::AdminStatus::kNoResource:
      return ENOSPC;
    case contract::AdminStatus::kInUse:
      return opcode == contract::AdminOpcode::kCreateEndpoint ? EADDRINUSE
                                                              : EBUSY;
    case contract::AdminStatus::kNotFound:
      return opcode == contract::AdminOpcode::kResolveNextHop ? EHOSTUNREACH
                                                              : ENOENT;
    case contract::AdminStatus::kDmaError:
      return EIO;
    case contract::AdminStatus::kKeyInUse:
      return ENOKEY;
  }
  // A number that this driver does not know: from a device of a later minor
  // version, or one that is broken.
  return EIO;
}

Result<std::unique_ptr<AdminQueue>> AdminQueue::Create(
    Device& device, std::chrono::nanoseconds limit) {
  if (WasServed(device)) {
    if (Result<bool> reset = device.Reset(); !reset.ok()) {
      return reset.error();
    }
  }
  std::unique_ptr<AdminQueue> queue(new AdminQueue(device, limit));
  for (DmaBuffer* ring : {&queue->commands_, &queue->answers_}) {
    Result<DmaBuffer> memory =
        DmaBuffer::Create(device, kEntries * sizeof(contract::AdminCommand));
    if (!memory.ok()) {
      return memory.error();
    }
    *ring = std::move(memory.value());
  }
  queue->StartAt(PublishedCount(device));
  device.WriteRegister64(contract::kBar0AdminCommandBaseOffset,
                         ToInteger(queue->commands_.iova()));
  device.WriteRegister64(contract::kBar0AdminAnswerBaseOffset,
                         ToInteger(queue->answers_.iova()));
  device.WriteRegister32(contract::kBar0AdminSizeOffset,
                         kLog2Entries << contract::kBar0AdminSizeLog2Lsb);
  return queue;
}

void AdminQueue::StartAt(uint16_t count) {
  count_ = count;
  answered_ = count;
  const auto answers = answers_.entries<contract::AdminAnswer>(kEntries);
  for (uint32_t i = 0; i < kEntries; ++i) {
    const auto at = static_cast<uint16_t>(count + i);
    answers[at & kMask].phase = PhaseOf(at) ^ 1;
  }
}

AdminQueue::Call* AdminQueue::FindFree() {
  const auto free = std::find_if(calls_.begin(), calls_.end(), [](Call& call) {
    return call.stage == Call::Stage::kFree;
  });
  return free == calls_.end() ? nullptr : &*free;
}

AdminQueue::Call* AdminQueue::FindWaiting(uint16_t id) {
  const auto waiting =
      std::find_if(calls_.begin(), calls_.end(), [id](Call& call) {
        return call.stage == Call::Stage::kWaiting && call.id == id;
      });
  return waiting == calls_.end() ? nullptr : &*waiting;
}

AdminQueue::Call* AdminQueue::Publish(contract::AdminCommand command) {
  Call* call = nullptr;
  const auto find = [&] {
    const std::lock_guard lock(mutex_);
    TakeAnswers();
    call = failure_.empty() ? FindFree() : nullptr;
    if (call != nullptr) {
      // Taken in the same breath: another thread looks for one, too.
      call->stage = Call::Stage::kWaiting;
      call->id = count_++;
      command.id = call->id;
      commands_.entries<contract::AdminCommand>(kEntries)[call->id & kMask] =
          command;
      DmaWriteBarrier();
      device_.WriteRegister32(
          contract::kBar0AdminTailOffset,
          uint32_t{count_} << contract::kBar0AdminTailCountLsb);
    }
    return call != nullptr || !failure_.empty();
  };
  if (!WaitFor(device_, limit_, find)) {
    const std::lock_guard lock(mutex_);
    (void)Break("no place for a command");
  }
  return call;
}

Result<contract::AdminAnswer> AdminQueue::Execute(
    contract::AdminCommand command) {
  Call* const call = Publish(command);
  if (call == nullptr) {
    return Errno{EIO};
  }
  const bool ended = WaitFor(device_, limit_, [this, call] {
    const std::lock_guard lock(mutex_);
    TakeAnswers();
    return call->stage == Call::Stage::kAnswered || !failure_.empty();
  });
  const std::lock_guard lock(mutex_);
  if (!ended) {
    return Break(Diagnose(call->id));
  }
  if (call->stage != Call::Stage::kAnswered) {
    return Errno{EIO};
  }
  call->stage = Call::Stage::kFree;
  return call->answer;
}

void AdminQueue::TakeAnswers() {
  while (failure_.empty() && AnswerReady()) {
    DmaReadBarrier();
    const contract::AdminAnswer answer =
        answers_.entries<contract::AdminAnswer>(kEntries)[answered_ & kMask];
    ++answered_;
    // The device did not see the id of a command that it could not read.
    const bool unread = answer.status == contract::AdminStatus::kDmaError;
    const auto id = unread ? static_cast<uint16_t>(answer.detail) : answer.id;
    Call* const call = FindWaiting(id);
    if (call == nullptr) {
      (void)Break("answer " + std::to_string(id) +
                  " to a command that was not issued");
      return;
    }
    call->answer = answer;
    call->stage = Call::Stage::kAnswered;
  }
}

bool AdminQueue::AnswerReady() const {
  const auto& answer =
      answers_.entries<contract::AdminAnswer>(kEntries)[answered_ & kMask];
  const uint64_t last =
      LoadShared(reinterpret_cast<const uint64_t*>(&answer) + kLastWord);
  return static_cast<uint8_t>(last >> kPhaseLsb) == PhaseOf(answered_);
}

std::string AdminQueue::Diagnose(uint16_t id) {
  if (device_.failed()) {
    return device_.failure();
  }
  const uint32_t status =
      device_.ReadRegister32(contract::kBar0DeviceStatusOffset);
  if (status == std::numeric_limits<uint32_t>::max()) {
    return "device is lost: its registers read as all ones";
  }
  char text[96];
  if ((status & contract::kBar0DeviceStatusFatalMask) != 0) {
    std::snprintf(text, sizeof(text), "firmware stopped with status 0x%08x",
                  device_.ReadRegister32(contract::kBar0FatalCauseOffset));
  } else {
    std::snprintf(
        text, sizeof(text), "no answer to admin command %u within %lld ms",
        static_cast<unsigned>(id),
        static_cast<long long>(
            std::chrono::duration_cast<std::chrono::milliseconds>(limit_)
                .count()));
  }
  return text;
}

Errno AdminQueue::Break(const std::string& reason) {
  failure_ = device_.name() + ": admin queue: " + reason;
  return Errno{EIO};
}

std::string AdminQueue::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Result<contract::AdminAnswer> AdminQueue::Command(
    contract::AdminCommand command, contract::AdminAnswer* refusal) {
  Result<contract::AdminAnswer> answer = Execute(command);
  if (!answer.ok()) {
    return answer;
  }
  const int error = AdminErrno(command.opcode, answer.value().status);
  if (error == 0) {
    return answer;
  }
  if (refusal != nullptr) {
    *refusal = answer.value();
  }
  return Errno{error};
}

Result<EndpointGrant> AdminQueue::CreateEndpoint(
    const contract::AdminCreateEndpoint& command,
    contract::AdminAnswer* refusal) {
  Result<contract::AdminAnswer> answer =
      Command(Erase(command, contract::AdminOpcode::kCreateEndpoint), refusal);
  if (!answer.ok()) {
    return answer.error();
  }
  return EndpointGrant{.endpoint = answer.value().object,
                       .port = answer.value().port,
                       .pid_on_fep = answer.value().pid_on_fep,
                       .resource_index = answer.value().resource_index};
}

Result<uint32_t> AdminQueue::CreateCq(contract::AdminCreateCq command,
                                      contract::AdminAnswer* refusal) {
  return ObjectOf(
      Command(Erase(command, contract::AdminOpcode::kCreateCq), refusal));
}

Result<uint32_t> AdminQueue::CreateTx(contract::AdminCreateTx command,
                                      contract::AdminAnswer* refusal) {
  return ObjectOf(
      Command(Erase(command, contract::AdminOpcode::kCreateTx), refusal));
}

Result<uint32_t> AdminQueue::CreateRx(contract::AdminCreateRx command,
                                      contract::AdminAnswer* refusal) {
  return ObjectOf(
      Command(Erase(command, contract::AdminOpcode::kCreateRx), refusal));
}

Result<bool> AdminQueue::Destroy(contract::AdminOpcode opcode,
                                 uint32_t object) {
  return DoneOf(Command({.opcode = opcode, .object = object}, nullptr));
}

Result<bool> AdminQueue::DestroyEndpoint(uint32_t endpoint) {
  return Destroy(contract::AdminOpcode::kDestroyEndpoint, endpoint);
}

Result<bool> AdminQueue::DestroyCq(uint32_t cq) {
  return Destroy(contract::AdminOpcode::kDestroyCq, cq);
}

Result<bool> AdminQueue::DestroyTx(uint32_t context) {
  return Destroy(contract::AdminOpcode::kDestroyTx, context);
}

Result<bool> AdminQueue::DestroyRx(uint32_t context) {
  return Destroy(contract::AdminOpcode::kDestroyRx, context);
}

Result<RegionGrant> AdminQueue::RegisterRegion(
    contract::AdminRegisterRegion command, contract::AdminAnswer* refusal) {
  Result<contract::AdminAnswer> answer =
      Command(Erase(command, contract::AdminOpcode::kRegisterRegion), refusal);
  if (!answer.ok()) {
    return answer.error();
  }
  return RegionGrant{.region = answer.value().object,
                     .key = answer.value().key};
}

Result<bool> AdminQueue::DeregisterRegion(uint32_t region) {
  return Destroy(contract::AdminOpcode::kDeregisterRegion, region);
}

Result<uint32_t> AdminQueue::CreateCounter(Iova cell) {
  const contract::AdminCreateCounter command{.cell = ToInteger(cell)};
  return ObjectOf(
      Command(Erase(command, contract::AdminOpcode::kCreateCounter), nullptr));
}

Result<bool> AdminQueue::DestroyCounter(uint32_t counter) {
  return Destroy(contract::AdminOpcode::kDestroyCounter, counter);
}

Result<bool> AdminQueue::SetTiming(std::chrono::nanoseconds rto,
                                   std::chrono::nanoseconds dead) {
  if (rto.count() < 0 || dead.count() < 0) {
    return Errno{EINVAL};
  }
  const contract::AdminSetTiming command{
      .rto_ns = static_cast<uint64_t>(rto.count()),
      .dead_ns = static_cast<uint64_t>(dead.count())};
  return DoneOf(
      Command(Erase(command, contract::AdminOpcode::kSetTiming), nullptr));
}

Result<PortInfo> AdminQueue::QueryPort() {
  const Result<contract::AdminAnswer> answer =
      Command({.opcode = contract::AdminOpcode::kQueryPort}, nullptr);
  if (!answer.ok()) {
    return answer.error();
  }
  return PortInfo{.address = {.lo = answer.value().fa_lo,
                              .hi = answer.value().fa_hi,
                              .ipv6 = answer.value().ipv6 != 0},
                  .payload_mtu_bytes = answer.value().payload_mtu};
}

Result<uint32_t> AdminQueue::ClosePdcs() {
  return AskPdcs(kClosePdcs);
}

Result<uint32_t> AdminQueue::CountPdcs() {
  return AskPdcs(kCountPdcs);
}

Result<uint32_t> AdminQueue::AskPdcs(uint32_t what) {
  const Result<contract::AdminAnswer> answer = Command(
      {.opcode = contract::AdminOpcode::kClosePdcs, .object = what}, nullptr);
  return answer.ok() ? Result<uint32_t>(answer.value().detail)
                     : Result<uint32_t>(answer.error());
}

Result<uint32_t> AdminQueue::ResolveNextHop(const FabricAddress& peer) {
  const contract::AdminResolveNextHop command{
      .fa_lo = peer.lo,
      .fa_hi = peer.hi,
      .flags = peer.ipv6 ? contract::kAvFlagIpv6 : uint8_t{0}};
  return ObjectOf(
      Command(Erase(command, contract::AdminOpcode::kResolveNextHop), nullptr));
}

Result<bool> AdminQueue::ReleaseNextHop(uint32_t hop) {
  return DoneOf(
      Command({.opcode = contract::AdminOpcode::kReleaseNextHop, .object = hop},
              nullptr));
}

}  // namespace heddle
