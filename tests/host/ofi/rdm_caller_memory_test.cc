// SPDX-License-Identifier: Apache-2.0
// What is done to memory of the application, and what is not.
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "tests/host/ofi/ip_name.h"
#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

using CallerMemoryTest = PairTest;

// Neither looked at nor written: no FI_CONTEXT is asked for.
TEST_F(CallerMemoryTest, AnyContextIsLegalAndComesBack) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* forbidden =
      mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(forbidden, MAP_FAILED);
  std::vector<uint8_t> buffer(8);
  // Odd, too, and read by none.
  for (void* context :
       {static_cast<void*>(nullptr), forbidden,
        static_cast<void*>(static_cast<char*>(forbidden) + 3)}) {
    ASSERT_EQ(
        fi_recv(b->ep, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, context), 0);
    ASSERT_EQ(fi_send(a->ep, buffer.data(), 8, nullptr, to_b, context), 0);
    const auto received = Take(b->rx_cq);
    const auto sent = Take(a->tx_cq);
    ASSERT_TRUE(received.has_value() && sent.has_value());
    EXPECT_EQ(received->entry.op_context, context);
    EXPECT_EQ(sent->entry.op_context, context);
  }
  EXPECT_EQ(munmap(forbidden, page), 0);
}

TEST_F(CallerMemoryTest, DescriptorArraysMayBeReusedAtReturn) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const std::vector<uint8_t> sent = Pattern(5000);
  std::vector<uint8_t> received(5000);
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(a->domain, sent.data(), sent.size(), FI_SEND, 0, 1, 0,
                      &region, nullptr),
            0);
  iovec from[2] = {{const_cast<uint8_t*>(sent.data()), 2000},
                   {const_cast<uint8_t*>(sent.data()) + 2000, 3000}};
  void* descriptors[2] = {fi_mr_desc(region), fi_mr_desc(region)};
  ASSERT_EQ(fi_recv(b->ep, received.data(), received.size(), nullptr,
                    FI_ADDR_UNSPEC, nullptr),
            0);
  ASSERT_EQ(fi_sendv(a->ep, from, descriptors, 2, to_b, nullptr), 0);
  std::memset(static_cast<void*>(from), 0xff, sizeof(from));
  std::memset(static_cast<void*>(descriptors), 0xff, sizeof(descriptors));
  ASSERT_TRUE(Take(b->rx_cq).has_value());
  ASSERT_TRUE(Take(a->tx_cq).has_value());
  EXPECT_EQ(sent, received);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(CallerMemoryTest, CompletionMeansThatTheBufferMayBeOverwritten) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::vector<uint8_t> buffer(20000);
  std::vector<uint8_t> received(buffer.size());
  for (uint32_t round = 0; round < 10; ++round) {
    const std::vector<uint8_t> sent = Pattern(buffer.size(), round);
    buffer = sent;
    ASSERT_EQ(fi_recv(b->ep, received.data(), received.size(), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_EQ(
        fi_send(a->ep, buffer.data(), buffer.size(), nullptr, to_b, nullptr),
        0);
    ASSERT_TRUE(Take(a->tx_cq).has_value());
    std::memset(buffer.data(), 0xff, buffer.size());
    ASSERT_TRUE(Take(b->rx_cq).has_value());
    EXPECT_EQ(received, sent);
  }
}

// Also of the weakest level, and of memory that is not copied at the call.
TEST_F(CallerMemoryTest, InjectCompleteMeansThatTheBufferMayBeOverwritten) {
  NodeOptions options;
  options.tx_op_flags = FI_INJECT_COMPLETE;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  for (const bool registered : {false, true}) {
    for (const size_t bytes : {size_t{8}, size_t{300}, size_t{100'000}}) {
      SCOPED_TRACE(testing::Message() << bytes << " registered " << registered);
      const std::vector<uint8_t> sent = Pattern(bytes);
      std::vector<uint8_t> buffer = sent;
      std::vector<uint8_t> received(bytes);
      fid_mr* region = nullptr;
      if (registered) {
        ASSERT_EQ(fi_mr_reg(a->domain, buffer.data(), bytes, FI_SEND, 0, 0, 0,
                            &region, nullptr),
                  0);
      }
      ASSERT_EQ(
          fi_send(a->ep, buffer.data(), bytes,
                  registered ? fi_mr_desc(region) : nullptr, to_b, nullptr),
          0);
      // The peer has no buffer yet: what completes now was copied.
      fi_cq_tagged_entry entry;
      bool done = false;
      for (int i = 0; i < 2000 && !done; ++i) {
        done = fi_cq_read(a->tx_cq, &entry, 1) == 1;
      }
      if (done) {
        std::memset(buffer.data(), 0xff, bytes);
      }
      ASSERT_EQ(fi_recv(b->ep, received.data(), bytes, nullptr, FI_ADDR_UNSPEC,
                        nullptr),
                0);
      if (!done) {
        ASSERT_TRUE(Take(a->tx_cq).has_value());
        std::memset(buffer.data(), 0xff, bytes);
      }
      ASSERT_TRUE(Take(b->rx_cq).has_value());
      EXPECT_EQ(received, sent);
      if (region != nullptr) {
        EXPECT_EQ(fi_close(&region->fid), 0);
      }
    }
  }
}

TEST_F(CallerMemoryTest, DestinationOfAnInfoServesTheVector) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const sockaddr_in name = IpName(*b);
  const auto* ip = reinterpret_cast<const uint8_t*>(&name.sin_addr);
  std::string node;
  for (int part = 0; part < 4; ++part) {
    node += (part == 0 ? "" : ".") + std::to_string(ip[part]);
  }
  const std::string service = std::to_string(ntohs(name.sin_port));
  fi_info* info = nullptr;
  ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), node.c_str(), service.c_str(), 0,
                       nullptr, &info),
            0);
  const InfoPointer owner(info);
  fi_addr_t peer = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(a->av, info->dest_addr, 1, &peer, 0, nullptr), 1);
  std::vector<uint8_t> buffer(8);
  ASSERT_EQ(fi_recv(b->ep, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, nullptr),
            0);
  ASSERT_EQ(fi_send(a->ep, buffer.data(), 8, nullptr, peer, nullptr), 0);
  EXPECT_TRUE(Take(b->rx_cq).has_value());
}

// The entry of version 1.20 has a sender behind what the header here has.
void ExpectErrorEntry(uint32_t version, uint64_t behind) {
  NodeOptions options;
  options.api_version = version;
  Node node(options);
  ASSERT_TRUE(node.ok()) << fi_strerror(-node.result);
  int context = 0;
  ASSERT_EQ(fi_recv(node.ep, &context, sizeof(context), nullptr, FI_ADDR_UNSPEC,
                    &context),
            0);
  ASSERT_EQ(fi_cancel(&node.ep->fid, &context), 0);
  fi_cq_tagged_entry entry;
  ASSERT_TRUE(WaitUntil(
      [&] { return fi_cq_read(node.rx_cq, &entry, 1) == -FI_EAVAIL; }));
  alignas(8) std::array<uint8_t, 96> memory;
  memory.fill(0x5a);
  std::memset(memory.data(), 0, 80);
  auto* error = reinterpret_cast<fi_cq_err_entry*>(memory.data());
  ASSERT_EQ(fi_cq_readerr(node.rx_cq, error, 0), 1);
  EXPECT_EQ(error->err, FI_ECANCELED);
  uint64_t found = 0;
  std::memcpy(&found, memory.data() + 80, sizeof(found));
  EXPECT_EQ(found, behind);
  EXPECT_EQ(memory[88], 0x5a);
}

TEST(NewVersions, ErrorEntryEndsWithItsSender) {
  ExpectErrorEntry(FI_VERSION(1, 20), FI_ADDR_NOTAVAIL);
}

TEST(NewVersions, ErrorEntryOfOlderOnesHasNone) {
  ExpectErrorEntry(FI_VERSION(1, 19), 0x5a5a5a5a5a5a5a5a);
}

}  // namespace
}  // namespace heddle::test
