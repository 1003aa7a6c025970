// SPDX-License-Identifier: Apache-2.0
// One side's libfabric objects: a domain, its endpoints at known addresses,
// everybody's address, and memory that others reach.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_heddle.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/differential/stream.h"

namespace heddle::differential {

// A call that must succeed did not: the run shows nothing.
class SetupFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws SetupFailure when `result` is an error.
void Require(const char* call, int64_t result);

// The fabric address of a side, as text for FI_HEDDLE_IP.
std::string AddressOf(uint32_t side);

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

// Thread safety: none. Closes what is open in the end.
class FabricSide {
 public:
  using Keys = std::array<uint64_t, kRegions>;

  // Opens everything that `stream` needs; `keys` of the regions. Throws
  // SetupFailure.
  FabricSide(uint32_t side, const Stream& stream, const Keys& keys);
  ~FabricSide();
  FabricSide(const FabricSide&) = delete;
  FabricSide& operator=(const FabricSide&) = delete;

  // Null while it is closed.
  fid_ep* endpoint(uint32_t index) const { return endpoints_.at(index); }
  // Context of completions that belong to the endpoint, not to an operation.
  void* endpoint_context(uint32_t index) { return &endpoint_tags_.at(index); }
  fid_cq* cq() const { return cq_; }
  fid_domain* domain() const { return domain_; }
  // Pieces of a peer's memory that one access may name.
  size_t piece_limit() const { return info_->tx_attr->rma_iov_limit; }
  size_t inject_size() const { return info_->tx_attr->inject_size; }
  fi_addr_t AddressOfPlace(const Place& place) const {
    return addresses_.at(place.index());
  }

  // Sends and writes of an endpoint that ended, well or not, since it was
  // opened; nothing where the device has no counters.
  std::optional<uint64_t> EndedTransfers(uint32_t index) const;

  // How often the device has opened a PDC again because its peer was a new
  // incarnation, since this was opened. Throws SetupFailure.
  uint64_t CountRestarts() const;

  // Closes everything in order. Throws SetupFailure when an object refuses.
  void Close();

  // Index of the place at `address`, or -1.
  int32_t PlaceAt(fi_addr_t address) const;

  int OpenEndpoint(uint32_t index);
  int CloseEndpoint(uint32_t index);

  // Memory that others may read and write, kept for the whole run.
  std::vector<uint8_t>& area(uint32_t index) { return memory_.at(index); }
  int RegisterRegion(uint32_t index, uint64_t key);
  int DeregisterRegion(uint32_t index);

 private:
  void OpenDomain(const Stream& stream);
  int Register(uint32_t area, uint64_t access, uint64_t key);
  void InsertEverybody(uint32_t sides);
  int BindAndEnable(uint32_t index, fid_ep* endpoint);
  void FindStatistics();
  template <typename Object>
  static int CloseObject(Object** object);
  int TryClose();

  const uint32_t side_;
  const bool selective_;
  std::unique_ptr<fi_info, InfoDeleter> info_;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_cq* cq_ = nullptr;
  fid_av* av_ = nullptr;
  fi_heddle_ops_statistics* statistics_ = nullptr;
  size_t restarts_index_ = 0;
  std::array<fid_ep*, kEndpoints> endpoints_ = {};
  std::array<fid_cntr*, kEndpoints> counters_ = {};
  std::array<uint8_t, kEndpoints> endpoint_tags_ = {};
  std::array<fi_addr_t, kMaxPlaces> addresses_ = {};
  std::array<fid_mr*, kAreas> regions_ = {};
  std::array<std::vector<uint8_t>, kAreas> memory_;
};

// The key of a region just before operation `number`: one that nobody had
// before.
uint64_t KeyAt(const History& history, uint32_t number, uint32_t owner,
               uint32_t region);
// Of a region that is never registered.
inline constexpr uint64_t kNoKey = 0x7777;
// Of the area of a side that others may only read, or only write.
uint64_t GuardKey(uint32_t side, uint32_t area);

}  // namespace heddle::differential
