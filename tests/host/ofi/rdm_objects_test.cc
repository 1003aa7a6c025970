// SPDX-License-Identifier: Apache-2.0
// Domain, address vector, completion queue and memory region.
#include <arpa/inet.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

class ObjectsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    node = std::make_unique<Node>(NodeOptions{.enable = false});
    ASSERT_TRUE(node->ok()) << fi_strerror(-node->result);
  }

  std::unique_ptr<Node> node;
};

sockaddr_in Address(uint32_t ipv4, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(ipv4);
  address.sin_port = htons(port);
  return address;
}

TEST_F(ObjectsTest, ContextsAreKept) {
  EXPECT_EQ(node->ep->fid.context, node.get());
  EXPECT_EQ(node->ep->fid.fclass, size_t{FI_CLASS_EP});
  EXPECT_EQ(node->domain->fid.fclass, size_t{FI_CLASS_DOMAIN});
  EXPECT_EQ(node->av->fid.fclass, size_t{FI_CLASS_AV});
  EXPECT_EQ(node->tx_cq->fid.fclass, size_t{FI_CLASS_CQ});
}

TEST_F(ObjectsTest, DomainOfTheSameNameOpensAgain) {
  const Node second;
  EXPECT_EQ(second.result, 0);
}

TEST_F(ObjectsTest, DomainRefusesFlagsAndWrongBindings) {
  fid_domain* domain = nullptr;
  EXPECT_EQ(
      fi_domain2(node->fabric, node->info.get(), &domain, FI_PEER, nullptr),
      -FI_EINVAL);
  EXPECT_EQ(fi_domain_bind(node->domain, &node->av->fid, 0), -FI_EINVAL);
  fid_eq* eq = nullptr;
  fi_eq_attr attr = {};
  ASSERT_EQ(fi_eq_open(node->fabric, &attr, &eq, nullptr), 0);
  EXPECT_EQ(fi_domain_bind(node->domain, &eq->fid, FI_REG_MR), -FI_ENOSYS);
  EXPECT_EQ(fi_domain_bind(node->domain, &eq->fid, 0), 0);
  EXPECT_EQ(fi_domain_bind(node->domain, &eq->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  // The domain first, then the queue, then the fabric.
  fid_fabric* const fabric = node->fabric;
  node->fabric = nullptr;
  node.reset();
  EXPECT_EQ(fi_close(&eq->fid), 0);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

TEST_F(ObjectsTest, EndpointTakesAnEventQueue) {
  fid_eq* eq = nullptr;
  fi_eq_attr attr = {};
  ASSERT_EQ(fi_eq_open(node->fabric, &attr, &eq, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(node->ep, &eq->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(node->ep, &eq->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_enable(node->ep), 0);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&node->ep->fid), 0);
  node->ep = nullptr;
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(ObjectsTest, EndpointOfAnotherTypeIsRefused) {
  fid_ep* ep = nullptr;
  node->info->ep_attr->type = FI_EP_MSG;
  EXPECT_EQ(fi_endpoint(node->domain, node->info.get(), &ep, nullptr),
            -FI_EINVAL);
  node->info->ep_attr->type = FI_EP_RDM;
  EXPECT_EQ(fi_endpoint2(node->domain, node->info.get(), &ep, FI_PEER, nullptr),
            -FI_EINVAL);
}

// ---------------------------------------------------------- address vector

TEST_F(ObjectsTest, TableIndicesCountInsertions) {
  std::vector<sockaddr_in> addresses;
  for (uint16_t i = 0; i < 50; ++i) {
    addresses.push_back(Address(0x0a000001, static_cast<uint16_t>(1 + i)));
  }
  std::vector<fi_addr_t> indices(50, FI_ADDR_UNSPEC);
  EXPECT_EQ(
      fi_av_insert(node->av, addresses.data(), 20, indices.data(), 0, nullptr),
      20);
  EXPECT_EQ(fi_av_insert(node->av, &addresses[20], 30, nullptr, 0, nullptr),
            30);
  for (fi_addr_t i = 0; i < 20; ++i) {
    EXPECT_EQ(indices[i], i);
  }
  for (fi_addr_t i = 0; i < 50; ++i) {
    sockaddr_in found = {};
    size_t length = sizeof(found);
    ASSERT_EQ(fi_av_lookup(node->av, i, &found, &length), 0);
    EXPECT_EQ(length, sizeof(found));
    EXPECT_EQ(std::memcmp(&found, &addresses[i], sizeof(found)), 0);
  }
}

TEST_F(ObjectsTest, BadAddressesAreNotInserted) {
  sockaddr_in addresses[4] = {Address(1, 1), Address(1, 0), Address(0, 1),
                              Address(2, 2)};
  addresses[2].sin_family = AF_INET6;
  fi_addr_t indices[4] = {};
  EXPECT_EQ(fi_av_insert(node->av, addresses, 4, indices, 0, nullptr), 2);
  EXPECT_EQ(indices[0], 0U);
  EXPECT_EQ(indices[1], fi_addr_t{FI_ADDR_NOTAVAIL});
  EXPECT_EQ(indices[2], fi_addr_t{FI_ADDR_NOTAVAIL});
  EXPECT_EQ(indices[3], 1U);
  int errors[4] = {-1, -1, -1, -1};
  EXPECT_EQ(fi_av_insert(node->av, addresses, 4, indices, FI_SYNC_ERR, errors),
            2);
  EXPECT_EQ(errors[0], 0);
  EXPECT_EQ(errors[1], FI_EINVAL);
  EXPECT_EQ(errors[2], FI_EINVAL);
  EXPECT_EQ(errors[3], 0);
  EXPECT_EQ(fi_av_insert(node->av, addresses, 1, indices, FI_SYNC_ERR, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(node->av, addresses, 1, indices, FI_PEEK, nullptr),
            -FI_EBADFLAGS);
}

TEST_F(ObjectsTest, RemovedAddressesAreGoneAndTheirIndexComesBack) {
  const sockaddr_in address = Address(0x0a000001, 10);
  fi_addr_t index = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(node->av, &address, 1, &index, 0, nullptr), 1);
  EXPECT_EQ(fi_av_remove(node->av, &index, 1, FI_PEEK), -FI_EBADFLAGS);
  EXPECT_EQ(fi_av_remove(node->av, &index, 1, 0), 0);
  EXPECT_EQ(fi_av_remove(node->av, &index, 1, 0), -FI_EINVAL);
  sockaddr_in found = {};
  size_t length = sizeof(found);
  EXPECT_EQ(fi_av_lookup(node->av, index, &found, &length), -FI_EINVAL);
  EXPECT_EQ(fi_av_lookup(node->av, FI_ADDR_UNSPEC, &found, &length),
            -FI_EINVAL);
  fi_addr_t again = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(node->av, &address, 1, &again, 0, nullptr), 1);
  EXPECT_EQ(again, index);
}

TEST_F(ObjectsTest, ShortLookupIsCut) {
  const sockaddr_in address = Address(0x0a000001, 10);
  fi_addr_t index = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(node->av, &address, 1, &index, 0, nullptr), 1);
  unsigned char part[5] = {0, 0, 0, 0, 0xee};
  size_t length = 4;
  EXPECT_EQ(fi_av_lookup(node->av, index, part, &length), 0);
  EXPECT_EQ(length, sizeof(address));
  EXPECT_EQ(std::memcmp(part, &address, 4), 0);
  EXPECT_EQ(part[4], 0xee);
}

TEST_F(ObjectsTest, ServicesAndRangesAreInserted) {
  fi_addr_t index = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insertsvc(node->av, "10.1.2.3", "77", &index, 0, nullptr), 1);
  sockaddr_in found = {};
  size_t length = sizeof(found);
  ASSERT_EQ(fi_av_lookup(node->av, index, &found, &length), 0);
  EXPECT_EQ(found.sin_addr.s_addr, htonl(0x0a010203));
  EXPECT_EQ(found.sin_port, htons(77));
  fi_addr_t indices[6] = {};
  ASSERT_EQ(fi_av_insertsym(node->av, "10.0.0.254", 3, "4000", 2, indices, 0,
                            nullptr),
            6);
  ASSERT_EQ(fi_av_lookup(node->av, indices[5], &found, &length), 0);
  EXPECT_EQ(found.sin_addr.s_addr, htonl(0x0a000100));
  EXPECT_EQ(found.sin_port, htons(4001));
  EXPECT_EQ(fi_av_insertsvc(node->av, "10.1.2.3", nullptr, &index, 0, nullptr),
            -FI_EINVAL);
}

TEST_F(ObjectsTest, AddressTextIsCutButItsSizeIsTold) {
  const sockaddr_in address = Address(0x0a000001, 4096);
  const std::string whole = "fi_sockaddr_in://10.0.0.1:4096";
  char text[64] = "";
  size_t length = sizeof(text);
  EXPECT_EQ(fi_av_straddr(node->av, &address, text, &length), text);
  EXPECT_EQ(text, whole);
  EXPECT_EQ(length, whole.size() + 1);
  char part[10] = "";
  length = sizeof(part);
  (void)fi_av_straddr(node->av, &address, part, &length);
  EXPECT_EQ(part, whole.substr(0, 9));
  EXPECT_EQ(length, whole.size() + 1);
}

TEST_F(ObjectsTest, VectorsThatAreNotOfferedAreRefused) {
  fid_av* av = nullptr;
  fi_av_attr attr = {};
  attr.name = "shared";
  EXPECT_EQ(fi_av_open(node->domain, &attr, &av, nullptr), -FI_ENOSYS);
  attr = {};
  attr.flags = FI_EVENT;
  EXPECT_EQ(fi_av_open(node->domain, &attr, &av, nullptr), -FI_ENOSYS);
  attr = {};
  attr.type = static_cast<fi_av_type>(3);
  EXPECT_EQ(fi_av_open(node->domain, &attr, &av, nullptr), -FI_EINVAL);
  attr = {};
  attr.type = FI_AV_MAP;
  attr.count = 100000;
  ASSERT_EQ(fi_av_open(node->domain, &attr, &av, nullptr), 0);
  const sockaddr_in address = Address(1, 1);
  EXPECT_EQ(fi_av_insert(av, &address, 1, nullptr, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

// -------------------------------------------------------- completion queue

TEST_F(ObjectsTest, CompletionQueueTellsItsSizeAndRefusesWhatItIsNot) {
  fid_cq* cq = nullptr;
  fi_cq_attr attr = {};
  attr.size = 100;
  ASSERT_EQ(fi_cq_open(node->domain, &attr, &cq, nullptr), 0);
  EXPECT_GE(attr.size, 100U);
  fi_cq_entry entry;
  EXPECT_EQ(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
  fi_cq_err_entry error = {};
  EXPECT_EQ(fi_cq_readerr(cq, &error, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_cq_signal(cq), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&cq->fid), 0);
  attr = {};
  attr.format = static_cast<fi_cq_format>(7);
  EXPECT_EQ(fi_cq_open(node->domain, &attr, &cq, nullptr), -FI_EINVAL);
  attr = {};
  attr.wait_obj = FI_WAIT_MUTEX_COND;
  EXPECT_EQ(fi_cq_open(node->domain, &attr, &cq, nullptr), -FI_ENOSYS);
  attr.wait_obj = static_cast<fi_wait_obj>(7);
  EXPECT_EQ(fi_cq_open(node->domain, &attr, &cq, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_cq_open(node->domain, nullptr, &cq, nullptr), -FI_EINVAL);
  attr = {};
  attr.flags = FI_PEER;
  EXPECT_EQ(fi_cq_open(node->domain, &attr, &cq, nullptr), -FI_EINVAL);
}

// What C can do, and C++ must not load: UBSan tells.
TEST_F(ObjectsTest, NumbersThatAreNoEnumeratorsAreRefused) {
  const auto spoil = [](auto& enumerator) {
    std::memset(&enumerator, 0xff, sizeof(enumerator));
  };
  fid_cq* cq = nullptr;
  fi_cq_attr queue = {};
  spoil(queue.format);
  EXPECT_EQ(fi_cq_open(node->domain, &queue, &cq, nullptr), -FI_EINVAL);
  queue = {};
  spoil(queue.wait_obj);
  EXPECT_EQ(fi_cq_open(node->domain, &queue, &cq, nullptr), -FI_EINVAL);
  queue = {};
  spoil(queue.wait_cond);
  EXPECT_EQ(fi_cq_open(node->domain, &queue, &cq, nullptr), -FI_EINVAL);
  fid_av* av = nullptr;
  fi_av_attr vector = {};
  spoil(vector.type);
  EXPECT_EQ(fi_av_open(node->domain, &vector, &av, nullptr), -FI_EINVAL);
  fid_cntr* counter = nullptr;
  fi_cntr_attr count = {};
  spoil(count.events);
  EXPECT_EQ(fi_cntr_open(node->domain, &count, &counter, nullptr), -FI_EINVAL);
  count = {};
  spoil(count.wait_obj);
  EXPECT_EQ(fi_cntr_open(node->domain, &count, &counter, nullptr), -FI_EINVAL);
}

TEST_F(ObjectsTest, EachFormatIsTheNextOnesBeginning) {
  ASSERT_EQ(fi_enable(node->ep), 0);
  const fi_addr_t self = node->Insert(*node);
  struct Case {
    fi_cq_format format;
    size_t bytes;
  };
  for (const Case& of : {Case{FI_CQ_FORMAT_CONTEXT, sizeof(fi_cq_entry)},
                         Case{FI_CQ_FORMAT_MSG, sizeof(fi_cq_msg_entry)},
                         Case{FI_CQ_FORMAT_DATA, sizeof(fi_cq_data_entry)},
                         Case{FI_CQ_FORMAT_TAGGED, sizeof(fi_cq_tagged_entry)},
                         Case{FI_CQ_FORMAT_UNSPEC, sizeof(fi_cq_entry)}}) {
    SCOPED_TRACE(of.format);
    fid_cq* cq = nullptr;
    fid_ep* ep = nullptr;
    fi_cq_attr attr = {};
    attr.format = of.format;
    ASSERT_EQ(fi_cq_open(node->domain, &attr, &cq, nullptr), 0);
    ASSERT_EQ(fi_endpoint(node->domain, node->info.get(), &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
    ASSERT_EQ(fi_ep_bind(ep, &node->rx_cq->fid, FI_RECV), 0);
    ASSERT_EQ(fi_ep_bind(ep, &node->av->fid, 0), 0);
    ASSERT_EQ(fi_enable(ep), 0);
    int context = 0;
    ASSERT_EQ(fi_recv(node->ep, &context, sizeof(context), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_EQ(fi_send(ep, &context, sizeof(context), nullptr, self, &context),
              0);
    union {
      fi_cq_tagged_entry entry;
      unsigned char bytes[sizeof(fi_cq_tagged_entry)];
    } read;
    std::memset(read.bytes, 0xee, sizeof(read.bytes));
    ASSERT_TRUE(WaitUntil([&] { return fi_cq_read(cq, &read, 1) == 1; }));
    EXPECT_EQ(read.entry.op_context, &context);
    if (of.bytes > sizeof(fi_cq_entry)) {
      EXPECT_EQ(read.entry.flags, uint64_t{FI_SEND | FI_MSG});
      EXPECT_EQ(read.entry.len, sizeof(context));
    }
    for (size_t i = of.bytes; i < sizeof(read.bytes); ++i) {
      EXPECT_EQ(read.bytes[i], 0xee);
    }
    ASSERT_TRUE(Take(node->rx_cq).has_value());
    EXPECT_EQ(fi_close(&ep->fid), 0);
    EXPECT_EQ(fi_close(&cq->fid), 0);
  }
}

TEST_F(ObjectsTest, ErrorDataGoesWhereTheCallerWants) {
  ASSERT_EQ(fi_enable(node->ep), 0);
  int context = 0;
  ASSERT_EQ(fi_recv(node->ep, &context, sizeof(context), nullptr,
                    FI_ADDR_UNSPEC, &context),
            0);
  ASSERT_EQ(fi_cancel(&node->ep->fid, &context), 0);
  fi_cq_tagged_entry entry;
  ASSERT_TRUE(WaitUntil(
      [&] { return fi_cq_read(node->rx_cq, &entry, 1) == -FI_EAVAIL; }));
  unsigned char room[8];
  fi_cq_err_entry error = {};
  error.err_data = room;
  error.err_data_size = sizeof(room);
  ASSERT_EQ(fi_cq_readerr(node->rx_cq, &error, 0), 1);
  EXPECT_EQ(error.err, FI_ECANCELED);
  // A cancellation has no peer, so nothing was copied.
  EXPECT_EQ(error.err_data, room);
  EXPECT_EQ(error.err_data_size, 0U);
  const char* text =
      fi_cq_strerror(node->rx_cq, error.prov_errno, nullptr, nullptr, 0);
  ASSERT_NE(text, nullptr);
  EXPECT_NE(std::string(text).find("cancelled"), std::string::npos);
}

// -------------------------------------------------------------------- fork

TEST_F(ObjectsTest, InheritedObjectsAreRefusedInAForkedChild) {
  ASSERT_EQ(fi_enable(node->ep), 0);
  const fi_addr_t self = node->Insert(*node);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    uint64_t value = 0;
    fi_cq_tagged_entry entry;
    fi_cq_attr attr = {};
    fid_cq* cq = nullptr;
    const bool refused =
        fi_send(node->ep, &value, 8, nullptr, self, nullptr) ==
            -FI_EOPBADSTATE &&
        fi_cq_read(node->rx_cq, &entry, 1) == -FI_EOPBADSTATE &&
        fi_av_remove(node->av, nullptr, 0, 0) == -FI_EOPBADSTATE &&
        fi_cq_open(node->domain, &attr, &cq, nullptr) == -FI_EOPBADSTATE &&
        fi_close(&node->ep->fid) == -FI_EOPBADSTATE &&
        fi_close(&node->domain->fid) == -FI_EOPBADSTATE;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  // The parent's objects go on.
  uint64_t value = 8;
  uint64_t received = 0;
  ASSERT_EQ(fi_recv(node->ep, &received, 8, nullptr, FI_ADDR_UNSPEC, nullptr),
            0);
  ASSERT_EQ(fi_send(node->ep, &value, 8, nullptr, self, nullptr), 0);
  ASSERT_TRUE(Take(node->rx_cq).has_value());
  EXPECT_EQ(received, 8U);
}

// ----------------------------------------------------------- memory region

TEST_F(ObjectsTest, ApplicationKeysAreKeptApart) {
  std::vector<uint8_t> memory(8192);
  fid_mr* first = nullptr;
  fid_mr* second = nullptr;
  ASSERT_EQ(fi_mr_reg(node->domain, memory.data(), memory.size(), FI_SEND, 0,
                      0xabcdef0123, 0, &first, &memory),
            0);
  EXPECT_EQ(fi_mr_key(first), 0xabcdef0123U);
  EXPECT_EQ(first->fid.context, &memory);
  EXPECT_NE(fi_mr_desc(first), nullptr);
  EXPECT_EQ(fi_mr_reg(node->domain, memory.data(), memory.size(), FI_RECV, 0,
                      0xabcdef0123, 0, &second, nullptr),
            -FI_ENOKEY);
  EXPECT_EQ(fi_close(&node->domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&first->fid), 0);
  EXPECT_EQ(fi_mr_reg(node->domain, memory.data(), memory.size(), FI_RECV, 0,
                      0xabcdef0123, 0, &second, nullptr),
            0);
  // It needs neither: it serves every endpoint since it was registered.
  EXPECT_EQ(fi_mr_enable(second), 0);
  EXPECT_EQ(fi_mr_bind(second, &node->ep->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

TEST_F(ObjectsTest, BadRegistrationsAreRefused) {
  std::vector<uint8_t> memory(64);
  fid_mr* region = nullptr;
  EXPECT_EQ(fi_mr_reg(node->domain, memory.data(), 64, uint64_t{1} << 50U, 0, 1,
                      0, &region, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_mr_reg(node->domain, memory.data(), 64, FI_SEND, 0, 1, FI_PEEK,
                      &region, nullptr),
            -FI_EBADFLAGS);
  EXPECT_EQ(fi_mr_reg(node->domain, memory.data(), 0, FI_SEND, 0, 1, 0, &region,
                      nullptr),
            -FI_EINVAL);
  iovec parts[5];
  for (iovec& part : parts) {
    part = {.iov_base = memory.data(), .iov_len = 8};
  }
  EXPECT_EQ(
      fi_mr_regv(node->domain, parts, 5, FI_SEND, 0, 1, 0, &region, nullptr),
      -FI_EINVAL);
  // None of them took the key.
  ASSERT_EQ(
      fi_mr_regv(node->domain, parts, 4, FI_SEND, 0, 1, 0, &region, nullptr),
      0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

}  // namespace
}  // namespace heddle::test
