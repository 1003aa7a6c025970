// SPDX-License-Identifier: Apache-2.0
// Who has which name on a one-machine wire: addresses, libfabric ports, blocks
// of PDCIDs.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "hw/sim/frame/route.h"
#include "hw/sim/wire/wire_segment.h"

namespace heddle::sim::wire {

// A view of the wire's tables; of one process, and trusts nothing in them.
//
// A name belongs to an attachment, not to a place on the wire: when its owner
// detaches, or its death is noticed, the name is free with it. So nothing has
// to be swept when a function leaves.
//
// Thread safety: `Find` functions by one thread at a time; the others from any.
class WireDirectory {
 public:
  explicit WireDirectory(WireMemory* memory) : memory_(memory) {}

  // Whether that attachment is the one of its port.
  bool IsAttached(FunctionId id) const;
  // The state of its process, which takes a system call: one that ended is
  // detached by this. kEnded also if it is not attached.
  base::ProcessId::State LookAt(FunctionId id) const;
  bool IsAlive(FunctionId id) const {
    return LookAt(id) != base::ProcessId::State::kEnded;
  }
  // Detaches all whose process has ended.
  void ClearDead() const;

  // The entry of `address`; empty if no function ever had it.
  std::optional<uint32_t> FindAddress(const frame::WireAddress& address);
  // The same; made if there is none. Empty: all are in use. Under the wire's
  // lock.
  std::optional<uint32_t> AddAddress(const frame::WireAddress& address);

  // The function that a frame with `route` reaches; 0: there is none, or not
  // one. Where a port's name has no owner, one that has the port in another
  // space.
  FunctionId FindFunction(const frame::Route& route);
  // Whether some function is attached with that address.
  bool IsServed(const frame::WireAddress& address) const {
    return PortAt(address).has_value();
  }

  // Some port attached with that address; empty: none is.
  std::optional<uint32_t> PortAt(const frame::WireAddress& address) const;

  // The tap that has all of an address; 0: none, so functions may share it.
  FunctionId TapOf(uint32_t address) const;
  // Under the wire's lock.
  void SetTap(uint32_t address, FunctionId owner) const;

  // Owner of the libfabric port in that space; 0: none.
  FunctionId PortOwnerOf(uint32_t address,
                         const firmware::PortName& name) const;
  // Under the wire's lock. False: the address has no room for the name.
  bool SetPort(uint32_t address, const firmware::PortName& name,
               FunctionId owner) const;
  void ReleasePort(uint32_t address, const firmware::PortName& name,
                   FunctionId owner) const;

  // Gives `owner` a block of PDCIDs without an owner, that after those given
  // before: a name that was free for long is taken before one that packets may
  // still be on their way to.
  std::optional<uint32_t> TakeBlock(uint32_t address, FunctionId owner) const;
  void ReturnBlock(uint32_t address, uint32_t block, FunctionId owner) const;
  // The same of all blocks of a slot.
  std::optional<uint32_t> TakeSlot(uint32_t address, FunctionId owner) const;

 private:
  using Name = std::atomic<FunctionId>;

  // 0 unless the owner is attached.
  FunctionId OwnerOf(const Name& name) const;
  bool Take(Name& name, FunctionId owner) const;
  static void Release(Name& name, FunctionId owner);
  // Calls `visit` with the entries that may hold a name of `port` in a job's
  // space, until it returns true; returns that entry, or null.
  template <typename Visit>
  WireJobName* ProbeJobNames(uint32_t address, uint32_t port,
                             Visit visit) const;
  // Owner of the port's name, else of the port in any space; 0: none.
  FunctionId FindPort(uint32_t address, const frame::Route& route) const;
  // Owner of the port in any space; 0: none.
  FunctionId AnyOwnerOf(uint32_t address, uint32_t port) const;
  WireAddressMemory& Entry(uint32_t address) const {
    return memory_->addresses[address];
  }

  WireMemory* memory_;
  uint32_t last_address_ = 0;  // That was found.
  // The block that was found last; none yet while it is beyond all.
  frame::WireAddress last_ip_;
  uint32_t last_block_ = frame::kPdcidBlocks;
  const Name* last_name_ = nullptr;
  FunctionId last_owner_ = 0;
};

}  // namespace heddle::sim::wire
