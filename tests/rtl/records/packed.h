// SPDX-License-Identifier: Apache-2.0
// Moves records to and from the ports of a Verilated model. A record is a
// struct that gen_records.py wrote, or one of the contract, whose image in
// memory is that of its packed struct.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <span>
#include <type_traits>
#include <vector>

#include "tests/rtl/pins.h"

namespace heddle::rtl {

// A vector of more than 64 bits; word 0 is the low one.
template <size_t kWidth>
struct Wide {
  std::array<uint64_t, (kWidth + 63) / 64> words = {};

  uint64_t& operator[](size_t word) { return words[word]; }
  uint64_t operator[](size_t word) const { return words[word]; }
  // Bytes from the top down: the order of the wire, where a vector holds a part
  // of a frame.
  std::vector<uint8_t> WireBytes() const {
    std::vector<uint8_t> bytes(kWidth / 8);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[bytes.size() - 1 - i] =
          static_cast<uint8_t>(words[i / 8] >> 8 * (i % 8));
    }
    return bytes;
  }
  // The vector of these bytes; 0 below the last.
  static Wide FromWireBytes(std::span<const uint8_t> bytes) {
    Wide wide;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const size_t at = kWidth / 8 - 1 - i;
      wide.words[at / 8] |= uint64_t{bytes[i]} << 8 * (at % 8);
    }
    return wide;
  }
  // The vector whose bytes are the image of a record of the contract.
  template <typename T>
  static Wide From(const T& record) {
    static_assert(8 * sizeof(T) == kWidth);
    return {std::bit_cast<decltype(words)>(record)};
  }
  template <typename T>
  T To() const {
    static_assert(8 * sizeof(T) == kWidth);
    return std::bit_cast<T>(words);
  }
  bool operator==(const Wide&) const = default;
};

// A struct that gen_records.py wrote.
template <typename T>
concept Generated = requires {
  T::kBits;
};

namespace internal {

template <typename T>
inline constexpr size_t kArraySize = 0;
template <typename T, size_t kSize>
inline constexpr size_t kArraySize<std::array<T, kSize>> = kSize;
template <typename T>
inline constexpr bool kIsWide = false;
template <size_t kWidth>
inline constexpr bool kIsWide<Wide<kWidth>> = true;

// Calls `leaf(value, low, width)` for the parts of `field`, of at most 64 bits
// each. `field` has `width` bits from bit `low` on.
template <typename Field, typename Leaf>
void Walk(Field& field, size_t low, size_t width, Leaf&& leaf) {
  using T = std::remove_const_t<Field>;
  if constexpr (Generated<T>) {
    T::Fields(field, [&](const char*, auto& part, size_t at, size_t bits) {
      Walk(part, low + at, bits, leaf);
    });
  } else if constexpr (kArraySize<T> != 0) {
    const size_t each = width / kArraySize<T>;
    for (size_t i = 0; i < field.size(); ++i) {
      Walk(field[i], low + i * each, each, leaf);
    }
  } else if constexpr (kIsWide<T>) {
    for (size_t at = 0; at < width; at += 64) {
      leaf(field.words[at / 64], low + at, std::min<size_t>(64, width - at));
    }
  } else if constexpr (std::is_class_v<T>) {
    static_assert(std::is_trivially_copyable_v<T>);
    using Image = std::array<uint8_t, sizeof(T)>;
    auto image = std::bit_cast<Image>(field);
    Walk(image, low, 8 * sizeof(T), leaf);
    if constexpr (!std::is_const_v<Field>) field = std::bit_cast<T>(image);
  } else {
    leaf(field, low, width);
  }
}

template <typename T>
constexpr size_t Bits() {
  if constexpr (Generated<T>) {
    return T::kBits;
  } else {
    return 8 * sizeof(T);
  }
}

// Size of the C++ type that Verilator gives a port of `bits` bits.
constexpr size_t PortBytes(size_t bits) {
  return bits <= 8    ? 1
         : bits <= 16 ? 2
         : bits <= 32 ? 4
         : bits <= 64 ? 8
                      : (bits + 31) / 32 * 4;
}

}  // namespace internal

// Bits of the packed struct of `T`.
template <typename T>
inline constexpr size_t kBits = internal::Bits<T>();

// Puts `value` into bits `low` and up. The high bits of a field's value are
// truncated, as in an assignment of SystemVerilog.
template <typename Port, typename T>
void DriveAt(Port& port, size_t low, const T& value) {
  internal::Walk(value, low, kBits<T>, [&](auto part, size_t at, size_t bits) {
    test::PutBits(port, at, bits, static_cast<uint64_t>(part));
  });
}

template <typename T, typename Port>
T SampleAt(const Port& port, size_t low) {
  T value = {};
  internal::Walk(value, low, kBits<T>, [&](auto& part, size_t at, size_t bits) {
    part = static_cast<std::remove_reference_t<decltype(part)>>(
        test::GetBits(port, at, bits));
  });
  return value;
}

// Element `index` of a port that is an array of records.
template <typename Port, typename T>
void DriveElement(Port& port, size_t index, const T& value) {
  DriveAt(port, index * kBits<T>, value);
}

template <typename T, typename Port>
T SampleElement(const Port& port, size_t index) {
  return SampleAt<T>(port, index * kBits<T>);
}

// Puts `value` on a port of its type.
template <typename Port, typename T>
void Drive(Port& port, const T& value) {
  static_assert(sizeof(Port) == internal::PortBytes(kBits<T>),
                "the port is of another type than the record");
  std::memset(&port, 0, sizeof port);
  DriveAt(port, 0, value);
}

// Returns the record on a port of type `T`.
template <typename T, typename Port>
T Sample(const Port& port) {
  static_assert(sizeof(Port) == internal::PortBytes(kBits<T>),
                "the port is of another type than the record");
  return SampleAt<T>(port, 0);
}

// The same bits in the same packed struct.
template <Generated T>
bool operator==(const T& a, const T& b) {
  std::array<uint8_t, (T::kBits + 7) / 8> bits_a = {}, bits_b = {};
  DriveAt(bits_a, 0, a);
  DriveAt(bits_b, 0, b);
  return bits_a == bits_b;
}

// For GoogleTest: fields that are not 0, in hexadecimal.
template <Generated T>
void PrintTo(const T& record, std::ostream* out) {
  *out << "{";
  T::Fields(record, [&](const char* name, auto& field, size_t, size_t bits) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (Generated<Field>) {
      *out << " " << name << "=";
      PrintTo(field, out);
    } else {
      uint64_t any = 0;
      internal::Walk(field, 0, bits, [&](auto part, size_t, size_t) {
        any |= static_cast<uint64_t>(part);
      });
      if (any == 0) return;
      *out << " " << name << "=" << std::hex;
      internal::Walk(field, 0, bits, [&](auto part, size_t at, size_t) {
        *out << (at == 0 ? "0x" : ",0x") << static_cast<uint64_t>(part);
      });
      *out << std::dec;
    }
  });
  *out << " }";
}

}  // namespace heddle::rtl
