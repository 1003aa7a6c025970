// SPDX-License-Identifier: Apache-2.0
// The calls that post an operation, or must be refused.
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>

#include "tests/differential/content.h"
#include "tests/differential/executor.h"

namespace heddle::differential {
namespace {

// A full queue may stay full as long as its peer posts no receive, which
// may be for ever: then the operation is left out.
constexpr uint64_t kRetryForNs = 100'000'000;
// Nothing of a peer's has to come for an answer.
constexpr uint64_t kPeekForNs = 20'000'000'000;
constexpr uint64_t kUnknownFlagBit = uint64_t{1} << 47U;

// `count` parts of a buffer: together all of it, none equal in size.
std::vector<iovec> Split(uint8_t* buffer, size_t bytes, uint32_t count) {
  std::vector<iovec> parts;
  size_t at = 0;
  for (uint32_t i = 0; i + 1 < count; ++i) {
    const size_t part = (bytes - at) / 2;
    parts.push_back({.iov_base = buffer + at, .iov_len = part});
    at += part;
  }
  parts.push_back({.iov_base = buffer + at, .iov_len = bytes - at});
  return parts;
}

// `count` pieces of a peer's memory; no border is one of `Split`.
std::vector<fi_rma_iov> SplitTarget(const Operation& operation, uint64_t key,
                                    size_t count) {
  std::vector<fi_rma_iov> pieces;
  uint64_t at = 0;
  for (size_t i = 0; i + 1 < count; ++i) {
    const uint64_t piece = (operation.bytes - at) / 3;
    pieces.push_back({.addr = operation.offset + at, .len = piece, .key = key});
    at += piece;
  }
  pieces.push_back(
      {.addr = operation.offset + at, .len = operation.bytes - at, .key = key});
  return pieces;
}

// All bits of a tag are 64.
uint64_t IgnoredBits(const Operation& operation) {
  return operation.ignore == UINT32_MAX ? UINT64_MAX : operation.ignore;
}

}  // namespace

int64_t Executor::Retry(const std::function<int64_t()>& post) {
  const uint64_t deadline_ns = surroundings_.now_ns() + kRetryForNs;
  int64_t result = post();
  while (result == -FI_EAGAIN && surroundings_.now_ns() < deadline_ns) {
    (void)Poll();
    result = post();
  }
  return result;
}

std::unique_ptr<Executor::Posted> Executor::MakePosted(
    uint32_t number, const Operation& operation) {
  auto posted = std::make_unique<Posted>();
  posted->number = number;
  posted->endpoint = operation.at.endpoint;
  posted->reported = IsReported(stream_.setup, operation);
  return posted;
}

void Executor::Register(const Operation& operation, Posted* posted) {
  if (operation.registered && !posted->buffer.empty()) {
    Require(
        "fi_mr_reg",
        fi_mr_reg(fabric_->domain(), posted->buffer.data(),
                  posted->buffer.size(), FI_SEND | FI_RECV | FI_READ | FI_WRITE,
                  0, kNoKey + 1 + posted->number, 0, &posted->region, nullptr));
  }
}

void Executor::Keep(std::unique_ptr<Posted> posted) {
  const void* const context = &posted->context;
  if (posted->receives) {
    receives_[posted->endpoint].push_back(context);
  }
  contexts_.emplace(context, posted.get());
  posted_.push_back(std::move(posted));
}

int64_t Executor::PostReceive(uint32_t number, const Operation& operation) {
  auto posted = MakePosted(number, operation);
  posted->receives = true;
  posted->reported = true;
  posted->buffer.assign(operation.bytes, kUntouched);
  Register(operation, posted.get());
  void* const descriptor =
      posted->region == nullptr ? nullptr : fi_mr_desc(posted->region);
  auto parts =
      Split(posted->buffer.data(), operation.bytes, operation.segments);
  std::vector<void*> descriptors(parts.size(), descriptor);
  fid_ep* const endpoint = fabric_->endpoint(operation.at.endpoint);
  const fi_addr_t source = SourceOf(operation);
  posted->many = operation.many;
  const fi_msg message = {.msg_iov = parts.data(),
                          .desc = descriptors.data(),
                          .iov_count = parts.size(),
                          .addr = FI_ADDR_UNSPEC,
                          .context = &posted->context,
                          .data = 0};
  const fi_msg_tagged tagged = {.msg_iov = message.msg_iov,
                                .desc = message.desc,
                                .iov_count = message.iov_count,
                                .addr = source,
                                .tag = operation.tag,
                                .ignore = IgnoredBits(operation),
                                .context = message.context,
                                .data = 0};
  const int64_t result = Retry([&]() -> int64_t {
    if (operation.many) {
      return operation.tagged ? fi_trecvmsg(endpoint, &tagged, FI_MULTI_RECV)
                              : fi_recvmsg(endpoint, &message, FI_MULTI_RECV);
    }
    if (operation.tagged) {
      return operation.segments == 1
                 ? fi_trecv(endpoint, posted->buffer.data(), operation.bytes,
                            descriptor, source, operation.tag,
                            IgnoredBits(operation), &posted->context)
                 : fi_trecvv(endpoint, parts.data(), descriptors.data(),
                             parts.size(), source, operation.tag,
                             IgnoredBits(operation), &posted->context);
    }
    return operation.segments == 1
               ? fi_recv(endpoint, posted->buffer.data(), operation.bytes,
                         descriptor, FI_ADDR_UNSPEC, &posted->context)
               : fi_recvv(endpoint, parts.data(), descriptors.data(),
                          parts.size(), FI_ADDR_UNSPEC, &posted->context);
  });
  if (result == 0) {
    Keep(std::move(posted));
  } else if (posted->region != nullptr) {
    (void)fi_close(&posted->region->fid);
  }
  return result;
}

fi_addr_t Executor::SourceOf(const Operation& operation) const {
  return operation.directed ? fabric_->AddressOfPlace(operation.peer)
                            : FI_ADDR_UNSPEC;
}

int64_t Executor::Peek(uint32_t number, const Operation& operation) {
  auto owned = MakePosted(number, operation);
  Posted* const posted = owned.get();
  posted->peeks = true;
  posted->reported = false;
  const fi_msg_tagged message = {.msg_iov = nullptr,
                                 .desc = nullptr,
                                 .iov_count = 0,
                                 .addr = SourceOf(operation),
                                 .tag = operation.tag,
                                 .ignore = IgnoredBits(operation),
                                 .context = &posted->context,
                                 .data = 0};
  const uint64_t flags = operation.verb == Verb::kDiscard ? FI_DISCARD
                         : operation.verb == Verb::kClaim ? FI_CLAIM
                                                          : 0;
  fid_ep* const endpoint = fabric_->endpoint(operation.at.endpoint);
  const int64_t result = Retry([&]() -> int64_t {
    return fi_trecvmsg(endpoint, &message, FI_PEEK | flags);
  });
  if (result != 0) {
    return result;
  }
  Keep(std::move(owned));
  const uint64_t deadline_ns = surroundings_.now_ns() + kPeekForNs;
  while (!posted->complete && surroundings_.now_ns() < deadline_ns) {
    (void)Poll();
  }
  if (posted->complete && !posted->failed && operation.verb == Verb::kClaim) {
    claims_.push_back({posted, operation.back});
  }
  return posted->complete ? 0 : -FI_ETIMEDOUT;
}

void Executor::TakeClaimed(bool all) {
  for (Claim& claim : claims_) {
    if (all || claim.wait == 0) {
      TakeClaimed(claim.posted, stream_.operations.at(claim.posted->number));
      claim.posted = nullptr;
    } else {
      --claim.wait;
    }
  }
  std::erase_if(claims_,
                [](const Claim& claim) { return claim.posted == nullptr; });
}

void Executor::TakeClaimed(Posted* claim, const Operation& operation) {
  claim->complete = false;
  if (!operation.dropped) {
    claim->number += kClaimBase;
    claim->receives = claim->reported = true;
    claim->peeks = false;
    claim->buffer.assign(operation.bytes, kUntouched);
    surroundings_.tell({.kind = EventKind::kClaimed,
                        .number = claim->number,
                        .endpoint = claim->endpoint,
                        .bytes = operation.bytes});
  } else {
    claim->flushes = true;  // Its result is of no interest.
  }
  const iovec part = {.iov_base = claim->buffer.data(),
                      .iov_len = claim->buffer.size()};
  const fi_msg_tagged message = {.msg_iov = &part,
                                 .desc = nullptr,
                                 .iov_count = operation.dropped ? 0U : 1U,
                                 .addr = SourceOf(operation),
                                 .tag = operation.tag,
                                 .ignore = IgnoredBits(operation),
                                 .context = &claim->context,
                                 .data = 0};
  fid_ep* const endpoint = fabric_->endpoint(claim->endpoint);
  Require("fi_trecvmsg", Retry([&]() -> int64_t {
            return fi_trecvmsg(endpoint, &message,
                               FI_CLAIM | (operation.dropped ? FI_DISCARD : 0));
          }));
}

int64_t Executor::PostSend(uint32_t number, const Operation& operation) {
  auto posted = MakePosted(number, operation);
  const uint64_t seed = stream_.setup.seed;
  posted->buffer = Content(seed, number, operation.bytes);
  fid_ep* const endpoint = fabric_->endpoint(operation.at.endpoint);
  const fi_addr_t peer = fabric_->AddressOfPlace(operation.peer);
  const uint64_t data = ContentData(seed, number);
  uint8_t* const bytes = posted->buffer.data();
  if (IsInject(operation.verb)) {
    const int64_t result = Retry([&]() -> int64_t {
      const bool plain = operation.verb == Verb::kInject;
      if (operation.tagged) {
        return plain ? fi_tinject(endpoint, bytes, operation.bytes, peer,
                                  operation.tag)
                     : fi_tinjectdata(endpoint, bytes, operation.bytes, data,
                                      peer, operation.tag);
      }
      return plain
                 ? fi_inject(endpoint, bytes, operation.bytes, peer)
                 : fi_injectdata(endpoint, bytes, operation.bytes, data, peer);
    });
    // The buffer is the caller's again: what is in it now must not arrive.
    std::fill(posted->buffer.begin(), posted->buffer.end(), kUntouched);
    return result;
  }
  Register(operation, posted.get());
  auto parts = Split(bytes, operation.bytes, operation.segments);
  std::vector<void*> descriptors(
      parts.size(),
      posted->region == nullptr ? nullptr : fi_mr_desc(posted->region));
  const fi_msg message = {.msg_iov = parts.data(),
                          .desc = descriptors.data(),
                          .iov_count = parts.size(),
                          .addr = peer,
                          .context = &posted->context,
                          .data = data};
  const bool has_data = HasData(operation.verb);
  const uint64_t flags = (has_data ? FI_REMOTE_CQ_DATA : 0) |
                         (posted->reported ? FI_COMPLETION : 0);
  const fi_msg_tagged tagged = {.msg_iov = message.msg_iov,
                                .desc = message.desc,
                                .iov_count = message.iov_count,
                                .addr = peer,
                                .tag = operation.tag,
                                .ignore = 0,
                                .context = message.context,
                                .data = data};
  const bool plain = operation.segments == 1 && !stream_.setup.selective;
  const int64_t result = Retry([&]() -> int64_t {
    if (!plain) {
      return operation.tagged ? fi_tsendmsg(endpoint, &tagged, flags)
                              : fi_sendmsg(endpoint, &message, flags);
    }
    if (operation.tagged) {
      return has_data
                 ? fi_tsenddata(endpoint, bytes, operation.bytes,
                                descriptors[0], data, peer, operation.tag,
                                &posted->context)
                 : fi_tsend(endpoint, bytes, operation.bytes, descriptors[0],
                            peer, operation.tag, &posted->context);
    }
    return has_data ? fi_senddata(endpoint, bytes, operation.bytes,
                                  descriptors[0], data, peer, &posted->context)
                    : fi_send(endpoint, bytes, operation.bytes, descriptors[0],
                              peer, &posted->context);
  });
  if (result == 0) {
    Keep(std::move(posted));
  } else if (posted->region != nullptr) {
    (void)fi_close(&posted->region->fid);
  }
  return result;
}

uint64_t Executor::KeyFor(uint32_t number, const Operation& operation) const {
  const uint32_t owner = operation.peer.side;
  if (operation.fault == Fault::kBadKey) {
    return kNoKey;
  }
  if (operation.fault == Fault::kWithoutRight) {
    return GuardKey(owner,
                    operation.verb == Verb::kRead ? kWriteOnly : kReadOnly);
  }
  return KeyAt(history_, number, owner, operation.region);
}

int64_t Executor::PostRma(uint32_t number, const Operation& operation) {
  auto posted = MakePosted(number, operation);
  const uint64_t seed = stream_.setup.seed;
  posted->reads = operation.verb == Verb::kRead;
  posted->buffer = posted->reads
                       ? std::vector<uint8_t>(operation.bytes, kUntouched)
                       : Content(seed, number, operation.bytes);
  fid_ep* const endpoint = fabric_->endpoint(operation.at.endpoint);
  const fi_addr_t peer = fabric_->AddressOfPlace(operation.peer);
  const uint64_t key = KeyFor(number, operation);
  uint8_t* const bytes = posted->buffer.data();
  if (operation.verb == Verb::kInjectWrite) {
    unflushed_.at(operation.at.endpoint).at(operation.peer.index()) = true;
    return Retry([&]() -> int64_t {
      return fi_inject_write(endpoint, bytes, operation.bytes, peer,
                             operation.offset, key);
    });
  }
  Register(operation, posted.get());
  auto parts = Split(bytes, operation.bytes, operation.segments);
  std::vector<void*> descriptors(
      parts.size(),
      posted->region == nullptr ? nullptr : fi_mr_desc(posted->region));
  const auto target =
      SplitTarget(operation, key,
                  std::min<size_t>(operation.pieces, fabric_->piece_limit()));
  const fi_msg_rma message = {.msg_iov = parts.data(),
                              .desc = descriptors.data(),
                              .iov_count = parts.size(),
                              .addr = peer,
                              .rma_iov = target.data(),
                              .rma_iov_count = target.size(),
                              .context = &posted->context,
                              .data = ContentData(seed, number)};
  const uint64_t flags =
      (HasData(operation.verb) ? FI_REMOTE_CQ_DATA : 0) |
      (posted->reported ? FI_COMPLETION : 0) |
      // The checker takes a completion as a promise about later reads.
      (posted->reads ? 0 : FI_DELIVERY_COMPLETE);
  const int64_t result = Retry([&]() -> int64_t {
    return posted->reads ? fi_readmsg(endpoint, &message, flags)
                         : fi_writemsg(endpoint, &message, flags);
  });
  if (result == 0) {
    Keep(std::move(posted));
  } else if (posted->region != nullptr) {
    (void)fi_close(&posted->region->fid);
  }
  return result;
}

int64_t Executor::CallInvalid(const Operation& operation) {
  fid_ep* const endpoint = fabric_->endpoint(operation.at.endpoint);
  const fi_addr_t peer = fabric_->AddressOfPlace(operation.peer);
  std::vector<uint8_t> bytes(fabric_->inject_size() + 1);
  std::vector<iovec> parts(5, {.iov_base = bytes.data(), .iov_len = 1});
  switch (operation.fault) {
    case Fault::kUnknownPeer:
      return fi_inject(endpoint, bytes.data(), 1, 99'999);
    case Fault::kLongInject:
      return fi_inject(endpoint, bytes.data(), bytes.size(), peer);
    case Fault::kManySegments:
      return fi_sendv(endpoint, parts.data(), nullptr, parts.size(), peer,
                      nullptr);
    case Fault::kUnknownFlag: {
      fi_msg message = {};
      message.msg_iov = parts.data();
      message.iov_count = 1;
      message.addr = peer;
      return fi_sendmsg(endpoint, &message, kUnknownFlagBit);
    }
    case Fault::kStrayCancel:
      return fi_cancel(&endpoint->fid, &parts);
    default:
      return 0;
  }
}

// An injected write may end before it is visible. But the end of a write with
// FI_DELIVERY_COMPLETE says that all that its target accepted before is visible
// as well (heddle_place; the model stores at once). This one changes nothing.
int64_t Executor::PostFlush(uint32_t index, const Place& peer) {
  auto posted = std::make_unique<Posted>();
  posted->number = kNobody;
  posted->endpoint = index;
  posted->flushes = true;
  posted->buffer.assign(1, kUntouched);
  const iovec source = {.iov_base = posted->buffer.data(), .iov_len = 1};
  const fi_rma_iov target = {
      .addr = 0, .len = 1, .key = GuardKey(peer.side, kWriteOnly)};
  fi_msg_rma message = {};
  message.msg_iov = &source;
  message.iov_count = 1;
  message.addr = fabric_->AddressOfPlace(peer);
  message.rma_iov = &target;
  message.rma_iov_count = 1;
  message.context = &posted->context;
  const int64_t result = fi_writemsg(fabric_->endpoint(index), &message,
                                     FI_DELIVERY_COMPLETE | FI_COMPLETION);
  if (result == 0) {
    ++counted_.at(index);
    Keep(std::move(posted));
  }
  return result;
}

}  // namespace heddle::differential
