// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/tx_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "driver/queue/doorbells.h"

namespace heddle::nic {
namespace {

// One with extension slots takes up to four; two each on average.
constexpr size_t kSlotsPerOperation = 2;

// With operations of several descriptors the smallest ring holds a few of the
// longest.
constexpr uint32_t kRingLog2MinWithMore = 6;

uint8_t RingLog2(size_t operations, bool more) {
  const size_t slots = std::clamp<size_t>(
      std::bit_ceil(operations * kSlotsPerOperation),
      size_t{1} << (more ? kRingLog2MinWithMore : contract::kRingLog2Min),
      size_t{1} << contract::kRingLog2Max);
  return static_cast<uint8_t>(std::countr_zero(slots));
}

void GatherInto(std::span<const Segment> segments, std::byte* to) {
  for (const Segment& segment : segments) {
    if (segment.bytes != 0) {
      std::memcpy(to, segment.address, segment.bytes);
      to += segment.bytes;
    }
  }
}

// The device reads a short payload where it reads the descriptor.
bool IsInRing(const Operation& operation, size_t bytes) {
  return operation.opcode != backend::Opcode::kRead &&
         bytes <= contract::kInjectBytes;
}

// The operation at piece `i` of `count` of the peer's memory. The last stands
// for all.
Operation PartOf(const Operation& operation, const RemoteSegment& remote,
                 size_t i, size_t count) {
  Operation part = operation;
  part.key = remote.key;
  part.address = remote.address;
  if (i + 1 != count) {
    part.flags =
        static_cast<uint8_t>((part.flags & ~(contract::kTxFlagCompletion |
                                             contract::kTxFlagHeaderData)) |
                             contract::kTxFlagMore);
  } else if (count > 1 && (part.flags & contract::kTxFlagHeaderData) != 0) {
    // Data tell the target that all of it is there.
    part.flags |= contract::kTxFlagFence;
  }
  return part;
}

}  // namespace

Result<std::unique_ptr<TxQueue>> TxQueue::Create(Device& device,
                                                 const Options& options,
                                                 CqCredit* credit) {
  std::unique_ptr<TxQueue> queue(new TxQueue());
  queue->ring_log2_ = RingLog2(options.operations, options.more);
  queue->scatter_gather_ = options.scatter_gather;
  queue->more_ = options.more;
  queue->reads_in_place_ = options.reads_in_place;
  queue->credit_ = credit;
  queue->peers_ = options.peers;
  const size_t slots = size_t{1} << queue->ring_log2_;
  // An operation that completes keeps a slot until its completion is read.
  queue->counts_credit_ = !credit->TryReserve(static_cast<uint32_t>(slots));
  queue->obstacles_.careful = queue->counts_credit_ ? 1 : 0;
  // What is given up takes entries of the completion queue beyond its slots.
  const bool spill = options.spill && !queue->counts_credit_;
  queue->completions_ = options.completions;
  queue->slot_mask_ = static_cast<uint32_t>(slots - 1);
  auto memory =
      DmaBuffer::Create(device, queue->ring_bytes() + sizeof(uint64_t));
  if (!memory.ok()) {
    return memory.error();
  }
  queue->memory_ = std::move(memory.value());
  auto registrar = Registrar::Create(
      device, {.copy_limit_bytes = options.copy_limit_bytes,
               .tickets = static_cast<uint32_t>(
                   slots + (spill ? contract::kMessageShare : 0)),
               .slabs = {},
               .on_refused = options.on_refused});
  if (!registrar.ok()) {
    return registrar.error();
  }
  queue->registrar_.emplace(std::move(registrar.value()));
  queue->slots_ = std::make_unique<Slot[]>(slots);
  if (spill) {
    if (auto area = queue->CreateSpillArea(device); !area.ok()) {
      return area.error();
    }
  }
  return queue;
}

TxQueue::~TxQueue() {
  if (!counts_credit_) {
    credit_->ReturnReserved(slot_mask_ + 1);
  }
}

Result<bool> TxQueue::Bind(Device& device, uint32_t context) {
  auto ring = SendRing::Create(
      memory_.entries<contract::TxDesc>(size_t{1} << ring_log2_),
      reinterpret_cast<const uint64_t*>(memory_.data() + ring_bytes()),
      TxTailDoorbell(device, context), TxPushTarget(device, context));
  if (!ring.ok()) {
    return ring.error();
  }
  ring_.emplace(ring.value());
  ring_->Close(counts_credit_);
  SetDirect(ring_->direct());
  LimitRing();
  if (completions_ != nullptr) {
    written_.fill(completions_->EntriesWritten());
  }
  context_ = context;
  return true;
}

Registrar::Pieces TxQueue::Prepare(std::span<const Segment> segments,
                                   bool receive) {
  const bool in_place = receive && reads_in_place_;
  if (scatter_gather_) {
    return registrar_->PreparePieces(segments, receive, in_place);
  }
  const Prepared prepared = in_place  ? registrar_->PrepareInPlace(segments)
                            : receive ? registrar_->PrepareReceive(segments)
                                      : registrar_->PrepareSend(segments);
  size_t bytes = 0;
  for (const Segment& segment : segments) {
    bytes += segment.bytes;
  }
  Registrar::Pieces made{.status = prepared.status,
                         .ticket = prepared.ticket,
                         .error = prepared.error,
                         .count = bytes == 0 ? 0U : 1U,
                         .pieces = {}};
  made.pieces[0] = {prepared.iova, static_cast<uint32_t>(bytes)};
  return made;
}

int TxQueue::Check(const Operation& operation, std::span<const Segment> local,
                   std::span<const RemoteSegment> remote) const noexcept {
  if (local.size() > kMaxSegments || remote.empty() ||
      remote.size() > (more_ ? kMaxSegments : 1)) {
    return EINVAL;
  }
  const size_t limit =
      operation.copy_now ? contract::kInjectBytes : contract::kMaxMessageBytes;
  size_t bytes = 0;  // A few of at most 2^32: cannot wrap.
  for (const Segment& segment : local) {
    if (segment.bytes > limit) {
      return EMSGSIZE;
    }
    bytes += segment.bytes;
  }
  if (bytes > limit) {
    return EMSGSIZE;
  }
  const auto outside = [](const Segment& segment) {
    return segment.region != nullptr && segment.bytes != 0 &&
           !segment.region->Covers(segment.address, segment.bytes);
  };
  if (!IsInRing(operation, bytes) && std::ranges::any_of(local, outside)) {
    return EINVAL;
  }
  size_t remote_bytes = 0;
  for (const RemoteSegment& segment : remote) {
    if (segment.bytes > contract::kMaxMessageBytes) {
      return EMSGSIZE;
    }
    remote_bytes += segment.bytes;
  }
  return bytes == remote_bytes ? 0 : EINVAL;
}

bool TxQueue::MakeRoom(const Operation& operation, size_t segments,
                       std::span<const RemoteSegment> remote) noexcept {
  const auto fits = [&] {
    if (remote.size() > 1) {
      return ring_->free_slots() >= kSlotsOfLongest;
    }
    const bool pieces = scatter_gather_ && segments > 1;
    return ring_->Fits(IsInRing(operation, remote[0].bytes)
                           ? SendRing::SlotsInRing(remote[0].bytes)
                           : (pieces ? 2 : 1));
  };
  while (!fits()) {
    if (!Refill()) {
      return false;
    }
  }
  return true;
}

template <typename Locking>
int TxQueue::PostSegments(const Operation& operation,
                          std::span<const Segment> local,
                          std::span<const RemoteSegment> remote) noexcept {
  if (const int error = Check(operation, local, remote); error != 0) {
    return error;
  }
  const MappingGuard<Locking> guard(lock_, *registrar_);
  if (broken_) [[unlikely]] {
    return EIO;
  }
  if (!MakeRoom(operation, local.size(), remote) ||
      (WantsCompletion(operation) && !TakeCredit<Locking>())) {
    return RefuseFull();
  }
  const int error = Push<Locking>(operation, local, remote);
  if (error == 0) {
    signaled_ += WantsCompletion(operation) ? 1 : 0;
  } else if (WantsCompletion(operation)) {
    ReturnCredit<Locking>();
  }
  if (!operation.more || error != 0) {
    ring_->Publish();
  }
  return error;
}
template int TxQueue::PostSegments<backend::Locked>(
    const Operation&, std::span<const Segment>,
    std::span<const RemoteSegment>) noexcept;
template int TxQueue::PostSegments<backend::Unlocked>(
    const Operation&, std::span<const Segment>,
    std::span<const RemoteSegment>) noexcept;

template <typename Locking>
int TxQueue::Push(const Operation& operation, std::span<const Segment> local,
                  std::span<const RemoteSegment> remote) noexcept {
  size_t bytes = 0;
  for (const RemoteSegment& segment : remote) {
    bytes += segment.bytes;
  }
  if (IsInRing(operation, bytes)) {
    PushInRing(operation, local, remote);
    return 0;
  }
  const uint32_t left = registrar_->times_left();
  const Registrar::Pieces pieces =
      Prepare(local, operation.opcode == backend::Opcode::kRead);
  if (pieces.status != Prepared::Status::kOk) {
    return pieces.status == Prepared::Status::kFull
               ? EAGAIN
               : static_cast<int>(pieces.error);
  }
  // Other threads may have posted meanwhile.
  if (registrar_->times_left() != left &&
      (broken_ || !MakeRoom(operation, local.size(), remote))) {
    registrar_->FinishSend(pieces.ticket);
    return broken_ ? EIO : EAGAIN;
  }
  // What is read into a bounce buffer is moved when the completion is read, so
  // there has to be one.
  Operation asked = operation;
  const bool silent =
      registrar_->CopiesOut(pieces.ticket) && !WantsCompletion(operation);
  if (silent) {
    if (!TakeCredit<Locking>()) {
      registrar_->FinishSend(pieces.ticket);
      return EAGAIN;
    }
    asked.flags |= contract::kTxFlagCompletion;
    ++signaled_;
  }
  PushPieces(asked, pieces.list(), remote);
  Hold(pieces.ticket, silent);
  return 0;
}

// There are free slots, so that these cannot fail.
void TxQueue::PushInRing(const Operation& operation,
                         std::span<const Segment> local,
                         std::span<const RemoteSegment> remote) noexcept {
  std::array<std::byte, contract::kInjectBytes> gathered;
  GatherInto(local, gathered.data());
  const std::byte* data = gathered.data();
  for (size_t i = 0; i < remote.size(); ++i) {
    const SendFields fields =
        Fields(PartOf(operation, remote[i], i, remote.size()));
    const auto bytes = static_cast<uint32_t>(remote[i].bytes);
    (void)(bytes <= contract::kInlineBytes
               ? ring_->PushInline(fields, data, bytes)
               : ring_->PushInlineExt(fields, data, bytes));
    data += bytes;
  }
}

void TxQueue::PushPieces(const Operation& operation,
                         std::span<const LocalPiece> local,
                         std::span<const RemoteSegment> remote) noexcept {
  size_t at = 0;      // Piece that is not used up.
  uint32_t used = 0;  // Bytes of it.
  for (size_t i = 0; i < remote.size(); ++i) {
    std::array<LocalPiece, kMaxSegments> pieces;
    size_t count = 0;
    auto left = static_cast<uint32_t>(remote[i].bytes);
    while (left != 0) {
      const uint32_t bytes = std::min(left, local[at].bytes - used);
      pieces[count++] = {local[at].iova + used, bytes};
      left -= bytes;
      used += bytes;
      if (used == local[at].bytes) {
        ++at;
        used = 0;
      }
    }
    (void)ring_->PushPieces(
        Fields(PartOf(operation, remote[i], i, remote.size())),
        {pieces.data(), count}, static_cast<uint32_t>(remote[i].bytes));
  }
}

void TxQueue::Hold(Ticket ticket, bool silent) noexcept {
  if (ticket == kNoTicket) {
    return;
  }
  const bool copies_out = registrar_->CopiesOut(ticket);
  slots_[ring_->last_position() & slot_mask_] = {
      .ticket = ticket, .copies_out = copies_out, .silent = silent};
  ++obstacles_.held;
  copying_ += copies_out ? 1 : 0;
}

bool TxQueue::Refill() noexcept {
  const bool moved = TakeHeadCell();
  return spill_ == nullptr ? moved : MakeRoomSpilling(moved);
}

bool TxQueue::TakeHeadCell() noexcept {
  const uint16_t cell = ring_->head_cell();
  if (cell == seen_cell_ || IsOldCell(cell)) {
    return false;
  }
  const uint16_t head = ring_->head();
  const uint16_t limited = LimitToSilent(cell);
  seen_cell_ = limited == cell ? cell : seen_cell_;
  ReleaseTo(limited);
  return ring_->head() != head;
}

// The device does not store what completions tell, so that the cell may be
// behind the ring by any number of slots; counts wrap. A value that was used,
// or found to be behind, is never looked at again, and each is looked at before
// the ring can come round to it.
bool TxQueue::IsOldCell(uint16_t cell) noexcept {
  constexpr uint16_t kHalf = 0x8000;
  const bool old = SlotDistance(cell, ring_->head()) < kHalf;
  seen_cell_ = old ? cell : seen_cell_;
  return old;
}

int TxQueue::RefuseFull() noexcept {
  ring_->Publish();
  return EAGAIN;
}

// The cell runs ahead of completions that wait to be read. A slot that has one
// is kept until then, so that the head in each completion is newer than the
// ring's: positions wrap.
uint16_t TxQueue::LimitToSilent(uint16_t cell) const noexcept {
  if (spilling()) {
    return LimitSpilling(cell);
  }
  const uint16_t head = ring_->head();
  const uint16_t ahead = SlotDistance(head, cell);
  if (ahead > SlotDistance(head, ring_->tail())) {
    return cell;  // Wrong: the ring tells.
  }
  if (signaled_ == 0) {
    return cell;
  }
  uint16_t limited = head;
  while (SlotDistance(head, limited) < ahead) {
    const contract::TxDesc& desc = descriptor(limited);
    if ((desc.flags & contract::kTxFlagCompletion) != 0 &&
        desc.opcode != contract::Opcode::kNop) {
      return limited;
    }
    limited = static_cast<uint16_t>(limited + 1 + desc.ext_slots);
  }
  return cell;
}

// The device may have released a slot whose completion waits to be read.
uint16_t TxQueue::LimitHead(uint16_t queue_head) const noexcept {
  const uint16_t head = ring_->head();
  const uint16_t ahead = SlotDistance(head, queue_head);
  if (ahead > SlotDistance(head, ring_->tail())) {
    return queue_head;  // Old, or wrong: the ring tells.
  }
  uint16_t limited = head;
  while (limited != queue_head && !slots_[limited & slot_mask_].copies_out) {
    ++limited;
  }
  return limited;
}

void TxQueue::ReleaseTo(uint16_t queue_head) noexcept {
  if (copying_ != 0) [[unlikely]] {
    if (spilling()) {
      ReleaseSpilling(queue_head);
      return;
    }
    queue_head = LimitHead(queue_head);
  }
  const uint16_t old_head = ring_->head();
  if (ring_->ReleaseTo(queue_head) == Release::kBogus) [[unlikely]] {
    Break();
    return;
  }
  LookAtCell(old_head);
  for (uint16_t p = old_head; obstacles_.held != 0 && p != ring_->head(); ++p) {
    FinishSlot(p, 0);
  }
}

void TxQueue::LookAtCell(uint16_t old_head) noexcept {
  if (((old_head ^ ring_->head()) & kLookEvery) != 0) [[unlikely]] {
    (void)IsOldCell(ring_->head_cell());
    if (completions_ != nullptr) {
      written_[ring_->head() / kLookEvery] = completions_->EntriesWritten();
    }
  }
}

// A failure that was asked for by nobody holds no slot: it may be read when the
// ring has come round.
bool TxQueue::IsOfFormer(const contract::Completion& entry) const noexcept {
  if (completions_ == nullptr) {
    return false;
  }
  uint64_t written = WrittenBefore(entry.position);
  if (spilling()) {
    const SpilledOperation* kept = spill_->operations.Find(entry.position);
    written = kept == nullptr ? written : kept->written_before;
  }
  return completions_->EntriesRead() < written;
}

bool TxQueue::WasSignaled(const contract::Completion& entry) const noexcept {
  if (IsOfFormer(entry)) {
    return false;
  }
  if (spilling()) {
    const SpilledOperation* kept = spill_->operations.Find(entry.position);
    if (kept != nullptr) {
      return kept->signaled;
    }
  }
  const contract::TxDesc& desc = descriptor(entry.position);
  return desc.position == entry.position &&
         desc.op_context == entry.op_context &&
         (desc.flags & contract::kTxFlagCompletion) != 0;
}

// The head cell does not wait for it to be read. Once that has passed its slot,
// the head in the entry says nothing, and the slot is another operation's.
bool TxQueue::RetireUnasked(const contract::Completion& entry) noexcept {
  if (IsOfFormer(entry)) {
    return true;
  }
  const uint16_t head = ring_->head();
  const bool in_ring =
      SlotDistance(head, entry.position) < SlotDistance(head, ring_->tail()) &&
      descriptor(entry.position).op_context == entry.op_context;
  return in_ring || spilling() ? Finish(entry) : true;
}

bool TxQueue::FinishOperation(const contract::Completion& entry) noexcept {
  bool silent = false;
  if (copying_ != 0) [[unlikely]] {
    if (spilling()) {
      return FinishSpilling(entry);
    }
    silent = slots_[entry.position & slot_mask_].silent;
  }
  // What succeeds has placed all that was asked for.
  FinishSlot(entry.position,
             entry.status == contract::Status::kOk ? SIZE_MAX : 0);
  return !silent;
}

void TxQueue::FinishSlot(uint16_t position, size_t placed_bytes) noexcept {
  Slot& slot = slots_[position & slot_mask_];
  if (slot.ticket != kNoTicket) {
    if (slot.ticket != kComplete) {
      registrar_->FinishReceive(slot.ticket, placed_bytes);
    }
    copying_ -= slot.copies_out ? 1 : 0;
    slot = {};
    --obstacles_.held;
  }
}

void TxQueue::MarkComplete(uint16_t position) noexcept {
  if (spilling()) {
    return;  // `FinishSpilling` did.
  }
  Slot& slot = slots_[position & slot_mask_];
  if (slot.ticket == kNoTicket) {
    slot.ticket = kComplete;
    ++obstacles_.held;
  }
}

std::optional<contract::Completion> TxQueue::FindLost() noexcept {
  Break();
  ring_->Publish();
  if (spilling() && !spill_->operations.empty()) {
    // Its slots are gone, so it releases none.
    const SpilledOperation& kept = *spill_->operations.oldest();
    return contract::Completion{.op_context = kept.op_context,
                                .length = kept.length,
                                .message_length = kept.length,
                                .peer = kept.peer,
                                .queue_head = ring_->head(),
                                .position = kept.position,
                                .status = contract::Status::kDeviceFault,
                                .opcode = kept.opcode,
                                .context = contract::LowByte(context_),
                                .context_high = contract::HighByte(context_),
                                .kind = contract::CompletionKind::kTx};
  }
  // Operations that asked for no completion are done before this.
  const auto released = static_cast<uint16_t>(LoadShared(
      reinterpret_cast<const uint64_t*>(memory_.data() + ring_bytes())));
  for (uint16_t at = ring_->head(); at != ring_->tail();) {
    const contract::TxDesc& desc = descriptor(at);
    const auto after = static_cast<uint16_t>(at + 1 + desc.ext_slots);
    // The last descriptor of an operation stands for it.
    const bool done = slots_[at & slot_mask_].ticket == kComplete ||
                      (desc.flags & contract::kTxFlagMore) != 0 ||
                      ((desc.flags & contract::kTxFlagCompletion) == 0 &&
                       static_cast<int16_t>(released - after) >= 0 &&
                       !(spilling() && IsGivenUp(at)));
    if (desc.opcode != contract::Opcode::kNop && !done) {
      return contract::Completion{.op_context = desc.op_context,
                                  .length = desc.length,
                                  .message_length = desc.length,
                                  .peer = desc.peer,
                                  .queue_head = after,
                                  .position = at,
                                  .status = contract::Status::kDeviceFault,
                                  .opcode = desc.opcode,
                                  .context = contract::LowByte(context_),
                                  .context_high = contract::HighByte(context_),
                                  .kind = contract::CompletionKind::kTx};
    }
    at = after;
  }
  return std::nullopt;
}

void TxQueue::Abandon() noexcept {
  if (spill_ != nullptr) {
    AbandonSpilled();
  }
  for (uint32_t slot = 0; obstacles_.held != 0 && slot <= slot_mask_; ++slot) {
    FinishSlot(static_cast<uint16_t>(slot), 0);
  }
  ReturnCredit<backend::Locked>(signaled_);
  signaled_ = 0;
  const EndedMemory ended = std::move(registrar_->ended());
}

}  // namespace heddle::nic
