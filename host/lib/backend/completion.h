// SPDX-License-Identifier: Apache-2.0
// What a backend tells of an operation that ended.
#pragma once

#include <rdma/fi_ext_heddle.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "host/lib/base/socket_address.h"

namespace heddle::backend {

// One completion as the application sees it.
struct Completion {
  uint64_t context = 0;
  uint64_t flags = 0;      // Of fi_cq(3): FI_SEND | FI_MSG, ...
  size_t length = 0;       // Bytes placed or sent.
  void* buffer = nullptr;  // Receive: where the first piece went.
  // As one copy, from where a device writes both to where users read both. The
  // data come with FI_REMOTE_CQ_DATA.
  using Words [[gnu::vector_size(16)]] = uint64_t;
  Words data_and_tag = {};

  uint64_t data() const noexcept { return data_and_tag[0]; }
  uint64_t tag() const noexcept { return data_and_tag[1]; }
};

// The same of an operation that failed.
struct ErrorCompletion {
  Completion completion;
  size_t excess = 0;  // Bytes that did not fit the buffer.
  fi_heddle_errno error = FI_HEDDLE_OK;
  uint16_t detail = 0;  // The peer's code behind it; 0: none.
  // The peer that the operation was for or the message came from, if it is
  // known.
  std::optional<base::SocketAddress> peer;
};

}  // namespace heddle::backend
