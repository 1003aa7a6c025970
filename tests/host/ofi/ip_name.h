// SPDX-License-Identifier: Apache-2.0
// Names of Heddle's endpoints, which are IPv4 socket addresses.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {

inline sockaddr_in IpName(const Node& node) {
  const std::vector<uint8_t> raw = node.Name();
  sockaddr_in name = {};
  EXPECT_EQ(raw.size(), sizeof(name));
  if (raw.size() == sizeof(name)) {
    std::memcpy(&name, raw.data(), sizeof(name));
  }
  return name;
}

}  // namespace heddle::test
