// SPDX-License-Identifier: Apache-2.0
// Moves C++ structs to and from the packed struct ports of a Verilated model.
//
// A struct states its fields once, most significant first as in SystemVerilog:
//   template <typename Visit> void Fields(Visit&& v) { v(a, 6); v(b, 10); }
// Fields are unsigned integers or enums of at most 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "verilated.h"

namespace heddle::test {

// Bits in the order of the wire and of a packed struct: most significant first.
class BitString {
 public:
  void Append(uint64_t value, unsigned bits) {
    for (unsigned i = bits; i-- > 0;) bits_.push_back((value >> i) & 1);
  }
  uint64_t Take(unsigned bits) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bits; ++i) value = value << 1 | bits_.at(next_++);
    return value;
  }
  size_t size() const { return bits_.size(); }
  // Bit 0 is the last one appended.
  bool FromLow(size_t bit) const { return bits_.at(bits_.size() - 1 - bit); }

 private:
  std::vector<bool> bits_;
  size_t next_ = 0;
};

template <typename T>
BitString ToBits(T value) {
  BitString out;
  value.Fields([&](auto& field, unsigned bits) {
    out.Append(static_cast<uint64_t>(field), bits);
  });
  return out;
}

template <typename T>
T FromBits(BitString bits) {
  T value = {};
  value.Fields([&](auto& field, unsigned width) {
    field =
        static_cast<std::remove_reference_t<decltype(field)>>(bits.Take(width));
  });
  return value;
}

template <typename Port>
void SetPort(Port& port, const BitString& bits) {
  uint64_t value = 0;
  for (size_t i = 0; i < bits.size(); ++i) {
    value |= uint64_t{bits.FromLow(i)} << i;
  }
  port = static_cast<Port>(value);
}

template <size_t kWords>
void SetPort(VlWide<kWords>& port, const BitString& bits) {
  for (size_t i = 0; i < kWords; ++i) port[i] = 0;
  for (size_t i = 0; i < bits.size(); ++i) {
    port[i / 32] |= uint32_t{bits.FromLow(i)} << (i % 32);
  }
}

template <typename Port>
BitString GetPort(const Port& port, size_t width) {
  BitString bits;
  for (size_t i = width; i-- > 0;) bits.Append((uint64_t{port} >> i) & 1, 1);
  return bits;
}

template <size_t kWords>
BitString GetPort(const VlWide<kWords>& port, size_t width) {
  BitString bits;
  for (size_t i = width; i-- > 0;) {
    bits.Append((port[i / 32] >> (i % 32)) & 1, 1);
  }
  return bits;
}

template <typename Port, typename T>
void Drive(Port& port, const T& value) {
  SetPort(port, ToBits(value));
}

template <typename T, typename Port>
T Sample(const Port& port) {
  return FromBits<T>(GetPort(port, ToBits(T{}).size()));
}

}  // namespace heddle::test
