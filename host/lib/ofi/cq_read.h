// SPDX-License-Identifier: Apache-2.0
// fi_cq_read and fi_cq_readfrom, one instance per backend, format and threading
// model.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstring>
#include <optional>

#include "host/lib/backend/completion.h"
#include "host/lib/backend/locking.h"
#include "host/lib/ofi/completion_queue.h"

namespace heddle::ofi {

inline void* ToContext(uint64_t context) noexcept {
  // What the application gave as a pointer.
  return reinterpret_cast<void*>(context);  // NOLINT(performance-no-int-to-ptr)
}

// Each format is the next one's beginning (fi_cq(3)).
struct ContextFormat {
  using Entry = fi_cq_entry;
  static void Write(Entry& out, const backend::Completion& done) noexcept {
    out.op_context = ToContext(done.context);
  }
};

struct MsgFormat {
  using Entry = fi_cq_msg_entry;
  static void Write(Entry& out, const backend::Completion& done) noexcept {
    out.op_context = ToContext(done.context);
    out.flags = done.flags;
    out.len = done.length;
  }
};

struct DataFormat {
  using Entry = fi_cq_data_entry;
  static void Write(Entry& out, const backend::Completion& done) noexcept {
    out.op_context = ToContext(done.context);
    out.flags = done.flags;
    out.len = done.length;
    out.buf = done.buffer;
    out.data = done.data();
  }
};

struct TaggedFormat {
  using Entry = fi_cq_tagged_entry;
  static void Write(Entry& out, const backend::Completion& done) noexcept {
    out.op_context = ToContext(done.context);
    out.flags = done.flags;
    out.len = done.length;
    out.buf = done.buffer;
    static_assert(offsetof(Entry, tag) == offsetof(Entry, data) + 8);
    std::memcpy(&out.data, &done.data_and_tag, sizeof done.data_and_tag);
  }
};

// The queue is a part of its object: a poll has no pointer to follow.
template <typename Model>
class QueueOf final : public CompletionQueue {
 public:
  using Queue = typename Model::Queue;

  QueueOf(Domain* domain, fi_ops_cq* table, void* context)
      : CompletionQueue(domain, table, context) {}
  ~QueueOf() override { EndWait(); }

  static Queue& BackendOf(fid_cq* handle) noexcept {
    return *static_cast<QueueOf&>(*handle).queue_;
  }

 private:
  backend::CompletionQueue* MakeBackend() override {
    return &queue_.emplace(domain()->device());
  }

  std::optional<Queue> queue_;
};

template <typename Model, typename Locking, typename Format>
struct CqReader {
  using Queue = typename Model::Queue;
  using DeviceEntry = typename Queue::Entry;

  static ssize_t ReadFrom(fid_cq* handle, void* buffer, size_t count,
                          fi_addr_t* sources) noexcept {
    return sources == nullptr ? Take<false>(handle, buffer, count, nullptr)
                              : Take<true>(handle, buffer, count, sources);
  }

  static ssize_t Read(fid_cq* handle, void* buffer, size_t count) noexcept {
    return Take<false>(handle, buffer, count, nullptr);
  }

 private:
  static Queue& BackendOf(fid_cq* handle) noexcept {
    return QueueOf<Model>::BackendOf(handle);
  }

  template <bool kSources>
  [[gnu::always_inline]] static inline ssize_t Take(
      fid_cq* handle, void* buffer, size_t count, fi_addr_t* sources) noexcept {
    auto* entries = static_cast<typename Format::Entry*>(buffer);
    if constexpr (!Locking::kLocks) {
      // The most frequent polls of all save no register.
      Queue& backend = BackendOf(handle);
      const typename Queue::Candidate next = backend.Poll();
      if (next.entry == nullptr) {
        return -FI_EAGAIN;
      }
      if (!kSources && count == 1) {
        return backend.TryTake(next, WriterTo(entries))
                   ? 1
                   : TakeMatched(handle, entries, next);
      }
    }
    return TakeSome<kSources>(handle, entries, count, sources);
  }

  [[gnu::always_inline]] static auto WriterTo(
      typename Format::Entry* entries) noexcept {
    return [entries](const backend::Completion& done, auto /*source*/)
        __attribute__((always_inline)) {
      Format::Write(*entries, done);
    };
  }

  // Functions by themselves, so that neither `TryTake` nor `TryTakeMatched`
  // saves a register for what follows them.
  [[gnu::noinline]] static ssize_t TakeMatched(
      fid_cq* handle, typename Format::Entry* entries,
      typename Queue::Candidate next) noexcept {
    return BackendOf(handle).TryTakeMatched(next, WriterTo(entries))
               ? 1
               : TakeOther(handle, entries);
  }

  [[gnu::noinline]] static ssize_t TakeOther(
      fid_cq* handle, typename Format::Entry* entries) noexcept {
    Queue& backend = BackendOf(handle);
    const DeviceEntry* entry = backend.Peek();
    return entry != nullptr && backend.TryTakeOther(*entry, WriterTo(entries))
               ? 1
               : TakeSome<false>(handle, entries, 1, nullptr);
  }

  template <bool kSources>
  [[gnu::noinline]] static ssize_t TakeSome(fid_cq* handle,
                                            typename Format::Entry* entries,
                                            size_t count,
                                            fi_addr_t* sources) noexcept {
    CompletionQueue* queue = CompletionQueue::From(handle);
    Queue& backend = BackendOf(handle);
    const ssize_t result = Drain<kSources>(backend, entries, count, sources);
    if (result != -FI_EAGAIN) {
      return result;
    }
    return queue->progressors().needed()
               ? TakeAfterStep<kSources>(queue, entries, count, sources)
               : queue->AnswerEmpty();
  }

  // The device is not hardware, or the library has an endpoint of its own: the
  // poll lends them the thread.
  template <bool kSources>
  [[gnu::noinline]] static ssize_t TakeAfterStep(
      CompletionQueue* queue, typename Format::Entry* entries, size_t count,
      fi_addr_t* sources) noexcept {
    Queue& backend = BackendOf(queue);
    queue->progressors().Step();
    const ssize_t result = Drain<kSources>(backend, entries, count, sources);
    return result == -FI_EAGAIN ? queue->AnswerEmpty() : result;
  }

  // Takes what is there, up to the first error: -FI_EAVAIL if that comes
  // first, -FI_EAGAIN if there is nothing. An entry of the device gives no, one
  // or several completions; those for which there is no room wait in the
  // backend.
  template <bool kSources>
  [[gnu::always_inline]] static inline ssize_t Drain(
      Queue& queue, typename Format::Entry* entries, size_t count,
      fi_addr_t* sources) noexcept {
    const typename Queue::template ReadGuard<Locking> guard(queue);
    const DeviceEntry* entry = queue.Peek();
    if (entry == nullptr) {
      return -FI_EAGAIN;
    }
    size_t taken = 0;
    while (taken < count) {
      if (queue.IsError(*entry, kSources)) [[unlikely]] {
        break;
      }
      queue.template Take<Locking>(
          *entry, count - taken,
          [&](const backend::Completion& done, auto source)
              __attribute__((always_inline)) {
                Format::Write(entries[taken], done);
                if constexpr (kSources) {
                  sources[taken] = source();
                }
                ++taken;
              });
      if (taken == count) {
        break;
      }
      entry = queue.Peek();
      if (entry == nullptr) {
        return taken != 0 ? static_cast<ssize_t>(taken) : -FI_EAGAIN;
      }
    }
    if (taken != 0) {
      return static_cast<ssize_t>(taken);
    }
    return queue.IsError(*entry, kSources) ? -FI_EAVAIL : 0;
  }
};

// The table of a queue; the calls that are not of the data path are those of
// all backends.
template <typename Model, typename Locking, typename Format>
fi_ops_cq* QueueOps() noexcept {
  static fi_ops_cq ops = [] {
    fi_ops_cq made = CompletionQueue::CommonOps();
    made.read = CqReader<Model, Locking, Format>::Read;
    made.readfrom = CqReader<Model, Locking, Format>::ReadFrom;
    return made;
  }();
  return &ops;
}

template <typename Model, typename Locking>
fi_ops_cq* QueueOpsOfFormat(fi_cq_format format) noexcept {
  switch (format) {
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT:
      return QueueOps<Model, Locking, ContextFormat>();
    case FI_CQ_FORMAT_MSG:
      return QueueOps<Model, Locking, MsgFormat>();
    case FI_CQ_FORMAT_DATA:
      return QueueOps<Model, Locking, DataFormat>();
    case FI_CQ_FORMAT_TAGGED:
      return QueueOps<Model, Locking, TaggedFormat>();
  }
  return nullptr;
}

template <typename Model>
CompletionQueue* MakeQueue(Domain* domain, fi_cq_format format, void* context) {
  fi_ops_cq* ops = domain->locked()
                       ? QueueOpsOfFormat<Model, backend::Locked>(format)
                       : QueueOpsOfFormat<Model, backend::Unlocked>(format);
  return ops == nullptr ? nullptr : new QueueOf<Model>(domain, ops, context);
}

}  // namespace heddle::ofi
