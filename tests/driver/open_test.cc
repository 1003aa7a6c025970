// SPDX-License-Identifier: Apache-2.0
#include "driver/control/open.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// A directory for one test, with what the loader might find in it.
class OpenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (fs::temp_directory_path() / "heddle-open-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  int Open(const std::string& path,
           std::vector<std::pair<std::string, std::string>> settings = {}) {
    Result<std::unique_ptr<Device>> device = OpenSimulated(
        "rtl", {.path = path, .settings = std::move(settings)}, message_);
    if (!device.ok()) {
      return static_cast<int>(device.error());
    }
    name_ = device.value()->name();
    return 0;
  }
  bool Says(const std::string& text) const {
    return message_.find(text) != std::string::npos;
  }

  fs::path directory_;
  std::string message_;
  std::string name_;
};

TEST(SimulatorCandidatesTest, PathOfTheEnvironmentIsTheOnlyOneWhenGiven) {
  EXPECT_EQ(SimulatorCandidates("libheddle-sim.so", "/opt/sim/x.so", false,
                                "/usr/lib/heddle"),
            (std::vector<std::string>{"/opt/sim/x.so"}));
  EXPECT_EQ(SimulatorCandidates("libheddle-sim.so", "/", false, "/usr/lib"),
            (std::vector<std::string>{"/libheddle-sim.so"}));
}

TEST(SimulatorCandidatesTest, PathIsIgnoredInSecureExecution) {
  const auto own =
      SimulatorCandidates("libheddle-sim.so", "", false, "/usr/lib/libfabric");
  EXPECT_EQ(SimulatorCandidates("libheddle-sim.so", "/opt/sim", true,
                                "/usr/lib/libfabric"),
            own);
}

TEST(SimulatorCandidatesTest, PlacesAreRelativeToOurOwnLibrary) {
  EXPECT_EQ(
      SimulatorCandidates("libheddle-sim.so", "", false, "/usr/lib/libfabric"),
      (std::vector<std::string>{"/usr/lib/libfabric/libheddle-sim.so",
                                "/usr/lib/libheddle-sim.so",
                                "/usr/lib/libfabric/heddle/libheddle-sim.so",
                                "/usr/lib/heddle/libheddle-sim.so"}));
}

TEST(SimulatorCandidatesTest, WorkingDirectoryIsNeverSearched) {
  EXPECT_TRUE(SimulatorCandidates("libheddle-sim.so", "", false, "").empty());
}

TEST_F(OpenTest, MissingLibraryIsNamedWithItsCure) {
  EXPECT_EQ(Open(directory_.string()), ENOENT);
  EXPECT_TRUE(Says((directory_ / "libheddle-sim.so").string()) &&
              Says("FI_HEDDLE_SIM_PATH"))
      << message_;
}

TEST_F(OpenTest, FileThatIsNoLibraryIsNamed) {
  std::ofstream(directory_ / "libheddle-sim.so") << "not a library";
  EXPECT_EQ(Open(directory_.string()), ELIBBAD);
  EXPECT_TRUE(Says("libheddle-sim.so: cannot be loaded")) << message_;
}

TEST_F(OpenTest, LibraryWithoutTheFactoryIsNamed) {
  EXPECT_EQ(Open(HEDDLE_TEST_OTHER_LIBRARY), ELIBBAD);
  EXPECT_TRUE(Says("heddle_sim_open")) << message_;
}

TEST_F(OpenTest, FactoryReceivesKindAndSettings) {
  ASSERT_EQ(
      Open(HEDDLE_TEST_SIM, {{"address", "10.0.0.7"}, {"payload_mtu", "1024"}}),
      0)
      << message_;
  EXPECT_EQ(name_, "rtl address=10.0.0.7 payload_mtu=1024");
}

TEST_F(OpenTest, LibraryIsFoundInADirectory) {
  fs::create_symlink(HEDDLE_TEST_SIM, directory_ / "libheddle-sim.so");
  EXPECT_EQ(Open(directory_.string()), 0) << message_;
}

TEST_F(OpenTest, LibraryIsFoundBesideTheProgramThatHoldsTheDriver) {
  const fs::path beside =
      fs::canonical("/proc/self/exe").parent_path() / "libheddle-sim.so";
  ASSERT_TRUE(fs::exists(beside)) << "built there for this test";
  EXPECT_EQ(Open(""), 0) << message_;
}

TEST_F(OpenTest, RefusalOfTheFactoryIsPassedOnWithTheFile) {
  EXPECT_EQ(Open(HEDDLE_TEST_SIM, {{"refuse", "1"}}), EINVAL);
  EXPECT_TRUE(Says(HEDDLE_TEST_SIM) && Says("option refuse")) << message_;
}

TEST_F(OpenTest, KindIsKnownWithoutADevice) {
  const auto known = SimulatedInfo("rtl", HEDDLE_TEST_SIM, message_);
  ASSERT_TRUE(known.ok()) << message_;
  EXPECT_EQ(known.value().capability,
            contract::kCapabilitySend | contract::kCapabilityRod);
  EXPECT_EQ(known.value().counts.completion_queues, 3U);
  EXPECT_EQ(known.value().counts.regions, 16U);
  const auto refused = SimulatedInfo("soft", HEDDLE_TEST_SIM, message_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Errno{ENOTSUP});
  EXPECT_TRUE(Says(HEDDLE_TEST_SIM) && Says("no device of kind soft"))
      << message_;
  EXPECT_EQ(SimulatedInfo("rtl", directory_, message_).error(), Errno{ENOENT});
  EXPECT_EQ(SimulatedInfo("rtl", HEDDLE_TEST_OTHER_LIBRARY, message_).error(),
            Errno{ELIBBAD});
  EXPECT_TRUE(Says("heddle_sim_identity")) << message_;
}

TEST_F(OpenTest, OpenedDeviceIsReadyAndKnown) {
  Result<OpenedDevice> opened =
      OpenDevice("rtl", {.path = HEDDLE_TEST_SIM}, message_);
  ASSERT_TRUE(opened.ok()) << message_;
  EXPECT_EQ(opened.value().info.counts.tx_contexts, 2U);
}

TEST_F(OpenTest, DeviceThatIsNotReadyIsNotHandedOut) {
  Result<OpenedDevice> opened = OpenDevice(
      "rtl", {.path = HEDDLE_TEST_SIM, .settings = {{"status", "2"}}},
      message_);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{EIO});
}

TEST_F(OpenTest, OtherKindsOfDeviceAreNotOffered) {
  Result<OpenedDevice> opened = OpenDevice("vfio", {}, message_);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errno{ENODEV});
  EXPECT_TRUE(Says("vfio")) << message_;
}

}  // namespace
}  // namespace heddle
