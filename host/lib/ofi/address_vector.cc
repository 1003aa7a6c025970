// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/address_vector.h"

#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "host/lib/base/enumerator.h"
#include "host/lib/base/guard.h"
#include "host/lib/base/log.h"
#include "host/lib/base/refuse.h"
#include "host/lib/base/socket_address.h"
#include "host/lib/base/status.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/core/resolve.h"
#include "host/lib/ofi/inherited_ops.h"

namespace heddle::ofi {
namespace {

int CloseVector(struct fid* handle) noexcept {
  return AddressVector::From(handle)->Close();
}

// NOLINTBEGIN(readability-function-size): the API's parameters.
int InsertAddresses(fid_av* handle, const void* addresses, size_t count,
                    fi_addr_t* indices, uint64_t flags,
                    void* context) noexcept {
  return base::Guard([&] {
    return AddressVector::From(handle)->Insert(addresses, count, indices, flags,
                                               context);
  });
}

int InsertService(fid_av* handle, const char* node, const char* service,
                  fi_addr_t* index, uint64_t flags, void* context) noexcept {
  return base::Guard([&] {
    return AddressVector::From(handle)->InsertService(node, service, index,
                                                      flags, context);
  });
}

int InsertSymmetric(fid_av* handle, const char* node, size_t nodes,
                    const char* service, size_t services, fi_addr_t* indices,
                    uint64_t flags, void* context) noexcept {
  return base::Guard([&] {
    return AddressVector::From(handle)->InsertRange({.node = node,
                                                     .nodes = nodes,
                                                     .service = service,
                                                     .services = services},
                                                    indices, flags, context);
  });
}

// NOLINTEND(readability-function-size)

int RemoveAddresses(fid_av* handle, fi_addr_t* indices, size_t count,
                    uint64_t flags) noexcept {
  return AddressVector::From(handle)->Remove(indices, count, flags);
}

int LookupAddress(fid_av* handle, fi_addr_t index, void* address,
                  size_t* length) noexcept {
  return AddressVector::From(handle)->Lookup(index, address, length);
}

// Source: fi_av(3), `length` is the buffer's size, then the text's with its
// terminator; the text is cut to fit.
const char* AddressText(fid_av* /*handle*/, const void* address, char* buffer,
                        size_t* length) noexcept {
  auto parsed = base::SocketAddress::Read(address, sizeof(sockaddr_in));
  if (!parsed.has_value()) {
    parsed = base::SocketAddress::Read(address, sizeof(sockaddr_in6));
  }
  const base::SocketAddress known = parsed.value_or(base::SocketAddress());
  const int text =
      std::snprintf(buffer, buffer == nullptr ? 0 : *length, "%s://%s",
                    known.is_ipv6() ? "fi_sockaddr_in6" : "fi_sockaddr_in",
                    known.ToChars().text);
  *length = static_cast<size_t>(text) + 1;
  return buffer;
}

fi_ops vector_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseVector,
    .bind = base::RefuseBind,
    .control = base::RefuseControl,
    .ops_open = base::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

fi_ops_av vector_ops = {
    .size = sizeof(fi_ops_av),
    .insert = InsertAddresses,
    .insertsvc = InsertService,
    .insertsym = InsertSymmetric,
    .remove = RemoveAddresses,
    .lookup = LookupAddress,
    .straddr = AddressText,
    .av_set = base::kNotImplemented,
};

// The address `steps` after `first`, at `port`; past the last port, port 0.
base::SocketAddress CountUp(const base::SocketAddress& first, uint64_t steps,
                            size_t port) {
  const uint16_t fits =
      port <= UINT16_MAX ? static_cast<uint16_t>(port) : uint16_t{0};
  if (!first.is_ipv6()) {
    const uint32_t bits =
        ntohl(first.ipv4().s_addr) + static_cast<uint32_t>(steps);
    return {in_addr{.s_addr = htonl(bits)}, fits};
  }
  auto words = std::bit_cast<std::array<uint64_t, 2>>(first.ipv6());
  const uint64_t low = be64toh(words[1]) + steps;
  words[0] = htobe64(be64toh(words[0]) + (low < steps ? 1 : 0));
  words[1] = htobe64(low);
  return {std::bit_cast<in6_addr>(words), fits};
}

// Counts failures where the caller asked for an error per address.
void ReportError(uint64_t flags, void* context, size_t index, int result) {
  if ((flags & FI_SYNC_ERR) != 0) {
    static_cast<int*>(context)[index] = -result;
  }
}

}  // namespace

int AddressVector::Open(Domain* domain, fi_av_attr* attr, fid_av** vector,
                        void* context) {
  if (attr == nullptr || attr->rx_ctx_bits < 0 ||
      (attr->flags & ~(FI_EVENT | FI_READ | FI_SYMMETRIC)) != 0) {
    return -FI_EINVAL;
  }
  // Shared vectors, completion by event and receive contexts in addresses
  // are not offered; FI_SYMMETRIC is only a hint.
  if (attr->name != nullptr || (attr->flags & (FI_EVENT | FI_READ)) != 0 ||
      attr->rx_ctx_bits != 0) {
    return -FI_ENOSYS;
  }
  if (!base::AtMost(attr->type, FI_AV_TABLE)) {
    return -FI_EINVAL;
  }
  if (attr->type == FI_AV_UNSPEC) {
    attr->type =
        domain->av_type() == FI_AV_UNSPEC ? FI_AV_TABLE : domain->av_type();
  }
  std::unique_ptr<AddressVector> made(new AddressVector(domain));
  auto peers = domain->device().OpenPeers(attr->count);
  if (!peers.ok()) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kAv,
              "address vector of %zu entries: %s", attr->count,
              domain->Explain(peers.error()).c_str());
    return base::ToReturnCode(peers.error());
  }
  made->peers_ = std::move(peers.value());
  made->type_ = attr->type;
  made->fid = {
      .fclass = FI_CLASS_AV, .context = context, .ops = &vector_fid_ops};
  made->ops = &vector_ops;
  domain->users().Add();
  *vector = made.release();
  return 0;
}

int AddressVector::CheckInsert(const fi_addr_t* indices, uint64_t flags,
                               const void* context) const noexcept {
  if ((flags & ~(FI_MORE | FI_SYNC_ERR)) != 0) {
    return -FI_EBADFLAGS;
  }
  // Without a place for them, only indices that can be counted are useful.
  const bool lost = indices == nullptr && type_ != FI_AV_TABLE;
  return lost || ((flags & FI_SYNC_ERR) != 0 && context == nullptr) ? -FI_EINVAL
                                                                    : 0;
}

int AddressVector::InsertOne(const base::SocketAddress& given,
                             fi_addr_t* index) {
  const base::SocketAddress address = domain_->own_addresses().OnWire(given);
  if (address.family() != domain_->address().family() || address.port() == 0 ||
      !address.is_unicast()) {
    return -FI_EINVAL;
  }
  auto inserted = peers_->Insert(address);
  if (!inserted.ok()) {
    return base::ToReturnCode(inserted.error());
  }
  *index = inserted.value();
  return 0;
}

int AddressVector::Insert(const void* addresses, size_t count,
                          fi_addr_t* indices, uint64_t flags, void* context) {
  const int refused = CheckInsert(indices, flags, context);
  if (refused != 0 || (addresses == nullptr && count != 0)) {
    return refused != 0 ? refused : -FI_EINVAL;
  }
  int inserted = 0;
  const size_t stride = domain_->address().size();
  const auto* bytes = static_cast<const std::byte*>(addresses);
  for (size_t i = 0; i < count; ++i, bytes += stride) {
    const auto address = base::SocketAddress::Read(bytes, stride);
    fi_addr_t index = FI_ADDR_NOTAVAIL;
    const int result =
        address.has_value() ? InsertOne(*address, &index) : -FI_EINVAL;
    ReportError(flags, context, i, result);
    inserted += result == 0 ? 1 : 0;
    if (indices != nullptr) {
      indices[i] = index;
    }
  }
  return inserted;
}

int AddressVector::InsertService(const char* node, const char* service,
                                 fi_addr_t* index, uint64_t flags,
                                 void* context) {
  return InsertRange(
      {.node = node, .nodes = 1, .service = service, .services = 1}, index,
      flags, context);
}

int AddressVector::InsertRange(const Range& range, fi_addr_t* indices,
                               uint64_t flags, void* context) {
  const int refused = CheckInsert(indices, flags, context);
  if (refused != 0 || range.node == nullptr || range.service == nullptr) {
    return refused != 0 ? refused : -FI_EINVAL;
  }
  const sa_family_t family = domain_->address().family();
  std::string reason;
  const auto first =
      core::LookUp({.node = range.node, .service = range.service}, family,
                   domain_->own_addresses(), &reason);
  if (!first.has_value() || first->family() != family) {
    base::Log(base::LogLevel::kInfo, base::LogSubsystem::kAv,
              "no address inserted: %s",
              first.has_value()
                  ? (first->Text() + " is not of the device's family").c_str()
                  : reason.c_str());
    return -FI_EINVAL;
  }
  int inserted = 0;
  for (size_t i = 0; i < range.nodes * range.services; ++i) {
    const base::SocketAddress address =
        CountUp(*first, i / range.services, first->port() + i % range.services);
    fi_addr_t index = FI_ADDR_NOTAVAIL;
    const int result = InsertOne(address, &index);
    ReportError(flags, context, i, result);
    inserted += result == 0 ? 1 : 0;
    if (indices != nullptr) {
      indices[i] = index;
    }
  }
  return inserted;
}

int AddressVector::Remove(const fi_addr_t* indices, size_t count,
                          uint64_t flags) noexcept {
  if (flags != 0) {
    return -FI_EBADFLAGS;
  }
  int result = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!peers_->Remove(indices[i])) {
      result = -FI_EINVAL;
    }
  }
  return result;
}

int AddressVector::Lookup(fi_addr_t index, void* address,
                          size_t* length) const noexcept {
  const auto found = peers_->Lookup(index);
  if (!found.has_value()) {
    return -FI_EINVAL;
  }
  std::memcpy(address, found->data(), std::min(*length, found->size()));
  *length = found->size();
  return 0;
}

int AddressVector::Close() noexcept {
  if (users_.in_use()) {
    return -FI_EBUSY;
  }
  domain_->users().Remove();
  delete this;
  return 0;
}

void AddressVector::Disinherit() noexcept {
  fid.ops = &inherited_fid_ops;
  ops = &inherited_av_ops;
}

}  // namespace heddle::ofi
