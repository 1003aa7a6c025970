// SPDX-License-Identifier: Apache-2.0
// Worlds in which peers end and come back.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/soft/transport/world.h"

namespace heddle::soft::transport {

using contract::wire::PdsAck;
using contract::wire::PdsCp;
using contract::wire::PdsNack;
using contract::wire::PdsPrologue;
using contract::wire::PdsRequest;

using contract::NackCode;
using contract::PdsType;
using contract::ReturnCode;
using contract::Statistic;
using contract::Status;

inline constexpr auto kBadMkey = static_cast<uint16_t>(ReturnCode::kBadMkey);

inline TransportLimits Small(uint32_t pdcs) {
  TransportLimits limits;
  limits.pdcs = pdcs;
  limits.messages = 256;
  return limits;
}

inline std::vector<uint8_t> Copy(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

inline bool IsRequest(std::span<const uint8_t> bytes) {
  const auto type = PdsPrologue::Decode(bytes.data()).type;
  return type == PdsType::kRodReq || type == PdsType::kRudReq;
}

inline bool IsSyn(std::span<const uint8_t> bytes) {
  return IsRequest(bytes) && PdsRequest::Decode(bytes.data()).syn != 0;
}

inline bool IsNack(std::span<const uint8_t> bytes) {
  return PdsPrologue::Decode(bytes.data()).type == PdsType::kNack;
}

// Reports that no PDC has the PDCID that the packet `psn` of the initiator's
// PDC `dpdcid` named.
inline std::vector<uint8_t> InvalidDpdcid(uint16_t dpdcid, uint32_t psn) {
  PdsNack nack;
  nack.type = PdsType::kNack;
  nack.nack_code = NackCode::kInvDpdcid;
  nack.nack_psn = psn;
  nack.dpdcid = dpdcid;
  std::vector<uint8_t> packet(PdsNack::kBytes);
  nack.Encode(packet.data());
  return packet;
}

// The node sends nothing but NACKs, whose codes are appended to `codes`.
inline void RecordNacks(Node* node, std::vector<NackCode>* codes) {
  node->wire.filter = [codes](std::span<const uint8_t> bytes) {
    EXPECT_TRUE(IsNack(bytes));
    codes->push_back(PdsNack::Decode(bytes.data()).nack_code);
    return true;
  };
}

// Writes `close` of that node.
inline void Close(World* world, size_t node) {
  contract::TransportCfg rules = world->rules;
  rules.close = 1;
  (*world)[node].transport.Configure(world->port, rules);
}

using Counts = std::vector<uint32_t>;

// On a wire that delivers by function, or one that delivers by address.
class IncarnationTest : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  bool ordered() const { return GetParam().first; }
  bool routed() const { return GetParam().second; }

  TestMessage To(size_t node, uint64_t serial, uint32_t packets = 1,
                 Kind kind = Kind::kPlain) const {
    TestMessage message;
    message.serial = serial;
    message.ordered = ordered();
    message.packets = packets;
    message.kind = kind;
    message.data_packets = kind == Kind::kRead ? 5 : 0;
    message.peer = World::Address(node);
    return message;
  }
  void Prepare(World* world) const { world->routed = routed(); }
  // Opens a PDC from node 0 to node 1 with message 1.
  void Begin(World* world) const {
    Prepare(world);
    (*world)[0].client.Send(To(1, 1));
    ASSERT_TRUE(world->Run());
  }
  // Node 0 sends messages 2, of 40 packets, and 3. One incarnation of node 1
  // executes 20 packets of message 2 and acknowledges some of them; the next
  // one receives what is sent after that.
  void RestartAmidMessage(World* world, Kind kind) const {
    Node& initiator = (*world)[0];
    int requests = 0;
    initiator.wire.filter = [&requests](std::span<const uint8_t> bytes) {
      return !IsRequest(bytes) || ++requests <= 20;
    };
    initiator.client.Send(To(1, 2, 40, kind));
    initiator.client.Send(To(1, 3));
    ASSERT_TRUE(world->RunUntil(
        [&] { return world->Total(Statistic::kRxAcks) >= 2; }, 1'000'000));
    initiator.wire.filter = nullptr;
    world->Kill(1);
    world->RunFor(world->longest_ns());
    world->Revive(1);
    ASSERT_TRUE(world->Run());
  }
  // Packets of the message that each incarnation of the node took, the oldest
  // incarnation first.
  static Counts Executions(World* world, uint64_t serial, size_t index = 1) {
    Counts counts;
    const auto count = [&](const ClientModel::Record& record) {
      const auto found = record.find(serial);
      counts.push_back(found == record.end() ? 0 : found->second.count);
    };
    for (Node* node : world->Functions(index)) {
      for (const auto& record : node->client.earlier) {
        count(record);
      }
      count(node->client.taken);
    }
    return counts;
  }
};
// On the former only: the other wire does not tell who has an address.
class FunctionTest : public IncarnationTest {};
inline void ExpectAllCompleted(Node* node, size_t count) {
  EXPECT_EQ(node->client.endings.size(), count);
  for (const Ending& ending : node->client.endings) {
    EXPECT_TRUE(ending.completed)
        << ending.serial << " status " << static_cast<int>(ending.status)
        << " detail " << ending.detail;
  }
}

}  // namespace heddle::soft::transport
