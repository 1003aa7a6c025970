// SPDX-License-Identifier: Apache-2.0
// The tables of docs/performance.md, from measurements that run side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heddle::bench {

// One measurement and the rows of a table that it gives.
struct Part {
  std::string name;
  std::function<std::string()> rows;  // May throw.
  bool checked = true;                // `make bench-check` measures it, too.
};

// A table, with the text before it.
struct Section {
  std::string heading;
  std::vector<Part> parts;
};

// Which parts are measured.
struct Selection {
  bool checked_only = false;
  std::string text;  // Contained in their names or their sections' headings.
};

// The sections in their order, with the rows of the selected parts; as many
// parts at a time as there are processors. Throws what they throw.
std::string Measure(const std::vector<Section>& sections,
                    const Selection& selection);

// `| cell | cell |`, a line.
std::string Row(const std::vector<std::string>& cells);
std::string Number(double value, int digits = 0);
std::string Percent(uint64_t part, uint64_t whole);

}  // namespace heddle::bench
