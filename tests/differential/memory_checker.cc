// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/memory_checker.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "tests/differential/content.h"

namespace heddle::differential {
namespace {

// Of an access that is refused to a region that is `registered`.
int64_t ErrorOf(Fault fault, bool registered) {
  const bool has_key = fault == Fault::kWithoutRight ||
                       (fault == Fault::kBeyondRegion && registered);
  return has_key ? FI_EACCES : FI_EKEYREJECTED;
}

}  // namespace

MemoryChecker::MemoryChecker(const Stream& stream, Verdict* verdict)
    : stream_(stream),
      history_(stream),
      verdict_(verdict),
      regions_(size_t{stream.setup.sides} * kAreas) {
  for (Region& region : regions_) {
    region.before.assign(kRegionBytes, kUntouched);
    region.now = region.before;
  }
}

void MemoryChecker::Violate(const std::string& what) {
  verdict_->violations.push_back(what);
}

std::string MemoryChecker::Name(const Access& access) const {
  return "operation " + std::to_string(access.number) + " (" +
         ToText(*access.operation) + ")";
}

void MemoryChecker::Feed(uint32_t side, const Event& event) {
  const uint64_t time = ++clock_.at(side);
  const auto found = accesses_.find(event.number);
  switch (event.kind) {
    case EventKind::kCalled:
      OnCalled(event);
      break;
    case EventKind::kCompleted:
    case EventKind::kFailed:
      if (found != accesses_.end()) {
        found->second.completed = time;
        found->second.failed = event.kind == EventKind::kFailed;
        found->second.error = event.result;
      }
      break;
    case EventKind::kResult:
      if (found != accesses_.end()) {
        found->second.has_result = true;
        found->second.result = event.content;
      }
      break;
    case EventKind::kNotified:
      notices_.at(side).push_back(event.data);
      break;
    case EventKind::kMemory: {
      Region& region = regions_.at(side * kAreas + event.region);
      std::copy(event.content.begin(), event.content.end(),
                region.now.begin() + static_cast<ptrdiff_t>(event.offset));
      region.was_reported = true;
      break;
    }
    default:
      break;
  }
}

void MemoryChecker::OnCalled(const Event& event) {
  const Operation& operation = stream_.operations.at(event.number);
  if (event.result != 0) {
    return;
  }
  const uint32_t own = operation.at.side * kAreas + operation.region;
  if (IsRma(operation.verb)) {
    accesses_[event.number] = {.number = event.number,
                               .operation = &operation,
                               .posted = clock_.at(operation.at.side)};
    accesses_[event.number].life =
        history_.RenewalsBefore(event.number, operation.peer.side);
  } else if (operation.verb == Verb::kRegister ||
             operation.verb == Verb::kDeregister) {
    regions_.at(own).registered = operation.verb == Verb::kRegister;
    regions_.at(own).was_changed = true;
  } else if (IsRenewal(operation.verb)) {
    OnRenewal(operation.at.side);
  } else if (operation.verb == Verb::kClose) {
    closed_.at(operation.at.index()) = true;
    was_closed_.at(operation.at.index()) = true;
  } else if (operation.verb == Verb::kOpen) {
    closed_.at(operation.at.index()) = false;
  }
}

void MemoryChecker::OnRenewal(uint32_t side) {
  was_renewed_.at(side) = true;
  for (uint32_t area = 0; area < kAreas; ++area) {
    Region& region = regions_.at(side * kAreas + area);
    ++region.life;
    region.registered = region.was_changed = region.was_reported = true;
    region.now.assign(kRegionBytes, kUntouched);
  }
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    const uint32_t at = Place{.side = side, .endpoint = index}.index();
    closed_.at(at) = false;
    was_closed_.at(at) = true;
  }
}

bool MemoryChecker::Precedes(const Access& first, const Access& second) const {
  const Operation& one = *first.operation;
  const Operation& other = *second.operation;
  const bool ordered = stream_.setup.rma_ordered && one.verb != Verb::kRead &&
                       one.at == other.at && one.peer == other.peer &&
                       first.posted < second.posted &&
                       !was_closed_.at(one.at.index()) &&
                       !was_closed_.at(one.peer.index());
  return ordered ||
         (one.at.side == other.at.side && first.completed < second.posted);
}

bool MemoryChecker::MustFail(const Access& access) const {
  const Region& region = RegionOf(*access.operation);
  return access.operation->fault != Fault::kNone ||
         (!region.registered && !region.was_changed);
}

// Of several pieces only the last is beyond the region.
bool MemoryChecker::LeavesNothing(const Access& access) const {
  const Operation& operation = *access.operation;
  return MustFail(access) &&
         (operation.fault != Fault::kBeyondRegion || operation.pieces == 1);
}

bool MemoryChecker::MayFail(const Access& access) const {
  return MustFail(access) || MayFailOtherwise(access);
}

// For another reason than that it asks for what it may not.
bool MemoryChecker::MayFailOtherwise(const Access& access) const {
  const Operation& operation = *access.operation;
  return stream_.setup.read_again > 0 || RegionOf(operation).was_changed ||
         was_closed_.at(operation.at.index()) ||
         was_closed_.at(operation.peer.index()) ||
         was_renewed_.at(operation.peer.side);
}

// Whether all its bytes were certainly written at some time.
bool MemoryChecker::IsSure(const Access& access) const {
  const bool reported = IsReported(stream_.setup, *access.operation);
  return !access.failed &&
         (access.completed != UINT64_MAX || (!reported && !MayFail(access)));
}

void MemoryChecker::CheckOutcome(const Access& access) {
  const bool complete = access.completed != UINT64_MAX;
  if (complete && !access.failed) {
    ++verdict_->figures.accesses;
    if (MustFail(access)) {
      Violate(Name(access) + " succeeded, which it must not");
    }
    // Results are told of at a sync.
    if (access.operation->verb == Verb::kRead && !access.has_result &&
        !was_closed_.at(access.operation->at.index())) {
      Violate(Name(access) + " has no result");
    }
  }
  if (complete && access.failed && !MayFail(access)) {
    Violate(Name(access) + " failed without a cause");
  }
  if (complete && access.failed && MustFail(access) &&
      !MayFailOtherwise(access) &&
      access.error != ErrorOf(access.operation->fault,
                              RegionOf(*access.operation).registered)) {
    Violate(Name(access) + " was refused with error " +
            std::to_string(access.error));
  }
}

// Remote completion data come once with each write that succeeded.
void MemoryChecker::CheckNotices() {
  for (const auto& [number, access] : accesses_) {
    if (!HasData(access.operation->verb)) {
      continue;
    }
    auto& notices = notices_.at(access.operation->peer.side);
    const uint64_t data = ContentData(stream_.setup.seed, number);
    const auto count = std::count(notices.begin(), notices.end(), data);
    if (count > 1 || (count == 0 && IsSure(access) && !MayFail(access)) ||
        (count == 1 && MustFail(access))) {
      Violate("the target heard " + std::to_string(count) + " times of " +
              Name(access));
    }
    std::erase(notices, data);
  }
  for (auto& notices : notices_) {
    if (!notices.empty()) {
      Violate("a notice of a write that nobody made");
    }
    notices.clear();
  }
}

// Of bytes in which no write begins or ends: those that `read` may bring, or
// that may be there in the end, are what one of `candidates` left or, unless
// `overwritten`, what was there before.
MemoryChecker::Stretch MemoryChecker::StretchAt(
    uint32_t from, uint32_t end, const Access* read,
    const std::vector<const Access*>& writes) const {
  Stretch stretch = {.end = end};
  std::vector<const Access*> there;
  for (const Access* const write : writes) {
    const uint32_t first = write->operation->offset;
    const uint32_t behind = first + write->operation->bytes;
    if (first <= from && from < behind) {
      stretch.end = std::min(stretch.end, behind);
      there.push_back(write);
    } else if (first > from) {
      stretch.end = std::min(stretch.end, first);
    }
  }
  for (const Access* const write : there) {
    if (read != nullptr && Precedes(*read, *write)) {
      continue;
    }
    const bool before_read = read == nullptr || Precedes(*write, *read);
    stretch.overwritten =
        stretch.overwritten || (IsSure(*write) && before_read);
    const bool hidden =
        std::any_of(there.begin(), there.end(), [&](const Access* later) {
          return IsSure(*later) && Precedes(*write, *later) &&
                 (read == nullptr || Precedes(*later, *read));
        });
    if (!hidden) {
      stretch.candidates.push_back(write);
    }
  }
  return stretch;
}

// The first of `bytes`, which are those from `from` on, that cannot be there
// when `read` reads it, or in the end.
std::optional<uint32_t> MemoryChecker::FindForbidden(
    uint32_t from, std::span<const uint8_t> bytes, const Region& region,
    const Access* read, const std::vector<const Access*>& writes) const {
  const auto end = from + static_cast<uint32_t>(bytes.size());
  const uint64_t seed = stream_.setup.seed;
  for (uint32_t at = from; at < end;) {
    const Stretch stretch = StretchAt(at, end, read, writes);
    const size_t count = stretch.end - at;
    const auto here = bytes.subspan(at - from, count);
    const auto before = std::span(region.before).subspan(at, count);
    // Mostly one explains all.
    const bool whole =
        (!stretch.overwritten && std::ranges::equal(here, before)) ||
        std::ranges::any_of(stretch.candidates, [&](const Access* write) {
          return IsContent(seed, write->number, at - write->operation->offset,
                           here);
        });
    for (uint32_t i = 0; i < count && !whole; ++i) {
      const auto byte = here.subspan(i, 1);
      const bool explained =
          (!stretch.overwritten && byte[0] == before[i]) ||
          std::ranges::any_of(stretch.candidates, [&](const Access* write) {
            return IsContent(seed, write->number,
                             at + i - write->operation->offset, byte);
          });
      if (!explained) {
        return at + i;
      }
    }
    at = stretch.end;
  }
  return std::nullopt;
}

void MemoryChecker::CheckRead(const Access& read,
                              const std::vector<const Access*>& writes) {
  const Region& region = RegionOf(*read.operation);
  if (read.result.size() != read.operation->bytes) {
    Violate(Name(read) + " brought another number of bytes");
    return;
  }
  if (const auto at = FindForbidden(read.operation->offset, read.result, region,
                                    &read, writes)) {
    ++verdict_->figures.corrupted;
    Violate(Name(read) + " brought byte " + std::to_string(*at) +
            " as no write left it then");
  }
}

std::vector<const MemoryChecker::Access*> MemoryChecker::AccessesTo(
    uint32_t index, uint32_t life, bool reads) const {
  std::vector<const Access*> found;
  for (const auto& [number, access] : accesses_) {
    const bool is_read = access.operation->verb == Verb::kRead;
    if (&RegionOf(*access.operation) == &regions_[index] &&
        access.life == life && is_read == reads && !LeavesNothing(access)) {
      found.push_back(&access);
    }
  }
  return found;
}

void MemoryChecker::CheckRegion(uint32_t index) {
  Region& region = regions_.at(index);
  std::vector<const Access*> writes;
  for (; region.first_life <= region.life; ++region.first_life) {
    writes = AccessesTo(index, region.first_life, /*reads=*/false);
    for (const Access* const read :
         AccessesTo(index, region.first_life, /*reads=*/true)) {
      if (read->has_result && !read->failed) {
        CheckRead(*read, writes);
      }
    }
    if (region.first_life != region.life) {
      region.before.assign(kRegionBytes, kUntouched);
    }
  }
  region.first_life = region.life;
  if (writes.empty() && !region.was_reported) {
    return;
  }
  if (const auto at = FindForbidden(0, region.now, region, nullptr, writes)) {
    ++verdict_->figures.corrupted;
    Violate("byte " + std::to_string(*at) + " of region " +
            std::to_string(index % kAreas) + " of side " +
            std::to_string(index / kAreas) + " is not what a last write left");
  }
  region.before = region.now;
  region.was_reported = false;
}

void MemoryChecker::Settle() {
  for (const auto& [number, access] : accesses_) {
    CheckOutcome(access);
  }
  CheckNotices();
  for (uint32_t index = 0; index < regions_.size(); ++index) {
    CheckRegion(index);
    regions_[index].was_changed = false;
  }
  accesses_.clear();
  was_closed_ = closed_;
  was_renewed_ = {};
}

}  // namespace heddle::differential
