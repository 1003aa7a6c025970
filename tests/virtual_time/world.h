// SPDX-License-Identifier: Apache-2.0
// Soft devices of this process in virtual time, below the real driver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heddle::test {

// While it lives, every device `soft` that the driver opens through the
// simulator of this folder (FI_HEDDLE_SIM_PATH) joins it: one wire, one clock,
// no threads. One at a time; devices are closed before it ends.
//
// Thread safety: none; one thread drives everything.
class __attribute__((visibility("default"))) World {
 public:
  // Names and values as of driver/sim_factory.h.
  using Settings = std::vector<std::pair<std::string, std::string>>;
  struct Frame {
    uint64_t time_ns;
    uint32_t device;  // Counts devices in the order in which they were opened.
    bool received;    // Else sent.
    std::span<const uint8_t> bytes;
  };
  // `worker` is of the caller's device; as VirtualTime::Pauser.
  using Pauser = std::function<void(const void* worker, uint64_t until_ns)>;

  // `wire` is its name.
  explicit World(const std::string& wire);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Of devices at `address`, on top of what the library sets.
  void Set(const std::string& address, Settings settings);
  void set_pauser(Pauser pauser);
  // Called with each frame that a device sends or receives.
  void set_observer(std::function<void(const Frame&)> observer);

  uint64_t now_ns() const;
  // As VirtualTime::RunNext.
  const void* RunNext(uint64_t until_ns);

  // The devices at `address` end as if their process had died.
  void Kill(const std::string& address);

 private:
  friend class WorldDevice;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace heddle::test
