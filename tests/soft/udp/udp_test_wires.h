// SPDX-License-Identifier: Apache-2.0
// UDP wires that are set up as a device sets them up, for tests.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/clock.h"
#include "hw/soft/udp/udp_wire.h"

namespace heddle::soft::udp {

using Bytes = std::vector<uint8_t>;

inline contract::PortCfg EnabledPort() {
  contract::PortCfg port{};
  port.enable = 1;
  port.crc = contract::CrcOrder::kMsbFirst;
  return port;
}

// Null, with a failure of the test, if it cannot be opened.
inline std::unique_ptr<UdpWire> OpenWire(const UdpWireOptions& options) {
  std::string message;
  auto wire = UdpWire::Open(options, &message);
  EXPECT_TRUE(wire.ok()) << message;
  if (!wire.ok()) {
    return nullptr;
  }
  wire.value()->Configure(EnabledPort());
  return std::move(wire.value());
}

// Claims a port that other test processes leave alone, also once it is
// released: wires choose theirs from 49152 on. 0 if there is none.
inline uint16_t ClaimOwnPort(wire::DatagramWire& wire) {
  constexpr uint32_t kPorts = 8;
  constexpr uint32_t kFirst = 10000;
  constexpr uint32_t kProcesses = 2500;
  const uint32_t first =
      kFirst + static_cast<uint32_t>(getpid()) % kProcesses * kPorts;
  for (uint32_t port = first; port < first + kPorts; ++port) {
    if (wire.ClaimPort({port}).granted) {
      return static_cast<uint16_t>(port);
    }
  }
  return 0;
}

inline Bytes Numbered(uint32_t number, size_t bytes) {
  Bytes out(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<uint8_t>(number + i * 7 + (i >> 8));
  }
  std::memcpy(out.data(), &number, std::min(bytes, sizeof(number)));
  return out;
}

inline wire::DatagramWire::SendOutcome SendBytes(wire::DatagramWire& wire,
                                                 const wire::Path& path,
                                                 const Bytes& bytes) {
  const std::span<uint8_t> room = wire.Room();
  EXPECT_GE(room.size(), bytes.size());
  std::memcpy(room.data(), bytes.data(), bytes.size());
  return wire.Send(path, bytes.size());
}

// Waits for a datagram, as a device does; false after a time in which all that
// was sent on a loopback has long arrived.
inline bool Await(wire::DatagramWire& wire, wire::Datagram* datagram,
                  uint64_t limit_ns = 5 * sim::base::kNsPerSecond) {
  const uint64_t end = sim::base::MonotonicNs() + limit_ns;
  do {
    wire.Flush();
    if (wire.Receive(datagram)) {
      return true;
    }
    wire.Sleep(1000000);
  } while (sim::base::MonotonicNs() < end);
  return false;
}

inline Bytes Copy(const wire::Datagram& datagram) {
  return {datagram.bytes.begin(), datagram.bytes.end()};
}

}  // namespace heddle::soft::udp
