// SPDX-License-Identifier: Apache-2.0
// A device, and a peer on its wire that is none of ours.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/base/clock.h"
#include "tests/sim/device/device_test.h"
#include "tests/sim/device/soft_kind.h"
#include "tests/sim/rtl/wire_peer.h"

namespace heddle::sim::rtl {

using contract::Completion;
using contract::Status;

inline constexpr uint32_t kMtu = 4096;  // Of the wire.
inline constexpr uint32_t kRegionBytes = 16384;
inline constexpr uint8_t kDscpTrimmed = 3;
inline constexpr uint8_t kDscpTrimmedLasthop = 44;

// The RTL NIC or the soft device.
class AnswersTest : public device::DeviceTest,
                    public testing::WithParamInterface<bool> {
 protected:
  using Bytes = std::vector<uint8_t>;
  using NackCode = contract::NackCode;
  using NextHdr = contract::NextHdr;
  using PdsType = contract::PdsType;
  using ReturnCode = contract::ReturnCode;
  using SesOpcode = contract::SesOpcode;
  using SesStd = contract::wire::SesStd;
  using Statistic = contract::Statistic;

  void SetUp() override {
    device::DeviceOptions options = Options(device::kIpB);
    options.settings.dscp_trimmed = kDscpTrimmed;
    options.settings.dscp_trimmed_lasthop = kDscpTrimmedLasthop;
    device_ = GetParam() ? device::Node::Open(options, 200)
                         : device::Node::Open(options, 200, device::SoftKind());
    ASSERT_NE(device_, nullptr);
    peer_ = WirePeer::Attach(name_, device::kIpA, device::kIpB);
    ASSERT_NE(peer_, nullptr);
    contract::AdminRegisterRegion command = {};
    command.opcode = contract::AdminOpcode::kRegisterRegion;
    command.iova = ToInteger(device_->buffer.iova());
    command.length = kRegionBytes;
    command.job_id = BareEndpointOptions{}.job_id;
    command.flags = contract::kRegionFlagRemoteRead |
                    contract::kRegionFlagRemoteWrite |
                    contract::kRegionFlagProviderKey;
    const auto answer =
        device_->admin->Execute(std::bit_cast<contract::AdminCommand>(command));
    ASSERT_TRUE(answer.ok());
    ASSERT_EQ(answer.value().status, contract::AdminStatus::kOk);
    key_ = answer.value().key;
    for (size_t i = 0; i < device_->buffer.bytes(); ++i) {
      device_->buffer.data()[i] = static_cast<std::byte>(i * 7);
    }
    peer_->Begin(true);
  }

  // A message of one packet.
  SesStd Whole(SesOpcode opcode, uint32_t bytes) {
    SesStd ses;
    ses.opcode = opcode;
    ses.som = ses.eom = 1;
    ses.message_id = ++message_id_;
    ses.job_id = BareEndpointOptions{}.job_id;
    ses.pid_on_fep = device_->endpoint->grant().pid_on_fep;
    ses.resource_index =
        static_cast<uint16_t>(device_->endpoint->grant().resource_index + 1);
    ses.initiator = 16;
    ses.request_length = bytes;
    if (opcode == SesOpcode::kWrite || opcode == SesOpcode::kRead) {
      ses.match_bits = key_;
    }
    return ses;
  }
  // The answer to an operation for tagged messages, of which the endpoint has
  // none, and the device `rtl` neither.
  static ReturnCode CodeWithoutTags(SesOpcode opcode) {
    if (GetParam()) {
      return ReturnCode::kUnsupportedOp;
    }
    // Its tokens name no message that is deferred.
    return opcode == SesOpcode::kDeferrableRtr ? ReturnCode::kOpViolation
                                               : ReturnCode::kBadIndex;
  }
  static Bytes Pattern(size_t bytes) {
    Bytes pattern(bytes);
    for (size_t i = 0; i < bytes; ++i) {
      pattern[i] = static_cast<uint8_t>(i * 3 + 1);
    }
    return pattern;
  }

  // The next packet that comes back.
  PeerPacket Next() {
    if (HasFailure()) {
      return {};  // One time limit is enough.
    }
    const uint64_t deadline = base::MonotonicNs() + device::kLimitNs;
    while (base::MonotonicNs() < deadline) {
      device_->Step();
      if (auto packet = peer_->Receive()) {
        return *packet;
      }
    }
    ADD_FAILURE() << "no answer " << device_->device->failure();
    return {};
  }
  // Takes the next PSN.
  PeerPacket Ask(const SesStd& ses, const Bytes& payload = {}) {
    peer_->Request(ses, payload);
    PeerPacket answer = Next();
    while (!HasFailure()) {
      const bool ack =
          answer.type == PdsType::kAck || answer.type == PdsType::kAckCc;
      if (answer.type == PdsType::kNack &&
          answer.nack.nack_code == NackCode::kNoPktBuffer) {
        // The device may not have seen the buffer yet.
        peer_->Request(ses, payload, /*retx=*/true);
      } else if (!ack || Answered(answer) == peer_->psn) {
        break;
      }
      answer = Next();
    }
    ++peer_->psn;
    return answer;
  }
  void ExpectSuccess(const PeerPacket& packet, const SesStd& ses) {
    ExpectAck(packet);
    EXPECT_EQ(packet.response.opcode, contract::SesResponse::kDefaultResponse);
    EXPECT_EQ(packet.response.return_code, ReturnCode::kOk);
    EXPECT_EQ(packet.response.message_id, ses.message_id);
    EXPECT_EQ(packet.response.job_id, ses.job_id);
    EXPECT_EQ(packet.response.modified_length, ses.request_length);
    EXPECT_EQ(packet.ack.req, contract::AckReq::kNone);
  }
  void ExpectError(const PeerPacket& packet, const SesStd& ses,
                   ReturnCode code) {
    ExpectAck(packet);
    EXPECT_EQ(packet.response.opcode, contract::SesResponse::kResponse);
    EXPECT_EQ(packet.response.return_code, code);
    EXPECT_EQ(packet.response.message_id, ses.message_id);
    EXPECT_EQ(packet.response.job_id, ses.job_id);
    EXPECT_EQ(packet.response.modified_length, 0U);
    EXPECT_EQ(packet.ack.req, contract::AckReq::kClear);
  }
  // Of the request that was sent last.
  void ExpectAck(const PeerPacket& packet) {
    EXPECT_TRUE(packet.type == PdsType::kAck || packet.type == PdsType::kAckCc)
        << static_cast<int>(packet.type) << " code "
        << static_cast<int>(packet.nack.nack_code);
    EXPECT_EQ(packet.next_hdr, NextHdr::kResponse);
    EXPECT_EQ(Answered(packet), peer_->psn - 1);
  }
  static uint32_t Answered(const PeerPacket& ack) {
    return ack.ack.cack_psn +
           static_cast<uint32_t>(int32_t{ack.ack.ack_psn_offset});
  }
  std::optional<Completion> Received() {
    const uint64_t deadline = base::MonotonicNs() + device::kLimitNs;
    while (base::MonotonicNs() < deadline) {
      device_->Step();
      if (auto done = device_->endpoint->PollRx()) {
        return done;
      }
    }
    return std::nullopt;
  }
  uint64_t Count(Statistic statistic) {
    return ReadStatistic(*device_->device, statistic);
  }
  bool MemoryIs(size_t at, const Bytes& bytes) const {
    return std::memcmp(device_->buffer.data() + at, bytes.data(),
                       bytes.size()) == 0;
  }
  // Behind an ACK, which may come before the payload is visible; a completion
  // may not.
  bool MemoryBecomes(size_t at, const Bytes& bytes) {
    const uint64_t deadline = base::MonotonicNs() + device::kLimitNs;
    while (!MemoryIs(at, bytes) && base::MonotonicNs() < deadline) {
      device_->Step();
    }
    return MemoryIs(at, bytes);
  }
  // The device still serves the PDC.
  void ExpectAlive() {
    const SesStd ses = Whole(SesOpcode::kWrite, 8);
    ExpectSuccess(Ask(ses, Pattern(8)), ses);
  }
  // Each mode has a PDC of its own.
  template <typename Test>
  void OnBothModes(Test test) {
    for (const bool ordered : {true, false}) {
      SCOPED_TRACE(ordered ? "ROD" : "RUD");
      peer_->Begin(ordered);
      test();
      if (HasFatalFailure()) {
        return;
      }
    }
  }

  std::unique_ptr<device::Node> device_;
  std::unique_ptr<WirePeer> peer_;
  uint64_t key_ = 0;
  uint16_t message_id_ = 0xfffe;  // Of the last one; the second is 0.
};

}  // namespace heddle::sim::rtl
