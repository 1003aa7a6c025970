// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/open_objects.h"

#include <pthread.h>
#include <strings.h>

#include <mutex>
#include <utility>

namespace heddle::core {

// The lists of a process, oldest first.
class OpenObjects {
 public:
  static OpenObjects& Get() {
    // Never destroyed: objects may be closed in exit handlers.
    static OpenObjects* const objects = new OpenObjects;
    return *objects;
  }

  void Add(OpenFabric* object) { Append(&fabrics_, object); }
  void Add(OpenDomain* object) { Append(&domains_, object); }
  void Remove(OpenFabric* object) { Unlink(&fabrics_, object); }
  void Remove(OpenDomain* object) { Unlink(&domains_, object); }

  FoundObjects Find(const std::string& fabric, const std::string& domain,
                    const FoundObjects& wanted) {
    const std::lock_guard lock(mutex_);
    FoundObjects found;
    for (const OpenFabric* each = fabrics_; each != nullptr;
         each = each->next_) {
      if (strcasecmp(each->name_.c_str(), fabric.c_str()) != 0 ||
          (wanted.fabric != nullptr && wanted.fabric != each->handle_)) {
        continue;
      }
      const OpenDomain* on_it =
          FirstDomain(each->handle_, domain, wanted.domain);
      if (on_it != nullptr) {
        return {each->handle_, on_it->handle_, on_it->address_};
      }
      if (found.fabric == nullptr) {
        found.fabric = each->handle_;
      }
    }
    return found;
  }

  void ForEach(const fid_fabric* fabric,
               const std::function<void(fid_domain*)>& visit) {
    const std::lock_guard lock(mutex_);
    for (const OpenDomain* each = domains_; each != nullptr;
         each = each->next_) {
      if (each->fabric_ == fabric) {
        visit(each->handle_);
      }
    }
  }

 private:
  OpenObjects() { (void)pthread_atfork(BeforeFork, InParent, InChild); }

  // Held over the fork, so that the child finds the lists whole.
  static void BeforeFork() { Get().mutex_.lock(); }
  static void InParent() { Get().mutex_.unlock(); }
  static void InChild() {
    Get().domains_ = nullptr;
    Get().mutex_.unlock();
  }

  template <typename Object>
  void Append(Object** first, Object* object) {
    const std::lock_guard lock(mutex_);
    while (*first != nullptr) {
      first = &(*first)->next_;
    }
    *first = object;
  }

  template <typename Object>
  void Unlink(Object** first, Object* object) {
    const std::lock_guard lock(mutex_);
    while (*first != nullptr && *first != object) {
      first = &(*first)->next_;
    }
    if (*first != nullptr) {
      *first = object->next_;
    }
  }

  // Precondition: the lock is held.
  const OpenDomain* FirstDomain(const fid_fabric* fabric,
                                const std::string& name,
                                const fid_domain* wanted) const {
    for (const OpenDomain* each = domains_; each != nullptr;
         each = each->next_) {
      if (each->fabric_ == fabric &&
          strcasecmp(each->name_.c_str(), name.c_str()) == 0 &&
          (wanted == nullptr || wanted == each->handle_)) {
        return each;
      }
    }
    return nullptr;
  }

  std::mutex mutex_;
  OpenFabric* fabrics_ = nullptr;
  OpenDomain* domains_ = nullptr;
};

OpenFabric::OpenFabric(fid_fabric* handle, std::string name)
    : handle_(handle), name_(std::move(name)) {
  OpenObjects::Get().Add(this);
}

OpenFabric::~OpenFabric() {
  OpenObjects::Get().Remove(this);
}

OpenDomain::OpenDomain(fid_domain* handle, fid_fabric* fabric, std::string name,
                       const base::SocketAddress& address)
    : handle_(handle),
      fabric_(fabric),
      name_(std::move(name)),
      address_(address.WithPort(0)) {
  OpenObjects::Get().Add(this);
}

OpenDomain::~OpenDomain() {
  OpenObjects::Get().Remove(this);
}

FoundObjects FindOpenObjects(const std::string& fabric,
                             const std::string& domain,
                             const FoundObjects& wanted) {
  return OpenObjects::Get().Find(fabric, domain, wanted);
}

void ForEachOpenDomain(const fid_fabric* fabric,
                       const std::function<void(fid_domain*)>& visit) {
  OpenObjects::Get().ForEach(fabric, visit);
}

}  // namespace heddle::core
