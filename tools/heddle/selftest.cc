// SPDX-License-Identifier: Apache-2.0
// heddle selftest: tests a device step by step and prints the results.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/heddle/command.h"
#include "tools/heddle/device_choice.h"
#include "tools/heddle/ladder.h"

namespace heddle::tool {

int SelfTest(const DeviceCommandOptions& options) {
  const OpenedDevice opened = OpenChosen(options.device);
  Ladder ladder(*opened.device);
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  bool passed = true;
  for (const Ladder::Step& step : Ladder::kSteps) {
    std::string says;
    try {
      says = (ladder.*step.run)();
    } catch (const CommandError& error) {
      says = error.what();
      passed = false;
    }
    steps.push_back({{"step", step.name},
                     {"passed", passed},
                     {passed ? "proved" : "reason", says}});
    if (!options.json) {
      std::printf("%-7s %-11s %s\n", passed ? "ok" : "FAILED", step.name,
                  says.c_str());
      std::fflush(stdout);
    }
    if (!passed) {
      break;  // Those above it stand on this one.
    }
  }
  if (options.json) {
    const nlohmann::ordered_json out = {{"device", opened.device->name()},
                                        {"passed", passed},
                                        {"steps", steps}};
    std::printf("%s\n", out.dump(2).c_str());
  }
  return passed ? kOk : kFailed;
}

}  // namespace heddle::tool
