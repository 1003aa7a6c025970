// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/frame/capture.h"

#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/fault/faults.h"

namespace heddle::sim::frame {
namespace {

TEST(CaptureTest, LibpcapReadsBackFramesWithNanoseconds) {
  const std::string path =
      testing::TempDir() + "heddle_capture_" + std::to_string(getpid());
  auto capture = Capture::Open(path);
  ASSERT_TRUE(capture.ok());
  const Frame first(60, 0x11);
  const Frame second(9000, 0x22);
  capture.value()->Add(first, 5'000'000'001);
  capture.value()->Add(second, 5'999'999'999);
  capture.value()->Flush();  // Not closed, as after a crash.

  std::array<char, PCAP_ERRBUF_SIZE> error{};
  pcap_t* const reader = pcap_open_offline_with_tstamp_precision(
      path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error.data());
  ASSERT_NE(reader, nullptr) << error.data();
  EXPECT_EQ(pcap_datalink(reader), DLT_EN10MB);
  pcap_pkthdr header{};
  const uint8_t* data = pcap_next(reader, &header);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(Frame(data, data + header.caplen), first);
  EXPECT_EQ(header.ts.tv_sec, 5);
  EXPECT_EQ(header.ts.tv_usec, 1);
  data = pcap_next(reader, &header);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(Frame(data, data + header.caplen), second);
  EXPECT_EQ(header.len, second.size());
  EXPECT_EQ(header.ts.tv_usec, 999'999'999);
  EXPECT_EQ(pcap_next(reader, &header), nullptr);
  pcap_close(reader);
  unlink(path.c_str());
}

// Sizes of the frames in a file.
std::vector<size_t> Sizes(const std::string& path) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  pcap_t* const reader = pcap_open_offline(path.c_str(), error.data());
  std::vector<size_t> sizes;
  if (reader != nullptr) {
    pcap_pkthdr header{};
    while (pcap_next(reader, &header) != nullptr) {
      sizes.push_back(header.len);
    }
    pcap_close(reader);
  }
  return sizes;
}

TEST(CaptureTest, EachDeviceThatIsOpenHasItsOwnFile) {
  const std::string base = testing::TempDir() + "heddle.captures_" +
                           std::to_string(getpid()) + "/run";
  const std::string folder = base.substr(0, base.rfind('/'));
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  for (const std::string suffix : {".pcap", ""}) {
    std::vector<std::unique_ptr<Capture>> captures;
    for (const size_t bytes : {60u, 61u, 62u}) {
      auto capture = Capture::Open(base + suffix);
      ASSERT_TRUE(capture.ok());
      capture.value()->Add(Frame(bytes, 0x11), 1);
      capture.value()->Flush();
      captures.push_back(std::move(capture.value()));
    }
    EXPECT_EQ(Sizes(base + suffix), std::vector<size_t>{60});
    EXPECT_EQ(Sizes(base + "-2" + suffix), std::vector<size_t>{61});
    EXPECT_EQ(Sizes(base + "-3" + suffix), std::vector<size_t>{62});
    // One that is closed is written anew.
    captures.erase(captures.begin());
    ASSERT_TRUE(Capture::Open(base + suffix).ok());
    EXPECT_TRUE(Sizes(base + suffix).empty());
    for (const char* const number : {"", "-2", "-3"}) {
      unlink((base + number + suffix).c_str());
    }
  }
  rmdir(folder.c_str());
}

TEST(CaptureTest, FileThatCannotBeMadeIsAnError) {
  auto capture = Capture::Open("/nonexistent/file.pcap");
  ASSERT_FALSE(capture.ok());
  EXPECT_EQ(static_cast<int>(capture.error()), ENOENT);
}

}  // namespace
}  // namespace heddle::sim::frame
