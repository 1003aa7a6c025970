// SPDX-License-Identifier: Apache-2.0
// fi_cq_read and fi_cq_readfrom, one instance per format and threading model.
#pragma once

#include <rdma/fi_eq.h>

#include <array>

#include "host/lib/ofi/completion_queue.h"

namespace heddle::ofi {

// What ended, by kind of completion and opcode; four bits hold every opcode.
inline constexpr auto kOperationFlags = [] {
  std::array<std::array<uint64_t, 16>, 4> flags{};
  const auto of = [&flags](contract::CompletionKind kind) -> auto& {
    return flags[static_cast<size_t>(kind)];
  };
  of(contract::CompletionKind::kTx).fill(FI_MSG | FI_SEND);
  of(contract::CompletionKind::kRx).fill(FI_MSG | FI_RECV);
  of(contract::CompletionKind::kTarget).fill(FI_RMA | FI_REMOTE_WRITE);
  constexpr auto kRead = static_cast<size_t>(contract::Opcode::kRead);
  constexpr auto kWrite = static_cast<size_t>(contract::Opcode::kWrite);
  of(contract::CompletionKind::kTx)[kRead] = FI_RMA | FI_READ;
  of(contract::CompletionKind::kTx)[kWrite] = FI_RMA | FI_WRITE;
  of(contract::CompletionKind::kTarget)[kRead] = FI_RMA | FI_REMOTE_READ;
  return flags;
}();

// `kind` is that of the entry.
inline uint64_t CompletionFlags(contract::CompletionKind kind,
                                const contract::Completion& entry) noexcept {
  uint64_t flags = FI_MSG | FI_RECV;
  if (kind != contract::CompletionKind::kRx) {
    flags = kOperationFlags[static_cast<size_t>(kind) % 4]
                           [static_cast<size_t>(entry.opcode) % 16];
  }
  static_assert(contract::kCompletionFlagHeaderData == 1);
  const uint64_t has_data = entry.flags & contract::kCompletionFlagHeaderData;
  return flags | has_data * FI_REMOTE_CQ_DATA;
}

inline void* ToContext(uint64_t context) noexcept {
  // What the application gave as a pointer.
  return reinterpret_cast<void*>(context);  // NOLINT(performance-no-int-to-ptr)
}

// Each format is the next one's beginning (fi_cq(3)).
struct ContextFormat {
  using Entry = fi_cq_entry;
  static void Write(Entry& out, contract::CompletionKind /*kind*/,
                    const contract::Completion& /*entry*/,
                    const nic::Finished& finished) noexcept {
    out.op_context = ToContext(finished.context);
  }
};

struct MsgFormat {
  using Entry = fi_cq_msg_entry;
  static void Write(Entry& out, contract::CompletionKind kind,
                    const contract::Completion& entry,
                    const nic::Finished& finished) noexcept {
    out.op_context = ToContext(finished.context);
    out.flags = CompletionFlags(kind, entry);
    out.len = entry.length;
  }
};

struct DataFormat {
  using Entry = fi_cq_data_entry;
  static void Write(Entry& out, contract::CompletionKind kind,
                    const contract::Completion& entry,
                    const nic::Finished& finished) noexcept {
    out.op_context = ToContext(finished.context);
    out.flags = CompletionFlags(kind, entry);
    out.len = entry.length;
    out.buf = finished.buffer;
    out.data = entry.header_data;
  }
};

struct TaggedFormat {
  using Entry = fi_cq_tagged_entry;
  static void Write(Entry& out, contract::CompletionKind kind,
                    const contract::Completion& entry,
                    const nic::Finished& finished) noexcept {
    out.op_context = ToContext(finished.context);
    out.flags = CompletionFlags(kind, entry);
    out.len = entry.length;
    out.buf = finished.buffer;
    // Both are read before either is written: one copy of 16 bytes.
    const uint64_t data = entry.header_data;
    const uint64_t tag = entry.match_bits;
    out.data = data;
    out.tag = tag;
  }
};

// Who sent the message or began the operation that ended here, if it is known
// and somebody asked (FI_SOURCE).
inline fi_addr_t SourceOf(const contract::Completion& entry,
                          const nic::Finished& finished) noexcept {
  if (entry.kind == contract::CompletionKind::kTx ||
      finished.peers == nullptr) {
    return FI_ADDR_NOTAVAIL;
  }
  const uint32_t index =
      finished.peers->FindSource(nic::SenderOf(entry), entry.peer);
  return index == nic::AddressTable::kNoPeer ? FI_ADDR_NOTAVAIL : index;
}

template <typename Locking, typename Format>
struct CqReader {
  static ssize_t ReadFrom(fid_cq* handle, void* buffer, size_t count,
                          fi_addr_t* sources) noexcept {
    return sources == nullptr ? Take<false>(handle, buffer, count, nullptr)
                              : Take<true>(handle, buffer, count, sources);
  }

  static ssize_t Read(fid_cq* handle, void* buffer, size_t count) noexcept {
    return Take<false>(handle, buffer, count, nullptr);
  }

 private:
  template <bool kSources>
  [[gnu::always_inline]] static inline ssize_t Take(
      fid_cq* handle, void* buffer, size_t count, fi_addr_t* sources) noexcept {
    auto* entries = static_cast<typename Format::Entry*>(buffer);
    if constexpr (!Locking::kLocks) {
      // The most frequent polls of all save no register.
      CompletionQueue* queue = CompletionQueue::From(handle);
      const contract::Completion* entry = queue->backend().Peek();
      if (entry == nullptr) {
        return queue->IsIdlePoll()
                   ? -FI_EAGAIN
                   : TakeIdle<kSources>(handle, entries, count, sources);
      }
      if (!kSources && count == 1 && entry->status == contract::Status::kOk) {
        return TryTakeOne(queue->backend(), entries, *entry)
                   ? 1
                   : TakeOne(handle, entries, *entry);
      }
    }
    return TakeSome<kSources>(handle, entries, count, sources);
  }

  template <bool kSources>
  [[gnu::noinline]] static ssize_t TakeIdle(fid_cq* handle,
                                            typename Format::Entry* entries,
                                            size_t count,
                                            fi_addr_t* sources) noexcept {
    CompletionQueue* queue = CompletionQueue::From(handle);
    if (!queue->backend().needs_step()) {
      return queue->AnswerIdle();
    }
    queue->EndIdlePolls();
    return TakeSome<kSources>(handle, entries, count, sources);
  }

  // The oldest entry, of success, where nothing is to be done but to report
  // it. False, changing nothing, else.
  [[gnu::always_inline]] static inline bool TryTakeOne(
      nic::Cq& cq, typename Format::Entry* out,
      const contract::Completion& entry) noexcept {
    using Kind = contract::CompletionKind;
    if (entry.kind == Kind::kRx) {
      nic::RxQueue* queue = cq.ReceiverOfEntry(entry);
      void* buffer = nullptr;
      if (queue == nullptr || !queue->TryRetire(entry, &buffer)) [[unlikely]] {
        return false;
      }
      Format::Write(*out, Kind::kRx, entry,
                    {.context = entry.op_context, .buffer = buffer});
    } else if (entry.kind == Kind::kTx) {
      nic::TxQueue* queue = cq.SenderOfEntry(entry);
      if (queue == nullptr || !queue->TryRetire(entry)) [[unlikely]] {
        return false;
      }
      Format::Write(*out, Kind::kTx, entry, {.context = entry.op_context});
    } else {
      return false;
    }
    cq.Pop();
    return true;
  }

  // The oldest entry, of success, or what comes behind it where nobody is to
  // hear of it. The application serializes.
  [[gnu::noinline]] static ssize_t TakeOne(
      fid_cq* handle, typename Format::Entry* out,
      const contract::Completion& entry) noexcept {
    nic::Cq& cq = CompletionQueue::From(handle)->backend();
    bool taken = false;
    cq.RetireInto<Locking>(
        entry, [&](contract::CompletionKind kind, const nic::Finished& finished)
                   __attribute__((always_inline)) {
                     taken = finished.report;
                     if (taken) {
                       Format::Write(*out, kind, entry, finished);
                     }
                   });
    cq.Pop();
    return taken ? 1 : TakeSome<false>(handle, out, 1, nullptr);
  }

  template <bool kSources>
  [[gnu::noinline]] static ssize_t TakeSome(fid_cq* handle,
                                            typename Format::Entry* entries,
                                            size_t count,
                                            fi_addr_t* sources) noexcept {
    CompletionQueue* queue = CompletionQueue::From(handle);
    nic::Cq& cq = queue->backend();
    const ssize_t result = Drain<kSources>(cq, entries, count, sources);
    if (result != -FI_EAGAIN) {
      return result;
    }
    return cq.needs_step()
               ? TakeAfterStep<kSources>(queue, entries, count, sources)
               : queue->AnswerEmpty();
  }

  // The device is not hardware: the poll lends it the thread.
  template <bool kSources>
  [[gnu::noinline]] static ssize_t TakeAfterStep(
      CompletionQueue* queue, typename Format::Entry* entries, size_t count,
      fi_addr_t* sources) noexcept {
    queue->backend().Step();
    const ssize_t result =
        Drain<kSources>(queue->backend(), entries, count, sources);
    return result == -FI_EAGAIN ? queue->AnswerEmpty() : result;
  }

  // Takes what is there, up to the first error: -FI_EAVAIL if that comes
  // first, -FI_EAGAIN if there is nothing.
  template <bool kSources>
  [[gnu::always_inline]] static inline ssize_t Drain(
      nic::Cq& cq, typename Format::Entry* entries, size_t count,
      fi_addr_t* sources) noexcept {
    const typename Locking::Guard guard(cq.lock());
    const contract::Completion* entry = cq.Peek();
    if (entry == nullptr) {
      return -FI_EAGAIN;
    }
    size_t taken = 0;
    while (taken < count) {
      if constexpr (kSources) {
        (void)cq.RefuseStranger(*entry);
      }
      if (entry->status != contract::Status::kOk && cq.IsOfQueue(*entry))
          [[unlikely]] {
        break;
      }
      cq.RetireInto<Locking>(
          *entry, [&](contract::CompletionKind kind,
                      const nic::Finished& finished)
                      __attribute__((always_inline)) {
                        if (!finished.report) {
                          return;
                        }
                        Format::Write(entries[taken], kind, *entry, finished);
                        if constexpr (kSources) {
                          sources[taken] = SourceOf(*entry, finished);
                        }
                        ++taken;
                      });
      cq.Pop();
      if (taken == count) {
        break;
      }
      entry = cq.Peek();
      if (entry == nullptr) {
        return taken != 0 ? static_cast<ssize_t>(taken) : -FI_EAGAIN;
      }
    }
    if (taken != 0) {
      return static_cast<ssize_t>(taken);
    }
    return entry->status != contract::Status::kOk && cq.IsOfQueue(*entry)
               ? -FI_EAVAIL
               : 0;
  }
};

}  // namespace heddle::ofi
