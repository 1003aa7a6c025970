// SPDX-License-Identifier: Apache-2.0
// A peer in a process of its own.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"
#include "tests/conformance/runner.h"

namespace heddle::conformance {
namespace {

constexpr size_t kBytes = 64;
constexpr size_t kNameBytes = 256;

// The child receives messages until it is killed.
class PeerTest : public NodesTest {
 protected:
  // Before the first call of the library in this process.
  void Fork(const NodeOptions& options) {
    int ends[2] = {};
    ASSERT_EQ(pipe(ends), 0);
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      BePeer(options, ends[1]);
    }
    (void)close(ends[1]);
    name_end_ = ends[0];
  }

  // The address that the child opened; empty if it opened none.
  std::vector<uint8_t> PeerName() const {
    std::vector<uint8_t> name(kNameBytes);
    const ssize_t bytes = read(name_end_, name.data(), name.size());
    name.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
    return name;
  }

  void Kill() {
    if (child_ > 0) {
      (void)kill(child_, SIGKILL);
      siginfo_t info = {};
      (void)waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT);
      RemoveSegments(child_);
      (void)waitpid(child_, nullptr, 0);
      child_ = -1;
    }
  }

  void TearDown() override {
    Kill();
    (void)close(name_end_);
    NodesTest::TearDown();
  }

 private:
  [[noreturn]] static void BePeer(const NodeOptions& options, int end) {
    RemoveSegments(getpid());
    Node node(options);
    if (node.result != 0) {
      std::_Exit(1);
    }
    const std::vector<uint8_t> name = node.Name();
    Buffer buffer(node, kBytes);
    fi_context2 context = {};
    bool told = false;
    bool posted = false;
    while (true) {
      posted = posted || fi_recv(node.ep, buffer.data(), kBytes, buffer.desc(),
                                 FI_ADDR_UNSPEC, &context) == 0;
      if (posted && !told) {
        told = write(end, name.data(), name.size()) ==
               static_cast<ssize_t>(name.size());
      }
      node.rx.Poll();
      node.tx.Poll();
      posted = posted && node.rx.taken.empty();
      node.rx.taken.clear();
    }
  }

  pid_t child_ = -1;
  int name_end_ = -1;
};

CONFORMANCE_TEST(PeerTest, NothingReachesADeadPeer, 259) {
  NodeOptions options;
  options.tx_op_flags = FI_TRANSMIT_COMPLETE;
  ASSERT_NO_FATAL_FAILURE(Fork(options));
  const std::vector<uint8_t> name = PeerName();
  if (!Open(options, 1)) {
    return;
  }
  ASSERT_FALSE(name.empty()) << "the peer did not open";
  fi_addr_t peer = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(a().av, name.data(), 1, &peer, 0, nullptr), 1);
  Buffer sent(a(), kBytes);
  const auto send = [&] {
    return fi_send(a().ep, sent.data(), kBytes, sent.desc(), peer,
                   NewContext());
  };
  ASSERT_EQ(Post(send), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectSent(1));
  Kill();
  // A call that fails, an error, or no completion: but no success.
  const ssize_t result = send();
  if (result == 0 && !StaysEmpty(a().tx)) {
    EXPECT_TRUE(a().tx.taken.front().error)
        << "a message to a peer that is gone is complete";
  }
}

}  // namespace
}  // namespace heddle::conformance
