// SPDX-License-Identifier: Apache-2.0
// Configuration space of a PCI Express function of the NIC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::sim::pci {

struct Bar {
  uint64_t bytes = 0;  // A power of two of at least 16; 0: there is none.
  bool wide = false;   // 64-bit: takes the next BAR, too.
  bool prefetchable = false;
};

struct ConfigOptions {
  uint16_t vendor = 0;
  uint16_t device = 0;
  uint8_t revision = 0;
  uint16_t subsystem = 0;
  uint32_t class_code = 0x020000;  // Network controller, Ethernet.
  std::array<Bar, 6> bars = {};
  uint16_t msix_vectors = 1;  // 1 to 2048.
  uint8_t msix_bar = 4;
  uint32_t msix_table_offset = 0;
  uint32_t msix_pending_offset = 0;
  // Of a physical function; 0 virtual functions: no SR-IOV.
  uint16_t virtual_functions = 0;
  uint16_t virtual_device = 0;  // Their device id.
};

// Type 0 header, Power Management, PCI Express with function level reset,
// MSI-X; extended: Advanced Error Reporting and, of a physical function,
// SR-IOV. No INTx, no I/O space. What a write may not change stays as it is.
//
// Source: PCI Express Base Specification 5.0, chapters 6.2 (errors), 7.5, 7.7.2
// (MSI-X), 7.8.4 (AER), 9.3 (SR-IOV).
//
// Thread safety: none.
class ConfigSpace {
 public:
  static constexpr uint32_t kBytes = 4096;

  explicit ConfigSpace(const ConfigOptions& options);

  // What the function has to do after a write.
  struct Effect {
    bool reset = false;              // Function level reset; done here, too.
    bool virtual_functions = false;  // `active_functions()` changed.

    bool operator==(const Effect&) const = default;
  };

  // 1, 2 or 4 bytes, naturally aligned; false, without effect, for any other
  // access.
  [[nodiscard]] bool Read(uint32_t offset, std::span<std::byte> out) const;
  [[nodiscard]] bool Write(uint32_t offset, std::span<const std::byte> bytes,
                           Effect* effect);

  // All to its power-on state, but for what is sticky: the error registers.
  void Reset();

  bool bus_master() const;
  bool memory_space() const;
  bool msix_enabled() const;
  bool msix_masked() const;
  // Virtual functions that software has turned on.
  uint16_t active_functions() const;

  // Errors as they are named by their bit in AER's uncorrectable status.
  enum class Error : uint8_t {
    kDataLinkProtocol = 4,
    kPoisoned = 12,
    kCompletionTimeout = 14,
    kCompleterAbort = 15,
    kUnexpectedCompletion = 16,
    kMalformed = 18,
    kUnsupportedRequest = 20,
    kInternal = 22,
  };
  enum class Message : uint8_t { kNone, kNonFatal, kFatal };
  // Records an error. The answer is the message that it sends to the root: what
  // mask, severity and the enables of Device Control leave.
  Message Report(Error error);

  // Where the capabilities are; drivers find them by the chains.
  static constexpr uint32_t kPowerManagement = 0x40;
  static constexpr uint32_t kExpress = 0x50;
  static constexpr uint32_t kMsix = 0x90;
  static constexpr uint32_t kErrors = 0x100;
  static constexpr uint32_t kSriov = 0x150;

 private:
  // Bytes of a register: their value at power-on, and what software may do.
  void Put(uint32_t offset, uint32_t value, uint32_t bytes,
           uint32_t writable = 0);
  void BuildHeader(const ConfigOptions& options);
  void BuildCapabilities(const ConfigOptions& options);
  void BuildErrors(bool more);
  void BuildSriov(const ConfigOptions& options);
  void PutBars(uint32_t offset, const std::array<Bar, 6>& bars);
  uint32_t Load(uint32_t offset, uint32_t bytes) const;

  bool physical_ = false;
  std::array<uint8_t, kBytes> value_{};
  std::array<uint8_t, kBytes> initial_{};
  std::array<uint8_t, kBytes> writable_{};  // Bits.
  std::array<uint8_t, kBytes> clears_{};    // Bits that a written 1 clears.
};

}  // namespace heddle::sim::pci
