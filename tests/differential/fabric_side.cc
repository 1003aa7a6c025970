// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/fabric_side.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "tests/differential/content.h"

namespace heddle::differential {
namespace {

constexpr uint16_t kFirstPort = 7000;
constexpr size_t kCqEntries = 8192;
constexpr size_t kShortRing = 16;

uint16_t PortOf(uint32_t endpoint) {
  return static_cast<uint16_t>(kFirstPort + endpoint);
}

sockaddr_in NameOf(const Place& place) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(PortOf(place.endpoint));
  inet_pton(AF_INET, AddressOf(place.side).c_str(), &name.sin_addr);
  return name;
}

}  // namespace

void Require(const char* call, int64_t result) {
  if (result < 0) {
    throw SetupFailure(std::string(call) + ": " +
                       fi_strerror(static_cast<int>(-result)));
  }
}

std::string AddressOf(uint32_t side) {
  return "10.77.0." + std::to_string(side + 1);
}

uint64_t KeyAt(const History& history, uint32_t number, uint32_t owner,
               uint32_t region) {
  const uint64_t generation =
      uint64_t{history.RegistrationsBefore(number, owner, region)} +
      history.RenewalsBefore(number, owner);
  return (generation * kMaxSides + owner) * kRegions + region + 1;
}

uint64_t GuardKey(uint32_t side, uint32_t area) {
  return kNoKey - 1 - side * kAreas - area;
}

FabricSide::FabricSide(uint32_t side, const Stream& stream, const Keys& keys)
    : side_(side), selective_(stream.setup.selective) {
  OpenDomain(stream);
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    Require("fi_endpoint", OpenEndpoint(index));
  }
  InsertEverybody(stream.setup.sides);
  FindStatistics();
  if (!Uses(stream, IsRma)) {
    return;
  }
  for (auto& area : memory_) {
    area.assign(kRegionBytes, kUntouched);
  }
  for (uint32_t index = 0; index < kRegions; ++index) {
    Require("fi_mr_reg", RegisterRegion(index, keys.at(index)));
  }
  Require("fi_mr_reg",
          Register(kReadOnly, FI_REMOTE_READ, GuardKey(side, kReadOnly)));
  Require("fi_mr_reg",
          Register(kWriteOnly, FI_REMOTE_WRITE, GuardKey(side, kWriteOnly)));
}

void FabricSide::OpenDomain(const Stream& stream) {
  const bool rma = Uses(stream, IsRma);
  const bool reads =
      Uses(stream, [](Verb verb) { return verb == Verb::kRead; });
  const std::unique_ptr<fi_info, InfoDeleter> hints(fi_allocinfo());
  hints->caps = FI_MSG | FI_SOURCE;
  if (UsesTags(stream)) {
    hints->caps |= FI_TAGGED | FI_DIRECTED_RECV;
  }
  if (UsesMany(stream)) {
    hints->caps |= FI_MULTI_RECV;
  }
  if (rma) {
    // A device without reads has the rest.
    hints->caps |= FI_SEND | FI_RECV | FI_RMA | FI_WRITE | FI_REMOTE_WRITE |
                   (reads ? FI_READ | FI_REMOTE_READ : 0);
  }
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup("heddle");
  hints->tx_attr->msg_order =
      (stream.setup.ordered ? FI_ORDER_SAS : FI_ORDER_NONE) |
      (stream.setup.rma_ordered ? FI_ORDER_WAW | FI_ORDER_RMA_WAW : 0) |
      (stream.setup.rma_ordered && reads ? FI_ORDER_RAW | FI_ORDER_RMA_RAW : 0);
  hints->rx_attr->msg_order = hints->tx_attr->msg_order;
  if (stream.setup.short_rings) {
    hints->tx_attr->size = kShortRing;
  }
  fi_info* found = nullptr;
  Require("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), AddressOf(side_).c_str(),
                                   nullptr, FI_SOURCE, hints.get(), &found));
  info_.reset(found);
  // The answer may name more order than was asked for.
  info_->tx_attr->msg_order = hints->tx_attr->msg_order;
  info_->rx_attr->msg_order = hints->tx_attr->msg_order;
  fi_cq_attr cq_attr = {};
  cq_attr.format = FI_CQ_FORMAT_TAGGED;
  cq_attr.size = kCqEntries;
  fi_av_attr av_attr = {};
  av_attr.type = FI_AV_TABLE;
  Require("fi_fabric", fi_fabric(info_->fabric_attr, &fabric_, nullptr));
  Require("fi_domain", fi_domain(fabric_, info_.get(), &domain_, nullptr));
  Require("fi_cq_open", fi_cq_open(domain_, &cq_attr, &cq_, nullptr));
  Require("fi_av_open", fi_av_open(domain_, &av_attr, &av_, nullptr));
}

void FabricSide::InsertEverybody(uint32_t sides) {
  for (uint32_t side = 0; side < sides; ++side) {
    for (uint32_t index = 0; index < kEndpoints; ++index) {
      const Place place = {.side = side, .endpoint = index};
      const sockaddr_in name = NameOf(place);
      const int inserted = fi_av_insert(
          av_, &name, 1, &addresses_.at(place.index()), 0, nullptr);
      Require("fi_av_insert", inserted == 1 ? 0 : -FI_EADDRNOTAVAIL);
    }
  }
}

void FabricSide::FindStatistics() {
  Require("fi_open_ops",
          fi_open_ops(&domain_->fid, FI_HEDDLE_STATISTICS, 0,
                      reinterpret_cast<void**>(&statistics_), nullptr));
  const size_t count = statistics_->count(&domain_->fid);
  while (restarts_index_ < count &&
         strcmp(statistics_->name(&domain_->fid, restarts_index_),
                "pdc_restarts") != 0) {
    ++restarts_index_;
  }
  Require("statistic pdc_restarts", restarts_index_ < count ? 0 : -FI_ENODATA);
}

uint64_t FabricSide::CountRestarts() const {
  std::vector<uint64_t> values(restarts_index_ + 1);
  Require("statistics",
          statistics_->read(&domain_->fid, values.data(), values.size()));
  return values.back();
}

FabricSide::~FabricSide() {
  (void)TryClose();
}

void FabricSide::Close() {
  Require("fi_close", TryClose());
}

template <typename Object>
int FabricSide::CloseObject(Object** object) {
  const int result = *object == nullptr ? 0 : fi_close(&(*object)->fid);
  *object = result == 0 ? nullptr : *object;
  return result;
}

// Closes all objects, also after an error; returns the first one.
int FabricSide::TryClose() {
  int result = 0;
  const auto note = [&result](int closed) {
    result = result == 0 ? closed : result;
  };
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    note(CloseEndpoint(index));
  }
  for (uint32_t index = 0; index < kAreas; ++index) {
    note(DeregisterRegion(index));
  }
  note(CloseObject(&av_));
  note(CloseObject(&cq_));
  note(CloseObject(&domain_));
  note(CloseObject(&fabric_));
  return result;
}

int32_t FabricSide::PlaceAt(fi_addr_t address) const {
  const auto* const found =
      std::find(addresses_.begin(), addresses_.end(), address);
  return found == addresses_.end()
             ? -1
             : static_cast<int32_t>(found - addresses_.begin());
}

int FabricSide::OpenEndpoint(uint32_t index) {
  static_cast<sockaddr_in*>(info_->src_addr)->sin_port = htons(PortOf(index));
  fid_ep* endpoint = nullptr;
  int result =
      fi_endpoint(domain_, info_.get(), &endpoint, endpoint_context(index));
  if (result == 0) {
    result = BindAndEnable(index, endpoint);
    if (result != 0) {
      (void)fi_close(&endpoint->fid);
    }
  }
  endpoints_.at(index) = result == 0 ? endpoint : nullptr;
  return result;
}

int FabricSide::BindAndEnable(uint32_t index, fid_ep* endpoint) {
  fid_cntr*& counter = counters_.at(index);
  if (info_->domain_attr->cntr_cnt != 0) {
    fi_cntr_attr attr = {};
    attr.events = FI_CNTR_EVENTS_COMP;
    const int opened = fi_cntr_open(domain_, &attr, &counter, nullptr);
    if (opened != 0) {
      return opened;
    }
  }
  const uint64_t selective = selective_ ? FI_SELECTIVE_COMPLETION : 0;
  const bool rma = (info_->caps & FI_RMA) != 0;
  int result = fi_ep_bind(endpoint, &av_->fid, 0);
  // Receives always report: what arrived is what is checked.
  if (result == 0) {
    result = fi_ep_bind(endpoint, &cq_->fid, FI_TRANSMIT | selective);
  }
  if (result == 0) {
    result = fi_ep_bind(endpoint, &cq_->fid, FI_RECV);
  }
  if (result == 0 && counter != nullptr) {
    result =
        fi_ep_bind(endpoint, &counter->fid, FI_SEND | (rma ? FI_WRITE : 0));
  }
  return result == 0 ? fi_enable(endpoint) : result;
}

std::optional<uint64_t> FabricSide::EndedTransfers(uint32_t index) const {
  fid_cntr* const counter = counters_.at(index);
  return counter == nullptr || endpoints_.at(index) == nullptr
             ? std::nullopt
             : std::optional(fi_cntr_read(counter) + fi_cntr_readerr(counter));
}

int FabricSide::CloseEndpoint(uint32_t index) {
  fid_ep* const endpoint = endpoints_.at(index);
  if (endpoint == nullptr) {
    return 0;
  }
  const int result = fi_close(&endpoint->fid);
  if (result == 0) {
    endpoints_.at(index) = nullptr;
    fid_cntr*& counter = counters_.at(index);
    if (counter != nullptr) {
      (void)fi_close(&counter->fid);
    }
    counter = nullptr;
  }
  return result;
}

int FabricSide::RegisterRegion(uint32_t index, uint64_t key) {
  return Register(index, FI_REMOTE_READ | FI_REMOTE_WRITE, key);
}

int FabricSide::Register(uint32_t area, uint64_t access, uint64_t key) {
  return fi_mr_reg(domain_, memory_.at(area).data(), kRegionBytes, access, 0,
                   key, 0, &regions_.at(area), nullptr);
}

int FabricSide::DeregisterRegion(uint32_t index) {
  fid_mr* const region = regions_.at(index);
  if (region == nullptr) {
    return 0;
  }
  const int result = fi_close(&region->fid);
  regions_.at(index) = result == 0 ? nullptr : region;
  return result;
}

}  // namespace heddle::differential
