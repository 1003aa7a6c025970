// SPDX-License-Identifier: Apache-2.0
// As many objects of each kind as fi_getinfo advertises, and what they cost.
#include <netinet/in.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/host/ofi/rma_fixture.h"

namespace heddle::test {
namespace {

// What sanitizers add to memory, at most.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kShadow = 8;
#else
constexpr uint32_t kShadow = 1;
#endif

// A few operations are enough for an endpoint that is one of many.
constexpr size_t kQueueSize = 16;

NodeOptions ManyOptions() {
  NodeOptions options = RmaOptions();
  options.mr_mode = FI_MR_PROV_KEY;
  options.tx_size = kQueueSize;
  options.rx_size = kQueueSize;
  options.cq_size = 64;
  return options;
}

struct CapacityTest : PairTest {
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Open(ManyOptions())); }
  const fi_domain_attr& advertised() const { return *b->info->domain_attr; }

  fid_cq* OpenQueue(int expected = 0) const {
    fi_cq_attr attr = {};
    attr.format = FI_CQ_FORMAT_TAGGED;
    attr.size = 64;
    fid_cq* queue = nullptr;
    EXPECT_EQ(fi_cq_open(b->domain, &attr, &queue, nullptr), expected);
    return queue;
  }
  fid_cntr* OpenCounter(int expected = 0) const {
    fi_cntr_attr attr = {};
    attr.wait_obj = FI_WAIT_NONE;
    fid_cntr* counter = nullptr;
    EXPECT_EQ(fi_cntr_open(b->domain, &attr, &counter, nullptr), expected);
    return counter;
  }
  // Not enabled.
  fid_ep* OpenEndpoint(fid_cq* queue) const {
    fid_ep* endpoint = nullptr;
    EXPECT_EQ(fi_endpoint(b->domain, b->info.get(), &endpoint, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &b->av->fid, 0), 0);
    return endpoint;
  }
  fid_mr* Register(const void* memory, size_t bytes, int expected = 0) const {
    fid_mr* region = nullptr;
    EXPECT_EQ(fi_mr_reg(b->domain, memory, bytes, kRemoteAccess, 0, 0, 0,
                        &region, nullptr),
              expected);
    return region;
  }
  fi_addr_t Know(fid_ep* endpoint) const {
    sockaddr_in name = {};
    size_t bytes = sizeof(name);
    EXPECT_EQ(fi_getname(&endpoint->fid, &name, &bytes), 0);
    fi_addr_t address = FI_ADDR_UNSPEC;
    EXPECT_EQ(fi_av_insert(a->av, &name, 1, &address, 0, nullptr), 1);
    return address;
  }

  // A message from a to `endpoint` of b, and one back.
  void ExpectMessages(fid_ep* endpoint, fid_cq* queue) {
    const fi_addr_t address = Know(endpoint);
    const std::vector<uint8_t> sent = Pattern(3000);
    std::vector<uint8_t> received(sent.size());
    int context = 0;
    ASSERT_EQ(fi_recv(endpoint, received.data(), received.size(), nullptr,
                      FI_ADDR_UNSPEC, &context),
              0);
    ASSERT_EQ(
        fi_send(a->ep, sent.data(), sent.size(), nullptr, address, &context),
        0);
    ExpectDone(queue, FI_RECV | FI_MSG, &context, a->tx_cq);
    ExpectDone(a->tx_cq, FI_SEND | FI_MSG, &context, queue);
    EXPECT_EQ(received, sent);
    ASSERT_EQ(fi_recv(a->ep, received.data(), received.size(), nullptr,
                      FI_ADDR_UNSPEC, &context),
              0);
    ASSERT_EQ(fi_send(endpoint, sent.data(), 100, nullptr, to_a, &context), 0);
    ExpectDone(a->rx_cq, FI_RECV | FI_MSG, &context, queue);
    ExpectDone(queue, FI_SEND | FI_MSG, &context, a->rx_cq);
    ASSERT_EQ(fi_av_remove(a->av, const_cast<fi_addr_t*>(&address), 1, 0), 0);
  }

  // A write to the memory of b that `region` is, and a read of it.
  void ExpectReachable(fid_mr* region, std::vector<uint8_t>& memory) {
    const std::vector<uint8_t> data = Pattern(memory.size(), 5);
    ASSERT_EQ(fi_write(a->ep, data.data(), data.size(), nullptr, to_b, 0,
                       fi_mr_key(region), nullptr),
              0);
    ExpectDone(a->tx_cq, FI_WRITE | FI_RMA, nullptr, b->tx_cq);
    std::vector<uint8_t> back(data.size());
    ASSERT_EQ(fi_read(a->ep, back.data(), back.size(), nullptr, to_b, 0,
                      fi_mr_key(region), nullptr),
              0);
    ExpectDone(a->tx_cq, FI_READ | FI_RMA, nullptr, b->tx_cq);
    EXPECT_EQ(back, data);
  }

  // What is logged while `call` runs; the environment has FI_LOG_LEVEL=warn.
  template <typename Call>
  static std::string LogOf(Call call) {
    testing::internal::CaptureStderr();
    call();
    return testing::internal::GetCapturedStderr();
  }
  static void ExpectLimit(const std::string& log, size_t limit) {
    EXPECT_NE(log.find("the device has " + std::to_string(limit)),
              std::string::npos)
        << log;
  }
};

template <typename Object>
void CloseAll(std::vector<Object*>& objects) {
  for (Object* object : objects) {
    EXPECT_EQ(fi_close(&object->fid), 0);
  }
  objects.clear();
}

// All on one queue: completions of contexts with the same low byte meet there.
TEST_F(CapacityTest, EndpointsOfOneQueueAreAsManyAsAdvertisedAndEachWorks) {
  ASSERT_EQ(advertised().tx_ctx_cnt, advertised().ep_cnt);
  ASSERT_EQ(advertised().rx_ctx_cnt, advertised().ep_cnt);
  fid_cq* const queue = OpenQueue();
  std::vector<fid_ep*> endpoints;
  while (endpoints.size() + 1 < advertised().ep_cnt) {  // There is one already.
    endpoints.push_back(OpenEndpoint(queue));
    ASSERT_EQ(fi_enable(endpoints.back()), 0) << endpoints.size();
  }
  fid_ep* const one_more = OpenEndpoint(queue);
  ExpectLimit(LogOf([&] { EXPECT_EQ(fi_enable(one_more), -FI_ENOSPC); }),
              advertised().tx_ctx_cnt);
  for (size_t i = 0; i < endpoints.size();
       i += std::max<size_t>(1, endpoints.size() / 9)) {
    SCOPED_TRACE(i);
    ASSERT_NO_FATAL_FAILURE(ExpectMessages(endpoints[i], queue));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectMessages(endpoints.back(), queue));
  // A released one is granted again.
  ASSERT_EQ(fi_close(&endpoints.front()->fid), 0);
  endpoints.front() = one_more;
  ASSERT_EQ(fi_enable(one_more), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectMessages(one_more, queue));
  CloseAll(endpoints);
  EXPECT_EQ(fi_close(&queue->fid), 0);
}

TEST_F(CapacityTest, LastQueueAndCounterServeTheLastEndpoint) {
  std::vector<fid_cq*> queues;
  while (queues.size() + 2 < advertised().cq_cnt) {  // There are two already.
    queues.push_back(OpenQueue());
    ASSERT_NE(queues.back(), nullptr);
  }
  ExpectLimit(LogOf([&] { OpenQueue(-FI_ENOSPC); }), advertised().cq_cnt);
  std::vector<fid_cntr*> counters;
  while (counters.size() < advertised().cntr_cnt) {
    counters.push_back(OpenCounter());
    ASSERT_NE(counters.back(), nullptr);
  }
  ExpectLimit(LogOf([&] { OpenCounter(-FI_ENOSPC); }), advertised().cntr_cnt);
  std::vector<fid_ep*> endpoints;
  while (endpoints.size() + 1 < advertised().ep_cnt) {
    const size_t i = endpoints.size();
    endpoints.push_back(OpenEndpoint(queues[i % queues.size()]));
    ASSERT_EQ(fi_ep_bind(endpoints.back(), &counters[i % counters.size()]->fid,
                         FI_SEND | FI_RECV),
              0);
    if (i + 2 == advertised().ep_cnt) {
      break;
    }
    ASSERT_EQ(fi_enable(endpoints.back()), 0) << i;
  }
  // The last endpoint has the last of each.
  EXPECT_EQ(fi_close(&endpoints.back()->fid), 0);
  endpoints.back() = OpenEndpoint(queues.back());
  ASSERT_EQ(
      fi_ep_bind(endpoints.back(), &counters.back()->fid, FI_SEND | FI_RECV),
      0);
  ASSERT_EQ(fi_enable(endpoints.back()), 0);
  const uint64_t before = fi_cntr_read(counters.back());
  ASSERT_NO_FATAL_FAILURE(ExpectMessages(endpoints.back(), queues.back()));
  EXPECT_TRUE(
      WaitUntil([&] { return fi_cntr_read(counters.back()) == before + 2; }));
  EXPECT_EQ(fi_cntr_add(counters.back(), 40), 0);
  EXPECT_EQ(fi_cntr_read(counters.back()), before + 42);
  CloseAll(endpoints);
  CloseAll(counters);
  CloseAll(queues);
}

TEST_F(CapacityTest, RegionsAreAsManyAsAdvertisedAndTheLastIsReached) {
  std::vector<uint8_t> memory(9000);
  std::vector<fid_mr*> regions;
  while (regions.size() < advertised().mr_cnt) {
    regions.push_back(Register(memory.data(), memory.size()));
    ASSERT_NE(regions.back(), nullptr) << regions.size();
  }
  ExpectLimit(LogOf([&] { Register(memory.data(), 1, -FI_ENOMEM); }),
              advertised().mr_cnt);
  std::vector<uint64_t> keys;
  for (fid_mr* region : regions) {
    keys.push_back(fi_mr_key(region));
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
  for (const size_t i :
       {size_t{0}, regions.size() * 15 / 16, regions.size() - 1}) {
    SCOPED_TRACE(i);
    ASSERT_NO_FATAL_FAILURE(ExpectReachable(regions[i], memory));
  }
  // A key that was closed names nothing, also when its entry is used again.
  const uint64_t old_key = fi_mr_key(regions.back());
  ASSERT_EQ(fi_close(&regions.back()->fid), 0);
  regions.back() = Register(memory.data(), memory.size());
  ASSERT_NE(regions.back(), nullptr);
  EXPECT_NE(fi_mr_key(regions.back()), old_key);
  ASSERT_NO_FATAL_FAILURE(ExpectReachable(regions.back(), memory));
  CloseAll(regions);
}

// Resident memory, of the library and the device in one process. What an object
// costs is a difference of many; the device may serve a part from memory that
// it has.
TEST(CapacityMemoryTest, ObjectsCostWhatTheyNeedAndOnlyWhenTheyAreThere) {
  const size_t bare = ResidentBytes();
  Node node(ManyOptions());
  ASSERT_TRUE(node.ok()) << fi_strerror(-node.result);
  const fi_domain_attr& attr = *node.info->domain_attr;
  const size_t idle = ResidentBytes();
  std::printf("process with one domain and endpoint: %zu KiB more\n",
              (idle - bare) / 1024);
  if (std::string_view(node.info->domain_attr->name) == "soft0") {
    // Made before they are needed, contexts would take 190 MiB and regions 13.
    EXPECT_LE(idle - bare, kShadow * (24U << 20U));
  }
  size_t last = idle;
  const auto tell = [&last](const char* what, size_t count) {
    const size_t now = ResidentBytes();
    const size_t each = now < last ? 0 : (now - last) / count;
    std::printf("%zu x %s: %zu bytes each\n", count, what, each);
    last = now;
    return each;
  };

  std::vector<fid_cq*> queues;
  const size_t queue_count = std::min<size_t>(attr.cq_cnt - 2, 200);
  while (queues.size() < queue_count) {
    fi_cq_attr cq_attr = {};
    cq_attr.size = 64;
    ASSERT_EQ(
        fi_cq_open(node.domain, &cq_attr, &queues.emplace_back(), nullptr), 0);
  }
  EXPECT_LE(tell("completion queue of 64", queue_count),
            kShadow * (32U << 10U));

  std::vector<fid_cntr*> counters;
  const size_t counter_count = std::min<size_t>(attr.cntr_cnt, 200);
  while (counters.size() < counter_count) {
    fi_cntr_attr cntr_attr = {};
    ASSERT_EQ(fi_cntr_open(node.domain, &cntr_attr, &counters.emplace_back(),
                           nullptr),
              0);
  }
  EXPECT_LE(tell("counter", counter_count), kShadow * (16U << 10U));

  std::vector<fid_ep*> endpoints;
  const size_t endpoint_count = std::min<size_t>((attr.ep_cnt - 1) / 2, 100);
  while (endpoints.size() < endpoint_count) {
    endpoints.push_back(node.OpenEndpoint());
  }
  EXPECT_LE(tell("endpoint of 16 sends and receives", endpoint_count),
            kShadow * (64U << 10U));
  node.info->tx_attr->size = 256;
  node.info->rx_attr->size = 256;
  while (endpoints.size() < 2 * endpoint_count) {
    endpoints.push_back(node.OpenEndpoint());
  }
  EXPECT_LE(tell("endpoint of 256 sends and receives", endpoint_count),
            kShadow * (512U << 10U));

  std::vector<uint8_t> memory(4096);
  std::vector<fid_mr*> regions;
  const size_t region_count = std::min<size_t>(attr.mr_cnt, 20000);
  while (regions.size() < region_count) {
    ASSERT_EQ(
        fi_mr_reg(node.domain, memory.data(), memory.size(), kRemoteAccess, 0,
                  0, 0, &regions.emplace_back(), nullptr),
        0);
  }
  EXPECT_LE(tell("region", region_count), kShadow * (2U << 10U));
  CloseAll(regions);
  CloseAll(endpoints);
  CloseAll(counters);
  CloseAll(queues);
}

}  // namespace
}  // namespace heddle::test
