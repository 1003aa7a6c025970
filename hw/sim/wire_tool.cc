// SPDX-License-Identifier: Apache-2.0
// heddle-wire: lists who is on a one-machine wire, takes links down and up,
// resets NICs.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "hw/sim/route.h"
#include "hw/sim/wire_control.h"

namespace heddle::sim {
namespace {

constexpr const char* kUsage =
    "Usage: heddle-wire [-w WIRE] list\n"
    "       heddle-wire [-w WIRE] up|down|reset ADDRESS [SLOT]\n"
    "Lists the functions on a one-machine wire, takes the links of those at "
    "an\n"
    "address up or down, or resets them. WIRE is as in FI_HEDDLE_WIRE, which "
    "is\n"
    "its default.\n";

int Usage(const std::string& wrong) {
  std::fprintf(stderr, "heddle-wire: %s; --help says more\n", wrong.c_str());
  return 2;
}

int List(const WireControl& control) {
  for (const WireControl::Port& port : control.Ports()) {
    std::printf("%s slot %u process %u link %s\n", port.address.Text().c_str(),
                unsigned{port.slot}, port.pid, port.link_up ? "up" : "down");
  }
  return 0;
}

std::optional<uint8_t> ParseSlot(const std::string& text) {
  uint8_t slot = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, slot);
  if (result.ec != std::errc() || result.ptr != end || slot >= kSlots) {
    return std::nullopt;
  }
  return slot;
}

bool IsOneOf(const std::string& word, std::initializer_list<const char*> all) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

// What is asked for.
struct Request {
  std::string command;
  WireAddress address;
  std::optional<uint8_t> slot;
};

// What is wrong with the words; empty when nothing is.
std::string Parse(const std::vector<std::string>& words, Request* out) {
  if (words.empty()) {
    return "say what to do, as in heddle-wire list";
  }
  out->command = words[0];
  const bool list = out->command == "list";
  if (!list && !IsOneOf(out->command, {"up", "down", "reset"})) {
    return "'" + out->command + "' is none of list, up, down, reset";
  }
  const size_t most = list ? 1 : 3;
  if (words.size() > most) {
    return "'" + words[most] + "' is one word too many";
  }
  if (list) {
    return {};
  }
  if (words.size() < 2) {
    return out->command + " needs an address; heddle-wire list shows them";
  }
  if (!ParseWireAddress(words[1], &out->address)) {
    return "'" + words[1] + "' is no IP address";
  }
  if (words.size() == 3) {
    out->slot = ParseSlot(words[2]);
    if (!out->slot) {
      return "'" + words[2] + "' is no slot, which are 0 to " +
             std::to_string(kSlots - 1);
    }
  }
  return {};
}

int Main(std::vector<std::string> words) {
  if (!words.empty() && IsOneOf(words[0], {"-h", "--help"})) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const char* const variable = secure_getenv("FI_HEDDLE_WIRE");
  std::string name = variable == nullptr ? "" : variable;
  if (!words.empty() && words[0] == "-w") {
    if (words.size() == 1) {
      return Usage("-w needs the name of a wire");
    }
    name = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  Request request;
  if (const std::string wrong = Parse(words, &request); !wrong.empty()) {
    return Usage(wrong);
  }
  std::string message;
  auto control = WireControl::Open(name, &message);
  if (!control.ok()) {
    std::fprintf(stderr, "heddle-wire: %s\n", message.c_str());
    return 1;
  }
  if (request.command == "list") {
    return List(control.value());
  }
  const uint32_t count =
      request.command == "reset"
          ? control.value().Reset(request.address, request.slot)
          : control.value().SetLink(request.address, request.slot,
                                    request.command == "up");
  if (count == 0) {
    std::fprintf(stderr, "heddle-wire: no such function at %s\n",
                 words[1].c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace heddle::sim

int main(int count, char** words) {
  try {
    return heddle::sim::Main({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "heddle-wire: %s\n", error.what());
    return 1;
  }
}
