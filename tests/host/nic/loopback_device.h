// SPDX-License-Identifier: Apache-2.0
// A Device for host tests: the real firmware, and a data path in plain C++.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver/control/admin_queue.h"
#include "driver/device.h"
#include "firmware/control_program.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/firmware/fake_management_bus.h"

namespace heddle::test {

class LoopbackDevice;

// Joins the devices of one process. Messages arrive whole and in order.
// Thread safety: one lock for all its devices.
class LoopbackWire {
 public:
  std::recursive_mutex mutex;
  std::vector<LoopbackDevice*> devices;
  // {IPv4, port} to the owning process, as a wire's switch keeps it.
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> ports;
};

struct LoopbackOptions {
  uint32_t ipv4 = 0x7f000001;
  // Instead of `ipv4` when it is an IPv6 address.
  FabricAddress ipv6 = {};
  std::chrono::nanoseconds dead{std::chrono::seconds(60)};
  // A thread serves the device when nobody polls; without it only `Step` does.
  bool own_thread = true;
};

// Executes SENDs as the contract specifies, and checks what the host does:
// ring positions, doorbells within the ring, reserved bytes, memory mapped for
// the device. The first breach fails the device, which then completes nothing.
//
// Host memory is this process, IOVA = address + `kIovaOffset`. Address-vector
// entries are cached from their first use until told otherwise, completions
// are written with the phase last, none without credit.
class LoopbackDevice final : public Device,
                             private firmware::HostMemory,
                             private firmware::Switch {
 public:
  static constexpr uint64_t kIovaOffset = 0x1000'0000'0000;

  LoopbackDevice(std::shared_ptr<LoopbackWire> wire, LoopbackOptions options);
  ~LoopbackDevice() override;

  // What BAR0 of such a device holds, from offset 0 on.
  static void ReadIdentity(std::span<uint64_t> words);

  const std::string& name() const override { return name_; }
  uint32_t ReadRegister32(uint32_t offset) override;
  uint64_t ReadRegister64(uint32_t offset) override;
  void WriteRegister32(uint32_t offset, uint32_t value) override;
  void WriteRegister64(uint32_t offset, uint64_t value) override;
  Doorbell doorbell(uint32_t bar2_offset) override;
  ProgressHook progress_hook() override;
  Result<Iova> Map(void* address, size_t bytes) override;
  Result<Iova> Reserve(void* address, size_t /*bytes*/) override {
    return Iova{reinterpret_cast<uintptr_t>(address) + kIovaOffset};
  }
  void Unmap(Iova iova, size_t bytes) override;
  int interrupt_fd(uint32_t vector) override;
  Result<bool> Reset() override;
  bool failed() const override;
  std::string failure() const override;

  // Called by `Unmap` before all else.
  std::function<void()> on_unmap;

  // Serves every device of the wire once.
  void Step();

  // Fails the device as a simulation's assertion would.
  void Fail(const std::string& reason);
  size_t mapping_count() const;
  // Doorbells rung so far; tests of batching count them.
  uint32_t doorbells() const;
  // DSCP of what transmit context `context` sends.
  uint8_t dscp(uint32_t context) const;
  // Messages that wait for a receiver.
  size_t waiting_messages() const;

 private:
  static constexpr uint32_t kContexts = 16;

  struct Message {
    uint16_t position = 0;
    uint16_t slots = 1;
    contract::TxDesc desc;
    std::vector<std::byte> payload;
    contract::AvEntry peer;
    contract::Status status = contract::Status::kOk;
    uint16_t detail = 0;
    std::chrono::steady_clock::time_point since;
  };

  struct TxState {
    uint16_t tail = 0;  // Doorbell.
    uint16_t next = 0;  // First slot not fetched.
    uint16_t head = 0;  // Released.
    uint16_t told = 0;  // Of these, told by a completion or the head cell.
    bool error = false;
    std::deque<Message> messages;
    std::map<uint16_t, uint16_t> done;  // Position to slots, not yet released.
    std::map<uint32_t, contract::AvEntry> av_cache;
  };

  struct RxState {
    uint16_t tail = 0;
    uint16_t next = 0;  // First buffer not used.
    uint16_t head = 0;
    std::deque<uint16_t> cancels;
    std::map<uint16_t, bool> done;
  };

  struct CqState {
    uint32_t produced = 0;
    uint32_t consumed = 0;
    std::optional<uint32_t> armed;
  };

  // firmware::HostMemory and firmware::Switch.
  bool Read(uint64_t address, void* data, size_t bytes) override;
  bool Write(uint64_t address, const void* data, size_t bytes) override;
  firmware::PortClaim ClaimPort(const firmware::PortName& name) override;
  void ReleasePort(const firmware::PortName& name) override;

  // All below with the wire's lock held.
  void ServeSelf();
  void TakeDoorbells();
  void TakeDoorbell(uint32_t offset, uint64_t value);
  void ForgetRewritten();
  void FetchAll(uint32_t context);
  bool FetchOne(uint32_t context);
  bool FetchPayload(uint32_t context, const contract::TxCtxCfg& cfg,
                    Message& message);
  // The IOVA of its payload; none, with its status, when that is wrong.
  static std::optional<uint64_t> FindBuffer(const contract::TxCtxCfg& cfg,
                                            Message& message);
  void DeliverAll(uint32_t context);
  bool DeliverOne(uint32_t context, Message& message);
  LoopbackDevice* FindTarget(const Message& message, uint32_t* rx_context);
  bool Receive(uint32_t context, const contract::TxCtxCfg& source,
               const FabricAddress& source_fa, const Message& message);
  FabricAddress address() const {
    return options_.ipv6.ipv6 ? options_.ipv6
                              : FabricAddress{.lo = options_.ipv4};
  }
  void ServeCancels(uint32_t context);
  void ReleaseRx(uint32_t context, uint16_t position);
  bool CompleteTx(uint32_t context, Message& message);
  bool HasCredit(uint32_t cq) const;
  void Produce(uint32_t cq, contract::Completion completion);
  void RunThread();
  bool IsMapped(uint64_t iova, size_t bytes) const;

  contract::TxCtxCfg tx_cfg(uint32_t context) const {
    return bus_.Table<contract::TxCtxCfg>(contract::Table::kTxCtx, context);
  }
  contract::RxCtxCfg rx_cfg(uint32_t context) const {
    return bus_.Table<contract::RxCtxCfg>(contract::Table::kRxCtx, context);
  }
  contract::CqCfg cq_cfg(uint32_t cq) const {
    return bus_.Table<contract::CqCfg>(contract::Table::kCq, cq);
  }

  std::shared_ptr<LoopbackWire> wire_;
  LoopbackOptions options_;
  std::string name_ = "rtl0";
  firmware::Board board_;
  firmware::FakeManagementBus bus_{*this};
  firmware::TestObjectMemory object_memory_;
  firmware::ControlProgram program_;
  size_t events_seen_ = 0;
  std::map<std::pair<uint64_t, size_t>, uint32_t> mappings_;
  std::array<TxState, kContexts> tx_;
  std::array<RxState, kContexts> rx_;
  std::array<CqState, kContexts> cq_;
  std::array<int, kContexts> interrupts_;
  std::array<uint64_t, contract::kBar0StatisticsCount> statistics_{};
  std::string failure_;

  // Doorbells, which never wait for the data path.
  mutable std::mutex doorbell_mutex_;
  std::condition_variable rung_;
  std::deque<std::pair<uint32_t, uint64_t>> doorbells_;
  uint32_t doorbell_count_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace heddle::test
