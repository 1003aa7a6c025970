// SPDX-License-Identifier: Apache-2.0
#include "tests/system/harness/lockstep_nodes.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "driver/control/device_info.h"

namespace heddle {

std::unique_ptr<LockstepNodes> LockstepNodes::Create(
    size_t count, sim::nic::LockstepOptions options, std::string* error,
    const std::function<void(size_t, BareEndpointOptions&)>& shape) {
  std::unique_ptr<LockstepNodes> nodes(new LockstepNodes);
  const char* capture = std::getenv("HEDDLE_TEST_CAPTURE");
  options.capture = capture != nullptr ? capture : options.capture;
  const char* trace = std::getenv("HEDDLE_TEST_TRACE");
  options.trace = trace != nullptr ? trace : options.trace;
  for (size_t i = options.addresses.size(); i < count; ++i) {
    options.addresses.emplace_back(Address(i));
  }
  nodes->recording_ = WorldRecording::Prepare(&options);
  auto world = sim::nic::LockstepWorld::Create(options, error);
  if (!world.ok()) {
    return nullptr;
  }
  nodes->world_ = std::move(world.value());
  if (nodes->recording_ != nullptr) {
    nodes->recording_->Observe(*nodes->world_, count);
  }
  for (size_t i = 0; i < count; ++i) {
    Device& device = nodes->device(i);
    auto info = WaitReady(device, kReadyLimit, *error);
    if (!info.ok()) {
      return nullptr;
    }
    auto admin = AdminQueue::Create(device);
    if (!admin.ok()) {
      *error = "create the admin queue: " +
               std::string(std::strerror(static_cast<int>(admin.error())));
      return nullptr;
    }
    nodes->admin_.push_back(std::move(admin.value()));
    BareEndpointOptions endpoint_options;
    if (shape) {
      shape(i, endpoint_options);
    }
    auto endpoint = BareEndpoint::Create(device, *nodes->admin_.back(),
                                         endpoint_options, error);
    if (endpoint == nullptr) {
      return nullptr;
    }
    nodes->endpoints_.push_back(std::move(endpoint));
  }
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      nodes->endpoint(i).AddPeer(options.addresses[j],
                                 nodes->endpoint(j).grant());
    }
  }
  return nodes;
}

LockstepNodes::~LockstepNodes() {
  // Contexts end before the memory that they may still use.
  endpoints_.clear();
  memory_.clear();
  admin_.clear();
}

DmaBuffer& LockstepNodes::Memory(size_t node, size_t bytes) {
  auto buffer = DmaBuffer::Create(device(node), bytes);
  if (!buffer.ok()) {
    throw std::runtime_error("no DMA memory for a node");
  }
  memory_.push_back(std::make_unique<DmaBuffer>(std::move(buffer.value())));
  return *memory_.back();
}

std::string LockstepNodes::Report() {
  std::string text = "cycle " + std::to_string(world_->cycle()) + '\n';
  for (size_t node = 0; node < endpoints_.size(); ++node) {
    text += "node " + std::to_string(node) + ", statistics by number:";
    for (uint32_t i = 0; i < contract::kBar0StatisticsCount; ++i) {
      const uint64_t value =
          ReadStatistic(device(node), static_cast<contract::Statistic>(i));
      if (value != 0) {
        text += ' ' + std::to_string(i) + '=' + std::to_string(value);
      }
    }
    text += '\n';
  }
  return text;
}

bool LockstepNodes::StepUntil(uint64_t limit_cycles,
                              const std::function<bool()>& done) {
  const uint64_t end = world_->cycle() + limit_cycles;
  while (!done()) {
    if (world_->cycle() >= end || !world_->failure().empty()) {
      return false;
    }
    const uint64_t before = world_->cycle();
    world_->Step(1);
    if (world_->cycle() == before) {
      return done();  // Idle for good.
    }
  }
  return true;
}

LockstepNodes::Delivery LockstepNodes::AwaitDelivery(BareEndpoint& from,
                                                     BareEndpoint& to,
                                                     uint64_t limit_cycles) {
  Delivery delivery;
  (void)StepUntil(limit_cycles, [&] {
    delivery.sent = delivery.sent ? delivery.sent : from.PollTx();
    delivery.received = delivery.received ? delivery.received : to.PollRx();
    return delivery.done();
  });
  return delivery;
}

}  // namespace heddle
