// SPDX-License-Identifier: Apache-2.0
// What connects engines in tests.
#pragma once

#include "hw/soft/transport/client.h"
#include "hw/soft/transport/message_carrier.h"

namespace heddle::soft::engine {

// The fabric address of a node is its number (IPv4), in the order of `Add`.
class TestFabric {
 public:
  virtual ~TestFabric() = default;
  virtual transport::MessageCarrier* Add(
      transport::TransportClient* client) = 0;
  // Goes on a little; false when there was nothing to do.
  virtual bool Step() = 0;
};

}  // namespace heddle::soft::engine
