// SPDX-License-Identifier: Apache-2.0
// heddle-wire: lists who is on a one-machine wire, takes links down and up,
// resets NICs.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>

#include "hw/sim/route.h"
#include "hw/sim/wire_control.h"

namespace heddle::sim {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

// What is asked for.
struct Request {
  std::string wire;
  WireAddress address;
  std::optional<uint32_t> function;
};

int Complain(const std::string& what, int code) {
  std::fprintf(stderr, "heddle-wire: %s\n", what.c_str());
  return code;
}

int Misunderstand(const std::string& what) {
  return Complain(what + "; --help says more", kBadUsage);
}

std::optional<uint32_t> ParseFunction(const std::string& text) {
  uint32_t function = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, function);
  if (result.ec != std::errc() || result.ptr != end || function >= kMaxPorts) {
    return std::nullopt;
  }
  return function;
}

void AddFunction(CLI::App* command, Request* request) {
  const auto take_address = [request](const std::string& text) {
    if (!ParseWireAddress(text, &request->address)) {
      throw CLI::ValidationError("'" + text +
                                 "' is no IP address; list shows them");
    }
  };
  const auto take_function = [request](const std::string& text) {
    request->function = ParseFunction(text);
    if (!request->function) {
      throw CLI::ValidationError("'" + text +
                                 "' is no function, which are 0 to " +
                                 std::to_string(kMaxPorts - 1));
    }
  };
  command
      ->add_option_function<std::string>("ADDRESS", take_address,
                                         "IP address of functions")
      ->required();
  command->add_option_function<std::string>(
      "FUNCTION", take_function,
      "The one of them with this number, as list shows it; else all");
}

void Describe(CLI::App* app, Request* request) {
  app->name("heddle-wire");
  app->require_subcommand(0, 1);  // None is looked for later.
  app->fallthrough();
  app->add_option("-w", request->wire,
                  "Which wire, as in FI_HEDDLE_WIRE, which is its default")
      ->option_text("WIRE");
  app->add_subcommand("list", "Functions on the wire, a line each");
  AddFunction(app->add_subcommand("up", "Take links up"), request);
  AddFunction(app->add_subcommand("down", "Take links down"), request);
  AddFunction(app->add_subcommand("reset", "Reset NICs under their owners"),
              request);
  app->footer(
      "heddle-wire -w lab down 10.0.0.2 1\n"
      "Exit code: 0 done; 1 failed, or no function is attached; 2 bad usage.");
}

int List(const WireControl& control) {
  for (const WireControl::Port& port : control.Ports()) {
    std::printf("%s function %u process %u link %s\n",
                port.address.Text().c_str(), port.function, port.pid,
                port.link_up ? "up" : "down");
  }
  return 0;
}

int Run(const std::string& command, const Request& request) {
  std::string message;
  auto control = WireControl::Open(request.wire, &message);
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
    return Misunderstand("say what to do, as in heddle-wire list");
  }
  return Run(app.get_subcommands().front()->get_name(), request);
}

}  // namespace
}  // namespace heddle::sim

int main(int argc, char** argv) {
  try {
    return heddle::sim::Main(argc, argv);
  } catch (const std::exception& error) {
    return heddle::sim::Complain(error.what(), heddle::sim::kFailed);
  }
}
