// SPDX-License-Identifier: Apache-2.0
// heddle regs: the registers of BAR0, but for the statistics.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "hw/contract/gen/heddle_text.h"
#include "tools/heddle/command.h"
#include "tools/heddle/device_choice.h"

namespace heddle::tool {
namespace {

namespace text = contract::text;
using Json = nlohmann::ordered_json;

uint64_t Read(Device& device, const text::Register& what) {
  constexpr uint8_t kWide = 64;
  return what.bits == kWide ? device.ReadRegister64(what.offset)
                            : device.ReadRegister32(what.offset);
}

uint64_t Part(uint64_t value, const text::Bits& bits) {
  return value >> bits.lsb & ((uint64_t{1} << bits.bits) - 1);
}

Json Describe(const text::Register& what, uint64_t value) {
  Json entry = {{"name", what.name},
                {"offset", what.offset},
                {"bits", what.bits},
                {"value", value}};
  for (const text::Bits& bits : what.fields) {
    entry["fields"][bits.name] = Part(value, bits);
  }
  return entry;
}

void Print(const text::Register& what, uint64_t value) {
  constexpr int kBitsPerDigit = 4;
  const int digits = what.bits / kBitsPerDigit;
  std::printf("0x%04x  %-20s %*s0x%0*" PRIx64, what.offset, what.name,
              16 - digits, "", digits, value);
  for (const text::Bits& bits : what.fields) {
    std::printf("  %s=%" PRIu64, bits.name, Part(value, bits));
  }
  std::printf("\n");
}

}  // namespace

int ShowRegisters(const DeviceCommandOptions& options) {
  const OpenedDevice opened = OpenChosen(options.device);
  Json registers = Json::array();
  for (const text::Register& what : text::kBar0Registers) {
    if (what.count != 1) {
      continue;  // The statistics have a command of their own.
    }
    const uint64_t value = Read(*opened.device, what);
    if (options.json) {
      registers.push_back(Describe(what, value));
    } else {
      Print(what, value);
    }
  }
  if (options.json) {
    const Json out = {{"device", opened.device->name()},
                      {"registers", registers}};
    std::printf("%s\n", out.dump(2).c_str());
  }
  return kOk;
}

}  // namespace heddle::tool
