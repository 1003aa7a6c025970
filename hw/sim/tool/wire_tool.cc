// SPDX-License-Identifier: Apache-2.0
// heddle-wire: lists who is on a one-machine wire, takes links down and up,
// resets NICs, taps it.
#include <pthread.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <system_error>

#include "hw/contract/gen/heddle_settings.h"
#include "hw/contract/settings/row.h"
#include "hw/sim/device/settings.h"
#include "hw/sim/frame/route.h"
#include "hw/sim/wire/wire_control.h"
#include "hw/sim/wire/wire_tap.h"

namespace heddle::sim::tool {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

// The parsed command line.
struct Request {
  std::string wire;
  frame::WireAddress address;
  std::optional<uint32_t> function;
  std::string socket;
  contract::Settings settings;  // Only `crc` and `ip_protocol`.
};

int Complain(const std::string& what, int code) {
  std::fprintf(stderr, "heddle-wire: %s\n", what.c_str());
  return code;
}

int Misunderstand(const std::string& what) {
  return Complain(what + "; see --help", kBadUsage);
}

std::optional<uint32_t> ParseFunction(const std::string& text) {
  uint32_t function = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, function);
  if (result.ec != std::errc() || result.ptr != end ||
      function >= wire::kMaxPorts) {
    return std::nullopt;
  }
  return function;
}

void AddAddress(CLI::App* command, Request* request, const char* what) {
  const auto take_address = [request](const std::string& text) {
    if (!frame::ParseWireAddress(text, &request->address)) {
      throw CLI::ValidationError(
          "'" + text + "' is not an IP address; heddle-wire list shows them");
    }
  };
  command->add_option_function<std::string>("ADDRESS", take_address, what)
      ->required();
}

void AddFunction(CLI::App* command, Request* request) {
  AddAddress(command, request, "IP address of functions");
  const auto take_function = [request](const std::string& text) {
    request->function = ParseFunction(text);
    if (!request->function) {
      throw CLI::ValidationError("'" + text +
                                 "' is not a function; they are 0 to " +
                                 std::to_string(wire::kMaxPorts - 1));
    }
  };
  command->add_option_function<std::string>(
      "FUNCTION", take_function,
      "Function with this number, as shown by list; default: all");
}

// The value of an option of `command` that is one of a simulated device.
void AddSetting(CLI::App* command, Request* request, const std::string& flag,
                const char* option, const std::string& help) {
  const contract::SettingRow* const row = device::FindOption(option);
  command
      ->add_option_function<std::string>(
          flag,
          [=](const std::string& text) {
            if (!row->parse(text, &request->settings)) {
              throw CLI::ValidationError(
                  contract::SettingRefusal(*row, flag, text));
            }
          },
          help + ", as in " + row->variable() +
              ", which is its default, else " + row->default_value + ": " +
              row->range)
      ->envname(row->variable())
      ->option_text("VALUE");
}

void AddTap(CLI::App* command, Request* request) {
  AddAddress(command, request, "IP address that no function has");
  command->add_option("SOCKET", request->socket, "Path of the UNIX socket")
      ->required();
  AddSetting(command, request, "--crc", "crc",
             "Order of the end-to-end CRC on the wire");
  AddSetting(command, request, "--ip-protocol", "ip_protocol",
             "Protocol number of UET without UDP on the wire");
  command->footer(
      "The socket is of type SOCK_SEQPACKET: each message is an Ethernet frame "
      "without FCS. All frames to ADDRESS reach its one client, which may send "
      "IP packets and ARP messages from ADDRESS. Prints a line when it is "
      "ready, and the counts of frames when SIGINT or SIGTERM ends "
      "it.\nheddle-wire -w lab tap 10.0.0.9 /run/user/1000/tap");
}

void Describe(CLI::App* app, Request* request) {
  app->name("heddle-wire");
  app->require_subcommand(0, 1);  // None is looked for later.
  app->fallthrough();
  app->add_option("-w", request->wire,
                  "Wire, as in FI_HEDDLE_WIRE, which is the default")
      ->option_text("WIRE");
  app->add_subcommand("list", "Functions on the wire, a line each");
  AddFunction(app->add_subcommand("up", "Take links up"), request);
  AddFunction(app->add_subcommand("down", "Take links down"), request);
  AddFunction(
      app->add_subcommand("reset", "Reset NICs while their owners use them"),
      request);
  AddTap(
      app->add_subcommand("tap", "Connect a program to the wire by a socket"),
      request);
  app->footer(
      "heddle-wire -w lab down 10.0.0.2 1\nExit code: 0 success; 1 failure, or "
      "no function is attached; 2 invalid command line.");
}

int List(const wire::WireControl& control) {
  for (const wire::WireControl::Port& port : control.Ports()) {
    std::printf("%s %s %u process %u link %s\n", port.address.Text().c_str(),
                port.tap ? "tap" : "function", port.function, port.pid,
                port.link_up ? "up" : "down");
  }
  return 0;
}

std::string MacText(uint64_t mac) {
  constexpr int kOctets = 6;
  std::string text;
  for (int octet = kOctets - 1; octet >= 0; --octet) {
    std::array<char, 4> part{};
    std::snprintf(part.data(), part.size(), "%02x%s",
                  static_cast<unsigned>(mac >> (octet * 8) & 0xff),
                  octet == 0 ? "" : ":");
    text += part.data();
  }
  return text;
}

void Report(const wire::WireTapCounts& counts) {
  std::printf("sent %" PRIu64 "\nreceived %" PRIu64 "\nlost %" PRIu64
              "\nrefused_length %" PRIu64 "\nrefused_source %" PRIu64
              "\ndropped_no_client %" PRIu64 "\ndropped_slow_client %" PRIu64
              "\ndropped_bad_fcs %" PRIu64 "\n",
              counts.sent, counts.received, counts.lost, counts.refused_length,
              counts.refused_source, counts.dropped_no_client,
              counts.dropped_slow_client, counts.dropped_bad_fcs);
}

int Tap(const Request& request) {
  // Before there are threads, so that no other one ends by them.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  const base::OwnedFd stop(signalfd(-1, &ending, SFD_CLOEXEC));
  if (!stop.valid()) {
    return Complain(std::string("signalfd: ") + std::strerror(errno), kFailed);
  }
  std::string message;
  const auto tap = wire::WireTap::Open(
      {.wire = request.wire == "default" ? std::string() : request.wire,
       .ip = request.address,
       .crc = request.settings.crc,
       .ip_protocol = request.settings.ip_protocol,
       .socket = request.socket},
      &message);
  if (!tap.ok()) {
    return Complain(message, kFailed);
  }
  std::printf("%s mac %s socket %s\n", request.address.Text().c_str(),
              MacText(tap.value()->mac()).c_str(), request.socket.c_str());
  std::fflush(stdout);
  if (!tap.value()->Run(stop.get())) {
    return kFailed;
  }
  Report(tap.value()->counts());
  return 0;
}

int Run(const std::string& command, const Request& request) {
  if (command == "tap") {
    return Tap(request);
  }
  std::string message;
  auto control = wire::WireControl::Open(request.wire, &message);
  if (!control.ok()) {
    return Complain(message, kFailed);
  }
  if (command == "list") {
    return List(control.value());
  }
  const uint32_t count =
      command == "reset"
          ? control.value().Reset(request.address, request.function)
          : control.value().SetLink(request.address, request.function,
                                    command == "up");
  return count == 0 ? Complain("no such function at " + request.address.Text(),
                               kFailed)
                    : 0;
}

int Main(int argc, char** argv) {
  Request request;
  if (const char* const wire = secure_getenv("FI_HEDDLE_WIRE")) {
    request.wire = wire;
  }
  CLI::App app(
      "Lists the functions on a one-machine wire, takes the links of those at "
      "an address up or down, or resets them.");
  Describe(&app, &request);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // Help.
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Misunderstand(error.what());
  }
  if (app.get_subcommands().empty()) {
    return Misunderstand("specify a command, such as heddle-wire list");
  }
  return Run(app.get_subcommands().front()->get_name(), request);
}

}  // namespace
}  // namespace heddle::sim::tool

int main(int argc, char** argv) {
  try {
    return heddle::sim::tool::Main(argc, argv);
  } catch (const std::exception& error) {
    return heddle::sim::tool::Complain(error.what(),
                                       heddle::sim::tool::kFailed);
  }
}
