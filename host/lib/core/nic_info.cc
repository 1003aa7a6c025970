// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/nic_info.h"

#include <rdma/fi_errno.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "host/lib/base/unsupported.h"
#include "host/lib/core/info_memory.h"

namespace heddle::core {
namespace {

// malloc'ed with everything it points to.
struct Nic {
  fid_nic base;
  fi_device_attr device;
  fi_bus_attr bus;
  fi_link_attr link;
};

struct NicDeleter {
  void operator()(Nic* nic) const noexcept {
    for (char* text :
         {nic->device.name, nic->device.device_id, nic->device.device_version,
          nic->device.vendor_id, nic->device.driver, nic->device.firmware,
          nic->link.address, nic->link.network_type}) {
      free(text);
    }
    free(nic);
  }
};
using NicPointer = std::unique_ptr<Nic, NicDeleter>;

const Nic* FromFid(const struct fid* handle) noexcept {
  // Source: fi_fabric(3), every descriptor starts with struct fid.
  return reinterpret_cast<const Nic*>(handle);
}

int CloseNic(struct fid* handle) noexcept {
  NicDeleter()(const_cast<Nic*>(FromFid(handle)));
  return FI_SUCCESS;
}

int ControlNic(struct fid* handle, int command, void* argument) noexcept;

// Long enough for `PrintBus`.
using BusText = std::array<char, 160>;

// The type and, of PCI, what belongs to it.
void PrintBus(const fi_bus_attr& bus, BusText* text) noexcept {
  if (bus.bus_type != FI_BUS_PCI) {
    (void)snprintf(text->data(), text->size(), "FI_BUS_UNKNOWN");
    return;
  }
  const fi_pci_attr& pci = bus.attr.pci;
  (void)snprintf(text->data(), text->size(),
                 "FI_BUS_PCI\n"
                 "            fi_pci_attr:\n"
                 "                domain_id: %x\n"
                 "                bus_id: %x\n"
                 "                device_id: %x\n"
                 "                function_id: %x",
                 pci.domain_id, pci.bus_id, pci.device_id, pci.function_id);
}

// Source: stock libfabric 1.17, which prints several things into one buffer
// and leaves the name to the nic: appends to the text that is there.
int PrintNic(const struct fid* handle, char* buffer, size_t bytes) noexcept {
  const Nic& nic = *FromFid(handle);
  const auto text = [](const char* value) {
    return value != nullptr ? value : "(null)";
  };
  BusText bus;
  PrintBus(nic.bus, &bus);
  const size_t used = strnlen(buffer, bytes);
  (void)snprintf(buffer + used, bytes - used,
                 "    nic:\n"
                 "        fi_device_attr:\n"
                 "            name: %s\n"
                 "            device_id: %s\n"
                 "            device_version: %s\n"
                 "            vendor_id: %s\n"
                 "            driver: %s\n"
                 "            firmware: %s\n"
                 "        fi_bus_attr:\n"
                 "            bus_type: %s\n"
                 "        fi_link_attr:\n"
                 "            address: %s\n"
                 "            mtu: %zu\n"
                 "            speed: %zu\n"
                 "            state: FI_LINK_UNKNOWN\n"
                 "            network_type: %s\n",
                 text(nic.device.name), text(nic.device.device_id),
                 text(nic.device.device_version), text(nic.device.vendor_id),
                 text(nic.device.driver), text(nic.device.firmware), bus.data(),
                 text(nic.link.address), nic.link.mtu, nic.link.speed,
                 text(nic.link.network_type));
  return FI_SUCCESS;
}

fi_ops nic_ops = {
    .size = sizeof(fi_ops),
    .close = CloseNic,
    .bind = base::RefuseBind,
    .control = ControlNic,
    .ops_open = base::RefuseOpenOps,
    .tostr = PrintNic,
    .ops_set = base::RefuseSetOps,
};

bool Copy(const char* text, char** copy) noexcept {
  *copy = text != nullptr ? DuplicateText(text) : nullptr;
  return text == nullptr || *copy != nullptr;
}

// A copy of the attributes with texts of its own; null without memory.
Nic* CopyNic(const fi_device_attr& device, const fi_bus_attr& bus,
             const fi_link_attr& link) noexcept {
  NicPointer made(static_cast<Nic*>(calloc(1, sizeof(Nic))));
  if (made == nullptr) {
    return nullptr;
  }
  made->base.fid = {
      .fclass = FI_CLASS_NIC, .context = nullptr, .ops = &nic_ops};
  made->base.device_attr = &made->device;
  made->base.bus_attr = &made->bus;
  made->base.link_attr = &made->link;
  made->bus = bus;
  made->link.mtu = link.mtu;
  made->link.speed = link.speed;
  made->link.state = link.state;
  const bool whole =
      Copy(device.name, &made->device.name) &&
      Copy(device.device_id, &made->device.device_id) &&
      Copy(device.device_version, &made->device.device_version) &&
      Copy(device.vendor_id, &made->device.vendor_id) &&
      Copy(device.driver, &made->device.driver) &&
      Copy(device.firmware, &made->device.firmware) &&
      Copy(link.address, &made->link.address) &&
      Copy(link.network_type, &made->link.network_type);
  return whole ? made.release() : nullptr;
}

int ControlNic(struct fid* handle, int command, void* argument) noexcept {
  if (command != FI_DUP) {
    return -FI_ENOSYS;
  }
  const Nic* nic = FromFid(handle);
  Nic* copy = CopyNic(nic->device, nic->bus, nic->link);
  if (copy == nullptr) {
    return -FI_ENOMEM;
  }
  *static_cast<struct fid**>(argument) = &copy->base.fid;
  return FI_SUCCESS;
}

}  // namespace

fid_nic* MakeNic(const NicDescription& description) noexcept {
  fi_device_attr device = {};
  device.name = const_cast<char*>(description.name);
  device.device_version = const_cast<char*>(description.device_version);
  device.driver = const_cast<char*>(description.driver);
  fi_link_attr link = {};
  link.address = const_cast<char*>(description.address);
  link.mtu = description.mtu;
  link.state = FI_LINK_UNKNOWN;
  link.network_type = const_cast<char*>(description.network_type);
  fi_bus_attr bus = {};
  bus.bus_type = FI_BUS_UNKNOWN;
  if (description.pci != nullptr) {
    bus.bus_type = FI_BUS_PCI;
    bus.attr.pci = *description.pci;
  }
  Nic* made = CopyNic(device, bus, link);
  return made != nullptr ? &made->base : nullptr;
}

}  // namespace heddle::core
