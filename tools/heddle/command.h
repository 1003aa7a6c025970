// SPDX-License-Identifier: Apache-2.0
// The commands of `heddle`, without their command lines.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "tools/heddle/frame.h"

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
  FrameForm form;
};
int Decode(const DecodeOptions& options);

int ShowParams(bool json);

// The settings as a part of a manual page, in troff's man macros.
int PrintManual();

int ShowInfo(bool json);

inline constexpr const char* kSysfs = "/sys";

struct PciOptions {
  bool json = false;
  std::string address;         // PCI address of a function.
  std::string sysfs = kSysfs;  // Tests bring their own.
};
int ListFunctions(const PciOptions& options);
// Gives the function to vfio-pci, or back.
int BindFunction(const PciOptions& options, bool bind);

struct DeviceCommandOptions {
  bool json = false;
  std::string device;  // As `OpenChosen` takes it.
};
int ResetDevice(const DeviceCommandOptions& options);
int ShowRegisters(const DeviceCommandOptions& options);
int SelfTest(const DeviceCommandOptions& options);

struct StatsOptions {
  bool json = false;
  bool all = false;                  // Also those that are 0.
  std::string file;                  // Written by FI_HEDDLE_STATISTICS.
  std::string device;                // To watch; as `OpenChosen` takes it.
  double watch_seconds = 0;          // 0: once.
  unsigned watch_times = 0;          // 0: until it is ended.
  std::vector<std::string> command;  // A program to run, with its arguments.
};
int ShowStats(const StatsOptions& options);
// Prints the statistics of `device` periodically.
int WatchStats(const StatsOptions& options);

}  // namespace heddle::tool
