// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/report.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/conformance/registry.h"
#include "tests/conformance/requirements.h"
#include "tests/conformance/runner.h"

namespace heddle::conformance {
namespace {

// The reason in one line.
std::string Short(const std::string& reason) {
  constexpr size_t kWidth = 160;
  std::string line = reason;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line.size() <= kWidth ? line : line.substr(0, kWidth - 3) + "...";
}

}  // namespace

std::vector<Row> MakeRows(const std::vector<int>& chosen,
                          const std::map<std::string, Outcome>& outcomes) {
  std::vector<Row> rows;
  for (const int number : chosen) {
    Row row = {.number = number, .meaning = Meaning(number)};
    std::vector<Outcome> own;
    for (const RegisteredTest& test : RegisteredTests()) {
      if (std::count(test.numbers.begin(), test.numbers.end(), number) != 0) {
        row.tests.push_back(test.name);
        const auto found = outcomes.find(test.name);
        if (found != outcomes.end()) {
          own.push_back(found->second);
        }
      }
    }
    row.outcome = Strongest(own);
    rows.push_back(std::move(row));
  }
  return rows;
}

void PrintTable(const std::vector<Row>& rows) {
  std::map<Verdict, int> counts;
  for (const Row& row : rows) {
    ++counts[row.outcome.verdict];
    std::printf("%3d  %-11s  %s\n", row.number, Name(row.outcome.verdict),
                row.meaning.c_str());
    if (!row.outcome.reason.empty()) {
      std::printf("     %-11s    %s\n", "", Short(row.outcome.reason).c_str());
    }
  }
  std::printf("%s:", CurrentSettings().provider.c_str());
  const char* separator = " ";
  for (const auto& [verdict, count] : counts) {
    std::printf("%s%d %s", separator, count, Name(verdict));
    separator = ", ";
  }
  std::printf("\n");
}

void PrintList(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::printf("%3d  %s\n", row.number, row.meaning.c_str());
    for (const std::string& test : row.tests) {
      std::printf("       %s\n", test.c_str());
    }
  }
}

bool WriteJson(const std::string& path, const std::vector<Row>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    list.push_back({{"number", row.number},
                    {"meaning", row.meaning},
                    {"tests", row.tests},
                    {"verdict", Name(row.outcome.verdict)},
                    {"reason", row.outcome.reason}});
  }
  const nlohmann::ordered_json whole = {
      {"provider", CurrentSettings().provider},
      {"seed", CurrentSettings().seed},
      {"requirements", std::move(list)}};
  std::ofstream file(path);
  file << whole.dump(1, ' ', false,
                     nlohmann::ordered_json::error_handler_t::replace)
       << '\n';
  file.close();
  return file.good();
}

bool AnyFailure(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return IsFailure(row.outcome.verdict);
  });
}

}  // namespace heddle::conformance
