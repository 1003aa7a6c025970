// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pins/bar_driver.h"

#include <algorithm>
#include <utility>

namespace heddle::sim::pins {
namespace {

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kBeatBytes = sizeof(BarBeat);
constexpr uint32_t kBitsPerByte = 8;

}  // namespace

void BarDriver::Write(uint32_t address, uint64_t value, uint32_t bytes) {
  const uint32_t lane = address % kBeatBytes;
  PendingWrite write{.address = address - lane,
                     .strobe = ((uint64_t{1} << bytes) - 1) << lane,
                     .data = {}};
  write.data[lane / kWordBytes] = value << (lane % kWordBytes * kBitsPerByte);
  writes_.push_back(write);
}

void BarDriver::WriteWords(uint32_t address, std::span<const uint64_t> words) {
  while (!words.empty()) {
    const uint32_t lane = address % kBeatBytes;
    const auto beat = words.first(
        std::min<size_t>(words.size(), (kBeatBytes - lane) / kWordBytes));
    PendingWrite write{.address = address - lane,
                       .strobe = UINT64_MAX >> (kBeatBytes - beat.size_bytes())
                                                   << lane,
                       .data = {}};
    std::copy(beat.begin(), beat.end(), write.data.begin() + lane / kWordBytes);
    writes_.push_back(write);
    words = words.subspan(beat.size());
    address += static_cast<uint32_t>(beat.size_bytes());
  }
}

void BarDriver::StartRead(uint32_t address) {
  reading_ = true;
  read_taken_ = false;
  read_data_.reset();
  read_address_ = address - address % kWordBytes;
}

std::optional<uint64_t> BarDriver::TakeRead() {
  return std::exchange(read_data_, std::nullopt);
}

const BarToDevice& BarDriver::Drive() {
  out_.aw_valid = addresses_taken_ < std::min<size_t>(writes_.size(), 2);
  if (out_.aw_valid) {
    out_.aw_address = writes_[addresses_taken_].address;
  }
  out_.w_valid = !writes_.empty() && !data_taken_;
  if (out_.w_valid) {
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
  addresses_taken_ += out_.aw_valid && device.aw_ready;
  if (out_.w_valid && device.w_ready) {
    data_taken_ = true;
  }
  if (data_taken_ && addresses_taken_ != 0) {
    writes_.pop_front();
    --addresses_taken_;
    data_taken_ = false;
    ++unanswered_;
  }
  if (device.r_valid && read_taken_) {
    read_data_ = device.r_data[read_address_ % kBeatBytes / kWordBytes];
    errors_ += device.r_response != AxiResponse::kOkay;
    reading_ = false;
    read_taken_ = false;
  }
  read_taken_ = read_taken_ || (read_on_bus_ && device.ar_ready && reading_);
}

}  // namespace heddle::sim::pins
