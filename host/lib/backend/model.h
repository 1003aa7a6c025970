// SPDX-License-Identifier: Apache-2.0
// What the data path asks of a backend's classes. `ofi` has its calls as
// templates of a model, made into tables where the backend is known
// (host/lib/entry).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "host/lib/backend/completion.h"
#include "host/lib/backend/device.h"
#include "host/lib/backend/locking.h"
#include "host/lib/backend/objects.h"
#include "host/lib/backend/operation.h"

namespace heddle::backend {

// Takes what a queue tells: a completion, and a call for the index of who sent
// it, which costs a look-up.
struct AnySink {
  struct Source {
    uint64_t operator()() const noexcept;
  };
  void operator()(const Completion& completion, Source source) const noexcept;
};

// Returns the operation to be posted. A post calls it only when it succeeds:
// values loaded earlier would occupy saved registers.
struct AnyOperation {
  Operation operator()() const noexcept;
};

// Posts answer 0 or a positive errno; everything but 0 changes nothing: EAGAIN
// while something is full, EMSGSIZE, EINVAL, EIO once the device failed.
// `Try*` post one buffer, without `more`, at the least cost; where they return
// false, nothing changed, and only `Post` decides. Their second argument: the
// context is `direct`. No member throws.
template <typename T>
concept TransmitModel = std::derived_from<T, TransmitContext> &&
    requires(T& context, const Operation& operation, AnyOperation make,
             const Buffer& buffer, const Payload& payload,
             std::span<const RemoteSegment> remote) {
  requires std::same_as<decltype(T::IsShort(size_t{})), bool>;
  // Preconditions: `IsShort`; at most `kInjectBytes`. Not for reads.
  requires std::same_as<decltype(context.template TryPostShort<Locked, true>(
                            make, buffer)),
                        bool>;
  requires std::same_as<decltype(context.template TryPostMedium<Locked, true>(
                            make, buffer)),
                        bool>;
  // `buffer.descriptor` names the memory. Preconditions: one byte at least; the
  // payload need not be copied at once.
  requires std::same_as<
      decltype(context.template TryPostRegistered<Locked, true>(make, buffer)),
      bool>;
  requires std::same_as<
      decltype(context.template Post<Locked>(operation, buffer)), int>;
  requires std::same_as<
      decltype(context.template Post<Locked>(operation, payload)), int>;
  requires std::same_as<
      decltype(context.template Post<Locked>(operation, payload, remote)), int>;
};

template <typename T>
concept ReceiveModel = std::derived_from<T, ReceiveContext> &&
    requires(T& context, const ReceiveOperation& operation,
             const Buffer& buffer, const Payload& payload) {
  requires std::same_as<decltype(context.template TryPostRegistered<Locked>(
                            uint64_t{}, buffer)),
                        bool>;
  requires std::same_as<
      decltype(context.template Post<Locked>(operation, buffer)), int>;
  requires std::same_as<
      decltype(context.template Post<Locked>(operation, payload)), int>;
};

// A receive context that matches. `Post` returns ENOMSG when no message is
// claimed under the operation's context, and EINVAL for an unknown source.
template <typename T>
concept MatchModel = std::derived_from<T, ReceiveContext> &&
    requires(T& context, const MatchOperation& operation, const Buffer& buffer,
             const Payload& payload) {
  // Precondition: `kReceive` of one message, reported.
  requires std::same_as<decltype(context.template TryPostRegistered<Locked>(
                            operation, buffer)),
                        bool>;
  requires std::same_as<
      decltype(context.template Post<Locked>(operation, buffer)), int>;
  requires std::same_as<
      decltype(context.template Post<Locked>(operation, payload)), int>;
};

template <typename T>
concept PeersModel = std::derived_from<T, Peers> && requires(const T& peers) {
  // Whether an operation may name this index.
  requires std::same_as<decltype(peers.Contains(uint64_t{})), bool>;
};

// Entries of the device are taken in order; each gives no, one or several
// completions.
template <typename T>
concept CompletionModel = std::derived_from<T, CompletionQueue> &&
    std::constructible_from<T, Device&> &&
    requires(T& queue, const typename T::Entry& entry,
             const typename T::Candidate& candidate, AnySink sink) {
  // Holds the queue's lock where the policy locks.
  requires std::constructible_from<typename T::template ReadGuard<Locked>, T&>;
  // The oldest that was not taken, or null.
  requires std::same_as<decltype(queue.Peek()), const typename T::Entry*>;
  // As `Peek`, at the least cost; `entry` is never null after `Alert`, and only
  // `TryTake`, `TryTakeMatched` and `Peek` find whether it is there.
  requires std::same_as<decltype(queue.Poll()), typename T::Candidate>;
  requires std::same_as<decltype(candidate.entry), const typename T::Entry*>;
  // Takes the entry if it is one success that needs no other work, as most are,
  // and the application serializes. False, nothing changed, else: entries that
  // are not the frequent ones then go to `TryTakeMatched`, for receives that
  // match, and then to `TryTakeOther`, at more cost each.
  requires std::same_as<decltype(queue.TryTake(candidate, sink)), bool>;
  requires std::same_as<decltype(queue.TryTakeMatched(candidate, sink)), bool>;
  requires std::same_as<decltype(queue.TryTakeOther(entry, sink)), bool>;
  // An error, which `TakeError` takes; with `sources`, also a message whose
  // sender has to be known and is not.
  requires std::same_as<decltype(queue.IsError(entry, true)), bool>;
  // Gives at most `room` completions, one at least; takes the entry once it has
  // given all. Preconditions: no error; `room` is not 0.
  queue.template Take<Locked>(entry, size_t{1}, sink);
};

template <typename T>
concept Model =
    TransmitModel<typename T::Transmit> && ReceiveModel<typename T::Receive> &&
    PeersModel<typename T::PeerTable> && CompletionModel<typename T::Queue>;

// One whose devices may have the capability `matching`.
template <typename T>
concept MatchingModel = Model<T> && MatchModel<typename T::Match>;

}  // namespace heddle::backend
