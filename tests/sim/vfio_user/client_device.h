// SPDX-License-Identifier: Apache-2.0
// A function behind a vfio-user socket as a Device: what a virtual machine's
// driver does, without the virtual machine.
#pragma once

#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/device.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/interrupt_fds.h"
#include "tests/sim/vfio_user/client.h"
#include "tests/sim/vfio_user/memory_file.h"

namespace heddle::sim::vfio_user {

// IOVAs begin at 4 GiB and are no addresses of this process. Memory that is
// mapped becomes pages of a file that the server has, too, with its contents.
class ClientDevice final : public Device {
 public:
  explicit ClientDevice(const std::string& path) : client_(path) {
    alive_ = client_.connected() && client_.Greet();
    if (!alive_) {
      return;
    }
    SetCommand(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    std::vector<int> fds;
    for (base::OwnedFd& event : events_) {
      event = base::OwnedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    }
    constexpr uint32_t kSome = 8;  // Vectors of one message.
    for (uint32_t start = 0; start < events_.size(); start += kSome) {
      vfio_irq_set set{};
      set.argsz = sizeof(set);
      set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
      set.index = VFIO_PCI_MSIX_IRQ_INDEX;
      set.start = start;
      set.count = kSome;
      fds.clear();
      for (uint32_t i = 0; i < kSome; ++i) {
        fds.push_back(events_[start + i].get());
      }
      EXPECT_TRUE(client_.Ask(Command::kDeviceSetIrqs, Bytes(set), fds));
      EXPECT_EQ(client_.answer.header.error, 0u);
    }
  }

  bool connected() const { return alive_; }
  void SetCommand(uint16_t value) {
    const std::lock_guard lock(mutex_);
    client_.Write<uint16_t>(VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, value);
  }
  void WriteConfig(uint64_t offset, uint16_t value) {
    const std::lock_guard lock(mutex_);
    client_.Write<uint16_t>(VFIO_PCI_CONFIG_REGION_INDEX, offset, value);
  }
  // The next mapping is at this IOVA.
  void set_next_iova(uint64_t iova) { next_iova_ = iova; }
  // Whether the server still answers.
  bool Answers() {
    const std::lock_guard lock(mutex_);
    return client_.Ask(Command::kDeviceGetInfo,
                       Bytes(std::array<uint32_t, 4>{16}));
  }

  const std::string& name() const override { return name_; }
  uint32_t ReadRegister32(uint32_t offset) override {
    const std::lock_guard lock(mutex_);
    return client_.Read<uint32_t>(VFIO_PCI_BAR0_REGION_INDEX, offset);
  }
  uint64_t ReadRegister64(uint32_t offset) override {
    const std::lock_guard lock(mutex_);
    return client_.Read<uint64_t>(VFIO_PCI_BAR0_REGION_INDEX, offset);
  }
  void WriteRegister32(uint32_t offset, uint32_t value) override {
    const std::lock_guard lock(mutex_);
    client_.Write(VFIO_PCI_BAR0_REGION_INDEX, offset, value);
  }
  void WriteRegister64(uint32_t offset, uint64_t value) override {
    const std::lock_guard lock(mutex_);
    client_.Write(VFIO_PCI_BAR0_REGION_INDEX, offset, value);
  }
  Doorbell doorbell(uint32_t bar2_offset) override {
    return {.notify =
                [](void* cookie, uint32_t offset, uint64_t value) {
                  static_cast<ClientDevice*>(cookie)->Ring(offset, value);
                },
            .cookie = this,
            .bar2_offset = bar2_offset};
  }
  // Eight words, one after the other: the BAR is trapped.
  PushWindow push_window(uint32_t bar2_offset) override {
    return {.copy =
                [](void* cookie, uint32_t offset, const void* slot) {
                  std::array<uint64_t, 8> words{};
                  std::memcpy(words.data(), slot, sizeof(words));
                  for (const uint64_t word : words) {
                    static_cast<ClientDevice*>(cookie)->Ring(offset, word);
                    offset += sizeof(word);
                  }
                },
            .cookie = this,
            .bar2_offset = bar2_offset};
  }
  // Whoever polls gives way to the server.
  ProgressHook progress_hook() override {
    constexpr useconds_t kPauseUs = 50;
    return {.step = [](void* /*cookie*/) { usleep(kPauseUs); }, .cookie = this};
  }
  Result<Iova> Map(void* address, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    auto file = std::make_unique<MemoryFile>(bytes);
    std::memcpy(file->data(), address, bytes);
    if (mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             file->fd(), 0) == MAP_FAILED) {
      return Errno{ENOMEM};
    }
    const DmaMap map{.argsz = sizeof(DmaMap),
                     .flags = kDmaReadable | kDmaWritable,
                     .offset = 0,
                     .address = next_iova_,
                     .bytes = bytes};
    next_iova_ += bytes + kPage;
    if (!client_.Ask(Command::kDmaMap, Bytes(map), {file->fd()}) ||
        client_.answer.header.error != 0) {
      return Errno{EIO};
    }
    return Iova{map.address};
  }
  void Unmap(Iova iova, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const DmaUnmap unmap{.argsz = sizeof(DmaUnmap),
                         .address = static_cast<uint64_t>(iova),
                         .bytes = bytes};
    if (alive_ && client_.Ask(Command::kDmaUnmap, Bytes(unmap))) {
      EXPECT_EQ(client_.answer.header.error, 0u);
    }
  }
  int interrupt_fd(uint32_t vector) override { return events_[vector].get(); }
  Result<bool> Reset() override {
    const std::lock_guard lock(mutex_);
    if (!client_.Ask(Command::kDeviceReset, {}) ||
        client_.answer.header.error != 0) {
      return Errno{EIO};
    }
    client_.Write<uint16_t>(VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND,
                            PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    return true;
  }
  bool failed() const override { return false; }
  std::string failure() const override { return {}; }

 private:
  void Ring(uint32_t offset, uint64_t value) {
    const std::lock_guard lock(mutex_);
    client_.Write(VFIO_PCI_BAR2_REGION_INDEX, offset, value);
  }

  const std::string name_ = "client";
  std::mutex mutex_;
  Client client_;
  bool alive_ = false;
  std::array<base::OwnedFd, base::InterruptFds::kVectors> events_;
  uint64_t next_iova_ = uint64_t{1} << 32;
};

}  // namespace heddle::sim::vfio_user
