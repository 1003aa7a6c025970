// SPDX-License-Identifier: Apache-2.0
// Stands in for libheddle-soft.so: its device is in virtual time.
#include "tests/virtual_time/world.h"

#include <cerrno>
#include <map>
#include <stdexcept>

#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/base/virtual_time.h"
#include "hw/sim/device/device_library.h"
#include "hw/sim/device/settings.h"
#include "hw/soft/soft_device.h"
#include "tests/soft/forwarding_device.h"

namespace heddle::test {
namespace {

// The C factory has no argument for it.
World* current = nullptr;

}  // namespace

struct World::Parts {
  std::string wire;
  sim::base::VirtualTime time;
  std::map<std::string, Settings> settings;
  std::multimap<std::string, soft::SoftDevice*> devices;  // By address.
  std::function<void(const Frame&)> observer;
  uint32_t opened = 0;
};

// A soft device that is known to its world.
class WorldDevice final : public ForwardingDevice,
                          private sim::frame::FrameObserver {
 public:
  static Result<std::unique_ptr<Device>> Open(
      World* world, std::vector<HeddleSimOption> options,
      std::string* message) {
    World::Parts& parts = *world->parts_;
    std::unique_ptr<WorldDevice> made(new WorldDevice(&parts));
    for (const HeddleSimOption& option : options) {
      if (std::string(option.name) == "address") {
        made->address_ = option.value;
      }
    }
    for (const auto& [name, value] : parts.settings[made->address_]) {
      options.push_back({.name = name.c_str(), .value = value.c_str()});
    }
    options.push_back({.name = "wire", .value = parts.wire.c_str()});
    const auto settings =
        sim::device::ParseSettings(contract::kSoftKind, options, message);
    if (!settings.ok()) {
      return settings.error();
    }
    auto device = soft::SoftDevice::Open(
        settings.value(), message,
        {.time = &parts.time,
         .observer = parts.observer ? made.get() : nullptr});
    if (!device.ok()) {
      return device.error();
    }
    made->device_ = std::move(device.value());
    parts.devices.emplace(made->address_, made->device_.get());
    return std::unique_ptr<Device>(std::move(made));
  }

  ~WorldDevice() override {
    std::erase_if(parts_->devices, [this](const auto& row) {
      return row.second == device_.get();
    });
    device_.reset();  // It reports frames to this object.
  }

 private:
  explicit WorldDevice(World::Parts* parts)
      : parts_(parts), number_(parts->opened++) {}

  void Add(std::span<const uint8_t> frame, Way way) override {
    parts_->observer({.time_ns = parts_->time.now_ns(),
                      .device = number_,
                      .received = way == Way::kReceived,
                      .bytes = frame});
  }

  World::Parts* const parts_;
  const uint32_t number_;
  std::string address_;
};

World::World(const std::string& wire) : parts_(std::make_unique<Parts>()) {
  if (current != nullptr) {
    throw std::logic_error("there is another world");
  }
  parts_->wire = wire;
  current = this;
}

World::~World() {
  current = nullptr;
}

void World::Set(const std::string& address, Settings settings) {
  parts_->settings[address] = std::move(settings);
}

void World::set_pauser(Pauser pauser) {
  parts_->time.set_pauser(std::move(pauser));
}

void World::set_observer(std::function<void(const Frame&)> observer) {
  parts_->observer = std::move(observer);
}

uint64_t World::now_ns() const {
  return parts_->time.now_ns();
}

const void* World::RunNext(uint64_t until_ns) {
  return parts_->time.RunNext(until_ns);
}

void World::Kill(const std::string& address) {
  const auto [first, last] = parts_->devices.equal_range(address);
  for (auto row = first; row != last; ++row) {
    row->second->Kill();
  }
}

namespace {

constexpr sim::device::LibraryDevice kDevices[] = {
    {.kind = contract::kSoftKind,
     .open = [](std::span<const HeddleSimOption> options,
                std::string* message) -> Result<std::unique_ptr<Device>> {
       if (current == nullptr) {
         *message = "virtual time: there is no world";
         return Errno{ENODEV};
       }
       return WorldDevice::Open(current, {options.begin(), options.end()},
                                message);
     },
     .read_identity = [](std::span<uint64_t> words,
                         std::string* /*message*/) -> Result<bool> {
       soft::SoftDevice::ReadIdentity(words);
       return true;
     }}};

}  // namespace
}  // namespace heddle::test

std::span<const heddle::sim::device::LibraryDevice>
heddle::sim::device::LibraryDevices() {
  return test::kDevices;
}
