# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a table of the names of the contract's statistics, from CONTRACT.
file(READ ${CONTRACT} text)
string(REGEX MATCH "name = \"statistic\"[^]]*" block "${text}")
string(REGEX MATCHALL "name = \"[a-z0-9_]+\", value = [0-9]+" values "${block}")
if(NOT values)
  message(FATAL_ERROR "${CONTRACT}: no enum statistic found")
endif()
set(rows)
foreach(value IN LISTS values)
  string(REGEX REPLACE "name = (\"[a-z0-9_]+\"), value = ([0-9]+)"
    "    {\\1, contract::Statistic{\\2}},\n" row "${value}")
  string(APPEND rows "${row}")
endforeach()
file(WRITE ${OUTPUT} "// SPDX-License-Identifier: Apache-2.0
// Generated from heddle.toml by statistic_names.cmake.
#pragma once

#include \"hw/contract/gen/heddle_contract.h\"

namespace heddle::sim::device {

struct StatisticName {
  const char* name;
  contract::Statistic value;
};

inline constexpr StatisticName kStatisticNames[] = {
${rows}};

}  // namespace heddle::sim::device
")
