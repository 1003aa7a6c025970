// SPDX-License-Identifier: Apache-2.0
#include "bench/system/table.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <thread>

namespace heddle::bench {

std::string Measure(const std::vector<Section>& sections,
                    const Selection& selection) {
  const auto named = [&](const std::string& text) {
    return text.find(selection.text) != std::string::npos;
  };
  std::vector<const Part*> parts;  // Null: not selected.
  for (const Section& section : sections) {
    for (const Part& part : section.parts) {
      const bool selected = (part.checked || !selection.checked_only) &&
                            (named(part.name) || named(section.heading));
      parts.push_back(selected ? &part : nullptr);
    }
  }
  std::vector<std::string> rows(parts.size());
  std::atomic<size_t> begun = 0;
  const auto work = [&] {
    // From the end: the last parts take longest.
    for (size_t i = ++begun; i <= parts.size(); i = ++begun) {
      if (const Part* part = parts[parts.size() - i]; part != nullptr) {
        rows[parts.size() - i] = part->rows();
      }
    }
  };
  std::vector<std::future<void>> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency());
       ++i) {
    workers.push_back(std::async(std::launch::async, work));
  }
  for (std::future<void>& worker : workers) {
    worker.get();
  }
  std::string text;
  auto row = rows.begin();
  for (const Section& section : sections) {
    text += section.heading;
    for (size_t i = 0; i < section.parts.size(); ++i) {
      text += *row++;
    }
  }
  return text;
}

std::string Row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) {
    line += " " + cell + " |";
  }
  return line + "\n";
}

std::string Number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Percent(uint64_t part, uint64_t whole) {
  return Number(100 * static_cast<double>(part) / static_cast<double>(whole),
                1);
}

}  // namespace heddle::bench
