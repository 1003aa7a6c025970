// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pins/bar_driver.h"

#include <algorithm>
#include <utility>

namespace heddle::sim::pins {
namespace {

constexpr uint32_t kBeatBytes = 8;
constexpr uint32_t kBitsPerByte = 8;

}  // namespace

void BarDriver::Write(uint32_t address, uint64_t value, uint32_t bytes) {
  const uint32_t lane = address % kBeatBytes;
  const auto mask = static_cast<uint8_t>((1u << bytes) - 1);
  writes_.push_back({.address = address - lane,
                     .strobe = static_cast<uint8_t>(mask << lane),
                     .beats = 1,
                     .data = {value << (lane * kBitsPerByte)}});
}

void BarDriver::WriteBurst(uint32_t address, std::span<const uint64_t> words) {
  PendingWrite write{.address = address,
                     .strobe = UINT8_MAX,
                     .beats = static_cast<uint8_t>(words.size()),
                     .data = {}};
  std::copy(words.begin(), words.end(), write.data.begin());
  writes_.push_back(write);
}

void BarDriver::StartRead(uint32_t address) {
  reading_ = true;
  read_taken_ = false;
  read_data_.reset();
  read_address_ = address - address % kBeatBytes;
}

std::optional<uint64_t> BarDriver::TakeRead() {
  return std::exchange(read_data_, std::nullopt);
}

const BarToDevice& BarDriver::Drive() {
  out_.aw_valid = !writes_.empty() && !address_taken_;
  out_.w_valid = !writes_.empty() && beats_taken_ < writes_.front().beats;
  if (!writes_.empty()) {
    const PendingWrite& write = writes_.front();
    out_.aw_address = write.address;
    out_.aw_len = static_cast<uint8_t>(write.beats - 1);
    out_.w_strobe = write.strobe;
    out_.w_last = beats_taken_ + 1 == write.beats;
    if (out_.w_valid) {
      out_.w_data = write.data[beats_taken_];
    }
  }
  read_on_bus_ =
      reading_ && !read_taken_ && writes_.empty() && unanswered_ == 0;
  out_.ar_valid = read_on_bus_;
  out_.ar_address = read_address_;
  return out_;
}

void BarDriver::Sample(const BarFromDevice& device) {
  if (device.b_valid && unanswered_ > 0) {
    --unanswered_;
    errors_ += device.b_response != AxiResponse::kOkay;
  }
  address_taken_ = address_taken_ || (out_.aw_valid && device.aw_ready);
  beats_taken_ = static_cast<uint8_t>(beats_taken_ +
                                      (out_.w_valid && device.w_ready ? 1 : 0));
  if (address_taken_ && beats_taken_ == writes_.front().beats) {
    writes_.pop_front();
    address_taken_ = false;
    beats_taken_ = 0;
    ++unanswered_;
  }
  if (device.r_valid && read_taken_) {
    read_data_ = device.r_data;
    errors_ += device.r_response != AxiResponse::kOkay;
    reading_ = false;
    read_taken_ = false;
  }
  read_taken_ = read_taken_ || (read_on_bus_ && device.ar_ready && reading_);
}

}  // namespace heddle::sim::pins
