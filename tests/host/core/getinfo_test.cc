// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/host/core/info_pointer.h"

namespace heddle::test {
namespace {

// Settings are read once, at the first call into the library.
const bool environment_is_set = [] {
  setenv("FI_HEDDLE_DEVICE", "rtl", 1);
  setenv("FI_HEDDLE_IP", "10.1.2.3", 1);
  setenv("FI_LOG_LEVEL", "info", 1);
  return true;
}();

std::string AddressText(const void* data, size_t bytes) {
  if (data == nullptr) {
    return "none";
  }
  if (bytes != sizeof(sockaddr_in)) {
    return "wrong size";
  }
  sockaddr_in address;
  memcpy(&address, data, sizeof(address));
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return std::string(text) + ":" + std::to_string(ntohs(address.sin_port));
}

std::string Source(const fi_info& info) {
  return AddressText(info.src_addr, info.src_addrlen);
}

std::string Destination(const fi_info& info) {
  return AddressText(info.dest_addr, info.dest_addrlen);
}

sockaddr_in MakeAddress(const char* text, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, text, &address.sin_addr);
  address.sin_port = htons(port);
  return address;
}

// A malloc'ed copy, which fi_freeinfo takes.
void* HeapCopy(const sockaddr_in& address) {
  void* copy = malloc(sizeof(address));
  memcpy(copy, &address, sizeof(address));
  return copy;
}

TEST(GetInfo, OffersOneRdmEndpointWithoutHints) {
  const Answer answer = Ask(nullptr);
  ASSERT_EQ(answer.result, 0);
  const fi_info& info = *answer.info;
  EXPECT_EQ(info.next, nullptr);
  EXPECT_EQ(info.ep_attr->type, FI_EP_RDM);
  EXPECT_EQ(info.caps, FI_MSG | FI_SEND | FI_RECV | FI_SOURCE | FI_LOCAL_COMM |
                           FI_REMOTE_COMM);
  EXPECT_EQ(info.mode, 0U);
  EXPECT_EQ(info.domain_attr->mr_mode, 0);
  EXPECT_EQ(info.addr_format, FI_SOCKADDR_IN);
  EXPECT_STREQ(info.fabric_attr->prov_name, "heddle");
  EXPECT_STREQ(info.domain_attr->name, "rtl0");
  EXPECT_EQ(info.tx_attr->caps, FI_MSG | FI_SEND);
  EXPECT_EQ(info.rx_attr->caps, FI_MSG | FI_RECV | FI_SOURCE);
  EXPECT_EQ(info.tx_attr->inject_size, 192U);
  EXPECT_EQ(info.tx_attr->iov_limit, 4U);
  EXPECT_EQ(info.ep_attr->max_msg_size, 0xffffffffU);
  EXPECT_EQ(info.domain_attr->cq_data_size, 8U);
  EXPECT_EQ(info.tx_attr->msg_order, FI_ORDER_SAS);
  EXPECT_NE(info.ep_attr->protocol & FI_PROV_SPECIFIC, 0U);
  EXPECT_EQ(info.domain_attr->threading, FI_THREAD_SAFE);
  EXPECT_EQ(info.domain_attr->resource_mgmt, FI_RM_ENABLED);
}

TEST(GetInfo, AnswerIsAcceptedAgainAsHints) {
  const Answer first = Ask(nullptr);
  ASSERT_EQ(first.result, 0);
  const Answer second = Ask(first.info.get());
  ASSERT_EQ(second.result, 0);
  EXPECT_EQ(second.info->caps, first.info->caps);
  EXPECT_EQ(Source(*second.info), Source(*first.info));
  EXPECT_EQ(second.info->tx_attr->size, first.info->tx_attr->size);
}

TEST(GetInfo, ReportsTheVersionThatWasAskedFor) {
  for (const uint32_t version : {FI_VERSION(1, 17), FI_VERSION(1, 5),
                                 FI_VERSION(1, 0), FI_VERSION(0, 0)}) {
    const Answer answer = Ask(nullptr, nullptr, nullptr, 0, version);
    ASSERT_EQ(answer.result, 0) << version;
    EXPECT_EQ(answer.info->fabric_attr->api_version, version);
  }
}

TEST(GetInfo, RefusesAVersionNewerThanItself) {
  const Answer answer = Ask(nullptr, nullptr, nullptr, 0, FI_VERSION(1, 18));
  EXPECT_EQ(answer.result, -FI_ENOSYS);
  EXPECT_EQ(answer.info, nullptr);
  EXPECT_EQ(fi_version(), static_cast<uint32_t>(FI_VERSION(1, 17)));
}

TEST(GetInfo, RefusesUnknownFlags) {
  const Answer answer = Ask(nullptr, nullptr, nullptr, FI_PEEK);
  EXPECT_EQ(answer.result, -FI_EBADFLAGS);
  EXPECT_EQ(answer.info, nullptr);
}

TEST(GetInfo, RefusesToStoreNowhere) {
  EXPECT_EQ(
      fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, nullptr),
      -FI_EINVAL);
}

TEST(GetInfo, ProviderAttributesOnlyNameTheProvider) {
  const Answer answer = Ask(nullptr, nullptr, nullptr, FI_PROV_ATTR_ONLY);
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->next, nullptr);
  EXPECT_STREQ(answer.info->fabric_attr->prov_name, "heddle");
  EXPECT_EQ(answer.info->fabric_attr->prov_version,
            static_cast<uint32_t>(FI_VERSION(0, 1)));
}

TEST(GetInfo, AnyHintStructureMayBeMissing) {
  fi_info hints = {};
  hints.caps = FI_MSG;
  const Answer answer = Ask(&hints);
  ASSERT_EQ(answer.result, 0);
  EXPECT_NE(answer.info->tx_attr, nullptr);
}

// Addresses -----------------------------------------------------------------

TEST(Addresses, WithoutNodeTheSourceIsOwnAddressAndAFreePort) {
  const Answer answer = Ask(nullptr);
  EXPECT_EQ(Source(*answer.info), "10.1.2.3:0");
  EXPECT_EQ(Destination(*answer.info), "none");
}

TEST(Addresses, NodeAndServiceNameTheDestination) {
  const Answer answer = Ask(nullptr, "10.0.0.9", "4096");
  EXPECT_EQ(Source(*answer.info), "10.1.2.3:0");
  EXPECT_EQ(Destination(*answer.info), "10.0.0.9:4096");
}

TEST(Addresses, ServiceAloneMeansThisHost) {
  const Answer answer = Ask(nullptr, nullptr, "65535");
  EXPECT_EQ(Destination(*answer.info), "10.1.2.3:65535");
}

TEST(Addresses, SourceFlagMakesThemTheSource) {
  const Answer answer = Ask(nullptr, "10.0.0.9", "4096", FI_SOURCE);
  EXPECT_EQ(Source(*answer.info), "10.0.0.9:4096");
  EXPECT_EQ(Destination(*answer.info), "none");
}

TEST(Addresses, AnyAddressBecomesThatOfThisHost) {
  const Answer answer = Ask(nullptr, "0.0.0.0", "7", FI_SOURCE);
  EXPECT_EQ(Source(*answer.info), "10.1.2.3:7");
}

TEST(Addresses, SourceFlagWithoutNodeAndServiceHasNoData) {
  const Answer answer = Ask(nullptr, nullptr, nullptr, FI_SOURCE);
  EXPECT_EQ(answer.result, -FI_ENODATA);
  EXPECT_EQ(answer.info, nullptr);
}

TEST(Addresses, NumericHostLooksUpNoName) {
  EXPECT_EQ(Ask(nullptr, "localhost", nullptr, FI_NUMERICHOST).result,
            -FI_ENODATA);
  EXPECT_EQ(Ask(nullptr, "127.0.0.1", nullptr, FI_NUMERICHOST).result, 0);
}

TEST(Addresses, NamesAreResolvedWithoutNumericHost) {
  const Answer answer = Ask(nullptr, "localhost", "9");
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(Destination(*answer.info), "127.0.0.1:9");
}

TEST(Addresses, HintsNameThemWhenNodeAndServiceDoNot) {
  const Info hints = MakeHints();
  hints->src_addr = HeapCopy(MakeAddress("10.0.0.7", 70));
  hints->src_addrlen = sizeof(sockaddr_in);
  hints->dest_addr = HeapCopy(MakeAddress("10.0.0.8", 80));
  hints->dest_addrlen = sizeof(sockaddr_in);
  const Answer answer = Ask(hints.get());
  EXPECT_EQ(Source(*answer.info), "10.0.0.7:70");
  EXPECT_EQ(Destination(*answer.info), "10.0.0.8:80");
  const Answer with_node = Ask(hints.get(), "10.0.0.9", "90");
  EXPECT_EQ(Source(*with_node.info), "10.0.0.7:70");
  EXPECT_EQ(Destination(*with_node.info), "10.0.0.9:90");
  const Answer as_source = Ask(hints.get(), "10.0.0.9", "90", FI_SOURCE);
  EXPECT_EQ(Source(*as_source.info), "10.0.0.9:90");
  EXPECT_EQ(Destination(*as_source.info), "10.0.0.8:80");
}

TEST(Addresses, SourceHintOfNoLengthHasNoData) {
  const Info hints = MakeHints();
  hints->src_addr = HeapCopy(MakeAddress("10.0.0.7", 70));
  EXPECT_EQ(Ask(hints.get()).result, -FI_ENODATA);
  // With FI_SOURCE the hint is not looked at.
  EXPECT_EQ(Ask(hints.get(), "10.0.0.9", nullptr, FI_SOURCE).result, 0);
}

TEST(Addresses, FormatIsTheOneAskedFor) {
  const Info hints = MakeHints();
  hints->addr_format = FI_SOCKADDR;
  EXPECT_EQ(Ask(hints.get()).info->addr_format, FI_SOCKADDR);
  hints->addr_format = FI_SOCKADDR_IN6;
  EXPECT_EQ(Ask(hints.get()).result, -FI_ENODATA);
}

// Capabilities --------------------------------------------------------------

TEST(Capabilities, MessageImpliesBothDirections) {
  const Info hints = MakeHints();
  hints->caps = FI_MSG;
  const Answer answer = Ask(hints.get());
  EXPECT_EQ(answer.info->caps,
            FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM);
}

TEST(Capabilities, ModifierRestrictsToItsDirection) {
  const Info hints = MakeHints();
  hints->caps = FI_MSG | FI_SEND;
  const Answer answer = Ask(hints.get());
  EXPECT_EQ(answer.info->caps & (FI_SEND | FI_RECV), FI_SEND);
  EXPECT_EQ(answer.info->tx_attr->caps, FI_MSG | FI_SEND);
  EXPECT_EQ(answer.info->rx_attr->caps, 0U);
}

TEST(Capabilities, ModifierNeedsItsPrimary) {
  const Info hints = MakeHints();
  hints->caps = FI_SEND;
  EXPECT_EQ(Ask(hints.get()).result, -FI_ENODATA);
}

TEST(Capabilities, SourceIsGivenOnlyWhenAskedFor) {
  const Info hints = MakeHints();
  hints->caps = FI_MSG;
  EXPECT_EQ(Ask(hints.get()).info->caps & FI_SOURCE, 0U);
  hints->caps = FI_MSG | FI_SOURCE;
  const Answer answer = Ask(hints.get());
  EXPECT_EQ(answer.info->caps & FI_SOURCE, FI_SOURCE);
  EXPECT_EQ(answer.info->rx_attr->caps & FI_SOURCE, FI_SOURCE);
}

TEST(Capabilities, ReachIsAsAskedFor) {
  const Info hints = MakeHints();
  hints->caps = FI_MSG | FI_LOCAL_COMM;
  EXPECT_EQ(Ask(hints.get()).info->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM),
            FI_LOCAL_COMM);
}

TEST(Capabilities, DirectionMayBeNarrowed) {
  const Info hints = MakeHints();
  hints->caps = FI_MSG | FI_SOURCE;
  hints->tx_attr->caps = FI_MSG | FI_SEND;
  hints->rx_attr->caps = FI_MSG;
  const Answer answer = Ask(hints.get());
  EXPECT_EQ(answer.info->tx_attr->caps, FI_MSG | FI_SEND);
  EXPECT_EQ(answer.info->rx_attr->caps, FI_MSG | FI_RECV);
}

TEST(Capabilities, DirectionCannotExceedTheEndpoint) {
  const Info hints = MakeHints();
  hints->caps = FI_MSG | FI_RECV;
  hints->tx_attr->caps = FI_MSG | FI_SEND;
  EXPECT_EQ(Ask(hints.get()).result, -FI_ENODATA);
}

// Echoes --------------------------------------------------------------------

TEST(Echo, ThreadingAndProgressAreThoseOfTheHints) {
  for (const auto threading : {FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN,
                               FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT}) {
    for (const auto progress : {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL}) {
      const Info hints = MakeHints();
      hints->domain_attr->threading = threading;
      hints->domain_attr->control_progress = progress;
      hints->domain_attr->data_progress = progress;
      const Answer answer = Ask(hints.get());
      ASSERT_EQ(answer.result, 0);
      EXPECT_EQ(answer.info->domain_attr->threading, threading);
      EXPECT_EQ(answer.info->domain_attr->control_progress, progress);
      EXPECT_EQ(answer.info->domain_attr->data_progress, progress);
    }
  }
}

TEST(Echo, AddressVectorTypeIsThatOfTheHints) {
  const Info hints = MakeHints();
  hints->domain_attr->av_type = FI_AV_MAP;
  EXPECT_EQ(Ask(hints.get()).info->domain_attr->av_type, FI_AV_MAP);
  hints->domain_attr->av_type = FI_AV_TABLE;
  EXPECT_EQ(Ask(hints.get()).info->domain_attr->av_type, FI_AV_TABLE);
}

TEST(Echo, QueueSizesAndOperationFlagsAreThoseOfTheHints) {
  const Info hints = MakeHints();
  hints->tx_attr->size = 2048;
  hints->rx_attr->size = 3;
  hints->tx_attr->op_flags = FI_COMPLETION | FI_TRANSMIT_COMPLETE;
  const Answer answer = Ask(hints.get());
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->tx_attr->size, 2048U);
  EXPECT_EQ(answer.info->rx_attr->size, 3U);
  EXPECT_EQ(answer.info->tx_attr->op_flags,
            FI_COMPLETION | FI_TRANSMIT_COMPLETE);
}

TEST(Echo, ModeBitsThatAreNotNeededAreCleared) {
  const Info hints = MakeHints();
  hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_LOCAL_MR |
                FI_MSG_PREFIX | FI_RX_CQ_DATA;
  hints->domain_attr->mode = FI_RESTRICTED_COMP;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
                                FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_RAW |
                                FI_MR_ENDPOINT | FI_MR_HMEM;
  const Answer answer = Ask(hints.get());
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->mode, 0U);
  EXPECT_EQ(answer.info->tx_attr->mode, 0U);
  EXPECT_EQ(answer.info->rx_attr->mode, 0U);
  EXPECT_EQ(answer.info->domain_attr->mode, 0U);
  EXPECT_EQ(answer.info->domain_attr->mr_mode, 0);
}

TEST(Echo, OldMemoryModesAreKept) {
  const Info hints = MakeHints();
  hints->domain_attr->mr_mode = FI_MR_BASIC;
  EXPECT_EQ(Ask(hints.get()).info->domain_attr->mr_mode, FI_MR_BASIC);
  hints->domain_attr->mr_mode = FI_MR_SCALABLE;
  EXPECT_EQ(Ask(hints.get()).info->domain_attr->mr_mode, FI_MR_SCALABLE);
  hints->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_LOCAL;
  EXPECT_EQ(Ask(hints.get()).result, -FI_ENODATA);
}

TEST(Echo, UnspecifiedMemoryModeOfOldVersionsIsScalable) {
  const Answer answer = Ask(nullptr, nullptr, nullptr, 0, FI_VERSION(1, 4));
  EXPECT_EQ(answer.info->domain_attr->mr_mode, FI_MR_SCALABLE);
}

// What Open MPI and MPICH ask of a provider that only carries messages.
TEST(Echo, HintsOfAnMpiAreMet) {
  const Info hints = MakeHints();
  hints->caps = FI_MSG | FI_LOCAL_COMM | FI_REMOTE_COMM;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->op_flags = FI_COMPLETION;
  hints->rx_attr->op_flags = FI_COMPLETION;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->av_type = FI_AV_MAP;
  hints->domain_attr->cq_data_size = 4;
  EXPECT_EQ(Ask(hints.get(), nullptr, nullptr, 0, FI_VERSION(1, 5)).result, 0);
}

// Refusals ------------------------------------------------------------------

struct RefusalCase {
  const char* attribute;
  std::function<void(fi_info*)> set;
};

class Refusal : public testing::TestWithParam<RefusalCase> {};

TEST_P(Refusal, LeavesTheDeviceOutAndLogsTheAttribute) {
  const Info hints = MakeHints();
  GetParam().set(hints.get());
  testing::internal::CaptureStderr();
  const Answer answer = Ask(hints.get());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer.result, -FI_ENODATA);
  EXPECT_EQ(answer.info, nullptr);
  EXPECT_NE(log.find(std::string("device rtl0 ruled out by ") +
                     GetParam().attribute + ": wanted "),
            std::string::npos)
      << log;
}

INSTANTIATE_TEST_SUITE_P(
    Hints, Refusal,
    testing::Values(
        RefusalCase{"caps", [](fi_info* h) { h->caps = FI_TAGGED; }},
        RefusalCase{"caps", [](fi_info* h) { h->caps = FI_MSG | FI_RMA; }},
        RefusalCase{"caps",
                    [](fi_info* h) { h->caps = FI_MSG | FI_MULTI_RECV; }},
        RefusalCase{"caps",
                    [](fi_info* h) { h->caps = FI_MSG | FI_DIRECTED_RECV; }},
        RefusalCase{"caps", [](fi_info* h) { h->caps = FI_MSG | FI_READ; }},
        RefusalCase{"ep_attr->type",
                    [](fi_info* h) { h->ep_attr->type = FI_EP_MSG; }},
        RefusalCase{"ep_attr->type",
                    [](fi_info* h) { h->ep_attr->type = FI_EP_DGRAM; }},
        RefusalCase{"ep_attr->protocol",
                    [](fi_info* h) { h->ep_attr->protocol = FI_PROTO_UDP; }},
        RefusalCase{"ep_attr->protocol_version",
                    [](fi_info* h) { h->ep_attr->protocol_version = 2; }},
        RefusalCase{"ep_attr->max_msg_size",
                    [](fi_info* h) { h->ep_attr->max_msg_size = 1ULL << 32; }},
        RefusalCase{"ep_attr->max_order_waw_size",
                    [](fi_info* h) { h->ep_attr->max_order_waw_size = 1; }},
        RefusalCase{
            "ep_attr->tx_ctx_cnt",
            [](fi_info* h) { h->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT; }},
        RefusalCase{"ep_attr->rx_ctx_cnt",
                    [](fi_info* h) { h->ep_attr->rx_ctx_cnt = 2; }},
        RefusalCase{"tx_attr->caps",
                    [](fi_info* h) { h->tx_attr->caps = FI_TAGGED; }},
        RefusalCase{"rx_attr->caps",
                    [](fi_info* h) { h->rx_attr->caps = FI_MULTI_RECV; }},
        RefusalCase{
            "tx_attr->op_flags",
            [](fi_info* h) { h->tx_attr->op_flags = FI_COMMIT_COMPLETE; }},
        RefusalCase{"rx_attr->op_flags",
                    [](fi_info* h) { h->rx_attr->op_flags = FI_MULTI_RECV; }},
        RefusalCase{"tx_attr->msg_order",
                    [](fi_info* h) { h->tx_attr->msg_order = FI_ORDER_SAW; }},
        RefusalCase{"rx_attr->msg_order",
                    [](fi_info* h) { h->rx_attr->msg_order = FI_ORDER_RAS; }},
        RefusalCase{
            "tx_attr->comp_order",
            [](fi_info* h) { h->tx_attr->comp_order = FI_ORDER_STRICT; }},
        RefusalCase{"rx_attr->comp_order",
                    [](fi_info* h) { h->rx_attr->comp_order = FI_ORDER_DATA; }},
        RefusalCase{"tx_attr->inject_size",
                    [](fi_info* h) { h->tx_attr->inject_size = 193; }},
        RefusalCase{"tx_attr->size",
                    [](fi_info* h) { h->tx_attr->size = 2049; }},
        RefusalCase{"rx_attr->size",
                    [](fi_info* h) { h->rx_attr->size = 2049; }},
        RefusalCase{"tx_attr->iov_limit",
                    [](fi_info* h) { h->tx_attr->iov_limit = 5; }},
        RefusalCase{"rx_attr->iov_limit",
                    [](fi_info* h) { h->rx_attr->iov_limit = 5; }},
        RefusalCase{"tx_attr->rma_iov_limit",
                    [](fi_info* h) { h->tx_attr->rma_iov_limit = 1; }},
        RefusalCase{"tx_attr->tclass",
                    [](fi_info* h) { h->tx_attr->tclass = FI_TC_LOW_LATENCY; }},
        RefusalCase{"domain_attr->threading",
                    [](fi_info* h) {
                      h->domain_attr->threading = static_cast<fi_threading>(7);
                    }},
        RefusalCase{"domain_attr->data_progress",
                    [](fi_info* h) {
                      h->domain_attr->data_progress =
                          static_cast<fi_progress>(3);
                    }},
        RefusalCase{"domain_attr->av_type",
                    [](fi_info* h) {
                      h->domain_attr->av_type = static_cast<fi_av_type>(3);
                    }},
        RefusalCase{"domain_attr->cq_data_size",
                    [](fi_info* h) { h->domain_attr->cq_data_size = 9; }},
        RefusalCase{"domain_attr->mr_key_size",
                    [](fi_info* h) { h->domain_attr->mr_key_size = 9; }},
        RefusalCase{"domain_attr->max_ep_stx_ctx",
                    [](fi_info* h) { h->domain_attr->max_ep_stx_ctx = 1; }},
        RefusalCase{"domain_attr->cntr_cnt",
                    [](fi_info* h) { h->domain_attr->cntr_cnt = 1; }},
        RefusalCase{"domain_attr->caps",
                    [](fi_info* h) { h->domain_attr->caps = FI_SHARED_AV; }},
        RefusalCase{
            "domain_attr->name",
            [](fi_info* h) { h->domain_attr->name = strdup("mlx5_0"); }},
        RefusalCase{
            "fabric_attr->name",
            [](fi_info* h) { h->fabric_attr->name = strdup("heddle-other"); }},
        RefusalCase{"fabric_attr->prov_name", [](fi_info* h) {
                      h->fabric_attr->prov_name = strdup("heddle;ofi_rxm");
                    }}));

TEST(Names, AreComparedWithoutCase) {
  const Info hints = MakeHints();
  hints->fabric_attr->prov_name = strdup("HEDDLE");
  hints->fabric_attr->name = strdup("Heddle-Default");
  hints->domain_attr->name = strdup("RTL0");
  EXPECT_EQ(Ask(hints.get()).result, 0);
}

// Versions ------------------------------------------------------------------

TEST(Versions, FieldsNewerThanTheVersionAreNotLookedAt) {
  const Info hints = MakeHints();
  hints->domain_attr->caps = FI_SHARED_AV;  // Since 1.5.
  hints->domain_attr->cntr_cnt = 1000;
  hints->ep_attr->auth_key_size = 8;
  hints->tx_attr->tclass = FI_TC_LOW_LATENCY;  // Since 1.9.
  EXPECT_EQ(Ask(hints.get(), nullptr, nullptr, 0, FI_VERSION(1, 4)).result, 0);
  hints->ep_attr->auth_key_size = 0;
  EXPECT_EQ(Ask(hints.get(), nullptr, nullptr, 0, FI_VERSION(1, 5)).result,
            -FI_ENODATA);
  hints->domain_attr->caps = 0;
  hints->domain_attr->cntr_cnt = 0;
  EXPECT_EQ(Ask(hints.get(), nullptr, nullptr, 0, FI_VERSION(1, 8)).result, 0);
  EXPECT_EQ(Ask(hints.get(), nullptr, nullptr, 0, FI_VERSION(1, 9)).result,
            -FI_ENODATA);
}

// Memory --------------------------------------------------------------------

TEST(InfoMemory, AllocatedInfoIsZeroWithAllParts) {
  const Info info(fi_allocinfo());
  ASSERT_NE(info, nullptr);
  ASSERT_NE(info->tx_attr, nullptr);
  ASSERT_NE(info->rx_attr, nullptr);
  ASSERT_NE(info->ep_attr, nullptr);
  ASSERT_NE(info->domain_attr, nullptr);
  ASSERT_NE(info->fabric_attr, nullptr);
  EXPECT_EQ(info->domain_attr->name, nullptr);
  EXPECT_EQ(info->domain_attr->auth_key, nullptr);
  EXPECT_EQ(info->domain_attr->mr_mode, 0);
  EXPECT_EQ(info->domain_attr->tclass, 0U);
  EXPECT_EQ(info->fabric_attr->prov_name, nullptr);
  EXPECT_EQ(info->caps, 0U);
  EXPECT_EQ(info->nic, nullptr);
}

TEST(InfoMemory, DuplicateSharesNothingWithTheOriginal) {
  Info copy;
  {
    Answer answer = Ask(nullptr, "10.0.0.9", "90");
    answer.info->ep_attr->auth_key = static_cast<uint8_t*>(malloc(2));
    memcpy(answer.info->ep_attr->auth_key, "ab", 2);
    answer.info->ep_attr->auth_key_size = 2;
    answer.info->next = fi_allocinfo();
    copy.reset(fi_dupinfo(answer.info.get()));
    EXPECT_NE(copy->src_addr, answer.info->src_addr);
    EXPECT_NE(copy->domain_attr->name, answer.info->domain_attr->name);
  }
  EXPECT_EQ(copy->next, nullptr);
  EXPECT_EQ(Source(*copy), "10.1.2.3:0");
  EXPECT_EQ(Destination(*copy), "10.0.0.9:90");
  EXPECT_STREQ(copy->domain_attr->name, "rtl0");
  EXPECT_STREQ(copy->fabric_attr->name, "heddle-default");
  EXPECT_STREQ(copy->fabric_attr->prov_name, "heddle");
  EXPECT_EQ(memcmp(copy->ep_attr->auth_key, "ab", 2), 0);
}

TEST(InfoMemory, DuplicateDoesNotFollowTheHandle) {
  const Info info(fi_allocinfo());
  fid handle = {};
  info->handle = &handle;
  const Info copy(fi_dupinfo(info.get()));
  EXPECT_EQ(copy->handle, &handle);
}

TEST(InfoMemory, FreeingNothingIsAllowed) {
  fi_freeinfo(nullptr);
}

// Run under ThreadSanitizer by hand; here it shows that answers do not mix.
TEST(GetInfo, ThreadsMayAskAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (size_t index = 0; index < wrong.size(); ++index) {
    threads.emplace_back([index, &wrong] {
      const std::string service = std::to_string(1000 + index);
      for (int round = 0; round < 100; ++round) {
        const Answer answer = Ask(nullptr, "10.0.0.9", service.c_str());
        if (answer.result != 0 ||
            Destination(*answer.info) != "10.0.0.9:" + service) {
          ++wrong[index];
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

}  // namespace
}  // namespace heddle::test
