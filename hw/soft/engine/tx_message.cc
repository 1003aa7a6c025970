// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/tx_message.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

namespace heddle::soft::engine {

namespace {

// Calls `visit(iova, begin, bytes)` for each piece of memory behind the bytes
// [offset, offset + size) of the message until one answers false; `begin`
// counts from `offset`.
template <typename Visit>
bool ForEachPiece(const TxMessage& message, uint32_t offset, size_t size,
                  Visit&& visit) {
  if (!HasSegmentSlot(message.descriptor)) {
    return visit(message.descriptor.local_iova + offset, 0, size);
  }
  size_t done = 0;
  uint64_t skip = offset;
  for (const contract::TxSegment& segment : SegmentsOf(message.extension)) {
    if (skip >= segment.length) {
      skip -= segment.length;
      continue;
    }
    const size_t bytes = std::min<uint64_t>(segment.length - skip, size - done);
    if (bytes == 0) {
      break;
    }
    if (!visit(segment.iova + skip, done, bytes)) {
      return false;
    }
    done += bytes;
    skip = 0;
  }
  return done == size;
}

}  // namespace

void TxMessage::Begin(const Fetched& fetched, uint32_t packet_bytes) noexcept {
  descriptor = fetched.descriptor;
  const bool extended =
      fetched.status == contract::Status::kOk && descriptor.ext_slots != 0;
  if (extended) {
    std::memcpy(extension.data(), fetched.extension.data(),
                size_t{descriptor.ext_slots} * contract::kDescBytes);
  }
  stage = Stage::kPosted;
  ordered = collapsed = failing = refused = false;
  holds = finished = abandoned = false;
  ready_request = deferrable = deferred = cut = ready = false;
  expects_data = descriptor.opcode == contract::Opcode::kRead;
  slots = fetched.slots;
  position = fetched.position;
  group = fetched.group;
  attempts = 0;
  mtu = packet_bytes;
  const uint64_t length = descriptor.length;
  packets = length == 0 ? 1 : static_cast<uint32_t>((length + mtu - 1) / mtu);
  planned = packets;
  built = acknowledged = settled = 0;
  peer = semantics::kNone;
  const bool delivery =
      (descriptor.flags & contract::kTxFlagDeliveryComplete) != 0;
  using Level = semantics::InitiatorMessage::Level;
  std::construct_at(
      &state, semantics::InitiatorMessage::Spec{
                  .opcode = descriptor.opcode,
                  .length = descriptor.length,
                  .packets = packets,
                  .level = delivery ? Level::kDelivery : Level::kTransmit});
}

void TxMessage::Restart() noexcept {
  packets = planned;
  built = acknowledged = settled = 0;
  deferred = cut = ready = false;
  target_token = ready_request ? target_token : 0;
  state.Restart();
}

void TxMessage::EndOfPackets() noexcept {
  // Those that were never sent went with the one that ended the message.
  if (!state.Acknowledged(planned)) {
    return;
  }
  // A default response says nothing but success, and an error is never lost.
  state.Answered(contract::ReturnCode::kNull);
}

bool ReadPayload(const TxMessage& message, uint32_t offset,
                 std::span<uint8_t> out, HostAccess* host) {
  if (out.empty()) {
    return true;
  }
  if (message.in_line()) {
    const bool here = (message.descriptor.flags & contract::kTxFlagInline) != 0;
    const auto* const from =
        here ? reinterpret_cast<const uint8_t*>(&message.descriptor) +
                   contract::kInlineOffset
             : message.extension.data();
    std::memcpy(out.data(), from + offset, out.size());
    return true;
  }
  return ForEachPiece(message, offset, out.size(),
                      [&](uint64_t iova, size_t begin, size_t bytes) {
                        return host->Read(iova, out.subspan(begin, bytes));
                      });
}

bool WritePayload(const TxMessage& message, uint32_t offset,
                  std::span<const uint8_t> bytes, HostAccess* host) {
  if (bytes.empty()) {
    return true;
  }
  return ForEachPiece(message, offset, bytes.size(),
                      [&](uint64_t iova, size_t begin, size_t count) {
                        return host->Write(iova, bytes.subspan(begin, count));
                      });
}

}  // namespace heddle::soft::engine
