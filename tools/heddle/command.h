// SPDX-License-Identifier: Apache-2.0
// The commands of `heddle`, without their command lines.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace heddle::tool {

// Exit codes of `heddle`.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;    // A command failed, or found damage.
inline constexpr int kBadUsage = 2;  // It was not understood.

// Why a command failed: one line with object, cause and cure.
class CommandError : public std::runtime_error {
 public:
  explicit CommandError(const std::string& message)
      : std::runtime_error(message) {}
};

// Each prints to standard output and returns an exit code; throws CommandError.

struct DecodeOptions {
  std::string file;  // pcap or pcapng; "-": standard input.
  bool verbose = false;
  bool json = false;
  bool has_crc = true;
};
int Decode(const DecodeOptions& options);

int ShowParams(bool json);

// The settings as a part of a manual page, in troff's man macros.
int PrintManual();

int ShowInfo(bool json);

struct StatsOptions {
  bool json = false;
  bool all = false;                  // Also those that are 0.
  std::string file;                  // Written by FI_HEDDLE_STATISTICS.
  std::vector<std::string> command;  // A program to run, with its arguments.
};
int ShowStats(const StatsOptions& options);

}  // namespace heddle::tool
