// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/fault_watch.h"

#include <linux/vfio.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace heddle::vfio {

Result<std::unique_ptr<FaultWatch>> FaultWatch::Start(
    Kernel& kernel, int device_fd,
    std::function<void(const std::string&)> report,
    std::function<bool()> answers, std::string& message) {
  std::unique_ptr<FaultWatch> watch(new FaultWatch);
  watch->report_ = std::move(report);
  watch->answers_ = std::move(answers);
  Result<InterruptLine> error = InterruptLine::Open(
      kernel, device_fd, VFIO_PCI_ERR_IRQ_INDEX, 1, message);
  if (!error.ok()) {
    return error.error();
  }
  watch->error_ = std::move(error.value());
  Result<InterruptLine> request = InterruptLine::Open(
      kernel, device_fd, VFIO_PCI_REQ_IRQ_INDEX, 1, message);
  if (!request.ok()) {
    return request.error();
  }
  watch->request_ = std::move(request.value());
  const Result<int> stop = kernel.CreateEvent();
  if (!stop.ok()) {
    message = std::string("eventfd: ") +
              std::strerror(static_cast<int>(stop.error()));
    return stop.error();
  }
  watch->stop_ = KernelFd(kernel, stop.value());

  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  Errno failure{0};
  try {
    watch->thread_ = std::thread([raw = watch.get()] { raw->Run(); });
    pthread_setname_np(watch->thread_.native_handle(), "heddle-vfio");
  } catch (const std::system_error& caught) {
    message = std::string("thread: ") + caught.what();
    failure = Errno{EAGAIN};
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (failure != Errno{0}) {
    return failure;
  }
  return watch;
}

FaultWatch::~FaultWatch() {
  if (thread_.joinable()) {
    constexpr uint64_t kOne = 1;
    // An eventfd takes 8 bytes unless it is full.
    [[maybe_unused]] const ssize_t told =
        write(stop_.fd(), &kOne, sizeof(kOne));
    thread_.join();
  }
}

void FaultWatch::Run() {
  std::array<pollfd, 3> fds = {{{stop_.fd(), POLLIN, 0},
                                {error_.fd(0), POLLIN, 0},
                                {request_.fd(0), POLLIN, 0}}};
  constexpr int kLookEveryMs = 1000;
  bool there = true;
  for (;;) {
    const int ready = poll(fds.data(), fds.size(), there ? kLookEveryMs : -1);
    if (ready < 0) {
      if (errno == EINTR) {
        continue;
      }
      report_(std::string("poll: ") + std::strerror(errno));
      return;
    }
    if (ready == 0 && !answers_()) {
      there = false;
      report_(
          "does not answer (registers read as all ones); it is lost or powered "
          "down, reset or rescan it");
      continue;
    }
    if (fds[0].revents != 0) {
      return;
    }
    // A negative descriptor is left out from then on.
    if (fds[1].revents != 0) {
      fds[1].fd = -1;
      report_("the kernel reports an uncorrected PCIe error; see its log");
    }
    if (fds[2].revents != 0) {
      fds[2].fd = -1;
      report_(
          "the kernel requests the function (unplug or unbind); close the "
          "domain");
    }
  }
}

}  // namespace heddle::vfio
