// SPDX-License-Identifier: Apache-2.0
// A scripted AXI4 master for tests of the host memory model.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "hw/sim/pins/host_memory.h"

namespace heddle::sim::pins {

// Issues what it is given, in order, and keeps what comes back.
class AxiMaster {
 public:
  struct Beat {
    uint16_t id;
    AxiResponse response;
    bool last;
    std::array<uint8_t, kMaxBusBytes> data;
  };
  struct Response {
    uint16_t id;
    AxiResponse response;
  };

  AxiMaster(HostMemory* memory, uint32_t bus_bytes)
      : memory_(memory), bus_bytes_(bus_bytes) {}

  void Read(uint16_t id, uint64_t address, uint32_t count) {
    reads_.push_back({id, address, count});
  }

  // Writes `bytes` at any address as one burst of full-width beats.
  void Write(uint16_t id, uint64_t address, std::vector<uint8_t> bytes) {
    PendingWrite write;
    write.id = id;
    write.address = address / bus_bytes_ * bus_bytes_;
    const uint64_t end = address + bytes.size();
    for (uint64_t at = write.address; at < end; at += bus_bytes_) {
      std::array<uint8_t, kMaxBusBytes> data{};
      uint64_t strobe = 0;
      for (uint64_t lane = 0; lane < bus_bytes_; ++lane) {
        if (at + lane >= address && at + lane < end) {
          data[lane] = bytes[at + lane - address];
          strobe |= uint64_t{1} << lane;
        }
      }
      write.data.push_back(data);
      write.strobes.push_back(strobe);
    }
    writes_.push_back(write);
  }

  void Cycle() {
    ++cycles_;
    const AxiToDevice in = memory_->Drive();
    AxiFromDevice out;
    out.r_ready = true;
    out.b_ready = true;
    const uint8_t size = SizeLog2();
    if (!reads_.empty()) {
      out.ar_valid = true;
      out.ar_id = reads_.front().id;
      out.ar_address = reads_.front().address;
      out.ar_len = static_cast<uint8_t>(reads_.front().beats - 1);
      out.ar_size = size;
    }
    if (next_address_ < writes_.size()) {
      const PendingWrite& write = writes_[next_address_];
      out.aw_valid = true;
      out.aw_id = write.id;
      out.aw_address = write.address;
      out.aw_len = static_cast<uint8_t>(write.data.size() - 1);
      out.aw_size = size;
    }
    if (next_data_ < next_address_) {
      const PendingWrite& write = writes_[next_data_];
      out.w_valid = true;
      out.w_data = write.data[next_beat_].data();
      out.w_strobe = write.strobes[next_beat_];
      out.w_last = next_beat_ + 1 == write.data.size();
    }
    if (in.r_valid) {
      beats.push_back({in.r_id, in.r_response, in.r_last, in.r_data});
    }
    if (in.b_valid) {
      responses.push_back({in.b_id, in.b_response});
    }
    memory_->Sample(out);
    if (out.ar_valid && in.ar_ready) {
      reads_.pop_front();
    }
    if (out.w_valid && in.w_ready &&
        ++next_beat_ == writes_[next_data_].data.size()) {
      next_beat_ = 0;
      ++next_data_;
    }
    if (out.aw_valid && in.aw_ready) {
      ++next_address_;
    }
  }

  // False if it did not come to rest within `limit` cycles.
  bool Finish(uint32_t limit = 20000) {
    for (uint32_t i = 0; i < limit; ++i) {
      Cycle();
      if (reads_.empty() && next_data_ == writes_.size() && memory_->quiet()) {
        return true;
      }
    }
    return false;
  }

  uint64_t cycles() const { return cycles_; }

  std::vector<Beat> beats;
  std::vector<Response> responses;

 private:
  struct PendingRead {
    uint16_t id;
    uint64_t address;
    uint32_t beats;
  };
  struct PendingWrite {
    uint16_t id = 0;
    uint64_t address = 0;
    std::vector<std::array<uint8_t, kMaxBusBytes>> data;
    std::vector<uint64_t> strobes;
  };

  uint8_t SizeLog2() const {
    uint8_t size = 0;
    while ((1u << size) < bus_bytes_) {
      ++size;
    }
    return size;
  }

  HostMemory* memory_;
  uint32_t bus_bytes_;
  std::deque<PendingRead> reads_;
  std::vector<PendingWrite> writes_;
  size_t next_address_ = 0;
  size_t next_data_ = 0;
  size_t next_beat_ = 0;
  uint64_t cycles_ = 0;
};

}  // namespace heddle::sim::pins
