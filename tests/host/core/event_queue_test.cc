// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/event_queue.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_ext_heddle.h>
#include <sys/time.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "host/lib/ofi/fabric.h"

namespace heddle::ofi {
namespace {

class EventQueueTest : public testing::Test {
 protected:
  void SetUp() override { OpenFabric(FI_VERSION(1, 17)); }

  void TearDown() override {
    if (queue_ != nullptr) {
      EXPECT_EQ(fi_close(&queue_->fid), 0);
    }
    EXPECT_EQ(fi_close(&fabric_->fid), 0);
  }

  void OpenFabric(uint32_t version) {
    char name[] = "heddle-default";
    fi_fabric_attr attr = {};
    attr.name = name;
    attr.api_version = version;
    ASSERT_EQ(Fabric::Open(&attr, &fabric_, this), 0);
  }

  void OpenQueue(fi_wait_obj wait = FI_WAIT_NONE, size_t size = 0) {
    fi_eq_attr attr = {};
    attr.size = size;
    attr.flags = FI_WRITE;
    attr.wait_obj = wait;
    ASSERT_EQ(fi_eq_open(fabric_, &attr, &queue_, this), 0);
  }

  EventQueue* queue() { return EventQueue::From(queue_); }

  fid_fabric* fabric_ = nullptr;
  fid_eq* queue_ = nullptr;
};

TEST_F(EventQueueTest, OpensWithItsClassAndContext) {
  OpenQueue();
  EXPECT_EQ(queue_->fid.fclass, static_cast<size_t>(FI_CLASS_EQ));
  EXPECT_EQ(queue_->fid.context, this);
  EXPECT_EQ(fabric_->fid.fclass, static_cast<size_t>(FI_CLASS_FABRIC));
  EXPECT_EQ(fabric_->fid.context, this);
}

TEST_F(EventQueueTest, FabricCannotCloseBeforeItsQueue) {
  OpenQueue();
  EXPECT_EQ(fi_close(&fabric_->fid), -FI_EBUSY);
}

TEST_F(EventQueueTest, CannotCloseWhileBound) {
  OpenQueue();
  const backend::ProgressorList user;
  ASSERT_EQ(queue()->AddUser(user), 0);
  EXPECT_EQ(fi_close(&queue_->fid), -FI_EBUSY);
  queue()->RemoveUser(user);
}

TEST_F(EventQueueTest, EventsAreReadInOrder) {
  OpenQueue();
  uint32_t event = 99;
  fi_eq_entry entry = {};
  EXPECT_EQ(fi_eq_read(queue_, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
  for (uint64_t number = 1; number <= 3; ++number) {
    const fi_eq_entry written = {&queue_->fid, this, number};
    ASSERT_EQ(fi_eq_write(queue_, FI_NOTIFY, &written, sizeof(written), 0),
              static_cast<ssize_t>(sizeof(written)));
  }
  for (uint64_t number = 1; number <= 3; ++number) {
    ASSERT_EQ(fi_eq_read(queue_, &event, &entry, sizeof(entry), 0),
              static_cast<ssize_t>(sizeof(entry)));
    EXPECT_EQ(event, static_cast<uint32_t>(FI_NOTIFY));
    EXPECT_EQ(entry.data, number);
    EXPECT_EQ(entry.context, this);
  }
  EXPECT_EQ(fi_eq_read(queue_, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
}

TEST_F(EventQueueTest, PeekLeavesTheEvent) {
  OpenQueue();
  const fi_eq_entry written = {&queue_->fid, this, 7};
  ASSERT_EQ(queue()->Write(FI_AV_COMPLETE, &written, sizeof(written)), 0);
  uint32_t event = 0;
  fi_eq_entry entry = {};
  for (const uint64_t flags : {FI_PEEK, 0ULL}) {
    ASSERT_EQ(fi_eq_read(queue_, &event, &entry, sizeof(entry), flags),
              static_cast<ssize_t>(sizeof(entry)));
    EXPECT_EQ(entry.data, 7U);
  }
  EXPECT_EQ(fi_eq_read(queue_, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
}

TEST_F(EventQueueTest, TooSmallABufferLosesNothing) {
  OpenQueue();
  const fi_eq_entry written = {&queue_->fid, this, 7};
  ASSERT_EQ(queue()->Write(FI_NOTIFY, &written, sizeof(written)), 0);
  uint32_t event = 0;
  fi_eq_entry entry = {};
  EXPECT_EQ(fi_eq_read(queue_, &event, &entry, sizeof(entry) - 1, 0),
            -FI_ETOOSMALL);
  EXPECT_EQ(fi_eq_read(queue_, &event, &entry, sizeof(entry), 0),
            static_cast<ssize_t>(sizeof(entry)));
}

TEST_F(EventQueueTest, ErrorHidesLaterEventsUntilItIsRead) {
  OpenQueue();
  char data[] = "peer";
  fi_eq_err_entry error = {};
  error.fid = &queue_->fid;
  error.err = FI_EHOSTUNREACH;
  error.prov_errno = FI_HEDDLE_PEER_UNREACHABLE;
  error.err_data = data;
  error.err_data_size = sizeof(data);
  ASSERT_EQ(queue()->WriteError(error), 0);
  const fi_eq_entry written = {&queue_->fid, this, 7};
  ASSERT_EQ(queue()->Write(FI_NOTIFY, &written, sizeof(written)), 0);
  memset(data, 0, sizeof(data));  // The queue has its own copy.

  uint32_t event = 0;
  fi_eq_entry entry = {};
  EXPECT_EQ(fi_eq_read(queue_, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
  fi_eq_err_entry read = {};
  ASSERT_GT(fi_eq_readerr(queue_, &read, 0), 0);
  EXPECT_EQ(read.err, FI_EHOSTUNREACH);
  ASSERT_EQ(read.err_data_size, 5U);
  EXPECT_STREQ(static_cast<char*>(read.err_data), "peer");
  EXPECT_EQ(fi_eq_readerr(queue_, &read, 0), -FI_EAGAIN);
  EXPECT_GT(fi_eq_read(queue_, &event, &entry, sizeof(entry), 0), 0);
}

TEST_F(EventQueueTest, ErrorDataIsCutToTheCallersBuffer) {
  OpenQueue();
  char data[] = "peer";
  fi_eq_err_entry error = {};
  error.err_data = data;
  error.err_data_size = 4;
  ASSERT_EQ(queue()->WriteError(error), 0);
  std::array<char, 3> buffer = {'x', 'x', 'x'};
  fi_eq_err_entry read = {};
  read.err_data = buffer.data();
  read.err_data_size = 2;
  ASSERT_GT(fi_eq_readerr(queue_, &read, 0), 0);
  EXPECT_EQ(read.err_data_size, 2U);
  EXPECT_EQ(std::string(buffer.data(), 3), "pex");
}

// The entry ended with err_data before 1.5.
TEST_F(EventQueueTest, OldCallersEntryIsNotOverrun) {
  ASSERT_EQ(fi_close(&fabric_->fid), 0);
  OpenFabric(FI_VERSION(1, 4));
  OpenQueue();
  char data[] = "peer";
  fi_eq_err_entry error = {};
  error.err = FI_EIO;
  error.err_data = data;
  error.err_data_size = 4;
  ASSERT_EQ(queue()->WriteError(error), 0);
  fi_eq_err_entry read;
  memset(&read, 0x5a, sizeof(read));
  ASSERT_GT(fi_eq_readerr(queue_, &read, 0), 0);
  EXPECT_EQ(read.err, FI_EIO);
  EXPECT_EQ(memcmp(read.err_data, "peer", 4), 0);
  EXPECT_EQ(read.err_data_size, 0x5a5a5a5a5a5a5a5aU);
}

TEST_F(EventQueueTest, FullQueueRefusesTheUserButNotTheLibrary) {
  OpenQueue(FI_WAIT_NONE, 2);
  const fi_eq_entry entry = {};
  EXPECT_GT(fi_eq_write(queue_, FI_NOTIFY, &entry, sizeof(entry), 0), 0);
  EXPECT_GT(fi_eq_write(queue_, FI_NOTIFY, &entry, sizeof(entry), 0), 0);
  EXPECT_EQ(fi_eq_write(queue_, FI_NOTIFY, &entry, sizeof(entry), 0),
            -FI_EAGAIN);
  EXPECT_EQ(queue()->Write(FI_AV_COMPLETE, &entry, sizeof(entry)), 0);
}

TEST_F(EventQueueTest, OnlyAQueueOpenedForWritingTakesUserEvents) {
  fi_eq_attr attr = {};
  ASSERT_EQ(fi_eq_open(fabric_, &attr, &queue_, nullptr), 0);
  const fi_eq_entry entry = {};
  EXPECT_EQ(fi_eq_write(queue_, FI_NOTIFY, &entry, sizeof(entry), 0),
            -FI_EINVAL);
}

TEST_F(EventQueueTest, WaitingReadEndsAtItsTimeout) {
  OpenQueue(FI_WAIT_UNSPEC);
  uint32_t event = 0;
  fi_eq_entry entry = {};
  EXPECT_EQ(fi_eq_sread(queue_, &event, &entry, sizeof(entry), 10, 0),
            -FI_EAGAIN);
}

TEST_F(EventQueueTest, WaitingReadWakesForAnEvent) {
  OpenQueue(FI_WAIT_UNSPEC);
  std::thread writer([this] {
    const fi_eq_entry entry = {&queue_->fid, nullptr, 5};
    queue()->Write(FI_NOTIFY, &entry, sizeof(entry));
  });
  uint32_t event = 0;
  fi_eq_entry entry = {};
  EXPECT_EQ(fi_eq_sread(queue_, &event, &entry, sizeof(entry), -1, 0),
            static_cast<ssize_t>(sizeof(entry)));
  EXPECT_EQ(entry.data, 5U);
  writer.join();
}

TEST_F(EventQueueTest, DescriptorIsReadableWhileEventsAreLeft) {
  OpenQueue(FI_WAIT_FD);
  pollfd poller = {-1, POLLIN, 0};
  ASSERT_EQ(fi_control(&queue_->fid, FI_GETWAIT, &poller.fd), 0);
  struct fid* fids[] = {&queue_->fid};
  EXPECT_EQ(poll(&poller, 1, 0), 0);
  EXPECT_EQ(fi_trywait(fabric_, fids, 1), 0);
  const fi_eq_entry written = {};
  queue()->Write(FI_NOTIFY, &written, sizeof(written));
  queue()->Write(FI_NOTIFY, &written, sizeof(written));
  uint32_t event = 0;
  fi_eq_entry entry = {};
  for (int left = 2; left > 0; --left) {
    EXPECT_EQ(poll(&poller, 1, 0), 1);
    EXPECT_EQ(fi_trywait(fabric_, fids, 1), -FI_EAGAIN);
    EXPECT_GT(fi_eq_read(queue_, &event, &entry, sizeof(entry), 0), 0);
  }
  EXPECT_EQ(poll(&poller, 1, 0), 0);
}

TEST_F(EventQueueTest, DescriptorIsAlsoToBeHadForPoll) {
  OpenQueue(FI_WAIT_POLLFD);
  pollfd poller = {};
  fi_wait_pollfd wait = {};
  wait.fd = &poller;
  EXPECT_EQ(fi_control(&queue_->fid, FI_GETWAIT, &wait), -FI_ETOOSMALL);
  ASSERT_EQ(wait.nfds, 1U);
  ASSERT_EQ(fi_control(&queue_->fid, FI_GETWAIT, &wait), 0);
  EXPECT_EQ(poller.events, POLLIN);
  EXPECT_EQ(poll(&poller, wait.nfds, 0), 0);
  const fi_eq_entry written = {};
  queue()->Write(FI_NOTIFY, &written, sizeof(written));
  EXPECT_EQ(poll(&poller, wait.nfds, 0), 1);
}

TEST_F(EventQueueTest, MutexHeldFromTryWaitOnMissesNoEvent) {
  OpenQueue(FI_WAIT_MUTEX_COND);
  fi_mutex_cond wait = {};
  ASSERT_EQ(fi_control(&queue_->fid, FI_GETWAIT, &wait), 0);
  constexpr int kRounds = 200;
  std::thread writer([this] {
    for (int round = 0; round < kRounds; ++round) {
      const fi_eq_entry entry = {};
      queue()->Write(FI_NOTIFY, &entry, sizeof(entry));
    }
  });
  struct fid* fids[] = {&queue_->fid};
  for (int round = 0; round < kRounds; ++round) {
    pthread_mutex_lock(wait.mutex);
    while (fi_trywait(fabric_, fids, 1) == 0) {
      pthread_cond_wait(wait.cond, wait.mutex);
    }
    pthread_mutex_unlock(wait.mutex);
    uint32_t event = 0;
    fi_eq_entry entry = {};
    ASSERT_GT(fi_eq_read(queue_, &event, &entry, sizeof(entry), 0), 0);
  }
  writer.join();
}

// Wait sets ------------------------------------------------------------------

class WaitSetTest : public EventQueueTest {
 protected:
  void OpenSet(fi_wait_obj wait) {
    fi_wait_attr attr = {};
    attr.wait_obj = wait;
    ASSERT_EQ(fi_wait_open(fabric_, &attr, &set_), 0);
  }

  fid_eq* OpenMember() {
    fi_eq_attr attr = {};
    attr.flags = FI_WRITE;
    attr.wait_obj = FI_WAIT_SET;
    attr.wait_set = set_;
    fid_eq* member = nullptr;
    EXPECT_EQ(fi_eq_open(fabric_, &attr, &member, nullptr), 0);
    return member;
  }

  static void Notify(fid_eq* queue) {
    const fi_eq_entry entry = {};
    EXPECT_GT(fi_eq_write(queue, FI_NOTIFY, &entry, sizeof(entry), 0), 0);
  }

  static void Read(fid_eq* queue) {
    uint32_t event = 0;
    fi_eq_entry entry = {};
    EXPECT_GT(fi_eq_read(queue, &event, &entry, sizeof(entry), 0), 0);
  }

  fid_wait* set_ = nullptr;
};

TEST_F(WaitSetTest, WaitEndsForAnEventOfAnyMember) {
  OpenSet(FI_WAIT_UNSPEC);
  fid_eq* members[] = {OpenMember(), OpenMember()};
  EXPECT_EQ(fi_wait(set_, 0), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_wait(set_, 5), -FI_ETIMEDOUT);
  for (fid_eq* member : members) {
    std::thread writer([member] { Notify(member); });
    EXPECT_EQ(fi_wait(set_, -1), 0);
    writer.join();
    // It stays ready until the event is read.
    EXPECT_EQ(fi_wait(set_, 0), 0);
    Read(member);
    EXPECT_EQ(fi_wait(set_, 0), -FI_ETIMEDOUT);
  }
  for (fid_eq* member : members) {
    EXPECT_EQ(fi_close(&member->fid), 0);
  }
  EXPECT_EQ(fi_close(&set_->fid), 0);
}

TEST_F(WaitSetTest, CannotCloseBeforeItsMembersNorTheFabricBeforeIt) {
  OpenSet(FI_WAIT_FD);
  fid_eq* member = OpenMember();
  EXPECT_EQ(fi_close(&set_->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&member->fid), 0);
  EXPECT_EQ(fi_close(&fabric_->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&set_->fid), 0);
}

TEST_F(WaitSetTest, DescriptorOfTheSetStandsForAllMembers) {
  OpenSet(FI_WAIT_FD);
  fid_eq* member = OpenMember();
  pollfd poller = {-1, POLLIN, 0};
  ASSERT_EQ(fi_control(&set_->fid, FI_GETWAIT, &poller.fd), 0);
  EXPECT_EQ(poll(&poller, 1, 0), 0);
  struct fid* fids[] = {&set_->fid};
  EXPECT_EQ(fi_trywait(fabric_, fids, 1), 0);
  Notify(member);
  EXPECT_EQ(poll(&poller, 1, 0), 1);
  EXPECT_EQ(fi_trywait(fabric_, fids, 1), -FI_EAGAIN);
  Read(member);
  EXPECT_EQ(fi_close(&member->fid), 0);
  EXPECT_EQ(poll(&poller, 1, 0), 0);
  EXPECT_EQ(fi_close(&set_->fid), 0);
}

TEST_F(WaitSetTest, SignalsDoNotEndTheWait) {
  OpenSet(FI_WAIT_UNSPEC);
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval storm = {{0, 1000}, {0, 1000}};
  const itimerval none = {};
  setitimer(ITIMER_REAL, &storm, nullptr);
  EXPECT_EQ(fi_wait(set_, 50), -FI_ETIMEDOUT);
  setitimer(ITIMER_REAL, &none, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(fi_close(&set_->fid), 0);
}

TEST_F(WaitSetTest, WhatASetCannotDoIsRefused) {
  fi_wait_attr attr = {};
  attr.wait_obj = FI_WAIT_MUTEX_COND;
  EXPECT_EQ(fi_wait_open(fabric_, &attr, &set_), -FI_ENOSYS);
  attr.wait_obj = FI_WAIT_SET;
  EXPECT_EQ(fi_wait_open(fabric_, &attr, &set_), -FI_EINVAL);
  attr.wait_obj = FI_WAIT_UNSPEC;
  attr.flags = 1;
  EXPECT_EQ(fi_wait_open(fabric_, &attr, &set_), -FI_EBADFLAGS);
  EXPECT_EQ(fi_wait_open(fabric_, nullptr, &set_), -FI_EINVAL);
  OpenSet(FI_WAIT_UNSPEC);
  int descriptor = -1;
  EXPECT_EQ(fi_control(&set_->fid, FI_GETWAIT, &descriptor), -FI_ENODATA);
  EXPECT_EQ(fi_control(&set_->fid, FI_BACKLOG, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&set_->fid), 0);
}

// A connection's data follow the entry in one event.
TEST_F(EventQueueTest, ConnectionEventsCarryTheirData) {
  OpenQueue();
  const fi_eq_cm_entry head = {&queue_->fid, nullptr};
  std::array<char, sizeof(head) + 6> written = {};
  memcpy(written.data(), &head, sizeof(head));
  memcpy(written.data() + sizeof(head), "hello", 6);
  const size_t bytes = written.size();
  ASSERT_EQ(queue()->Write(FI_CONNECTED, written.data(), bytes), 0);
  std::array<char, 64> buffer = {};
  uint32_t event = 0;
  ASSERT_EQ(fi_eq_read(queue_, &event, buffer.data(), buffer.size(), 0),
            static_cast<ssize_t>(bytes));
  EXPECT_EQ(event, static_cast<uint32_t>(FI_CONNECTED));
  fi_eq_cm_entry entry = {};
  memcpy(&entry, buffer.data(), sizeof(entry));
  EXPECT_EQ(entry.fid, &queue_->fid);
  EXPECT_EQ(entry.info, nullptr);
  EXPECT_STREQ(buffer.data() + sizeof(entry), "hello");
}

TEST_F(EventQueueTest, QueueWithoutDescriptorHasNone) {
  OpenQueue(FI_WAIT_UNSPEC);
  int descriptor = -1;
  EXPECT_EQ(fi_control(&queue_->fid, FI_GETWAIT, &descriptor), -FI_ENODATA);
}

TEST_F(EventQueueTest, StrerrorSaysWhatHappened) {
  OpenQueue();
  char text[12];
  const char* whole =
      fi_eq_strerror(queue_, FI_HEDDLE_TRUNCATED, nullptr, text, sizeof(text));
  EXPECT_STREQ(whole, "the message is longer than the receive buffer");
  EXPECT_STREQ(text, "the message");
}

TEST_F(EventQueueTest, WhatAQueueCannotDoIsRefused) {
  OpenQueue();
  fi_eq_attr attr = {};
  fid_eq* other = nullptr;
  attr.wait_obj = FI_WAIT_SET;  // Without a set.
  EXPECT_EQ(fi_eq_open(fabric_, &attr, &other, nullptr), -FI_EINVAL);
  attr.wait_obj = static_cast<fi_wait_obj>(7);
  EXPECT_EQ(fi_eq_open(fabric_, &attr, &other, nullptr), -FI_EINVAL);
  attr.wait_obj = FI_WAIT_NONE;
  attr.flags = FI_PEEK;
  EXPECT_EQ(fi_eq_open(fabric_, &attr, &other, nullptr), -FI_EBADFLAGS);
  void* ops = nullptr;
  EXPECT_EQ(fi_open_ops(&queue_->fid, "none", 0, &ops, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_set_ops(&queue_->fid, "none", 0, ops, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_control(&queue_->fid, FI_BACKLOG, nullptr), -FI_ENOSYS);
}

TEST_F(EventQueueTest, WhatAFabricCannotDoIsRefused) {
  fid_pep* passive = nullptr;
  EXPECT_EQ(fabric_->ops->passive_ep(fabric_, nullptr, &passive, nullptr),
            -FI_ENOSYS);
  void* ops = nullptr;
  EXPECT_EQ(fi_open_ops(&fabric_->fid, "none", 0, &ops, nullptr), -FI_ENOSYS);
}

TEST(FabricTest, AnotherFabricsNameHasNoData) {
  char name[] = "192.0.2.0/24";
  fi_fabric_attr attr = {};
  attr.name = name;
  fid_fabric* fabric = nullptr;
  EXPECT_EQ(Fabric::Open(&attr, &fabric, nullptr), -FI_ENODATA);
  attr.name = nullptr;
  EXPECT_EQ(Fabric::Open(&attr, &fabric, nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace heddle::ofi
