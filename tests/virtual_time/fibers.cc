// SPDX-License-Identifier: Apache-2.0
// A checked longjmp refuses to go from one stack to another.
#undef _FORTIFY_SOURCE

#include "tests/virtual_time/fibers.h"

#include <ucontext.h>

#include <csetjmp>
#include <stdexcept>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace heddle::test {
namespace {

constexpr size_t kStackBytes = 1 << 20;

}  // namespace

struct Fibers::Fiber {
  std::function<void()> body;
  std::unique_ptr<uint8_t[]> stack;
  ucontext_t start = {};  // Of the first turn.
  jmp_buf state = {};     // Of later ones: without a system call.
  bool started = false;
  bool ended = false;
  uint64_t until_ns = 0;
  const void* worker = nullptr;  // Whose work ends the wait.
  const void* polled = nullptr;  // The worker of the last wait.
  // For the address sanitizer.
  void* fake_stack = nullptr;
  const void* stack_bottom = nullptr;
  size_t stack_bytes = 0;
};

Fibers::Fibers(World* world)
    : world_(world), root_(std::make_unique<Fiber>()), current_(root_.get()) {
  root_->started = true;
  world_->set_pauser([this](const void* worker, uint64_t until_ns) {
    Pause(worker, until_ns);
  });
}

Fibers::~Fibers() {
  world_->set_pauser(nullptr);
}

void Fibers::Add(std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->body = std::move(body);
  fiber->stack = std::make_unique_for_overwrite<uint8_t[]>(kStackBytes);
  fiber->stack_bottom = fiber->stack.get();
  fiber->stack_bytes = kStackBytes;
  if (getcontext(&fiber->start) != 0) {
    throw std::runtime_error("getcontext failed");
  }
  fiber->start.uc_stack.ss_sp = fiber->stack.get();
  fiber->start.uc_stack.ss_size = kStackBytes;
  fiber->start.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  // Arguments are ints.
  makecontext(&fiber->start, reinterpret_cast<void (*)()>(Entry), 2,
              static_cast<unsigned int>(self >> 32U),
              static_cast<unsigned int>(self));
  fiber->until_ns = world_->now_ns();
  fibers_.push_back(std::move(fiber));
}

void Fibers::Run() {
  if (Fiber* const first = Next(); first != nullptr) {
    SwitchTo(first);
  }
}

void Fibers::Entry(unsigned int high, unsigned int low) {
  auto* const fibers =
      reinterpret_cast<Fibers*>(uintptr_t{high} << 32U | low);  // NOLINT
  fibers->Main(fibers->current_);
}

void Fibers::Main(Fiber* fiber) {
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (root_->stack_bottom == nullptr) {  // The first switch comes from there.
    root_->stack_bottom = bottom;
    root_->stack_bytes = bytes;
  }
#endif
  fiber->body();
  fiber->ended = true;
  Fiber* const next = Next();
  SwitchTo(next == nullptr ? root_.get() : next);
}

void Fibers::SwitchTo(Fiber* fiber) {
  Fiber* const from = current_;
  current_ = fiber;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(from->ended ? nullptr : &from->fake_stack,
                                 fiber->stack_bottom, fiber->stack_bytes);
#endif
  if (_setjmp(from->state) == 0) {
    if (!fiber->started) {
      fiber->started = true;
      (void)setcontext(&fiber->start);
    }
    _longjmp(fiber->state, 1);
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
#endif
}

// The fiber to go on, to whose time the devices have worked; null when all have
// ended.
Fibers::Fiber* Fibers::Next() {
  while (true) {
    Fiber* first = nullptr;
    for (const auto& fiber : fibers_) {
      if (!fiber->ended &&
          (first == nullptr || fiber->until_ns < first->until_ns)) {
        first = fiber.get();
      }
    }
    if (first == nullptr) {
      return nullptr;
    }
    const void* const worked = world_->RunNext(first->until_ns);
    if (worked == nullptr) {
      return first;
    }
    for (const auto& fiber : fibers_) {
      if (fiber->worker == worked) {
        fiber->until_ns = world_->now_ns();
        fiber->worker = nullptr;
      }
    }
  }
}

void Fibers::Pause(const void* worker, uint64_t until_ns) {
  if (current_ == root_.get()) {  // It is alone.
    while (const void* const worked = world_->RunNext(until_ns)) {
      if (worked == worker) {
        return;
      }
    }
    return;
  }
  Fiber* const self = current_;
  self->worker = self->polled = worker;
  self->until_ns = until_ns;
  Fiber* const next = Next();
  self->worker = nullptr;
  if (next != self) {
    SwitchTo(next);
    self->worker = nullptr;
  }
}

void Fibers::Wake(size_t fiber) {
  fibers_.at(fiber)->until_ns = 0;
}

void Fibers::Rest(uint64_t until_ns) {
  Pause(current_->polled, until_ns);
}

}  // namespace heddle::test
