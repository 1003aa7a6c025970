// SPDX-License-Identifier: Apache-2.0
// heddle-wire: lists who is on a one-machine wire, takes links down and up,
// resets NICs.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
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

int Usage() {
  std::fputs(kUsage, stderr);
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

int Main(std::vector<std::string> words) {
  const char* const variable = secure_getenv("FI_HEDDLE_WIRE");
  std::string name = variable == nullptr ? "" : variable;
  if (words.size() >= 2 && words[0] == "-w") {
    name = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  const bool list = words.size() == 1 && words[0] == "list";
  const bool set =
      (words.size() == 2 || words.size() == 3) &&
      (words[0] == "up" || words[0] == "down" || words[0] == "reset");
  WireAddress address;
  std::optional<uint8_t> slot;
  if (set) {
    if (words.size() == 3) {
      slot = ParseSlot(words[2]);
    }
    if (!ParseWireAddress(words[1], &address) || (words.size() == 3 && !slot)) {
      return Usage();
    }
  } else if (!list) {
    return Usage();
  }
  std::string message;
  auto control = WireControl::Open(name, &message);
  if (!control.ok()) {
    std::fprintf(stderr, "heddle-wire: %s\n", message.c_str());
    return 1;
  }
  if (list) {
    return List(control.value());
  }
  const uint32_t count =
      words[0] == "reset"
          ? control.value().Reset(address, slot)
          : control.value().SetLink(address, slot, words[0] == "up");
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
