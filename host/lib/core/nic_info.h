// SPDX-License-Identifier: Apache-2.0
// What fi_getinfo says of the device itself: struct fid_nic.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>

namespace heddle::core {

// Texts may be null: not known.
struct NicDescription {
  const char* name;            // "rtl0"
  const char* device_version;  // Contract version, "1.1".
  const char* driver;
  const char* address;  // Of the port, as text.
  size_t mtu;           // Payload bytes per packet.
  const char* network_type;
  // Of a PCI function, else null.
  const fi_pci_attr* pci;
};

// A nic that fi_close frees, that FI_DUP copies and that names itself through
// fi_tostr; null without memory. The link is neither up nor down: what may
// change is not asked for here.
fid_nic* MakeNic(const NicDescription& description) noexcept;

}  // namespace heddle::core
