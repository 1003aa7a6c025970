// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/match_queue.h"

#include <cerrno>
#include <utility>

#include "host/lib/nic/posting_context.h"
#include "hw/contract/split_number.h"

namespace heddle::nic {
namespace {

using backend::MatchOp;

bool HasBuffer(MatchOp match) {
  return match == MatchOp::kReceive || match == MatchOp::kReceiveClaimed;
}

bool NamesClaim(MatchOp match) {
  return match == MatchOp::kReceiveClaimed || match == MatchOp::kDiscardClaimed;
}

}  // namespace

Result<std::unique_ptr<MatchQueue>> MatchQueue::Create(
    Device& device, const RxOptions& options) {
  std::unique_ptr<MatchQueue> queue(new MatchQueue());
  const auto made =
      queue->CreateRing(device, options, contract::kMatchDescBytes);
  if (!made.ok()) {
    return made.error();
  }
  const size_t receives = std::max(queue->slots(), kMinReceives);
  static_assert(kMinReceives <= kIndexMask &&
                size_t{1} << contract::kRingLog2Max <= kIndexMask);
  queue->receives_ = static_cast<uint32_t>(receives);
  queue->directory_ = options.directory;
  queue->operation_flags_ =
      FI_RECV | (options.tagged ? uint64_t{FI_TAGGED} : uint64_t{FI_MSG});
  if (options.unexpected_bytes != 0) {
    auto memory = DmaBuffer::Create(device, options.unexpected_bytes);
    if (!memory.ok()) {
      return memory.error();
    }
    queue->unexpected_ = std::move(memory.value());
  }
  auto registrar = queue->CreateRegistrar(device, options, receives);
  if (!registrar.ok()) {
    return registrar.error();
  }
  queue->registrar_.emplace(std::move(registrar.value()));
  queue->handles_ = std::make_unique<Handle[]>(receives);
  queue->free_ = std::make_unique<uint16_t[]>(receives);
  // The handles of low indices are used first, so that a search is short.
  for (uint32_t i = 0; i < receives; ++i) {
    queue->handles_[i].name = i;
    queue->free_[receives - 1 - i] = static_cast<uint16_t>(i);
  }
  queue->free_count_ = queue->receives_;
  return queue;
}

int MatchQueue::Check(const MatchOperation& operation,
                      std::span<const Segment> segments,
                      size_t bytes) const noexcept {
  if (!IsSource(operation.source) || (operation.many && bytes == 0)) {
    return EINVAL;
  }
  const bool whole = operation.many || in_place();
  return whole && HasBuffer(operation.match) && segments.size() > 1 ? EOPNOTSUPP
                                                                    : 0;
}

template <typename Locking>
int MatchQueue::Push(const MatchOperation& operation,
                     std::span<const Segment> segments, size_t bytes) noexcept {
  if (broken_) {
    return EIO;
  }
  const bool claimed = NamesClaim(operation.match);
  if (claimed && FindOldest(operation.context, kClaimed) == nullptr) {
    return ENOMSG;
  }
  if (!MakeRoom(claimed)) {
    return EAGAIN;
  }
  const bool placed = HasBuffer(operation.match);
  const uint32_t left = registrar_->times_left();
  Prepared prepared = {.status = Prepared::Status::kOk};
  if (placed) {
    prepared = operation.many ? registrar_->PrepareInPlace(segments)
                              : registrar_->PrepareReceive(segments);
  }
  if (prepared.status != Prepared::Status::kOk) {
    return ErrorOf(prepared);
  }
  // Other threads may have posted meanwhile.
  Handle* handle = claimed ? FindOldest(operation.context, kClaimed) : nullptr;
  if (registrar_->times_left() != left &&
      (broken_ || (claimed && handle == nullptr) || !MakeRoom(claimed))) {
    registrar_->FinishReceive(prepared.ticket, 0);
    return broken_ ? EIO : EAGAIN;
  }
  if (handle == nullptr) {
    handle = &TakeHandle();
  }
  const bool claims = operation.match == MatchOp::kClaim;
  handle->context = operation.context;
  handle->buffer = placed && !segments.empty() ? segments[0].address : nullptr;
  handle->use = {.ticket = prepared.ticket,
                 .state = static_cast<uint8_t>(
                     kPosted | (operation.many ? kMany : 0) |
                     (placed ? 0 : kLooks) | (claims ? kClaims : 0)),
                 .report = operation.report};
  ring_->Push([&](contract::MatchDesc& slot) {
    Describe(operation, handle->name, prepared.iova,
             placed ? static_cast<uint32_t>(bytes) : 0, slot);
  });
  return 0;
}

template int
PostingContext<MatchQueue, MatchRing, contract::MatchDesc, MatchOperation>::
    PostSegments<backend::Locked>(const MatchOperation&,
                                  std::span<const Segment>) noexcept;
template int
PostingContext<MatchQueue, MatchRing, contract::MatchDesc, MatchOperation>::
    PostSegments<backend::Unlocked>(const MatchOperation&,
                                    std::span<const Segment>) noexcept;

Finished MatchQueue::Retire(const contract::Completion& entry) noexcept {
  Handle* const handle = Find(entry);
  if (handle == nullptr || (handle->use.state & kPosted) == 0) {
    // Nothing was posted under this name: not ours to free or to report.
    Break();
    return {};
  }
  const Use use = handle->use;
  const bool succeeded = entry.status == contract::Status::kOk;
  const bool many = (use.state & kMany) != 0;
  const bool released =
      many && ((entry.flags & contract::kCompletionFlagBufferReleased) != 0 ||
               entry.status == contract::Status::kCancelled);
  const bool placed =
      (entry.flags & contract::kCompletionFlagBufferOffset) != 0;
  const bool looks = (use.state & kLooks) != 0;
  static_assert(contract::kCompletionFlagHeaderData == 1);
  const uint64_t has_data = entry.flags & contract::kCompletionFlagHeaderData;
  Finished result = {
      .context = handle->context,
      .buffer = handle->buffer,
      .peers = peers(),
      .known = true,
      .report = use.report,
      .matched = true,
      .flags = operation_flags_ | has_data * FI_REMOTE_CQ_DATA |
               (released ? FI_MULTI_RECV : 0),
      .length = looks && succeeded ? entry.message_length : entry.length};
  if (many && placed) {
    const uint32_t offset = entry.queue_head | uint32_t{entry.position} << 16;
    result.buffer = static_cast<std::byte*>(handle->buffer) + offset;
  } else if (released && succeeded) {
    // Source: fi_cq(3), a buffer that is released without a message.
    result.flags = FI_MULTI_RECV;
    result.report = true;
  }
  if (many && !released) {
    return result;
  }
  registrar_->FinishReceive(use.ticket, entry.length);
  if (succeeded && (use.state & kClaims) != 0) {
    handle->use = {.state = kClaimed};
  } else {
    Release(*handle);
  }
  return result;
}

MatchQueue::Handle* MatchQueue::FindOldest(uint64_t context,
                                           uint8_t state) noexcept {
  Handle* oldest = nullptr;
  uint32_t unseen = receives_ - free_count_;
  for (uint32_t i = 0; i < receives_ && unseen != 0; ++i) {
    Handle& handle = handles_[i];
    unseen -= handle.use.state != 0 ? 1 : 0;
    if ((handle.use.state & state) != 0 && handle.context == context &&
        (oldest == nullptr || handle.order < oldest->order) &&
        (handle.use.state & (kCancelling | kLooks)) == 0) {
      oldest = &handle;
    }
  }
  return oldest;
}

bool MatchQueue::CancelOldest(uint64_t context) noexcept {
  Handle* const handle = FindOldest(context, kPosted);
  if (handle == nullptr) {
    return false;
  }
  ring_->Publish();
  handle->use.state |= kCancelling;
  ring_->Cancel(handle->name);
  return true;
}

std::optional<contract::Completion> MatchQueue::FindLost() noexcept {
  Break();
  ring_->Publish();
  for (; lost_passed_ < receives_; ++lost_passed_) {
    const Handle& handle = handles_[lost_passed_];
    if ((handle.use.state & kPosted) != 0) {
      return contract::Completion{
          .op_context = handle.name,
          .status = contract::Status::kDeviceFault,
          .flags = (handle.use.state & kMany) != 0
                       ? contract::kCompletionFlagBufferReleased
                       : uint8_t{0},
          .context = contract::LowByte(context()),
          .context_high = contract::HighByte(context()),
          .kind = contract::CompletionKind::kRx};
    }
  }
  return std::nullopt;
}

void MatchQueue::Abandon() noexcept {
  for (uint32_t i = 0; i < receives_; ++i) {
    if ((handles_[i].use.state & kPosted) != 0) {
      registrar_->FinishReceive(handles_[i].use.ticket, 0);
    }
    handles_[i].use = {};
  }
  const EndedMemory ended = std::move(registrar_->ended());
}

}  // namespace heddle::nic
