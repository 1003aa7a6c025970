// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "Vheddle_gather.h"
#include "gtest/gtest.h"
#include "hw/sim/model/clocked_model.h"
#include "tests/rtl/queue/rng.h"

namespace heddle::test {
namespace {

// Requests of whole words against random stalls on both sides.
TEST(GatherTest, OrderedWordsOfEachRequestEndWithItsLastBeat) {
  sim::model::ClockedModel<Vheddle_gather> dut;
  Rng rng(Seed(1));
  const size_t beat_bytes = sizeof dut->beat_data_i;
  const size_t word_bytes = sizeof dut->word_data_o;
  const size_t unit = std::max(beat_bytes, word_bytes) / word_bytes;
  struct Beat {
    std::vector<uint8_t> data;
    bool last, error;
    size_t words;  // Of the request.
  };
  struct Word {
    std::vector<uint8_t> data;
    bool last, error;
  };
  std::deque<Beat> beats;
  std::deque<Word> words;
  size_t seen = 0;
  for (int cycle = 0; cycle < 40000; ++cycle) {
    if (beats.empty()) {
      // Any number of words; where words are longer than beats, whole ones.
      const size_t count = 1 + rng() % (4 * unit);
      const bool error = rng() % 4 == 0;
      std::vector<uint8_t> data(count * word_bytes);
      for (uint8_t& byte : data) {
        byte = static_cast<uint8_t>(rng());
      }
      for (size_t i = 0; i < count; ++i) {
        const auto from = data.begin() + static_cast<int64_t>(i * word_bytes);
        words.push_back({{from, from + static_cast<int64_t>(word_bytes)},
                         i + 1 == count,
                         error});
      }
      for (size_t at = 0; at < data.size(); at += beat_bytes) {
        Beat beat{std::vector<uint8_t>(beat_bytes),
                  at + beat_bytes >= data.size(), error, count};
        std::memcpy(beat.data.data(), data.data() + at,
                    std::min(beat_bytes, data.size() - at));
        beats.push_back(beat);
      }
    }
    dut->beat_valid_i = rng() % 3 != 0;
    dut->word_ready_i = rng() % 3 != 0;
    const Beat& beat = beats.front();
    std::memcpy(&dut->beat_data_i, beat.data.data(), beat_bytes);
    dut->beat_last_i = beat.last;
    dut->beat_error_i = beat.error;
    dut->words_i = static_cast<uint8_t>(beat.words);
    dut.Settle();
    if (dut->word_valid_o && dut->word_ready_i) {
      ASSERT_FALSE(words.empty());
      const Word& word = words.front();
      ASSERT_EQ(std::memcmp(&dut->word_data_o, word.data.data(), word_bytes),
                0);
      ASSERT_EQ(dut->word_last_o, word.last);
      if (word.last) {
        ASSERT_EQ(dut->word_error_o, word.error);
      }
      words.pop_front();
      ++seen;
    }
    if (dut->beat_valid_i && dut->beat_ready_o) {
      beats.pop_front();
    }
    dut.Tick();
    ASSERT_TRUE(!beats.empty() || words.empty());
  }
  EXPECT_GT(seen, 2000u);
}

}  // namespace
}  // namespace heddle::test
