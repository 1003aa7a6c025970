// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/resolve.h"

#include <netdb.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <string_view>

namespace heddle::core {
namespace {

struct AddressListDeleter {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

const char* FamilyText(int family) {
  return family == AF_INET6 ? "IPv6" : "IPv4";
}

const char* TextOrNone(const char* text) {
  return text != nullptr ? text : "(none)";
}

// As getaddrinfo(3) has it, in one family.
std::optional<base::SocketAddress> AskResolver(const NodeName& name, int family,
                                               std::string* reason) {
  addrinfo wanted = {};
  wanted.ai_family = family;
  wanted.ai_socktype = SOCK_DGRAM;
  wanted.ai_flags = name.is_numeric ? AI_NUMERICHOST : 0;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.node, name.service, &wanted, &found);
  if (error != 0) {
    *reason = std::string("node ") + TextOrNone(name.node) + ", service " +
              TextOrNone(name.service) + ", " + FamilyText(family) + ": " +
              gai_strerror(error);
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, AddressListDeleter> list(found);
  return base::SocketAddress::Read(list->ai_addr, list->ai_addrlen);
}

// 0.0.0.0 or ::.
base::SocketAddress Any(int family) {
  return family == AF_INET6 ? base::SocketAddress(in6addr_any, 0)
                            : base::SocketAddress();
}

// Works the addresses of one request out; the first that has a family decides
// for all. Members that return false have set `*reason`.
class Resolver {
 public:
  Resolver(const InfoRequest& request, const Hints& hints,
           const OwnAddresses& own, std::string* reason)
      : request_(request),
        hints_(hints),
        own_(own),
        reason_(reason),
        family_(FamilyOf(hints, own)) {}

  bool Run(Endpoints* endpoints) {
    const bool named = request_.node != nullptr || request_.service != nullptr;
    const bool is_source = (request_.flags & FI_SOURCE) != 0;
    if (is_source && !named) {
      *reason_ = "FI_SOURCE needs a node or a service";
      return false;
    }
    std::optional<base::SocketAddress> source;
    std::optional<base::SocketAddress> destination;
    if (!is_source &&
        !ReadHint("src_addr", hints_->src_addr, hints_->src_addrlen, &source)) {
      return false;
    }
    if ((is_source || !named) &&
        !ReadHint("dest_addr", hints_->dest_addr, hints_->dest_addrlen,
                  &destination)) {
      return false;
    }
    if (named && !LookUpRequest(is_source ? &source : &destination)) {
      return false;
    }
    endpoints->source = OwnUnlessGiven(source);
    endpoints->destination = destination;
    return true;
  }

 private:
  // The family that is decided before any address is read, or AF_UNSPEC.
  static int FamilyOf(const Hints& hints, const OwnAddresses& own) {
    if (own.family() != AF_UNSPEC) {
      return own.family();
    }
    switch (hints->addr_format) {
      case FI_SOCKADDR_IN:
        return AF_INET;
      case FI_SOCKADDR_IN6:
        return AF_INET6;
      default:
        return AF_UNSPEC;
    }
  }

  bool Agree(const char* what, const base::SocketAddress& address) {
    if (family_ == AF_UNSPEC) {
      family_ = address.family();
    }
    if (family_ == address.family()) {
      return true;
    }
    *reason_ = std::string(what) + " " + address.Text() + " is not " +
               FamilyText(family_);
    return false;
  }

  // An address among the hints, in the format that they name.
  bool ReadHint(const char* attribute, const void* data, size_t bytes,
                std::optional<base::SocketAddress>* address) {
    if (data == nullptr) {
      return true;
    }
    if (hints_->addr_format == FI_ADDR_STR) {
      const auto* text = static_cast<const char*>(data);
      *address = base::SocketAddress::FromUrl({text, strnlen(text, bytes)});
    } else {
      *address = base::SocketAddress::Read(data, bytes);
    }
    if (*address) {
      const bool agrees = Agree(attribute, **address);
      *address = own_.OnWire(**address);
      return agrees;
    }
    *reason_ = std::string(attribute) + " of " + std::to_string(bytes) +
               " bytes is not an address of this provider";
    return false;
  }

  bool LookUpRequest(std::optional<base::SocketAddress>* address) {
    if (IsUrl(request_)) {
      *address = base::SocketAddress::FromUrl(request_.node);
      if (!*address) {
        *reason_ = std::string("node ") + request_.node +
                   " is not of the form fi_sockaddr_in://address:port";
        return false;
      }
      *address = own_.OnWire(**address);
    } else {
      *address =
          LookUp({.node = request_.node,
                  .service = request_.service,
                  .is_numeric = (request_.flags & FI_NUMERICHOST) != 0},
                 family_ == AF_INET6 ? AF_INET6 : AF_INET, own_, reason_);
    }
    if (!*address || !Agree("node", **address)) {
      return false;
    }
    // Without a node the function itself is meant, not the loopback that
    // getaddrinfo answers.
    if (request_.node == nullptr || (*address)->is_any()) {
      *address = Own().WithPort((*address)->port());
    }
    return true;
  }

  // Precondition: the family is not other than that of FI_HEDDLE_IP, which
  // the constructor and `Agree` see to.
  base::SocketAddress Own() const {
    return own_.Own(family_).value_or(base::SocketAddress());
  }

  base::SocketAddress OwnUnlessGiven(
      const std::optional<base::SocketAddress>& source) {
    if (!source) {
      return Own();
    }
    return source->is_any() ? Own().WithPort(source->port()) : *source;
  }

  static bool IsUrl(const InfoRequest& request) {
    return request.node != nullptr && strstr(request.node, "://") != nullptr;
  }

  const InfoRequest& request_;
  const Hints& hints_;
  const OwnAddresses& own_;
  std::string* reason_;
  int family_;
};

}  // namespace

std::optional<base::SocketAddress> LookUp(const NodeName& name, int family,
                                          const OwnAddresses& own,
                                          std::string* reason) {
  auto found = AskResolver(name, family, reason);
  if (!found && name.node != nullptr) {
    std::string other_reason;  // The first one is that of the family wanted.
    found = AskResolver(name, family == AF_INET6 ? AF_INET : AF_INET6,
                        &other_reason);
    if (found && own.IsMachine(*found)) {
      const base::SocketAddress local =
          found->is_any() ? Any(family) : own.Default(family);
      return local.WithPort(found->port());
    }
  }
  return found ? std::optional(own.OnWire(*found)) : std::nullopt;
}

int Resolve(const InfoRequest& request, const Hints& hints,
            const OwnAddresses& own, Endpoints* endpoints,
            std::string* reason) {
  const bool is_text =
      request.node != nullptr && (hints->addr_format == FI_ADDR_STR ||
                                  strstr(request.node, "://") != nullptr);
  if (is_text && request.service != nullptr) {
    *reason = std::string("service ") + request.service +
              " beside a node in the format FI_ADDR_STR, which holds the port";
    return -FI_EINVAL;
  }
  return Resolver(request, hints, own, reason).Run(endpoints) ? FI_SUCCESS
                                                              : -FI_ENODATA;
}

}  // namespace heddle::core
