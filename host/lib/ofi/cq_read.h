// SPDX-License-Identifier: Apache-2.0
// fi_cq_read and fi_cq_readfrom, one instance per format and threading model.
#pragma once

#include <rdma/fi_eq.h>

#include "host/lib/ofi/completion_queue.h"

namespace heddle::ofi {

inline uint64_t CompletionFlags(const contract::Completion& entry) noexcept {
  uint64_t flags = FI_MSG;
  flags |= entry.kind == contract::CompletionKind::kTx ? FI_SEND : FI_RECV;
  if ((entry.flags & contract::kCompletionFlagHeaderData) != 0) {
    flags |= FI_REMOTE_CQ_DATA;
  }
  return flags;
}

inline void* ToContext(uint64_t context) noexcept {
  // What the application gave as a pointer.
  return reinterpret_cast<void*>(context);  // NOLINT(performance-no-int-to-ptr)
}

// Each format is the next one's beginning (fi_cq(3)).
struct ContextFormat {
  using Entry = fi_cq_entry;
  static void Write(Entry& out, const contract::Completion& /*entry*/,
                    const nic::Finished& finished) noexcept {
    out.op_context = ToContext(finished.context);
  }
};

struct MsgFormat {
  using Entry = fi_cq_msg_entry;
  static void Write(Entry& out, const contract::Completion& entry,
                    const nic::Finished& finished) noexcept {
    out.op_context = ToContext(finished.context);
    out.flags = CompletionFlags(entry);
    out.len = entry.length;
  }
};

struct DataFormat {
  using Entry = fi_cq_data_entry;
  static void Write(Entry& out, const contract::Completion& entry,
                    const nic::Finished& finished) noexcept {
    out.op_context = ToContext(finished.context);
    out.flags = CompletionFlags(entry);
    out.len = entry.length;
    out.buf = finished.buffer;
    out.data = entry.header_data;
  }
};

struct TaggedFormat {
  using Entry = fi_cq_tagged_entry;
  static void Write(Entry& out, const contract::Completion& entry,
                    const nic::Finished& finished) noexcept {
    out.op_context = ToContext(finished.context);
    out.flags = CompletionFlags(entry);
    out.len = entry.length;
    out.buf = finished.buffer;
    out.data = entry.header_data;
    out.tag = entry.match_bits;
  }
};

// Sender of a received message, if it is known and somebody asked (FI_SOURCE).
inline fi_addr_t SourceOf(const contract::Completion& entry,
                          const nic::Finished& finished) noexcept {
  if (entry.kind != contract::CompletionKind::kRx ||
      finished.peers == nullptr ||
      (entry.flags & contract::kCompletionFlagSourceIpv6) != 0) {
    return FI_ADDR_NOTAVAIL;
  }
  const uint32_t index = finished.peers->FindSource(
      static_cast<uint32_t>(entry.source_fa_lo), entry.peer);
  return index == nic::AddressTable::kNoPeer ? FI_ADDR_NOTAVAIL : index;
}

template <typename Locking, typename Format>
struct CqReader {
  static ssize_t ReadFrom(fid_cq* handle, void* buffer, size_t count,
                          fi_addr_t* sources) noexcept {
    CompletionQueue* queue = CompletionQueue::From(handle);
    nic::Cq& cq = queue->backend();
    auto* entries = static_cast<typename Format::Entry*>(buffer);
    ssize_t result = Drain(cq, entries, count, sources);
    if (result == -FI_EAGAIN) {
      cq.Step();
      result = Drain(cq, entries, count, sources);
      if (result == -FI_EAGAIN) {
        return queue->AnswerEmpty();
      }
    }
    return result;
  }

  static ssize_t Read(fid_cq* handle, void* buffer, size_t count) noexcept {
    return ReadFrom(handle, buffer, count, nullptr);
  }

 private:
  // Takes what is there, up to the first error: -FI_EAVAIL if that comes
  // first, -FI_EAGAIN if there is nothing.
  static ssize_t Drain(nic::Cq& cq, typename Format::Entry* entries,
                       size_t count, fi_addr_t* sources) noexcept {
    const typename Locking::Guard guard(cq.lock());
    size_t taken = 0;
    const contract::Completion* entry = cq.Peek();
    while (entry != nullptr && taken < count) {
      if (entry->status != contract::Status::kOk && cq.IsOfQueue(*entry)) {
        break;
      }
      const nic::Finished finished = cq.Retire<Locking>(*entry);
      if (finished.report) {
        Format::Write(entries[taken], *entry, finished);
        if (sources != nullptr) {
          sources[taken] = SourceOf(*entry, finished);
        }
        ++taken;
      }
      cq.Pop();
      entry = cq.Peek();
    }
    if (taken != 0) {
      return static_cast<ssize_t>(taken);
    }
    if (entry == nullptr) {
      return -FI_EAGAIN;
    }
    return entry->status != contract::Status::kOk && cq.IsOfQueue(*entry)
               ? -FI_EAVAIL
               : 0;
  }
};

}  // namespace heddle::ofi
