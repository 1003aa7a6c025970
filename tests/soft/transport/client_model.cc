// SPDX-License-Identifier: Apache-2.0
#include "tests/soft/transport/client_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "hw/contract/gen/heddle_wire.h"

namespace heddle::soft::transport {

using contract::NextHdr;
using contract::ReturnCode;
using contract::wire::SesResponseData;
using contract::wire::SesStd;

void ClientModel::Pump() {
  while (!backlog_.empty() && !free_.empty()) {
    const TestMessage message = backlog_.front();
    if (!Post(message)) {
      break;
    }
    backlog_.pop_front();
  }
}

void ClientModel::BeginIncarnation() {
  earlier.push_back(std::move(taken));
  taken.clear();
  last_.clear();
  returns_open = 0;
  free_.clear();
  for (size_t i = slots_.size(); i-- > 0;) {
    slots_[i] = {};
    free_.push_back(static_cast<MessageIndex>(i));
  }
}

bool ClientModel::Post(const TestMessage& message) {
  const MessageIndex index = free_.back();
  PdcName name;
  name.peer = message.peer;
  name.target_pid = message.name;
  name.ordered = message.ordered;
  wire::Path path;
  path.destination = message.peer;
  const bool data =
      message.kind == Kind::kRead || message.kind == Kind::kResult;
  // Before the call: nothing is called back from within it.
  slots_[index] = {.message = message,
                   .live = true,
                   .data = std::vector<bool>(message.data_packets)};
  if (carrier_->Post(index, name, path, message.packets, data) !=
      MessageCarrier::PostOutcome::kQueued) {
    slots_[index].live = false;
    return false;
  }
  free_.pop_back();
  if (message.kind == Kind::kHeld) {
    carrier_->Hold(index);
  }
  return true;
}

MessageIndex ClientModel::Waiting(uint64_t serial) const {
  MessageIndex index = 0;
  while (index + 1 < slots_.size() &&
         (!slots_[index].waits || slots_[index].message.serial != serial)) {
    ++index;
  }
  EXPECT_TRUE(slots_[index].waits) << "serial " << serial;
  return index;
}

void ClientModel::Resume(uint64_t serial, uint64_t again) {
  const MessageIndex index = Waiting(serial);
  Slot& slot = slots_[index];
  slot = {.message = slot.message, .live = true, .data = {}};
  slot.message.kind = Kind::kPlain;
  slot.message.serial = again;
  carrier_->Resume(index);
}

void ClientModel::Finish(uint64_t serial) {
  const MessageIndex index = Waiting(serial);
  slots_[index].waits = false;
  slots_[index].message.kind = Kind::kPlain;
  carrier_->Finish(index);
  MaybeDone(index);
}

TransportClient::Built ClientModel::BuildRequest(MessageIndex index,
                                                 uint32_t packet,
                                                 std::span<uint8_t> out) {
  const Slot& slot = slots_[index];
  EXPECT_TRUE(slot.live);
  EXPECT_LT(packet, slot.message.packets);
  SesStd header;
  header.opcode = contract::SesOpcode::kSend;
  header.message_id = static_cast<uint16_t>(index + 1);
  header.som = packet == 0 ? 1 : 0;
  header.eom = packet + 1 == slot.message.packets ? 1 : 0;
  header.message_offset = packet;
  header.request_length = slot.message.packets;
  header.buffer_offset = slot.message.serial;
  header.match_bits = static_cast<uint64_t>(slot.message.kind) |
                      uint64_t{slot.message.data_packets - slot.message.refused}
                          << 8;
  header.initiator = slot.message.name;
  header.job_id = life;
  header.Encode(out.data());
  std::memset(out.data() + SesStd::kBytes,
              static_cast<int>(slot.message.serial + packet) & 0xff,
              payload_bytes);
  return {.next_hdr = NextHdr::kRequestStd,
          .bytes = SesStd::kBytes + payload_bytes,
          .unheard = unheard > 0 && random_.Chance(unheard)};
}

void ClientModel::MaybeDone(MessageIndex index) {
  Slot& slot = slots_[index];
  const bool data =
      slot.message.kind == Kind::kRead || slot.message.kind == Kind::kResult;
  if (slot.acked != slot.message.packets || (data && !slot.finished)) {
    return;
  }
  if (slot.message.kind == Kind::kHeld) {
    slot.waits = true;
    return;
  }
  const bool answer =
      slot.message.kind == Kind::kError || slot.message.kind == Kind::kResult;
  EXPECT_EQ(slot.answers, answer ? 1u : 0u) << "serial " << slot.message.serial;
  EXPECT_EQ(slot.data_count, slot.message.data_packets);
  endings.push_back({.serial = slot.message.serial, .completed = true});
  slot.live = false;
  free_.push_back(index);
}

void ClientModel::MaybeFinish(MessageIndex index) {
  slots_[index].finished = true;
  carrier_->Finish(index);
}

void ClientModel::OnAcknowledged(MessageIndex index, uint32_t packets) {
  Slot& slot = slots_[index];
  ASSERT_TRUE(slot.live);
  slot.acked += packets;
  const TestMessage& message = slot.message;
  ASSERT_LE(slot.acked, message.packets);
  if (fails_refused && slot.acked == message.packets && message.refused != 0 &&
      message.refused == message.data_packets) {
    carrier_->Fail(index);
  }
  MaybeDone(index);
}

void ClientModel::OnResponse(MessageIndex index,
                             const contract::wire::SesResponse& response,
                             std::span<const uint8_t> data, uint32_t) {
  Slot& slot = slots_[index];
  ASSERT_TRUE(slot.live);
  ++slot.answers;
  EXPECT_EQ(response.message_id, index + 1);
  if (slot.message.kind == Kind::kError) {
    EXPECT_EQ(response.return_code, ReturnCode::kBadMkey);
  } else {
    EXPECT_EQ(slot.message.kind, Kind::kResult);
    uint64_t value = 0;
    ASSERT_EQ(data.size(), sizeof value);
    std::memcpy(&value, data.data(), sizeof value);
    EXPECT_EQ(value, slot.message.serial);
    MaybeFinish(index);
  }
}

bool ClientModel::OnRestart(MessageIndex index) {
  Slot& slot = slots_[index];
  EXPECT_TRUE(slot.live);
  EXPECT_TRUE(slot.waits || slot.acked < slot.message.packets)
      << "it is complete";
  ++restarts;
  const bool failed = slot.message.kind == Kind::kError && slot.answers != 0;
  const bool data =
      slot.message.kind == Kind::kRead || slot.message.kind == Kind::kResult;
  const bool touched = slot.acked + slot.answers + slot.data_count != 0;
  if (failed || (data && touched)) {
    slot.live = false;
    free_.push_back(index);
    endings.push_back({.serial = slot.message.serial,
                       .completed = false,
                       .status = contract::Status::kRemoteError,
                       .detail = static_cast<uint16_t>(ReturnCode::kBadMkey)});
    return false;
  }
  slot = {.message = slot.message,
          .live = true,
          .data = std::vector<bool>(slot.message.data_packets)};
  slot.message.kind =
      slot.message.kind == Kind::kHeld ? Kind::kPlain : slot.message.kind;
  return true;
}

void ClientModel::OnAbandoned(MessageIndex index, contract::Status status,
                              uint16_t detail, bool transmitted) {
  Slot& slot = slots_[index];
  ASSERT_TRUE(slot.live);
  slot.live = slot.waits = false;
  free_.push_back(index);
  if (!transmitted && repost) {
    const TestMessage message = slot.message;
    if (!Post(message)) {
      backlog_.push_front(message);
    }
    return;
  }
  endings.push_back({.serial = slot.message.serial,
                     .completed = false,
                     .status = status,
                     .detail = detail,
                     .transmitted = transmitted});
}

Verdict ClientModel::OnReturnData(const Request& request) {
  EXPECT_EQ(request.next_hdr, NextHdr::kResponseData);
  const auto header = SesResponseData::Decode(request.ses.data());
  const MessageIndex index = header.read_request_message_id - 1u;
  Slot& slot = slots_[index];
  EXPECT_TRUE(slot.live);
  EXPECT_FALSE(slot.finished);
  EXPECT_EQ(slot.message.kind, Kind::kRead);
  EXPECT_LT(header.message_offset, slot.data.size());
  if (random_.Chance(refuse)) {
    return {.kind = Verdict::Kind::kRefused, .nack = refuse_code};
  }
  EXPECT_FALSE(slot.data[header.message_offset]) << "data twice";
  if (request.ordered) {
    EXPECT_EQ(header.message_offset, slot.data_count);
  }
  slot.data[header.message_offset] = true;
  if (++slot.data_count == slot.data.size()) {
    MaybeFinish(index);
    MaybeDone(index);
  }
  return {};
}

Verdict ClientModel::OnRequest(const Request& request, bool may_guarantee) {
  const auto header = SesStd::Decode(request.ses.data());
  const Kind kind = static_cast<Kind>(header.match_bits & 0xff);
  const uint32_t returns = static_cast<uint32_t>(header.match_bits >> 8);
  const uint32_t packet = header.som != 0 ? 0 : header.message_offset;
  Taken& message = taken[header.buffer_offset];
  message.packets.resize(header.request_length);
  EXPECT_LT(packet, header.request_length);
  const bool ends = message.count + 1 == header.request_length;
  const bool guaranteed = kind == Kind::kError || kind == Kind::kResult;
  if (random_.Chance(refuse)) {
    return {.kind = Verdict::Kind::kRefused, .nack = refuse_code};
  }
  if (ends && guaranteed && !may_guarantee) {
    return {.kind = Verdict::Kind::kRefused,
            .nack = contract::NackCode::kNoGtdDelAvail};
  }
  if (ends && kind == Kind::kRead) {
    for (uint32_t i = 0; i < returns; ++i) {
      const ReturnData data{
          .offset = i, .total = returns, .message_id = header.message_id};
      if (!carrier_->PostReturn(request.pdc, data)) {
        return {.kind = Verdict::Kind::kRefused,
                .nack = contract::NackCode::kNoResource};
      }
    }
    returns_open += returns;
  }
  EXPECT_FALSE(message.packets[packet])
      << "serial " << header.buffer_offset << " packet " << packet << " twice";
  message.packets[packet] = true;
  ++message.count;
  auto& last = last_[{header.job_id, static_cast<uint16_t>(header.initiator)}];
  const bool follows = packet == 0 ? header.buffer_offset > last.first
                                   : header.buffer_offset == last.first &&
                                         packet == last.second + 1;
  if (request.ordered && check_order) {
    EXPECT_TRUE(follows) << "serial " << header.buffer_offset << " after "
                         << last.first;
  } else {
    out_of_order += follows ? 0 : 1;
  }
  last = {header.buffer_offset, packet};
  Verdict verdict;
  if (ends && guaranteed) {
    ++message.answers;
    verdict.respond = verdict.guaranteed = true;
    verdict.response.opcode = contract::SesResponse::kResponse;
    verdict.response.message_id = header.message_id;
    verdict.response.return_code =
        kind == Kind::kError ? ReturnCode::kBadMkey : ReturnCode::kOk;
    if (kind == Kind::kResult) {
      std::memcpy(result_, &header.buffer_offset, sizeof result_);
      verdict.data = result_;
    }
  }
  return verdict;
}

TransportClient::Built ClientModel::BuildReturn(const ReturnData& data,
                                                std::span<uint8_t> out) {
  SesResponseData header;
  header.opcode = contract::SesResponse::kResponseWData;
  header.return_code = ReturnCode::kOk;
  header.read_request_message_id = data.message_id;
  header.message_offset = data.offset;
  header.modified_length = data.total;
  header.payload_length = static_cast<uint16_t>(payload_bytes);
  header.Encode(out.data());
  return {.next_hdr = NextHdr::kResponseData,
          .bytes = SesResponseData::kBytes + payload_bytes};
}

void ClientModel::OnReturnRetired(const ReturnData&) {
  ASSERT_GT(returns_open, 0u);
  --returns_open;
}

void ClientModel::OnTargetClosed(const wire::FabricAddress&, uint16_t,
                                 bool in_error) {
  ++closed;
  closed_in_error += in_error ? 1 : 0;
}

}  // namespace heddle::soft::transport
