// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/tostr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <span>

#include "host/lib/base/version.h"

namespace heddle::core {
namespace {

struct Name {
  uint64_t value;
  const char* text;
};

// A name and its value cannot disagree.
#define NAME(symbol)                       \
  Name {                                   \
    static_cast<uint64_t>(symbol), #symbol \
  }

constexpr std::array kCaps = {
    NAME(FI_MSG),           NAME(FI_RMA),
    NAME(FI_TAGGED),        NAME(FI_ATOMIC),
    NAME(FI_MULTICAST),     NAME(FI_COLLECTIVE),
    NAME(FI_READ),          NAME(FI_WRITE),
    NAME(FI_RECV),          NAME(FI_SEND),
    NAME(FI_REMOTE_READ),   NAME(FI_REMOTE_WRITE),
    NAME(FI_MULTI_RECV),    NAME(FI_REMOTE_CQ_DATA),
    NAME(FI_TRIGGER),       NAME(FI_FENCE),
    NAME(FI_AV_USER_ID),    NAME(FI_PEER),
    NAME(FI_HMEM),          NAME(FI_VARIABLE_MSG),
    NAME(FI_RMA_PMEM),      NAME(FI_SOURCE_ERR),
    NAME(FI_LOCAL_COMM),    NAME(FI_REMOTE_COMM),
    NAME(FI_SHARED_AV),     NAME(FI_RMA_EVENT),
    NAME(FI_SOURCE),        NAME(FI_NAMED_RX_CTX),
    NAME(FI_DIRECTED_RECV),
};

constexpr std::array kOperationFlags = {
    NAME(FI_MULTICAST),
    NAME(FI_MULTI_RECV),
    NAME(FI_REMOTE_CQ_DATA),
    NAME(FI_MORE),
    NAME(FI_PEEK),
    NAME(FI_TRIGGER),
    NAME(FI_FENCE),
    NAME(FI_COMPLETION),
    NAME(FI_INJECT),
    NAME(FI_INJECT_COMPLETE),
    NAME(FI_TRANSMIT_COMPLETE),
    NAME(FI_DELIVERY_COMPLETE),
    NAME(FI_AFFINITY),
    NAME(FI_COMMIT_COMPLETE),
    NAME(FI_MATCH_COMPLETE),
    NAME(FI_CLAIM),
    NAME(FI_DISCARD),
};

constexpr std::array kCompletionFlags = {
    NAME(FI_SEND),
    NAME(FI_RECV),
    NAME(FI_RMA),
    NAME(FI_ATOMIC),
    NAME(FI_MSG),
    NAME(FI_TAGGED),
    NAME(FI_READ),
    NAME(FI_WRITE),
    NAME(FI_REMOTE_READ),
    NAME(FI_REMOTE_WRITE),
    NAME(FI_REMOTE_CQ_DATA),
    NAME(FI_MULTI_RECV),
    NAME(FI_MORE),
    NAME(FI_CLAIM),
};

constexpr std::array kModes = {
    NAME(FI_CONTEXT),         NAME(FI_MSG_PREFIX), NAME(FI_ASYNC_IOV),
    NAME(FI_RX_CQ_DATA),      NAME(FI_LOCAL_MR),   NAME(FI_NOTIFY_FLAGS_ONLY),
    NAME(FI_RESTRICTED_COMP), NAME(FI_CONTEXT2),   NAME(FI_BUFFERED_RECV),
    NAME(FI_PEER_TRANSFER),
};

constexpr std::array kOrders = {
    NAME(FI_ORDER_RAR),        NAME(FI_ORDER_RAW),
    NAME(FI_ORDER_RAS),        NAME(FI_ORDER_WAR),
    NAME(FI_ORDER_WAW),        NAME(FI_ORDER_WAS),
    NAME(FI_ORDER_SAR),        NAME(FI_ORDER_SAW),
    NAME(FI_ORDER_SAS),        NAME(FI_ORDER_RMA_RAR),
    NAME(FI_ORDER_RMA_RAW),    NAME(FI_ORDER_RMA_WAR),
    NAME(FI_ORDER_RMA_WAW),    NAME(FI_ORDER_ATOMIC_RAR),
    NAME(FI_ORDER_ATOMIC_RAW), NAME(FI_ORDER_ATOMIC_WAR),
    NAME(FI_ORDER_ATOMIC_WAW), NAME(FI_ORDER_DATA),
};

constexpr std::array kCompletionOrders = {
    NAME(FI_ORDER_STRICT),
    NAME(FI_ORDER_DATA),
};

constexpr std::array kMrModes = {
    NAME(FI_MR_BASIC),    NAME(FI_MR_SCALABLE),   NAME(FI_MR_LOCAL),
    NAME(FI_MR_RAW),      NAME(FI_MR_VIRT_ADDR),  NAME(FI_MR_ALLOCATED),
    NAME(FI_MR_PROV_KEY), NAME(FI_MR_MMU_NOTIFY), NAME(FI_MR_RMA_EVENT),
    NAME(FI_MR_ENDPOINT), NAME(FI_MR_HMEM),       NAME(FI_MR_COLLECTIVE),
};

constexpr std::array kAddressFormats = {
    NAME(FI_FORMAT_UNSPEC), NAME(FI_SOCKADDR),    NAME(FI_SOCKADDR_IN),
    NAME(FI_SOCKADDR_IN6),  NAME(FI_SOCKADDR_IB), NAME(FI_ADDR_PSMX),
    NAME(FI_ADDR_GNI),      NAME(FI_ADDR_BGQ),    NAME(FI_ADDR_MLX),
    NAME(FI_ADDR_STR),      NAME(FI_ADDR_PSMX2),  NAME(FI_ADDR_IB_UD),
    NAME(FI_ADDR_EFA),      NAME(FI_ADDR_PSMX3),  NAME(FI_ADDR_OPX),
    NAME(FI_ADDR_CXI),
};

constexpr std::array kProgress = {
    NAME(FI_PROGRESS_UNSPEC),
    NAME(FI_PROGRESS_AUTO),
    NAME(FI_PROGRESS_MANUAL),
};

constexpr std::array kThreading = {
    NAME(FI_THREAD_UNSPEC),     NAME(FI_THREAD_SAFE),
    NAME(FI_THREAD_FID),        NAME(FI_THREAD_DOMAIN),
    NAME(FI_THREAD_COMPLETION), NAME(FI_THREAD_ENDPOINT),
};

constexpr std::array kEndpointTypes = {
    NAME(FI_EP_UNSPEC), NAME(FI_EP_MSG),         NAME(FI_EP_DGRAM),
    NAME(FI_EP_RDM),    NAME(FI_EP_SOCK_STREAM), NAME(FI_EP_SOCK_DGRAM),
};

constexpr std::array kProtocols = {
    NAME(FI_PROTO_UNSPEC),        NAME(FI_PROTO_RDMA_CM_IB_RC),
    NAME(FI_PROTO_IWARP),         NAME(FI_PROTO_IB_UD),
    NAME(FI_PROTO_PSMX),          NAME(FI_PROTO_UDP),
    NAME(FI_PROTO_SOCK_TCP),      NAME(FI_PROTO_MXM),
    NAME(FI_PROTO_IWARP_RDM),     NAME(FI_PROTO_IB_RDM),
    NAME(FI_PROTO_GNI),           NAME(FI_PROTO_RXM),
    NAME(FI_PROTO_RXD),           NAME(FI_PROTO_MLX),
    NAME(FI_PROTO_NETWORKDIRECT), NAME(FI_PROTO_PSMX2),
    NAME(FI_PROTO_SHM),           NAME(FI_PROTO_MRAIL),
    NAME(FI_PROTO_RSTREAM),       NAME(FI_PROTO_RDMA_CM_IB_XRC),
    NAME(FI_PROTO_EFA),           NAME(FI_PROTO_PSMX3),
    NAME(FI_PROTO_RXM_TCP),       NAME(FI_PROTO_OPX),
    NAME(FI_PROTO_CXI),           NAME(FI_PROTO_XNET),
};

constexpr std::array kResourceManagement = {
    NAME(FI_RM_UNSPEC),
    NAME(FI_RM_DISABLED),
    NAME(FI_RM_ENABLED),
};

constexpr std::array kAvTypes = {
    NAME(FI_AV_UNSPEC),
    NAME(FI_AV_MAP),
    NAME(FI_AV_TABLE),
};

constexpr std::array kDatatypes = {
    NAME(FI_INT8),          NAME(FI_UINT8),
    NAME(FI_INT16),         NAME(FI_UINT16),
    NAME(FI_INT32),         NAME(FI_UINT32),
    NAME(FI_INT64),         NAME(FI_UINT64),
    NAME(FI_FLOAT),         NAME(FI_DOUBLE),
    NAME(FI_FLOAT_COMPLEX), NAME(FI_DOUBLE_COMPLEX),
    NAME(FI_LONG_DOUBLE),   NAME(FI_LONG_DOUBLE_COMPLEX),
    NAME(FI_INT128),        NAME(FI_UINT128),
    NAME(FI_VOID),
};

constexpr std::array kAtomicOps = {
    NAME(FI_MIN),      NAME(FI_MAX),         NAME(FI_SUM),
    NAME(FI_PROD),     NAME(FI_LOR),         NAME(FI_LAND),
    NAME(FI_BOR),      NAME(FI_BAND),        NAME(FI_LXOR),
    NAME(FI_BXOR),     NAME(FI_ATOMIC_READ), NAME(FI_ATOMIC_WRITE),
    NAME(FI_CSWAP),    NAME(FI_CSWAP_NE),    NAME(FI_CSWAP_LE),
    NAME(FI_CSWAP_LT), NAME(FI_CSWAP_GE),    NAME(FI_CSWAP_GT),
    NAME(FI_MSWAP),    NAME(FI_NOOP),
};

constexpr std::array kEqEvents = {
    NAME(FI_NOTIFY),        NAME(FI_CONNREQ),     NAME(FI_CONNECTED),
    NAME(FI_SHUTDOWN),      NAME(FI_MR_COMPLETE), NAME(FI_AV_COMPLETE),
    NAME(FI_JOIN_COMPLETE),
};

constexpr std::array kOperations = {
    NAME(FI_OP_RECV),     NAME(FI_OP_SEND),         NAME(FI_OP_TRECV),
    NAME(FI_OP_TSEND),    NAME(FI_OP_READ),         NAME(FI_OP_WRITE),
    NAME(FI_OP_ATOMIC),   NAME(FI_OP_FETCH_ATOMIC), NAME(FI_OP_COMPARE_ATOMIC),
    NAME(FI_OP_CNTR_SET), NAME(FI_OP_CNTR_ADD),
};

constexpr std::array kCollectives = {
    NAME(FI_BARRIER),   NAME(FI_BROADCAST), NAME(FI_ALLTOALL),
    NAME(FI_ALLREDUCE), NAME(FI_ALLGATHER), NAME(FI_REDUCE_SCATTER),
    NAME(FI_REDUCE),    NAME(FI_SCATTER),   NAME(FI_GATHER),
};

constexpr std::array kHmemInterfaces = {
    NAME(FI_HMEM_SYSTEM), NAME(FI_HMEM_CUDA),   NAME(FI_HMEM_ROCR),
    NAME(FI_HMEM_ZE),     NAME(FI_HMEM_NEURON), NAME(FI_HMEM_SYNAPSEAI),
};

constexpr std::array kCqFormats = {
    NAME(FI_CQ_FORMAT_UNSPEC), NAME(FI_CQ_FORMAT_CONTEXT),
    NAME(FI_CQ_FORMAT_MSG),    NAME(FI_CQ_FORMAT_DATA),
    NAME(FI_CQ_FORMAT_TAGGED),
};

constexpr std::array kLogLevels = {
    NAME(FI_LOG_WARN),
    NAME(FI_LOG_TRACE),
    NAME(FI_LOG_INFO),
    NAME(FI_LOG_DEBUG),
};

constexpr std::array kLogSubsystems = {
    NAME(FI_LOG_CORE),    NAME(FI_LOG_FABRIC),  NAME(FI_LOG_DOMAIN),
    NAME(FI_LOG_EP_CTRL), NAME(FI_LOG_EP_DATA), NAME(FI_LOG_AV),
    NAME(FI_LOG_CQ),      NAME(FI_LOG_EQ),      NAME(FI_LOG_MR),
    NAME(FI_LOG_CNTR),
};

#undef NAME

std::string Flags(uint64_t flags, std::span<const Name> names) {
  std::string text;
  for (const Name& name : names) {
    if ((flags & name.value) == name.value) {
      text += text.empty() ? "" : ", ";
      text += name.text;
      flags &= ~name.value;
    }
  }
  if (flags != 0) {
    char rest[24];
    snprintf(rest, sizeof(rest), "%s0x%llx", text.empty() ? "" : ", ",
             static_cast<unsigned long long>(flags));
    text += rest;
  }
  return text;
}

std::string Enumerator(uint64_t value, std::span<const Name> names) {
  for (const Name& name : names) {
    if (name.value == value) {
      return name.text;
    }
  }
  // Source: fabric.h, FI_PROV_SPECIFIC.
  return (value & FI_PROV_SPECIFIC) != 0 ? "Provider specific" : "Unknown";
}

// Writes YAML, one field per line, as stock libfabric does.
class Yaml {
 public:
  explicit Yaml(size_t indent) : indent_(indent, ' ') {}

  void Open(const char* name) {
    text_ += indent_ + name + ":\n";
    indent_ += "    ";
  }
  void Close() { indent_.resize(indent_.size() - 4); }
  void Null(const char* name) { text_ += indent_ + name + ": (null)\n"; }
  void Text(const char* name, const std::string& value) {
    text_ += indent_ + name + ": " + value + "\n";
  }
  void String(const char* name, const char* value) {
    Text(name, value != nullptr ? value : "(null)");
  }
  void Set(const char* name, uint64_t flags, std::span<const Name> names) {
    Text(name, "[ " + Flags(flags, names) + " ]");
  }
  void Number(const char* name, uint64_t value) {
    Text(name, std::to_string(value));
  }
  void Hexadecimal(const char* name, uint64_t value, int digits) {
    char text[32];
    snprintf(text, sizeof(text), "0x%0*llx", digits,
             static_cast<unsigned long long>(value));
    Text(name, text);
  }
  void Pointer(const char* name, const void* value) {
    char text[32];
    snprintf(text, sizeof(text), "%p", value);
    Text(name, text);
  }
  const std::string& text() const { return text_; }

 private:
  std::string indent_;
  std::string text_;
};

std::string CompletionOrderText(uint64_t order) {
  return order == 0 ? "[ FI_ORDER_NONE ]"
                    : "[ " + Flags(order, kCompletionOrders) + " ]";
}

void AddTx(const fi_tx_attr* attr, Yaml* yaml) {
  if (attr == nullptr) {
    return yaml->Null("fi_tx_attr");
  }
  yaml->Open("fi_tx_attr");
  yaml->Set("caps", attr->caps, kCaps);
  yaml->Set("mode", attr->mode, kModes);
  yaml->Set("op_flags", attr->op_flags, kOperationFlags);
  yaml->Set("msg_order", attr->msg_order, kOrders);
  yaml->Text("comp_order", CompletionOrderText(attr->comp_order));
  yaml->Number("inject_size", attr->inject_size);
  yaml->Number("size", attr->size);
  yaml->Number("iov_limit", attr->iov_limit);
  yaml->Number("rma_iov_limit", attr->rma_iov_limit);
  yaml->Hexadecimal("tclass", attr->tclass, 1);
  yaml->Close();
}

void AddRx(const fi_rx_attr* attr, Yaml* yaml) {
  if (attr == nullptr) {
    return yaml->Null("fi_rx_attr");
  }
  yaml->Open("fi_rx_attr");
  yaml->Set("caps", attr->caps, kCaps);
  yaml->Set("mode", attr->mode, kModes);
  yaml->Set("op_flags", attr->op_flags, kOperationFlags);
  yaml->Set("msg_order", attr->msg_order, kOrders);
  yaml->Text("comp_order", CompletionOrderText(attr->comp_order));
  yaml->Number("total_buffered_recv", attr->total_buffered_recv);
  yaml->Number("size", attr->size);
  yaml->Number("iov_limit", attr->iov_limit);
  yaml->Close();
}

std::string ContextCountText(size_t count) {
  return count == FI_SHARED_CONTEXT ? "FI_SHARED_CONTEXT"
                                    : std::to_string(count);
}

void AddEndpoint(const fi_ep_attr* attr, Yaml* yaml) {
  if (attr == nullptr) {
    return yaml->Null("fi_ep_attr");
  }
  yaml->Open("fi_ep_attr");
  yaml->Text("type", Enumerator(attr->type, kEndpointTypes));
  yaml->Text("protocol", Enumerator(attr->protocol, kProtocols));
  yaml->Number("protocol_version", attr->protocol_version);
  yaml->Number("max_msg_size", attr->max_msg_size);
  yaml->Number("msg_prefix_size", attr->msg_prefix_size);
  yaml->Number("max_order_raw_size", attr->max_order_raw_size);
  yaml->Number("max_order_war_size", attr->max_order_war_size);
  yaml->Number("max_order_waw_size", attr->max_order_waw_size);
  yaml->Hexadecimal("mem_tag_format", attr->mem_tag_format, 16);
  yaml->Text("tx_ctx_cnt", ContextCountText(attr->tx_ctx_cnt));
  yaml->Text("rx_ctx_cnt", ContextCountText(attr->rx_ctx_cnt));
  yaml->Number("auth_key_size", attr->auth_key_size);
  yaml->Close();
}

void AddDomain(const fi_domain_attr* attr, Yaml* yaml) {
  if (attr == nullptr) {
    return yaml->Null("fi_domain_attr");
  }
  yaml->Open("fi_domain_attr");
  // A null pointer is 0x0 here and (nil) elsewhere: stock libfabric's format.
  yaml->Hexadecimal("domain", reinterpret_cast<uintptr_t>(attr->domain), 1);
  yaml->String("name", attr->name);
  yaml->Text("threading", Enumerator(attr->threading, kThreading));
  yaml->Text("control_progress", Enumerator(attr->control_progress, kProgress));
  yaml->Text("data_progress", Enumerator(attr->data_progress, kProgress));
  yaml->Text("resource_mgmt",
             Enumerator(attr->resource_mgmt, kResourceManagement));
  yaml->Text("av_type", Enumerator(attr->av_type, kAvTypes));
  yaml->Set("mr_mode", static_cast<uint32_t>(attr->mr_mode), kMrModes);
  yaml->Number("mr_key_size", attr->mr_key_size);
  yaml->Number("cq_data_size", attr->cq_data_size);
  yaml->Number("cq_cnt", attr->cq_cnt);
  yaml->Number("ep_cnt", attr->ep_cnt);
  yaml->Number("tx_ctx_cnt", attr->tx_ctx_cnt);
  yaml->Number("rx_ctx_cnt", attr->rx_ctx_cnt);
  yaml->Number("max_ep_tx_ctx", attr->max_ep_tx_ctx);
  yaml->Number("max_ep_rx_ctx", attr->max_ep_rx_ctx);
  yaml->Number("max_ep_stx_ctx", attr->max_ep_stx_ctx);
  yaml->Number("max_ep_srx_ctx", attr->max_ep_srx_ctx);
  yaml->Number("cntr_cnt", attr->cntr_cnt);
  yaml->Number("mr_iov_limit", attr->mr_iov_limit);
  yaml->Set("caps", attr->caps, kCaps);
  yaml->Set("mode", attr->mode, kModes);
  yaml->Number("auth_key_size", attr->auth_key_size);
  yaml->Number("max_err_data", attr->max_err_data);
  yaml->Number("mr_cnt", attr->mr_cnt);
  yaml->Hexadecimal("tclass", attr->tclass, 1);
  yaml->Close();
}

std::string VersionText(uint32_t version) {
  return std::to_string(FI_MAJOR(version)) + "." +
         std::to_string(FI_MINOR(version));
}

void AddFabric(const fi_fabric_attr* attr, Yaml* yaml) {
  if (attr == nullptr) {
    return yaml->Null("fi_fabric_attr");
  }
  yaml->Open("fi_fabric_attr");
  yaml->String("name", attr->name);
  yaml->String("prov_name", attr->prov_name);
  yaml->Text("prov_version", VersionText(attr->prov_version));
  yaml->Text("api_version", VersionText(attr->api_version));
  yaml->Close();
}

std::string AddressText(const void* data, size_t length) {
  if (data == nullptr) {
    return "(null)";
  }
  sockaddr_in6 address = {};
  memcpy(&address, data, length < sizeof(address) ? length : sizeof(address));
  char text[INET6_ADDRSTRLEN] = "";
  const std::string port = std::to_string(ntohs(address.sin6_port));
  if (address.sin6_family == AF_INET6) {
    inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
    return "fi_sockaddr_in6://[" + std::string(text) + "]:" + port;
  }
  if (address.sin6_family != AF_INET) {
    return "unknown format";
  }
  sockaddr_in address4 = {};
  memcpy(&address4, &address, sizeof(address4));
  inet_ntop(AF_INET, &address4.sin_addr, text, sizeof(text));
  return "fi_sockaddr_in://" + std::string(text) + ":" + port;
}

std::string FidText(const struct fid* fid) {
  char text[1024] = "";
  if (fid != nullptr && FI_CHECK_OP(fid->ops, struct fi_ops, tostr)) {
    fid->ops->tostr(fid, text, sizeof(text));
  } else {
    snprintf(text, sizeof(text), "%p", static_cast<const void*>(fid));
  }
  return text;
}

std::string InfoText(const fi_info& info) {
  Yaml yaml(0);
  yaml.Open("fi_info");
  yaml.Set("caps", info.caps, kCaps);
  yaml.Set("mode", info.mode, kModes);
  yaml.Text("addr_format", Enumerator(info.addr_format, kAddressFormats));
  yaml.Number("src_addrlen", info.src_addrlen);
  yaml.Number("dest_addrlen", info.dest_addrlen);
  yaml.Text("src_addr", AddressText(info.src_addr, info.src_addrlen));
  yaml.Text("dest_addr", AddressText(info.dest_addr, info.dest_addrlen));
  yaml.Text("handle", FidText(info.handle));
  AddTx(info.tx_attr, &yaml);
  AddRx(info.rx_attr, &yaml);
  AddEndpoint(info.ep_attr, &yaml);
  AddDomain(info.domain_attr, &yaml);
  AddFabric(info.fabric_attr, &yaml);
  if (info.nic == nullptr ||
      !FI_CHECK_OP(info.nic->fid.ops, struct fi_ops, tostr)) {
    yaml.Pointer("nic", info.nic);
    return yaml.text();
  }
  // Source: stock libfabric, a nic prints its own name.
  return yaml.text() + FidText(&info.nic->fid);
}

template <typename Attribute>
std::string PartText(void (*add)(const Attribute*, Yaml*), const void* data) {
  Yaml yaml(0);
  add(static_cast<const Attribute*>(data), &yaml);
  return yaml.text();
}

// The names of an enumeration type; empty if `type` is none.
std::span<const Name> EnumeratorsOf(fi_type type) {
  switch (type) {
    case FI_TYPE_EP_TYPE:
      return kEndpointTypes;
    case FI_TYPE_ADDR_FORMAT:
      return kAddressFormats;
    case FI_TYPE_THREADING:
      return kThreading;
    case FI_TYPE_PROGRESS:
      return kProgress;
    case FI_TYPE_PROTOCOL:
      return kProtocols;
    case FI_TYPE_AV_TYPE:
      return kAvTypes;
    case FI_TYPE_ATOMIC_TYPE:
      return kDatatypes;
    case FI_TYPE_ATOMIC_OP:
      return kAtomicOps;
    case FI_TYPE_EQ_EVENT:
      return kEqEvents;
    case FI_TYPE_OP_TYPE:
      return kOperations;
    case FI_TYPE_COLLECTIVE_OP:
      return kCollectives;
    case FI_TYPE_HMEM_IFACE:
      return kHmemInterfaces;
    case FI_TYPE_CQ_FORMAT:
      return kCqFormats;
    case FI_TYPE_LOG_LEVEL:
      return kLogLevels;
    case FI_TYPE_LOG_SUBSYS:
      return kLogSubsystems;
    default:
      return {};
  }
}

template <typename Number>
Number Load(const void* data) {
  Number number;
  memcpy(&number, data, sizeof(number));
  return number;
}

}  // namespace

std::string FlagsText(uint64_t flags, fi_type type) {
  switch (type) {
    case FI_TYPE_CAPS:
      return Flags(flags, kCaps);
    case FI_TYPE_OP_FLAGS:
      return Flags(flags, kOperationFlags);
    case FI_TYPE_MODE:
      return Flags(flags, kModes);
    case FI_TYPE_MR_MODE:
      return Flags(flags, kMrModes);
    case FI_TYPE_MSG_ORDER:
      return flags == 0 ? "FI_ORDER_NONE" : Flags(flags, kOrders);
    case FI_TYPE_CQ_EVENT_FLAGS:
      return Flags(flags, kCompletionFlags);
    default:
      return "Unknown type";
  }
}

std::string ToText(const void* data, fi_type type) {
  switch (type) {
    case FI_TYPE_INFO:
      return InfoText(*static_cast<const fi_info*>(data));
    case FI_TYPE_TX_ATTR:
      return PartText(AddTx, data);
    case FI_TYPE_RX_ATTR:
      return PartText(AddRx, data);
    case FI_TYPE_EP_ATTR:
      return PartText(AddEndpoint, data);
    case FI_TYPE_DOMAIN_ATTR:
      return PartText(AddDomain, data);
    case FI_TYPE_FABRIC_ATTR:
      return PartText(AddFabric, data);
    case FI_TYPE_VERSION:
      return base::kVersionText;
    case FI_TYPE_FID:
      return "fid: " + FidText(static_cast<const struct fid*>(data)) + "\n";
    case FI_TYPE_MR_MODE:
      return FlagsText(Load<uint32_t>(data), type);
    case FI_TYPE_CAPS:
    case FI_TYPE_OP_FLAGS:
    case FI_TYPE_MODE:
    case FI_TYPE_MSG_ORDER:
    case FI_TYPE_CQ_EVENT_FLAGS:
      return FlagsText(Load<uint64_t>(data), type);
    default:
      break;
  }
  const std::span<const Name> names = EnumeratorsOf(type);
  return names.empty() ? "Unknown type"
                       : Enumerator(Load<uint32_t>(data), names);
}

}  // namespace heddle::core
