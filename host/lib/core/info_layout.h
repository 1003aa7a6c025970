// SPDX-License-Identifier: Apache-2.0
// The layouts that struct fi_info and its parts had in each ABI version.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heddle::core {

// The API that this library implements.
inline constexpr uint32_t kApiVersion = FI_VERSION(2, 1);

// fi_domain_attr of FABRIC_1.8, which the installed headers do not have.
struct NewestDomainAttr {
  fi_domain_attr base;
  size_t max_ep_auth_key;  // Since FABRIC_1.7.
  uint32_t max_group_id;   // Since FABRIC_1.8.
};

// Bytes that an allocated domain attribute has: a core that is newer than this
// library finds zeros where its own fields are.
inline constexpr size_t kAllocatedDomainAttr = 320;

// Fields were only ever appended, so a layout is the number of bytes that the
// caller's structures have. Source: libfabric's ABI notes, fabric.h of 1.0,
// 1.5, 1.7, 1.9, 1.17, 1.20 and 2.0. Unit: bytes.
struct InfoLayout {
  size_t info;
  size_t tx_attr;
  size_t rx_attr;
  size_t ep_attr;
  size_t domain_attr;
  size_t fabric_attr;
};

// FABRIC_1.0, API 1.0 to 1.4: no nic, tclass, auth keys, domain caps and mode,
// counter and MR limits; the caller's api_version is unknown.
inline constexpr InfoLayout kLayout10 = {
    .info = offsetof(fi_info, nic),
    .tx_attr = offsetof(fi_tx_attr, tclass),
    .rx_attr = sizeof(fi_rx_attr),
    .ep_attr = offsetof(fi_ep_attr, auth_key_size),
    .domain_attr = offsetof(fi_domain_attr, cntr_cnt),
    .fabric_attr = offsetof(fi_fabric_attr, api_version),
};

// FABRIC_1.1, API 1.5 and 1.6: no nic, no tclass.
inline constexpr InfoLayout kLayout11 = {
    .info = offsetof(fi_info, nic),
    .tx_attr = offsetof(fi_tx_attr, tclass),
    .rx_attr = sizeof(fi_rx_attr),
    .ep_attr = sizeof(fi_ep_attr),
    .domain_attr = offsetof(fi_domain_attr, tclass),
    .fabric_attr = sizeof(fi_fabric_attr),
};

// FABRIC_1.2, API 1.7 and 1.8: no tclass.
inline constexpr InfoLayout kLayout12 = {
    .info = sizeof(fi_info),
    .tx_attr = offsetof(fi_tx_attr, tclass),
    .rx_attr = sizeof(fi_rx_attr),
    .ep_attr = sizeof(fi_ep_attr),
    .domain_attr = offsetof(fi_domain_attr, tclass),
    .fabric_attr = sizeof(fi_fabric_attr),
};

// FABRIC_1.3, API 1.9 to 1.19.
inline constexpr InfoLayout kLayout13 = {
    .info = sizeof(fi_info),
    .tx_attr = sizeof(fi_tx_attr),
    .rx_attr = sizeof(fi_rx_attr),
    .ep_attr = sizeof(fi_ep_attr),
    .domain_attr = sizeof(fi_domain_attr),
    .fabric_attr = sizeof(fi_fabric_attr),
};

// FABRIC_1.7, API 1.20 to 1.22.
inline constexpr InfoLayout kLayout17 = {
    .info = sizeof(fi_info),
    .tx_attr = sizeof(fi_tx_attr),
    .rx_attr = sizeof(fi_rx_attr),
    .ep_attr = sizeof(fi_ep_attr),
    .domain_attr = offsetof(NewestDomainAttr, max_group_id),
    .fabric_attr = sizeof(fi_fabric_attr),
};

// FABRIC_1.8, API 2.0 to 2.4.
inline constexpr InfoLayout kLayout18 = {
    .info = sizeof(fi_info),
    .tx_attr = sizeof(fi_tx_attr),
    .rx_attr = sizeof(fi_rx_attr),
    .ep_attr = sizeof(fi_ep_attr),
    .domain_attr = sizeof(NewestDomainAttr),
    .fabric_attr = sizeof(fi_fabric_attr),
};
inline constexpr const InfoLayout& kNewestLayout = kLayout18;

// fi_cq_err_entry since API 1.20.
struct NewestCqErrEntry {
  fi_cq_err_entry base;
  fi_addr_t src_addr;
};

// Stores the sender, which no entry of ours names, in the entry of a caller
// that has room for one.
inline void StoreErrorSource(uint32_t version, fi_cq_err_entry* entry) {
  if (FI_VERSION_GE(version, FI_VERSION(1, 20))) {
    const fi_addr_t none = FI_ADDR_NOTAVAIL;
    memcpy(
        reinterpret_cast<char*>(entry) + offsetof(NewestCqErrEntry, src_addr),
        &none, sizeof(none));
  }
}

// The installed headers must have the 1.3 layout, or every entry point lies.
static_assert(sizeof(fi_info) == 120);
static_assert(sizeof(fi_tx_attr) == 80);
static_assert(sizeof(fi_rx_attr) == 64);
static_assert(sizeof(fi_ep_attr) == 96);
static_assert(sizeof(fi_domain_attr) == 192);
static_assert(sizeof(fi_fabric_attr) == 32);
static_assert(sizeof(fi_cq_err_entry) == 80);
static_assert(sizeof(fi_eq_err_entry) == 48);
static_assert(offsetof(NewestCqErrEntry, src_addr) == 80);
static_assert(kLayout10.info == 112);
static_assert(kLayout10.tx_attr == 72);
static_assert(kLayout10.ep_attr == 80);
static_assert(kLayout10.domain_attr == 120);
static_assert(kLayout10.fabric_attr == 28);
static_assert(kLayout11.domain_attr == 184);
static_assert(kLayout17.domain_attr == 200);
static_assert(kLayout18.domain_attr == 208);
static_assert(offsetof(NewestDomainAttr, max_ep_auth_key) == 192);
static_assert(sizeof(NewestDomainAttr) <= kAllocatedDomainAttr);
static_assert(offsetof(fi_info, tx_attr) == 72);
static_assert(offsetof(fi_ep_attr, mem_tag_format) == 56);
static_assert(offsetof(fi_domain_attr, mr_mode) == 36);
static_assert(offsetof(fi_domain_attr, mr_key_size) == 40);
static_assert(offsetof(fi_domain_attr, auth_key) == 152);

// What a caller of API version `version` may have filled, whatever its
// structures' size: fields that came later are not looked at.
constexpr const InfoLayout& LayoutOfVersion(uint32_t version) {
  if (FI_VERSION_LT(version, FI_VERSION(1, 5))) {
    return kLayout10;
  }
  if (FI_VERSION_LT(version, FI_VERSION(1, 7))) {
    return kLayout11;
  }
  if (FI_VERSION_LT(version, FI_VERSION(1, 9))) {
    return kLayout12;
  }
  if (FI_VERSION_LT(version, FI_VERSION(1, 20))) {
    return kLayout13;
  }
  return FI_VERSION_LT(version, FI_VERSION(2, 0)) ? kLayout17 : kLayout18;
}

// Layouts are nested: the smaller of two is the smaller in every part.
constexpr const InfoLayout& Smaller(const InfoLayout& left,
                                    const InfoLayout& right) {
  return left.info + left.tx_attr + left.domain_attr <
                 right.info + right.tx_attr + right.domain_attr
             ? left
             : right;
}

}  // namespace heddle::core
