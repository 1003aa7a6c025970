// SPDX-License-Identifier: Apache-2.0
// Frames of the fuzzer: changed in chosen places, made whole again or not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/sim/fault/faults.h"
#include "tests/fuzz/fuzz_nic.h"
#include "tests/fuzz/reader.h"

namespace heddle::fuzz {

// Where the parts of a frame of `form` begin.
struct Layout {
  explicit Layout(const Form& form)
      : l3(form.vlan != 0 ? 18 : 14),
        source(l3 + (form.ipv6 ? 8 : 12)),
        l4(l3 + (form.ipv6 ? 40 : 20)),
        pds(l4 + (form.native ? 4 : 8)) {}
  size_t l3, source, l4, pds;
};

// Writes lengths that fit the frame, without padding.
void FixLengths(const Form& form, sim::frame::Frame* frame);
// Writes CRC and IPv4 checksum that fit the lengths that are there. Frames too
// short for them stay as they are.
void FixCrc(const Form& form, sim::frame::Frame* frame);
void FixIpChecksum(const Form& form, sim::frame::Frame* frame);

// Changes a frame as the input says, and fixes what it says. True if whoever
// receives it may take it for one that its sender meant.
bool Edit(const Form& form, Reader* input, sim::frame::Frame* frame);

// A UET packet with headers of the input's choice on the addresses of `base`, a
// request between the same functions.
sim::frame::Frame MakePacket(const Form& form, Reader* input,
                             const sim::frame::Frame& base);

}  // namespace heddle::fuzz
