// SPDX-License-Identifier: Apache-2.0
// Completion queues, waiting, return values.
#include <poll.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstring>
#include <set>
#include <thread>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

class QueueTest : public NodesTest {
 protected:
  // A receive that fails: it is canceled.
  void Fail(Buffer& received, void* context) {
    ASSERT_EQ(Receive(received, context), 0);
    ASSERT_EQ(fi_cancel(&b().ep->fid, context), 0);
  }

  // Drives the sender until fi_cq_read of the receiver is not -FI_EAGAIN.
  ssize_t ReadReceive(void* entries, size_t count) {
    ssize_t result = -FI_EAGAIN;
    const Deadline deadline;
    while (result == -FI_EAGAIN && !deadline.HasPassed()) {
      a().tx.Poll();
      result = fi_cq_read(b().rx.cq, entries, count);
    }
    return result;
  }

  fi_context2 send_context_ = {};
};

class ReturnTest : public NodesTest {};

CONFORMANCE_TEST(QueueTest, FormatsArePrefixesOfEachOther, 285) {
  for (const fi_cq_format format : {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG,
                                    FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED}) {
    NodeOptions options;
    options.format = format;
    if (!Open(options)) {
      return;
    }
    Buffer sent(a(), 100);
    Buffer received(b(), 200);
    fi_context2 context = {};
    ASSERT_EQ(Receive(received, &context), 0);
    ASSERT_EQ(Post([&] {
                return fi_senddata(a().ep, sent.data(), 100, sent.desc(), 77,
                                   to_b(), &send_context_);
              }),
              0);
    fi_cq_tagged_entry entry;
    std::memset(&entry, 0xee, sizeof(entry));
    ASSERT_EQ(ReadReceive(&entry, 1), 1) << format;
    EXPECT_EQ(entry.op_context, &context);
    if (format >= FI_CQ_FORMAT_MSG) {
      EXPECT_EQ(entry.len, 100U);
      EXPECT_NE(entry.flags & FI_RECV, 0U);
      EXPECT_EQ(entry.flags & FI_SEND, 0U);
    }
    if (format >= FI_CQ_FORMAT_DATA) {
      EXPECT_NE(entry.flags & FI_REMOTE_CQ_DATA, 0U);
      EXPECT_EQ(entry.data, 77U);
    }
    // Bytes beyond the format are not written.
    constexpr size_t kBytes[] = {
        0, sizeof(fi_cq_entry), sizeof(fi_cq_msg_entry),
        sizeof(fi_cq_data_entry), sizeof(fi_cq_tagged_entry)};
    std::array<uint8_t, sizeof(entry)> bytes;
    std::memcpy(bytes.data(), &entry, sizeof(entry));
    for (size_t i = kBytes[format]; i < bytes.size(); ++i) {
      EXPECT_EQ(bytes[i], 0xee) << "byte " << i << " of format " << format;
    }
    EXPECT_TRUE(Take(a().tx).has_value());
    TearDown();
  }
}

CONFORMANCE_TEST(QueueTest, ErrorBlocksTheHeadUntilItIsRead, 286) {
  if (!Open()) {
    return;
  }
  fi_cq_tagged_entry entries[4] = {};
  EXPECT_EQ(fi_cq_read(b().rx.cq, entries, 4), -FI_EAGAIN);
  Buffer sent(a(), 64);
  Buffer failing(b(), 64);
  Buffer received(b(), 64);
  fi_context2 contexts[2] = {};
  ASSERT_NO_FATAL_FAILURE(Fail(failing, &contexts[0]));
  ASSERT_EQ(ReadReceive(entries, 4), -FI_EAVAIL);
  // A message that completes after it has to wait.
  ASSERT_EQ(fi_recv(b().ep, received.data(), 64, received.desc(),
                    FI_ADDR_UNSPEC, &contexts[1]),
            0);
  ssize_t posted = -FI_EAGAIN;
  while (posted == -FI_EAGAIN) {
    posted =
        fi_send(a().ep, sent.data(), 64, sent.desc(), to_b(), &send_context_);
    a().tx.Poll();
    ASSERT_EQ(fi_cq_read(b().rx.cq, entries, 4), -FI_EAVAIL);
  }
  ASSERT_EQ(posted, 0);
  for (int i = 0; i < 1000; ++i) {
    a().tx.Poll();
    ASSERT_EQ(fi_cq_read(b().rx.cq, entries, 4), -FI_EAVAIL);
  }
  fi_cq_err_entry failure = {};
  ASSERT_EQ(fi_cq_readerr(b().rx.cq, &failure, 0), 1);
  EXPECT_EQ(failure.op_context, &contexts[0]);
  ASSERT_EQ(ReadReceive(entries, 4), 1);
  EXPECT_EQ(entries[0].op_context, &contexts[1]);
  EXPECT_EQ(fi_cq_readerr(b().rx.cq, &failure, 0), -FI_EAGAIN);
}

CONFORMANCE_TEST(QueueTest, SeveralEntriesAreReadAtOnce, 286) {
  if (!Open()) {
    return;
  }
  constexpr size_t kCount = 3;
  Buffer sent(a(), 8);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::array<fi_context2, kCount> contexts = {};
  for (fi_context2& context : contexts) {
    buffers.push_back(std::make_unique<Buffer>(b(), 8));
    ASSERT_EQ(Receive(*buffers.back(), &context), 0);
  }
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(Send(sent, 8, &send_context_), 0);
  }
  std::set<const void*> seen;
  while (seen.size() + b().rx.taken.size() < kCount) {
    fi_cq_tagged_entry entries[2] = {};
    const ssize_t count = ReadReceive(entries, 2);
    ASSERT_GE(count, 1);
    ASSERT_LE(count, 2);
    for (ssize_t i = 0; i < count; ++i) {
      EXPECT_TRUE(seen.insert(entries[i].op_context).second);
    }
  }
  for (const Completion& completion : b().rx.taken) {
    EXPECT_TRUE(seen.insert(completion.entry.op_context).second);
  }
  for (const fi_context2& context : contexts) {
    EXPECT_TRUE(seen.contains(&context));
  }
}

CONFORMANCE_TEST(QueueTest, ErrorEntryIsFilled, 287) {
  if (!Open()) {
    return;
  }
  Buffer received(b(), 40);
  fi_context2 context = {};
  ASSERT_NO_FATAL_FAILURE(Fail(received, &context));
  fi_cq_tagged_entry entry = {};
  ASSERT_EQ(ReadReceive(&entry, 1), -FI_EAVAIL);
  uint8_t data[128] = {};
  fi_cq_err_entry failure = {};
  failure.err_data = data;
  failure.err_data_size = sizeof(data);
  ASSERT_EQ(fi_cq_readerr(b().rx.cq, &failure, 0), 1);
  EXPECT_EQ(failure.op_context, &context);
  EXPECT_NE(failure.flags & FI_RECV, 0U);
  EXPECT_EQ(failure.err, FI_ECANCELED);
  EXPECT_EQ(failure.olen, 0U);
  // The caller's memory is used where it gave some.
  EXPECT_EQ(failure.err_data, data);
  EXPECT_LE(failure.err_data_size, sizeof(data));
}

CONFORMANCE_TEST(QueueTest, TruncationHasTheLengthThatIsMissing, 287) {
  if (!Open()) {
    return;
  }
  Buffer sent(a(), 64);
  Buffer received(b(), 40);
  fi_context2 context = {};
  ASSERT_EQ(Receive(received, &context), 0);
  ASSERT_EQ(Send(sent, 64, &send_context_), 0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  if (!completion->error) {
    return NotOffered("truncation as an error");  // 116 judges that.
  }
  EXPECT_EQ(completion->failure.olen, 24U);
}

CONFORMANCE_TEST(QueueTest, ErrorHasAText, 288) {
  if (!Open()) {
    return;
  }
  Buffer received(b(), 40);
  fi_context2 context = {};
  ASSERT_NO_FATAL_FAILURE(Fail(received, &context));
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_TRUE(completion->error);
  char text[256] = "";
  const char* const reason =
      fi_cq_strerror(b().rx.cq, completion->failure.prov_errno,
                     completion->failure.err_data, text, sizeof(text));
  ASSERT_NE(reason, nullptr);
  EXPECT_NE(std::string(reason), "");
}

CONFORMANCE_TEST(QueueTest, ReaderWaitsForATime, 289) {
  NodeOptions options;
  options.wait_object = FI_WAIT_UNSPEC;
  if (!Open(options)) {
    return;
  }
  fi_cq_tagged_entry entry = {};
  const auto start = std::chrono::steady_clock::now();
  const ssize_t early = fi_cq_sread(b().rx.cq, &entry, 1, nullptr, 200);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(early, -FI_EAGAIN);
  EXPECT_LT(took, CurrentSettings().limit / 2);
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  fi_context2 context = {};
  ASSERT_EQ(Receive(received, &context), 0);
  ASSERT_EQ(Send(sent, 8, &send_context_), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &send_context_));
  // It may wake without an entry.
  ssize_t count = b().rx.taken.empty() ? -FI_EAGAIN : 1;
  const Deadline deadline;
  while (count == -FI_EAGAIN && !deadline.HasPassed()) {
    count = fi_cq_sread(b().rx.cq, &entry, 1, nullptr, 500);
  }
  EXPECT_EQ(count, 1);
}

CONFORMANCE_TEST(QueueTest, NoWakeUpIsMissed, 189, 290) {
  NodeOptions options;
  options.wait_object = FI_WAIT_FD;
  options.threading = FI_THREAD_SAFE;
  if (!Open(options)) {
    return;
  }
  int fd = -1;
  ASSERT_EQ(fi_control(&b().rx.cq->fid, FI_GETWAIT, &fd), 0);
  ASSERT_GE(fd, 0);
  constexpr int kRounds = 400;
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  fi_context2 context = {};
  // The peers find each other; from here the receiver polls only when woken.
  ASSERT_NO_FATAL_FAILURE(Exchange(8));
  const int limit_ms = static_cast<int>(CurrentSettings().limit.count() / 2);
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_EQ(Receive(received, &context), 0);
    ASSERT_TRUE(b().rx.taken.empty());
    std::thread sender([&] {
      ssize_t result = -FI_EAGAIN;
      fi_cq_tagged_entry entry = {};
      while (result == -FI_EAGAIN) {
        result = fi_send(a().ep, sent.data(), 8, sent.desc(), to_b(),
                         &send_context_);
        if (result == -FI_EAGAIN) {
          (void)fi_cq_read(a().tx.cq, &entry, 1);
        }
      }
      while (fi_cq_read(a().tx.cq, &entry, 1) == -FI_EAGAIN) {
        std::this_thread::yield();
      }
    });
    ssize_t count = -FI_EAGAIN;
    bool woken = true;
    while (count == -FI_EAGAIN && woken) {
      fid* waited = &b().rx.cq->fid;
      const int ready = fi_trywait(b().fabric, &waited, 1);
      if (ready == FI_SUCCESS) {
        pollfd event = {.fd = fd, .events = POLLIN, .revents = 0};
        woken = poll(&event, 1, limit_ms) == 1;
      } else {
        EXPECT_EQ(ready, -FI_EAGAIN);
      }
      fi_cq_tagged_entry entry = {};
      count = fi_cq_read(b().rx.cq, &entry, 1);
    }
    sender.join();
    ASSERT_TRUE(woken) << "round " << i;
    ASSERT_EQ(count, 1) << "round " << i;
  }
}

CONFORMANCE_TEST(ReturnTest, EveryErrorHasAText, 293) {
  std::set<std::string> texts;
  for (int error = FI_EOTHER; error <= FI_EOVERRUN; ++error) {
    const char* const text = fi_strerror(error);
    ASSERT_NE(text, nullptr) << error;
    EXPECT_NE(std::string(text), "") << error;
    EXPECT_TRUE(texts.insert(text).second) << error << ": " << text;
  }
  constexpr int kErrors[] = {
      FI_EAGAIN, FI_EINVAL,    FI_ENOSYS,   FI_ENODATA,     FI_EOPNOTSUPP,
      FI_ENOMEM, FI_ECANCELED, FI_EMSGSIZE, FI_EOPBADSTATE, FI_ENOCQ};
  for (const int error : kErrors) {
    EXPECT_NE(std::string(fi_strerror(error)), "") << error;
    EXPECT_NE(std::string(fi_strerror(error)), fi_strerror(0)) << error;
  }
}

}  // namespace
}  // namespace heddle::conformance
