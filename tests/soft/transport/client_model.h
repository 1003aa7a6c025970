// SPDX-License-Identifier: Apache-2.0
// A client that knows what a transport may do with its messages, and fails the
// test when it does something else.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "hw/sim/base/random.h"
#include "hw/soft/transport/message_carrier.h"

namespace heddle::soft::transport {

enum class Kind : uint8_t {
  kPlain,
  kError,   // The target answers the message with an error, guaranteed.
  kResult,  // With 8 bytes of data in the ACK, guaranteed.
  kRead,    // With packets of return data.
  kHeld,    // Its initiator has it on hold until `Resume`.
};

struct TestMessage {
  uint64_t serial = 0;  // Unique in the world.
  Kind kind = Kind::kPlain;
  uint32_t packets = 1;
  uint32_t data_packets = 0;  // kRead.
  uint32_t refused = 0;       // Of these, which never come.
  uint16_t name = 0;          // Which PDC.
  bool ordered = true;
  wire::FabricAddress peer;
};

// What became of a message at its initiator.
struct Ending {
  uint64_t serial = 0;
  bool completed = false;
  contract::Status status = {};
  uint16_t detail = 0;
  bool transmitted = true;
};

class ClientModel final : public TransportClient {
 public:
  ClientModel(uint64_t seed, size_t messages)
      : random_(seed), slots_(messages) {
    for (size_t i = messages; i-- > 0;) {
      free_.push_back(static_cast<MessageIndex>(i));
    }
  }

  void Connect(MessageCarrier* carrier) { carrier_ = carrier; }

  // Adds to what is to be sent.
  void Send(const TestMessage& message) { backlog_.push_back(message); }
  // Posts what can be posted.
  void Pump();
  // Retransmits a message that is on hold and acknowledged, as a plain one with
  // another serial number; or ends it.
  void Resume(uint64_t serial, uint64_t again);
  void Finish(uint64_t serial);
  // The function was reset: what it had in flight is gone. Its backlog and the
  // record of endings stay.
  void BeginIncarnation();
  // Nothing queued, everything ended.
  bool done() const {
    return backlog_.empty() && free_.size() == slots_.size();
  }

  // As target: whether it takes requests.
  bool listens = true;
  // As target: how often it refuses.
  double refuse = 0;
  contract::NackCode refuse_code = contract::NackCode::kNoPktBuffer;
  // As target: ordered requests have to come in order. Off where messages fail:
  // one that failed may still be executed, late.
  bool check_order = true;
  // As initiator: messages that never left are posted again.
  bool repost = true;

  // As initiator: tells its incarnations apart.
  uint32_t life = 0;

  std::vector<Ending> endings;
  // As target, by serial: packets taken so far.
  struct Taken {
    std::vector<bool> packets;
    uint32_t count = 0;
    uint32_t answers = 0;
  };
  using Record = std::map<uint64_t, Taken>;
  Record taken;
  std::vector<Record> earlier;  // Of earlier incarnations.
  uint64_t out_of_order = 0;    // Requests of RUD that were.
  uint32_t restarts = 0;      // Messages that went again to a new incarnation.
  uint64_t returns_open = 0;  // Records not retired.
  uint32_t closed = 0;
  uint32_t closed_in_error = 0;
  // As initiator: a message whose target refused all of its data has failed
  // when its packets are acknowledged.
  bool fails_refused = false;
  size_t payload_bytes = 32;
  double unheard = 0;  // As initiator: packets whose ACK may come later.

  // TransportClient:
  Built BuildRequest(MessageIndex index, uint32_t packet,
                     std::span<uint8_t> out) override;
  void OnAcknowledged(MessageIndex index, uint32_t packets) override;
  void OnResponse(MessageIndex index,
                  const contract::wire::SesResponse& response,
                  std::span<const uint8_t> data, uint32_t data_offset) override;
  bool OnRestart(MessageIndex index) override;
  void OnAbandoned(MessageIndex index, contract::Status status, uint16_t detail,
                   bool transmitted) override;
  Verdict OnReturnData(const Request& request) override;
  bool Listens(std::span<const uint8_t> /*ses*/) const override {
    return listens;
  }
  Verdict OnRequest(const Request& request, bool may_guarantee) override;
  Built BuildReturn(const ReturnData& data, std::span<uint8_t> out) override;
  void OnReturnRetired(const ReturnData& data) override;
  void OnTargetClosed(const wire::FabricAddress& source, uint16_t spdcid,
                      bool in_error) override;

 private:
  struct Slot {
    TestMessage message;
    bool live = false;
    uint32_t acked = 0;
    uint32_t answers = 0;
    std::vector<bool> data;
    uint32_t data_count = 0;
    bool finished = false;
    bool waits = false;  // On hold, all acknowledged.
  };
  bool Post(const TestMessage& message);
  MessageIndex Waiting(uint64_t serial) const;
  void MaybeFinish(MessageIndex index);
  void MaybeDone(MessageIndex index);

  sim::base::Random random_;
  MessageCarrier* carrier_ = nullptr;
  std::deque<TestMessage> backlog_;
  std::vector<Slot> slots_;
  std::vector<MessageIndex> free_;
  // Order on ROD: last serial and packet of each {incarnation, name}.
  std::map<std::pair<uint32_t, uint16_t>, std::pair<uint64_t, uint32_t>> last_;
  uint8_t result_[8] = {};
};

}  // namespace heddle::soft::transport
