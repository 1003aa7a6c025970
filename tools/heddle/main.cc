// SPDX-License-Identifier: Apache-2.0
// The command `heddle`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "host/lib/entry/services.h"
#include "tools/heddle/command.h"
#include "tools/heddle/settings_state.h"

namespace heddle::tool {
namespace {

constexpr const char* kStatsHelp =
    "Counters of the device, of what a program did with it, or from a file.\n"
    "A simulated device belongs to the process that opened it: without "
    "arguments\nthis opens one of its own, which has counted next to nothing. "
    "For those of a\nprogram, run it with `heddle stats -- PROGRAM "
    "ARGUMENT...`";

// What was asked for.
struct Request {
  bool json = false;
  bool manual = false;
  bool no_crc = false;
  DecodeOptions decode;
  StatsOptions stats;
  PciOptions pci;
  DeviceCommandOptions device;
};

constexpr const char* kDeviceHelp =
    "soft or rtl, one of this command's own, or the PCI address of a function "
    "that vfio-pci drives; without it what FI_HEDDLE_DEVICE says";

void AddPci(CLI::App& app, Request& request) {
  CLI::App* const list = app.add_subcommand(
      "list",
      "NICs in PCI: driver, IOMMU group, NUMA node, link, contract version");
  CLI::App* const bind = app.add_subcommand(
      "bind", "Give a PCI function to vfio-pci, and to it alone");
  CLI::App* const unbind = app.add_subcommand(
      "unbind", "Take a PCI function from vfio-pci; the kernel chooses again");
  for (CLI::App* const command : {list, bind, unbind}) {
    command->add_flag("--json", request.json, "Print one JSON object");
    command->add_option("--sysfs", request.pci.sysfs, "Where sysfs is")
        ->group("");  // For tests.
  }
  for (CLI::App* const command : {bind, unbind}) {
    command
        ->add_option("FUNCTION", request.pci.address,
                     "PCI address, such as 0000:01:00.0")
        ->required();
  }
}

void AddDevice(CLI::App& app, Request& request) {
  CLI::App* const reset =
      app.add_subcommand("reset", "Bring a device to its power-on state");
  CLI::App* const regs =
      app.add_subcommand("regs", "Print the registers of a device");
  CLI::App* const selftest = app.add_subcommand(
      "selftest",
      "Bring a device up step by step: identity, registers, host memory, "
      "interrupts, wire, rings; each step says what it proved");
  for (CLI::App* const command : {reset, regs, selftest}) {
    command->add_flag("--json", request.json, "Print one JSON object");
    command->add_option("DEVICE", request.device.device, kDeviceHelp);
  }
}

void AddInfo(CLI::App& app, Request& request) {
  CLI::App* const info = app.add_subcommand(
      "info",
      "Devices with address, link, contract, capabilities and limits, or why "
      "there is none");
  info->add_flag("--json", request.json, "Print one JSON object");
}

void AddParams(CLI::App& app, Request& request) {
  CLI::App* const params = app.add_subcommand(
      "params", "Every variable FI_HEDDLE_*: range, default, meaning, value");
  params->add_flag("--json", request.json, "Print one JSON object");
  params->add_flag("--man", request.manual, "Print a part of the manual page")
      ->group("");  // Not in the help.
}

void AddDecode(CLI::App& app, Request& request) {
  CLI::App* const decode = app.add_subcommand(
      "decode", "Frames of a capture, a line each; `!!` marks what is wrong");
  decode
      ->add_option("FILE", request.decode.file,
                   "pcap or pcapng file; - for standard input")
      ->required();
  decode->add_flag("-v,--verbose", request.decode.verbose,
                   "Print every field and the payload");
  decode->add_flag("--no-crc", request.no_crc,
                   "Datagrams do not end with a CRC; nothing in them says so");
  const core::SettingRow& protocol = SettingNamed("IP_PROTOCOL");
  const auto take_protocol = [&request, &protocol](const std::string& text) {
    contract::Settings settings;
    if (!protocol.parse(text, &settings)) {
      throw CLI::ValidationError(
          contract::SettingRefusal(protocol, "--ip-protocol", text));
    }
    request.decode.form.ip_protocol = settings.ip_protocol;
  };
  decode
      ->add_option_function<std::string>(
          "--ip-protocol", take_protocol,
          "Protocol number of UET without UDP, as in " + protocol.variable() +
              ", which is its default, else " + protocol.default_value)
      ->envname(protocol.variable())
      ->option_text("NUMBER");
  decode->add_flag("--json", request.json,
                   "Print a JSON object per frame and line");
}

void AddStats(CLI::App& app, Request& request) {
  CLI::App* const stats = app.add_subcommand("stats", kStatsHelp);
  stats->add_flag("--json", request.json,
                  "Print one JSON object, with those that are 0");
  stats->add_flag("-a,--all", request.stats.all, "Print those that are 0, too");
  auto* const file = stats->add_option(
      "-f,--file", request.stats.file,
      "File that programs wrote by FI_HEDDLE_STATISTICS; sums over devices");
  auto* const watch =
      stats
          ->add_option("-w,--watch", request.stats.watch_seconds,
                       "Print what was counted in each so many seconds (1), "
                       "until ended; JSON: an object per line")
          ->expected(0, 1)
          ->default_str("1")
          ->check(CLI::Range(0.01, 86400.0))
          ->excludes(file);
  stats
      ->add_option("-n,--times", request.stats.watch_times, "End after so many")
      ->needs(watch);
  auto* const device =
      stats->add_option("-d,--device", request.stats.device, kDeviceHelp)
          ->excludes(file);
  stats
      ->add_option("PROGRAM", request.stats.command,
                   "Program to run, behind --, and its arguments")
      ->excludes(file)
      ->excludes(watch)
      ->excludes(device);
}

int Run(const std::string& command, Request& request) {
  if (command == "info") {
    return ShowInfo(request.json);
  }
  if (command == "params") {
    return request.manual ? PrintManual() : ShowParams(request.json);
  }
  if (command == "decode") {
    request.decode.json = request.json;
    request.decode.form.has_crc = !request.no_crc;
    return Decode(request.decode);
  }
  if (command == "stats") {
    request.stats.json = request.json;
    return request.stats.watch_seconds > 0 || !request.stats.device.empty()
               ? WatchStats(request.stats)
               : ShowStats(request.stats);
  }
  request.pci.json = request.json;
  request.device.json = request.json;
  return command == "list"     ? ListFunctions(request.pci)
         : command == "bind"   ? BindFunction(request.pci, /*bind=*/true)
         : command == "unbind" ? BindFunction(request.pci, /*bind=*/false)
         : command == "reset"  ? ResetDevice(request.device)
         : command == "regs"   ? ShowRegisters(request.device)
                               : SelfTest(request.device);
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Looks at Heddle NICs, their settings and their traffic, and brings them "
      "up.");
  app.name("heddle");
  app.set_version_flag("--version", std::string("heddle ") + HEDDLE_VERSION);
  app.require_subcommand(0, 1);  // None is looked for below.
  app.footer(
      "Exit code: 0 done; 1 failed, or found what is not as it should be; 2 "
      "not understood.");
  Request request;
  AddInfo(app, request);
  AddParams(app, request);
  AddDecode(app, request);
  AddStats(app, request);
  AddPci(app, request);
  AddDevice(app, request);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // Help or version.
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return kBadUsage;
  }
  if (app.get_subcommands().empty()) {
    std::cerr << "A subcommand is required\nRun with --help for more "
                 "information.\n";
    return kBadUsage;
  }
  return Run(app.get_subcommands().front()->get_name(), request);
}

}  // namespace
}  // namespace heddle::tool

int main(int argc, char** argv) {
  using heddle::tool::kFailed;
  try {
    heddle::entry::UseThisCore();  // For FI_LOG_LEVEL.
    const int status = heddle::tool::Main(argc, argv);
    if (std::fflush(stdout) != 0) {
      std::cerr << "heddle: standard output: cannot be written\n";
      return kFailed;
    }
    return status;
  } catch (const heddle::tool::CommandError& error) {
    std::cerr << "heddle: " << error.what() << '\n';
  } catch (const std::bad_alloc&) {
    std::cerr << "heddle: out of memory\n";
  } catch (const std::exception& error) {
    std::cerr << "heddle: " << error.what() << '\n';
  }
  return kFailed;
}
