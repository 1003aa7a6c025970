// SPDX-License-Identifier: Apache-2.0
// A live NIC whose wire leads back to itself, and what must hold of it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "driver/control/admin_queue.h"
#include "driver/device.h"
#include "driver/dma/dma_buffer.h"
#include "hw/sim/base/interrupt_fds.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/frame/capture.h"
#include "hw/sim/frame/wire_address.h"
#include "hw/sim/nic/nic_node.h"
#include "tests/fuzz/coverage_counters.h"
#include "tests/system/harness/bare_endpoint.h"

namespace heddle::fuzz {

// A property that did not hold; `what` names it and says how.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the harness spoils on purpose, to show that a property can fail.
enum class Sabotage : uint8_t {
  kNone,
  kHang,        // The NIC never calls itself idle.
  kDma,         // A receive buffer is unmapped behind the NIC's back.
  kCompletion,  // A completion appears twice.
  kInvented,    // A receive completion of a buffer that was not posted.
  kMemory,      // A byte changes that the NIC has no business with.
  kProbe,       // The good peer's messages are lost.
  kAssertion,   // The model stops.
};
// By environment HEDDLE_FUZZ_BREAK; none before `BeginInput`.
Sabotage ChosenSabotage();
void BeginInput();

struct Form {
  bool ipv6 = false;
  uint16_t vlan = 0;
  contract::CrcOrder crc = contract::CrcOrder::kMsbFirst;
  bool native = false;  // UET without UDP.
  bool rud = false;     // The victim's messages, otherwise ROD.
};

// A range that the host offered to the NIC.
struct Range {
  uint64_t base;
  uint64_t bytes;
};

// The wire, the board and the clock of one NIC. Frames that it sends to its own
// address come back to it; others leave and never return.
//
// Thread safety: none, nor of itself as a device.
class FuzzNic final : public Device,
                      private sim::pins::MacLink,
                      private firmware::Switch {
 public:
  explicit FuzzNic(const Form& form);

  const Form& form() const { return form_; }
  sim::frame::WireAddress address() const;
  sim::frame::WireAddress stranger() const;  // No NIC has it.
  sim::pins::HostMemory& memory() { return node_.memory(); }
  const CoveragePoints& points() const { return points_; }
  AdminQueue& admin() { return *admin_; }

  // Takes each frame sent; without, it returns unless it goes elsewhere.
  std::function<void(sim::frame::Frame)> on_sent;
  void Return(sim::frame::Frame frame);
  // Puts a frame on the NIC's receive side, and into the capture that
  // environment HEDDLE_FUZZ_CAPTURE names.
  void Deliver(sim::frame::Frame frame, bool error = false);

  // A cycle, or the idle time to the next tick.
  void Step();
  void Step(uint32_t count);
  // Steps until nothing will happen any more. False, after `limit` evaluated
  // cycles.
  bool Settle(uint64_t limit);
  bool StepUntil(uint64_t limit, const std::function<bool()>& done);
  // What keeps it from rest, for a message.
  std::string Unrest();
  // Throws `Broken` when the model stopped or broke the bus protocol.
  void CheckAlive() const;
  // Writes 8 bytes to a BAR2 offset, posted.
  void Ring(uint32_t bar2_offset, uint64_t value);
  // Copies a slot to a BAR2 offset, posted: in one burst, as a gathering store
  // does, or a word at a time.
  void Push(uint32_t bar2_offset, const std::array<uint64_t, 8>& slot,
            bool words);
  // Everything mapped, for a child process to inherit.
  void InheritMemory() const;

  const std::string& name() const override { return name_; }
  uint32_t ReadRegister32(uint32_t offset) override;
  uint64_t ReadRegister64(uint32_t offset) override;
  void WriteRegister32(uint32_t offset, uint32_t value) override;
  void WriteRegister64(uint32_t offset, uint64_t value) override;
  Doorbell doorbell(uint32_t bar2_offset) override;
  ProgressHook progress_hook() override;
  Result<Iova> Map(void* address, size_t bytes) override;
  void Unmap(Iova iova, size_t bytes) override;
  int interrupt_fd(uint32_t vector) override;
  Result<bool> Reset() override { return Errno{EIO}; }
  bool failed() const override { return node_.model().failed(); }
  std::string failure() const override { return node_.model().failure(); }

 private:
  struct Arriving {
    uint64_t cycle;
    sim::frame::Frame bytes;
    bool error;
    size_t sent = 0;
  };

  bool quiet();
  void Cycle();

  bool TransmitReady() override { return true; }
  bool Receive(sim::pins::MacBeat* beat) override;
  void Transmit(std::span<const uint8_t> bytes, bool last) override;
  firmware::PortClaim ClaimPort(const firmware::PortName& name) override;
  void ReleasePort(const firmware::PortName&) override {}

  const Form form_;
  const std::string name_ = "fuzz";
  uint64_t cycle_ = 0;
  uint64_t evaluated_ = 0;
  uint32_t ports_ = 0;
  sim::frame::Frame sending_;
  std::deque<Arriving> arriving_;
  sim::base::InterruptFds interrupts_;
  std::vector<Range> mapped_;
  sim::nic::NicNode node_;
  CoveragePoints points_;
  std::unique_ptr<sim::frame::Capture> capture_;
  std::unique_ptr<AdminQueue> admin_;
};

// Memory that the NIC may only write where it was invited.
class Watched {
 public:
  // Zeroed pages, `name`d for messages.
  Watched(FuzzNic& nic, const char* name, size_t bytes);

  std::byte* data() const { return buffer_.data(); }
  uint64_t iova() const { return ToInteger(buffer_.iova()); }
  size_t bytes() const { return buffer_.bytes(); }
  template <typename T>
  std::span<T> entries(size_t count) const {
    return buffer_.entries<T>(count);
  }
  DmaBuffer& buffer() { return buffer_; }

  // Takes the present contents for granted.
  void Accept();
  void Accept(size_t offset, size_t bytes);
  // Throws `Broken` if a byte outside `invited` changed.
  void Check(const std::vector<Range>& invited) const;

 private:
  const char* name_;
  DmaBuffer buffer_;
  std::vector<std::byte> expected_;
};

// One transmit and one receive context whose memory is open to the harness,
// with a completion queue each that never wraps.
struct OpenEndpoint {
  static constexpr uint8_t kRingLog2 = 6;
  static constexpr uint32_t kSlots = 1U << kRingLog2;
  static constexpr uint8_t kCqLog2 = 11;
  static constexpr uint32_t kPeers = 16;

  OpenEndpoint(FuzzNic& nic, uint32_t job_id, bool ordered);

  // The next completion of a queue; false if there is none.
  bool TakeTx(contract::Completion* completion);
  bool TakeRx(contract::Completion* completion);
  // Ends both contexts: then the NIC touches nothing of them.
  void Destroy();
  // Memory that only the host writes, and queues behind their last entry.
  void Check(const std::vector<Range>& invited) const;
  void Accept();
  void SetPeer(uint32_t index, const sim::frame::WireAddress& address,
               uint16_t resource_index, uint16_t pid_on_fep);
  // Slots of the transmit ring given back by its cell; completions may be
  // ahead.
  uint64_t tx_released() const;

  FuzzNic& nic;
  EndpointGrant grant;
  Watched tx_ring, rx_ring, av, tx_entries, rx_entries;
  DmaBuffer cells;
  uint32_t tx_cq = 0, rx_cq = 0, tx = 0, rx = 0;

 private:
  bool Take(const Watched& queue, uint32_t* count,
            contract::Completion* completion);
  uint32_t tx_count_ = 0, rx_count_ = 0;
};

// A NIC with an endpoint to attack and the good peer that must not suffer.
class Scene {
 public:
  explicit Scene(const Form& form);

  FuzzNic nic;
  OpenEndpoint victim;
  Watched source;     // What the victim sends; known bytes.
  Watched target;     // What the victim receives to.
  Watched bystander;  // Mapped and never named to the NIC.

  static constexpr uint32_t kVictimJob = 1;
  static constexpr size_t kSourceBytes = 16384;
  static constexpr size_t kTargetBytes = 262144;
  // Evaluated cycles, after traffic ends, to the end of all activity.
  static constexpr uint64_t kSettleLimit = 600000;
  static constexpr uint64_t kQuietLimit = 20000;
  static constexpr uint64_t kProbeLimit = 100000;

  // The end of an input: the NIC comes to rest, or must do so no sooner than
  // its contexts are gone (a send waits for a buffer for ever).
  void ComeToRest(bool must = true);
  // A message between the good peer's contexts, at most `tries` times.
  void Probe(uint32_t tries);
  // Ends the victim's contexts, cuts the wire (a peer that goes on refusing
  // keeps a withdrawn message alive) and checks all memory. Accesses outside
  // what is mapped must lie in `announced`, writes inside it in `invited`.
  void Finish(const std::vector<Range>& announced,
              const std::vector<Range>& invited);

 private:
  std::unique_ptr<BareEndpoint> good_;
  DmaBuffer good_memory_;
};

// Byte `offset` of the known bytes of all sources.
constexpr std::byte KnownByte(uint64_t offset) {
  return static_cast<std::byte>(offset * 167 + (offset >> 8) * 13 + 1);
}

}  // namespace heddle::fuzz
