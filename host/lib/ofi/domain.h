// SPDX-License-Identifier: Apache-2.0
// The domain object: one opened device and everything on it.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "host/lib/backend/device.h"
#include "host/lib/base/fid.h"
#include "host/lib/base/log.h"
#include "host/lib/base/socket_address.h"
#include "host/lib/core/open_objects.h"
#include "host/lib/core/own_addresses.h"
#include "host/lib/core/settings.h"
#include "host/lib/ofi/event_queue.h"
#include "host/lib/ofi/fabric.h"
#include "host/lib/ofi/fork_guard.h"
#include "host/lib/ofi/service_endpoint.h"

namespace heddle::ofi {

struct DataPath;
class CompletionQueue;
class Endpoint;

// How regions that peers may reach are named and enabled (fi_mr(3), mr_mode).
struct RegionMode {
  bool provider_key = false;     // Keys are the device's choice.
  bool virtual_address = false;  // Else peers name offsets.
  bool endpoint = false;         // Each serves one endpoint.
  bool event = false;            // Those with a counter are enabled later.

  // FI_MR_BASIC stands for the first two.
  static RegionMode Of(int mr_mode) noexcept {
    const bool basic = mr_mode == FI_MR_BASIC;
    return {.provider_key = basic || (mr_mode & FI_MR_PROV_KEY) != 0,
            .virtual_address = basic || (mr_mode & FI_MR_VIRT_ADDR) != 0,
            .endpoint = (mr_mode & FI_MR_ENDPOINT) != 0,
            .event = (mr_mode & FI_MR_RMA_EVENT) != 0};
  }
};

// Thread safety: any thread; close is the application's to serialize.
// Ownership: the application, until fi_close. Owns the device.
class Domain final : public fid_domain, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Open(ofi::Fabric* fabric, const fi_info* info, fid_domain** domain,
                  void* context);

  static Domain* From(fid_domain* handle) noexcept {
    return static_cast<Domain*>(handle);
  }
  static Domain* From(struct fid* handle) noexcept {
    return base::FromFid<Domain, fid_domain>(handle);
  }

  // Polls of its queues, counters and event queues step it.
  const backend::ProgressorList& progressors() const noexcept {
    return progressors_;
  }

  // Endpoints, queues, vectors and regions open on it; each adds itself.
  base::UserCount& users() noexcept { return users_; }

  ofi::Fabric* fabric() const noexcept { return fabric_; }
  backend::Device& device() const noexcept { return *device_; }
  // Of the device's backend.
  const DataPath& data_path() const noexcept { return *data_path_; }
  const core::Settings& settings() const noexcept { return settings_; }
  // Of the device; the port is 0.
  const base::SocketAddress& address() const noexcept { return address_; }
  // What addresses mean here, by this machine's as they were at the opening.
  const core::OwnAddresses& own_addresses() const noexcept {
    return own_addresses_;
  }
  uint32_t api_version() const noexcept { return api_version_; }
  fi_av_type av_type() const noexcept { return av_type_; }
  // The data path takes locks: the threading model lets threads share objects.
  bool locked() const noexcept { return locked_; }
  const RegionMode& region_mode() const noexcept { return region_mode_; }
  // What endpoints have that name none of their own.
  uint32_t job_id() const noexcept { return job_id_; }
  // Endpoints are named in their job, and reach those of it that are.
  bool relative() const noexcept { return settings_.relative(); }
  uint32_t traffic_class() const noexcept { return traffic_class_; }
  // Where endpoints without an event queue report; null: nowhere.
  ofi::EventQueue* event_queue() const noexcept { return event_queue_; }

  // As `users`, for endpoints. `Add` throws std::bad_alloc.
  void Add(Endpoint* endpoint);
  void Remove(Endpoint* endpoint) noexcept;

  // Alerts the queue when polls that find nothing have something to do, until
  // it is removed. `Add` throws std::bad_alloc.
  void Add(CompletionQueue* queue);
  void Remove(CompletionQueue* queue) noexcept;

  // An endpoint of the library's own, the domain's until fi_close; `handler`
  // outlives it. 0 or a negative errno. Throws std::bad_alloc.
  int OpenService(const ServiceEndpoint::Options& options,
                  ServiceEndpoint::Handler* handler, ServiceEndpoint** service);
  // `ReportFailure` leaves it out.
  void Hide(Endpoint* endpoint) noexcept;

  // The device has failed.
  bool failed() const noexcept {
    return failed_.load(std::memory_order_acquire);
  }
  // To be called by the thread that finds it so. The first call reports to the
  // user and to the event queue of every endpoint; the others do nothing.
  void ReportFailure() noexcept;

  // Reserves a key for a region: `requested`, or one that nobody can guess
  // when keys are not the application's. 0 or -FI_ENOKEY. Throws
  // std::bad_alloc.
  int TakeKey(uint64_t requested, uint64_t* key);
  void ReturnKey(uint64_t key) noexcept;

  // The calls of fi_domain(3).
  int Bind(struct fid* other, uint64_t flags) noexcept;
  // Why an object was not made. Where memory for the device ran out, with what
  // the user can do.
  std::string Explain(Errno error) const;
  // An operation's `bytes` could not be mapped: says why, and what the user can
  // do, the first time.
  void LogRefusedMapping(Errno error, size_t bytes) noexcept;

  // -FI_EBUSY, nothing changed, while it has users; else frees it.
  int Close() noexcept;

 private:
  void Disinherit() noexcept override;

  // `function`: it is one in PCI, not simulated.
  Domain(ofi::Fabric* fabric, const fi_info& info, bool function,
         void* context);
  ~Domain();

  // 0 or a negative errno.
  int OpenDevice(const fi_info& info);
  void AlertQueues() noexcept;
  int ReadService(const fi_domain_attr& attr) noexcept;

  ofi::Fabric* fabric_;
  const core::Settings& settings_;
  ofi::EventQueue* event_queue_ = nullptr;
  base::UserCount users_;
  const core::OwnAddresses own_addresses_;
  base::SocketAddress address_;
  uint32_t api_version_;
  fi_av_type av_type_;
  bool locked_;
  RegionMode region_mode_;
  uint32_t job_id_;
  uint32_t traffic_class_ = FI_TC_BEST_EFFORT;
  std::mutex queues_mutex_;
  std::vector<CompletionQueue*> queues_;
  std::atomic<bool> failed_ = false;
  std::unique_ptr<backend::Device> device_;  // Calls back, until it ends.
  const DataPath* data_path_ = nullptr;
  std::optional<core::OpenDomain> known_;  // Ends before the device does.
  backend::ProgressorList progressors_;
  std::atomic<bool> refusal_logged_ = false;
  std::mutex mutex_;  // All below.
  std::unordered_set<uint64_t> keys_;
  std::vector<Endpoint*> endpoints_;
  std::vector<std::unique_ptr<ServiceEndpoint>> services_;
  bool failure_reported_ = false;
};

}  // namespace heddle::ofi
