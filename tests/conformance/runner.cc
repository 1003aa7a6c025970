// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/runner.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>

// Part of AddressSanitizer, in a build with it: reports memory that is leaked.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

namespace heddle::conformance {
namespace {

using Clock = std::chrono::steady_clock;

struct FileCloser {
  void operator()(FILE* file) const { (void)std::fclose(file); }
};
using File = std::unique_ptr<FILE, FileCloser>;

// The running test's statement about itself, in the child.
Outcome& Stated() {
  static Outcome outcome;
  return outcome;
}

// Keeps the first failed assertion of a test.
class FirstFailure : public ::testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const ::testing::TestPartResult& part) override {
    if (!part.failed() || !text_.empty()) {
      return;
    }
    const char* const file = part.file_name();
    const char* const slash = file == nullptr ? nullptr : strrchr(file, '/');
    text_ = std::string(slash == nullptr ? "" : slash + 1) + ":" +
            std::to_string(part.line_number()) + ": " + part.summary();
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

File OpenTemporary() {
  File file(std::tmpfile());
  if (file == nullptr) {
    throw std::runtime_error("no temporary file");
  }
  return file;
}

std::string Read(FILE* file) {
  std::string text;
  std::rewind(file);
  char part[4096];
  while (const size_t bytes = std::fread(part, 1, sizeof(part), file)) {
    text.append(part, bytes);
  }
  return text;
}

// Undoes the handlers of libraries that turn a crash into an exit status.
void ResetSignals() {
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM}) {
    (void)signal(number, SIG_DFL);
  }
  sigset_t none;
  (void)sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
}

// A provider that spins costs no more than this, idle machine or not.
rlim_t ProcessorLimitSeconds() {
  constexpr auto kWaits = 4;
  return static_cast<rlim_t>(
      std::chrono::ceil<std::chrono::seconds>(kWaits * CurrentSettings().wait)
          .count());
}

// The child: never returns. `result` receives the verdict's number and reason.
[[noreturn]] void BeChild(const std::string& name, FILE* result, FILE* log) {
  (void)setpgid(0, 0);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  RemoveSegments(getpid());
  const rlimit limit = {.rlim_cur = ProcessorLimitSeconds(),
                        .rlim_max = RLIM_INFINITY};
  (void)setrlimit(RLIMIT_CPU, &limit);  // SIGXCPU.
  ResetSignals();
  (void)dup2(fileno(log), STDOUT_FILENO);
  (void)dup2(fileno(log), STDERR_FILENO);
  auto* const failure = new FirstFailure;  // GoogleTest deletes it.
  ::testing::UnitTest::GetInstance()->listeners().Append(failure);
  GTEST_FLAG_SET(filter, name);
  const bool passed = RUN_ALL_TESTS() == 0;
  Outcome outcome = Stated();
  if (!passed) {
    outcome = {.verdict = Verdict::kFail, .reason = failure->text()};
  } else if (::testing::UnitTest::GetInstance()->successful_test_count() == 0) {
    outcome = {.verdict = Verdict::kFail, .reason = "no such test"};
  } else if (outcome.verdict == Verdict::kNoTest) {
    outcome.verdict = Verdict::kPass;
  }
  if (passed && __lsan_do_recoverable_leak_check != nullptr &&
      __lsan_do_recoverable_leak_check() != 0) {
    outcome = {.verdict = Verdict::kFail, .reason = "leaks memory"};
  }
  (void)std::fprintf(result, "%d %s", static_cast<int>(outcome.verdict),
                     outcome.reason.c_str());
  (void)std::fflush(nullptr);
  std::_Exit(0);
}

// Waits for the end of the child, which stays a zombie: its number is not
// reused. False at the limit.
bool WaitForEnd(pid_t child, Clock::time_point end) {
  sigset_t set;
  (void)sigemptyset(&set);
  (void)sigaddset(&set, SIGCHLD);
  while (true) {
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(child), &info,
               WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child) {
      return true;
    }
    const auto left = end - Clock::now();
    if (left <= Clock::duration::zero()) {
      return false;
    }
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    timespec timeout = {};
    timeout.tv_sec = seconds.count();
    timeout.tv_nsec =
        std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds)
            .count();
    (void)sigtimedwait(&set, nullptr, &timeout);
  }
}

std::string SignalName(int number) {
  const char* const name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number)
                         : std::string("SIG") + name;
}

// Outcome of a child that ended by itself.
Outcome Judge(int status, const std::string& text) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
    return {.verdict = Verdict::kHung,
            .reason = "more than " + std::to_string(ProcessorLimitSeconds()) +
                      " s of processor time"};
  }
  if (WIFSIGNALED(status)) {
    return {.verdict = Verdict::kCrashed,
            .reason = SignalName(WTERMSIG(status))};
  }
  if (text.empty()) {
    return {.verdict = Verdict::kCrashed,
            .reason = "the process ended with status " +
                      std::to_string(WEXITSTATUS(status)) +
                      " before the test did"};
  }
  const size_t space = text.find(' ');
  return {.verdict = static_cast<Verdict>(std::stoi(text.substr(0, space))),
          .reason = text.substr(space + 1)};
}

}  // namespace

void RemoveSegments(pid_t process) {
  const std::string prefix = std::to_string(process) + ":";
  std::error_code ignored;
  for (const auto& file :
       std::filesystem::directory_iterator("/dev/shm", ignored)) {
    if (file.path().filename().string().starts_with(prefix)) {
      (void)std::filesystem::remove(file.path(), ignored);
    }
  }
}

Settings& CurrentSettings() {
  static Settings settings;
  return settings;
}

Outcome RunTest(const std::string& name) {
  const File result = OpenTemporary();
  const File log = OpenTemporary();
  // Blocked, SIGCHLD stays pending for sigtimedwait.
  sigset_t blocked;
  sigset_t before;
  (void)sigemptyset(&blocked);
  (void)sigaddset(&blocked, SIGCHLD);
  (void)sigprocmask(SIG_BLOCK, &blocked, &before);
  (void)std::fflush(nullptr);
  const auto limit = CurrentSettings().limit;
  const auto end = Clock::now() + limit;
  const pid_t child = fork();
  if (child < 0) {
    throw std::runtime_error("fork: " + std::string(std::strerror(errno)));
  }
  if (child == 0) {
    BeChild(name, result.get(), log.get());
  }
  (void)setpgid(child, child);
  const bool ended = WaitForEnd(child, end);
  (void)kill(-child, SIGKILL);  // Its own children, too.
  siginfo_t info = {};
  (void)waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  RemoveSegments(child);  // Before its number is free.
  int status = 0;
  (void)waitpid(child, &status, 0);
  (void)sigprocmask(SIG_SETMASK, &before, nullptr);
  Outcome outcome =
      ended ? Judge(status, Read(result.get()))
            : Outcome{.verdict = Verdict::kHung,
                      .reason =
                          "more than " + std::to_string(limit.count()) + " ms"};
  if (std::getenv("HEDDLE_CONFORMANCE_LOG") != nullptr) {
    (void)std::fputs(Read(log.get()).c_str(), stderr);
  }
  return outcome;
}

void NotOffered(const std::string& what) {
  Stated() = {.verdict = Verdict::kNotOffered, .reason = what};
}

void Refused(const std::string& what, int result) {
  EXPECT_LT(result, 0) << what;
  Stated() = {.verdict = Verdict::kRefused,
              .reason = what + ": " + std::strerror(-result)};
}

}  // namespace heddle::conformance
