// SPDX-License-Identifier: Apache-2.0
// Barriers between memory that a device shares and its registers, the doorbell
// write and the push. The only file of the driver that states such an ordering.
#pragma once

#include <bit>
#include <cstdint>

#include "driver/device.h"

namespace heddle {

static_assert(std::endian::native == std::endian::little,
              "The contract's structs are little-endian in host memory.");

// Makes earlier stores to DMA memory visible to the device, and finishes
// earlier loads from it, before any later doorbell. The loads matter where a
// doorbell returns memory that was just read: a completion's credit, a bounce
// buffer. Costs no instruction on x86-64, one on aarch64.
//
// x86-64: stores are not reordered with each other nor with earlier loads,
// also when the last is to uncached memory, so only the compiler has to be
// held back. Pushes, whose stores are weakly ordered, have a barrier of their
// own.
//
// aarch64: accesses to normal memory and a later store to device memory are
// ordered neither by dependency nor by type. The observer is the device, in
// the outer shareable domain: `dmb osh` orders loads and stores against the
// doorbell there (`oshst` would let the loads pass). `dsb` would also wait for
// completion, which a posted doorbell does not need.
inline void DmaWriteBarrier() noexcept {
#if defined(__x86_64__)
  asm volatile("" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("dmb osh" ::: "memory");
#else
#error "State the store-to-doorbell ordering rule of this architecture here."
#endif
}

// After a load found a completion's phase, keeps every later load from
// returning data older than that phase. Costs as above.
//
// x86-64: loads are not reordered with loads.
//
// aarch64: a load of the payload may be satisfied before the load of the
// phase that guards it, also when a branch on the phase lies between (a
// control dependency orders stores only). The writer is the device, so
// load-acquire, which is defined among CPUs, is backed by `dmb oshld`: it
// orders the phase load before all later loads and stores in the outer
// shareable domain. The device's side is the order of its writes: payload
// before completion, phase in the completion's last eight bytes.
inline void DmaReadBarrier() noexcept {
#if defined(__x86_64__)
  asm volatile("" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("dmb oshld" ::: "memory");
#else
#error "State the load-to-load ordering rule of this architecture here."
#endif
}

// Makes earlier stores to a push window arrive at the device before any later
// doorbell.
//
// x86-64: both kinds of push, stores to write-combining memory and `movdir64b`,
// are weakly ordered: they may stay in a buffer while a later store to uncached
// memory passes. `sfence` empties the buffers first.
//
// aarch64: the window is normal non-cacheable memory, whose stores may be
// gathered, and the doorbell is device memory. `dmb` orders them for observers
// in the shareability domain, which a PCI device need not be in; `dsb st` waits
// until the gathered stores have left the CPU.
inline void PushBarrier() noexcept {
#if defined(__x86_64__)
  asm volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("dsb st" ::: "memory");
#else
#error "State the push-to-doorbell ordering rule of this architecture here."
#endif
}

// Loads eight bytes that the device, or a thread that models it, may write at
// any time. `address` is 8-byte aligned. `DmaReadBarrier` orders later loads
// after it; the acquire is for a model that runs in this process.
inline uint64_t LoadShared(const uint64_t* address) noexcept {
  return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

// As `Ring`, of a doorbell that is a mapped register.
inline void RingMapped(const Doorbell& doorbell, uint64_t value) noexcept {
  DmaWriteBarrier();
  *doorbell.address = value;
}

// Rings `doorbell`: one posted 8-byte store, or the device's notify function.
// All earlier stores to DMA memory are visible to the device first.
inline void Ring(const Doorbell& doorbell, uint64_t value) noexcept {
  if (doorbell.notify != nullptr) [[unlikely]] {
    DmaWriteBarrier();
    doorbell.notify(doorbell.cookie, doorbell.bar2_offset, value);
    return;
  }
  RingMapped(doorbell, value);
}

}  // namespace heddle
