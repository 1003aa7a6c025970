// SPDX-License-Identifier: Apache-2.0
#include "tests/host/backend/memory_model.h"

#include <algorithm>

namespace heddle::backend::memory {

void Receiver::Arrive(const std::vector<std::byte>& message,
                      const Operation& operation, uint16_t port, bool more) {
  const Posted receive = posted.front();
  posted.pop_front();
  size_t placed = 0;
  for (const iovec& part : receive.parts) {
    const size_t bytes = std::min(part.iov_len, message.size() - placed);
    std::memcpy(part.iov_base, message.data() + placed, bytes);
    placed += bytes;
  }
  Queue::Ended ended = {
      .completion = {.context = receive.context,
                     .flags = FI_RECV | FI_MSG |
                              ((operation.flags & kCarryData) != 0
                                   ? FI_REMOTE_CQ_DATA
                                   : 0),
                     .length = placed,
                     .buffer = receive.parts[0].iov_base,
                     .data_and_tag = {operation.data, 0}},
      .source = peers->Find(port),
      .error = std::nullopt};
  if (placed < message.size()) {
    ended.error = ErrorCompletion{.completion = ended.completion,
                                  .excess = message.size() - placed,
                                  .error = FI_HEDDLE_TRUNCATED,
                                  .detail = 0,
                                  .peer = std::nullopt};
  }
  if (receive.report || ended.error.has_value()) {
    batch.ended.push_back(ended);
  }
  if (!more) {
    queue->Write(std::move(batch));
    batch = {};
  }
}

int Transmitter::Send(const Operation& operation,
                      const std::vector<std::byte>& message) {
  const auto peer = wire->find(peers->Lookup(operation.peer)->port());
  if (peer == wire->end() || peer->second->posted.empty()) {
    return EAGAIN;
  }
  peer->second->Arrive(message, operation, port, operation.more);
  Queue::Entry entry;
  if ((operation.flags & kReportSuccess) != 0) {
    entry.ended.push_back({.completion = {.context = operation.context,
                                          .flags = FI_SEND | FI_MSG,
                                          .length = message.size()},
                           .error = std::nullopt});
  }
  queue->Write(std::move(entry));
  return 0;
}

namespace {

class PlainEndpoint final : public Endpoint {
 public:
  PlainEndpoint(Wire& wire, uint16_t port) : wire_(wire), port_(port) {}
  ~PlainEndpoint() override { wire_.erase(port_); }

  uint16_t port() const noexcept override { return port_; }
  uint32_t number() const noexcept override { return port_; }
  Result<bool> Enable(const EndpointOptions& options) override {
    transmitter_.queue = static_cast<Queue*>(options.tx_cq);
    transmitter_.peers = static_cast<PeerTable*>(options.peers);
    transmitter_.wire = &wire_;
    transmitter_.port = port_;
    receiver_.queue = static_cast<Queue*>(options.rx_cq);
    receiver_.peers = static_cast<PeerTable*>(options.peers);
    wire_[port_] = &receiver_;
    return true;
  }
  TransmitContext* transmit() const noexcept override { return &transmitter_; }
  ReceiveContext* receive() const noexcept override { return &receiver_; }
  bool Cancel(uint64_t /*context*/) noexcept override { return false; }

 private:
  Wire& wire_;
  uint16_t port_;
  mutable Transmitter transmitter_;
  mutable Receiver receiver_;
};

class MemoryDevice final : public Device {
 public:
  const Backend& backend() const noexcept override { return kBackend; }
  const std::string& name() const noexcept override { return name_; }
  const DeviceProfile& profile() const noexcept override { return profile_; }
  bool failed() const noexcept override { return false; }
  std::string failure() const override { return {}; }
  void WatchFailure(void (* /*report*/)(void*), void* /*cookie*/) override {}
  std::string Explain(Errno error, size_t /*bytes*/) const override {
    return std::strerror(static_cast<int>(error));
  }
  Progressor* progressor() noexcept override { return nullptr; }
  Result<std::unique_ptr<Counter>> OpenCounter() override {
    return std::unique_ptr<Counter>(std::make_unique<PlainCounter>());
  }
  Result<std::unique_ptr<Peers>> OpenPeers(size_t /*expected*/) override {
    return std::unique_ptr<Peers>(std::make_unique<PeerTable>());
  }
  Result<std::unique_ptr<Endpoint>> ClaimEndpoint(const EndpointName& name,
                                                  uint64_t* owner) override {
    *owner = 0;
    const uint16_t port = name.port != 0 ? name.port : next_port_++;
    if (wire_.contains(port)) {
      return Errno{EADDRINUSE};
    }
    return std::unique_ptr<Endpoint>(
        std::make_unique<PlainEndpoint>(wire_, port));
  }
  Result<std::unique_ptr<Region>> Register(std::span<const iovec> parts,
                                           size_t* /*refused*/) override {
    return std::unique_ptr<Region>(std::make_unique<Memory>(parts[0]));
  }
  Result<size_t> AddStatistics(
      std::span<uint64_t> sums) const noexcept override {
    return sums.size();
  }

 private:
  std::string name_ = "memory0";
  DeviceProfile profile_ = {
      .has = {.counters = true},
      .limits = {.tx_contexts = 8, .rx_contexts = 8, .completion_queues = 8}};
  Wire wire_;
  uint16_t next_port_ = 1000;
};

int Open(const char* /*domain_name*/,
         const std::optional<base::SocketAddress>& /*source*/,
         const core::Settings& /*settings*/, const core::OwnAddresses& /*own*/,
         core::OpenedDevice* opened) {
  opened->device = std::make_unique<MemoryDevice>();
  opened->address = *base::SocketAddress::FromText("10.0.0.1");
  return 0;
}

}  // namespace

const core::DeviceOpener kOpener = {
    .knows = [](const std::string& name) { return name == "memory0"; },
    .open = Open};

}  // namespace heddle::backend::memory
