// SPDX-License-Identifier: Apache-2.0
// fi_getinfo and the memory of fi_info.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

class GetInfoTest : public NodesTest {};
class InfoTest : public NodesTest {};

constexpr fi_ep_type kTypes[] = {FI_EP_MSG, FI_EP_DGRAM, FI_EP_RDM};
constexpr const char* kNoName = "heddle-conformance-none";

bool SameName(const char* a, const char* b) {
  return a != nullptr && b != nullptr && std::strcmp(a, b) == 0;
}

// A source host that a query may name; empty, with the verdict, if the
// provider does not use IP.
std::string FindHost() {
  const Answer answer = GetInfo(MakeHints(0).get());
  for (const fi_info* info : answer.own()) {
    std::string host = NumericHost(*info);
    if (!host.empty()) {
      return host;
    }
  }
  NotOffered("addresses of IP");
  return "";
}

CONFORMANCE_TEST(GetInfoTest, WithoutHintsEveryEndpointTypeIsListed, 1) {
  const Answer all = GetInfo(nullptr);
  ASSERT_EQ(all.result, 0);
  ASSERT_FALSE(all.empty());
  for (const fi_ep_type type : kTypes) {
    const InfoPointer hints = MakeEmptyHints();
    hints->mode = ~uint64_t{0};
    hints->domain_attr->mr_mode = kMrModes;
    hints->ep_attr->type = type;
    const bool offered = !GetInfo(hints.get()).empty();
    const auto own = all.own();
    EXPECT_EQ(offered, std::any_of(own.begin(), own.end(),
                                   [&](const fi_info* info) {
                                     return info->ep_attr->type == type;
                                   }))
        << fi_tostr(&type, FI_TYPE_EP_TYPE);
  }
}

CONFORMANCE_TEST(GetInfoTest, NoMatchIsNoDataAndNull, 2) {
  const InfoPointer hints = MakeHints(0);
  hints->tx_attr->iov_limit = SIZE_MAX;
  fi_info garbage = {};
  fi_info* found = &garbage;
  EXPECT_EQ(fi_getinfo(kVersion, nullptr, nullptr, 0, hints.get(), &found),
            -FI_ENODATA);
  EXPECT_EQ(found, nullptr);
}

CONFORMANCE_TEST(GetInfoTest, EveryCombinationOfArgumentsIsTaken, 3) {
  for (unsigned given = 0; given < 8; ++given) {
    const InfoPointer hints = MakeHints(0);
    Query query;
    query.node = (given & 1U) != 0 ? "127.0.0.1" : nullptr;
    query.service = (given & 2U) != 0 ? "4711" : nullptr;
    const bool with_hints = (given & 4U) != 0;
    const Answer answer = GetInfo(with_hints ? hints.get() : nullptr, query);
    if (answer.result != 0) {
      EXPECT_EQ(answer.result, -FI_ENODATA) << given;
      EXPECT_EQ(answer.infos, nullptr) << given;
      EXPECT_NE(given & 3U, 0U) << "nothing without node and service";
      continue;
    }
    EXPECT_NE(answer.infos, nullptr) << given;
    for (const fi_info* info = answer.infos.get();
         info != nullptr && with_hints; info = info->next) {
      EXPECT_EQ(info->ep_attr->type, FI_EP_RDM) << given;
      EXPECT_EQ(info->fabric_attr->prov_name, CurrentSettings().provider)
          << given;
    }
  }
}

CONFORMANCE_TEST(GetInfoTest, AnswerMatchesAgainAsHints, 5) {
  const Answer first = GetInfo(nullptr);
  ASSERT_EQ(first.result, 0);
  for (const fi_info* info : first.own()) {
    const InfoPointer hints(fi_dupinfo(info));
    const Answer second = GetInfo(hints.get());
    const auto own = second.own();
    EXPECT_TRUE(std::any_of(
        own.begin(), own.end(),
        [&](const fi_info* each) {
          return each->ep_attr->type == info->ep_attr->type &&
                 SameName(each->domain_attr->name, info->domain_attr->name) &&
                 SameName(each->fabric_attr->name, info->fabric_attr->name);
        }))
        << fi_strerror(-second.result) << "\n"
        << fi_tostr(info, FI_TYPE_INFO);
  }
}

CONFORMANCE_TEST(GetInfoTest, HintThatCannotBeMetLeavesNothing, 6) {
  ASSERT_EQ(GetInfo(MakeHints(FI_MSG).get()).result, 0);
  const std::map<const char*, void (*)(fi_info*)> changes = {
      {"provider name",
       [](fi_info* hints) {
         free(hints->fabric_attr->prov_name);
         hints->fabric_attr->prov_name = CopyText(kNoName);
       }},
      {"inject_size",
       [](fi_info* hints) { hints->tx_attr->inject_size = SIZE_MAX; }},
      {"iov_limit of transmits",
       [](fi_info* hints) { hints->tx_attr->iov_limit = SIZE_MAX; }},
      {"iov_limit of receives",
       [](fi_info* hints) { hints->rx_attr->iov_limit = SIZE_MAX; }},
      {"cq_data_size",
       [](fi_info* hints) { hints->domain_attr->cq_data_size = SIZE_MAX; }},
  };
  for (const auto& [what, change] : changes) {
    const InfoPointer hints = MakeHints(FI_MSG);
    change(hints.get());
    const Answer answer = GetInfo(hints.get());
    EXPECT_EQ(answer.result, -FI_ENODATA) << what;
    EXPECT_EQ(answer.infos, nullptr) << what;
  }
}

CONFORMANCE_TEST(GetInfoTest, ZeroIsReplacedByWhatTheProviderHas, 7) {
  const InfoPointer hints = MakeEmptyHints();
  hints->mode = ~uint64_t{0};
  const Answer answer = GetInfo(hints.get());
  ASSERT_EQ(answer.result, 0);
  for (const fi_info* info : answer.own()) {
    EXPECT_NE(info->caps, 0U);
    EXPECT_NE(info->ep_attr->type, FI_EP_UNSPEC);
    EXPECT_NE(info->ep_attr->max_msg_size, 0U);
    EXPECT_NE(info->tx_attr->size, 0U);
    EXPECT_NE(info->rx_attr->size, 0U);
    EXPECT_NE(info->tx_attr->iov_limit, 0U);
    EXPECT_NE(info->domain_attr->threading, FI_THREAD_UNSPEC);
    EXPECT_NE(info->domain_attr->data_progress, FI_PROGRESS_UNSPEC);
    EXPECT_NE(info->domain_attr->resource_mgmt, FI_RM_UNSPEC);
    EXPECT_NE(info->domain_attr->name, nullptr);
    EXPECT_NE(info->fabric_attr->name, nullptr);
  }
}

CONFORMANCE_TEST(GetInfoTest, NoModeOfTheHintsMeansNoModeOfTheAnswer, 8) {
  const InfoPointer hints = MakeEmptyHints();
  hints->domain_attr->mr_mode = kMrModes;
  const Answer answer = GetInfo(hints.get());
  if (answer.result != 0) {
    EXPECT_EQ(answer.result, -FI_ENODATA);
  }
  for (const fi_info* info : answer.own()) {
    EXPECT_EQ(info->mode, 0U);
    EXPECT_EQ(info->tx_attr->mode, 0U);
    EXPECT_EQ(info->rx_attr->mode, 0U);
  }
}

CONFORMANCE_TEST(GetInfoTest, NewerVersionIsRefused, 9) {
  const uint32_t own = fi_version();
  for (const uint32_t version : {FI_VERSION(FI_MAJOR(own), FI_MINOR(own) + 1),
                                 FI_VERSION(FI_MAJOR(own) + 1, 0)}) {
    EXPECT_EQ(GetInfo(nullptr, {.version = version}).result, -FI_ENOSYS);
  }
}

CONFORMANCE_TEST(GetInfoTest, VersionOfTheAnswerIsTheRequestedOne, 12) {
  for (const uint32_t minor : {0U, 4U, 5U, 9U, 17U}) {
    const uint32_t version = FI_VERSION(1, minor);
    const Answer answer = GetInfo(nullptr, {.version = version});
    ASSERT_EQ(answer.result, 0) << minor;
    for (const fi_info* info : answer.own()) {
      EXPECT_EQ(info->fabric_attr->api_version, version) << minor;
    }
  }
}

CONFORMANCE_TEST(GetInfoTest, NodeAndServiceAreTheDestination, 14) {
  const std::string host = FindHost();
  if (host.empty()) {
    return;
  }
  const Answer answer =
      GetInfo(MakeHints(0).get(), {.node = host.c_str(), .service = "4711"});
  ASSERT_EQ(answer.result, 0);
  for (const fi_info* info : answer.own()) {
    ASSERT_NE(info->dest_addr, nullptr);
    ASSERT_NE(info->src_addr, nullptr);
    EXPECT_EQ(NumericHost(info->dest_addr, info->dest_addrlen), host);
    // Port: bytes 2 and 3 of either family of IP.
    const auto* const bytes = static_cast<const uint8_t*>(info->dest_addr);
    EXPECT_EQ(bytes[2] * 256 + bytes[3], 4711);
  }
}

CONFORMANCE_TEST(GetInfoTest, NumericHostLooksUpNoName, 16) {
  const std::string host = FindHost();
  if (host.empty()) {
    return;
  }
  const uint64_t flags = FI_NUMERICHOST | FI_SOURCE;
  EXPECT_EQ(
      GetInfo(MakeHints(0).get(), {.node = "localhost", .flags = flags}).result,
      -FI_ENODATA);
  EXPECT_EQ(GetInfo(MakeHints(0).get(), {.node = host.c_str(), .flags = flags})
                .result,
            0);
}

CONFORMANCE_TEST(GetInfoTest, SourceFlagNamesTheSource, 17) {
  const std::string host = FindHost();
  if (host.empty()) {
    return;
  }
  const Answer answer =
      GetInfo(MakeHints(0).get(),
              {.node = host.c_str(), .service = "4711", .flags = FI_SOURCE});
  ASSERT_EQ(answer.result, 0);
  for (const fi_info* info : answer.own()) {
    EXPECT_EQ(NumericHost(*info), host);
    EXPECT_EQ(info->dest_addr, nullptr);
  }
}

CONFORMANCE_TEST(GetInfoTest, SourceFlagNeedsNodeOrService, 18) {
  const Answer answer = GetInfo(MakeHints(0).get(), {.flags = FI_SOURCE});
  EXPECT_TRUE(answer.result == -FI_EINVAL || answer.result == -FI_ENODATA)
      << answer.result;
}

CONFORMANCE_TEST(GetInfoTest, ProviderAttributesOnlyAreOneEntryEach, 19) {
  const Answer answer = GetInfo(nullptr, {.flags = FI_PROV_ATTR_ONLY});
  ASSERT_EQ(answer.result, 0);
  std::map<std::string, int> counts;
  for (const fi_info* info = answer.infos.get(); info != nullptr;
       info = info->next) {
    ASSERT_NE(info->fabric_attr, nullptr);
    ASSERT_NE(info->fabric_attr->prov_name, nullptr);
    EXPECT_NE(info->fabric_attr->prov_version, 0U);
    ++counts[info->fabric_attr->prov_name];
  }
  for (const auto& [name, count] : counts) {
    EXPECT_EQ(count, 1) << name;
  }
  // Layered providers are listed each by itself.
  const std::string& provider = CurrentSettings().provider;
  for (size_t start = 0; start < provider.size();) {
    const size_t end = std::min(provider.find(';', start), provider.size());
    EXPECT_EQ(counts.count(provider.substr(start, end - start)), 1U);
    start = end + 1;
  }
}

CONFORMANCE_TEST(GetInfoTest, UnknownFlagsAreRefused, 20) {
  const Answer answer =
      GetInfo(MakeHints(0).get(), {.flags = uint64_t{1} << 62U});
  EXPECT_EQ(answer.result, -FI_EBADFLAGS);
}

CONFORMANCE_TEST(GetInfoTest, ThreadsGetTheSameAnswers, 22) {
  const auto text = [] {
    const Answer answer = GetInfo(MakeHints(0).get());
    std::string all;
    for (const fi_info* info : answer.own()) {
      char part[8192];
      all += fi_tostr_r(part, sizeof(part), info, FI_TYPE_INFO);
    }
    return all;
  };
  constexpr size_t kThreads = 8;
  std::vector<std::string> first(kThreads);
  std::vector<int> changes(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      first[i] = text();
      for (int round = 0; round < 5; ++round) {
        changes[i] += text() != first[i] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_FALSE(first[i].empty());
    EXPECT_EQ(first[i], first[0]);
    EXPECT_EQ(changes[i], 0);
  }
}

CONFORMANCE_TEST(GetInfoTest, NodeComesBeforeAddressesOfTheHints, 23, 24) {
  const std::string host = FindHost();
  if (host.empty()) {
    return;
  }
  const Answer named =
      GetInfo(MakeHints(0).get(),
              {.node = host.c_str(), .service = "4711", .flags = FI_SOURCE});
  ASSERT_FALSE(named.own().empty());
  const fi_info& source = *named.own().front();
  const auto copy = [&](uint8_t port) {
    void* const address = malloc(source.src_addrlen);
    std::memcpy(address, source.src_addr, source.src_addrlen);
    static_cast<uint8_t*>(address)[3] = port;
    return address;
  };
  const auto port = [](const void* address) {
    return static_cast<const uint8_t*>(address)[3];
  };
  constexpr uint8_t kPort = 4711 % 256;
  constexpr uint8_t kOther = kPort + 1;
  const auto hints_with = [&](bool source_hint) {
    InfoPointer hints = MakeHints(0);
    hints->addr_format = source.addr_format;
    (source_hint ? hints->src_addr : hints->dest_addr) = copy(kOther);
    (source_hint ? hints->src_addrlen : hints->dest_addrlen) =
        source.src_addrlen;
    return hints;
  };
  // 23: FI_SOURCE and a source among the hints.
  const Answer by_flag =
      GetInfo(hints_with(true).get(),
              {.node = host.c_str(), .service = "4711", .flags = FI_SOURCE});
  ASSERT_FALSE(by_flag.own().empty());
  EXPECT_EQ(port(by_flag.own().front()->src_addr), kPort);
  // 24: a node and a destination among the hints; then the latter alone.
  const Answer by_node = GetInfo(hints_with(false).get(),
                                 {.node = host.c_str(), .service = "4711"});
  ASSERT_FALSE(by_node.own().empty());
  ASSERT_NE(by_node.own().front()->dest_addr, nullptr);
  EXPECT_EQ(port(by_node.own().front()->dest_addr), kPort);
  const Answer by_hint = GetInfo(hints_with(false).get());
  ASSERT_FALSE(by_hint.own().empty());
  ASSERT_NE(by_hint.own().front()->dest_addr, nullptr);
  EXPECT_EQ(port(by_hint.own().front()->dest_addr), kOther);
}

CONFORMANCE_TEST(InfoTest, SourceServesAnEndpoint, 25) {
  if (!Open()) {
    return;
  }
  ASSERT_NE(a().info->src_addr, nullptr);
  ASSERT_NE(a().info->src_addrlen, 0U);
  // The name of the endpoint that was made from it is of the same format.
  EXPECT_GE(a().Name().size(), 1U);
  Exchange(100);
}

CONFORMANCE_TEST(InfoTest, DestinationServesTheVector, 26) {
  const std::string host = FindHost();
  if (host.empty() || !Open()) {
    return;
  }
  // The name of the receiver as node and service.
  const std::vector<uint8_t> name = b().Name();
  const std::string node = NumericHost(name.data(), name.size());
  const std::string service = std::to_string(name[2] * 256 + name[3]);
  const Answer answer =
      GetInfo(MakeHints(FI_MSG).get(),
              {.node = node.c_str(), .service = service.c_str()});
  ASSERT_FALSE(answer.empty());
  const fi_info& info = *answer.own().front();
  ASSERT_NE(info.dest_addr, nullptr);
  fi_addr_t address = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(a().av, info.dest_addr, 1, &address, 0, nullptr), 1);
  Buffer sent(a(), 64);
  Buffer received(b(), 64);
  sent.Fill();
  fi_context2 contexts[2] = {};
  ASSERT_EQ(Receive(received, &contexts[0]), 0);
  ASSERT_EQ(Post([&] {
              return fi_send(a().ep, sent.data(), 64, sent.desc(), address,
                             &contexts[1]);
            }),
            0);
  ExpectDone(b().rx, &contexts[0]);
  ExpectDone(a().tx, &contexts[1]);
  EXPECT_EQ(received.bytes(), sent.bytes());
}

CONFORMANCE_TEST(InfoTest, HandleIsNotFollowed, 28) {
  static int calls;
  calls = 0;
  fi_ops ops = {};
  ops.size = sizeof(ops);
  ops.close = [](fid*) { return calls++; };
  fid handle = {};
  handle.fclass = FI_CLASS_CONNREQ;
  handle.ops = &ops;
  InfoPointer info(fi_allocinfo());
  info->handle = &handle;
  InfoPointer copy(fi_dupinfo(info.get()));
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->handle, &handle);
  copy.reset();
  info.reset();
  EXPECT_EQ(calls, 0);
}

CONFORMANCE_TEST(InfoTest, OpenDomainRestrictsTheAnswer, 29) {
  if (!Open({}, 1)) {
    return;
  }
  const InfoPointer hints = MakeHints(FI_MSG);
  hints->domain_attr->domain = a().domain;
  const Answer answer = GetInfo(hints.get());
  ASSERT_EQ(answer.result, 0);
  ASSERT_FALSE(answer.empty());
  for (const fi_info* info : answer.own()) {
    EXPECT_STREQ(info->domain_attr->name, a().info->domain_attr->name);
    EXPECT_TRUE(info->domain_attr->domain == nullptr ||
                info->domain_attr->domain == a().domain);
  }
}

CONFORMANCE_TEST(InfoTest, FirstOpenDomainIsReported, 30) {
  const auto reported = [](const char* name) {
    const Answer answer = GetInfo(MakeHints(FI_MSG).get());
    for (const fi_info* info : answer.own()) {
      if (name == nullptr || SameName(info->domain_attr->name, name)) {
        return info->domain_attr->domain;
      }
    }
    ADD_FAILURE() << "no entry of the domain";
    return static_cast<fid_domain*>(nullptr);
  };
  EXPECT_EQ(reported(nullptr), nullptr);
  if (!Open({}, 1)) {
    return;
  }
  fid_domain* second = nullptr;
  ASSERT_EQ(fi_domain(a().fabric, a().info.get(), &second, nullptr), 0);
  EXPECT_TRUE(reported(a().info->domain_attr->name) == a().domain);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

CONFORMANCE_TEST(InfoTest, OpenFabricIsReported, 31) {
  const Answer before = GetInfo(MakeHints(FI_MSG).get());
  for (const fi_info* info : before.own()) {
    EXPECT_TRUE(info->fabric_attr->fabric == nullptr);
  }
  if (!Open({}, 1)) {
    return;
  }
  const Answer answer = GetInfo(MakeHints(FI_MSG).get());
  int found = 0;
  for (const fi_info* info : answer.own()) {
    if (SameName(info->fabric_attr->name, a().info->fabric_attr->name)) {
      EXPECT_TRUE(info->fabric_attr->fabric == a().fabric);
      ++found;
    }
  }
  EXPECT_GT(found, 0);
}

CONFORMANCE_TEST(GetInfoTest, ProviderNameSelects, 32) {
  const Answer answer = GetInfo(MakeEmptyHints().get());
  ASSERT_EQ(answer.result, 0);
  for (const fi_info* info = answer.infos.get(); info != nullptr;
       info = info->next) {
    EXPECT_EQ(info->fabric_attr->prov_name, CurrentSettings().provider);
  }
}

CONFORMANCE_TEST(GetInfoTest, NamesOfFabricAndDomainSelect, 33) {
  const Answer all = GetInfo(MakeHints(0).get());
  ASSERT_FALSE(all.empty());
  for (const bool domain : {false, true}) {
    const auto field = [&](const fi_info* info) -> char*& {
      return domain ? info->domain_attr->name : info->fabric_attr->name;
    };
    const InfoPointer hints = MakeHints(0);
    const std::string name = field(all.own().front());
    field(hints.get()) = CopyText(name);
    const Answer answer = GetInfo(hints.get());
    EXPECT_FALSE(answer.empty());
    for (const fi_info* info : answer.own()) {
      EXPECT_EQ(field(info), name);
    }
    free(field(hints.get()));
    field(hints.get()) = CopyText(name + "-none");
    EXPECT_EQ(GetInfo(hints.get()).result, -FI_ENODATA);
  }
}

CONFORMANCE_TEST(GetInfoTest, NumbersAreNotBelowThoseOfTheHints, 34) {
  const Answer all = GetInfo(MakeHints(FI_MSG).get());
  ASSERT_FALSE(all.empty());
  // Each number by itself: half of what is offered and all of it.
  const std::map<const char*, size_t& (*)(fi_info*)> fields = {
      {"tx size", [](fi_info* i) -> size_t& { return i->tx_attr->size; }},
      {"rx size", [](fi_info* i) -> size_t& { return i->rx_attr->size; }},
      {"tx iov_limit",
       [](fi_info* i) -> size_t& { return i->tx_attr->iov_limit; }},
      {"rx iov_limit",
       [](fi_info* i) -> size_t& { return i->rx_attr->iov_limit; }},
      {"inject_size",
       [](fi_info* i) -> size_t& { return i->tx_attr->inject_size; }},
      {"max_msg_size",
       [](fi_info* i) -> size_t& { return i->ep_attr->max_msg_size; }},
      {"cq_data_size",
       [](fi_info* i) -> size_t& { return i->domain_attr->cq_data_size; }},
      {"mr_iov_limit",
       [](fi_info* i) -> size_t& { return i->domain_attr->mr_iov_limit; }},
      {"cq_cnt", [](fi_info* i) -> size_t& { return i->domain_attr->cq_cnt; }},
      {"ep_cnt", [](fi_info* i) -> size_t& { return i->domain_attr->ep_cnt; }},
      {"tx_ctx_cnt",
       [](fi_info* i) -> size_t& { return i->ep_attr->tx_ctx_cnt; }},
      {"rx_ctx_cnt",
       [](fi_info* i) -> size_t& { return i->ep_attr->rx_ctx_cnt; }},
  };
  const InfoPointer offered(fi_dupinfo(all.own().front()));
  for (const auto& [what, field] : fields) {
    for (const size_t divisor : {2U, 1U}) {
      const InfoPointer hints = MakeHints(FI_MSG);
      field(hints.get()) = field(offered.get()) / divisor;
      const Answer answer = GetInfo(hints.get());
      EXPECT_FALSE(answer.empty()) << what << " / " << divisor;
      for (const fi_info* info : answer.own()) {
        const InfoPointer copy(fi_dupinfo(info));
        EXPECT_GE(field(copy.get()), field(hints.get())) << what;
      }
    }
  }
}

CONFORMANCE_TEST(InfoTest, AllocatedInfoIsZero, 36) {
  const InfoPointer info(fi_allocinfo());
  ASSERT_NE(info, nullptr);
  ASSERT_NE(info->tx_attr, nullptr);
  ASSERT_NE(info->rx_attr, nullptr);
  ASSERT_NE(info->ep_attr, nullptr);
  ASSERT_NE(info->domain_attr, nullptr);
  ASSERT_NE(info->fabric_attr, nullptr);
  const auto zero = [](const auto& part) {
    std::vector<uint8_t> bytes(sizeof(part));
    std::memcpy(bytes.data(), &part, sizeof(part));
    return std::all_of(bytes.begin(), bytes.end(),
                       [](uint8_t byte) { return byte == 0; });
  };
  EXPECT_TRUE(zero(*info->tx_attr));
  EXPECT_TRUE(zero(*info->rx_attr));
  EXPECT_TRUE(zero(*info->ep_attr));
  EXPECT_TRUE(zero(*info->domain_attr));
  EXPECT_TRUE(zero(*info->fabric_attr));
  EXPECT_EQ(info->caps, 0U);
  EXPECT_EQ(info->mode, 0U);
  EXPECT_EQ(info->addr_format, 0U);
  EXPECT_EQ(info->src_addr, nullptr);
  EXPECT_EQ(info->dest_addr, nullptr);
  EXPECT_EQ(info->src_addrlen, 0U);
  EXPECT_EQ(info->dest_addrlen, 0U);
  EXPECT_EQ(info->handle, nullptr);
  EXPECT_EQ(info->next, nullptr);
  EXPECT_EQ(info->nic, nullptr);
}

CONFORMANCE_TEST(InfoTest, DuplicateIsIndependent, 37) {
  Answer answer = GetInfo(nullptr);
  ASSERT_FALSE(answer.empty());
  const fi_info* const original = answer.own().front();
  const InfoPointer copy(fi_dupinfo(original));
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->next, nullptr);
  EXPECT_NE(copy->tx_attr, original->tx_attr);
  EXPECT_NE(copy->rx_attr, original->rx_attr);
  EXPECT_NE(copy->ep_attr, original->ep_attr);
  EXPECT_NE(copy->domain_attr, original->domain_attr);
  EXPECT_NE(copy->fabric_attr, original->fabric_attr);
  EXPECT_NE(copy->domain_attr->name, original->domain_attr->name);
  EXPECT_NE(copy->fabric_attr->name, original->fabric_attr->name);
  EXPECT_NE(copy->fabric_attr->prov_name, original->fabric_attr->prov_name);
  const auto text = [](const fi_info* info) {
    return std::string(fi_tostr(info, FI_TYPE_INFO));
  };
  const std::string before = text(original);
  EXPECT_EQ(text(copy.get()), before);
  if (original->src_addr != nullptr) {
    ASSERT_NE(copy->src_addr, nullptr);
    EXPECT_NE(copy->src_addr, original->src_addr);
    EXPECT_EQ(
        std::memcmp(copy->src_addr, original->src_addr, original->src_addrlen),
        0);
  }
  answer.infos.reset();
  EXPECT_EQ(text(copy.get()), before);
}

CONFORMANCE_TEST(InfoTest, NicIsDescribedAndCopied, 39) {
  Answer answer = GetInfo(nullptr);
  ASSERT_FALSE(answer.empty());
  const fi_info* const original = answer.own().front();
  if (original->nic == nullptr) {
    return NotOffered("fi_info::nic");
  }
  InfoPointer copy(fi_dupinfo(original));
  ASSERT_NE(copy->nic, nullptr);
  EXPECT_NE(copy->nic, original->nic);
  ASSERT_NE(original->nic->bus_attr, nullptr);
  ASSERT_NE(original->nic->link_attr, nullptr);
  answer.infos.reset();
  ASSERT_NE(copy->nic->device_attr, nullptr);
  ASSERT_NE(copy->nic->device_attr->name, nullptr);
  EXPECT_NE(std::string(copy->nic->device_attr->name), "");
  ASSERT_NE(copy->nic->link_attr, nullptr);
}

CONFORMANCE_TEST(GetInfoTest, ParametersHaveNameTypeAndHelp, 40) {
  fi_param* params = nullptr;
  int count = 0;
  (void)GetInfo(nullptr);  // Providers define theirs when they are loaded.
  ASSERT_EQ(fi_getparams(&params, &count), 0);
  ASSERT_GT(count, 0);
  std::string prefix = "FI_" + CurrentSettings().provider;
  prefix.resize(std::min(prefix.find(';'), prefix.size()));
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  int own = 0;
  for (int i = 0; i < count; ++i) {
    ASSERT_NE(params[i].name, nullptr);
    EXPECT_NE(std::string(params[i].name), "");
    EXPECT_LE(params[i].type, FI_PARAM_SIZE_T);
    EXPECT_NE(params[i].help_string, nullptr) << params[i].name;
    own += std::string(params[i].name).starts_with(prefix + "_") ? 1 : 0;
    const char* const set = std::getenv(params[i].name);
    EXPECT_TRUE(set == nullptr || params[i].value != nullptr) << params[i].name;
  }
  fi_freeparams(params);
  EXPECT_GT(own, 0) << "no setting begins with " << prefix;
}

}  // namespace
}  // namespace heddle::conformance
