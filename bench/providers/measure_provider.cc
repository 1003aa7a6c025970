// SPDX-License-Identifier: Apache-2.0
// Measures one provider between two processes of this machine, or within one.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "bench/providers/peer.h"

namespace heddle::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  PeerOptions peer;
  std::string what = "latency";
  uint32_t rounds = 1000;
  uint32_t window = 64;
};

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

// Half of each round trip in microseconds, as the one that begins sees it.
std::vector<double> MeasureLatency(Peer* peer, const Options& options,
                                   bool begins, uint32_t rounds) {
  std::vector<double> halves;
  for (uint32_t i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    if (begins) {
      peer->Send(options.peer.bytes);
    }
    peer->WaitForReceives();
    peer->PostReceive();
    if (!begins) {
      peer->Send(options.peer.bytes);
    }
    peer->WaitForTransmits();
    halves.push_back(MicrosecondsSince(start) / 2);
  }
  return halves;
}

// Microseconds of each window of messages, until the receiver has reported all
// of them.
std::vector<double> MeasureMessages(Peer* peer, const Options& options,
                                    bool sends, uint32_t rounds) {
  std::vector<double> times;
  for (uint32_t i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    if (sends) {
      for (uint32_t j = 0; j < options.window; ++j) {
        peer->Send(options.peer.bytes);
      }
      peer->WaitForReceives();
      peer->WaitForTransmits();
      peer->PostReceive();
    } else {
      peer->WaitForReceives();
      for (uint32_t j = 0; j < options.window; ++j) {
        peer->PostReceive();
      }
      peer->Send(1);
      peer->WaitForTransmits();
    }
    times.push_back(MicrosecondsSince(start));
  }
  return times;
}

// The same for writes, complete as their initiator sees it.
std::vector<double> MeasureWrites(Peer* peer, const Options& options,
                                  bool writes, uint32_t rounds) {
  std::vector<double> times;
  for (uint32_t i = 0; writes && i < rounds; ++i) {
    const auto start = Clock::now();
    for (uint32_t j = 0; j < options.window; ++j) {
      peer->Write();
    }
    peer->WaitForTransmits();
    times.push_back(MicrosecondsSince(start));
  }
  if (writes) {
    peer->Send(1);  // The other side polls until then.
  } else {
    peer->WaitForReceives();
    peer->PostReceive();
  }
  return times;
}

// Microseconds of each message from post to completion at both ends, one thread
// polling both.
std::vector<double> MeasureWhole(Peer* from, Peer* to, const Options& options,
                                 uint32_t rounds) {
  std::vector<double> times;
  for (uint32_t i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    to->PostReceive();
    bool sent = false;
    while (!sent || !to->complete() || !from->complete()) {
      sent = sent || from->TrySend(options.peer.bytes);
      (void)to->Poll();
      (void)from->Poll();
    }
    times.push_back(MicrosecondsSince(start));
  }
  return times;
}

std::vector<double> Measure(Peer* peer, const Options& options, bool first,
                            uint32_t rounds) {
  if (options.what == "latency") {
    return MeasureLatency(peer, options, first, rounds);
  }
  return options.peer.writes ? MeasureWrites(peer, options, first, rounds)
                             : MeasureMessages(peer, options, first, rounds);
}

void Print(const Options& options, const char* provider,
           std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](size_t percent) {
    return times.at((times.size() - 1) * percent / 100);
  };
  const double window = options.window;
  const double bytes = static_cast<double>(options.peer.bytes);
  std::printf("%s %s %zu p10_us %.3f p50_us %.3f p90_us %.3f", provider,
              options.what.c_str(), options.peer.bytes, at(10), at(50), at(90));
  if (options.what == "messages" || options.what == "writes") {
    std::printf(" messages_per_s %.0f megabytes_per_s %.1f",
                window * 1e6 / at(50), window * bytes / at(50));
  }
  std::printf("\n");
  (void)std::fflush(stdout);
}

uint32_t WarmUp(const Options& options) {
  return options.rounds / 10 + 5;
}

int RunBothSides(const Options& options, const Link& one, const Link& other) {
  Peer from(options.peer, one);
  Peer to(options.peer, other);
  from.Meet();
  to.Meet();
  (void)MeasureWhole(&from, &to, options, WarmUp(options));
  Print(options, from.provider(),
        MeasureWhole(&from, &to, options, options.rounds));
  return 0;
}

int RunSide(const Options& options, const Link& link, bool first) {
  Peer peer(options.peer, link);
  peer.Meet();
  const bool sends = options.what == "messages";
  const uint32_t receives = !first && sends ? options.window : 1;
  for (uint32_t i = 0; i < receives; ++i) {
    peer.PostReceive();
  }
  (void)Measure(&peer, options, first, WarmUp(options));
  const auto times = Measure(&peer, options, first, options.rounds);
  if (first) {
    Print(options, peer.provider(), times);
  }
  peer.Finish();
  return 0;
}

int Run(int argc, char** argv) {
  CLI::App app(
      "Half round trips (latency), messages or writes between two processes, "
      "or whole messages within one, of the provider that FI_PROVIDER names.");
  Options options;
  app.add_option("what", options.what)
      ->check(CLI::IsMember({"latency", "messages", "writes", "whole"}))
      ->required();
  app.add_option("--bytes", options.peer.bytes, "Bytes of a message")
      ->check(CLI::Range(1U, 1U << 30U));
  app.add_option("--rounds", options.rounds, "Round trips or windows")
      ->check(CLI::Range(1U, 100'000'000U));
  app.add_option("--window", options.window, "Messages per window")
      ->check(CLI::Range(1U, static_cast<uint32_t>(Peer::kMaxWindow)));
  CLI11_PARSE(app, argc, argv);
  options.peer.writes = options.what == "writes";
  std::array<int, 2> there{};
  std::array<int, 2> back{};
  if (pipe(there.data()) != 0 || pipe(back.data()) != 0) {
    throw std::runtime_error("no pipes");
  }
  if (options.what == "whole") {
    return RunBothSides(options, {.in = back[0], .out = there[1]},
                        {.in = there[0], .out = back[1]});
  }
  const pid_t child = fork();
  if (child == 0) {
    (void)close(there[1]);
    return RunSide(options, {.in = there[0], .out = back[1]}, false);
  }
  (void)close(back[1]);
  const int result = RunSide(options, {.in = back[0], .out = there[1]}, true);
  int status = 0;
  (void)waitpid(child, &status, 0);
  return result != 0 ? result : WEXITSTATUS(status);
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) try {
  return heddle::bench::Run(argc, argv);
} catch (const std::exception& e) {
  std::fprintf(stderr, "heddle_measure_provider: %s\n", e.what());
  return 1;
} catch (...) {
  return 1;
}
