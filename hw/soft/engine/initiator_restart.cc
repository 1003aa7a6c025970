// SPDX-License-Identifier: Apache-2.0
// Sends that their target deferred, and DEFERRABLE_RTR both ways.
#include "hw/soft/engine/initiator.h"

namespace heddle::soft::engine {

using contract::ReturnCode;
using contract::SesOpcode;
using contract::Status;
using contract::wire::SesResponse;
using Stage = TxMessage::Stage;

namespace {

// List of a response whose target keeps the header of the message.
constexpr uint8_t kOverflow = 1;

}  // namespace

bool Initiator::Defers(const TxMessage& message,
                       const SesResponse& response) noexcept {
  return message.deferrable && message.target_token == 0 &&
         response.list == kOverflow &&
         response.opcode == contract::SesResponse::kResponse &&
         response.return_code == ReturnCode::kOk &&
         response.modified_length == 0;
}

bool Initiator::CutShort(TxMessage& message, uint32_t packet) noexcept {
  if (packet >= message.built) {
    // Its target discards the rest (UET 4.14).
    message.cut = true;
    message.packets = message.built = packet + 1;
  }
  return message.cut && packet + 1 == message.packets;
}

void Initiator::AwaitReady(uint32_t index) {
  TxMessage& message = messages_[index];
  if (message.ready) {
    Resend(index);  // Its target waits: also for a packet that gives it up.
  } else if (message.state.outcome().status != Status::kOk || Stale(message)) {
    EndDeferred(index);
  } else {
    message.stage = Stage::kDeferred;
    ++deferred_;
  }
}

void Initiator::Resend(uint32_t index) {
  TxMessage& message = messages_[index];
  const uint32_t target_token = message.target_token;
  message.Restart();
  message.target_token = target_token;
  transport_->Resume(index);
}

void Initiator::EndDeferred(uint32_t index) {
  TxMessage& message = messages_[index];
  LeaveDeferred(message);
  transport_->Finish(index);
  message.abandoned = true;
  message.state.Abandon(Status::kFlushed, 0);  // The first error stays.
  EndIfRetired(index);
}

bool Initiator::OnReady(const wire::FabricAddress& source, uint32_t token,
                        uint32_t target_token) {
  const uint32_t index = (token & UINT16_MAX) - 1U;
  if (target_token == 0 || index >= messages_.size()) {
    return false;
  }
  TxMessage& message = messages_[index];
  const bool waits = message.stage == Stage::kDeferred;
  // The request may overtake the response that defers the message.
  if ((!waits && message.stage != Stage::kPosted) || !message.deferrable ||
      message.target_token != 0 || message.TokenOf(index) != token ||
      message.to.address != source) {
    return false;
  }
  message.deferred = message.ready = true;
  message.target_token = target_token;
  if (waits) {
    LeaveDeferred(message);
    Resend(index);
  } else {
    transport_->Hold(index);
  }
  return true;
}

void Initiator::EndDeferredOf(uint32_t context) {
  for (uint32_t index = 0; index < messages_.size(); ++index) {
    const TxMessage& message = messages_[index];
    if (message.stage == Stage::kDeferred && message.context == context) {
      EndDeferred(index);
    }
  }
}

bool Initiator::SendReady(const Deferral& deferral, uint32_t target_token) {
  if (free_.empty(messages_)) {
    return false;
  }
  const uint32_t index = free_.Pop(messages_);
  TxMessage& message = messages_[index];
  Fetched request;
  request.status = Status::kOk;
  request.slots = 0;
  request.group = kNone;
  request.descriptor = {};
  request.descriptor.opcode =
      static_cast<contract::Opcode>(SesOpcode::kDeferrableRtr);
  request.descriptor.match_bits =
      uint64_t{deferral.token} << 32U | target_token;
  message.Begin(request, mtu_);
  message.ready_request = true;
  message.target_token = target_token;
  message.context = kNone;
  message.ticket = {};
  message.to = {};
  message.to.address = deferral.source;
  message.to.pid =
      static_cast<uint16_t>(deferral.initiator >> contract::kPidBits);
  message.to.first_ri = static_cast<uint16_t>(
      deferral.initiator & ((1U << contract::kPidBits) - 1U));
  // A peer may look for the initiator of the deferred message here.
  message.from = {.job_id = deferral.job_id,
                  .pid = message.to.pid,
                  .first_ri = message.to.first_ri,
                  .traffic_class = deferral.path.dscp,
                  .relative = deferral.relative};
  message.back = deferral.path;
  message.back.destination = deferral.source;
  ++live_;
  ++ready_requests_;
  --shared_;
  Post(index);
  return true;
}

void Initiator::EndReadyRequest(uint32_t index) {
  TxMessage& message = messages_[index];
  const uint32_t token = message.target_token;
  const bool accepted = message.state.outcome().status == Status::kOk;
  message.stage = Stage::kFree;
  --live_;
  --ready_requests_;
  ++shared_;
  free_.Push(messages_, index);
  ready_sink_->OnReadyEnded(token, accepted);
  Unblock();
}

}  // namespace heddle::soft::engine
