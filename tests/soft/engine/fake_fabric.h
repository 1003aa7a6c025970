// SPDX-License-Identifier: Apache-2.0
// A transport for tests of the engine: loses nothing, in an order that the test
// chooses by seed, and checks how it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "hw/soft/engine/engine.h"
#include "hw/soft/transport/message_carrier.h"
#include "tests/soft/engine/test_fabric.h"

namespace heddle::soft::engine {

// Nodes are clients whose fabric address is their number (IPv4). Packets of a
// ROD PDC arrive in order, those of a RUD PDC in any; answers and return data
// come back in order per PDC. A packet that was refused stays and is tried
// again.
class FakeFabric final : public TestFabric {
 public:
  explicit FakeFabric(uint32_t seed) : random_(seed) {}

  class Carrier;
  transport::MessageCarrier* Add(transport::TransportClient* client) override;

  // Does one thing, chosen at random; false when there is nothing to do but to
  // try refused packets again, which it did.
  bool Step() override;

  // Every initiator's PDC of this node ends: its messages are abandoned.
  void Abandon(size_t node, contract::Status status, uint16_t detail);

  // All that this node sends to ended and came back: its messages go again, or
  // end.
  void Restart(size_t node);

  std::map<contract::NackCode, uint32_t> refusals;
  uint32_t dropped = 0;
  uint32_t errors = 0;     // Responses with an error code.
  bool in_order = false;   // RUD packets too.
  bool guarantees = true;  // There is room for guaranteed responses.
  bool hostile = false;    // Others answer under the names of its messages.
  bool hold_answers = false;
  bool hold_requests = false;
  bool hold_returns = false;
  // Of a message that was refused one answer says so, as with a target that
  // keeps one answer for a message.
  bool refuses_once = false;
  uint32_t returns_again = 0;  // Return data come so many times more.
  uint32_t returns_short = 0;  // The first ones lack so many bytes.

 private:
  friend class Carrier;

  struct Packet {
    transport::MessageIndex message;
    uint32_t index;
    contract::NextHdr next_hdr;
    std::vector<uint8_t> bytes;
  };
  struct Answer {
    transport::MessageIndex message;
    bool respond;
    contract::wire::SesResponse response;
    std::vector<uint8_t> data;
    uint32_t data_offset;
  };
  struct Message {
    transport::MessageIndex index;
    uint32_t packets;
    uint32_t built = 0;
    bool expects_data = false;
  };
  struct Pdc {
    size_t from = 0;
    transport::PdcName name;
    uint16_t id = 0;
    std::vector<Message> queue;  // Front: is sent.
    std::vector<Packet> flying;
    std::vector<Answer> answers;
    std::vector<transport::ReturnData> returns;
  };
  // What the transport knows of a message.
  struct State {
    uint32_t left = 0;  // Packets to be acknowledged.
    bool expects_data = false;
    bool finished = false;
    bool refused = false;  // Answered with an error.
    bool denied = false;   // The target has said so.
    bool failed = false;   // Its client does not wait for it.
    bool parked = false;   // On hold.
  };

  // Packets, answers and data of the node's PDCs are gone, at both ends.
  void Drop(size_t node);
  // Messages of the node that wait, with no packet built.
  std::set<transport::MessageIndex> Unsent(size_t node) const;
  // As Drop, but with the messages: what the node posts meanwhile stays.
  std::map<transport::MessageIndex, State> TakeDropped(size_t node);
  bool Send(Pdc& pdc);
  bool Deliver(Pdc& pdc);
  bool Answered(Pdc& pdc);
  bool Return(Pdc& pdc);
  void Forget(size_t node, transport::MessageIndex index);
  size_t Pick(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }
  Pdc& PdcOf(size_t node, const transport::PdcName& name);

  std::mt19937 random_;
  std::vector<std::unique_ptr<Carrier>> carriers_;
  std::vector<std::unique_ptr<Pdc>> pdcs_;
};

class FakeFabric::Carrier final : public transport::MessageCarrier {
 public:
  Carrier(FakeFabric* fabric, size_t node, transport::TransportClient* client)
      : fabric_(fabric), node_(node), client_(client) {}

  PostOutcome Post(transport::MessageIndex message,
                   const transport::PdcName& name, const wire::Path& path,
                   uint32_t packets, bool expects_data) override;
  void Finish(transport::MessageIndex message) override;
  void Fail(transport::MessageIndex message) override;
  void Hold(transport::MessageIndex message) override;
  void Resume(transport::MessageIndex message) override;
  bool Stuck(transport::MessageIndex /*message*/) const override {
    return stuck;
  }
  bool PostReturn(uint16_t pdc, const transport::ReturnData& data) override;

  struct Posted {
    transport::MessageIndex message;
    transport::PdcName name;
    wire::Path path;
    uint32_t packets;
  };
  std::vector<Posted> posted;  // All, in order; also what resumes.
  std::vector<bool> unheard;   // Of each packet built, in order.
  bool full = false;
  bool stuck = true;
  uint32_t return_records = 64;
  std::map<transport::MessageIndex, State> known;

 private:
  friend class FakeFabric;
  FakeFabric* fabric_;
  size_t node_;
  transport::TransportClient* client_;
};

}  // namespace heddle::soft::engine
