// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/info_memory.h"

#include <cstdlib>
#include <cstring>

namespace heddle::core {
namespace {

// Copies `*source`, of which `bytes` exist, if there is one, into `allocated`
// bytes; false without memory.
template <typename Attribute>
bool CopyPart(const Attribute* source, size_t bytes, Attribute** target,
              size_t allocated = sizeof(Attribute)) noexcept {
  *target = nullptr;
  if (source == nullptr) {
    return true;
  }
  *target = static_cast<Attribute*>(calloc(1, allocated));
  if (*target == nullptr) {
    return false;
  }
  memcpy(*target, source, bytes);
  return true;
}

// Replaces the borrowed text in `*text` by a copy.
bool OwnText(char** text) noexcept {
  if (*text == nullptr) {
    return true;
  }
  *text = DuplicateText(*text);
  return *text != nullptr;
}

// Replaces the borrowed `bytes` at `*data` by a copy.
template <typename Byte>
bool OwnBytes(Byte** data, size_t bytes) noexcept {
  if (*data == nullptr || bytes == 0) {
    *data = nullptr;
    return true;
  }
  *data = static_cast<Byte*>(DuplicateBytes(*data, bytes));
  return *data != nullptr;
}

// Each of these owns what it copied even when it fails, so that FreeInfo is
// right at any point.
bool CopyEndpointPart(const fi_info& source, size_t bytes,
                      fi_info* copy) noexcept {
  if (!CopyPart(source.ep_attr, bytes, &copy->ep_attr)) {
    return false;
  }
  return copy->ep_attr == nullptr ||
         OwnBytes(&copy->ep_attr->auth_key, copy->ep_attr->auth_key_size);
}

bool CopyDomainPart(const fi_info& source, size_t bytes,
                    fi_info* copy) noexcept {
  if (!CopyPart(source.domain_attr, bytes, &copy->domain_attr,
                kAllocatedDomainAttr)) {
    return false;
  }
  fi_domain_attr* domain = copy->domain_attr;
  if (domain == nullptr) {
    return true;
  }
  const bool named = OwnText(&domain->name);
  return OwnBytes(&domain->auth_key, domain->auth_key_size) && named;
}

bool CopyFabricPart(const fi_info& source, size_t bytes,
                    fi_info* copy) noexcept {
  if (!CopyPart(source.fabric_attr, bytes, &copy->fabric_attr)) {
    return false;
  }
  fi_fabric_attr* fabric = copy->fabric_attr;
  if (fabric == nullptr) {
    return true;
  }
  const bool named = OwnText(&fabric->name);
  return OwnText(&fabric->prov_name) && named;
}

bool CopyNic(fid_nic* source, fi_info* copy) noexcept {
  if (source == nullptr) {
    return true;
  }
  struct fid* nic = nullptr;
  if (fi_control(&source->fid, FI_DUP, &nic) != FI_SUCCESS) {
    return false;
  }
  // Source: fi_getinfo(3), FI_DUP of a nic yields a fid_nic.
  copy->nic = reinterpret_cast<fid_nic*>(nic);
  return true;
}

void FreeOne(fi_info* info) noexcept {
  free(info->src_addr);
  free(info->dest_addr);
  free(info->tx_attr);
  free(info->rx_attr);
  if (info->ep_attr != nullptr) {
    free(info->ep_attr->auth_key);
    free(info->ep_attr);
  }
  if (info->domain_attr != nullptr) {
    free(info->domain_attr->auth_key);
    free(info->domain_attr->name);
    free(info->domain_attr);
  }
  if (info->fabric_attr != nullptr) {
    free(info->fabric_attr->name);
    free(info->fabric_attr->prov_name);
    free(info->fabric_attr);
  }
  if (info->nic != nullptr) {
    fi_close(&info->nic->fid);
  }
  free(info);
}

template <typename Source, typename Attribute>
void ReadPart(const Source* source, size_t bytes, Attribute* copy) noexcept {
  if (source != nullptr) {
    memcpy(copy, source, bytes);
  }
}

}  // namespace

char* DuplicateText(const char* text) noexcept {
  return strdup(text);
}

void* DuplicateBytes(const void* data, size_t bytes) noexcept {
  void* copy = malloc(bytes);
  if (copy != nullptr) {
    memcpy(copy, data, bytes);
  }
  return copy;
}

fi_info* AllocateInfo() noexcept {
  const fi_tx_attr tx = {};
  const fi_rx_attr rx = {};
  const fi_ep_attr ep = {};
  const fi_domain_attr domain = {};
  const fi_fabric_attr fabric = {};
  fi_info empty = {};
  empty.tx_attr = const_cast<fi_tx_attr*>(&tx);
  empty.rx_attr = const_cast<fi_rx_attr*>(&rx);
  empty.ep_attr = const_cast<fi_ep_attr*>(&ep);
  empty.domain_attr = const_cast<fi_domain_attr*>(&domain);
  empty.fabric_attr = const_cast<fi_fabric_attr*>(&fabric);
  return DuplicateInfo(empty, kLayout13);
}

fi_info* DuplicateInfo(const fi_info& info, const InfoLayout& layout) noexcept {
  InfoPointer copy(static_cast<fi_info*>(calloc(1, sizeof(fi_info))));
  if (copy == nullptr) {
    return nullptr;
  }
  copy->caps = info.caps;
  copy->mode = info.mode;
  copy->addr_format = info.addr_format;
  copy->src_addrlen = info.src_addrlen;
  copy->dest_addrlen = info.dest_addrlen;
  copy->handle = info.handle;
  copy->src_addr = info.src_addr;
  const bool has_source = OwnBytes(&copy->src_addr, info.src_addrlen);
  copy->dest_addr = info.dest_addr;
  const bool has_destination = OwnBytes(&copy->dest_addr, info.dest_addrlen);
  const bool whole =
      has_source && has_destination &&
      CopyPart(info.tx_attr, layout.tx_attr, &copy->tx_attr) &&
      CopyPart(info.rx_attr, layout.rx_attr, &copy->rx_attr) &&
      CopyEndpointPart(info, layout.ep_attr, copy.get()) &&
      CopyDomainPart(info, layout.domain_attr, copy.get()) &&
      CopyFabricPart(info, layout.fabric_attr, copy.get()) &&
      CopyNic(layout.info == sizeof(fi_info) ? info.nic : nullptr, copy.get());
  return whole ? copy.release() : nullptr;
}

void FreeInfo(fi_info* info) noexcept {
  while (info != nullptr) {
    fi_info* next = info->next;
    FreeOne(info);
    info = next;
  }
}

Hints::Hints(const fi_info* hints, const InfoLayout& layout) noexcept {
  if (hints != nullptr) {
    memcpy(&info_, hints, layout.info);
    ReadPart(hints->tx_attr, layout.tx_attr, &tx_);
    ReadPart(hints->rx_attr, layout.rx_attr, &rx_);
    ReadPart(hints->ep_attr, layout.ep_attr, &ep_);
    ReadPart(hints->domain_attr, layout.domain_attr, &domain_);
    ReadPart(hints->fabric_attr, layout.fabric_attr, &fabric_);
  }
  info_.tx_attr = &tx_;
  info_.rx_attr = &rx_;
  info_.ep_attr = &ep_;
  info_.domain_attr = &domain_.base;
  info_.fabric_attr = &fabric_;
}

}  // namespace heddle::core
