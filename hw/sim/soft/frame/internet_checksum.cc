// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/soft/frame/internet_checksum.h"

namespace heddle::sim::soft {

#if !defined(__x86_64__)
ChecksumFunction ChecksumOfCpu() {
  return nullptr;
}
#endif

uint64_t ChecksumOfMany(std::span<const uint8_t> bytes) {
  static const ChecksumFunction kOfCpu = ChecksumOfCpu();
  if (kOfCpu == nullptr) {
    return ChecksumOfWords(bytes);
  }
  const size_t whole = bytes.size() / kChecksumBlock * kChecksumBlock;
  return kOfCpu(bytes.data(), whole) + ChecksumOfWords(bytes.subspan(whole));
}

}  // namespace heddle::sim::soft
