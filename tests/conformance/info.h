// SPDX-License-Identifier: Apache-2.0
// fi_getinfo for the provider under test.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace heddle::conformance {

constexpr uint32_t kVersion = FI_VERSION(1, 17);
// Obligations that the tests fulfil unless they name others.
constexpr uint64_t kModes = FI_CONTEXT | FI_CONTEXT2;
constexpr int kMrModes = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
                         FI_MR_PROV_KEY | FI_MR_ENDPOINT;
constexpr uint64_t kPrimary =
    FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST | FI_NAMED_RX_CTX |
    FI_DIRECTED_RECV | FI_VARIABLE_MSG | FI_HMEM | FI_COLLECTIVE;

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPointer = std::unique_ptr<fi_info, InfoDeleter>;

// Arguments of fi_getinfo but for the hints.
struct Query {
  const char* node = nullptr;
  const char* service = nullptr;
  uint64_t flags = 0;
  uint32_t version = kVersion;
};

struct Answer {
  int result = 0;
  InfoPointer infos;

  // Entries of the provider under test, as long as this object lives.
  std::vector<const fi_info*> own() const&;
  std::vector<const fi_info*> own() && = delete;
  // True when there are none.
  bool empty() const { return own().empty(); }
};

// Hints for reliable datagram endpoints of the provider under test, with the
// modes above.
InfoPointer MakeHints(uint64_t caps);
// Hints that name the provider and nothing else.
InfoPointer MakeEmptyHints();

Answer GetInfo(const fi_info* hints, const Query& query = {});

// A copy that fi_freeinfo frees.
char* CopyText(const std::string& text);

// The host of the source address as a number, where the provider uses IP;
// otherwise empty.
std::string NumericHost(const fi_info& info);
std::string NumericHost(const void* address, size_t bytes);

}  // namespace heddle::conformance
