// SPDX-License-Identifier: Apache-2.0
// Engines over transports over a network in memory that loses, doubles and
// reorders by seed, in virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "hw/sim/base/random.h"
#include "hw/soft/transport/transport.h"
#include "tests/soft/engine/test_fabric.h"

namespace heddle::soft::engine {

class LossyFabric final : public TestFabric {
 public:
  struct Weather {
    double loss = 0;
    double duplication = 0;
    double reordering = 0;
  };

  LossyFabric(uint64_t seed, const Weather& weather);
  ~LossyFabric() override;

  transport::MessageCarrier* Add(transport::TransportClient* client) override;
  bool Step() override;

  // Sees each datagram; false: it is lost.
  std::function<bool(std::span<const uint8_t>)> filter;

 private:
  class Wire;
  struct Node;
  struct Flying {
    size_t from = 0;
    size_t to = 0;
    std::vector<uint8_t> bytes;
  };

  void Launch(size_t from, size_t to, std::span<const uint8_t> bytes);

  sim::base::Random random_;
  Weather weather_;
  uint64_t now_ns_ = 0;
  std::multimap<uint64_t, Flying> air_;  // By time of arrival.
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace heddle::soft::engine
