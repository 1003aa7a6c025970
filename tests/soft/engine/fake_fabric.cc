// SPDX-License-Identifier: Apache-2.0
#include "tests/soft/engine/fake_fabric.h"

#include <algorithm>
#include <utility>

namespace heddle::soft::engine {

using contract::ReturnCode;
using transport::MessageCarrier;
using transport::MessageIndex;
using transport::PdcName;
using transport::Request;
using transport::ReturnData;
using transport::TransportClient;
using transport::Verdict;

namespace {

constexpr size_t kRoom = 8192 + 64;

}  // namespace

MessageCarrier* FakeFabric::Add(TransportClient* client) {
  carriers_.push_back(
      std::make_unique<Carrier>(this, carriers_.size(), client));
  return carriers_.back().get();
}

FakeFabric::Pdc& FakeFabric::PdcOf(size_t node, const PdcName& name) {
  for (auto& pdc : pdcs_) {
    if (pdc->from == node && pdc->name == name) {
      return *pdc;
    }
  }
  pdcs_.push_back(std::make_unique<Pdc>());
  pdcs_.back()->from = node;
  pdcs_.back()->name = name;
  pdcs_.back()->id = static_cast<uint16_t>(pdcs_.size());
  return *pdcs_.back();
}

MessageCarrier::PostOutcome FakeFabric::Carrier::Post(MessageIndex message,
                                                      const PdcName& name,
                                                      const wire::Path& path,
                                                      uint32_t packets,
                                                      bool expects_data) {
  if (full) {
    return PostOutcome::kFull;
  }
  EXPECT_EQ(known.count(message), 0u) << "index " << message << " in use";
  EXPECT_EQ(path.destination, name.peer);
  EXPECT_GE(packets, 1u);
  known[message] = {packets, expects_data, false};
  posted.push_back({message, name, path, packets});
  fabric_->PdcOf(node_, name)
      .queue.push_back({message, packets, 0, expects_data});
  return PostOutcome::kQueued;
}

void FakeFabric::Carrier::Finish(MessageIndex message) {
  const auto at = known.find(message);
  ASSERT_NE(at, known.end()) << "message " << message << " is not known";
  EXPECT_TRUE(at->second.expects_data);
  EXPECT_FALSE(at->second.finished) << "finished twice";
  at->second.finished = true;
  fabric_->Forget(node_, message);
}

void FakeFabric::Carrier::Fail(MessageIndex message) {
  const auto at = known.find(message);
  ASSERT_NE(at, known.end()) << "message " << message << " is not known";
  EXPECT_TRUE(at->second.expects_data);
  EXPECT_TRUE(at->second.refused);
  EXPECT_EQ(at->second.left, 0u) << "not all is acknowledged";
  at->second.failed = true;
}

void FakeFabric::Carrier::Hold(MessageIndex message) {
  const auto at = known.find(message);
  ASSERT_NE(at, known.end()) << "message " << message << " is not known";
  EXPECT_NE(at->second.left, 0u) << "all is acknowledged";
  at->second.expects_data = at->second.parked = true;
}

void FakeFabric::Carrier::Resume(MessageIndex message) {
  const auto at = known.find(message);
  ASSERT_NE(at, known.end()) << "message " << message << " is not known";
  EXPECT_TRUE(at->second.parked);
  EXPECT_EQ(at->second.left, 0u) << "not all is acknowledged";
  known.erase(at);
  const auto last = std::find_if(
      posted.rbegin(), posted.rend(),
      [message](const Posted& one) { return one.message == message; });
  ASSERT_NE(last, posted.rend());
  const Posted again = *last;
  (void)Post(message, again.name, again.path, again.packets, false);
}

bool FakeFabric::Carrier::PostReturn(uint16_t pdc, const ReturnData& data) {
  Pdc& target = *fabric_->pdcs_.at(pdc - 1U);
  if (target.returns.size() >= return_records) {
    return false;
  }
  target.returns.push_back(data);
  return true;
}

void FakeFabric::Forget(size_t node, MessageIndex index) {
  auto& known = carriers_[node]->known;
  const auto at = known.find(index);
  if (at != known.end() && at->second.left == 0 &&
      (!at->second.expects_data || at->second.finished)) {
    known.erase(at);
  }
}

bool FakeFabric::Send(Pdc& pdc) {
  if (pdc.queue.empty() || hold_requests) {
    return false;
  }
  Message& message = pdc.queue.front();
  Carrier& carrier = *carriers_[pdc.from];
  std::vector<uint8_t> bytes(kRoom);
  const TransportClient::Built built =
      carrier.client_->BuildRequest(message.index, message.built, bytes);
  EXPECT_GT(built.bytes, 0u);
  carrier.unheard.push_back(built.unheard);
  bytes.resize(built.bytes);
  pdc.flying.push_back(
      {message.index, message.built, built.next_hdr, std::move(bytes)});
  ++message.built;
  if (built.last) {
    carrier.known[message.index].left -= message.packets - message.built;
    message.packets = message.built;
  }
  if (message.built == message.packets) {
    pdc.queue.erase(pdc.queue.begin());
  }
  return true;
}

bool FakeFabric::Deliver(Pdc& pdc) {
  if (pdc.flying.empty()) {
    return false;
  }
  const size_t at = pdc.name.ordered || in_order ? 0 : Pick(pdc.flying.size());
  const Packet packet = pdc.flying[at];
  const auto target = static_cast<size_t>(pdc.name.peer.lo);
  if (target >= carriers_.size()) {
    return false;  // Nobody is there.
  }
  Request request;
  request.source = {pdc.from, 0, false};
  request.pdc = pdc.id;
  request.spdcid = pdc.id;
  request.ordered = pdc.name.ordered;
  request.next_hdr = packet.next_hdr;
  request.ses = packet.bytes;
  const Verdict verdict =
      carriers_[target]->client_->OnRequest(request, guarantees);
  if (verdict.kind == Verdict::Kind::kRefused) {
    ++refusals[verdict.nack];
    return false;
  }
  if (verdict.kind == Verdict::Kind::kDropped) {
    ++dropped;
    return false;
  }
  if (verdict.respond && verdict.response.return_code > ReturnCode::kOk) {
    ++errors;
    // The first of a message must not be lost.
    bool& denied = carriers_[pdc.from]->known[packet.message].denied;
    EXPECT_TRUE(denied || verdict.guaranteed || hostile)
        << "an error that may be lost";
    denied = true;
  }
  EXPECT_TRUE(verdict.data.empty() || (verdict.respond && verdict.guaranteed));
  pdc.answers.push_back({packet.message,
                         verdict.respond,
                         verdict.response,
                         {verdict.data.begin(), verdict.data.end()},
                         verdict.data_offset});
  pdc.flying.erase(pdc.flying.begin() + static_cast<ptrdiff_t>(at));
  return true;
}

bool FakeFabric::Answered(Pdc& pdc) {
  if (pdc.answers.empty() || hold_answers) {
    return false;
  }
  const Answer answer = std::move(pdc.answers.front());
  pdc.answers.erase(pdc.answers.begin());
  Carrier& carrier = *carriers_[pdc.from];
  State& known = carrier.known[answer.message];
  const bool error = answer.response.return_code > ReturnCode::kOk;
  if (answer.respond && !(error && refuses_once && known.refused)) {
    known.refused = known.refused || error;
    carrier.client_->OnResponse(answer.message, answer.response, answer.data,
                                answer.data_offset);
  }
  auto& state = carrier.known[answer.message];
  EXPECT_GT(state.left, 0u);
  --state.left;
  Forget(pdc.from, answer.message);
  carrier.client_->OnAcknowledged(answer.message, 1);
  return true;
}

bool FakeFabric::Return(Pdc& pdc) {
  if (pdc.returns.empty() || hold_returns) {
    return false;
  }
  const auto target = static_cast<size_t>(pdc.name.peer.lo);
  const ReturnData data = pdc.returns.front();
  std::vector<uint8_t> bytes(kRoom);
  const TransportClient::Built built =
      carriers_[target]->client_->BuildReturn(data, bytes);
  bytes.resize(built.bytes);
  if (returns_short != 0 && data.offset == 0) {
    auto header = contract::wire::SesResponseData::Decode(bytes.data());
    header.payload_length =
        static_cast<uint16_t>(header.payload_length - returns_short);
    header.Encode(bytes.data());
    bytes.resize(bytes.size() - returns_short);
  }
  Request request;
  request.source = {target, 0, false};
  request.next_hdr = built.next_hdr;
  request.ses = bytes;
  Carrier& carrier = *carriers_[pdc.from];
  const auto known = carrier.known.find(data.message_id - 1U);
  if (known != carrier.known.end() && !known->second.finished) {
    const Verdict verdict = carrier.client_->OnReturnData(request);
    if (verdict.kind == Verdict::Kind::kRefused) {
      ++refusals[verdict.nack];
      return false;
    }
  }
  for (uint32_t i = 0; i < returns_again; ++i) {
    const auto still = carrier.known.find(data.message_id - 1U);
    if (still != carrier.known.end() && !still->second.finished) {
      (void)carrier.client_->OnReturnData(request);
    }
  }
  pdc.returns.erase(pdc.returns.begin());
  carriers_[target]->client_->OnReturnRetired(data);
  return true;
}

bool FakeFabric::Step() {
  if (pdcs_.empty()) {
    return false;
  }
  // From a random place on, the first thing that can be done.
  const size_t first = Pick(pdcs_.size() * 4);
  for (size_t i = 0; i < pdcs_.size() * 4; ++i) {
    const size_t what = (first + i) % (pdcs_.size() * 4);
    Pdc& pdc = *pdcs_[what / 4];
    const bool done = what % 4 == 0   ? Send(pdc)
                      : what % 4 == 1 ? Deliver(pdc)
                      : what % 4 == 2 ? Answered(pdc)
                                      : Return(pdc);
    if (done) {
      return true;
    }
  }
  return false;
}

void FakeFabric::Drop(size_t node) {
  for (size_t i = 0; i < pdcs_.size(); ++i) {  // One may be added meanwhile.
    Pdc* const pdc = pdcs_[i].get();
    if (pdc->from != node) {
      continue;
    }
    pdc->queue.clear();
    pdc->flying.clear();
    pdc->answers.clear();
    const std::vector<ReturnData> returns = std::exchange(pdc->returns, {});
    const auto target = static_cast<size_t>(pdc->name.peer.lo);
    if (target < carriers_.size()) {
      for (const ReturnData& data : returns) {
        carriers_[target]->client_->OnReturnRetired(data);
      }
      carriers_[target]->client_->OnTargetClosed({node, 0, false}, pdc->id,
                                                 true);
    }
  }
}

std::set<MessageIndex> FakeFabric::Unsent(size_t node) const {
  std::set<MessageIndex> unsent;
  for (const auto& pdc : pdcs_) {
    for (const Message& message : pdc->queue) {
      if (pdc->from == node && message.built == 0) {
        unsent.insert(message.index);
      }
    }
  }
  return unsent;
}

std::map<MessageIndex, FakeFabric::State> FakeFabric::TakeDropped(size_t node) {
  Drop(node);
  // Messages that the node posted upon that stay.
  const std::set<MessageIndex> posted = Unsent(node);
  std::map<MessageIndex, State> taken;
  auto& known = carriers_[node]->known;
  for (auto at = known.begin(); at != known.end();) {
    if (posted.count(at->first) == 0) {
      taken.insert(*at);
      at = known.erase(at);
    } else {
      ++at;
    }
  }
  return taken;
}

void FakeFabric::Abandon(size_t node, contract::Status status,
                         uint16_t detail) {
  for (const auto& [message, state] : TakeDropped(node)) {
    carriers_[node]->client_->OnAbandoned(message, status, detail, true);
  }
}

void FakeFabric::Restart(size_t node) {
  Carrier& carrier = *carriers_[node];
  const std::set<MessageIndex> unsent = Unsent(node);
  const auto known = TakeDropped(node);
  std::map<MessageIndex, size_t> latest;  // Indices are used again.
  for (size_t i = 0; i < carrier.posted.size(); ++i) {
    latest[carrier.posted[i].message] = i;
  }
  for (size_t i = 0; i < carrier.posted.size(); ++i) {
    const Carrier::Posted posted = carrier.posted[i];
    const MessageIndex index = posted.message;
    const auto at = known.find(index);
    if (latest[index] != i || at == known.end()) {
      continue;
    }
    if (at->second.left == 0 && !at->second.parked) {
      carrier.client_->OnAbandoned(index, contract::Status::kRemoteError,
                                   static_cast<uint16_t>(ReturnCode::kBadMkey),
                                   true);
    } else if (unsent.count(index) != 0 || carrier.client_->OnRestart(index)) {
      // One that was not sent stays as it is: also on hold.
      const bool data = at->second.expects_data && !at->second.parked;
      carrier.known[index] = unsent.count(index) != 0
                                 ? at->second
                                 : State{posted.packets, data, false};
      PdcOf(node, posted.name)
          .queue.push_back({index, posted.packets, 0, data});
    }
  }
}

}  // namespace heddle::soft::engine
