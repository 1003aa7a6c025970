// SPDX-License-Identifier: Apache-2.0
// Variables of the environment, which the library reads once, and memory.
#include <malloc.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

class EnvironmentTest : public NodesTest {};
class MemoryTest : public NodesTest {};

using Variables = std::map<const char*, std::string>;

// The answer of fi_getinfo and its standard error in a process of its own,
// where the library is not in use yet.
struct Report {
  bool offered = false;
  std::string log;
};

Report Ask(const Variables& variables) {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  EXPECT_GE(child, 0);
  if (child == 0) {
    (void)dup2(ends[1], STDERR_FILENO);
    for (const char* const name :
         {"FI_PROVIDER", "FI_LOG_LEVEL", "FI_LOG_PROV", "FI_LOG_SUBSYS"}) {
      (void)unsetenv(name);
    }
    for (const auto& [name, value] : variables) {
      (void)setenv(name, value.c_str(), 1);
    }
    _exit(GetInfo(MakeHints(FI_MSG).get()).empty() ? 1 : 0);
  }
  (void)close(ends[1]);
  Report report;
  char part[4096];
  for (ssize_t bytes = 0; (bytes = read(ends[0], part, sizeof(part))) > 0;) {
    report.log.append(part, static_cast<size_t>(bytes));
  }
  (void)close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "status " << status;
  report.offered = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return report;
}

// The provider that carries the data; of "a;b" it is a.
std::string CoreProvider() {
  const std::string& provider = CurrentSettings().provider;
  return provider.substr(0, provider.find(';'));
}

CONFORMANCE_TEST(EnvironmentTest, ProvidersAreChosenAndLeftOut, 41) {
  const std::string core = CoreProvider();
  const std::string& whole = CurrentSettings().provider;
  const std::string other = core == "tcp" ? "sockets" : "tcp";
  EXPECT_TRUE(Ask({}).offered);
  EXPECT_TRUE(Ask({{"FI_PROVIDER", whole}}).offered);
  EXPECT_TRUE(Ask({{"FI_PROVIDER", "^" + other}}).offered);
  EXPECT_FALSE(Ask({{"FI_PROVIDER", "^" + core}}).offered);
  EXPECT_FALSE(Ask({{"FI_PROVIDER", other}}).offered);
  EXPECT_TRUE(Ask({{"FI_PROVIDER", other + "," + whole}}).offered);
  EXPECT_FALSE(Ask({{"FI_PROVIDER", "^" + other + "," + core}}).offered);
}

// Lines of the log that a provider wrote.
int LinesOf(const std::string& log, const std::string& provider) {
  int count = 0;
  for (size_t at = 0;
       (at = log.find(":" + provider + ":", at)) != std::string::npos; ++at) {
    ++count;
  }
  return count;
}

CONFORMANCE_TEST(EnvironmentTest, LogIsFilteredByLevelAndProvider, 41) {
  const std::string core = CoreProvider();
  EXPECT_EQ(LinesOf(Ask({}).log, core), 0) << "without a level";
  const Report all = Ask({{"FI_LOG_LEVEL", "debug"}});
  EXPECT_TRUE(all.offered);
  const int lines = LinesOf(all.log, core);
  EXPECT_GT(lines, 0) << "of " << core;
  EXPECT_LT(LinesOf(Ask({{"FI_LOG_LEVEL", "warn"}}).log, core), lines);
  EXPECT_GT(LinesOf(Ask({{"FI_LOG_LEVEL", "debug"}, {"FI_LOG_PROV", core}}).log,
                    core),
            0);
  EXPECT_EQ(
      LinesOf(Ask({{"FI_LOG_LEVEL", "debug"}, {"FI_LOG_PROV", "^" + core}}).log,
              core),
      0);
}

// Bytes that are allocated; 0 where a sanitizer allocates.
size_t Allocated() {
  return mallinfo2().uordblks;
}

CONFORMANCE_TEST(MemoryTest, FreeingFreesTheWholeChain, 38) {
  const Answer answer = GetInfo(MakeHints(FI_MSG).get());
  ASSERT_FALSE(answer.empty());
  const fi_info* const one = answer.own().front();
  constexpr int kCopies = 1000;
  const auto chain = [&] {
    fi_info* head = nullptr;
    for (int i = 0; i < kCopies; ++i) {
      fi_info* const copy = fi_dupinfo(one);
      copy->next = head;
      head = copy;
    }
    return head;
  };
  fi_freeinfo(chain());
  const size_t before = Allocated();
  fi_info* const head = chain();
  const size_t held = Allocated() - before;
  fi_freeinfo(head);
  const size_t left = Allocated() - before;
  EXPECT_TRUE(before == 0 || held > kCopies * sizeof(fi_info));
  EXPECT_LE(left, held / 100);
}

}  // namespace
}  // namespace heddle::conformance
