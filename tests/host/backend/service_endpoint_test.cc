// SPDX-License-Identifier: Apache-2.0
// Endpoints of the library's own, driven by what the application polls.
#include "host/lib/ofi/service_endpoint.h"

#include <gtest/gtest.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/host/backend/memory_fabric.h"

namespace heddle::ofi {
namespace {

// Records completions; answers each message until `answers` are sent.
class Side final : public ServiceEndpoint::Handler {
 public:
  void OnCompletion(const fi_cq_data_entry& entry,
                    fi_addr_t source) noexcept override {
    if ((entry.flags & FI_RECV) == 0) {
      ++sent;
      return;
    }
    received.push_back(value_);
    EXPECT_EQ(entry.buf, &value_);
    EXPECT_EQ(source, to_peer);
    if (answers != 0) {
      --answers;
      Receive();
      Send(value_ + 1);
    }
  }
  void OnError(const fi_cq_err_entry& error) noexcept override {
    errors.push_back(error.err);
  }

  void Receive(size_t bytes = sizeof(uint64_t)) {
    iovec part = {.iov_base = &value_, .iov_len = bytes};
    fi_msg message = {};
    message.msg_iov = &part;
    message.iov_count = 1;
    ASSERT_EQ(service->RecvMsg(message, FI_COMPLETION), 0);
  }
  void Send(uint64_t value) {
    iovec part = {.iov_base = &value, .iov_len = sizeof(value)};
    fi_msg message = {};
    message.msg_iov = &part;
    message.iov_count = 1;
    message.addr = to_peer;
    ASSERT_EQ(service->SendMsg(message, FI_COMPLETION), 0);
  }

  ServiceEndpoint* service = nullptr;
  fi_addr_t to_peer = FI_ADDR_NOTAVAIL;
  size_t answers = 0;
  size_t sent = 0;
  std::vector<uint64_t> received;
  std::vector<int> errors;

 private:
  uint64_t value_ = 0;
};

class ServiceEndpointTest : public MemoryFabricTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(MemoryFabricTest::SetUp());
    fi_eq_attr events = {};
    events.wait_obj = FI_WAIT_UNSPEC;
    ASSERT_EQ(fi_eq_open(fabric_, &events, &events_, nullptr), 0);
    ASSERT_EQ(fi_domain_bind(domain_, &events_->fid, 0), 0);
    fi_cq_attr queue = {};
    queue.wait_obj = FI_WAIT_YIELD;
    ASSERT_EQ(fi_cq_open(domain_, &queue, &queue_, nullptr), 0);
    fi_cntr_attr counter = {};
    counter.wait_obj = FI_WAIT_YIELD;
    ASSERT_EQ(fi_cntr_open(domain_, &counter, &counter_, nullptr), 0);
  }

  void OpenServices() {
    Domain* domain = Domain::From(domain_);
    for (Side* side : {&x_, &y_}) {
      ASSERT_EQ(domain->OpenService({}, side, &side->service), 0);
    }
    ASSERT_EQ(x_.service->Insert(y_.service->name(), &x_.to_peer), 0);
    ASSERT_EQ(y_.service->Insert(x_.service->name(), &y_.to_peer), 0);
  }

  void TearDown() override {
    CloseObjects();
    EXPECT_EQ(fi_close(&domain_->fid), 0);
    EXPECT_EQ(fi_close(&events_->fid), 0);
    EXPECT_EQ(fi_close(&fabric_->fid), 0);
  }
  void CloseObjects() {
    for (fid* object : {&queue_->fid, &counter_->fid}) {
      EXPECT_EQ(fi_close(object), 0);
    }
  }

  fid_eq* events_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_cntr* counter_ = nullptr;
  Side x_;
  Side y_;
};

// Each poll finds nothing of the application's own.
TEST_F(ServiceEndpointTest, EachPollOfTheApplicationDrivesIt) {
  ASSERT_NO_FATAL_FAILURE(OpenServices());
  fi_cq_entry entry;
  fi_addr_t source;
  uint32_t event;
  const std::vector<std::function<void()>> polls = {
      [&] { EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAGAIN); },
      [&] {
        EXPECT_EQ(fi_cq_readfrom(queue_, &entry, 1, &source), -FI_EAGAIN);
      },
      [&] {
        EXPECT_EQ(fi_cq_sread(queue_, &entry, 1, nullptr, 0), -FI_EAGAIN);
      },
      [&] { EXPECT_EQ(fi_cntr_read(counter_), 0U); },
      [&] { EXPECT_EQ(fi_cntr_readerr(counter_), 0U); },
      [&] { EXPECT_EQ(fi_cntr_wait(counter_, 1, 0), -FI_ETIMEDOUT); },
      [&] {
        EXPECT_EQ(fi_eq_read(events_, &event, nullptr, 0, 0), -FI_EAGAIN);
      },
      [&] {
        EXPECT_EQ(fi_eq_sread(events_, &event, nullptr, 0, 0, 0), -FI_EAGAIN);
      }};
  for (size_t i = 0; i < polls.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(y_.Receive());
    ASSERT_NO_FATAL_FAILURE(x_.Send(i));
    EXPECT_EQ(y_.received.size(), i) << "nothing is reported between polls";
    polls[i]();
    ASSERT_EQ(y_.received.size(), i + 1) << "poll " << i;
    EXPECT_EQ(y_.received[i], i);
    EXPECT_EQ(x_.sent, i + 1);
  }
}

// The queue was polled before the endpoint was there.
TEST_F(ServiceEndpointTest, APolledQueueNoticesALaterOne) {
  fi_cq_entry entry;
  EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAGAIN);
  ASSERT_NO_FATAL_FAILURE(OpenServices());
  ASSERT_NO_FATAL_FAILURE(y_.Receive());
  ASSERT_NO_FATAL_FAILURE(x_.Send(7));
  constexpr int kEnough = 100;
  for (int i = 0; i < kEnough && y_.received.empty(); ++i) {
    EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAGAIN);
  }
  EXPECT_EQ(y_.received.size(), 1U);
}

TEST_F(ServiceEndpointTest, ItsHandlerMayPost) {
  ASSERT_NO_FATAL_FAILURE(OpenServices());
  x_.answers = y_.answers = 10;
  x_.Receive();
  y_.Receive();
  x_.Send(0);
  for (int i = 0; i < 100 && y_.received.size() < 11; ++i) {
    EXPECT_EQ(fi_cntr_read(counter_), 0U);
  }
  ASSERT_EQ(y_.received.size(), 11U);
  EXPECT_EQ(y_.received.back(), 20U);
  EXPECT_EQ(x_.received.size(), 10U);
}

TEST_F(ServiceEndpointTest, ItsErrorsAreItsHandlers) {
  ASSERT_NO_FATAL_FAILURE(OpenServices());
  ASSERT_NO_FATAL_FAILURE(y_.Receive(4));
  ASSERT_NO_FATAL_FAILURE(x_.Send(1));
  fi_cq_entry entry;
  EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAGAIN);
  EXPECT_EQ(y_.errors, std::vector<int>{FI_ETRUNC});
  fi_cq_err_entry error = {};
  EXPECT_EQ(fi_cq_readerr(queue_, &error, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_eq_readerr(events_, nullptr, 0), -FI_EAGAIN);
}

TEST_F(ServiceEndpointTest, ItKeepsNoDomainOpen) {
  ASSERT_NO_FATAL_FAILURE(OpenServices());
  EXPECT_EQ(fi_close(&domain_->fid), -FI_EBUSY) << "the application's objects";
  EXPECT_EQ(fi_close(&events_->fid), -FI_EBUSY) << "bound to the domain";
}

TEST_F(ServiceEndpointTest, OneThatCannotBeOpenedLeavesNothing) {
  Domain* domain = Domain::From(domain_);
  ASSERT_EQ(domain->OpenService({.port = 9}, &x_, &x_.service), 0);
  EXPECT_EQ(domain->OpenService({.port = 9}, &y_, &y_.service), -FI_EADDRINUSE);
  EXPECT_EQ(domain->OpenService({.caps = FI_RMA}, &y_, &y_.service),
            -FI_EOPNOTSUPP);
}

}  // namespace
}  // namespace heddle::ofi
