// SPDX-License-Identifier: Apache-2.0
// A host with a soft engine: memory that the engine may only access where it
// was invited, rings that the harness fills with anything, completion queues.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/dma_port.h"
#include "hw/soft/engine/engine.h"
#include "tests/soft/engine/fake_fabric.h"

namespace heddle::fuzz {

// Reports the property that did not hold, and ends the process.
[[noreturn]] void Break(const std::string& property);

// True if environment HEDDLE_FUZZ_BREAK is `what`: the harness spoils that on
// purpose, to show that a property can fail.
bool Spoils(std::string_view what);

// An arena at kBase; everything else is not mapped.
class GuardedMemory final : public soft::engine::DmaPort {
 public:
  static constexpr uint64_t kBase = 0x10000000;
  static constexpr uint64_t kBytes = 256 * 1024;
  static constexpr uint64_t kEnd = kBase + kBytes;

  enum Right : uint8_t { kRead = 1, kWrite = 2 };

  // Zeroed and aligned to a page; the engine has `rights` there for good.
  uint64_t Allocate(uint64_t bytes, uint8_t rights);
  template <typename T>
  T& At(uint64_t iova) {
    return *reinterpret_cast<T*>(&bytes_[iova - kBase]);
  }
  // A descriptor names the range, mapped or not. Until `Revoke` with the
  // number returned.
  uint64_t Invite(uint64_t iova, uint64_t bytes, uint8_t rights);
  void Revoke(uint64_t invitation) { invited_.erase(invitation); }
  // From now on no access is right.
  void Close() { closed_ = true; }

  bool Read(uint64_t iova, std::span<uint8_t> out) override;
  bool Write(uint64_t iova, std::span<const uint8_t> bytes) override;
  bool Store(uint64_t iova, uint64_t value) override;
  bool Publish(uint64_t iova, std::span<const uint8_t, 64> entry) override;

 private:
  struct Range {
    uint64_t base;
    uint64_t bytes;
    uint8_t rights;
    bool Has(uint64_t iova, uint64_t count, uint8_t right) const {
      // A range that a descriptor names may pass the end of the addresses.
      return (rights & right) != 0 && count <= bytes &&
             iova - base <= bytes - count;
    }
  };
  // False: refused, as its range is not mapped.
  bool Check(uint64_t iova, uint64_t bytes, Right right) const;

  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(kBytes);
  uint64_t used_ = 0;
  uint64_t invitations_ = 0;
  bool closed_ = false;
  std::vector<Range> given_;
  std::map<uint64_t, Range> invited_;
};

// Stands between the fabric and an engine: shows its packets to the
// harness, which may change them.
class Tap final : public soft::transport::TransportClient {
 public:
  // A request that arrived, for the harness to forge others from.
  struct Seen {
    soft::wire::FabricAddress source;
    uint16_t pdc;
    uint16_t spdcid;
    bool ordered;
    std::vector<uint8_t> ses;
  };
  // {offset, value} of bytes in the next request or response; each once.
  struct Change {
    uint8_t offset;
    uint8_t value;
  };

  explicit Tap(soft::engine::Engine* engine) : engine_(*engine) {}

  std::deque<Seen> seen;
  std::vector<Change> of_request;
  std::vector<Change> of_response;

  Built BuildRequest(uint32_t message, uint32_t index,
                     std::span<uint8_t> out) override {
    return engine_.BuildRequest(message, index, out);
  }
  void OnAcknowledged(uint32_t message, uint32_t packets) override {
    engine_.OnAcknowledged(message, packets);
  }
  void OnResponse(uint32_t message, const contract::wire::SesResponse& response,
                  std::span<const uint8_t> data, uint32_t data_offset) override;
  bool OnRestart(uint32_t message) override {
    return engine_.OnRestart(message);
  }
  void OnAbandoned(uint32_t message, contract::Status status, uint16_t detail,
                   bool transmitted) override {
    engine_.OnAbandoned(message, status, detail, transmitted);
  }
  soft::transport::Verdict OnReturnData(
      const soft::transport::Request& request) override {
    return engine_.OnReturnData(request);
  }
  bool Listens(std::span<const uint8_t> ses) const override {
    return engine_.Listens(ses);
  }
  soft::transport::Verdict OnRequest(const soft::transport::Request& request,
                                     bool may_guarantee) override;
  Built BuildReturn(const soft::transport::ReturnData& data,
                    std::span<uint8_t> out) override {
    return engine_.BuildReturn(data, out);
  }
  void OnReturnRetired(const soft::transport::ReturnData& data) override {
    engine_.OnReturnRetired(data);
  }
  void OnTargetClosed(const soft::wire::FabricAddress& source, uint16_t spdcid,
                      bool in_error) override {
    engine_.OnTargetClosed(source, spdcid, in_error);
  }

 private:
  soft::engine::Engine& engine_;
};

// Transmit context 0, and two receive contexts that match: tagged ones are of
// context kOpen, which the harness fills, and kGood, which it uses as it
// should. Its fabric address is its number.
class SoftHost : private soft::engine::InterruptSink {
 public:
  static constexpr uint32_t kSlots = 64;
  static constexpr uint32_t kMtu = 512;
  static constexpr uint32_t kJob = 7;
  static constexpr uint16_t kPid = 3;
  static constexpr uint32_t kOpen = 0;
  static constexpr uint32_t kGood = 1;
  // Resource index of a context; completion queue of its receives. That of the
  // sends is 2.
  static constexpr uint16_t RiOf(uint32_t context) {
    return static_cast<uint16_t>(context + 1);
  }
  static constexpr uint32_t kSends = 2;
  static constexpr uint32_t kQueues = 3;
  static constexpr uint8_t kCqLog2 = 4;
  static constexpr uint64_t kBufferBytes = 32 * 1024;

  explicit SoftHost(soft::engine::FakeFabric* fabric);

  // A new life of receive context kOpen.
  void Begin(const contract::RxCtxCfg& cfg);
  // Disables a context; nothing of it touches memory then.
  void EndReceives(uint32_t context);
  void EndSends();

  // In the order of positions, as far as the descriptor has the right one.
  void WriteSend(const contract::TxDesc& descriptor,
                 std::span<const uint8_t> extension);
  void WriteMatch(uint32_t context, const contract::MatchDesc& descriptor);
  void RingSends(uint16_t tail);
  void RingMatches(uint32_t context, uint16_t tail);
  void Doorbell(uint32_t page, uint32_t offset, uint64_t value);

  // Takes the next entry of a queue and returns it to the engine; each has to
  // be of a descriptor.
  std::optional<contract::Completion> Take(uint32_t cq);
  void TakeAll();
  void Progress() { (void)engine.Progress(16); }

  GuardedMemory memory;
  soft::engine::Engine engine;
  Tap tap{&engine};
  uint64_t buffers = 0;
  std::array<uint16_t, 2> written{};  // Match descriptors of each context.
  uint16_t sends_written = 0;
  contract::TxCtxCfg tx;
  std::array<contract::RxCtxCfg, 2> rx;

 private:
  // Descriptors of one op_context that have not completed.
  struct Posted {
    uint32_t count = 0;
    bool multi = false;       // Completes until the buffer is released.
    uint64_t invitation = 0;  // Revoked at the end; 0: not known.
  };
  using Operations = std::map<uint64_t, Posted>;

  void Raise(uint8_t /*vector*/) override {}
  template <typename T>
  void Write(contract::Table table, uint32_t index, const T& cfg);
  static void Post(Operations* operations, uint64_t op_context, bool multi,
                   uint64_t invitation);
  void InviteSegments(std::span<const uint8_t> slots);
  void PostSend(const contract::TxDesc& descriptor);
  void Check(uint32_t cq, const contract::Completion& entry);

  std::array<uint64_t, kQueues> queues_{};
  std::array<uint32_t, kQueues> taken_{};
  uint64_t area_ = 0;  // Invitation of kOpen's.
  std::array<Operations, kQueues> operations_;
};

}  // namespace heddle::fuzz
