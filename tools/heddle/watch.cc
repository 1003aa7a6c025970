// SPDX-License-Identifier: Apache-2.0
// heddle stats --watch: what a device counts as time goes by.
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "driver/control/device_info.h"
#include "hw/contract/gen/heddle_text.h"
#include "tools/heddle/command.h"
#include "tools/heddle/device_choice.h"

namespace heddle::tool {
namespace {

using Values = std::vector<uint64_t>;

Values ReadAll(Device& device) {
  Values values;
  for (const auto& statistic : contract::text::kStatisticValues) {
    values.push_back(ReadStatistic(
        device, static_cast<contract::Statistic>(statistic.value)));
  }
  return values;
}

// `since`: taken off.
void Print(const Values& now, const Values& since,
           const StatsOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  size_t at = 0;
  for (const auto& statistic : contract::text::kStatisticValues) {
    const uint64_t value = now[at] - since[at];
    ++at;
    if (options.json) {
      json[statistic.name] = value;
    } else if (options.all || value != 0) {
      std::printf("%-22s %12" PRIu64 "  %s\n", statistic.name, value,
                  statistic.doc);
    }
  }
  if (options.json) {
    const nlohmann::ordered_json out = {{"statistics", json}};
    std::printf("%s\n", out.dump().c_str());
  } else {
    std::printf("--\n");
  }
  std::fflush(stdout);
}

}  // namespace

int WatchStats(const StatsOptions& options) {
  const OpenedDevice opened = OpenChosen(options.device);
  Values before = ReadAll(*opened.device);
  if (options.watch_seconds <= 0) {
    Print(before, Values(before.size()), options);
    return kOk;
  }
  const std::chrono::duration<double> pause(options.watch_seconds);
  for (unsigned i = 0; options.watch_times == 0 || i < options.watch_times;
       ++i) {
    std::this_thread::sleep_for(pause);
    if (opened.device->failed()) {
      throw CommandError(opened.device->name() + ": " +
                         opened.device->failure());
    }
    Values now = ReadAll(*opened.device);
    Print(now, before, options);
    before = std::move(now);
  }
  return kOk;
}

}  // namespace heddle::tool
