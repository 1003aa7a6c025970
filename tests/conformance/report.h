// SPDX-License-Identifier: Apache-2.0
// Verdicts of a run, by requirement.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/conformance/verdict.h"

namespace heddle::conformance {

struct Row {
  int number = 0;
  std::string meaning = {};
  std::vector<std::string> tests = {};
  Outcome outcome = {};
};

// A row of each chosen requirement; `outcomes` by name of the test.
std::vector<Row> MakeRows(const std::vector<int>& chosen,
                          const std::map<std::string, Outcome>& outcomes);

// Prints the rows and a line of counts to standard output.
void PrintTable(const std::vector<Row>& rows);
// Prints number, meaning and tests, for --list.
void PrintList(const std::vector<Row>& rows);
// Writes {"provider", "seed", "requirements": [{"number", "meaning", "tests",
// "verdict", "reason"}]}; false if the file cannot be written.
bool WriteJson(const std::string& path, const std::vector<Row>& rows);

bool AnyFailure(const std::vector<Row>& rows);

}  // namespace heddle::conformance
