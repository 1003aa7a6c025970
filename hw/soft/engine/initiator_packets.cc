// SPDX-License-Identifier: Apache-2.0
// Packets of messages in flight: requests built, answers and data taken.
#include <algorithm>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/engine/initiator.h"

namespace heddle::soft::engine {

using contract::NextHdr;
using contract::Opcode;
using contract::ReturnCode;
using contract::Statistic;
using contract::Status;
using contract::wire::SesResponse;
using contract::wire::SesResponseData;
using contract::wire::SesStd;
using transport::MessageIndex;
using transport::TransportClient;
using transport::Verdict;
using Stage = TxMessage::Stage;

namespace {

SesStd HeaderOf(const TxMessage& message, MessageIndex index, uint32_t packet) {
  const contract::TxDesc& descriptor = message.descriptor;
  SesStd header;
  header.opcode = static_cast<contract::SesOpcode>(descriptor.opcode);
  header.dc = message.state.delivery_complete() ? 1 : 0;
  header.hd = (descriptor.flags & contract::kTxFlagHeaderData) != 0 ? 1 : 0;
  header.rel = message.from.relative ? 1 : 0;
  header.som = packet == 0 ? 1 : 0;
  header.eom = packet + 1 == message.packets ? 1 : 0;
  header.message_id = static_cast<uint16_t>(index + 1);
  header.job_id = message.from.job_id;
  header.pid_on_fep = message.to.pid;
  header.resource_index = message.target_ri();
  header.buffer_offset = descriptor.remote_offset;
  header.initiator = message.from.initiator();
  header.match_bits = descriptor.match_bits;
  header.request_length = descriptor.length;
  if (message.deferrable) {
    header.opcode = descriptor.opcode == Opcode::kSend
                        ? contract::SesOpcode::kDeferrableSend
                        : contract::SesOpcode::kDeferrableTsend;
    header.buffer_offset =
        uint64_t{message.TokenOf(index)} << 32U | message.target_token;
  }
  if (header.som != 0) {
    header.header_data = header.hd != 0 ? descriptor.header_data : 0;
  } else {
    header.message_offset = packet * message.mtu;
  }
  return header;
}

// Neither a completion, a counter, a fence nor a full ring waits for its end.
bool Unheard(const TxMessage& message, const TxContext& tx) {
  constexpr uint8_t kHeard =
      contract::kTxFlagCompletion | contract::kTxFlagDeliveryComplete;
  const bool write = message.descriptor.opcode == Opcode::kWrite;
  return (message.descriptor.flags & kHeard) == 0 && !message.expects_data &&
         !message.deferrable && message.group == kNone && !tx.fences &&
         (write ? tx.counter_write() : tx.counter_send()) == 0 &&
         2 * static_cast<uint16_t>(tx.tail - tx.head) <= tx.size();
}

}  // namespace

void Initiator::FailLocally(TxMessage& message) {
  message.failing = true;
  message.state.Fail(Status::kLocalAccess, 0);
  rings_[message.context].error = true;
}

TransportClient::Built Initiator::BuildRequest(MessageIndex index,
                                               uint32_t packet,
                                               std::span<uint8_t> out) {
  TransportClient::Built built = {NextHdr::kRequestStd, SesStd::kBytes, false};
  if (index >= messages_.size() || out.size() < SesStd::kBytes) {
    return {};
  }
  TxMessage& message = messages_[index];
  if (message.stage == Stage::kFree || packet >= message.packets) {
    return {};
  }
  SesStd header = HeaderOf(message, index, packet);
  const uint32_t offset = packet * message.mtu;
  const uint32_t bytes =
      std::min(message.mtu, message.descriptor.length - offset);
  const bool first = packet >= message.built;
  const bool reads = message.descriptor.opcode == Opcode::kRead;
  const bool stale = Stale(message);
  const bool ends_here = message.collapsed && packet + 1 == message.packets;
  // What left before is sent again as it was, while there is memory to read: a
  // read needs none, and its data come for a copy of each packet.
  const bool given_up = stale && (first || !reads);
  header.ie = given_up || ends_here || (first && message.failing) ? 1 : 0;
  if (message.deferred && header.ie == 0 && CutShort(message, packet)) {
    header.eom = 1;
    header.Encode(out.data());
    built.last = true;
    return built;
  }
  if (header.ie == 0 && !reads) {
    const size_t room = out.size() - SesStd::kBytes;
    if (room >= bytes &&
        ReadPayload(message, offset, out.subspan(SesStd::kBytes, bytes),
                    parts_.host)) {
      built.bytes += bytes;
    } else {
      FailLocally(message);
      header.ie = 1;
    }
  }
  if (header.ie != 0 && first) {
    message.state.Fail(Status::kFlushed, 0);  // The first error stays.
    message.collapsed = true;
    message.packets = packet + 1;
    message.settled += message.expects_data ? 1 : 0;
  }
  if (header.ie != 0 && message.collapsed && packet + 1 == message.packets) {
    header.eom = 1;
    built.last = true;
  }
  if (header.som == 0) {
    header.payload_length = static_cast<uint16_t>(header.ie != 0 ? 0 : bytes);
  }
  built.unheard = packet + 1 == message.packets && !message.ready_request &&
                  Unheard(message, rings_[message.context]);
  message.built = std::max(message.built, packet + 1);
  header.Encode(out.data());
  return built;
}

void Initiator::OnAcknowledged(MessageIndex index, uint32_t packets) {
  if (index >= messages_.size() || messages_[index].stage != Stage::kPosted) {
    return;
  }
  TxMessage& message = messages_[index];
  message.acknowledged +=
      std::min(packets, message.packets - message.acknowledged);
  if (message.acknowledged != message.packets) {
    return;
  }
  if (message.deferred) {
    AwaitReady(index);
    return;
  }
  message.EndOfPackets();
  if (message.descriptor.length == 0 && message.expects_data) {
    message.settled = message.packets;
  }
  FinishIfSettled(index);
  EndIfRetired(index);
}

void Initiator::OnResponse(MessageIndex index, const SesResponse& response,
                           std::span<const uint8_t> data,
                           uint32_t data_offset) {
  if (index >= messages_.size() || !Carries(messages_[index])) {
    return;
  }
  TxMessage& message = messages_[index];
  if (!semantics::IsSuccess(response.return_code)) {
    message.failing = message.refused = true;
    message.state.Answered(response.return_code);
    ++message.settled;
  } else if (Defers(message, response)) {
    message.deferred = true;
    transport_->Hold(index);
    return;
  } else {
    if (!data.empty()) {
      SesResponseData header;
      header.message_offset = data_offset;
      PlaceReturned(index, header, data);
    }
    message.state.Answered(response.return_code);
  }
  FinishIfSettled(index);
  EndIfRetired(index);
}

Verdict Initiator::PlaceReturned(uint32_t index, const SesResponseData& header,
                                 std::span<const uint8_t> payload) {
  TxMessage& message = messages_[index];
  using Data = semantics::InitiatorMessage::Data;
  const auto bytes = static_cast<uint32_t>(payload.size());
  const bool failed = message.state.outcome().status != Status::kOk;
  // Less than a request asked for would stand for it, and the rest never come.
  const Data what = failed || message.IsPacket(header.message_offset, bytes)
                        ? message.state.Returned(header.message_offset, bytes)
                        : Data::kMalformed;
  switch (what) {
    case Data::kPlace:
      if (!Stale(message) &&
          !WritePayload(message, header.message_offset, payload, parts_.host)) {
        message.state.Fail(Status::kLocalAccess, 0);
      }
      break;
    case Data::kDiscard:
      if (!failed) {
        // More than was asked for: the packet that has yet to come is another.
        parts_.statistics->Count(Statistic::kDropSes);
        return {};
      }
      break;
    case Data::kMalformed:
      parts_.statistics->Count(Statistic::kDropSes);
      message.state.Fail(Status::kRemoteError,
                         static_cast<uint16_t>(ReturnCode::kUncor));
      break;
    case Data::kFull:
      return {.kind = Verdict::Kind::kRefused,
              .nack = contract::NackCode::kNoResource};
  }
  ++message.settled;
  return {};
}

Verdict Initiator::OnReturnData(const transport::Request& request) {
  const bool error = request.next_hdr == NextHdr::kResponse;
  if (request.ses.size() <
          (error ? SesResponse::kBytes : SesResponseData::kBytes) ||
      (!error && request.next_hdr != NextHdr::kResponseData)) {
    parts_.statistics->Count(Statistic::kDropSes);
    return {.kind = Verdict::Kind::kDropped};
  }
  SesResponseData header;
  SesResponse response;
  if (error) {
    response = SesResponse::Decode(request.ses.data());
  } else {
    header = SesResponseData::Decode(request.ses.data());
  }
  const uint32_t index =
      (error ? response.message_id : header.read_request_message_id) - 1U;
  const auto payload = request.ses.subspan(error ? SesResponse::kBytes
                                                 : SesResponseData::kBytes);
  if (index >= messages_.size() || !Carries(messages_[index]) ||
      !messages_[index].expects_data || messages_[index].finished ||
      (!error && header.payload_length != payload.size())) {
    // Acknowledged all the same: nothing else would come of it.
    parts_.statistics->Count(Statistic::kDropSes);
    return {};
  }
  Verdict verdict;
  if (error || !semantics::IsSuccess(header.return_code)) {
    messages_[index].state.Answered(error ? response.return_code
                                          : header.return_code);
    messages_[index].failing = true;
    ++messages_[index].settled;
  } else {
    verdict = PlaceReturned(index, header, payload);
  }
  if (verdict.kind == Verdict::Kind::kAccepted) {
    FinishIfSettled(index);
    EndIfRetired(index);
  }
  return verdict;
}

bool Initiator::OnRestart(MessageIndex index) {
  if (index >= messages_.size() || !Carries(messages_[index])) {
    return false;
  }
  TxMessage& message = messages_[index];
  LeaveDeferred(message);
  const Opcode opcode = message.descriptor.opcode;
  const bool rma = opcode == Opcode::kWrite || opcode == Opcode::kRead;
  if (message.state.outcome().status != Status::kOk || Stale(message)) {
    message.state.Abandon(Status::kFlushed, 0);  // The first error stays.
  } else if (rma && (message.acknowledged != 0 || message.settled != 0)) {
    // Half of it in one incarnation's memory, half in another's: the region
    // that it began with is gone.
    message.state.Abandon(Status::kRemoteError,
                          static_cast<uint16_t>(ReturnCode::kBadMkey));
  } else {
    message.Restart();
    return true;
  }
  message.abandoned = true;
  EndIfRetired(index);
  return false;
}

void Initiator::OnAbandoned(MessageIndex index, Status status, uint16_t detail,
                            bool transmitted) {
  if (index >= messages_.size() || !Carries(messages_[index])) {
    return;
  }
  TxMessage& message = messages_[index];
  LeaveDeferred(message);
  if (!transmitted && status == Status::kPeerRejected &&
      message.stage == Stage::kPosted && !Stale(message) &&
      message.attempts < kAttempts) {
    Post(index);
    return;
  }
  message.abandoned = true;
  message.state.Abandon(status, detail);
  EndIfRetired(index);
}

}  // namespace heddle::soft::engine
