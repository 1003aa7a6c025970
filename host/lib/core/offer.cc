// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/offer.h"

#include <strings.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "host/lib/base/version.h"
#include "host/lib/core/auth_key.h"
#include "host/lib/core/limits.h"
#include "host/lib/core/offered_caps.h"
#include "host/lib/core/tostr.h"
#include "host/lib/core/traffic_class.h"

namespace heddle::core {
namespace {

// Capabilities that are of one direction, or of both.
constexpr uint64_t kTxCaps = kMessages | FI_RMA | kTransmitOnly;
constexpr uint64_t kRxCaps = kMessages | FI_RMA | kReceiveOnly;
constexpr uint64_t kTxModifiers = FI_SEND | FI_READ | FI_WRITE;
constexpr uint64_t kRxModifiers = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;

// Runs the checks of one device and keeps the first that fails. Each member
// returns whether the hint can be met; a hint of zero always can.
class Matcher {
 public:
  bool Bits(const char* attribute, uint64_t wanted, uint64_t offered,
            fi_type type) {
    return (wanted & ~offered) == 0 ||
           Refuse(attribute, FlagsText(wanted, type), FlagsText(offered, type));
  }

  bool AtMost(const char* attribute, uint64_t wanted, uint64_t most) {
    return wanted <= most || Refuse(attribute, std::to_string(wanted),
                                    "at most " + std::to_string(most));
  }

  // `values` are all but 0, which stands for "any".
  template <typename Value>
  bool OneOf(const char* attribute, Value wanted, fi_type type,
             std::initializer_list<Value> values) {
    if (wanted == Value{} ||
        std::find(values.begin(), values.end(), wanted) != values.end()) {
      return true;
    }
    std::string offered;
    for (const Value& value : values) {
      offered += (offered.empty() ? "" : ", ") + ToText(&value, type);
    }
    return Refuse(attribute, ToText(&wanted, type), offered);
  }

  // Names are compared without regard to case, as stock libfabric does.
  bool Name(const char* attribute, const char* wanted,
            const std::string& offered) {
    return wanted == nullptr || strcasecmp(wanted, offered.c_str()) == 0 ||
           Refuse(attribute, wanted, offered);
  }

  bool Refuse(const char* attribute, std::string wanted, std::string offered) {
    refusal_ = Refusal{attribute, std::move(wanted), std::move(offered)};
    return false;
  }

  std::optional<Refusal> refusal() { return std::move(refusal_); }

 private:
  std::optional<Refusal> refusal_;
};

// Adds the modifiers of the capabilities that are implied when none is named.
uint64_t WithModifiers(uint64_t caps, uint64_t capability, uint64_t modifiers,
                       uint64_t offered) {
  const bool implied = (caps & capability) != 0 && (caps & modifiers) == 0;
  return implied ? caps | (modifiers & offered) : caps;
}

// What the answer's caps are. FI_SOURCE has a price and is given only when
// asked for; where an endpoint reaches has none. FI_SOURCE_ERR and FI_RMA_EVENT
// change what completes, so nobody gets them who takes all that there is.
uint64_t AnswerCaps(uint64_t wanted, const OfferedCaps& offered) {
  if (wanted == 0) {
    return offered.all() & ~(FI_SOURCE_ERR | FI_RMA_EVENT);
  }
  uint64_t caps =
      WithModifiers(wanted, kMessages, kMessageModifiers, kMessageModifiers);
  caps = WithModifiers(caps, FI_RMA, kRmaModifiers, kRmaModifiers);
  return (caps & kDomainCaps) == 0 ? caps | kDomainCaps : caps;
}

// Capabilities of one direction: `wanted` of it or, if 0, all that `caps` of
// the endpoint have for it. Bits of the other direction are ignored, as stock
// libfabric does; a direction that the modifiers exclude has none.
uint64_t DirectionCaps(uint64_t wanted, uint64_t caps, uint64_t of_direction,
                       uint64_t modifiers) {
  uint64_t chosen = caps & of_direction;
  if (wanted != 0) {
    chosen = wanted & of_direction;
    const uint64_t own = modifiers & caps;
    chosen =
        WithModifiers(chosen, kMessages, kMessageModifiers & modifiers, own);
    chosen = WithModifiers(chosen, FI_RMA, kRmaModifiers & modifiers, own);
  }
  if ((chosen & kMessageModifiers) == 0) {
    chosen &= ~(kMessages | FI_MULTI_RECV | FI_DIRECTED_RECV);
  }
  if ((chosen & kRmaModifiers) == 0) {
    chosen &= ~FI_RMA;
  }
  return (chosen & (kMessages | FI_RMA)) != 0 ? chosen : 0;
}

// Source: fi_getinfo(3), which capabilities need another.
bool PairsFit(uint64_t caps, const OfferedCaps& offered, Matcher* matcher) {
  const uint64_t answer = AnswerCaps(caps, offered);
  const struct {
    bool broken;
    const char* rule;
  } rules[] = {
      {(caps & kMessageModifiers) != 0 && (caps & kMessages) == 0,
       "FI_SEND and FI_RECV with FI_MSG or FI_TAGGED only"},
      {(caps & (FI_MULTI_RECV | FI_DIRECTED_RECV)) != 0 &&
           ((answer & kMessages) == 0 || (answer & FI_RECV) == 0),
       "FI_MULTI_RECV and FI_DIRECTED_RECV with receives of FI_MSG or "
       "FI_TAGGED "
       "only"},
      {(caps & kRmaModifiers) != 0 && (caps & FI_RMA) == 0,
       "FI_READ, FI_WRITE, FI_REMOTE_READ and FI_REMOTE_WRITE with FI_RMA "
       "only"},
      {(caps & (FI_SOURCE | FI_SOURCE_ERR)) == FI_SOURCE_ERR,
       "FI_SOURCE_ERR with FI_SOURCE only"},
      {(caps & FI_RMA_EVENT) != 0 &&
           (answer & (FI_REMOTE_READ | FI_REMOTE_WRITE)) == 0,
       "FI_RMA_EVENT with FI_REMOTE_READ or FI_REMOTE_WRITE only"},
  };
  return std::all_of(std::begin(rules), std::end(rules), [&](const auto& rule) {
    return !rule.broken ||
           matcher->Refuse("caps", FlagsText(caps, FI_TYPE_CAPS), rule.rule);
  });
}

bool CapsFit(const fi_info& hints, const OfferedCaps& offered,
             Matcher* matcher) {
  if (!matcher->Bits("caps", hints.caps, offered.all(), FI_TYPE_CAPS) ||
      !PairsFit(hints.caps, offered, matcher)) {
    return false;
  }
  // A capability that is wanted without modifiers is wanted whole.
  const uint64_t caps = AnswerCaps(hints.caps, offered);
  return matcher->Bits("caps", caps, offered.all(), FI_TYPE_CAPS) &&
         matcher->Bits("tx_attr->caps", hints.tx_attr->caps,
                       caps | kReceiveOnly | kDomainCaps, FI_TYPE_CAPS) &&
         matcher->Bits("rx_attr->caps", hints.rx_attr->caps,
                       caps | kTransmitOnly | kDomainCaps, FI_TYPE_CAPS);
}

bool AuthKeyFits(const char* attribute, const void* key, size_t bytes,
                 Matcher* matcher) {
  return bytes == 0 || JobIdOf(key, bytes).has_value() ||
         matcher->Refuse(attribute, std::to_string(bytes) + " bytes",
                         "4 bytes: a number of 1 to " +
                             std::to_string(contract::kJobIdMax));
}

bool TrafficClassFits(const char* attribute, uint32_t wanted,
                      Matcher* matcher) {
  return wanted == FI_TC_UNSPEC || DscpOf(wanted).has_value() ||
         matcher->Refuse(attribute, std::to_string(wanted),
                         "FI_TC_UNSPEC, the six labels, DSCP 0 to 63");
}

bool TxFits(const fi_tx_attr& tx, uint64_t answer_caps,
            const OfferedCaps& offered, Matcher* matcher) {
  return matcher->Bits("tx_attr->op_flags", tx.op_flags, offered.tx_op_flags(),
                       FI_TYPE_OP_FLAGS) &&
         matcher->Bits("tx_attr->msg_order", tx.msg_order, offered.msg_order(),
                       FI_TYPE_MSG_ORDER) &&
         matcher->Bits("tx_attr->comp_order", tx.comp_order,
                       offered.tx_comp_order(answer_caps), FI_TYPE_MSG_ORDER) &&
         matcher->AtMost("tx_attr->inject_size", tx.inject_size,
                         kInjectBytes) &&
         matcher->AtMost("tx_attr->size", tx.size, kMaxQueueSize) &&
         matcher->AtMost("tx_attr->iov_limit", tx.iov_limit, kIovLimit) &&
         matcher->AtMost("tx_attr->rma_iov_limit", tx.rma_iov_limit,
                         offered.rma_iov_limit()) &&
         TrafficClassFits("tx_attr->tclass", tx.tclass, matcher);
}

bool RxFits(const fi_rx_attr& rx, uint64_t answer_caps,
            const OfferedCaps& offered, Matcher* matcher) {
  return matcher->Bits("rx_attr->op_flags", rx.op_flags, kRxOpFlags,
                       FI_TYPE_OP_FLAGS) &&
         matcher->Bits("rx_attr->msg_order", rx.msg_order, offered.msg_order(),
                       FI_TYPE_MSG_ORDER) &&
         matcher->Bits("rx_attr->comp_order", rx.comp_order,
                       OfferedCaps::rx_comp_order(answer_caps),
                       FI_TYPE_MSG_ORDER) &&
         matcher->AtMost("rx_attr->size", rx.size, kMaxQueueSize) &&
         matcher->AtMost("rx_attr->iov_limit", rx.iov_limit, kIovLimit);
}

// Bytes up to which the order of two operations holds for their data too: any
// number, where such an order is offered.
size_t DataOrder(uint64_t order, uint64_t bits) {
  return (order & bits) != 0 ? SIZE_MAX : 0;
}
constexpr uint64_t kReadAfterWrite = FI_ORDER_RAW | FI_ORDER_RMA_RAW;
constexpr uint64_t kWriteAfterRead = FI_ORDER_WAR | FI_ORDER_RMA_WAR;
constexpr uint64_t kWriteAfterWrite = FI_ORDER_WAW | FI_ORDER_RMA_WAW;

bool EndpointFits(const fi_ep_attr& ep, const OfferedCaps& offered,
                  Matcher* matcher) {
  const uint64_t order = offered.msg_order();
  return matcher->OneOf("ep_attr->type", ep.type, FI_TYPE_EP_TYPE,
                        {FI_EP_RDM}) &&
         matcher->OneOf("ep_attr->protocol", ep.protocol, FI_TYPE_PROTOCOL,
                        {kProtocol}) &&
         matcher->AtMost("ep_attr->protocol_version", ep.protocol_version,
                         kProtocolVersion) &&
         matcher->AtMost("ep_attr->max_msg_size", ep.max_msg_size,
                         kMaxMessageBytes) &&
         matcher->AtMost("ep_attr->max_order_raw_size", ep.max_order_raw_size,
                         DataOrder(order, kReadAfterWrite)) &&
         matcher->AtMost("ep_attr->max_order_war_size", ep.max_order_war_size,
                         DataOrder(order, kWriteAfterRead)) &&
         matcher->AtMost("ep_attr->max_order_waw_size", ep.max_order_waw_size,
                         DataOrder(order, kWriteAfterWrite)) &&
         matcher->AtMost("ep_attr->tx_ctx_cnt", ep.tx_ctx_cnt, 1) &&
         matcher->AtMost("ep_attr->rx_ctx_cnt", ep.rx_ctx_cnt, 1) &&
         AuthKeyFits("ep_attr->auth_key", ep.auth_key, ep.auth_key_size,
                     matcher);
}

// Whether regions of the answer may be reached by peers, and who names them.
struct RegionUse {
  bool remote = false;
  bool provider_key = false;

  size_t key_bytes() const {
    return remote && !provider_key ? kMrUserKeyBytes : kMrKeyBytes;
  }
  size_t iov_limit() const { return remote ? 1 : kMrIovLimit; }
  size_t count(const backend::DeviceLimits& limits) const {
    return remote ? limits.regions : kMrCount;
  }
};

RegionUse RegionUseOf(uint64_t answer_caps, int mr_mode) {
  return {.remote = (answer_caps & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0,
          .provider_key =
              mr_mode == FI_MR_BASIC || (mr_mode & FI_MR_PROV_KEY) != 0};
}

// An endpoint that receives tagged messages has a receive context for them, and
// one for messages without a tag and RMA.
size_t EndpointCount(uint64_t answer_caps, const DeviceOffer& offer) {
  const bool both =
      (answer_caps & FI_TAGGED) != 0 && (answer_caps & (FI_MSG | FI_RMA)) != 0;
  return offer.profile.limits.endpoints(both ? 2 : 1);
}

size_t CounterCount(const DeviceOffer& offer) {
  return OfferedCaps(offer.profile.has).counters()
             ? offer.profile.limits.counters
             : 0;
}

// Source: fi_domain(3): mr_cnt says how many regions the application needs,
// which is a limit of the device for those that peers may reach alone.
bool DomainCountsFit(const fi_domain_attr& domain, const DeviceOffer& offer,
                     uint64_t answer_caps, Matcher* matcher) {
  const RegionUse regions = RegionUseOf(answer_caps, domain.mr_mode);
  const backend::DeviceLimits& limits = offer.profile.limits;
  struct Count {
    const char* attribute;
    size_t wanted;
    size_t most;
  };
  const Count counts[] = {
      {"domain_attr->mr_key_size", domain.mr_key_size, regions.key_bytes()},
      {"domain_attr->cq_data_size", domain.cq_data_size, kCqDataBytes},
      {"domain_attr->cq_cnt", domain.cq_cnt, limits.completion_queues},
      {"domain_attr->ep_cnt", domain.ep_cnt, EndpointCount(answer_caps, offer)},
      {"domain_attr->tx_ctx_cnt", domain.tx_ctx_cnt, limits.tx_contexts},
      {"domain_attr->rx_ctx_cnt", domain.rx_ctx_cnt, limits.rx_contexts},
      {"domain_attr->max_ep_tx_ctx", domain.max_ep_tx_ctx, 1},
      {"domain_attr->max_ep_rx_ctx", domain.max_ep_rx_ctx, 1},
      {"domain_attr->max_ep_stx_ctx", domain.max_ep_stx_ctx, 0},
      {"domain_attr->max_ep_srx_ctx", domain.max_ep_srx_ctx, 0},
      {"domain_attr->cntr_cnt", domain.cntr_cnt, CounterCount(offer)},
      {"domain_attr->mr_iov_limit", domain.mr_iov_limit, regions.iov_limit()},
      {"domain_attr->mr_cnt", domain.mr_cnt,
       regions.remote ? limits.regions : SIZE_MAX},
  };
  return std::all_of(
      std::begin(counts), std::end(counts), [matcher](const Count& count) {
        return matcher->AtMost(count.attribute, count.wanted, count.most);
      });
}

// Source: fi_domain(3), FI_MR_BASIC and FI_MR_SCALABLE stand alone.
bool MrModeFits(uint64_t wanted, Matcher* matcher) {
  constexpr uint64_t kOld = FI_MR_BASIC | FI_MR_SCALABLE;
  if ((wanted & kOld) == 0 || wanted == FI_MR_BASIC ||
      wanted == FI_MR_SCALABLE) {
    return true;
  }
  return matcher->Refuse("domain_attr->mr_mode",
                         FlagsText(wanted, FI_TYPE_MR_MODE),
                         "FI_MR_BASIC or FI_MR_SCALABLE with no other bit");
}

bool DomainFits(const NewestDomainAttr& newest, const DeviceOffer& offer,
                uint64_t answer_caps, Matcher* matcher) {
  const fi_domain_attr& domain = newest.base;
  return matcher->Name("domain_attr->name", domain.name, offer.domain_name) &&
         matcher->OneOf("domain_attr->threading", domain.threading,
                        FI_TYPE_THREADING,
                        {FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN,
                         FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT}) &&
         matcher->OneOf("domain_attr->control_progress",
                        domain.control_progress, FI_TYPE_PROGRESS,
                        {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL}) &&
         matcher->OneOf("domain_attr->data_progress", domain.data_progress,
                        FI_TYPE_PROGRESS,
                        {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL}) &&
         matcher->AtMost("domain_attr->resource_mgmt", domain.resource_mgmt,
                         FI_RM_ENABLED) &&
         matcher->OneOf("domain_attr->av_type", domain.av_type, FI_TYPE_AV_TYPE,
                        {FI_AV_MAP, FI_AV_TABLE}) &&
         MrModeFits(static_cast<uint32_t>(domain.mr_mode), matcher) &&
         matcher->Bits("domain_attr->caps", domain.caps, kDomainCaps,
                       FI_TYPE_CAPS) &&
         TrafficClassFits("domain_attr->tclass", domain.tclass, matcher) &&
         AuthKeyFits("domain_attr->auth_key", domain.auth_key,
                     domain.auth_key_size, matcher) &&
         matcher->AtMost("domain_attr->max_ep_auth_key", newest.max_ep_auth_key,
                         0) &&
         matcher->AtMost("domain_attr->max_group_id", newest.max_group_id, 0) &&
         DomainCountsFit(domain, offer, answer_caps, matcher);
}

bool FabricFits(const fi_fabric_attr& fabric, const DeviceOffer& offer,
                Matcher* matcher) {
  return matcher->Name("fabric_attr->prov_name", fabric.prov_name,
                       offer.provider_name) &&
         matcher->Name("fabric_attr->name", fabric.name, offer.fabric_name);
}

// Source: fi_getinfo(3), FI_ADDR_STR is how node and hints are written; the
// answer has the format that the text says.
bool AddressFormatFits(const fi_info& hints, const DeviceOffer& offer,
                       Matcher* matcher) {
  const uint32_t wanted = hints.addr_format;
  if (wanted == FI_FORMAT_UNSPEC || wanted == FI_SOCKADDR ||
      wanted == FI_ADDR_STR || (offer.ipv4 && wanted == FI_SOCKADDR_IN) ||
      (offer.ipv6 && wanted == FI_SOCKADDR_IN6)) {
    return true;
  }
  std::string offered = "FI_SOCKADDR, FI_ADDR_STR";
  offered += offer.ipv4 ? ", FI_SOCKADDR_IN" : "";
  offered += offer.ipv6 ? ", FI_SOCKADDR_IN6" : "";
  return matcher->Refuse("addr_format", ToText(&wanted, FI_TYPE_ADDR_FORMAT),
                         offered);
}

template <typename Value>
Value Or(Value wanted, Value otherwise) {
  return wanted != Value{} ? wanted : otherwise;
}

// Only on request: it costs, and an application may add capabilities with which
// there is none.
uint64_t CompletionOrder(uint64_t wanted) {
  return wanted != FI_ORDER_NONE ? uint64_t{FI_ORDER_STRICT} : FI_ORDER_NONE;
}

void FillTx(const fi_info& hints, uint64_t caps, const OfferedCaps& offered,
            fi_tx_attr* tx) {
  *tx = {};
  tx->caps = DirectionCaps(hints.tx_attr->caps, caps, kTxCaps, kTxModifiers);
  tx->op_flags = hints.tx_attr->op_flags;
  // More order than was asked for costs: operations that need none are sent
  // without.
  tx->msg_order = Or(hints.tx_attr->msg_order, kDefaultMessageOrder);
  tx->comp_order = CompletionOrder(hints.tx_attr->comp_order);
  tx->inject_size = kInjectBytes;
  tx->size = Or(hints.tx_attr->size, kDefaultQueueSize);
  tx->iov_limit = kIovLimit;
  tx->rma_iov_limit = (tx->caps & FI_RMA) != 0 ? offered.rma_iov_limit() : 0;
  tx->tclass = hints.tx_attr->tclass;
}

void FillRx(const fi_info& hints, uint64_t caps, const DeviceOffer& offer,
            fi_rx_attr* rx) {
  *rx = {};
  rx->caps = DirectionCaps(hints.rx_attr->caps, caps, kRxCaps, kRxModifiers);
  rx->op_flags = hints.rx_attr->op_flags;
  rx->msg_order = Or(hints.rx_attr->msg_order, kDefaultMessageOrder);
  rx->comp_order = CompletionOrder(hints.rx_attr->comp_order);
  if ((rx->caps & (FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV)) != 0) {
    rx->total_buffered_recv = UnexpectedBytes(
        offer.unexpected_bytes, hints.rx_attr->total_buffered_recv);
  }
  rx->size = Or(hints.rx_attr->size, kDefaultQueueSize);
  rx->iov_limit = kIovLimit;
}

// A copy for an answer; true unless there is no memory.
bool EchoAuthKey(const uint8_t* key, size_t bytes, uint8_t** copy,
                 size_t* copy_bytes) {
  if (bytes != 0) {
    *copy = static_cast<uint8_t*>(DuplicateBytes(key, bytes));
    *copy_bytes = *copy == nullptr ? 0 : bytes;
  }
  return bytes == *copy_bytes;
}

void FillEndpoint(const fi_info& hints, const fi_info& answer, fi_ep_attr* ep) {
  const uint64_t order = answer.tx_attr->msg_order;
  *ep = {};
  if ((answer.caps & FI_TAGGED) != 0) {
    // All 64 bits match, so that any format is met.
    ep->mem_tag_format = Or(hints.ep_attr->mem_tag_format, kTagFormat);
  }
  ep->type = FI_EP_RDM;
  ep->protocol = kProtocol;
  ep->protocol_version = kProtocolVersion;
  ep->max_msg_size = kMaxMessageBytes;
  ep->max_order_raw_size = DataOrder(order, kReadAfterWrite);
  ep->max_order_war_size = DataOrder(order, kWriteAfterRead);
  ep->max_order_waw_size = DataOrder(order, kWriteAfterWrite);
  ep->tx_ctx_cnt = 1;
  ep->rx_ctx_cnt = 1;
}

// In 2.0 `control_progress` and `data_progress` became one field, of which the
// latter is the one that callers set.
fi_progress ControlProgress(const fi_domain_attr& hints, uint32_t version) {
  const fi_progress otherwise = FI_VERSION_GE(version, FI_VERSION(2, 0))
                                    ? hints.data_progress
                                    : FI_PROGRESS_UNSPEC;
  return Or(Or(hints.control_progress, otherwise), FI_PROGRESS_AUTO);
}

// Nothing is needed of the application. Of what it offers for regions that
// peers may reach, this stays: keys that nobody can guess and that the device
// finds at once, addresses that need no translation, and what lets a region
// serve one endpoint or count (ADR 0006). Before 1.5 the mode was a choice of
// two.
int AnswerMrMode(int wanted, uint64_t answer_caps, uint32_t version) {
  if (wanted == FI_MR_BASIC || wanted == FI_MR_SCALABLE) {
    return wanted;
  }
  if (FI_VERSION_LT(version, FI_VERSION(1, 5))) {
    return FI_MR_SCALABLE;
  }
  int kept = 0;
  if ((answer_caps & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0) {
    kept |= FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT;
  }
  if ((answer_caps & FI_RMA_EVENT) != 0) {
    kept |= FI_MR_RMA_EVENT;
  }
  return wanted & kept;
}

void FillDomain(const fi_domain_attr& hints, const fi_info& answer,
                const DeviceOffer& offer, fi_domain_attr* domain) {
  const uint32_t version = answer.fabric_attr->api_version;
  *domain = {};
  domain->name = DuplicateText(offer.domain_name.c_str());
  domain->threading = Or(hints.threading, FI_THREAD_SAFE);
  domain->control_progress = ControlProgress(hints, version);
  domain->data_progress = Or(hints.data_progress, FI_PROGRESS_AUTO);
  domain->resource_mgmt = FI_RM_ENABLED;
  domain->av_type = Or(hints.av_type, FI_AV_TABLE);
  domain->mr_mode = AnswerMrMode(hints.mr_mode, answer.caps, version);
  const RegionUse regions = RegionUseOf(answer.caps, domain->mr_mode);
  domain->mr_key_size = regions.key_bytes();
  domain->cq_data_size = kCqDataBytes;
  domain->cq_cnt = offer.profile.limits.completion_queues;
  domain->ep_cnt = EndpointCount(answer.caps, offer);
  domain->tx_ctx_cnt = offer.profile.limits.tx_contexts;
  domain->rx_ctx_cnt = offer.profile.limits.rx_contexts;
  domain->max_ep_tx_ctx = 1;
  domain->max_ep_rx_ctx = 1;
  domain->cntr_cnt = CounterCount(offer);
  domain->mr_iov_limit = regions.iov_limit();
  domain->caps = kDomainCaps;
  domain->max_err_data = kMaxErrDataBytes;
  domain->mr_cnt = std::max(hints.mr_cnt, regions.count(offer.profile.limits));
  domain->tclass = hints.tclass;
}

}  // namespace

std::optional<Refusal> FindRefusal(const Hints& hints,
                                   const DeviceOffer& offer) {
  Matcher matcher;
  const fi_info& wanted = *hints;
  const OfferedCaps offered(offer.profile.has);
  const uint64_t answer_caps = AnswerCaps(wanted.caps, offered);
  if (FabricFits(*wanted.fabric_attr, offer, &matcher) &&
      EndpointFits(*wanted.ep_attr, offered, &matcher) &&
      CapsFit(wanted, offered, &matcher) &&
      AddressFormatFits(wanted, offer, &matcher) &&
      TxFits(*wanted.tx_attr, answer_caps, offered, &matcher) &&
      RxFits(*wanted.rx_attr, answer_caps, offered, &matcher)) {
    DomainFits(hints.domain(), offer, answer_caps, &matcher);
  }
  return matcher.refusal();
}

InfoPointer MakeInfo(const Hints& hints, uint32_t version,
                     const DeviceOffer& offer) {
  InfoPointer info(AllocateInfo());
  if (info == nullptr) {
    return nullptr;
  }
  const OfferedCaps offered(offer.profile.has);
  info->caps = AnswerCaps(hints->caps, offered);
  info->handle = hints->handle;
  FillTx(*hints, info->caps, offered, info->tx_attr);
  FillRx(*hints, info->caps, offer, info->rx_attr);
  FillEndpoint(*hints, *info, info->ep_attr);
  info->fabric_attr->name = DuplicateText(offer.fabric_name.c_str());
  info->fabric_attr->prov_version = base::kProviderVersion;
  info->fabric_attr->api_version = version;
  FillDomain(*hints->domain_attr, *info, offer, info->domain_attr);
  const bool keys =
      EchoAuthKey(hints->ep_attr->auth_key, hints->ep_attr->auth_key_size,
                  &info->ep_attr->auth_key, &info->ep_attr->auth_key_size) &&
      EchoAuthKey(
          hints->domain_attr->auth_key, hints->domain_attr->auth_key_size,
          &info->domain_attr->auth_key, &info->domain_attr->auth_key_size);
  const bool whole = keys && info->domain_attr->name != nullptr &&
                     info->fabric_attr->name != nullptr;
  return whole ? std::move(info) : nullptr;
}

}  // namespace heddle::core
