// SPDX-License-Identifier: Apache-2.0
// Modes, options and kinds of operation that few providers have.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include <cstring>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t kLocal = FI_SEND | FI_RECV | FI_READ | FI_WRITE;

class SettingTest : public NodesTest {
 protected:
  // A result that the pages permit where an option is not there.
  static bool IsAbsent(int result) {
    return result == -FI_ENOPROTOOPT || result == -FI_EOPNOTSUPP ||
           result == -FI_ENOSYS;
  }
};
class DatagramTest : public NodesTest {};
class AtomicTest : public NodesTest {};

// --- Capabilities.

int ResultOfCaps(uint64_t caps) {
  return GetInfo(MakeHints(caps).get()).result;
}

CONFORMANCE_TEST(SettingTest, PersistentMemoryNeedsRemoteAccess, 60) {
  EXPECT_EQ(ResultOfCaps(FI_MSG | FI_RMA_PMEM), -FI_ENODATA);
  if (ResultOfCaps(FI_MSG | FI_RMA | FI_RMA_PMEM) == -FI_ENODATA) {
    return NotOffered("FI_RMA_PMEM");
  }
  // Offered: then a completion may stand for data that are persistent.
  const InfoPointer hints = MakeHints(FI_MSG | FI_RMA | FI_RMA_PMEM);
  hints->tx_attr->op_flags = FI_COMMIT_COMPLETE;
  EXPECT_EQ(GetInfo(hints.get()).result, 0);
}

// --- Modes.

CONFORMANCE_TEST(SettingTest, LocalRegistrationIsOfOldVersions, 81) {
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->mode |= FI_LOCAL_MR;
  const Answer now = GetInfo(hints.get());
  ASSERT_EQ(now.result, 0);
  for (const fi_info* info : now.own()) {
    const int mr_mode = info->domain_attr->mr_mode;
    EXPECT_TRUE((info->mode & FI_LOCAL_MR) == 0 || mr_mode == FI_MR_BASIC ||
                mr_mode == FI_MR_SCALABLE);
  }
  hints->domain_attr->mr_mode = FI_MR_UNSPEC;
  const Answer old = GetInfo(hints.get(), {.version = FI_VERSION(1, 4)});
  ASSERT_EQ(old.result, 0);
  for (const fi_info* info : old.own()) {
    const int mr_mode = info->domain_attr->mr_mode;
    EXPECT_TRUE(mr_mode == FI_MR_BASIC || mr_mode == FI_MR_SCALABLE) << mr_mode;
  }
}

CONFORMANCE_TEST(SettingTest, ContextIsFreeOnceItsOperationIsComplete, 74) {
  NodeOptions options;
  options.mode = FI_CONTEXT | FI_CONTEXT2;
  if (!Open(options)) {
    return;
  }
  if ((a().info->mode & (FI_CONTEXT | FI_CONTEXT2)) == 0) {
    return NotOffered("FI_CONTEXT: contexts are not used");
  }
  fi_context2 contexts[2] = {};
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(Receive(received, &contexts[0]), 0);
    ASSERT_EQ(Send(sent, 8, &contexts[1]), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[0]));
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[1]));
    std::memset(contexts, round, sizeof(contexts));
  }
}

CONFORMANCE_TEST(SettingTest, WriteWithDataTakesAReceiveInThatMode, 77) {
  NodeOptions options;
  options.caps = FI_MSG | FI_RMA;
  options.mode = kModes | FI_RX_CQ_DATA;
  options.cq_data_size = 4;
  if (!Open(options)) {
    return;
  }
  if ((b().info->mode & FI_RX_CQ_DATA) == 0) {
    return NotOffered("FI_RX_CQ_DATA: no receive is needed");
  }
  Buffer source(a(), 8, kLocal);
  Buffer target(b(), 8, kRemote);
  Buffer received(b(), 8);
  fi_context2 contexts[2] = {};
  ASSERT_EQ(Receive(received, &contexts[0]), 0);
  ASSERT_EQ(Post([&] {
              return fi_writedata(a().ep, source.data(), 8, source.desc(), 1,
                                  to_b(), target.address(), target.key(),
                                  &contexts[1]);
            }),
            0);
  ExpectDone(b().rx, &contexts[0]);
}

// --- Options of an endpoint.

CONFORMANCE_TEST(SettingTest, FreeSlotsCanBePosted, 191) {
  if (!Open()) {
    return;
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const ssize_t receives = fi_rx_size_left(b().ep);
  const ssize_t sends = fi_tx_size_left(a().ep);
#pragma GCC diagnostic pop
  if (receives == -FI_ENOSYS && sends == -FI_ENOSYS) {
    return Refused("fi_rx_size_left and fi_tx_size_left", -FI_ENOSYS);
  }
  ASSERT_GE(receives, 0);
  ASSERT_GE(sends, 0);
  Buffer received(b(), 8);
  std::vector<fi_context2> contexts(static_cast<size_t>(receives));
  for (fi_context2& context : contexts) {
    ASSERT_EQ(fi_recv(b().ep, received.data(), 8, received.desc(),
                      FI_ADDR_UNSPEC, &context),
              0);
  }
  EXPECT_EQ(fi_close(&b().ep->fid), 0);
  b().ep = nullptr;
}

CONFORMANCE_TEST(SettingTest, SizeOfConnectionDataIsReadOnly, 195) {
  if (!Open({}, 1)) {
    return;
  }
  size_t value = 0;
  size_t bytes = sizeof(value);
  fid* const ep = &a().ep->fid;
  EXPECT_LT(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, bytes),
            0);
  const int result =
      fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &bytes);
  if (IsAbsent(result)) {
    return Refused("FI_OPT_CM_DATA_SIZE", result);
  }
  EXPECT_EQ(result, 0);
  EXPECT_EQ(bytes, sizeof(value));
}

CONFORMANCE_TEST(SettingTest, BufferedLimitIsChecked, 196) {
  NodeOptions options;
  options.enable = false;
  if (!Open(options, 1)) {
    return;
  }
  size_t value = SIZE_MAX;
  fid* const ep = &a().ep->fid;
  int result = fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, &value,
                         sizeof(value));
  if (IsAbsent(result)) {
    return Refused("FI_OPT_BUFFERED_LIMIT", result);
  }
  ASSERT_EQ(result, 0) << "as much as the provider has";
  size_t bytes = sizeof(value);
  ASSERT_EQ(
      fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, &value, &bytes), 0);
  EXPECT_NE(value, 0U);
  value = SIZE_MAX - 1;
  EXPECT_EQ(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, &value,
                      sizeof(value)),
            -FI_EMSGSIZE);
}

CONFORMANCE_TEST(SettingTest, BufferedMinimumIsKept, 197) {
  NodeOptions options;
  options.enable = false;
  if (!Open(options, 1)) {
    return;
  }
  size_t value = 64;
  fid* const ep = &a().ep->fid;
  const int result = fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, &value,
                               sizeof(value));
  if (IsAbsent(result)) {
    return Refused("FI_OPT_BUFFERED_MIN", result);
  }
  EXPECT_EQ(result, 0);
  value = 0;
  size_t bytes = sizeof(value);
  EXPECT_EQ(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, &value, &bytes),
            0);
  EXPECT_EQ(value, 64U);
}

CONFORMANCE_TEST(SettingTest, TransfersBetweenDevicesAreThereOrRefused, 198) {
  NodeOptions options;
  options.enable = false;
  if (!Open(options, 1)) {
    return;
  }
  fid* const ep = &a().ep->fid;
  int refused = 0;
  for (const int mode : {FI_HMEM_P2P_ENABLED, FI_HMEM_P2P_REQUIRED,
                         FI_HMEM_P2P_PREFERRED, FI_HMEM_P2P_DISABLED}) {
    const int result =
        fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &mode, sizeof(mode));
    EXPECT_TRUE(result == 0 || IsAbsent(result)) << mode << ": " << result;
    refused = result != 0 ? result : refused;
  }
  if (refused != 0) {
    Refused("FI_OPT_FI_HMEM_P2P", refused);
  }
}

CONFORMANCE_TEST(SettingTest, TriggersOfAcceleratorsAreThereOrRefused, 200) {
  if (!Open({}, 1)) {
    return;
  }
  fi_trigger_xpu trigger = {};
  size_t bytes = sizeof(trigger);
  const int result = fi_getopt(&a().ep->fid, FI_OPT_ENDPOINT,
                               FI_OPT_XPU_TRIGGER, &trigger, &bytes);
  if (IsAbsent(result)) {
    return Refused("FI_OPT_XPU_TRIGGER", result);
  }
  EXPECT_EQ(result, 0);
  EXPECT_GT(trigger.count, 0) << "variables that a trigger needs";
}

CONFORMANCE_TEST(SettingTest, GroupsNeedMulticast, 281) {
  if (!Open({}, 1)) {
    return;
  }
  ASSERT_EQ(a().info->caps & FI_MULTICAST, 0U);
  const std::vector<uint8_t> name = a().Name();
  fid_mc* group = nullptr;
  const int result = fi_join(a().ep, name.data(), FI_RECV, &group, nullptr);
  EXPECT_TRUE(result == -FI_ENOSYS || result == -FI_EOPNOTSUPP ||
              result == -FI_EINVAL)
      << result;
  Refused("fi_join without FI_MULTICAST", result);
}

// --- Other types of endpoint.

CONFORMANCE_TEST(SettingTest, SocketEndpointsAreThereOrThereIsNoData, 256) {
  for (const fi_ep_type type : {FI_EP_SOCK_STREAM, FI_EP_SOCK_DGRAM}) {
    const InfoPointer hints = MakeHints(0);
    hints->ep_attr->type = type;
    const Answer answer = GetInfo(hints.get());
    EXPECT_EQ(answer.result, -FI_ENODATA) << type;
  }
  NotOffered("FI_EP_SOCK_STREAM and FI_EP_SOCK_DGRAM");
}

NodeOptions Datagrams() {
  NodeOptions options;
  options.hints = [](fi_info& hints) { hints.ep_attr->type = FI_EP_DGRAM; };
  return options;
}

CONFORMANCE_TEST(DatagramTest, BoundariesAreKept, 201) {
  if (!Open(Datagrams())) {
    return;
  }
  // One may be lost; not all of ten.
  Buffer sent(a(), 1000);
  Buffer received(b(), 1000);
  sent.Fill();
  size_t arrived = 0;
  for (const size_t bytes : {1U, 100U, 1000U, 7U}) {
    bool there = false;
    for (int attempt = 0; attempt < 10 && !there; ++attempt) {
      fi_context2 context = {};
      ASSERT_EQ(Receive(received, &context), 0);
      ASSERT_EQ(Send(sent, bytes, NewContext()), 0);
      ASSERT_NO_FATAL_FAILURE(ExpectSent(1));
      const auto completion = Take(b().rx);
      there = completion.has_value();
      if (there) {
        ASSERT_FALSE(completion->error);
        EXPECT_EQ(completion->entry.len, bytes);
        EXPECT_EQ(std::memcmp(received.data(), sent.data(), bytes), 0);
      }
    }
    arrived += there ? 1 : 0;
  }
  EXPECT_EQ(arrived, 4U);
}

CONFORMANCE_TEST(DatagramTest, WithoutAReceiveTheSendCompletes, 115) {
  if (!Open(Datagrams())) {
    return;
  }
  Buffer sent(a(), 64);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(Send(sent, 64, NewContext()), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectSent(1));
  }
}

// --- Atomics.

// Sums and reads of one value of node b.
CONFORMANCE_TEST(AtomicTest, OrderOfAtomicsIsKept, 233) {
  constexpr uint64_t kOrder = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
                              FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
  NodeOptions options;
  options.caps = FI_MSG | FI_ATOMIC;
  options.hints = [](fi_info& hints) {
    hints.tx_attr->msg_order = kOrder;
    hints.rx_attr->msg_order = kOrder;
  };
  if (!Open(options)) {
    return;
  }
  EXPECT_EQ(a().info->tx_attr->msg_order & kOrder, kOrder);
  constexpr size_t kRounds = 50;
  Buffer target(b(), 8, kRemote);
  Buffer operand(a(), 8, kLocal);
  Buffer results(a(), 16 * kRounds, kLocal);
  const uint64_t one = 1;
  std::memcpy(operand.data(), &one, sizeof(one));
  const auto read = [&](size_t index) {
    return Post([&] {
      return fi_fetch_atomic(a().ep, operand.data(), 1, operand.desc(),
                             results.data() + 8 * index, results.desc(), to_b(),
                             target.address(), target.key(), FI_UINT64,
                             FI_ATOMIC_READ, NewContext());
    });
  };
  // Each read follows the sum before it, precedes the one after it.
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(read(2 * i), 0);
    ASSERT_EQ(Post([&] {
                return fi_atomic(a().ep, operand.data(), 1, operand.desc(),
                                 to_b(), target.address(), target.key(),
                                 FI_UINT64, FI_SUM, NewContext());
              }),
              0);
    ASSERT_EQ(read(2 * i + 1), 0);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectSent(3 * kRounds));
  for (uint64_t i = 0; i < kRounds; ++i) {
    uint64_t values[2] = {};
    std::memcpy(values, results.data() + 16 * i, sizeof(values));
    EXPECT_EQ(values[0], i);
    EXPECT_EQ(values[1], i + 1);
  }
}

}  // namespace
}  // namespace heddle::conformance
