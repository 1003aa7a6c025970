// SPDX-License-Identifier: Apache-2.0
// A backend's objects as the control path has them. The data path has the
// backend's own classes (model.h), which derive from these: a post or a poll
// calls nothing that is virtual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "driver/result.h"
#include "host/lib/backend/completion.h"
#include "host/lib/backend/locking.h"
#include "host/lib/base/socket_address.h"

namespace heddle::backend {

// Errors of all members are positive errno numbers.

// Completions of the endpoints bound to it. Constructed from its device, as the
// backend's own class (model.h).
//
// Thread safety: under `lock()` where the threading model locks, but for the
// constants and `Alert`. Ownership: the caller; endpoints bound to it end
// before.
class CompletionQueue {
 public:
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  virtual ~CompletionQueue() = default;

  SpinLock& lock() noexcept { return lock_; }

  // First. Makes room for at least `entries`, or as many as the device can
  // have. `interrupt`: it can be armed. Errors, after which only destruction is
  // left: ENOSPC, ENOMEM, EIO.
  virtual Result<bool> Open(size_t entries, bool interrupt) = 0;

  // Entries; more than these wait in the device.
  virtual size_t capacity() const noexcept = 0;
  // Eventfd of the interrupt; -1 without.
  virtual int interrupt_fd() const noexcept = 0;

  // Whether something is to be read; after a failure of the device, also what
  // it owes.
  virtual bool HasEntry() const noexcept = 0;
  // After the device has failed, once `HasEntry` is false: whether operations
  // are outstanding, which `TakeError` then ends.
  virtual bool HasLost() noexcept = 0;
  // The oldest completion, if it is one in error. Skips what is not to be
  // reported of. After a failure of the device, what it owes. Takes the lock.
  virtual std::optional<ErrorCompletion> TakeError(bool failed) noexcept = 0;
  // Asks for one interrupt when there is an entry not read. Precondition:
  // opened with `interrupt`.
  virtual void Arm() noexcept = 0;
  // From now on polls that find nothing are no longer answered at the least
  // cost (`Poll` of the model): there is other work, or the device has failed.
  // Any thread, with any lock.
  virtual void Alert() noexcept = 0;

 protected:
  CompletionQueue() = default;

 private:
  SpinLock lock_;
};

// Counts completed operations.
//
// Thread safety: any thread. Ownership: the caller that opened it; endpoints
// and regions that count here end before.
class Counter {
 public:
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  virtual ~Counter() = default;

  // Data path: one load each.
  uint64_t value() const noexcept {
    return __atomic_load_n(value_, __ATOMIC_ACQUIRE);
  }
  uint64_t errors() const noexcept {
    return __atomic_load_n(errors_, __ATOMIC_ACQUIRE);
  }

  enum class Change { kSet, kAdd, kSetErrors, kAddErrors };
  // Every later read, by any thread, shows it. 0, or EIO once the device has
  // failed.
  [[nodiscard]] virtual int Execute(Change change,
                                    uint64_t amount) noexcept = 0;

 protected:
  Counter() = default;
  // Where the backend keeps both numbers.
  void SetCells(const uint64_t* value, const uint64_t* errors) noexcept {
    value_ = value;
    errors_ = errors;
  }

 private:
  const uint64_t* value_ = nullptr;
  const uint64_t* errors_ = nullptr;
};

// Peers by index: dense from 0 in insertion order; removed indices are given
// out again.
//
// Thread safety: any thread. Ownership: the caller that opened it; endpoints
// that use it end before.
class Peers {
 public:
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  virtual ~Peers() = default;

  // Index of the new peer. Errors: ENOMEM, EHOSTUNREACH, EIO. Throws
  // std::bad_alloc, unchanged.
  virtual Result<uint32_t> Insert(const base::SocketAddress& address) = 0;
  // False, changing nothing, when there is no such peer. Operations in flight
  // go on.
  virtual bool Remove(uint64_t index) noexcept = 0;
  virtual std::optional<base::SocketAddress> Lookup(
      uint64_t index) const noexcept = 0;

 protected:
  Peers() = default;
};

// Memory that stays reachable for the device, and for peers while it is
// granted. Its address is the memory descriptor that calls name.
//
// Thread safety: immutable for the data path; `Grant` and `Revoke` one thread
// at a time. Ownership: the caller that registered it.
class Region {
 public:
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  // When it returns, the memory is accessed through it no more.
  virtual ~Region() = default;

  struct Access {
    bool read = false;
    bool write = false;
    uint64_t address_base = 0;    // What peers call the first byte.
    std::optional<uint64_t> key;  // None: of the device's choice.
    uint32_t job_id = 0;
    std::optional<uint32_t> endpoint;  // The only one that it serves.
    const Counter* counter = nullptr;  // Of peers' writes.
  };
  // Lets peers reach the first part; the key. Precondition: not granted.
  // Errors: ENOSPC, ENOKEY, EOPNOTSUPP, EIO.
  virtual Result<uint64_t> Grant(const Access& access) = 0;
  // Takes it back, waiting for operations in flight; nothing the second time.
  // False when the device did not answer: it is lost, and unmapping the memory
  // keeps it off.
  virtual bool Revoke() noexcept = 0;
  virtual bool granted() const noexcept = 0;

 protected:
  Region() = default;
};

// Where an endpoint posts what it sends and receives. Only the data path knows
// more of them.
class TransmitContext {
 public:
  TransmitContext(const TransmitContext&) = delete;
  TransmitContext& operator=(const TransmitContext&) = delete;

  // To post is to store to memory and to one register of the device.
  bool direct() const noexcept { return direct_; }

 protected:
  TransmitContext() = default;
  ~TransmitContext() = default;
  void SetDirect(bool direct) noexcept { direct_ = direct; }

 private:
  bool direct_ = false;
};

class ReceiveContext {
 public:
  ReceiveContext(const ReceiveContext&) = delete;
  ReceiveContext& operator=(const ReceiveContext&) = delete;

 protected:
  ReceiveContext() = default;
  ~ReceiveContext() = default;
};

// What counts an endpoint's operations by kind; null: nothing.
struct EndpointCounters {
  const Counter* send = nullptr;
  const Counter* receive = nullptr;
  const Counter* read = nullptr;
  const Counter* write = nullptr;
  const Counter* remote_read = nullptr;
  const Counter* remote_write = nullptr;
};

// Receive contexts of an endpoint. Where the device has `matching`, one that
// matches keeps messages that no receive has matched yet.
struct ReceiveContexts {
  bool untagged = true;  // For messages without a tag and RMA of peers,
  bool matches = false;  // which matches.
  bool tagged = false;   // For tagged messages: always matches.
  // Each that matches has: memory for payload, number of messages, and the
  // longest message that is copied there if its sender can keep it instead.
  uint32_t unexpected_bytes = 0;
  uint32_t unexpected_messages = 0;
  uint32_t copy_limit_bytes = 0;
};

struct EndpointOptions {
  CompletionQueue* tx_cq = nullptr;  // Null: the endpoint does not send.
  // Null: it neither receives nor is reached by RMA.
  CompletionQueue* rx_cq = nullptr;
  Peers* peers = nullptr;
  bool name_senders = false;      // FI_SOURCE.
  bool refuse_strangers = false;  // FI_SOURCE_ERR, with `name_senders`.
  size_t tx_operations = 0;
  size_t rx_operations = 0;
  ReceiveContexts contexts = {};  // With `rx_cq`.
  // Longer unregistered buffers are made reachable for the operation,
  uint32_t copy_limit_bytes = 0;
  bool receives_in_buffer = false;  // and all of receives of one segment.
  uint8_t dscp = 0;                 // The DSCP of what it sends.
  uint64_t msg_order = 0;
  EndpointCounters counters = {};
  bool region_events = false;  // Every RMA operation of a peer is reported.
  bool report_targets = true;  // False: none is, with data or not.
  uint64_t owner_context = 0;  // Of errors that no operation belongs to.
  // Is told of the `bytes` of an operation that the device cannot reach.
  std::function<void(Errno error, size_t bytes)> on_refused = {};
};

// An endpoint that has its port.
//
// Thread safety: made, enabled and ended by one thread. Ownership: the
// caller that claimed it; borrows what its options name, which outlives it.
class Endpoint {
 public:
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  // Discards what is outstanding. Afterwards the device touches none of its
  // buffers, and no completion of it is left in a queue.
  virtual ~Endpoint() = default;

  virtual uint16_t port() const noexcept = 0;
  // What `Region::Access::endpoint` names.
  virtual uint32_t number() const noexcept = 0;

  // Creates the contexts. On failure nothing is left but the port. Errors:
  // ENOSPC, ENOMEM, EIO. Throws std::bad_alloc.
  virtual Result<bool> Enable(const EndpointOptions& options) = 0;
  // After `Enable`; null for a direction that it does not have.
  virtual TransmitContext* transmit() const noexcept = 0;
  virtual ReceiveContext* receive() const noexcept = 0;
  // Receives tagged messages.
  virtual ReceiveContext* tagged_receive() const noexcept { return nullptr; }

  // Withdraws the oldest receive posted with `context` that has not been asked
  // for yet; of untagged and tagged ones, an untagged one. False when there is
  // none. Precondition: it receives. Thread-safe.
  virtual bool Cancel(uint64_t context) noexcept = 0;

 protected:
  Endpoint() = default;
};

}  // namespace heddle::backend
