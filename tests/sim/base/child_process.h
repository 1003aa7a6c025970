// SPDX-License-Identifier: Apache-2.0
// A forked process that a test can wait for, talk to and kill.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

namespace heddle::sim::base {

// Runs `body` in a child. `body` gets a function that tells the parent it has
// come so far, and ends the child by returning.
class ChildProcess {
 public:
  using Signal = std::function<void()>;

  explicit ChildProcess(const std::function<void(const Signal&)>& body) {
    std::array<int, 2> pipe_fds{};
    if (pipe(pipe_fds.data()) != 0) {
      return;
    }
    pid_ = fork();
    if (pid_ == 0) {
      close(pipe_fds[0]);
      const int out = pipe_fds[1];
      body([out] {
        const char byte = 1;
        if (write(out, &byte, 1) != 1) {
          _exit(2);
        }
      });
      _exit(0);
    }
    close(pipe_fds[1]);
    in_ = pipe_fds[0];
  }
  ~ChildProcess() {
    Kill();
    close(in_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // False if the child ended without another signal.
  bool Wait() const {
    char byte = 0;
    return read(in_, &byte, 1) == 1;
  }

  // Returns when the child stands still.
  void Stop() const {
    kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  void Kill() {
    if (!reaped_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      reaped_ = true;
    }
  }
  // Waits for its end; -1 if a signal ended it.
  int ExitStatus() {
    int status = 0;
    waitpid(pid_, &status, 0);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // As `Kill`, but leaves the child a zombie until the destructor.
  void KillOnly() const {
    kill(pid_, SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  bool reaped_ = false;
};

}  // namespace heddle::sim::base
