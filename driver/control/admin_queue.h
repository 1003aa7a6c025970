// SPDX-License-Identifier: Apache-2.0
// Client of a device's admin queue: creates and destroys the objects of rings.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "driver/device.h"
#include "driver/dma/dma_buffer.h"
#include "driver/result.h"
#include "hw/contract/fabric_address.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

using contract::FabricAddress;

// The errno of an answer to `opcode`; 0 for ok. The only such table.
int AdminErrno(contract::AdminOpcode opcode, contract::AdminStatus status);

// Result of `AdminQueue::CreateEndpoint`.
struct EndpointGrant {
  uint32_t endpoint = 0;  // Object number, for contexts and destruction.
  uint32_t port = 0;
  uint16_t pid_on_fep = 0;
  uint16_t resource_index = 0;  // First RI.
};

// Result of `AdminQueue::RegisterRegion`.
struct RegionGrant {
  uint32_t region = 0;
  uint64_t key = 0;
};

// Result of `AdminQueue::QueryPort`.
struct PortInfo {
  FabricAddress address;
  uint32_t payload_mtu_bytes = 0;
};

// Executes admin commands, each within a deadline.
//
// A missing answer leaves the device's state unknown, so the queue is broken
// from then on: this, all outstanding and every later command fail with EIO,
// and `failure()` gives the reason. To destroy the objects of a broken queue,
// reset or close the device.
//
// Typed commands translate a refusal by `AdminErrno`; `refusal`, when given,
// receives the device's answer to it (`detail` is the byte offset of a bad
// field, the owner's process id, or a user count).
//
// Thread safety: any thread may call every member. Commands of several threads
// are outstanding together; the device executes them in the order of their
// calls and completes them in any: one that waits for a neighbour does not
// block the others. Cold path.
// Ownership: owns the rings; borrows the device, which outlives it. One per
// device at a time.
class AdminQueue {
 public:
  static constexpr uint32_t kLog2Entries = 4;
  // Size of each of its two rings.
  static constexpr size_t kMemoryBytes = sizeof(contract::AdminCommand)
                                         << kLog2Entries;
  static constexpr std::chrono::seconds kDefaultLimit{30};

  // Brings the queue into service; resets the device first when another queue
  // served it before. Precondition: the device is ready (`WaitReady`).
  // Errors: EIO, and those of `DmaBuffer` and `Device::Reset`.
  static Result<std::unique_ptr<AdminQueue>> Create(
      Device& device, std::chrono::nanoseconds limit = kDefaultLimit);

  AdminQueue(const AdminQueue&) = delete;
  AdminQueue& operator=(const AdminQueue&) = delete;

  // Executes `command`; `id` is set here. The answer may be a refusal.
  // Errors: EIO when the device has failed or does not answer in time.
  Result<contract::AdminAnswer> Execute(contract::AdminCommand command);

  // Claims `port`, any free one for 0. `opcode` and `id` are set here.
  // EADDRINUSE: `refusal->detail` is the owner's process id.
  Result<EndpointGrant> CreateEndpoint(
      const contract::AdminCreateEndpoint& command,
      contract::AdminAnswer* refusal = nullptr);

  // Each returns the object's number. `opcode` and `id` are set here.
  // Errors: EINVAL, ENOSPC, ENOENT (endpoint or queue named), EBUSY
  // (`rx_index` taken).
  Result<uint32_t> CreateCq(contract::AdminCreateCq command,
                            contract::AdminAnswer* refusal = nullptr);
  Result<uint32_t> CreateTx(contract::AdminCreateTx command,
                            contract::AdminAnswer* refusal = nullptr);
  Result<uint32_t> CreateRx(contract::AdminCreateRx command,
                            contract::AdminAnswer* refusal = nullptr);

  // When they return true the device no longer accesses the object's memory.
  // Errors: ENOENT, EBUSY while contexts use the object.
  Result<bool> DestroyEndpoint(uint32_t endpoint);
  Result<bool> DestroyCq(uint32_t cq);
  Result<bool> DestroyTx(uint32_t context);
  Result<bool> DestroyRx(uint32_t context);

  // Lets peers access memory. `opcode` and `id` are set here. Errors: EINVAL,
  // ENOKEY (the user key names another region, or one that still drains),
  // ENOSPC (no free entry, or none where a user key may be), ENOENT (endpoint
  // or counter named), EOPNOTSUPP.
  Result<RegionGrant> RegisterRegion(contract::AdminRegisterRegion command,
                                     contract::AdminAnswer* refusal = nullptr);
  // When it returns true no peer's operation accesses the memory any more.
  // ENOENT without such a region.
  Result<bool> DeregisterRegion(uint32_t region);

  // A counter whose cell, zeroed, is at `cell`; returns its number. Errors:
  // ENOSPC, EOPNOTSUPP.
  Result<uint32_t> CreateCounter(Iova cell);
  // When it returns true the device no longer writes the cell. Errors: ENOENT,
  // EBUSY while contexts or regions use it.
  Result<bool> DestroyCounter(uint32_t counter);

  // Times of the whole function; 0 keeps the current one. EINVAL when a time
  // does not fit the device's counters.
  Result<bool> SetTiming(std::chrono::nanoseconds rto,
                         std::chrono::nanoseconds dead);

  // Address and payload MTU of the function. EOPNOTSUPP from firmware of a
  // contract before 1.4.
  Result<PortInfo> QueryPort();

  // Ends the function's PDCs in both directions, as far as possible without
  // waiting: closes idle ones, requests peers to close theirs. Returns the
  // number of PDCs that are open or closing. EOPNOTSUPP without capability
  // `close_pdcs`.
  Result<uint32_t> ClosePdcs();
  // Returns the same number only.
  Result<uint32_t> CountPdcs();

  // Finds the next hop of `peer`, and takes one use of it; returns its number.
  // Blocks until the neighbour responds. Errors: EHOSTUNREACH when it does not
  // or there is no route, ENOSPC when all next hops are in use, EINVAL for an
  // address that no peer can have or of the other family.
  Result<uint32_t> ResolveNextHop(const FabricAddress& peer);
  // Releases that use. ENOENT when there is none.
  Result<bool> ReleaseNextHop(uint32_t hop);

  // Why the queue is broken, in one line; empty while it is not.
  std::string failure() const;

 private:
  AdminQueue(Device& device, std::chrono::nanoseconds limit)
      : device_(device), limit_(limit) {}

  // `Execute`, with a refusal turned into its errno.
  Result<contract::AdminAnswer> Command(contract::AdminCommand command,
                                        contract::AdminAnswer* refusal);
  Result<bool> Destroy(contract::AdminOpcode opcode, uint32_t object);
  // `object` of command `close_pdcs`.
  static constexpr uint32_t kClosePdcs = 0;
  static constexpr uint32_t kCountPdcs = 1;
  Result<uint32_t> AskPdcs(uint32_t what);

  // Continues at the device's count, which a reset need not clear: makes every
  // slot of the answer ring look unanswered.
  void StartAt(uint16_t count);

  // A command published and not collected by its caller.
  struct Call {
    enum class Stage : uint8_t { kFree, kWaiting, kAnswered };
    Stage stage = Stage::kFree;
    uint16_t id = 0;
    contract::AdminAnswer answer;
  };

  // Waits for a free slot and publishes `command`. Null when the queue is or
  // becomes broken.
  Call* Publish(contract::AdminCommand command);

  // With `mutex_` held.
  bool AnswerReady() const;
  void TakeAnswers();
  Call* FindFree();
  Call* FindWaiting(uint16_t id);
  Errno Break(const std::string& reason);
  std::string Diagnose(uint16_t id);

  Device& device_;
  const std::chrono::nanoseconds limit_;
  mutable std::mutex mutex_;  // Everything below.
  DmaBuffer commands_;
  DmaBuffer answers_;
  uint16_t count_ = 0;     // Commands published, free-running.
  uint16_t answered_ = 0;  // Answers taken, likewise.
  // By slot: as many as the ring has entries, so that neither ring overflows.
  std::array<Call, size_t{1} << kLog2Entries> calls_;
  std::string failure_;
};

}  // namespace heddle
