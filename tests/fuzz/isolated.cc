// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/isolated.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

namespace heddle::fuzz {
namespace {

constexpr size_t kMaxPoints = 65536;
constexpr uint32_t kMostHits = 255;

// What libFuzzer reads as coverage, besides instrumented code.
__attribute__((used, section("__libfuzzer_extra_counters")))
uint8_t extra_counters[kMaxPoints];

uint8_t* SharedCounters() {
  static auto* const shared =
      static_cast<uint8_t*>(mmap(nullptr, kMaxPoints, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (shared == MAP_FAILED) {
    std::perror("mmap");
    std::abort();
  }
  return shared;
}

[[noreturn]] void RunChild(const CoveragePoints& points,
                           const std::function<void()>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM}) {
    std::signal(signal, SIG_DFL);
  }
  for (uint32_t* point : points) {
    *point = 0;
  }
  BeginInput();
  int status = EXIT_SUCCESS;
  try {
    body();
  } catch (const std::exception& broken) {
    std::fprintf(stderr, "PROPERTY: %s\n", broken.what());
    status = EXIT_FAILURE;
  }
  uint8_t* const shared = SharedCounters();
  for (size_t i = 0; i < std::min(points.size(), kMaxPoints); ++i) {
    shared[i] = static_cast<uint8_t>(std::min(*points[i], kMostHits));
  }
  _exit(status);
}

}  // namespace

void RunIsolated(const FuzzNic& nic, const std::function<void()>& body) {
  uint8_t* const shared = SharedCounters();
  nic.InheritMemory();
  const pid_t child = fork();
  if (child < 0) {
    std::perror("fork");
    std::abort();
  }
  if (child == 0) {
    RunChild(nic.points(), body);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  std::copy_n(shared, kMaxPoints, extra_counters);
  if (status != 0) {
    if (WIFSIGNALED(status)) {
      std::fprintf(stderr, "PROPERTY: the simulation ended by signal %d\n",
                   WTERMSIG(status));
    }
    std::abort();
  }
}

namespace {

constexpr std::array<Form, kScenes / 4> kForms{{
    {},
    {.ipv6 = true, .vlan = 5, .crc = contract::CrcOrder::kLsbFirst},
    {.crc = contract::CrcOrder::kNone},
}};

// An eighth of the numbers.
bool IsNative(uint8_t form) {
  return (form & 0xe0) == 0x80;
}

}  // namespace

size_t SceneNumber(uint8_t form, bool rud) {
  return form % kForms.size() +
         kForms.size() * ((rud ? 1U : 0U) + (IsNative(form) ? 2U : 0U));
}

Scene& SceneOf(uint8_t form, bool rud) {
  // Never destroyed: the process may end in the middle of anything.
  static auto* const scenes = new std::array<std::unique_ptr<Scene>, kScenes>;
  auto& scene = (*scenes)[SceneNumber(form, rud)];
  if (scene == nullptr) {
    Form of = kForms[form % kForms.size()];
    of.native = IsNative(form);
    of.rud = rud;
    scene = std::make_unique<Scene>(of);
  }
  return *scene;
}

}  // namespace heddle::fuzz
