// SPDX-License-Identifier: Apache-2.0
#include "tests/host/ofi/rdm_fixture.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

namespace heddle::test {
namespace {

constexpr int kPollsPerYield = 16;
constexpr size_t kNameBytes = 256;

// Test programs that run at the same time must not meet on the wire.
class OwnWire : public ::testing::Environment {
 public:
  void SetUp() override {
    const std::string name = "rdm-" + std::to_string(getpid());
    ASSERT_EQ(setenv("FI_HEDDLE_WIRE", name.c_str(), /*replace=*/0), 0);
  }
};

[[maybe_unused]] ::testing::Environment* const own_wire =
    ::testing::AddGlobalTestEnvironment(new OwnWire);

// Gives a key of the endpoint or the domain, which fi_freeinfo frees.
void SetAuthKey(uint32_t value, uint8_t** key, size_t* bytes) {
  if (value != 0) {
    *bytes = sizeof(value);
    *key = static_cast<uint8_t*>(malloc(sizeof(value)));
    std::memcpy(*key, &value, sizeof(value));
  }
}

// The hint of tests that name no threading model: whatever, or, where
// HEDDLE_TEST_THREADING is `domain`, that the application serializes.
fi_threading DefaultThreading() {
  const char* const named = std::getenv("HEDDLE_TEST_THREADING");
  return named != nullptr && std::string_view(named) == "domain"
             ? FI_THREAD_DOMAIN
             : FI_THREAD_UNSPEC;
}

// Opens the domain of the first device that no other node has; `info` is then
// that device's alone.
int OpenFreeDomain(fid_fabric* fabric, InfoPointer* info, fid_domain** domain) {
  int result = -FI_ENODATA;
  for (fi_info* each = info->get(); each != nullptr; each = each->next) {
    result = fi_domain(fabric, each, domain, nullptr);
    if (result != -FI_EBUSY) {
      *info = InfoPointer(fi_dupinfo(each));
      break;
    }
  }
  return result;
}

}  // namespace

InfoPointer GetInfo(const NodeOptions& options) {
  const InfoPointer hints(fi_allocinfo());
  hints->caps = options.caps;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = options.threading == FI_THREAD_UNSPEC
                                      ? DefaultThreading()
                                      : options.threading;
  hints->domain_attr->data_progress = options.progress;
  hints->domain_attr->control_progress = options.progress;
  hints->domain_attr->av_type = options.av_type;
  hints->domain_attr->mr_mode = options.mr_mode;
  hints->tx_attr->size = options.tx_size;
  hints->rx_attr->size = options.rx_size;
  hints->tx_attr->msg_order = options.msg_order;
  hints->rx_attr->msg_order = options.msg_order;
  hints->tx_attr->op_flags = options.tx_op_flags;
  hints->rx_attr->op_flags = options.rx_op_flags;
  hints->fabric_attr->prov_name = strdup("heddle");
  fi_info* found = nullptr;
  (void)fi_getinfo(options.api_version, nullptr, options.service,
                   options.service == nullptr ? 0 : FI_SOURCE, hints.get(),
                   &found);
  return InfoPointer(found);
}

Node::Node(const NodeOptions& options) : options_(options) {
  info = GetInfo(options);
  if (info == nullptr) {
    result = -FI_ENODATA;
    return;
  }
  if (options.device != nullptr) {
    free(info->domain_attr->name);
    info->domain_attr->name =
        strdup((std::string(options.device) + "0").c_str());
  }
  for (fi_info* each = info.get(); each != nullptr; each = each->next) {
    SetAuthKey(options.auth_key, &each->ep_attr->auth_key,
               &each->ep_attr->auth_key_size);
    SetAuthKey(options.domain_auth_key, &each->domain_attr->auth_key,
               &each->domain_attr->auth_key_size);
    each->tx_attr->tclass = options.traffic_class;
    each->domain_attr->tclass = options.domain_traffic_class;
  }
  fi_cq_attr cq_attr = {};
  cq_attr.format = FI_CQ_FORMAT_TAGGED;
  cq_attr.wait_obj = options.wait_object;
  cq_attr.size = options.cq_size;
  fi_av_attr av_attr = {};
  av_attr.type = options.av_type;
  const auto step = [&](int outcome) {
    result = result == 0 ? outcome : result;
    return result == 0;
  };
  (void)(step(fi_fabric(info->fabric_attr, &fabric, nullptr)) &&
         step(OpenFreeDomain(fabric, &info, &domain)) &&
         step(fi_cq_open(domain, &cq_attr, &tx_cq, nullptr)) &&
         step(fi_cq_open(domain, &cq_attr, &rx_cq, nullptr)) &&
         step(fi_av_open(domain, &av_attr, &av, nullptr)) &&
         step(fi_endpoint(domain, info.get(), &ep, this)) &&
         step(fi_ep_bind(ep, &tx_cq->fid, FI_TRANSMIT | options.bind_flags)) &&
         step(fi_ep_bind(ep, &rx_cq->fid, FI_RECV | options.bind_flags)) &&
         step(fi_ep_bind(ep, &av->fid, 0)) &&
         step(options.enable ? fi_enable(ep) : 0));
}

Node::~Node() {
  fid* const objects[] = {
      ep == nullptr ? nullptr : &ep->fid,
      av == nullptr ? nullptr : &av->fid,
      rx_cq == nullptr ? nullptr : &rx_cq->fid,
      tx_cq == nullptr ? nullptr : &tx_cq->fid,
      domain == nullptr ? nullptr : &domain->fid,
      fabric == nullptr ? nullptr : &fabric->fid,
  };
  for (fid* object : objects) {
    if (object != nullptr) {
      EXPECT_EQ(fi_close(object), 0) << "class " << object->fclass;
    }
  }
}

std::vector<uint8_t> Node::Name() const {
  std::vector<uint8_t> name(kNameBytes);
  size_t bytes = name.size();
  EXPECT_EQ(fi_getname(&ep->fid, name.data(), &bytes), 0);
  name.resize(bytes);
  return name;
}

fi_addr_t Node::Insert(const Node& other) {
  fi_addr_t address = FI_ADDR_UNSPEC;
  EXPECT_EQ(fi_av_insert(av, other.Name().data(), 1, &address, 0, nullptr), 1);
  return address;
}

fid_ep* Node::OpenEndpoint() {
  fid_ep* more = nullptr;
  EXPECT_EQ(fi_endpoint(domain, info.get(), &more, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(more, &tx_cq->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_ep_bind(more, &rx_cq->fid, FI_RECV), 0);
  EXPECT_EQ(fi_ep_bind(more, &av->fid, 0), 0);
  EXPECT_EQ(fi_enable(more), 0);
  return more;
}

bool WaitUntil(const std::function<bool()>& done,
               std::chrono::nanoseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

std::optional<Outcome> Take(fid_cq* cq, std::chrono::nanoseconds limit,
                            fid_cq* driven) {
  Outcome outcome;
  ssize_t result = -FI_EAGAIN;
  const auto poll = [&] {
    result = fi_cq_readfrom(cq, &outcome.entry, 1, &outcome.source);
    return result != -FI_EAGAIN;
  };
  const bool came = WaitUntil(
      [&] {
        for (int i = 0; driven != nullptr && i < kPollsPerYield; ++i) {
          if (poll()) {
            return true;
          }
          (void)fi_cq_read(driven, nullptr, 0);
        }
        return poll();
      },
      limit);
  if (!came) {
    return std::nullopt;
  }
  if (result == -FI_EAVAIL) {
    outcome.error = true;
    result = fi_cq_readerr(cq, &outcome.failure, 0);
  }
  EXPECT_EQ(result, 1);
  return result == 1 ? std::optional(outcome) : std::nullopt;
}

bool StaysEmpty(fid_cq* cq) {
  fi_cq_tagged_entry entry;
  for (int i = 0; i < 2000; ++i) {
    if (fi_cq_read(cq, &entry, 1) != -FI_EAGAIN) {
      return false;
    }
  }
  return true;
}

size_t ResidentBytes() {
  size_t total = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

std::vector<uint8_t> Pattern(size_t bytes, uint32_t seed) {
  std::vector<uint8_t> data(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<uint8_t>(i * 131 + (i >> 8U) * 7 + bytes + seed);
  }
  return data;
}

void PairTest::Open(const NodeOptions& of_a, const NodeOptions& of_b) {
  const auto on = [](NodeOptions options, const char* variable) {
    options.device = getenv(variable);
    return options;
  };
  a = std::make_unique<Node>(on(of_a, "HEDDLE_TEST_A"));
  ASSERT_EQ(a->result, 0) << fi_strerror(-a->result);
  b = std::make_unique<Node>(on(of_b, "HEDDLE_TEST_B"));
  ASSERT_EQ(b->result, 0) << fi_strerror(-b->result);
  if (of_a.enable && of_b.enable) {
    to_b = a->Insert(*b);
    to_a = b->Insert(*a);
  }
}

void PairTest::Exchange(const std::vector<uint8_t>& sent,
                        std::vector<uint8_t>& received) {
  int receive_context = 0;
  int send_context = 0;
  ASSERT_EQ(fi_recv(b->ep, received.data(), received.size(), nullptr,
                    FI_ADDR_UNSPEC, &receive_context),
            0);
  ASSERT_EQ(
      fi_send(a->ep, sent.data(), sent.size(), nullptr, to_b, &send_context),
      0);
  const auto at_b = Take(b->rx_cq);
  ASSERT_TRUE(at_b.has_value());
  ASSERT_FALSE(at_b->error) << fi_strerror(at_b->failure.err);
  EXPECT_EQ(at_b->entry.op_context, &receive_context);
  EXPECT_EQ(at_b->entry.flags, uint64_t{FI_RECV | FI_MSG});
  EXPECT_EQ(at_b->entry.len, sent.size());
  const auto at_a = Take(a->tx_cq);
  ASSERT_TRUE(at_a.has_value());
  ASSERT_FALSE(at_a->error) << fi_strerror(at_a->failure.err);
  EXPECT_EQ(at_a->entry.op_context, &send_context);
  EXPECT_EQ(at_a->entry.flags, uint64_t{FI_SEND | FI_MSG});
}

}  // namespace heddle::test
