// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/fork_guard.h"

#include <pthread.h>

#include <mutex>

namespace heddle::ofi {

// The one list of a process, because fork concerns all of a process at once.
class ForkRegistry {
 public:
  static ForkRegistry& Get() {
    // Never destroyed: a fork may come after the destructors of statics.
    static ForkRegistry* const registry = new ForkRegistry();
    return *registry;
  }

  void Add(ForkGuarded* object) {
    const std::lock_guard lock(mutex_);
    object->next_ = first_;
    if (first_ != nullptr) {
      first_->previous_ = object;
    }
    first_ = object;
  }

  void Remove(ForkGuarded* object) {
    const std::lock_guard lock(mutex_);
    (object->previous_ == nullptr ? first_ : object->previous_->next_) =
        object->next_;
    if (object->next_ != nullptr) {
      object->next_->previous_ = object->previous_;
    }
  }

 private:
  ForkRegistry() { (void)pthread_atfork(BeforeFork, InParent, InChild); }

  // Held over the fork, so that the child finds the list whole.
  static void BeforeFork() { Get().mutex_.lock(); }
  static void InParent() { Get().mutex_.unlock(); }
  static void InChild() {
    ForkRegistry& registry = Get();
    for (ForkGuarded* object = registry.first_; object != nullptr;
         object = object->next_) {
      object->Disinherit();
    }
    // What was inherited is never closed here, so it leaves the list now.
    registry.first_ = nullptr;
    registry.mutex_.unlock();
  }

  std::mutex mutex_;
  ForkGuarded* first_ = nullptr;
};

ForkGuarded::ForkGuarded() noexcept {
  ForkRegistry::Get().Add(this);
}

ForkGuarded::~ForkGuarded() {
  ForkRegistry::Get().Remove(this);
}

}  // namespace heddle::ofi
