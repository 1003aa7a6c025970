// SPDX-License-Identifier: Apache-2.0
// Allocation of struct fi_info, as every libfabric core frees it: malloc.
#pragma once

#include <rdma/fabric.h>

#include <memory>

#include "host/lib/core/info_layout.h"

namespace heddle::core {

// Zeroed, with all its attribute structures; null without memory.
fi_info* AllocateInfo() noexcept;

// A deep copy of one entry, in the newest layout, from a structure of
// `layout`: addresses, names, keys and nic are copied, `handle` is not
// followed, `next` is null. Null without memory.
fi_info* DuplicateInfo(const fi_info& info, const InfoLayout& layout) noexcept;

// Frees a chain; null is none.
void FreeInfo(fi_info* info) noexcept;

struct InfoDeleter {
  void operator()(fi_info* info) const noexcept { FreeInfo(info); }
};
using InfoPointer = std::unique_ptr<fi_info, InfoDeleter>;

// A malloc'ed copy, null without memory.
char* DuplicateText(const char* text) noexcept;
void* DuplicateBytes(const void* data, size_t bytes) noexcept;

// A shallow copy of hints: the structures are its own, zero beyond `layout`;
// what they point to is the caller's.
class Hints {
 public:
  Hints(const fi_info* hints, const InfoLayout& layout) noexcept;
  Hints(const Hints&) = delete;
  Hints& operator=(const Hints&) = delete;

  // All attribute pointers are set; zero when the caller gave none.
  const fi_info& operator*() const noexcept { return info_; }
  const fi_info* operator->() const noexcept { return &info_; }
  // The domain's attributes with the fields that the headers do not have.
  const NewestDomainAttr& domain() const noexcept { return domain_; }

 private:
  fi_info info_ = {};
  fi_tx_attr tx_ = {};
  fi_rx_attr rx_ = {};
  fi_ep_attr ep_ = {};
  NewestDomainAttr domain_ = {};
  fi_fabric_attr fabric_ = {};
};

}  // namespace heddle::core
