// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/measured_calls.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <array>

// A function of its own, so that a profile shows it. Clang makes no clones and
// does not know the word.
#ifdef __clang__
#define HEDDLE_MEASURED extern "C" __attribute__((noinline))
#else
#define HEDDLE_MEASURED extern "C" __attribute__((noinline, noclone))
#endif

namespace heddle::bench {
namespace {

template <typename Call>
__attribute__((always_inline)) inline size_t Repeat(size_t batch, Call&& call) {
  size_t i = 0;
  for (; i < batch; ++i) {
    const ssize_t result = call(i);
    if (result == -FI_EAGAIN) {
      break;
    }
    if (result < 0) {
      Fail("a measured call", result);
    }
  }
  return i;
}

// From the sender to the receiver's memory.
template <typename Call>
__attribute__((always_inline)) inline size_t RepeatRma(FabricPair& pair,
                                                       size_t batch,
                                                       Call&& call) {
  Side& side = pair.sender();
  const uint64_t key = pair.remote_key();
  return Repeat(batch, [&](size_t i) { return call(side, i, key); });
}

// Polls until the receiver's completion is there.
__attribute__((always_inline)) inline ssize_t AwaitOne(
    const Side& from, const Side& to, fi_cq_tagged_entry* entry) {
  for (;;) {
    const ssize_t result = fi_cq_read(to.queue, entry, 1);
    if (result != -FI_EAGAIN) {
      return result == 1 ? 0 : result;
    }
    (void)fi_cq_read(from.queue, nullptr, 0);  // Progress of the sender.
  }
}

}  // namespace

HEDDLE_MEASURED size_t measured_null(FabricPair& /*pair*/, size_t /*bytes*/,
                                     size_t batch) {
  static volatile ssize_t zero = 0;
  return Repeat(batch, [](size_t) -> ssize_t { return zero; });
}

HEDDLE_MEASURED size_t measured_inject(FabricPair& pair, size_t bytes,
                                       size_t batch) {
  Side& side = pair.sender();
  return Repeat(batch, [&](size_t i) {
    return fi_inject(side.endpoint, pair.Buffer(side, i), bytes, side.peer);
  });
}

HEDDLE_MEASURED size_t measured_send(FabricPair& pair, size_t bytes,
                                     size_t batch) {
  Side& side = pair.sender();
  return Repeat(batch, [&](size_t i) {
    return fi_send(side.endpoint, pair.Buffer(side, i), bytes, side.descriptor,
                   side.peer, pair.Context(i));
  });
}

HEDDLE_MEASURED size_t measured_recv(FabricPair& pair, size_t bytes,
                                     size_t batch) {
  Side& side = pair.receiver();
  return Repeat(batch, [&](size_t i) {
    return fi_recv(side.endpoint, pair.Buffer(side, i), bytes, side.descriptor,
                   FI_ADDR_UNSPEC, pair.Context(i));
  });
}

// For programs that register nothing.
HEDDLE_MEASURED size_t measured_recv_unregistered(FabricPair& pair,
                                                  size_t bytes, size_t batch) {
  Side& side = pair.receiver();
  return Repeat(batch, [&](size_t i) {
    return fi_recv(side.endpoint, pair.Buffer(side, i), bytes, nullptr,
                   FI_ADDR_UNSPEC, pair.Context(i));
  });
}

HEDDLE_MEASURED size_t measured_tinject(FabricPair& pair, size_t bytes,
                                        size_t batch) {
  Side& side = pair.sender();
  return Repeat(batch, [&](size_t i) {
    return fi_tinject(side.endpoint, pair.Buffer(side, i), bytes, side.peer,
                      FabricPair::kTag);
  });
}

HEDDLE_MEASURED size_t measured_tsend(FabricPair& pair, size_t bytes,
                                      size_t batch) {
  Side& side = pair.sender();
  return Repeat(batch, [&](size_t i) {
    return fi_tsend(side.endpoint, pair.Buffer(side, i), bytes, side.descriptor,
                    side.peer, FabricPair::kTag, pair.Context(i));
  });
}

HEDDLE_MEASURED size_t measured_trecv(FabricPair& pair, size_t bytes,
                                      size_t batch) {
  Side& side = pair.receiver();
  return Repeat(batch, [&](size_t i) {
    return fi_trecv(side.endpoint, pair.Buffer(side, i), bytes, side.descriptor,
                    FI_ADDR_UNSPEC, FabricPair::kTag, 0, pair.Context(i));
  });
}

HEDDLE_MEASURED size_t measured_trecv_unregistered(FabricPair& pair,
                                                   size_t bytes, size_t batch) {
  Side& side = pair.receiver();
  return Repeat(batch, [&](size_t i) {
    return fi_trecv(side.endpoint, pair.Buffer(side, i), bytes, nullptr,
                    FI_ADDR_UNSPEC, FabricPair::kTag, 0, pair.Context(i));
  });
}

HEDDLE_MEASURED size_t measured_inject_write(FabricPair& pair, size_t bytes,
                                             size_t batch) {
  return RepeatRma(pair, batch, [&](const Side& side, size_t i, uint64_t key) {
    return fi_inject_write(side.endpoint, pair.Buffer(side, i), bytes,
                           side.peer, pair.RemoteAddress(i), key);
  });
}

HEDDLE_MEASURED size_t measured_write(FabricPair& pair, size_t bytes,
                                      size_t batch) {
  return RepeatRma(pair, batch, [&](const Side& side, size_t i, uint64_t key) {
    return fi_write(side.endpoint, pair.Buffer(side, i), bytes, side.descriptor,
                    side.peer, pair.RemoteAddress(i), key, pair.Context(i));
  });
}

HEDDLE_MEASURED size_t measured_read(FabricPair& pair, size_t bytes,
                                     size_t batch) {
  return RepeatRma(pair, batch, [&](const Side& side, size_t i, uint64_t key) {
    return fi_read(side.endpoint, pair.Buffer(side, i), bytes, side.descriptor,
                   side.peer, pair.RemoteAddress(i), key, pair.Context(i));
  });
}

// Completions that are there already, one at a time.
HEDDLE_MEASURED size_t measured_cq_read(FabricPair& pair, size_t /*bytes*/,
                                        size_t batch) {
  Side& side = pair.receiver();
  fi_cq_tagged_entry entry;
  return Repeat(batch,
                [&](size_t) { return fi_cq_read(side.queue, &entry, 1); });
}

HEDDLE_MEASURED size_t measured_empty_poll(FabricPair& pair, size_t /*bytes*/,
                                           size_t batch) {
  Side& side = pair.receiver();
  fi_cq_tagged_entry entry;
  return Repeat(batch, [&](size_t) -> ssize_t {
    return fi_cq_read(side.queue, &entry, 1) == -FI_EAGAIN ? 0 : -FI_EOTHER;
  });
}

// Whole messages, one after another, injected: from the posts to the receiver's
// completion.
HEDDLE_MEASURED size_t measured_e2e(FabricPair& pair, size_t bytes,
                                    size_t batch) {
  const Side& from = pair.sender();
  const Side& to = pair.receiver();
  const std::byte* const message = pair.Buffer(from, 0);
  std::byte* const buffer = pair.Buffer(to, 0);
  fi_cq_tagged_entry entry;
  return Repeat(batch, [&](size_t /*i*/) -> ssize_t {
    ssize_t result = fi_recv(to.endpoint, buffer, bytes, to.descriptor,
                             FI_ADDR_UNSPEC, pair.Context(0));
    if (result == 0) {
      result = fi_inject(from.endpoint, message, bytes, from.peer);
    }
    return result == 0 ? AwaitOne(from, to, &entry) : result;
  });
}

HEDDLE_MEASURED size_t measured_te2e(FabricPair& pair, size_t bytes,
                                     size_t batch) {
  const Side& from = pair.sender();
  const Side& to = pair.receiver();
  const std::byte* const message = pair.Buffer(from, 0);
  std::byte* const buffer = pair.Buffer(to, 0);
  fi_cq_tagged_entry entry;
  return Repeat(batch, [&](size_t /*i*/) -> ssize_t {
    ssize_t result =
        fi_trecv(to.endpoint, buffer, bytes, to.descriptor, FI_ADDR_UNSPEC,
                 FabricPair::kTag, 0, pair.Context(0));
    if (result == 0) {
      result = fi_tinject(from.endpoint, message, bytes, from.peer,
                          FabricPair::kTag);
    }
    return result == 0 ? AwaitOne(from, to, &entry) : result;
  });
}

namespace {

constexpr auto kMessages = PairKind::kMessages;
constexpr auto kTagged = PairKind::kTagged;
constexpr auto kRemote = PairKind::kRemote;

constexpr auto kCalls = std::to_array<MeasuredCall>({
    {"null", 0, false, false, false, kMessages, measured_null},
    {"inject", 8, true, false, false, kMessages, measured_inject},
    {"send", 8, true, true, false, kMessages, measured_send},
    {"send_64", 64, true, true, false, kMessages, measured_send},
    {"send_4096", 4096, true, true, false, kMessages, measured_send},
    {"recv", 64, false, false, true, kMessages, measured_recv},
    {"recv_unregistered", 64, false, false, true, kMessages,
     measured_recv_unregistered},
    {"cq_read", 8, false, false, false, kMessages, measured_cq_read},
    {"empty_poll", 0, false, false, false, kMessages, measured_empty_poll},
    {"inject_write", 8, false, false, false, kRemote, measured_inject_write},
    {"write", 8, false, true, false, kRemote, measured_write},
    {"write_4096", 4096, false, true, false, kRemote, measured_write},
    {"read", 8, false, true, false, kRemote, measured_read},
    {"tinject", 8, true, false, false, kTagged, measured_tinject},
    {"tsend", 8, true, true, false, kTagged, measured_tsend},
    {"tsend_4096", 4096, true, true, false, kTagged, measured_tsend},
    {"trecv", 64, false, false, true, kTagged, measured_trecv},
    {"trecv_unregistered", 64, false, false, true, kTagged,
     measured_trecv_unregistered},
    {"tcq_read", 8, false, false, false, kTagged, measured_cq_read},
    {"e2e", 8, false, false, false, kMessages, measured_e2e},
    {"te2e", 8, false, false, false, kTagged, measured_te2e},
});

}  // namespace

std::span<const MeasuredCall> AllCalls() {
  return kCalls;
}

bool IsWhole(const MeasuredCall& call) {
  return call.loop == measured_e2e || call.loop == measured_te2e;
}

const MeasuredCall* FindCall(std::string_view name) {
  const auto* found = std::ranges::find(kCalls, name, &MeasuredCall::name);
  return found == kCalls.end() ? nullptr : found;
}

BatchResult RunBatch(const MeasuredCall& call, FabricPair& pair, size_t batch) {
  const bool reads = call.loop == measured_cq_read;
  if (call.sends || reads) {
    pair.PostReceives(batch);
  }
  if (reads) {
    pair.InjectMessages(batch);
    pair.Progress();
  }
  const auto start = std::chrono::steady_clock::now();
  CALLGRIND_TOGGLE_COLLECT;
  const size_t calls = call.loop(pair, call.bytes, batch);
  CALLGRIND_TOGGLE_COLLECT;
  const auto time = std::chrono::steady_clock::now() - start;
  if (call.pair == PairKind::kRemote) {
    pair.Progress();
    pair.Drain(call.completes ? calls : 0, 0);
  } else if (call.sends) {
    pair.InjectMessages(batch - calls);
    pair.Drain(call.completes ? calls : 0, batch);
  } else if (call.receives) {
    pair.InjectMessages(calls);
    pair.Drain(0, calls);
  } else if (reads) {
    pair.Drain(0, batch - calls);
  }
  return {.calls = calls, .time = time};
}

}  // namespace heddle::bench
