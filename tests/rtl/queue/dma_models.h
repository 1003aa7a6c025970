// SPDX-License-Identifier: Apache-2.0
// The DMA engines' side of a unit under test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "rtl/records.h"
#include "tests/rtl/pins.h"
#include "tests/rtl/queue/rng.h"
#include "tests/rtl/records/packed.h"

namespace heddle::test {

// Host memory, sparse; what was never written reads as `0xa5`.
class Memory {
 public:
  void Write(uint64_t address, const void* data, size_t bytes) {
    const auto* from = static_cast<const uint8_t*>(data);
    for (size_t i = 0; i < bytes; ++i) {
      Page(address + i)[(address + i) % kPage] = from[i];
    }
  }
  void Read(uint64_t address, void* data, size_t bytes) {
    auto* to = static_cast<uint8_t*>(data);
    for (size_t i = 0; i < bytes; ++i) {
      to[i] = Page(address + i)[(address + i) % kPage];
    }
  }
  template <typename T>
  T Get(uint64_t address) {
    T value;
    Read(address, &value, sizeof value);
    return value;
  }

 private:
  static constexpr uint64_t kPage = 4096;
  std::vector<uint8_t>& Page(uint64_t address) {
    std::vector<uint8_t>& page = pages_[address / kPage];
    if (page.empty()) {
      page.assign(kPage, 0xa5);
    }
    return page;
  }
  std::map<uint64_t, std::vector<uint8_t>> pages_;
};

// Read engine as one client sees it: answers in order, `latency` cycles after
// a request, first byte in lane 0. Call `Drive` before and `Sample` after
// settling, in each cycle. `Request` is the record of its port.
template <typename Model, typename Request = rtl::DmaReq>
class DmaReadModel {
 public:
  DmaReadModel(Model* model, Memory* memory) : dut_(model), memory_(memory) {}

  uint64_t latency = 10;
  uint32_t stall_percent = 0;           // Of request and data beats.
  uint64_t refuse_from = ~uint64_t{0};  // Addresses that answer with an error.
  uint64_t refuse_to = ~uint64_t{0};
  std::vector<rtl::DmaReq> requests;  // Log.
  size_t outstanding() const { return reads_.size(); }
  size_t most_outstanding = 0;

  void Drive(uint64_t cycle, Rng* rng) {
    dut_->rd_ready_i = (*rng)() % 100 >= stall_percent;
    if (!offering_) {
      offering_ = !reads_.empty() && reads_.front().due <= cycle &&
                  (*rng)() % 100 >= stall_percent;
    }
    dut_->rd_rsp_valid_i = offering_;
    dut_->rd_rsp_last_i = 0;
    dut_->rd_rsp_error_i = 0;
    if (offering_) {
      const Read& read = reads_.front();
      std::vector<uint8_t> beat(sizeof dut_->rd_rsp_data_i, 0xee);
      const size_t left = read.request.bytes - read.given;
      const bool refused = read.request.addr < refuse_to &&
                           read.request.addr + read.request.bytes > refuse_from;
      if (!refused) {
        memory_->Read(read.request.addr + read.given, beat.data(),
                      std::min(left, beat.size()));
      }
      std::memcpy(&dut_->rd_rsp_data_i, beat.data(), beat.size());
      dut_->rd_rsp_last_i = left <= beat.size();
      dut_->rd_rsp_error_i = refused;
    }
  }

  void Sample(uint64_t cycle) {
    if (offering_ && dut_->rd_rsp_ready_o) {
      Read& read = reads_.front();
      read.given += sizeof dut_->rd_rsp_data_i;
      if (read.given >= read.request.bytes) {
        reads_.pop_front();
      }
      offering_ = false;
    }
    if (dut_->rd_valid_o && dut_->rd_ready_i) {
      const rtl::DmaReq request = ReadOf(rtl::Sample<Request>(dut_->rd_req_o));
      EXPECT_GT(request.bytes, 0u);
      requests.push_back(request);
      reads_.push_back({request, cycle + latency, 0});
      most_outstanding = std::max(most_outstanding, reads_.size());
    }
  }

 private:
  static rtl::DmaReq ReadOf(const rtl::DmaReq& request) { return request; }
  static rtl::DmaReq ReadOf(const rtl::GatherReq& request) {
    return request.read;
  }

  struct Read {
    rtl::DmaReq request;
    uint64_t due;
    size_t given;
  };
  Model* dut_;
  Memory* memory_;
  std::deque<Read> reads_;
  bool offering_ = false;
};

// Write engine as one client sees it: takes requests and their data, commits
// them in order and answers `latency` cycles later.
template <typename Model>
class DmaWriteModel {
 public:
  struct Write {
    rtl::DmaReq request;
    std::vector<uint8_t> data;
  };

  DmaWriteModel(Model* model, Memory* memory) : dut_(model), memory_(memory) {}

  uint64_t latency = 10;
  uint32_t stall_percent = 0;
  uint64_t refuse_from = ~uint64_t{0};
  uint64_t refuse_to = ~uint64_t{0};
  uint64_t hold_until = 0;    // No answers before this cycle.
  size_t ahead = 1000;        // Requests taken before their data.
  std::vector<Write> writes;  // Log of what was taken completely.
  size_t answered = 0;

  void Drive(uint64_t cycle, Rng* rng) {
    dut_->wr_ready_i =
        (*rng)() % 100 >= stall_percent && pending_.size() < ahead;
    dut_->wr_data_ready_i =
        !pending_.empty() && (*rng)() % 100 >= stall_percent;
    dut_->wr_rsp_valid_i =
        !due_.empty() && std::max(due_.front().first, hold_until) <= cycle;
    dut_->wr_rsp_error_i = dut_->wr_rsp_valid_i && due_.front().second;
  }

  void Sample(uint64_t cycle) {
    if (dut_->wr_rsp_valid_i) {
      due_.pop_front();
      ++answered;
    }
    if (dut_->wr_data_valid_o && dut_->wr_data_ready_i) {
      Write& write = pending_.front();
      const size_t beat = sizeof dut_->wr_data_o;
      const size_t at = write.data.size();
      const size_t bytes = std::min<size_t>(beat, write.request.bytes - at);
      write.data.resize(at + bytes);
      std::memcpy(write.data.data() + at, &dut_->wr_data_o, bytes);
      if (write.data.size() == write.request.bytes) {
        const bool refused =
            write.request.addr < refuse_to &&
            write.request.addr + write.request.bytes > refuse_from;
        if (!refused) {
          memory_->Write(write.request.addr, write.data.data(),
                         write.data.size());
        }
        due_.emplace_back(cycle + latency, refused);
        writes.push_back(write);
        pending_.pop_front();
      }
    }
    if (dut_->wr_valid_o && dut_->wr_ready_i) {
      pending_.push_back({rtl::Sample<rtl::DmaReq>(dut_->wr_req_o), {}});
    }
  }

 private:
  Model* dut_;
  Memory* memory_;
  std::deque<Write> pending_;
  std::deque<std::pair<uint64_t, bool>> due_;
};

}  // namespace heddle::test
