// SPDX-License-Identifier: Apache-2.0
// Programs of one thread that take turns where they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/virtual_time/world.h"

namespace heddle::test {

// Each fiber runs until it waits: for a device of the world, which makes it
// pause, or to its end. Then the fiber with the earliest time continues;
// before that, the devices do what is due. Nothing depends on anything but the
// order of calls.
//
// Thread safety: none; all on the thread of `Run`.
class Fibers {
 public:
  // `world` outlives it.
  explicit Fibers(World* world);
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // `body` must not throw.
  void Add(std::function<void()> body);
  // Until all have ended.
  void Run();

  // A fiber, by the order of `Add`, continues now if it waits.
  void Wake(size_t fiber);
  // The caller, a fiber, waits until then, or until the device that it polled
  // last has worked.
  void Rest(uint64_t until_ns);

 private:
  struct Fiber;

  void Pause(const void* worker, uint64_t until_ns);
  Fiber* Next();
  void SwitchTo(Fiber* fiber);
  void Main(Fiber* fiber);
  static void Entry(unsigned int high, unsigned int low);

  World* const world_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::unique_ptr<Fiber> root_;  // The caller of `Run`.
  Fiber* current_;
};

}  // namespace heddle::test
