// SPDX-License-Identifier: Apache-2.0
// A PDC on which more than 2^31 packets went.
#include <gtest/gtest.h>

#include "hw/soft/transport/initiator.h"
#include "tests/seed.h"
#include "tests/soft/transport/world.h"

namespace heddle::soft::transport {
namespace {

// Has messages of one packet, and does not care.
class AnyClient final : public TransportClient {
 public:
  Built BuildRequest(MessageIndex, uint32_t, std::span<uint8_t>) override {
    return {contract::NextHdr::kRequestStd, contract::wire::SesStd::kBytes};
  }
  void OnAcknowledged(MessageIndex, uint32_t) override {}
  void OnResponse(MessageIndex, const contract::wire::SesResponse&,
                  std::span<const uint8_t>, uint32_t) override {}
  bool OnRestart(MessageIndex) override { return true; }
  void OnAbandoned(MessageIndex, contract::Status, uint16_t, bool) override {}
  Verdict OnReturnData(const Request&) override { return {}; }
  bool Listens(std::span<const uint8_t> /*ses*/) const override { return true; }
  Verdict OnRequest(const Request&, bool) override { return {}; }
  Built BuildReturn(const ReturnData&, std::span<uint8_t>) override {
    return {};
  }
  void OnReturnRetired(const ReturnData&) override {}
  void OnTargetClosed(const wire::FabricAddress&, uint16_t, bool) override {}
};

class AgeTest : public testing::Test {
 protected:
  AgeTest() {
    core_.settings = Settings::From(world_.port, world_.rules, World::kTickNs);
    name_.peer = World::Address(1);
  }
  // Sends a message of one packet, which is acknowledged.
  void Exchange(contract::AckReq req) {
    ASSERT_TRUE(initiator_.PostMessage({.message = 0}, name_, {}));
    pdc_ = core_.pdcs.ByName(name_);
    ASSERT_NE(pdc_, nullptr);
    IncomingAck ack;
    ack.facts.psn = pdc_->send.window().top();
    // What is to be cleared holds CACK back.
    ack.facts.cack = ack.facts.psn - (req == contract::AckReq::kClear ? 1 : 0);
    ack.spdcid = 5;
    ack.req = req;
    ASSERT_TRUE(initiator_.SendNew(pdc_));
    wire::Datagram datagram;
    datagram.source = name_.peer;
    initiator_.OnAck(pdc_, ack, datagram);
  }

  World world_{TestSeed()};
  TestWire wire_{&world_, 0, 1};
  AnyClient client_;
  Core core_{TransportLimits{}, &wire_, &client_, TestSeed()};
  Receiver receiver_{&core_};
  Initiator initiator_{&core_, &receiver_};
  PdcName name_;
  Pdc* pdc_ = nullptr;
};

TEST_F(AgeTest, AnAnswerIsStillCleared) {
  Exchange(contract::AckReq::kNone);
  pdc_->start_psn -= 1u << 31;
  Exchange(contract::AckReq::kClear);
  EXPECT_TRUE(pdc_->clear_due());
}

TEST_F(AgeTest, WhatRequestsTellIsNotAskedForAgain) {
  for (int i = 0; i < 20; ++i) {
    Exchange(contract::AckReq::kNone);
  }
  EXPECT_FALSE(rules::Before(pdc_->clear_asked, pdc_->clear_told))
      << "ahead of it after 2^31 more, a Clear Command would follow each ACK";
  EXPECT_FALSE(pdc_->clear_due());
}

}  // namespace
}  // namespace heddle::soft::transport
