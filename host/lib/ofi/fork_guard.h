// SPDX-License-Identifier: Apache-2.0
// What becomes of open objects in a forked child.
#pragma once

namespace heddle::ofi {

// Base of objects that use the device. A child does not inherit the memory
// that the device writes, nor the device's threads, so every call on an
// inherited object, fi_close too, answers -FI_EOPBADSTATE there; new objects
// work.
//
// Thread safety: made and destroyed by any thread.
class ForkGuarded {
 public:
  ForkGuarded(const ForkGuarded&) = delete;
  ForkGuarded& operator=(const ForkGuarded&) = delete;

 protected:
  ForkGuarded() noexcept;
  ~ForkGuarded();

 private:
  friend class ForkRegistry;

  // In the child, before any code of the application: points the object's
  // operation tables at refusals. Calls nothing that may lock or allocate.
  virtual void Disinherit() noexcept = 0;

  ForkGuarded* previous_ = nullptr;
  ForkGuarded* next_ = nullptr;
};

}  // namespace heddle::ofi
