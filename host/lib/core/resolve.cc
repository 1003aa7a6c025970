// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/resolve.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "host/lib/core/address.h"

namespace heddle::core {
namespace {

struct AddressListDeleter {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

std::optional<sockaddr_in> LookUp(const char* node, const char* service,
                                  bool numeric_only, std::string* reason) {
  addrinfo wanted = {};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_DGRAM;
  wanted.ai_flags = numeric_only ? AI_NUMERICHOST : 0;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(node, service, &wanted, &found);
  if (error != 0) {
    *reason = std::string("node ") + (node != nullptr ? node : "(none)") +
              ", service " + (service != nullptr ? service : "(none)") + ": " +
              gai_strerror(error);
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, AddressListDeleter> list(found);
  return ParseAddress(list->ai_addr, list->ai_addrlen);
}

// Without a node the host itself is meant: its address on our wire, not the
// loopback that getaddrinfo would answer.
std::optional<sockaddr_in> LookUpRequest(const InfoRequest& request,
                                         in_addr local, std::string* reason) {
  const bool numeric_only = (request.flags & FI_NUMERICHOST) != 0;
  std::optional<sockaddr_in> found =
      LookUp(request.node, request.service, numeric_only, reason);
  if (found &&
      (request.node == nullptr || found->sin_addr.s_addr == INADDR_ANY)) {
    found->sin_addr = local;
  }
  return found;
}

// An address among the hints; false when it is none of ours.
bool ReadHint(const char* attribute, const void* data, size_t bytes,
              std::optional<sockaddr_in>* address, std::string* reason) {
  *address = ParseAddress(data, bytes);
  if (data == nullptr || *address) {
    return true;
  }
  *reason = std::string(attribute) + " of " + std::to_string(bytes) +
            " bytes is no struct sockaddr_in";
  return false;
}

}  // namespace

std::optional<Endpoints> Resolve(const InfoRequest& request, const Hints& hints,
                                 const Settings& settings,
                                 std::string* reason) {
  const bool named = request.node != nullptr || request.service != nullptr;
  const bool is_source = (request.flags & FI_SOURCE) != 0;
  if (is_source && !named) {
    *reason = "FI_SOURCE needs a node or a service";
    return std::nullopt;
  }
  std::optional<sockaddr_in> source;
  std::optional<sockaddr_in> destination;
  if ((!is_source && !ReadHint("src_addr", hints->src_addr, hints->src_addrlen,
                               &source, reason)) ||
      ((is_source || !named) &&
       !ReadHint("dest_addr", hints->dest_addr, hints->dest_addrlen,
                 &destination, reason))) {
    return std::nullopt;
  }
  const in_addr local = LocalAddress(settings);
  if (named) {
    auto& target = is_source ? source : destination;
    target = LookUpRequest(request, local, reason);
    if (!target) {
      return std::nullopt;
    }
  }
  if (!source) {
    source = MakeAddress(local, 0);
  } else if (source->sin_addr.s_addr == INADDR_ANY) {
    source->sin_addr = local;
  }
  return Endpoints{*source, destination};
}

}  // namespace heddle::core
