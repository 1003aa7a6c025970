// SPDX-License-Identifier: Apache-2.0
// The library when a function goes away under traffic: runs in the guest. The
// functions are bound to vfio-pci.
#include <gtest/gtest.h>
#include <rdma/fi_ext_heddle.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

const std::string kPci = "/sys/bus/pci/";

void Write(const std::string& file, const std::string& text) {
  std::ofstream(file) << text;
}

class GuestFailureTest : public PairTest {
 protected:
  // Messages from a to b, each received, until one of the queues reports an
  // error, which is that of a lost device.
  void TrafficUntilDeviceFault() {
    // Mapped for each operation.
    const std::vector<uint8_t> data = Pattern(100000);
    std::vector<uint8_t> room(data.size());
    for (;;) {
      ASSERT_EQ(fi_recv(b->ep, room.data(), room.size(), nullptr,
                        FI_ADDR_UNSPEC, nullptr),
                0);
      if (fi_send(a->ep, data.data(), data.size(), nullptr, to_b, nullptr) !=
          0) {
        return;
      }
      const auto received = Take(b->rx_cq);
      ASSERT_TRUE(received.has_value()) << "after " << messages_;
      if (received->error) {
        EXPECT_EQ(received->failure.err, FI_EIO);
        EXPECT_EQ(received->failure.prov_errno, FI_HEDDLE_DEVICE_FAULT);
        return;
      }
      ASSERT_EQ(received->entry.len, data.size());
      ASSERT_EQ(room, data);
      const auto sent = Take(a->tx_cq);
      ASSERT_TRUE(sent.has_value());
      if (sent->error) {
        EXPECT_EQ(sent->failure.prov_errno, FI_HEDDLE_DEVICE_FAULT);
        return;
      }
      ++messages_;
    }
  }

  std::atomic<int> messages_ = 0;
};

TEST_F(GuestFailureTest, UnplugEndsTrafficAndTheKernelGetsTheFunction) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const std::string name = b->info->domain_attr->name;
  std::atomic<bool> removed = false;
  std::thread unplug([&] {
    while (messages_ < 20) {
      std::this_thread::yield();
    }
    Write(kPci + "devices/" + name + "/remove", "1");
    removed = true;
  });
  TrafficUntilDeviceFault();
  EXPECT_GE(messages_, 20);
  EXPECT_FALSE(removed) << "the function is still in use";
  b.reset();
  unplug.join();
  EXPECT_FALSE(fs::exists(kPci + "devices/" + name));

  // It can be plugged in again.
  a.reset();
  Write(kPci + "rescan", "1");
  ASSERT_TRUE(fs::exists(kPci + "devices/" + name));
  Write(kPci + "devices/" + name + "/driver_override", "vfio-pci");
  Write(kPci + "drivers_probe", name);
  ASSERT_NO_FATAL_FAILURE(Open());
  std::vector<uint8_t> received(5000);
  Exchange(Pattern(5000), received);
  EXPECT_EQ(received, Pattern(5000));
}

// The host kills what serves the functions when it reads the first line; the
// second ends the guest. QEMU 11 aborts when that happens while it waits for an
// answer, and the guest's kernel waits long for functions that do not answer:
// so nothing is posted, unmapped or closed behind the first line.
TEST_F(GuestFailureTest, DeathOfTheServerEndsWhatIsOutstanding) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::vector<uint8_t> room(5000);
  Exchange(Pattern(5000), room);
  EXPECT_EQ(room, Pattern(5000));
  ASSERT_EQ(fi_recv(b->ep, room.data(), room.size(), nullptr, FI_ADDR_UNSPEC,
                    nullptr),
            0);
  std::printf("guest: the server may go\n");
  std::fflush(stdout);
  const auto received = Take(b->rx_cq);
  ASSERT_TRUE(received.has_value() && received->error);
  ASSERT_EQ(received->failure.err, FI_EIO);
  ASSERT_EQ(received->failure.prov_errno, FI_HEDDLE_DEVICE_FAULT);
  ASSERT_FALSE(HasFailure());
  std::printf("guest: the fault was reported\n");
  std::fflush(stdout);
  for (;;) {
    pause();
  }
}

}  // namespace
}  // namespace heddle::test
