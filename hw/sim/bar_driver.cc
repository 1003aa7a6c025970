// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/bar_driver.h"

#include <utility>

namespace heddle::sim {
namespace {

constexpr uint32_t kBeatBytes = 8;
constexpr uint32_t kBitsPerByte = 8;

}  // namespace

void BarDriver::Write(uint32_t address, uint64_t value, uint32_t bytes) {
  const uint32_t lane = address % kBeatBytes;
  const auto mask = static_cast<uint8_t>((1u << bytes) - 1);
  writes_.push_back({.address = address - lane,
                     .data = value << (lane * kBitsPerByte),
                     .strobe = static_cast<uint8_t>(mask << lane)});
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
  out_.w_valid = !writes_.empty() && !data_taken_;
  if (!writes_.empty()) {
    out_.aw_address = writes_.front().address;
    out_.w_data = writes_.front().data;
    out_.w_strobe = writes_.front().strobe;
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
  data_taken_ = data_taken_ || (out_.w_valid && device.w_ready);
  if (address_taken_ && data_taken_) {
    writes_.pop_front();
    address_taken_ = false;
    data_taken_ = false;
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

}  // namespace heddle::sim
