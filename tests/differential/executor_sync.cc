// SPDX-License-Identifier: Apache-2.0
// What a side does at a sync, and tells there.
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "tests/differential/content.h"
#include "tests/differential/executor.h"

namespace heddle::differential {
namespace {

constexpr uint32_t kSpares = 4;  // Posted at each endpoint during a sync.
constexpr size_t kCompared = 256;

// Where two areas of the same size, which differ, differ first and last; to
// `kCompared` bytes.
struct Differing {
  size_t first = 0;
  size_t end = 0;
};
Differing FindDiffering(std::span<const uint8_t> one,
                        std::span<const uint8_t> other) {
  static_assert(kRegionBytes % kCompared == 0);
  const auto same = [&](size_t at) {
    return std::memcmp(&one[at], &other[at], kCompared) == 0;
  };
  Differing found = {.first = 0, .end = one.size()};
  while (same(found.first)) {
    found.first += kCompared;
  }
  while (same(found.end - kCompared)) {
    found.end -= kCompared;
  }
  return found;
}

}  // namespace

// Receives for whatever is still on its way, so that all sides can come to
// rest whatever the stream posted.
void Executor::PostSpares() {
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    if (fabric_->endpoint(index) == nullptr) {
      continue;
    }
    while (spares_.at(index) < kSpares && PostSpare(index, /*tagged=*/false)) {
    }
    while (tags_ && tagged_spares_.at(index) < kSpares &&
           PostSpare(index, /*tagged=*/true)) {
    }
  }
}

bool Executor::PostSpare(uint32_t index, bool tagged) {
  fid_ep* const endpoint = fabric_->endpoint(index);
  auto posted = std::make_unique<Posted>();
  uint32_t& next = tagged ? next_tagged_spare_ : next_spare_;
  posted->number = next++;
  posted->endpoint = index;
  posted->receives = true;
  posted->reported = true;
  posted->buffer.assign(spare_bytes_, kUntouched);
  uint8_t* const bytes = posted->buffer.data();
  const int64_t result =
      tagged ? fi_trecv(endpoint, bytes, spare_bytes_, nullptr, FI_ADDR_UNSPEC,
                        0, UINT64_MAX, &posted->context)
             : fi_recv(endpoint, bytes, spare_bytes_, nullptr, FI_ADDR_UNSPEC,
                       &posted->context);
  if (result == -FI_EAGAIN) {
    return false;  // There are enough.
  }
  surroundings_.tell({.kind = EventKind::kSpare,
                      .number = posted->number,
                      .endpoint = index,
                      .result = result,
                      .bytes = spare_bytes_});
  Require(tagged ? "fi_trecv" : "fi_recv", result);
  ++(tagged ? tagged_spares_ : spares_).at(index);
  Keep(std::move(posted));
  return true;
}

void Executor::CancelTaggedSpares() {
  for (const auto& posted : posted_) {
    if (posted->number < kTaggedSpareBase || posted->number >= kClaimBase ||
        posted->complete || posted->over) {
      continue;
    }
    Require("fi_cancel", fi_cancel(&fabric_->endpoint(posted->endpoint)->fid,
                                   &posted->context));
  }
  while (std::any_of(tagged_spares_.begin(), tagged_spares_.end(),
                     [](uint32_t count) { return count != 0; })) {
    (void)Poll();
  }
}

bool Executor::Counted() {
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    const uint64_t expected = counted_.at(index);
    const uint64_t ended = fabric_->EndedTransfers(index).value_or(expected);
    if (ended > expected) {
      surroundings_.tell({.kind = EventKind::kMiscounted,
                          .endpoint = index,
                          .result = static_cast<int64_t>(ended),
                          .bytes = expected});
      counted_.at(index) = ended;
    }
    if (ended < expected) {
      return false;
    }
  }
  return true;
}

bool Executor::Flushed() {
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    for (uint32_t at = 0; at < stream_.setup.places(); ++at) {
      bool& unflushed = unflushed_.at(index).at(at);
      if (!unflushed || fabric_->endpoint(index) == nullptr) {
        continue;
      }
      const int64_t result = PostFlush(
          index, {.side = at / kEndpoints, .endpoint = at % kEndpoints});
      if (result == -FI_EAGAIN) {
        return false;
      }
      Require("fi_writemsg", result);
      unflushed = false;
    }
  }
  return std::none_of(posted_.begin(), posted_.end(), [](const auto& posted) {
    return posted->flushes && !posted->complete && !posted->over;
  });
}

// A message whose sender was killed in its midst ends, and its receive with it,
// up to three DEAD_TIMEs later.
bool Executor::MatchedEnded() const {
  return std::none_of(posted_.begin(), posted_.end(), [](const auto& posted) {
    return posted->matched && !posted->complete && !posted->over;
  });
}

void Executor::Settle() {
  bool said = false;
  TakeClaimed(/*all=*/true);
  while (!said || !surroundings_.may_go_on()) {
    PostSpares();
    if (!said && Counted() && Flushed() && MatchedEnded()) {
      surroundings_.say_settling();
      said = true;
    }
    if (!Poll()) {
      surroundings_.rest();
    }
  }
  (void)Poll();  // What came between the last look and the word to go on.
  CancelTaggedSpares();
  TellReads();
  TellMemory();
  TellRestarts();
  Forget();
  surroundings_.tell({.kind = EventKind::kSettled});
  MeetOther();  // What it does next must not be seen as done before.
}

void Executor::MeetOther() {
  surroundings_.say_settling();
  while (!surroundings_.may_go_on()) {
    (void)Poll();
  }
}

void Executor::TellReads() {
  for (const auto& posted : posted_) {
    if (posted->reads && posted->complete && !posted->failed) {
      surroundings_.tell({.kind = EventKind::kResult,
                          .number = posted->number,
                          .content = posted->buffer});
    }
  }
}

void Executor::TellRestarts() {
  const uint64_t now = fabric_->CountRestarts();
  if (now != told_restarts_) {
    surroundings_.tell(
        {.kind = EventKind::kRestarted, .bytes = now - told_restarts_});
    told_restarts_ = now;
  }
}

// What others wrote into the regions.
void Executor::TellMemory() {
  for (uint32_t index = 0; index < kAreas; ++index) {
    const std::vector<uint8_t>& now = fabric_->area(index);
    std::vector<uint8_t>& told = told_memory_.at(index);
    if (now == told) {
      continue;
    }
    const auto [first, end] = FindDiffering(now, told);
    const auto changed = std::span(now).subspan(first, end - first);
    surroundings_.tell({.kind = EventKind::kMemory,
                        .region = index,
                        .offset = first,
                        .content = {changed.begin(), changed.end()}});
    std::ranges::copy(changed, told.begin() + static_cast<ptrdiff_t>(first));
  }
}

bool Executor::HasChanged(const Posted& posted) {
  const std::span<const uint8_t> buffer(posted.buffer);
  return Digest(buffer.first(posted.reach)) != posted.digest ||
         (posted.clean && !IsUntouched(buffer.subspan(posted.reach)));
}

// Frees what is complete or was closed; what the device may still use stays.
void Executor::Forget() {
  for (const auto& posted : posted_) {
    if (posted->complete && posted->receives && HasChanged(*posted)) {
      surroundings_.tell(
          {.kind = EventKind::kChanged, .number = posted->number});
    }
    if (!posted->complete && !posted->over) {
      continue;
    }
    if (posted->region != nullptr) {
      (void)fi_close(&posted->region->fid);
    }
    std::erase(receives_.at(posted->endpoint), &posted->context);
    contexts_.erase(&posted->context);
  }
  std::erase_if(posted_, [](const auto& posted) {
    return posted->complete || posted->over;
  });
}

}  // namespace heddle::differential
