// SPDX-License-Identifier: Apache-2.0
// fi_getinfo as an application has it. Compiled twice: for libheddle.so.1 and
// for the plug-in through the stock core.
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
#ifdef HEDDLE_PLUGIN_DIRECTORY
  setenv("FI_PROVIDER_PATH", HEDDLE_PLUGIN_DIRECTORY, 1);
  setenv("FI_PROVIDER", "heddle", 1);
#endif
  return true;
}();

// The stock core keeps some answers to itself.
#ifdef HEDDLE_PLUGIN_DIRECTORY
constexpr bool kOwnCore = false;
#else
constexpr bool kOwnCore = true;
#endif

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
template <typename Value>
void* HeapCopy(const Value& value) {
  void* copy = malloc(sizeof(value));
  memcpy(copy, &value, sizeof(value));
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
  const uint32_t newest = kOwnCore ? FI_VERSION(2, 1) : FI_VERSION(1, 17);
  EXPECT_EQ(fi_version(), newest);
  EXPECT_EQ(Ask(nullptr, nullptr, nullptr, 0, newest).result, 0);
  fi_info garbage = {};
  fi_info* info = &garbage;
  EXPECT_EQ(fi_getinfo(newest + 1, nullptr, nullptr, 0, nullptr, &info),
            -FI_ENOSYS);
  if (kOwnCore) {
    EXPECT_EQ(info, nullptr);
  }
}

#ifndef HEDDLE_PLUGIN_DIRECTORY
// The stock core ignores the flags and stores nowhere.
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
#endif

TEST(GetInfo, ProviderAttributesOnlyNameTheProvider) {
  const Answer answer = Ask(nullptr, nullptr, nullptr, FI_PROV_ATTR_ONLY);
  ASSERT_EQ(answer.result, 0);
  // The stock core has more providers, whatever FI_PROVIDER says.
  int ours = 0;
  for (const fi_info* info = answer.info.get(); info != nullptr;
       info = info->next) {
    if (strcmp(info->fabric_attr->prov_name, "heddle") == 0) {
      ++ours;
      EXPECT_EQ(info->fabric_attr->prov_version,
                static_cast<uint32_t>(FI_VERSION(0, 1)));
    }
  }
  EXPECT_EQ(ours, 1);
}

TEST(GetInfo, AnyHintStructureMayBeMissing) {
  fi_info hints = {};
  hints.caps = FI_MSG;
  const Answer answer = Ask(&hints);
  ASSERT_EQ(answer.result, 0);
  EXPECT_NE(answer.info->tx_attr, nullptr);
}

TEST(GetInfo, EveryCombinationOfNodeServiceAndHintsIsTaken) {
  const Info hints = MakeHints();
  hints->caps = FI_MSG;
  for (const char* node : {static_cast<const char*>(nullptr), "10.0.0.9"}) {
    for (const char* service : {static_cast<const char*>(nullptr), "90"}) {
      for (const fi_info* each :
           {static_cast<fi_info*>(nullptr), hints.get()}) {
        const Answer answer = Ask(each, node, service);
        ASSERT_EQ(answer.result, 0);
        EXPECT_EQ(answer.info->dest_addr != nullptr,
                  node != nullptr || service != nullptr);
      }
    }
  }
}

TEST(GetInfo, HandleOfTheHintsIsInTheAnswer) {
  const Info hints = MakeHints();
  fid handle = {};
  hints->handle = &handle;
  const Answer answer = Ask(hints.get());
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->handle, &handle);
}

TEST(GetInfo, NothingOpenIsReportedAsOpen) {
  const Answer answer = Ask(nullptr);
  EXPECT_EQ(answer.info->fabric_attr->fabric, nullptr);
  EXPECT_EQ(answer.info->domain_attr->domain, nullptr);
}

// Source: fi_getinfo(3), each number of the answer is enough for the hints.
TEST(GetInfo, NumbersAreAtLeastThoseAskedFor) {
  const Info hints = MakeHints();
  const Answer most = Ask(nullptr);
  hints->tx_attr->inject_size = 17;
  hints->tx_attr->size = 33;
  hints->tx_attr->iov_limit = 3;
  hints->rx_attr->size = 44;
  hints->rx_attr->iov_limit = 2;
  hints->ep_attr->max_msg_size = 4097;
  hints->domain_attr->cq_data_size = 4;
  hints->domain_attr->cq_cnt = 2;
  hints->domain_attr->ep_cnt = 3;
  hints->domain_attr->tx_ctx_cnt = 3;
  hints->domain_attr->rx_ctx_cnt = 3;
  hints->domain_attr->mr_iov_limit = 2;
  hints->domain_attr->mr_cnt = 1000000;
  const Answer answer = Ask(hints.get());
  ASSERT_EQ(answer.result, 0);
  EXPECT_GE(answer.info->tx_attr->inject_size, 17U);
  EXPECT_GE(answer.info->tx_attr->size, 33U);
  EXPECT_GE(answer.info->tx_attr->iov_limit, 3U);
  EXPECT_GE(answer.info->rx_attr->size, 44U);
  EXPECT_GE(answer.info->rx_attr->iov_limit, 2U);
  EXPECT_GE(answer.info->ep_attr->max_msg_size, 4097U);
  EXPECT_GE(answer.info->domain_attr->cq_data_size, 4U);
  EXPECT_GE(answer.info->domain_attr->cq_cnt, 2U);
  EXPECT_GE(answer.info->domain_attr->ep_cnt, 3U);
  EXPECT_GE(answer.info->domain_attr->tx_ctx_cnt, 3U);
  EXPECT_GE(answer.info->domain_attr->rx_ctx_cnt, 3U);
  EXPECT_GE(answer.info->domain_attr->mr_iov_limit, 2U);
  EXPECT_GE(answer.info->domain_attr->mr_cnt, 1000000U);
  EXPECT_EQ(most.info->domain_attr->max_ep_tx_ctx, 1U);
  EXPECT_EQ(most.info->domain_attr->max_ep_stx_ctx, 0U);
  EXPECT_EQ(most.info->domain_attr->max_ep_srx_ctx, 0U);
}

TEST(GetInfo, CapabilitiesThatWereNotAskedForCostNothing) {
  const Info hints = MakeHints();
  hints->caps = FI_MSG | FI_SEND;
  const Answer answer = Ask(hints.get());
  EXPECT_EQ(answer.info->caps & ~(FI_MSG | FI_SEND),
            FI_LOCAL_COMM | FI_REMOTE_COMM);
}

// The function and line in the source, in both cores' format.
TEST(GetInfo, LogLinesSayWhereTheyAreWritten) {
  const Info hints = MakeHints();
  hints->caps = FI_TAGGED;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Ask(hints.get()).result, -FI_ENODATA);
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t at = log.find("heddle:core:LogRefusal():");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_NE(log[at + strlen("heddle:core:LogRefusal():")], '0');
}

// Nic -----------------------------------------------------------------------

TEST(NicInfo, DescribesTheDeviceAndItsPort) {
  const Answer answer = Ask(nullptr);
  ASSERT_NE(answer.info->nic, nullptr);
  const fid_nic& nic = *answer.info->nic;
  EXPECT_EQ(nic.fid.fclass, static_cast<size_t>(FI_CLASS_NIC));
  EXPECT_STREQ(nic.device_attr->name, "rtl0");
  EXPECT_STREQ(nic.device_attr->driver, "heddle");
  EXPECT_STREQ(nic.link_attr->address, "10.1.2.3");
  EXPECT_EQ(nic.link_attr->mtu, 4096U);
  EXPECT_STREQ(nic.link_attr->network_type, "Ultra Ethernet");
  // Simulated: on no bus, and no device is opened to ask for its link.
  EXPECT_EQ(nic.bus_attr->bus_type, FI_BUS_UNKNOWN);
  EXPECT_EQ(nic.link_attr->state, FI_LINK_UNKNOWN);
}

TEST(NicInfo, DuplicateOutlivesTheOriginal) {
  Info copy;
  {
    const Answer answer = Ask(nullptr);
    copy.reset(fi_dupinfo(answer.info.get()));
    ASSERT_NE(copy->nic, answer.info->nic);
    EXPECT_NE(copy->nic->device_attr->name,
              answer.info->nic->device_attr->name);
  }
  EXPECT_STREQ(copy->nic->device_attr->name, "rtl0");
  EXPECT_STREQ(copy->nic->link_attr->address, "10.1.2.3");
  EXPECT_EQ(copy->nic->device_attr->vendor_id, nullptr);
}

TEST(NicInfo, IsPrintedBehindTheRest) {
  const Answer answer = Ask(nullptr);
  const std::string text = fi_tostr(answer.info.get(), FI_TYPE_INFO);
  EXPECT_EQ(text.find("fi_info:"), 0U) << text;
  const size_t nic = text.find("nic:");
  ASSERT_NE(nic, std::string::npos) << text;
  EXPECT_NE(text.find("name: rtl0", nic), std::string::npos) << text;
  EXPECT_NE(text.find("mtu: 4096", nic), std::string::npos) << text;
}

TEST(NicInfo, DoesNothingElse) {
  const Answer answer = Ask(nullptr);
  void* ops = nullptr;
  struct fid* nic = &answer.info->nic->fid;
  EXPECT_EQ(fi_control(nic, FI_GETWAIT, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_open_ops(nic, "none", 0, &ops, nullptr), -FI_ENOSYS);
}

TEST(NicInfo, CallersBeforeItGetNone) {
  const Answer answer = Ask(nullptr, nullptr, nullptr, 0, FI_VERSION(1, 6));
  EXPECT_EQ(answer.info->nic, nullptr);
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
  EXPECT_EQ(Destination(*answer.info),
            Destination(*Ask(nullptr, "127.0.0.1", "9").info));
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
  hints->addr_format = FI_SOCKADDR_IN;
  EXPECT_EQ(Ask(hints.get()).info->addr_format, FI_SOCKADDR_IN);
}

TEST(Addresses, FamilyOfTheSettingRulesTheOtherOut) {
  const Info hints = MakeHints();
  hints->addr_format = FI_SOCKADDR_IN6;
  EXPECT_EQ(Ask(hints.get()).result, -FI_ENODATA);
  EXPECT_EQ(Ask(nullptr, "fd99::1", "80").result, -FI_ENODATA);
}

TEST(Addresses, NodeMayHoldThePort) {
  const Info hints = MakeHints();
  hints->addr_format = FI_ADDR_STR;
  const Answer answer = Ask(hints.get(), "fi_sockaddr_in://10.0.0.9:90");
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(Destination(*answer.info), "10.0.0.9:90");
  EXPECT_EQ(answer.info->addr_format, FI_SOCKADDR_IN);
  const Answer source =
      Ask(hints.get(), "fi_sockaddr_in://10.0.0.9:90", nullptr, FI_SOURCE);
  EXPECT_EQ(Source(*source.info), "10.0.0.9:90");
  EXPECT_EQ(Ask(hints.get(), "fi_sockaddr_in://10.0.0.9:x").result,
            -FI_ENODATA);
}

TEST(Addresses, NodeThatHoldsThePortStandsWithoutService) {
  const Info hints = MakeHints();
  hints->addr_format = FI_ADDR_STR;
  const int refused = kOwnCore ? -FI_EINVAL : -FI_ENODATA;
  EXPECT_EQ(Ask(hints.get(), "fi_sockaddr_in://10.0.0.9:90", "91").result,
            refused);
  EXPECT_EQ(Ask(hints.get(), "10.0.0.9", "91").result, refused);
}

TEST(Addresses, HintsMayBeTextToo) {
  const Info hints = MakeHints();
  hints->addr_format = FI_ADDR_STR;
  hints->src_addr = strdup("fi_sockaddr_in://10.0.0.7:70");
  hints->src_addrlen = strlen("fi_sockaddr_in://10.0.0.7:70") + 1;
  const Answer answer = Ask(hints.get());
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(Source(*answer.info), "10.0.0.7:70");
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
                FI_MSG_PREFIX | FI_RX_CQ_DATA | FI_NOTIFY_FLAGS_ONLY |
                FI_RESTRICTED_COMP | FI_BUFFERED_RECV;
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
  EXPECT_EQ(answer.info->ep_attr->msg_prefix_size, 0U);
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
        RefusalCase{"tx_attr->comp_order",
                    [](fi_info* h) { h->tx_attr->comp_order = FI_ORDER_DATA; }},
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
                    [](fi_info* h) { h->tx_attr->tclass = FI_TC_DSCP | 64; }},
        RefusalCase{"ep_attr->auth_key",
                    [](fi_info* h) { h->ep_attr->auth_key_size = 4; }},
        RefusalCase{"domain_attr->auth_key",
                    [](fi_info* h) { h->domain_attr->auth_key_size = 8; }},
        RefusalCase{"caps", [](fi_info* h) { h->caps |= FI_SOURCE_ERR; }},
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
        RefusalCase{"fabric_attr->name", [](fi_info* h) {
                      h->fabric_attr->name = strdup("heddle-other");
                    }}));

// Endpoint types that do not exist yet are refused by their attributes.
INSTANTIATE_TEST_SUITE_P(
    NotOfferedYet, Refusal,
    testing::Values(
        RefusalCase{"ep_attr->type",
                    [](fi_info* h) { h->ep_attr->type = FI_EP_SOCK_STREAM; }},
        RefusalCase{"ep_attr->max_order_raw_size",
                    [](fi_info* h) { h->ep_attr->max_order_raw_size = 8; }},
        RefusalCase{"ep_attr->max_order_war_size",
                    [](fi_info* h) { h->ep_attr->max_order_war_size = 8; }},
        RefusalCase{"domain_attr->max_ep_srx_ctx",
                    [](fi_info* h) { h->domain_attr->max_ep_srx_ctx = 1; }},
        RefusalCase{"domain_attr->max_ep_tx_ctx",
                    [](fi_info* h) { h->domain_attr->max_ep_tx_ctx = 2; }},
        RefusalCase{"domain_attr->mr_iov_limit",
                    [](fi_info* h) { h->domain_attr->mr_iov_limit = 5; }},
        RefusalCase{"domain_attr->domain",
                    [](fi_info* h) {
                      static fid_domain none = {};
                      h->domain_attr->domain = &none;
                    }},
        RefusalCase{"fabric_attr->fabric", [](fi_info* h) {
                      static fid_fabric none = {};
                      h->fabric_attr->fabric = &none;
                    }}));

#ifndef HEDDLE_PLUGIN_DIRECTORY
// The stock core does not ask providers of other names.
INSTANTIATE_TEST_SUITE_P(OtherProvider, Refusal,
                         testing::Values(RefusalCase{
                             "fabric_attr->prov_name", [](fi_info* h) {
                               h->fabric_attr->prov_name =
                                   strdup("heddle;ofi_rxm");
                             }}));
#endif

TEST(Names, AreComparedWithoutCase) {
  const Info hints = MakeHints();
  hints->fabric_attr->prov_name = strdup("HEDDLE");
  hints->fabric_attr->name = strdup("Heddle-Default");
  hints->domain_attr->name = strdup("RTL0");
  EXPECT_EQ(Ask(hints.get()).result, 0);
}

TEST(GetInfo, KeysAndTrafficClassesAreEchoed) {
  const Info hints = MakeHints();
  const uint32_t key = 0x123456;
  hints->caps |= FI_SOURCE | FI_SOURCE_ERR;
  hints->ep_attr->auth_key = static_cast<uint8_t*>(HeapCopy(key));
  hints->ep_attr->auth_key_size = sizeof(key);
  hints->domain_attr->auth_key = static_cast<uint8_t*>(HeapCopy(key));
  hints->domain_attr->auth_key_size = sizeof(key);
  hints->tx_attr->tclass = FI_TC_LOW_LATENCY;
  hints->domain_attr->tclass = fi_tc_dscp_set(12);
  const Answer answer = Ask(hints.get());
  ASSERT_EQ(answer.result, 0);
  const fi_info& info = *answer.info;
  EXPECT_NE(info.caps & FI_SOURCE_ERR, 0U);
  ASSERT_EQ(info.ep_attr->auth_key_size, sizeof(key));
  EXPECT_EQ(memcmp(info.ep_attr->auth_key, &key, sizeof(key)), 0);
  ASSERT_EQ(info.domain_attr->auth_key_size, sizeof(key));
  EXPECT_NE(info.domain_attr->auth_key, info.ep_attr->auth_key);
  EXPECT_EQ(memcmp(info.domain_attr->auth_key, &key, sizeof(key)), 0);
  EXPECT_EQ(info.tx_attr->tclass, uint32_t{FI_TC_LOW_LATENCY});
  EXPECT_EQ(info.domain_attr->tclass, fi_tc_dscp_set(12));
  EXPECT_EQ(Ask(&info).result, 0);
}

// Versions ------------------------------------------------------------------

TEST(Versions, FieldsNewerThanTheVersionAreNotLookedAt) {
  const Info hints = MakeHints();
  hints->domain_attr->caps = FI_SHARED_AV;  // Since 1.5.
  hints->domain_attr->cntr_cnt = 1000;
  hints->ep_attr->auth_key_size = 8;
  hints->tx_attr->tclass = 7;  // Since 1.9.
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
