// SPDX-License-Identifier: Apache-2.0
// The event queue (fid_eq): control events for the application.
#pragma once

#include <rdma/fi_eq.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "host/lib/backend/progressor.h"
#include "host/lib/base/fid.h"
#include "host/lib/ofi/fabric.h"
#include "host/lib/ofi/wait_set.h"

namespace heddle::ofi {

// Events are read in the order written; an error at the head hides what
// follows until it is read.
//
// Thread safety: all members but Close, any thread.
// Ownership: the application, until fi_close.
class EventQueue : public fid_eq {
 public:
  static int Open(Fabric* fabric, const fi_eq_attr* attr, fid_eq** queue,
                  void* context);

  static EventQueue* From(fid_eq* handle) noexcept {
    return static_cast<EventQueue*>(handle);
  }
  static EventQueue* From(struct fid* handle) noexcept {
    return base::FromFid<EventQueue, fid_eq>(handle);
  }

  // Objects bound to this queue; each adds itself, with what drives its domain,
  // and removes itself. 0 or -FI_ENOMEM.
  int AddUser(const backend::ProgressorList& progressors) noexcept;
  void RemoveUser(const backend::ProgressorList& progressors) noexcept;

  // For other objects of the library: `entry` is the event's structure
  // (fi_eq_entry, fi_eq_cm_entry with data). Never refused for want of room.
  // 0 or -FI_ENOMEM.
  int Write(uint32_t event, const void* entry, size_t bytes) noexcept;

  // Puts an error into the queue; `error.err_data` is copied.
  int WriteError(const fi_eq_err_entry& error) noexcept;

  // The calls of fi_eq(3), which defines their results.
  ssize_t Read(uint32_t* event, void* buffer, size_t bytes,
               uint64_t flags) noexcept;
  ssize_t ReadError(fi_eq_err_entry* entry, uint64_t flags) noexcept;
  ssize_t UserWrite(uint32_t event, const void* entry, size_t bytes,
                    uint64_t flags) noexcept;
  // `timeout_ms` negative: no limit.
  ssize_t ReadWaiting(uint32_t* event, void* buffer, size_t bytes,
                      int timeout_ms, uint64_t flags) noexcept;
  int Control(int command, void* argument) noexcept;

  // -FI_EBUSY, nothing changed, while it has users; else frees it.
  int Close() noexcept;

 private:
  struct Record {
    bool is_error = false;
    uint32_t event = 0;
    std::vector<uint8_t> bytes;  // The entry, or the error's err_data.
    fi_eq_err_entry error = {};
  };

  EventQueue(Fabric* fabric, const fi_eq_attr& attr);
  ~EventQueue();

  // 0 or a negative errno.
  int OpenWait(fid_wait* set);
  // -FI_EAGAIN while there are `most` entries.
  int Push(Record record, size_t most = SIZE_MAX) noexcept;
  int MakeRecord(uint32_t event, const void* entry, size_t bytes, size_t most);
  ssize_t ReadLocked(uint32_t* event, void* buffer, size_t bytes,
                     uint64_t flags) noexcept;
  void PopLocked() noexcept;
  // Lends the thread to the users' domains. True: to be done again soon.
  bool Step() noexcept;

  Fabric* fabric_;
  size_t size_;    // Most entries that the application may have written.
  bool writable_;  // Opened with FI_WRITE.
  fi_wait_obj wait_object_;
  int event_fd_ = -1;  // Readable while the queue is not empty.
  WaitSet* wait_set_ = nullptr;

  std::mutex progress_mutex_;  // Held by a reader that steps.
  std::vector<const backend::ProgressorList*> progressors_;  // One per user.

  std::mutex mutex_;
  std::condition_variable readable_;
  std::deque<Record> records_;
  std::vector<uint8_t> last_error_data_;  // Lent out until the next read.

  // The application's, with FI_WAIT_MUTEX_COND: whoever holds the mutex from
  // fi_trywait to the wait misses no event. Taken after `mutex_` is released.
  std::mutex wait_mutex_;
  std::condition_variable wait_condition_;
};

}  // namespace heddle::ofi
