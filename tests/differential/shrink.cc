// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/shrink.h"

#include <algorithm>

namespace heddle::differential {
namespace {

class Shrinker {
 public:
  Shrinker(const Stream& failing,
           const std::function<bool(const Stream&)>& fails, uint32_t max_runs)
      : best_(failing), fails_(fails), runs_left_(max_runs) {}

  Stream Run() {
    LeaveOut();
    Simplify();
    return best_;
  }

 private:
  // Whether `candidate` fails, too; then it is the best so far.
  bool Take(const Stream& candidate) {
    if (runs_left_ == 0) {
      return false;
    }
    --runs_left_;
    const bool fails = fails_(candidate);
    if (fails) {
      best_ = candidate;
    }
    return fails;
  }

  size_t removable() const {
    return best_.operations.empty() ? 0 : best_.operations.size() - 1;
  }

  void LeaveOut() {
    size_t piece = std::max<size_t>(removable() / 2, 1);
    bool again = true;
    while (again && runs_left_ > 0) {
      const bool any = LeaveOutPieces(piece);
      again = piece > 1 || any;
      piece = std::max<size_t>(piece / 2, 1);
    }
  }

  // Whether anything could be left out.
  bool LeaveOutPieces(size_t piece) {
    bool any = false;
    for (size_t from = 0; from < removable();) {
      Stream candidate = best_;
      const size_t count = std::min(piece, removable() - from);
      const auto begin =
          candidate.operations.begin() + static_cast<ptrdiff_t>(from);
      candidate.operations.erase(begin, begin + static_cast<ptrdiff_t>(count));
      if (Take(candidate)) {
        any = true;
      } else {
        from += count;
      }
    }
    return any;
  }

  void Simplify() {
    Stream candidate = best_;
    candidate.setup.faults = {};
    (void)(candidate == best_ || Take(candidate));
    candidate = best_;
    candidate.setup.rma_ordered = false;
    (void)(candidate == best_ || Take(candidate));
    candidate = best_;
    candidate.setup.idle_closes = false;
    (void)(candidate == best_ || Take(candidate));
    candidate = best_;
    candidate.setup.short_rings = false;
    (void)(candidate == best_ || Take(candidate));
    for (size_t at = 0; at < best_.operations.size(); ++at) {
      candidate = best_;
      Operation& operation = candidate.operations[at];
      operation.segments = operation.pieces = 1;
      operation.registered = false;
      (void)(candidate == best_ || Take(candidate));
      candidate = best_;
      candidate.operations[at].many = false;
      (void)(candidate == best_ || Take(candidate));
    }
  }

  Stream best_;
  const std::function<bool(const Stream&)>& fails_;
  uint32_t runs_left_;
};

}  // namespace

Stream Shrink(const Stream& failing,
              const std::function<bool(const Stream&)>& fails,
              uint32_t max_runs) {
  return Shrinker(failing, fails, max_runs).Run();
}

}  // namespace heddle::differential
