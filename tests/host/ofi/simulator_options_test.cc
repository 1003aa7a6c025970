// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/simulator_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace heddle::ofi {
namespace {

TEST(SimulatorOptionsTest, DefaultsAreLeftToAnOlderSimulator) {
  const auto options = MakeSimulatorOptions({}, {}).settings;
  for (const char* name :
       {"loss", "rx_ecn", "neighbours", "pdc_idle_ns", "cwnd_bytes",
        "payload_mtu", "udp_port", "crc", "vlan", "dscp_trimmed",
        "dscp_trimmed_lasthop", "trim", "rx_trim", "read_again"}) {
    EXPECT_TRUE(std::none_of(options.begin(), options.end(),
                             [&](const auto& o) { return o.first == name; }))
        << name;
  }
}

TEST(SimulatorOptionsTest, WhatAFunctionDoesNotObeyIsNamed) {
  core::Settings settings;
  EXPECT_EQ(SetForSimulatorsOnly(settings), "");
  // A function obeys these.
  settings.rto_ns = 5'000'000;
  settings.dead_ns = 5'000'000'000;
  settings.bounce_limit = 0;
  settings.job_id = 7;
  settings.addressing = "relative";
  EXPECT_EQ(SetForSimulatorsOnly(settings), "");
  settings.rx_faults.loss = 0.5;
  settings.rx_faults.trim = true;
  settings.pdc_idle_ns = 1'000'000;
  settings.crc = "none";
  settings.encap = "ip";
  settings.ip_protocol = 99;
  settings.vlan = 7;
  settings.dscp_trimmed = 3;
  settings.dscp_trimmed_lasthop = 4;
  settings.read_again = 0.5;
  EXPECT_EQ(SetForSimulatorsOnly(settings),
            "FI_HEDDLE_CRC, FI_HEDDLE_ENCAP, FI_HEDDLE_IP_PROTOCOL, "
            "FI_HEDDLE_VLAN, FI_HEDDLE_DSCP_TRIMMED, "
            "FI_HEDDLE_DSCP_TRIMMED_LASTHOP, FI_HEDDLE_RX_LOSS, "
            "FI_HEDDLE_RX_TRIM, "
            "FI_HEDDLE_READ_AGAIN, FI_HEDDLE_PDC_IDLE_NS");
}

}  // namespace
}  // namespace heddle::ofi
