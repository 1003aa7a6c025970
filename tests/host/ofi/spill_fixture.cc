// SPDX-License-Identifier: Apache-2.0
#include "tests/host/ofi/spill_fixture.h"

#include <rdma/fi_ext_heddle.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tests/seed.h"

namespace heddle::test {
namespace {

// Beyond these the ring has more than one slot for a payload.
constexpr std::array<size_t, 8> kBytes = {8, 16, 17, 100, 192, 193, 1500, 5000};

// A device whose fences hold up whatever comes behind has none to a stuck peer:
// HEDDLE_TEST_FENCES is 0.
uint64_t FenceFlag() {
  const char* const fences = std::getenv("HEDDLE_TEST_FENCES");
  return fences != nullptr && std::string_view(fences) == "0" ? 0 : FI_FENCE;
}

}  // namespace

StuckOperations::StuckOperations(Node* from, fi_addr_t to, uint32_t seed)
    : from_(from), to_(to), fence_(FenceFlag()), random_(seed) {}

std::vector<uint8_t> StuckOperations::Message(uint32_t number, size_t bytes) {
  std::vector<uint8_t> data = Pattern(bytes, number);
  std::memcpy(data.data(), &number, sizeof(number));
  return data;
}

ssize_t StuckOperations::Keep(Operation* operation, ssize_t result,
                              bool asked) {
  if (result != 0) {
    EXPECT_EQ(operation, &all.back());
    all.pop_back();
    return result;
  }
  operation->asked = asked;
  switch (operation->kind) {
    case Kind::kSend:
    case Kind::kInject:
      ++sends;
      break;
    case Kind::kWrite:
      ++writes;
      break;
    case Kind::kRead:
      ++reads;
      break;
  }
  return 0;
}

ssize_t StuckOperations::Send(Operation* operation, uint64_t flags) {
  std::array<iovec, 2> pieces;
  const size_t first = operation->data.size() / 3;
  pieces[0] = {operation->data.data(), first};
  pieces[1] = {operation->data.data() + first, operation->data.size() - first};
  fi_msg message = {};
  message.msg_iov = pieces.data();
  message.iov_count = pieces.size();
  if (Pick(2) == 0) {
    pieces[0].iov_len = operation->data.size();
    message.iov_count = 1;
  }
  message.addr = to_;
  message.context = operation;
  return fi_sendmsg(from_->ep, &message, flags);
}

ssize_t StuckOperations::Write(Operation* operation, uint64_t flags) {
  iovec piece = {operation->data.data(), operation->data.size()};
  std::array<fi_rma_iov, 3> places;
  const size_t count = 1 + Pick(places.size());
  const uint64_t at = Place(operation->number);
  const size_t each = operation->data.size() / count;
  for (size_t i = 0; i < count; ++i) {
    places[i] = {
        .addr = at + i * each,
        .len = i + 1 == count ? operation->data.size() - i * each : each,
        .key = target_key_};
  }
  fi_msg_rma message = {};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = to_;
  message.rma_iov = places.data();
  message.rma_iov_count = count;
  message.context = operation;
  return fi_writemsg(from_->ep, &message, flags | FI_DELIVERY_COMPLETE);
}

ssize_t StuckOperations::Read(Operation* operation, uint64_t flags) {
  iovec piece = {operation->data.data(), operation->data.size()};
  fi_rma_iov place = {.addr = operation->number,
                      .len = operation->data.size(),
                      .key = source_key_};
  fi_msg_rma message = {};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = to_;
  message.rma_iov = &place;
  message.rma_iov_count = 1;
  message.context = operation;
  return fi_readmsg(from_->ep, &message, flags);
}

ssize_t StuckOperations::PostSend(size_t bytes, bool inject) {
  Operation* operation = &all.emplace_back();
  operation->kind = inject ? Kind::kInject : Kind::kSend;
  operation->number = sends;
  operation->data = Message(sends, bytes);
  if (inject) {
    return Keep(operation,
                fi_inject(from_->ep, operation->data.data(), bytes, to_),
                false);
  }
  return Keep(operation,
              fi_send(from_->ep, operation->data.data(), bytes, nullptr, to_,
                      operation),
              all_);
}

ssize_t StuckOperations::PostAny() {
  const size_t bytes = kBytes[Pick(kBytes.size())];
  const size_t kind = target_key_ == 0 ? Pick(5) : Pick(10);
  if (kind < 2) {
    return PostSend(std::min(bytes, size_t{192}), kind == 0);
  }
  uint64_t flags = Pick(2) == 0 ? FI_COMPLETION : 0;
  const bool asked = all_ || flags != 0;
  flags |= Pick(4) == 0 ? FI_MORE : 0;
  flags |= Pick(6) == 0 ? fence_ : 0;
  Operation* operation = &all.emplace_back();
  if (kind < 5) {
    operation->number = sends;
    operation->data = Message(sends, bytes);
    flags |= Pick(4) == 0 ? FI_DELIVERY_COMPLETE : 0;
    return Keep(operation, Send(operation, flags), asked);
  }
  if (kind < 8) {
    operation->kind = Kind::kWrite;
    operation->number = writes;
    operation->data = Pattern(bytes, writes);
    return Keep(operation, Write(operation, flags), asked);
  }
  operation->kind = Kind::kRead;
  operation->number = reads;
  operation->data.resize(bytes);
  return Keep(operation, Read(operation, flags), asked);
}

ssize_t StuckOperations::PostLast() {
  Operation* operation = &all.emplace_back();
  operation->number = sends;
  operation->data = Message(sends, 8);
  return Keep(operation,
              Send(operation, FI_COMPLETION | FI_FENCE | FI_DELIVERY_COMPLETE),
              true);
}

void StuckOperations::Poll() {
  const auto mine = [this](void* context) -> Operation* {
    const auto found =
        std::find_if(all.rbegin(), all.rend(),
                     [&](const Operation& each) { return &each == context; });
    return found == all.rend() ? nullptr : &*found;
  };
  for (;;) {
    fi_cq_tagged_entry entry;
    const ssize_t result = fi_cq_read(from_->tx_cq, &entry, 1);
    if (result == 1) {
      Operation* const operation = mine(entry.op_context);
      if (operation == nullptr) {
        others.push_back(entry.op_context);
        continue;
      }
      ++operation->done;
      continue;
    }
    if (result != -FI_EAVAIL) {
      return;
    }
    fi_cq_err_entry error = {};
    ASSERT_EQ(fi_cq_readerr(from_->tx_cq, &error, 0), 1);
    Operation* const operation = mine(error.op_context);
    if (operation != nullptr) {
      ++operation->failed;
    } else if (error.op_context == from_->ep->fid.context) {
      ++failed_injects;
    } else {
      others.push_back(error.op_context);
    }
  }
}

NodeOptions SpillTest::Options() {
  NodeOptions options = RmaOptions();
  options.caps |= FI_FENCE;
  options.tx_size = 128;
  return options;
}

void SpillTest::OpenThree(const NodeOptions& options) {
  NodeOptions of_peers = RmaOptions();
  of_peers.rx_size = 64;
  ASSERT_NO_FATAL_FAILURE(Open(options, of_peers));
  c = std::make_unique<Node>(RmaOptions());
  ASSERT_TRUE(c->ok());
  to_c = a->Insert(*c);
  target.resize(StuckOperations::kMostWrites * StuckOperations::kMostBytes);
  source = Pattern(StuckOperations::kMostBytes + StuckOperations::kMostWrites);
  target_region.emplace(*b, target.data(), target.size());
  source_region.emplace(*b, source.data(), source.size());
  stuck.emplace(a.get(), to_b, TestSeed());
  if (!fences) {
    stuck->WithoutFences();
  }
  stuck->SetRegions(target_region->key(), source_region->key());
  if (options.bind_flags == 0) {
    stuck->ReportAll();
  }
}

void SpillTest::TearDown() {
  target_region.reset();
  source_region.reset();
  c.reset();
  PairTest::TearDown();
}

uint64_t SpillTest::Spilled() const {
  fi_heddle_ops_statistics* statistics = nullptr;
  EXPECT_EQ(fi_open_ops(&a->domain->fid, FI_HEDDLE_STATISTICS, 0,
                        reinterpret_cast<void**>(&statistics), nullptr),
            0);
  const size_t count = statistics->count(&a->domain->fid);
  std::vector<uint64_t> values(count);
  EXPECT_EQ(statistics->read(&a->domain->fid, values.data(), count),
            static_cast<ssize_t>(count));
  for (size_t i = 0; i < count; ++i) {
    if (std::string_view(statistics->name(&a->domain->fid, i)) ==
        "tx_spilled") {
      return values[i];
    }
  }
  ADD_FAILURE() << "no such statistic";
  return 0;
}

void SpillTest::ExchangeWithC() {
  std::vector<uint8_t> sent = Pattern(40 + exchanged % 3 * 500, exchanged);
  std::vector<uint8_t> received(sent.size());
  ++exchanged;
  ASSERT_EQ(fi_recv(c->ep, received.data(), received.size(), nullptr,
                    FI_ADDR_UNSPEC, &received),
            0);
  fi_msg message = {};
  iovec piece = {sent.data(), sent.size()};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = to_c;
  message.context = &sent;
  ssize_t result = -FI_EAGAIN;
  ASSERT_TRUE(WaitUntil([&] {
    result = fi_sendmsg(a->ep, &message, FI_COMPLETION);
    stuck->Poll();
    return result != -FI_EAGAIN;
  })) << "a stuck peer holds up others";
  ASSERT_EQ(result, 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(c->rx_cq, FI_RECV | FI_MSG, &received));
  EXPECT_EQ(received, sent);
  ASSERT_TRUE(WaitUntil([&] {
    stuck->Poll();
    return !stuck->others.empty();
  })) << "nobody heard of the end";
  EXPECT_EQ(stuck->others, std::vector<void*>{&sent});
  stuck->others.clear();
}

void SpillTest::PostMany(int count, const std::function<ssize_t()>& post) {
  for (int i = 0; i < count; ++i) {
    ssize_t result = -FI_EAGAIN;
    ASSERT_TRUE(WaitUntil([&] {
      result = post();
      if (result == -FI_EAGAIN) {
        stuck->Poll();
      }
      return result != -FI_EAGAIN;
    })) << Spilled()
        << " spilled; no room for operation " << i;
    ASSERT_EQ(result, 0);
    if (i % 16 == 15) {
      ASSERT_NO_FATAL_FAILURE(ExchangeWithC());
    }
  }
}

void SpillTest::TakeAtB(uint32_t end) {
  constexpr size_t kRoom = 8;
  std::array<std::vector<uint8_t>, kRoom> room;
  for (auto& buffer : room) {
    buffer.resize(StuckOperations::kMostBytes);
  }
  uint32_t posted = taken;
  while (taken < end) {
    while (posted < end && posted < taken + kRoom) {
      auto& buffer = room[posted % kRoom];
      ASSERT_EQ(fi_recv(b->ep, buffer.data(), buffer.size(), nullptr,
                        FI_ADDR_UNSPEC, &buffer),
                0);
      ++posted;
    }
    fi_cq_tagged_entry entry;
    ssize_t result = -FI_EAGAIN;
    ASSERT_TRUE(WaitUntil([&] {
      if (reads_queue) {
        stuck->Poll();
      }
      result = fi_cq_read(b->rx_cq, &entry, 1);
      return result != -FI_EAGAIN;
    })) << "message "
        << taken << " of " << end;
    ASSERT_EQ(result, 1);
    auto& buffer = room[taken % kRoom];
    ASSERT_EQ(entry.op_context, &buffer);
    ASSERT_EQ(StuckOperations::Message(taken, entry.len),
              std::vector<uint8_t>(
                  buffer.begin(),
                  buffer.begin() + static_cast<ptrdiff_t>(entry.len)));
    ++taken;
  }
}

void SpillTest::ExpectAllDone() {
  ASSERT_TRUE(WaitUntil([&] {
    stuck->Poll();
    return stuck->all.back().done != 0;
  }));
  for (const auto& operation : stuck->all) {
    ASSERT_EQ(operation.done, operation.asked ? 1 : 0);
    ASSERT_EQ(operation.failed, 0);
    const auto bytes = static_cast<ptrdiff_t>(operation.data.size());
    if (operation.kind == StuckOperations::Kind::kWrite) {
      ASSERT_TRUE(std::equal(
          operation.data.begin(), operation.data.end(),
          target.begin() + static_cast<ptrdiff_t>(
                               StuckOperations::Place(operation.number))));
    } else if (operation.kind == StuckOperations::Kind::kRead) {
      const auto from = source.begin() + operation.number;
      ASSERT_TRUE(std::equal(from, from + bytes, operation.data.begin()));
    }
  }
  EXPECT_EQ(stuck->failed_injects, 0);
  EXPECT_TRUE(stuck->others.empty());
}

}  // namespace heddle::test
