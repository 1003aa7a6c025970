// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pins/bar_driver.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/random.h"

namespace heddle::sim::pins {
namespace {

// An AXI4 slave of 512-bit beats that is slow at random.
class Slave {
 public:
  explicit Slave(uint64_t seed) : random_(seed) {}

  void Cycle(BarDriver& driver) {
    const BarToDevice in = driver.Drive();
    BarFromDevice out;
    out.aw_ready = random_.Below(3) == 0;
    out.w_ready = random_.Below(3) == 0;
    out.ar_ready = random_.Below(3) == 0;
    out.b_valid = answers_ > 0 && random_.Below(3) == 0;
    out.r_valid = read_.has_value() && random_.Below(3) == 0;
    if (out.r_valid) {
      out.r_data[*read_ / 8 % 8] = words[*read_];
      read_.reset();
    }
    answers_ -= out.b_valid;
    if (in.aw_valid && out.aw_ready) {
      addresses_.push_back(in.aw_address);
    }
    if (in.w_valid && out.w_ready) {
      data_.push_back({in.w_data, in.w_strobe});
    }
    if (in.ar_valid && out.ar_ready) {
      EXPECT_EQ(answers_, 0) << "a read must not pass a posted write";
      read_ = in.ar_address;
    }
    while (!addresses_.empty() && !data_.empty()) {
      Store(addresses_.front(), data_.front());
      ++answers_;
      addresses_.pop_front();
      data_.pop_front();
    }
    driver.Sample(out);
  }

  std::map<uint32_t, uint64_t> words;
  std::vector<uint32_t> order;

 private:
  struct Data {
    BarBeat value;
    uint64_t strobe;
  };
  void Store(uint32_t address, const Data& data) {
    EXPECT_EQ(address % 64, 0u);
    for (uint32_t i = 0; i < 64; ++i) {
      if ((data.strobe >> i & 1) != 0) {
        const uint32_t word = address + i / 8 * 8;
        const uint64_t mask = uint64_t{0xff} << i % 8 * 8;
        if (order.empty() || order.back() != word) order.push_back(word);
        words[word] = (words[word] & ~mask) | (data.value[i / 8] & mask);
      }
    }
  }

  base::Random random_;
  std::deque<uint32_t> addresses_;
  std::deque<Data> data_;
  int answers_ = 0;
  std::optional<uint32_t> read_;
};

bool RunUntilQuiet(BarDriver& driver, Slave& slave) {
  for (int i = 0; i < 10000 && !driver.quiet(); ++i) {
    slave.Cycle(driver);
  }
  return driver.quiet();
}

TEST(BarDriverTest, WritesTakeEffectInOrder) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Slave slave(seed);
    BarDriver driver;
    for (uint32_t i = 0; i < 50; ++i) {
      driver.Write(8 * i, i, 8);
    }
    ASSERT_TRUE(RunUntilQuiet(driver, slave));
    ASSERT_EQ(slave.order.size(), 50u);
    for (uint32_t i = 0; i < 50; ++i) {
      EXPECT_EQ(slave.order[i], 8 * i);
      EXPECT_EQ(slave.words[8 * i], i);
    }
  }
}

TEST(BarDriverTest, SlotsKeepTheirPlaceAmongSingleWrites) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Slave slave(seed);
    BarDriver driver;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < 20; ++i) {
      driver.Write(8, i, 8);
      order.push_back(8);
      std::vector<uint64_t> words;
      for (uint32_t w = 0; w <= i % BarBeat().size(); ++w) {
        words.push_back(100 * i + w);
        order.push_back(1024 + 64 * i + 8 * w);
      }
      driver.WriteWords(1024 + 64 * i, words);
    }
    driver.StartRead(1024 + 64 * 19);
    ASSERT_TRUE(RunUntilQuiet(driver, slave));
    EXPECT_EQ(slave.order, order);
    EXPECT_EQ(driver.TakeRead(), 1900u);
    EXPECT_EQ(slave.words[1024 + 64 * 15 + 56], 1507u);
  }
}

TEST(BarDriverTest, HalvesOfAWordAreWrittenAlone) {
  Slave slave(1);
  BarDriver driver;
  driver.Write(16, 0x1111111122222222, 8);
  driver.Write(20, 0x33333333, 4);
  ASSERT_TRUE(RunUntilQuiet(driver, slave));
  EXPECT_EQ(slave.words[16], 0x3333333322222222u);
  driver.Write(16, 0x44444444, 4);
  ASSERT_TRUE(RunUntilQuiet(driver, slave));
  EXPECT_EQ(slave.words[16], 0x3333333344444444u);
}

TEST(BarDriverTest, ReadSeesTheWritesBeforeIt) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Slave slave(seed);
    BarDriver driver;
    for (uint32_t i = 0; i < 10; ++i) {
      driver.Write(64, i, 8);
    }
    driver.StartRead(64);
    ASSERT_TRUE(RunUntilQuiet(driver, slave));
    EXPECT_EQ(driver.TakeRead(), 9u);
    EXPECT_EQ(driver.TakeRead(), std::nullopt);
  }
}

}  // namespace
}  // namespace heddle::sim::pins
