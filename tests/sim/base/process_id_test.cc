// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/process_id.h"

#include <gtest/gtest.h>

#include "tests/sim/base/child_process.h"

namespace heddle::sim::base {
namespace {

TEST(ProcessIdTest, AForkIsAnotherProcess) {
  const ProcessId self = ProcessId::Self();
  EXPECT_EQ(self, ProcessId::Self());
  EXPECT_TRUE(self.Alive());
  ChildProcess child([&self](const ChildProcess::Signal&) {
    const ProcessId own = ProcessId::Self();
    const bool well = own.pid == static_cast<uint32_t>(getpid()) &&
                      own != self && own.Alive() && self.Alive();
    _exit(well ? 0 : 1);
  });
  EXPECT_EQ(child.ExitStatus(), 0);
}

}  // namespace
}  // namespace heddle::sim::base
