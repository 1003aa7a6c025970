// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/measured_calls.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
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

namespace {

constexpr auto kCalls = std::to_array<MeasuredCall>({
    {"null", 0, false, false, false, false, measured_null},
    {"inject", 8, true, false, false, false, measured_inject},
    {"send", 8, true, true, false, false, measured_send},
    {"send_64", 64, true, true, false, false, measured_send},
    {"send_4096", 4096, true, true, false, false, measured_send},
    {"recv", 64, false, false, true, false, measured_recv},
    {"recv_unregistered", 64, false, false, true, false,
     measured_recv_unregistered},
    {"cq_read", 8, false, false, false, false, measured_cq_read},
    {"empty_poll", 0, false, false, false, false, measured_empty_poll},
    {"inject_write", 8, false, false, false, true, measured_inject_write},
    {"write", 8, false, true, false, true, measured_write},
    {"write_4096", 4096, false, true, false, true, measured_write},
    {"read", 8, false, true, false, true, measured_read},
});

}  // namespace

std::span<const MeasuredCall> AllCalls() {
  return kCalls;
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
  if (call.remote) {
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
