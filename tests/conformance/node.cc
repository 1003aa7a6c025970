// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/node.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace heddle::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kNameBytes = 256;
constexpr auto kSettle = std::chrono::milliseconds(100);
constexpr int kSettlePolls = 500;

// Returns the time that the threads of this process have run for.
std::chrono::nanoseconds ProcessorTime() {
  timespec time = {};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

InfoPointer FindInfo(const NodeOptions& options, int* result) {
  const InfoPointer hints = MakeHints(options.caps);
  hints->mode = options.mode;
  hints->domain_attr->mr_mode = options.mr_mode;
  hints->domain_attr->threading = options.threading;
  hints->domain_attr->data_progress = options.progress;
  hints->domain_attr->control_progress = options.progress;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->cq_data_size = options.cq_data_size;
  hints->tx_attr->op_flags = options.tx_op_flags;
  if (options.hints) {
    options.hints(*hints);
  }
  const Answer answer = GetInfo(hints.get(), {.version = options.version});
  *result = answer.result;
  const auto own = answer.own();
  return InfoPointer(own.empty() ? nullptr : fi_dupinfo(own.front()));
}

}  // namespace

void Queue::Poll() {
  Completion completion;
  const ssize_t count = fi_cq_read(cq, &completion.entry, 1);
  if (count == -FI_EAVAIL) {
    completion.error = true;
    // Where err_data goes: to the provider's own memory.
    if (fi_cq_readerr(cq, &completion.failure, 0) == 1) {
      taken.push_back(completion);
    }
  } else if (count == 1) {
    taken.push_back(completion);
  } else {
    EXPECT_EQ(count, -FI_EAGAIN) << "fi_cq_read";
  }
}

bool Node::Step(const char* call, int outcome) {
  if (outcome != 0) {
    result = outcome;
    failed = call;
  }
  return outcome == 0;
}

fid_cq* Node::OpenQueue(fi_cq_format format) {
  fi_cq_attr attr = {};
  attr.format = format;
  attr.wait_obj = FI_WAIT_NONE;
  fid_cq* cq = nullptr;
  EXPECT_EQ(fi_cq_open(domain, &attr, &cq, nullptr), 0);
  return cq;
}

Node::Node(const NodeOptions& options) {
  info = FindInfo(options, &result);
  if (info == nullptr) {
    result = result == 0 ? -FI_ENODATA : result;
    failed = "fi_getinfo";
    return;
  }
  fi_cq_attr cq_attr = {};
  cq_attr.format = options.format;
  cq_attr.wait_obj = options.wait_object;
  fi_av_attr av_attr = {};
  av_attr.type = options.av_type;
  fi_cq_attr rx_attr = cq_attr;
  cq_attr.size = options.tx_cq_size;
  rx_attr.size = options.rx_cq_size;
  (void)(Step("fi_fabric", fi_fabric(info->fabric_attr, &fabric, nullptr)) &&
         Step("fi_domain", fi_domain(fabric, info.get(), &domain, nullptr)) &&
         Step("fi_cq_open", fi_cq_open(domain, &cq_attr, &tx.cq, &tx)) &&
         Step("fi_cq_open", fi_cq_open(domain, &rx_attr, &rx.cq, &rx)) &&
         Step("fi_av_open", fi_av_open(domain, &av_attr, &av, nullptr)) &&
         Step("fi_endpoint", fi_endpoint(domain, info.get(), &ep, this)) &&
         Step("fi_ep_bind of the transmit queue",
              fi_ep_bind(ep, &tx.cq->fid,
                         FI_TRANSMIT | options.tx_bind_flags)) &&
         Step("fi_ep_bind of the receive queue",
              fi_ep_bind(ep, &rx.cq->fid, FI_RECV | options.rx_bind_flags)) &&
         Step("fi_ep_bind of the vector", fi_ep_bind(ep, &av->fid, 0)) &&
         (!options.enable || Step("fi_enable", fi_enable(ep))));
}

Node::~Node() {
  fid* const objects[] = {
      ep == nullptr ? nullptr : &ep->fid,
      av == nullptr ? nullptr : &av->fid,
      rx.cq == nullptr ? nullptr : &rx.cq->fid,
      tx.cq == nullptr ? nullptr : &tx.cq->fid,
      domain == nullptr ? nullptr : &domain->fid,
      fabric == nullptr ? nullptr : &fabric->fid,
  };
  for (fid* const object : objects) {
    if (object != nullptr) {
      EXPECT_EQ(fi_close(object), 0) << "fi_close, class " << object->fclass;
    }
  }
}

std::vector<uint8_t> Node::Name() const {
  std::vector<uint8_t> name(kNameBytes);
  size_t bytes = name.size();
  EXPECT_EQ(fi_getname(&ep->fid, name.data(), &bytes), 0);
  name.resize(bytes);
  return name;
}

fi_addr_t Node::Insert(const Node& other) {
  fi_addr_t address = FI_ADDR_UNSPEC;
  EXPECT_EQ(fi_av_insert(av, other.Name().data(), 1, &address, 0, nullptr), 1);
  return address;
}

fid_ep* Node::OpenBareEndpoint() {
  fid_ep* bare = nullptr;
  EXPECT_EQ(fi_endpoint(domain, info.get(), &bare, nullptr), 0);
  return bare;
}

void EnableRegion(const Node& node, fid_mr* mr) {
  if ((node.info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
    EXPECT_EQ(fi_mr_bind(mr, &node.ep->fid, 0), 0);
    EXPECT_EQ(fi_mr_enable(mr), 0);
  }
}

Buffer::Buffer(Node& node, size_t bytes, uint64_t access) : bytes_(bytes) {
  const int mode = node.info->domain_attr->mr_mode;
  const bool remote = (access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0;
  if (!remote && (mode & (FI_MR_LOCAL | FI_MR_BASIC)) == 0 &&
      (node.info->mode & FI_LOCAL_MR) == 0) {
    return;
  }
  static std::atomic<uint64_t> next_key = 1;
  EXPECT_EQ(fi_mr_reg(node.domain, bytes_.data(), bytes, access, 0, next_key++,
                      0, &mr, nullptr),
            0);
  if (mr != nullptr) {
    EnableRegion(node, mr);
  }
  if ((mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC)) != 0) {
    address_ = reinterpret_cast<uint64_t>(bytes_.data());
  }
}

void Buffer::Fill(uint32_t salt) {
  const std::vector<uint8_t> pattern = Pattern(size(), salt);
  std::copy(pattern.begin(), pattern.end(), bytes_.begin());
}

Buffer::~Buffer() {
  if (mr != nullptr) {
    EXPECT_EQ(fi_close(&mr->fid), 0) << "fi_close of a region";
  }
}

__attribute__((no_sanitize("thread"))) uint8_t Load(
    const volatile uint8_t* byte) {
  return *byte;
}

std::vector<uint8_t> Pattern(size_t bytes, uint32_t salt) {
  std::vector<uint8_t> pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    pattern[i] = static_cast<uint8_t>(i * 7 + i / 251 + size_t{salt} * 31 + 1);
  }
  return pattern;
}

Deadline::Deadline()
    : start_processor_(ProcessorTime()),
      end_(Clock::now() + CurrentSettings().limit / 2) {}

bool Deadline::HasPassed() const {
  return ProcessorTime() - start_processor_ > CurrentSettings().wait ||
         Clock::now() > end_;
}

std::unique_ptr<Node> NodesTest::OpenAlone(const NodeOptions& options) {
  auto node = std::make_unique<Node>(options);
  if (node->result == -FI_ENODATA && node->failed == "fi_getinfo") {
    NotOffered("endpoints with caps " +
               std::string(fi_tostr(&options.caps, FI_TYPE_CAPS)));
    return nullptr;
  }
  if (node->failed == "fi_cq_open" && options.wait_object != FI_WAIT_NONE &&
      (node->result == -FI_ENOSYS || node->result == -FI_EOPNOTSUPP ||
       node->result == -FI_EINVAL)) {
    Refused("fi_cq_open with a wait object", node->result);
    return nullptr;
  }
  if (node->result != 0) {
    ADD_FAILURE() << node->failed << ": " << fi_strerror(-node->result);
    return nullptr;
  }
  return node;
}

bool NodesTest::Connect() {
  for (const auto& from : nodes_) {
    addresses_.emplace_back();
    for (const auto& to : nodes_) {
      addresses_.back().push_back(from->Insert(*to));
    }
  }
  return !HasFailure();
}

bool NodesTest::Open(const NodeOptions& options, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto node = OpenAlone(options);
    if (node == nullptr) {
      return false;
    }
    nodes_.push_back(std::move(node));
  }
  return !options.enable || Connect();
}

bool NodesTest::Enable() {
  for (const auto& node : nodes_) {
    EXPECT_EQ(fi_enable(node->ep), 0);
  }
  return Connect();
}

bool NodesTest::Open(const NodeOptions& sender, const NodeOptions& receiver) {
  return Open(sender, 1) && [&] {
    addresses_.clear();
    auto node = OpenAlone(receiver);
    if (node == nullptr) {
      return false;
    }
    nodes_.push_back(std::move(node));
    return Connect();
  }();
}

void NodesTest::TearDown() {
  while (!nodes_.empty()) {
    nodes_.pop_back();
  }
  addresses_.clear();
}

void NodesTest::PollAll() {
  for (const auto& node : nodes_) {
    node->tx.Poll();
    node->rx.Poll();
  }
}

bool NodesTest::WaitUntil(const std::function<bool()>& done) {
  const Deadline deadline;
  while (!done()) {
    if (deadline.HasPassed() || HasFailure()) {
      return false;
    }
    PollAll();
    (void)sched_yield();
  }
  return true;
}

ssize_t NodesTest::Post(const std::function<ssize_t()>& post) {
  ssize_t result = -FI_EAGAIN;
  (void)WaitUntil([&] {
    result = post();
    return result != -FI_EAGAIN;
  });
  return result;
}

ssize_t NodesTest::Send(Buffer& buffer, size_t bytes, void* context) {
  return Post([&] {
    return fi_send(a().ep, buffer.data(), bytes, buffer.desc(), to_b(),
                   context);
  });
}

ssize_t NodesTest::Receive(Buffer& buffer, void* context, fi_addr_t source) {
  return Post([&] {
    return fi_recv(b().ep, buffer.data(), buffer.size(), buffer.desc(), source,
                   context);
  });
}

ssize_t NodesTest::ReceiveWithFlags(Buffer& buffer, uint64_t flags,
                                    void* context) {
  iovec part = {.iov_base = buffer.data(), .iov_len = buffer.size()};
  void* desc = buffer.desc();
  fi_msg message = {};
  message.msg_iov = &part;
  message.desc = &desc;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  message.context = context;
  return Post([&] { return fi_recvmsg(b().ep, &message, flags); });
}

std::optional<Completion> NodesTest::Take(Queue& queue) {
  if (!WaitUntil([&] { return !queue.taken.empty(); })) {
    return std::nullopt;
  }
  const Completion completion = queue.taken.front();
  queue.taken.pop_front();
  return completion;
}

void NodesTest::ExpectDone(Queue& queue, const void* context) {
  const auto completion = Take(queue);
  ASSERT_TRUE(completion.has_value()) << "no completion";
  ASSERT_FALSE(completion->error)
      << "completion in error: " << fi_strerror(completion->failure.err);
  EXPECT_EQ(completion->entry.op_context, context);
}

void NodesTest::ExpectSent(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const auto completion = Take(a().tx);
    ASSERT_TRUE(completion.has_value()) << i << " of " << count;
    ASSERT_FALSE(completion->error)
        << i << ": " << fi_strerror(completion->failure.err);
    const auto is_own = [&](const fi_context2& context) {
      return &context == completion->entry.op_context;
    };
    EXPECT_EQ(std::count_if(contexts_.begin(), contexts_.end(), is_own), 1);
  }
}

void NodesTest::ExpectTagged(const void* context, uint64_t tag, size_t bytes) {
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value()) << "no completion of tag " << tag;
  ASSERT_FALSE(completion->error)
      << "tag " << tag << ": " << fi_strerror(completion->failure.err);
  EXPECT_EQ(completion->entry.op_context, context) << "tag " << tag;
  EXPECT_EQ(completion->entry.tag, tag);
  EXPECT_EQ(completion->entry.len, bytes) << "tag " << tag;
}

bool NodesTest::StaysEmpty(Queue& queue, const std::vector<Node*>& others) {
  const auto end = Clock::now() + kSettle;
  for (int i = 0; i < kSettlePolls || Clock::now() < end; ++i) {
    PollAll();
    for (Node* const node : others) {
      node->tx.Poll();
      node->rx.Poll();
    }
    if (!queue.taken.empty()) {
      return false;
    }
    (void)sched_yield();
  }
  return true;
}

void NodesTest::Exchange(size_t bytes, uint32_t salt) {
  Buffer sent(a(), bytes);
  Buffer received(b(), bytes);
  sent.Fill(salt);
  fi_context2 contexts[2] = {};
  ASSERT_EQ(Receive(received, &contexts[0]), 0);
  ASSERT_EQ(Send(sent, bytes, &contexts[1]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[0]));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[1]));
  EXPECT_EQ(received.bytes(), sent.bytes());
}

}  // namespace heddle::conformance
