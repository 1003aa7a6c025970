// SPDX-License-Identifier: Apache-2.0
// Service endpoints on a Heddle device, polled and used by several threads.
#include <gtest/gtest.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/lib/core/info_memory.h"
#include "host/lib/entry/data_paths.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/domain_open.h"
#include "host/lib/ofi/fabric.h"

namespace heddle::ofi {
namespace {

constexpr uint64_t kMessages = 2000;
constexpr size_t kReceives = 64;

// Counts and sums what arrives, and posts each receive again.
class Sink final : public ServiceEndpoint::Handler {
 public:
  void OnCompletion(const fi_cq_data_entry& entry,
                    fi_addr_t /*source*/) noexcept override {
    if ((entry.flags & FI_RECV) == 0) {
      ++sent;
      return;
    }
    auto* value = static_cast<uint64_t*>(entry.op_context);
    sum += *value;
    ++received;
    Receive(value);
  }
  void OnError(const fi_cq_err_entry& error) noexcept override {
    ADD_FAILURE() << "error " << error.err;
  }

  void Receive(uint64_t* value) {
    iovec part = {.iov_base = value, .iov_len = sizeof(*value)};
    fi_msg message = {};
    message.msg_iov = &part;
    message.iov_count = 1;
    message.context = value;
    EXPECT_EQ(service->RecvMsg(message, FI_COMPLETION), 0);
  }
  ssize_t Send(uint64_t value) {
    iovec part = {.iov_base = &value, .iov_len = sizeof(value)};
    fi_msg message = {};
    message.msg_iov = &part;
    message.iov_count = 1;
    message.addr = to_peer;
    return service->SendMsg(message, FI_INJECT | FI_COMPLETION);
  }

  ServiceEndpoint* service = nullptr;
  fi_addr_t to_peer = FI_ADDR_NOTAVAIL;
  std::atomic<uint64_t> sent = 0;
  std::atomic<uint64_t> received = 0;
  uint64_t sum = 0;
  std::array<uint64_t, kReceives> values{};
};

// A domain for which the application has one queue and a thread that polls it.
class Side {
 public:
  explicit Side(fid_fabric* fabric) {
    const core::InfoPointer info(core::AllocateInfo());
    info->domain_attr->name = strdup("rtl0");
    info->domain_attr->threading = FI_THREAD_DOMAIN;
    EXPECT_EQ(OpenDomain(fabric, info.get(), 0, &domain_, nullptr), 0);
    fi_cq_attr attr = {};
    EXPECT_EQ(fi_cq_open(domain_, &attr, &queue_, nullptr), 0);
    EXPECT_EQ(Domain::From(domain_)->OpenService({}, &sink, &sink.service), 0);
    for (uint64_t& value : sink.values) {
      sink.Receive(&value);
    }
  }
  ~Side() {
    EXPECT_EQ(fi_close(&queue_->fid), 0);
    EXPECT_EQ(fi_close(&domain_->fid), 0);
  }

  void PollUntil(const std::atomic<bool>& done) {
    fi_cq_entry entry;
    while (!done) {
      EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAGAIN);
    }
  }

  Sink sink;

 private:
  fid_domain* domain_ = nullptr;
  fid_cq* queue_ = nullptr;
};

TEST(ServiceDeviceTest, ThreadsThatPollAndThreadsThatSendMeet) {
  entry::AddDataPaths();
  char name[] = "heddle-default";
  fi_fabric_attr attr = {};
  attr.name = name;
  attr.api_version = FI_VERSION(1, 17);
  fid_fabric* fabric = nullptr;
  ASSERT_EQ(Fabric::Open(&attr, &fabric, nullptr), 0);
  {
    Side x(fabric);
    Side y(fabric);
    ASSERT_EQ(x.sink.service->Insert(y.sink.service->name(), &x.sink.to_peer),
              0);
    std::atomic<bool> done = false;
    std::thread polls_x([&] { x.PollUntil(done); });
    std::thread polls_y([&] { y.PollUntil(done); });
    std::vector<std::thread> senders;
    for (uint64_t first : {uint64_t{0}, kMessages / 2}) {
      senders.emplace_back([&x, first] {
        for (uint64_t i = first; i < first + kMessages / 2; ++i) {
          ssize_t result;
          while ((result = x.sink.Send(i)) == -FI_EAGAIN) {
            std::this_thread::yield();
          }
          ASSERT_EQ(result, 0);
        }
      });
    }
    for (std::thread& sender : senders) {
      sender.join();
    }
    while (x.sink.sent < kMessages || y.sink.received < kMessages) {
      std::this_thread::yield();
    }
    done = true;
    polls_x.join();
    polls_y.join();
    EXPECT_EQ(y.sink.sum, kMessages * (kMessages - 1) / 2);
  }
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

}  // namespace
}  // namespace heddle::ofi
