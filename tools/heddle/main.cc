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
    "arguments\nthis opens a device of its own, whose counters are close to 0. "
    "For a program,\nrun `heddle stats -- PROGRAM ARGUMENT...`";

// The parsed command line.
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
    "soft or rtl, private to this command, or the PCI address of a function "
    "bound to vfio-pci; default: FI_HEDDLE_DEVICE";

void AddPci(CLI::App& app, Request& request) {
  CLI::App* const list = app.add_subcommand(
      "list",
      "NICs in PCI: driver, IOMMU group, NUMA node, link, contract version");
  CLI::App* const bind =
      app.add_subcommand("bind", "Bind a PCI function to vfio-pci exclusively");
  CLI::App* const unbind = app.add_subcommand(
      "unbind", "Unbind a PCI function from vfio-pci and clear its override");
  for (CLI::App* const command : {list, bind, unbind}) {
    command->add_flag("--json", request.json, "Print one JSON object");
    command->add_option("--sysfs", request.pci.sysfs, "Mount point of sysfs")
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
      app.add_subcommand("reset", "Reset a device to its power-on state");
  CLI::App* const regs =
      app.add_subcommand("regs", "Print the registers of a device");
  CLI::App* const selftest = app.add_subcommand(
      "selftest",
      "Test a device step by step: identity, registers, host memory, "
      "interrupts, wire, rings; print the result of each step");
  for (CLI::App* const command : {reset, regs, selftest}) {
    command->add_flag("--json", request.json, "Print one JSON object");
    command->add_option("DEVICE", request.device.device, kDeviceHelp);
  }
}

void AddInfo(CLI::App& app, Request& request) {
  CLI::App* const info = app.add_subcommand(
      "info",
      "List devices with address, link, contract, capabilities and limits, or "
      "the reason why there is none");
  info->add_flag("--json", request.json, "Print one JSON object");
}

void AddParams(CLI::App& app, Request& request) {
  CLI::App* const params = app.add_subcommand(
      "params", "List variables FI_HEDDLE_*: range, default, meaning, value");
  params->add_flag("--json", request.json, "Print one JSON object");
  params->add_flag("--man", request.manual, "Print a part of the manual page")
      ->group("");  // Not in the help.
}

void AddDecode(CLI::App& app, Request& request) {
  CLI::App* const decode = app.add_subcommand(
      "decode",
      "Print the frames of a capture, one per line; `!!` marks errors");
  decode
      ->add_option("FILE", request.decode.file,
                   "pcap or pcapng file; - for standard input")
      ->required();
  decode->add_flag("-v,--verbose", request.decode.verbose,
                   "Print every field and the payload");
  decode->add_flag("--no-crc", request.no_crc,
                   "Datagrams do not end with a CRC; this is not detected");
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
          "Protocol number of UET without UDP; default: " +
              protocol.variable() + ", else " + protocol.default_value)
      ->envname(protocol.variable())
      ->option_text("NUMBER");
  decode->add_flag("--json", request.json,
                   "Print a JSON object per frame and line");
}

void AddStats(CLI::App& app, Request& request) {
  CLI::App* const stats = app.add_subcommand("stats", kStatsHelp);
  stats->add_flag("--json", request.json,
                  "Print one JSON object, including counters that are 0");
  stats->add_flag("-a,--all", request.stats.all,
                  "Print counters that are 0, too");
  auto* const file =
      stats->add_option("-f,--file", request.stats.file,
                        "File that programs wrote with FI_HEDDLE_STATISTICS; "
                        "summed over devices");
  auto* const watch =
      stats
          ->add_option("-w,--watch", request.stats.watch_seconds,
                       "Print the increments every SECONDS (1) until "
                       "interrupted; JSON: an object per line")
          ->expected(0, 1)
          ->default_str("1")
          ->check(CLI::Range(0.01, 86400.0))
          ->excludes(file);
  stats
      ->add_option("-n,--times", request.stats.watch_times, "Number of reports")
      ->needs(watch);
  auto* const device =
      stats->add_option("-d,--device", request.stats.device, kDeviceHelp)
          ->excludes(file);
  stats
      ->add_option("PROGRAM", request.stats.command,
                   "Program to run and its arguments, following --")
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
      "Inspects Heddle NICs, their settings and their traffic, and tests "
      "them.");
  app.name("heddle");
  app.set_version_flag("--version", std::string("heddle ") + HEDDLE_VERSION);
  app.require_subcommand(0, 1);  // None is looked for below.
  app.footer(
      "Exit code: 0 success; 1 the command failed or found an error; 2 invalid "
      "command line.");
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
