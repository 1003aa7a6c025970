// SPDX-License-Identifier: Apache-2.0
// Model of the management bus and of the BAR0 registers behind it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "firmware/base/hal.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// Host memory as the mailbox DMA sees it. False: access refused.
class HostMemory {
 public:
  virtual bool Read(uint64_t address, void* data, size_t bytes) = 0;
  virtual bool Write(uint64_t address, const void* data, size_t bytes) = 0;

 protected:
  ~HostMemory() = default;
};

// What the firmware did to the NIC, in order.
struct BusEvent {
  enum class Kind : uint8_t { kTableWrite, kDrain, kHostWrite };
  Kind kind;
  contract::Table table = contract::Table::kNone;
  uint32_t index = 0;
  bool enable = false;  // Of a context written.

  bool operator==(const BusEvent&) const = default;
};

// Registers, mailbox and tables with the timing of the real ones: an operation
// is busy for some reads of its control register, and a write to its registers
// meanwhile is ignored and counted as a violation.
class FakeManagementBus final : public RegisterBus {
 public:
  using Entry = std::array<uint32_t, 16>;

  explicit FakeManagementBus(HostMemory& host) : host_(host) {}

  // ------------------------------------------------------------- BAR0 side
  uint32_t version = contract::kContractMajor << 16;
  uint32_t context_limits = 0x04030202;  // 4 vectors, 3 queues, 2 + 2 contexts.
  uint32_t transport_limits = 64U << 16 | 512;
  uint32_t datapath = 8192U << 16 | 512;
  uint32_t region_limits = 3U << 16 | 16;  // 3 counters, 16 regions.
  uint32_t open_pdcs = 0;
  uint32_t context_counts = 0;  // As the limits say.
  uint32_t queue_counts = 0;
  uint32_t region_count = 0;
  uint32_t capability = 0;
  uint64_t admin_command_base = 0;
  uint64_t admin_answer_base = 0;
  uint32_t admin_log2 = 0;
  uint16_t admin_tail = 0;
  bool reset_requested = false;
  uint32_t status = 0;
  uint32_t fatal_cause = 0;

  bool HasEvent() { return Events() != 0; }

  // ------------------------------------------------------------- test side
  // Reads of a control register for which a mailbox or table operation shows
  // `go`.
  uint32_t busy_reads = 2;
  // While set, drain tokens do not return.
  bool hold_drains = false;
  // While set, the mailbox never finishes, nor does a table.
  bool stuck_mailbox = false;
  bool stuck_tables = false;
  // Called before a register is read, with its offset; may be empty.
  std::function<void(uint32_t offset)> before_read;
  // Table whose accesses are answered with an error.
  contract::Table broken_table = contract::Table::kNone;

  // Frames for firmware, and its own.
  std::deque<std::vector<uint8_t>> slow_rx;
  std::vector<std::vector<uint8_t>> slow_tx;
  // Reads of the control register for which a frame sent shows `go`.
  uint32_t slow_tx_busy_reads = 0;
  // Time.
  uint32_t ticks = 0;
  void Tick(uint32_t count) {
    ticks += count;
    if (timer_ != 0 && count >= timer_) {
      timer_fired_ = true;
    }
    timer_ -= count < timer_ ? count : timer_;
  }
  // Ticks until the alarm; 0: none is set.
  uint32_t timer() const { return timer_; }

  std::vector<BusEvent> events;
  uint32_t reads = 0;
  uint32_t violations = 0;

  template <typename T>
  T Table(contract::Table table, uint32_t index) const {
    const auto found = tables_.find({table, index});
    return found == tables_.end() ? T{} : std::bit_cast<T>(found->second);
  }

  // ---------------------------------------------------------- firmware side
  uint32_t Read(uint32_t offset) override;
  void Write(uint32_t offset, uint32_t value) override;

 private:
  uint32_t Events() const {
    return (admin_tail != admin_head_ ? contract::kMgmtEventsAdminMask : 0) |
           (reset_requested ? contract::kMgmtEventsResetMask : 0) |
           (slow_rx.empty() ? 0 : contract::kMgmtEventsSlowPathRxMask) |
           (timer_fired_ ? contract::kMgmtEventsTimerMask : 0);
  }
  static bool In(uint32_t offset, uint32_t base, uint32_t words) {
    return offset >= base && offset < base + 4 * words;
  }
  uint32_t ReadMailboxControl();
  uint32_t ReadTableControl();
  uint32_t ReadSlowPath(uint32_t offset);
  void WriteSlowPath(uint32_t offset, uint32_t value);
  void StartMailbox(uint32_t control);
  void StartTable(uint32_t control);

  HostMemory& host_;
  std::map<std::pair<contract::Table, uint32_t>, Entry> tables_;
  uint16_t admin_head_ = 0;
  uint32_t timer_ = 0;
  bool timer_fired_ = false;
  std::array<uint32_t, contract::kMgmtSlowPathTxDataCount> slow_window_{};
  uint32_t slow_busy_ = 0;
  uint64_t mailbox_address_ = 0;
  uint32_t mailbox_control_ = 0;
  uint32_t mailbox_busy_ = 0;
  std::array<uint32_t, contract::kMgmtMailboxDataCount> mailbox_{};
  uint32_t table_control_ = 0;
  uint32_t table_busy_ = 0;
  Entry table_data_{};
};

// Grants ports as the wire does.
class FakeSwitch final : public Switch {
 public:
  // {port, space} to process id.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> owner_of;
  uint32_t next_free = 40000;
  bool exhausted = false;

  static constexpr uint32_t kOwnPid = 77;

  PortClaim ClaimPort(const PortName& name) override {
    uint32_t port = name.port;
    if (port == 0) {
      if (exhausted) {
        return {.granted = false, .exhausted = true, .port = 0, .owner = 0};
      }
      port = next_free++;
    }
    const auto [entry, fresh] =
        owner_of.try_emplace({port, name.space}, kOwnPid);
    return {.granted = fresh,
            .exhausted = false,
            .port = port,
            .owner = entry->second};
  }
  void ReleasePort(const PortName& name) override {
    owner_of.erase({name.port, name.space});
  }
};

// Memory for objects, up to a limit.
class TestObjectMemory final : public ObjectMemory {
 public:
  size_t limit_bytes = SIZE_MAX;
  size_t taken_bytes = 0;

  void* Take(uint32_t bytes) override {
    if (bytes > limit_bytes - taken_bytes) {
      return nullptr;
    }
    taken_bytes += bytes;
    return blocks_.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

inline Board TestBoard() {
  return {.fa_lo = 0x0a000001,
          .fa_hi = 0,
          .mac = 0x020000000001,
          .gateway_mac = 0x0200000000fe,
          .tick_ns = 1000,
          .rto_ns = 20'000'000,
          .rto_max_ns = 1'000'000'000,
          .backoff_ns = 10'000,
          .backoff_max_ns = 1'000'000,
          .dead_ns = 60'000'000'000,
          .ack_delay_ns = 200'000,
          .pdc_seed = 0x1234,
          .payload_mtu = 4096,
          .slot = 5,
          .write_errors = true,
          .ip_protocol = 99};
}

}  // namespace heddle::firmware
