// SPDX-License-Identifier: Apache-2.0
// What a device answers to requests of a peer that is none of ours.
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "hw/sim/base/clock.h"
#include "tests/sim/rtl/answers_fixture.h"

namespace heddle::sim::rtl {
namespace {

using contract::NackCode;
using contract::NextHdr;
using contract::PdsType;
using contract::ReturnCode;
using contract::SesOpcode;
using contract::Statistic;
using contract::wire::SesStd;

// In an untagged IPv4 frame: low bytes of total length and header checksum.
constexpr size_t kLengthInFrame = 14 + 3;
constexpr size_t kChecksumInFrame = 14 + 11;
constexpr size_t kPdsInFrame = 14 + 20 + 8;

INSTANTIATE_TEST_SUITE_P(Device, AnswersTest, testing::Bool(),
                         [](const auto& rtl) {
                           return std::string(rtl.param ? "Rtl" : "Soft");
                         });

TEST_P(AnswersTest, SuccessNamesMessageJobAndLength) {
  OnBothModes([this] {
    for (int i = 0; i < 3; ++i) {
      device_->PostReceive(1024);
      SesStd ses = Whole(SesOpcode::kSend, 100);
      ExpectSuccess(Ask(ses, Pattern(100)), ses);
      ses = Whole(SesOpcode::kWrite, 1024);
      ExpectSuccess(Ask(ses, Pattern(1024)), ses);
      ASSERT_TRUE(Received());
    }
    // Each packet of a longer one.
    SesStd ses = Whole(SesOpcode::kWrite, kMtu + 100);
    ses.eom = 0;
    ExpectSuccess(Ask(ses, Pattern(kMtu)), ses);
    ses.som = 0;
    ses.eom = 1;
    ses.header_data = 0;
    ses.payload_length = 100;
    ses.message_offset = kMtu;
    ExpectSuccess(Ask(ses, Pattern(100)), ses);
  });
}

// The device is the initiator.
TEST_P(AnswersTest, EachFormOfSuccessIsTaken) {
  using contract::SesResponse;
  constexpr uint32_t kPort = 300;
  constexpr uint32_t kBytes = 100;
  ASSERT_TRUE(peer_->Claim(kPort));
  device_->endpoint->AddPeer(device::kIpA, device::Node::GrantOf(kPort));
  struct Form {
    SesResponse opcode;
    ReturnCode code;
    bool named;  // With message id, JobID and length.
  };
  std::optional<uint32_t> last;
  for (const Form& form :
       {Form{SesResponse::kDefaultResponse, ReturnCode::kOk, true},
        Form{SesResponse::kDefaultResponse, ReturnCode::kNull, false},
        Form{SesResponse::kResponse, ReturnCode::kOk, true}}) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(form.opcode) << ' '
                                    << static_cast<int>(form.code));
    device_->PostSend(0, kBytes);
    PeerPacket request = Next();
    while (last && request.request.psn == *last && !HasFailure()) {
      request = Next();  // It was sent again before its ACK came.
    }
    ASSERT_EQ(request.next_hdr, NextHdr::kRequestStd);
    last = request.request.psn;
    EXPECT_EQ(request.ses.opcode, SesOpcode::kSend);
    EXPECT_NE(request.ses.message_id, 0);
    contract::wire::SesResponse response;
    response.opcode = form.opcode;
    response.return_code = form.code;
    if (form.named) {
      response.message_id = request.ses.message_id;
      response.job_id = request.ses.job_id;
      response.modified_length = kBytes;
    }
    peer_->Acknowledge(request.request, response);
    const uint64_t deadline = base::MonotonicNs() + device::kLimitNs;
    std::optional<Completion> sent;
    while (!sent && base::MonotonicNs() < deadline) {
      device_->Step();
      sent = device_->endpoint->PollTx();
    }
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->status, Status::kOk);
  }
}

TEST_P(AnswersTest, AnswerToADuplicateIsADefaultResponse) {
  OnBothModes([this] {
    const SesStd ses = Whole(SesOpcode::kWrite, 8);
    ExpectSuccess(Ask(ses, Pattern(8)), ses);
    --peer_->psn;
    const PeerPacket again = Ask(ses, Pattern(8));
    ExpectAck(again);
    EXPECT_EQ(again.response.opcode, contract::SesResponse::kDefaultResponse);
  });
}

TEST_P(AnswersTest, DataOfAReadNameIt) {
  OnBothModes([this] {
    for (const uint32_t bytes : {8U, 64U, kMtu}) {
      for (const bool eom : {true, false}) {
        SCOPED_TRACE(testing::Message() << bytes << " bytes, eom " << eom);
        SesStd ses = Whole(SesOpcode::kRead, bytes);
        ses.buffer_offset = 3;
        ses.eom = eom ? 1 : 0;
        PeerPacket data = Ask(ses);
        if (data.next_hdr != NextHdr::kResponseData) {
          if (data.type == PdsType::kAck || data.type == PdsType::kAckCc) {
            ExpectSuccess(data, ses);
          }
          data = Next();
        }
        ASSERT_EQ(data.next_hdr, NextHdr::kResponseData);
        EXPECT_EQ(data.data.opcode, contract::SesResponse::kResponseWData);
        EXPECT_EQ(data.data.return_code, ReturnCode::kOk);
        EXPECT_EQ(data.data.response_message_id, ses.message_id);
        EXPECT_EQ(data.data.read_request_message_id, ses.message_id);
        EXPECT_EQ(data.data.job_id, ses.job_id);
        EXPECT_EQ(data.data.modified_length, bytes);
        EXPECT_EQ(data.data.message_offset, 0U);
        EXPECT_TRUE(MemoryIs(3, data.payload));
        EXPECT_EQ(data.payload.size(), bytes);
        // Its own PDC each: nothing of it is acknowledged.
        peer_->Begin(bytes % 2 == 0);
      }
    }
  });
}

TEST_P(AnswersTest, NoOpIsAnsweredWithoutAnEndpoint) {
  OnBothModes([this] {
    ExpectAlive();  // A SYN is routed by its endpoint.
    SesStd ses = Whole(SesOpcode::kNoOp, 0);
    ses.rel = 1;
    ses.pid_on_fep = 77;
    ses.resource_index = 15;
    ses.job_id = 99;
    ExpectSuccess(Ask(ses), ses);
    ses.message_id = 0;
    ExpectSuccess(Ask(ses), ses);
    ExpectError(Ask(ses, Pattern(4)), ses, ReturnCode::kUnsupportedSize);
    ses.request_length = 4;
    ExpectError(Ask(ses, Pattern(4)), ses, ReturnCode::kUnsupportedSize);
    ExpectAlive();
  });
}

// {JobID or rel=0, PIDonFEP, RI} of a request, by the first of these that the
// device does not have.
TEST_P(AnswersTest, NameOfNoContextIsAnsweredByItsFirstUnknownPart) {
  std::string error;
  const uint32_t job = BareEndpointOptions{}.job_id;
  const auto relative = BareEndpoint::Create(
      *device_->device, *device_->admin,
      {.port = 201, .job_id = job + 1, .relative = true}, &error);
  ASSERT_NE(relative, nullptr) << error;
  struct Name {
    uint8_t rel;
    uint32_t job_id;
    uint16_t pid;
    uint16_t ri;
    ReturnCode code;
  };
  const std::array<Name, 7> names = {{
      {0, job, 201, 1, ReturnCode::kBadPid},
      {0, job + 1, 201, 1, ReturnCode::kBadPid},
      {0, job, 200, 2, ReturnCode::kBadIndex},
      {1, job, 200, 1, ReturnCode::kBadJobId},
      {1, job + 2, 201, 1, ReturnCode::kBadJobId},
      {1, job + 1, 200, 1, ReturnCode::kBadPid},
      {1, job + 1, 201, 2, ReturnCode::kBadIndex},
  }};
  OnBothModes([&] {
    for (const auto opcode :
         {SesOpcode::kSend, SesOpcode::kWrite, SesOpcode::kRead}) {
      for (const Name& name : names) {
        SCOPED_TRACE(testing::Message()
                     << "opcode " << static_cast<int>(opcode) << " rel "
                     << static_cast<int>(name.rel) << " job " << name.job_id
                     << " pid " << name.pid << " ri " << name.ri);
        ExpectAlive();  // A SYN is routed by its endpoint.
        SesStd ses = Whole(opcode, 8);
        ses.rel = name.rel;
        ses.job_id = name.job_id;
        ses.pid_on_fep = name.pid;
        ses.resource_index = name.ri;
        const Bytes payload = opcode == SesOpcode::kRead ? Bytes() : Pattern(8);
        ses.ri_generation = 3;  // Of a context that is not there.
        ExpectError(Ask(ses, payload), ses, name.code);
        ses.request_length = 4;  // What contradicts itself comes first.
        if (opcode != SesOpcode::kRead) {
          ses.message_id = ++message_id_;
          ExpectError(Ask(ses, payload), ses, ReturnCode::kOpViolation);
        }
      }
    }
  });
}

// The address and two jobs have an endpoint at one place of one device.
TEST_P(AnswersTest, RequestsReachTheEndpointOfTheirSpace) {
  std::string error;
  const uint32_t job = BareEndpointOptions{}.job_id;
  const auto open = [&](uint32_t job_id) {
    return BareEndpoint::Create(
        *device_->device, *device_->admin,
        {.port = 200, .job_id = job_id, .relative = true}, &error);
  };
  const auto own = open(job);
  const auto other = open(job + 1);
  ASSERT_TRUE(own != nullptr && other != nullptr) << error;
  EXPECT_EQ(own->grant().pid_on_fep, device_->endpoint->grant().pid_on_fep);
  EXPECT_EQ(open(job), nullptr) << "the job has it already";
  struct Place {
    BareEndpoint* endpoint;
    uint8_t rel;
    uint32_t job_id;
  };
  const std::array<Place, 3> places = {{{device_->endpoint.get(), 0, job},
                                        {own.get(), 1, job},
                                        {other.get(), 1, job + 1}}};
  OnBothModes([&] {
    for (size_t i = 0; i < places.size(); ++i) {
      SCOPED_TRACE(i);
      // The first request opens a PDC, and so is routed by its name.
      peer_->Begin(i % 2 == 0);
      const size_t at = 64 * i;
      EXPECT_TRUE(
          places[i].endpoint->rx().TryPush(1, device_->buffer.iova() + at, 64));
      places[i].endpoint->rx().Publish();
      SesStd ses = Whole(SesOpcode::kSend, 8);
      ses.rel = places[i].rel;
      ses.job_id = places[i].job_id;
      ExpectSuccess(Ask(ses, Pattern(8)), ses);
      std::optional<Completion> done;
      const uint64_t deadline = base::MonotonicNs() + device::kLimitNs;
      while (!done && base::MonotonicNs() < deadline) {
        device_->Step();
        done = places[i].endpoint->PollRx();
      }
      ASSERT_TRUE(done);
      EXPECT_EQ(done->status, Status::kOk);
      EXPECT_TRUE(MemoryIs(at, Pattern(8)));
      std::memset(device_->buffer.data(), 0, 64 * places.size());
    }
  });
}

// A region serves its job, and one bound to an endpoint that one alone.
TEST_P(AnswersTest, RegionOfARelativeEndpointIsFoundThroughItOnly) {
  std::string error;
  const uint32_t job = BareEndpointOptions{}.job_id;
  const auto relative = BareEndpoint::Create(
      *device_->device, *device_->admin,
      {.port = 200, .job_id = job, .relative = true}, &error);
  ASSERT_NE(relative, nullptr) << error;
  contract::AdminRegisterRegion command = {};
  command.opcode = contract::AdminOpcode::kRegisterRegion;
  command.endpoint = relative->grant().endpoint;
  command.iova = ToInteger(device_->buffer.iova());
  command.length = kRegionBytes;
  command.job_id = job;
  command.flags = contract::kRegionFlagRemoteWrite |
                  contract::kRegionFlagProviderKey |
                  contract::kRegionFlagEndpoint;
  const auto answer =
      device_->admin->Execute(std::bit_cast<contract::AdminCommand>(command));
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer.value().status, contract::AdminStatus::kOk);
  OnBothModes([&] {
    ExpectAlive();
    SesStd ses = Whole(SesOpcode::kWrite, 8);
    ses.match_bits = answer.value().key;
    ExpectError(Ask(ses, Pattern(8)), ses, ReturnCode::kBadMkey);
    ses.rel = 1;
    ses.message_id = ++message_id_;
    ExpectSuccess(Ask(ses, Pattern(8)), ses);
    EXPECT_TRUE(MemoryBecomes(0, Pattern(8)));
  });
  const contract::AdminCommand end = {
      .opcode = contract::AdminOpcode::kDeregisterRegion,
      .object = answer.value().object};
  EXPECT_EQ(device_->admin->Execute(end).value().status,
            contract::AdminStatus::kOk);
}

TEST_P(AnswersTest, NoOpLeavesTheMessageThatIsOpenAlone) {
  device_->PostReceive(2 * kMtu);
  SesStd ses = Whole(SesOpcode::kSend, kMtu + 8);
  ses.eom = 0;
  ExpectSuccess(Ask(ses, Pattern(kMtu)), ses);
  const SesStd no_op = Whole(SesOpcode::kNoOp, 0);
  ExpectSuccess(Ask(no_op), no_op);
  ses.som = 0;
  ses.eom = 1;
  ses.payload_length = 8;
  ses.message_offset = kMtu;
  ExpectSuccess(Ask(ses, Pattern(8)), ses);
  const auto done = Received();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, Status::kOk);
  EXPECT_EQ(done->length, kMtu + 8);
}

TEST_P(AnswersTest, DeferrableSendIsASend) {
  OnBothModes([this] {
    device_->PostReceive(2 * kMtu);
    SesStd ses = Whole(SesOpcode::kDeferrableSend, kMtu + 100);
    ses.buffer_offset = 0x0000'0001'0000'0002;  // Two tokens.
    ses.eom = 0;
    ExpectSuccess(Ask(ses, Pattern(kMtu)), ses);
    ses.som = 0;
    ses.eom = 1;
    ses.payload_length = 100;
    ses.message_offset = kMtu;
    ExpectSuccess(Ask(ses, Pattern(100)), ses);
    const auto done = Received();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, Status::kOk);
    EXPECT_EQ(done->opcode, contract::Opcode::kSend);
    EXPECT_EQ(done->length, kMtu + 100);
    EXPECT_TRUE(MemoryIs(0, Pattern(kMtu)));
    EXPECT_TRUE(MemoryIs(kMtu, Pattern(100)));
  });
}

// A short length with OK means that a deferrable send is put off.
TEST_P(AnswersTest, CutDeferrableSendIsNotPutOff) {
  OnBothModes([this] {
    device_->PostReceive(64);
    const SesStd ses = Whole(SesOpcode::kDeferrableSend, 100);
    const PeerPacket answer = Ask(ses, Pattern(100));
    ExpectAck(answer);
    EXPECT_EQ(answer.response.opcode, contract::SesResponse::kDefaultResponse);
    const auto done = Received();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, Status::kTruncated);
  });
}

TEST_P(AnswersTest, OperationsThatADeviceDoesNotHaveAreAnsweredSo) {
  OnBothModes([this] {
    // A rendezvous has 24 bytes more of header, an atomic 4.
    for (const auto& [opcode, more] :
         {std::pair{SesOpcode::kRendezvousSend, 24},
          std::pair{SesOpcode::kRendezvousTsend, 24},
          std::pair{SesOpcode::kAtomic, 4},
          std::pair{SesOpcode::kFetchingAtomic, 4},
          std::pair{SesOpcode::kDatagramSend, 0}}) {
      SCOPED_TRACE(static_cast<int>(opcode));
      const SesStd ses = Whole(opcode, 8);
      ExpectError(Ask(ses, Pattern(8U + static_cast<size_t>(more))), ses,
                  ReturnCode::kUnsupportedOp);
    }
    ExpectAlive();
  });
}

// The device `soft` has them, but the endpoint no context for them.
TEST_P(AnswersTest, TaggedSendsAreRefusedByAnEndpointWithoutTags) {
  OnBothModes([this] {
    for (const auto opcode :
         {SesOpcode::kTaggedSend, SesOpcode::kDeferrableTsend}) {
      SCOPED_TRACE(static_cast<int>(opcode));
      const SesStd ses = Whole(opcode, 8);
      ExpectError(Ask(ses, Pattern(8)), ses, CodeWithoutTags(opcode));
    }
    ExpectAlive();
  });
}

TEST_P(AnswersTest, DatagramsAreCountedAndDropped) {
  namespace wire = contract::wire;
  for (const auto next_hdr : {NextHdr::kRequestMedium, NextHdr::kRequestStd}) {
    const uint64_t before = Count(Statistic::kDropPdsType);
    wire::PdsPrologue prologue;
    prologue.type = PdsType::kUudReq;
    prologue.next_hdr = next_hdr;
    SesStd ses = Whole(SesOpcode::kDatagramSend, 8);
    Bytes bytes(4 + SesStd::kBytes + 8);
    prologue.Encode(bytes.data());
    ses.Encode(bytes.data() + 4);
    if (next_hdr == NextHdr::kRequestMedium) {
      bytes.resize(4 + 32 + 8);
    }
    peer_->Send(bytes);
    ExpectAlive();  // The first answer is that of a later request.
    EXPECT_EQ(Count(Statistic::kDropPdsType), before + 1);
  }
}

TEST_P(AnswersTest, AnotherGenerationIsAnsweredAndTouchesNothing) {
  OnBothModes([this] {
    const Bytes before(8, 0x55);
    std::memset(device_->buffer.data(), 0x55, 8);
    device_->PostReceive(8);
    for (const auto opcode :
         {SesOpcode::kSend, SesOpcode::kWrite, SesOpcode::kRead}) {
      SCOPED_TRACE(static_cast<int>(opcode));
      SesStd ses = Whole(opcode, 8);
      ses.ri_generation = 3;
      const PeerPacket answer =
          Ask(ses, opcode == SesOpcode::kRead ? Bytes() : Pattern(8));
      ExpectError(answer, ses, ReturnCode::kBadGeneration);
      EXPECT_EQ(answer.response.ri_generation, 0);
    }
    EXPECT_TRUE(MemoryIs(0, before));
    // The buffer is there for the next one.
    const SesStd ses = Whole(SesOpcode::kSend, 8);
    ExpectSuccess(Ask(ses, Pattern(8)), ses);
    const auto done = Received();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, Status::kOk);
  });
}

TEST_P(AnswersTest, SizeAndRangeHaveCodesOfTheirOwn) {
  OnBothModes([this] {
    for (const auto opcode : {SesOpcode::kWrite, SesOpcode::kRead}) {
      const bool read = opcode == SesOpcode::kRead;
      SesStd ses = Whole(opcode, kRegionBytes + 1);
      ses.eom = 0;
      ExpectError(Ask(ses, read ? Bytes() : Pattern(kMtu)), ses,
                  ReturnCode::kUnsupportedSize);
      ses = Whole(opcode, 8);
      ses.buffer_offset = kRegionBytes - 7;
      ExpectError(Ask(ses, read ? Bytes() : Pattern(8)), ses,
                  ReturnCode::kBadAddr);
    }
  });
}

TEST_P(AnswersTest, PacketsThatContradictThemselvesAreViolations) {
  OnBothModes([this] {
    const Bytes before(64, 0x55);
    std::memset(device_->buffer.data(), 0x55, 64);
    device_->PostReceive(64);
    for (const auto opcode :
         {SesOpcode::kSend, SesOpcode::kDeferrableSend, SesOpcode::kWrite}) {
      for (const size_t payload : {size_t{0}, size_t{7}, size_t{9}}) {
        SCOPED_TRACE(testing::Message()
                     << static_cast<int>(opcode) << ", " << payload);
        const SesStd ses = Whole(opcode, 8);
        ExpectError(Ask(ses, Pattern(payload)), ses, ReturnCode::kOpViolation);
      }
      SesStd ses = Whole(opcode, kMtu + 8);  // More than a payload MTU.
      ExpectError(Ask(ses, Pattern(kMtu + 8)), ses, ReturnCode::kOpViolation);
      ses = Whole(opcode, 8);  // There is more to come than there is.
      ses.eom = 0;
      ExpectError(Ask(ses, Pattern(8)), ses, ReturnCode::kOpViolation);
    }
    SesStd ses = Whole(SesOpcode::kRead, 8);  // A READ carries nothing.
    ExpectError(Ask(ses, Pattern(8)), ses, ReturnCode::kOpViolation);
    ses = Whole(SesOpcode::kRead, 2 * kMtu);  // More than a packet may ask for.
    ExpectError(Ask(ses), ses, ReturnCode::kOpViolation);
    EXPECT_TRUE(MemoryIs(0, before));
    ses = Whole(SesOpcode::kSend, 8);
    ExpectSuccess(Ask(ses, Pattern(8)), ses);
    const auto done = Received();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, Status::kOk);
  });
}

TEST_P(AnswersTest, AnotherVersionIsUncorrectable) {
  OnBothModes([this] {
    constexpr size_t kAt = 4096;  // ExpectAlive writes elsewhere.
    const Bytes before(64, 0x55);
    std::memset(device_->buffer.data() + kAt, 0x55, 64);
    for (const auto opcode : {SesOpcode::kSend, SesOpcode::kWrite,
                              SesOpcode::kNoOp, SesOpcode::kAtomic}) {
      const uint64_t dropped = Count(Statistic::kDropSes);
      SesStd ses = Whole(opcode, opcode == SesOpcode::kNoOp ? 0 : 8);
      ses.ver = 1;
      ses.buffer_offset = opcode == SesOpcode::kWrite ? kAt : 0;
      ExpectError(Ask(ses, Pattern(ses.request_length)), ses,
                  ReturnCode::kUncor);
      EXPECT_EQ(Count(Statistic::kDropSes), dropped + 1);
    }
    EXPECT_TRUE(MemoryIs(kAt, before));
    ExpectAlive();
  });
}

TEST_P(AnswersTest, EachPacketOfACutMessageSaysHowMuchIsTaken) {
  static constexpr uint32_t kRoom = kMtu + 64;
  OnBothModes([this] {
    device_->PostReceive(kRoom);
    SesStd ses = Whole(SesOpcode::kSend, 3 * kMtu);
    for (uint32_t i = 0; i < 3; ++i) {
      ses.som = i == 0 ? 1 : 0;
      ses.eom = i == 2 ? 1 : 0;
      ses.header_data = 0;
      if (i != 0) {
        ses.payload_length = kMtu;
        ses.message_offset = i * kMtu;
      }
      const PeerPacket answer = Ask(ses, Pattern(kMtu));
      ExpectAck(answer);
      EXPECT_EQ(answer.response.opcode, contract::SesResponse::kResponse);
      EXPECT_EQ(answer.response.return_code, ReturnCode::kOk);
      EXPECT_EQ(answer.response.modified_length, kRoom) << i;
      EXPECT_EQ(answer.ack.req, contract::AckReq::kNone);
    }
    const auto done = Received();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, Status::kTruncated);
    EXPECT_EQ(done->length, kRoom);
  });
}

TEST_P(AnswersTest, ControlPacketsHaveOneOutcomeEach) {
  using contract::CpType;
  OnBothModes([this] {
    ExpectAlive();
    peer_->Send(peer_->ControlPacket(CpType::kProbe, 0xbeef));
    const PeerPacket told = Next();
    ASSERT_EQ(told.type, PdsType::kAck);
    EXPECT_EQ(told.ack.p, 1);
    EXPECT_EQ(told.ack.probe_opaque, 0xbeef);
    EXPECT_EQ(told.next_hdr, NextHdr::kNone);
    peer_->Send(peer_->ControlPacket(CpType::kNegotiation, 0, 4));
    const PeerPacket offer = Next();
    ASSERT_EQ(offer.type, PdsType::kCp);
    EXPECT_EQ(offer.control.cp_type, CpType::kNegotiation);
    EXPECT_EQ(offer.control.psn, peer_->psn - 1);
    EXPECT_EQ(offer.payload, (Bytes{1, 2, 0, 0, 0, 0, 0, 0}));
    const uint64_t dropped = Count(Statistic::kDropPdsType);
    for (const CpType type :
         {CpType::kNoop, CpType::kClearRequest, CpType::kCloseRequest,
          CpType::kCredit, CpType::kCreditRequest, CpType{10}, CpType{15}}) {
      peer_->Send(peer_->ControlPacket(type));
    }
    ExpectAlive();  // The first answer is that of a later request.
    EXPECT_EQ(Count(Statistic::kDropPdsType), dropped + 7);
  });
}

TEST_P(AnswersTest, RestOfAMessageInErrorGetsItsCode) {
  OnBothModes([this] {
    SesStd ses = Whole(SesOpcode::kSend, 3 * kMtu);
    ses.job_id = 9;
    ses.eom = 0;
    ExpectError(Ask(ses, Pattern(kMtu)), ses, ReturnCode::kBadJobId);
    ses.som = 0;
    ses.payload_length = kMtu;
    for (uint32_t i = 1; i < 3; ++i) {
      ses.message_offset = i * kMtu;
      ses.eom = i == 2 ? 1 : 0;
      const PeerPacket answer = Ask(ses, Pattern(kMtu));
      ExpectAck(answer);
      EXPECT_EQ(answer.response.opcode, contract::SesResponse::kResponse);
      EXPECT_EQ(answer.response.return_code, ReturnCode::kBadJobId);
      EXPECT_EQ(answer.response.message_id, ses.message_id);
    }
    ExpectAlive();
  });
}

TEST_P(AnswersTest, ViolationInTheMidstOfAMessageEndsIt) {
  device_->PostReceive(3 * kMtu);
  SesStd ses = Whole(SesOpcode::kSend, 3 * kMtu);
  ses.eom = 0;
  ExpectSuccess(Ask(ses, Pattern(kMtu)), ses);
  ses.som = 0;
  ses.payload_length = kMtu;
  ses.message_offset = kMtu;
  ExpectError(Ask(ses, Pattern(kMtu - 1)), ses, ReturnCode::kOpViolation);
  const auto done = Received();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, Status::kInitiatorError);
  ses.message_offset = 2 * kMtu;
  ses.eom = 1;
  const PeerPacket rest = Ask(ses, Pattern(kMtu));
  EXPECT_EQ(rest.response.return_code, ReturnCode::kOpViolation);
  ExpectAlive();
}

TEST_P(AnswersTest, GapIsReportedOnceWithThePsnExpected) {
  ExpectAlive();
  const uint32_t missing = peer_->psn++;
  SesStd ses = Whole(SesOpcode::kWrite, 8);
  const uint32_t early = peer_->psn;
  const PeerPacket nack = Ask(ses, Pattern(8));
  ASSERT_EQ(nack.type, PdsType::kNack);
  EXPECT_EQ(nack.nack.nack_code, NackCode::kRodOoo);
  EXPECT_EQ(nack.nack.nack_psn, early);
  EXPECT_EQ(nack.nack.payload, missing);
  // A peer that sends again only what was named uses up its retries.
  for (int i = 0; i < 5; ++i) {
    peer_->psn = early;
    peer_->Request(ses, Pattern(8), /*retx=*/true);
    peer_->psn = early + 1;
    peer_->Request(ses, Pattern(8));
  }
  peer_->psn = missing;
  ses = Whole(SesOpcode::kWrite, 8);
  ExpectSuccess(Ask(ses, Pattern(8)), ses);
  // Another gap is another report,
  peer_->psn = early + 1;
  const PeerPacket other = Ask(ses, Pattern(8));
  ASSERT_EQ(other.type, PdsType::kNack);
  EXPECT_EQ(other.nack.nack_code, NackCode::kRodOoo);
  EXPECT_EQ(other.nack.payload, early);
  // and so is each pass that loses what is missing again.
  for (int pass = 0; pass < 3; ++pass) {
    for (uint32_t i = 1; i <= 5; ++i) {
      peer_->psn = early + i;
      peer_->Request(ses, Pattern(8), /*retx=*/true);
    }
    const PeerPacket again = Next();
    ASSERT_EQ(again.type, PdsType::kNack);
    EXPECT_EQ(again.nack.nack_code, NackCode::kRodOoo);
    EXPECT_EQ(again.nack.nack_psn, early + 2);
    EXPECT_EQ(again.nack.payload, early);
  }
  peer_->psn = early;
  ExpectSuccess(Ask(ses, Pattern(8)), ses);
}

// UET 3.4. All of a NACK's bytes, and where it goes.
TEST_P(AnswersTest, TrimmedRequestIsNackedAndTakenWhenItComesWhole) {
  OnBothModes([this] {
    ExpectAlive();
    const SesStd ses = Whole(SesOpcode::kWrite, 64);
    for (const uint8_t dscp : {kDscpTrimmed, kDscpTrimmedLasthop}) {
      peer_->TrimmedRequest(ses, dscp);
      const PeerPacket packet = Next();
      ASSERT_EQ(packet.type, PdsType::kNack);
      contract::wire::PdsNack nack;
      nack.type = PdsType::kNack;
      nack.nack_code =
          dscp == kDscpTrimmed ? NackCode::kTrimmed : NackCode::kTrimmedLasthop;
      nack.nack_psn = peer_->psn;
      nack.spdcid = peer_->tpdcid();
      nack.dpdcid = peer_->spdcid();
      Bytes wanted(contract::wire::PdsNack::kBytes);
      nack.Encode(wanted.data());
      Bytes got(wanted.size());
      packet.nack.Encode(got.data());
      EXPECT_EQ(got, wanted);
      EXPECT_EQ(packet.entropy, WirePeer::kEntropy);
      EXPECT_EQ(packet.dscp, 0) << "that of the requests before";
    }
    ExpectSuccess(Ask(ses, Pattern(64)), ses);
  });
  EXPECT_EQ(Count(Statistic::kRxTrimmed), 4U);
  EXPECT_EQ(Count(Statistic::kDropTrimmed), 0U);
}

TEST_P(AnswersTest, TrimmedDuplicateIsAcknowledged) {
  OnBothModes([this] {
    ExpectAlive();
    --peer_->psn;
    peer_->TrimmedRequest(Whole(SesOpcode::kWrite, 8), kDscpTrimmed);
    ++peer_->psn;
    const PeerPacket again = Next();
    ExpectAck(again);
    EXPECT_LE(again.response.return_code, ReturnCode::kOk);
    EXPECT_EQ(again.dscp, 0);
  });
}

TEST_P(AnswersTest, WhatIsLeftOfOtherTrimmedPacketsIsDiscarded) {
  uint64_t count = 0;
  uint64_t cut = 0;
  OnBothModes([&] {
    ExpectAlive();
    const SesStd ses = Whole(SesOpcode::kWrite, 64);
    const auto discarded = [&](Bytes bytes) {
      frame::Frame frame = peer_->FrameOf(bytes);
      EXPECT_TRUE(fault::TrimRequest(kDscpTrimmed, &frame));
      peer_->SendFrame(frame);
      ExpectAlive();  // And that nothing else was answered.
      EXPECT_EQ(Count(Statistic::kDropTrimmed), ++count);
    };
    const auto request = [&](auto change) {
      Bytes bytes = peer_->RequestPacket(ses, {});
      auto pds = contract::wire::PdsRequest::Decode(bytes.data());
      change(pds);
      pds.Encode(bytes.data());
      return bytes;
    };
    discarded(request([](auto& pds) { pds.psn += 600; }));
    discarded(request([](auto& pds) { pds.psn -= 0x9000; }));
    discarded(request([](auto& pds) { pds.dpdcid ^= 1; }));
    discarded(request([](auto& pds) { pds.spdcid ^= 1; }));
    for (const PdsType type : {PdsType::kAck, PdsType::kNack, PdsType::kCp}) {
      Bytes bytes = peer_->RequestPacket(ses, {});
      frame::Frame frame = peer_->FrameOf(bytes);
      EXPECT_TRUE(fault::TrimRequest(kDscpTrimmed, &frame));
      frame[kPdsInFrame] = static_cast<uint8_t>(
          static_cast<unsigned>(type) << 3 | (frame[kPdsInFrame] & 7U));
      peer_->SendFrame(frame);
      ExpectAlive();
      EXPECT_EQ(Count(Statistic::kDropTrimmed), ++count);
    }
    // Fewer than 24 bytes behind the IP header.
    frame::Frame frame = peer_->FrameOf(peer_->RequestPacket(ses, {}));
    EXPECT_TRUE(fault::TrimRequest(kDscpTrimmed, &frame));
    --frame[kLengthInFrame];
    // The checksum of a sum that is smaller by one.
    const unsigned sum =
        (frame[kChecksumInFrame - 1] << 8U | frame[kChecksumInFrame]) + 1U;
    frame[kChecksumInFrame - 1] = static_cast<uint8_t>(sum >> 8);
    frame[kChecksumInFrame] = static_cast<uint8_t>(sum);
    peer_->SendFrame(frame);
    ExpectAlive();
    EXPECT_EQ(Count(Statistic::kDropTruncated), ++cut);
  });
  EXPECT_EQ(Count(Statistic::kRxTrimmed), 0U);
}

}  // namespace
}  // namespace heddle::sim::rtl
