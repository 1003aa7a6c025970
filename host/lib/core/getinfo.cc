// SPDX-License-Identifier: Apache-2.0
#include "host/lib/core/getinfo.h"

#include <strings.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/lib/base/core_services.h"
#include "host/lib/base/guard.h"
#include "host/lib/base/log.h"
#include "host/lib/base/socket_address.h"
#include "host/lib/base/version.h"
#include "host/lib/core/info_memory.h"
#include "host/lib/core/nic_info.h"
#include "host/lib/core/offer.h"
#include "host/lib/core/open_objects.h"
#include "host/lib/core/own_addresses.h"
#include "host/lib/core/resolve.h"
#include "host/lib/core/settings.h"
#include "host/lib/nic/functions.h"
#include "host/lib/nic/profile.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::core {
namespace {

// Set by a stock core on behalf of a utility provider, which is not to layer
// over endpoint types that this provider has itself. Source: libfabric.md F4;
// the core's internal OFI_CORE_PROV_ONLY.
constexpr uint64_t kAskedForLayering = 1ULL << 59;

void LogRefusal(const DeviceOffer& offer, const Refusal& refusal) {
  base::Log(base::LogLevel::kInfo, base::LogSubsystem::kCore,
            "device %s ruled out by %s: wanted %s, offered %s",
            offer.domain_name.c_str(), refusal.attribute.c_str(),
            refusal.wanted.c_str(), refusal.offered.c_str());
}

bool StoreAddress(const std::optional<base::SocketAddress>& address,
                  void** data, size_t* bytes) {
  if (!address) {
    return true;
  }
  *data = DuplicateBytes(address->data(), address->size());
  *bytes = *data != nullptr ? address->size() : 0;
  return *data != nullptr;
}

bool StoreAddresses(const Endpoints& endpoints, fi_info* info) {
  return StoreAddress(endpoints.source, &info->src_addr, &info->src_addrlen) &&
         StoreAddress(endpoints.destination, &info->dest_addr,
                      &info->dest_addrlen);
}

// PCI attributes of a domain that is a function in PCI.
std::optional<fi_pci_attr> PciOf(const std::string& domain_name) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  // NOLINTNEXTLINE(cert-err34-c): the name was checked when it was made.
  if (sscanf(domain_name.c_str(), "%x:%x:%x.%x", &domain, &bus, &device,
             &function) != 4) {
    return std::nullopt;
  }
  return fi_pci_attr{.domain_id = static_cast<uint16_t>(domain),
                     .bus_id = static_cast<uint8_t>(bus),
                     .device_id = static_cast<uint8_t>(device),
                     .function_id = static_cast<uint8_t>(function)};
}

// Callers before 1.7 know no nic.
bool StoreNic(const DeviceOffer& offer, const Settings& settings,
              const base::SocketAddress& address, fi_info* info) {
  if (FI_VERSION_LT(info->fabric_attr->api_version, FI_VERSION(1, 7))) {
    return true;
  }
  const std::string version = std::to_string(contract::kContractMajor) + "." +
                              std::to_string(contract::kContractMinor);
  const std::string port_address = address.IpText();
  const std::optional<fi_pci_attr> pci = PciOf(offer.domain_name);
  info->nic = MakeNic({.name = offer.domain_name.c_str(),
                       .device_version = version.c_str(),
                       .driver = base::kProviderName,
                       .address = port_address.c_str(),
                       .mtu = settings.payload_mtu_or_fallback(),
                       .network_type = "Ultra Ethernet",
                       .pci = pci.has_value() ? &*pci : nullptr});
  return info->nic != nullptr;
}

std::string PointerText(const void* pointer) {
  char text[24];
  (void)snprintf(text, sizeof(text), "%p", pointer);
  return text;
}

FoundObjects WantedObjects(const Hints& hints) {
  return {.fabric = hints->fabric_attr->fabric,
          .domain = hints->domain_attr->domain};
}

// The hints may name objects that are not open.
std::optional<Refusal> FindUnopened(const Hints& hints,
                                    const DeviceOffer& offer,
                                    const FoundObjects& open) {
  const FoundObjects wanted = WantedObjects(hints);
  if (wanted.domain != nullptr && open.domain == nullptr) {
    return Refusal{"domain_attr->domain", PointerText(wanted.domain),
                   "an open domain " + offer.domain_name};
  }
  if (wanted.fabric != nullptr && open.fabric == nullptr) {
    return Refusal{"fabric_attr->fabric", PointerText(wanted.fabric),
                   "an open fabric " + offer.fabric_name};
  }
  return std::nullopt;
}

// A device that may be offered, with the settings that hold for it.
struct Candidate {
  std::string domain_name;
  backend::DeviceProfile profile;
  WireReach reach = WireReach::kNetwork;
  Settings settings;
  const char* reason = "";  // To take it.
};

// `own` decides which families an address of ours can have.
DeviceOffer MakeOffer(const Candidate& candidate, const OwnAddresses& own) {
  return {.domain_name = candidate.domain_name,
          .fabric_name = FabricName(),
          .provider_name = base::kProviderName,
          .ipv4 = own.family() != AF_INET6,
          .ipv6 = own.family() != AF_INET,
          .profile = candidate.profile,
          .unexpected_bytes = candidate.settings.unexpected_bytes};
}

constexpr const char* kNamed = "FI_HEDDLE_DEVICE names it";

// Functions in PCI. The user has to correct the cause of a refusal only where
// such a device is named and there is no other.
void AddFunctions(const Settings& settings,
                  std::vector<Candidate>* candidates) {
  const bool named = settings.device.kind == contract::kVfioKind.name;
  nic::FoundFunctions found =
      nic::FindFunctions(settings.device.function, settings.vf_token);
  std::vector<std::string> refusals = std::move(found.refusals);
  if (found.offers.empty() && refusals.empty() && named) {
    std::array<char, 8> vendor{};
    std::snprintf(vendor.data(), vendor.size(), "%04x", contract::kPciVendor);
    refusals.push_back(
        "this machine has no PCI function of the NIC (lspci -d " +
        std::string(vendor.data()) + ":)");
  }
  const size_t before = candidates->size();
  candidates->reserve(before + found.offers.size());
  for (nic::FunctionOffer& offer : found.offers) {
    if (!settings.ip.empty() && !offer.ip.empty() && settings.ip != offer.ip) {
      refusals.push_back(offer.name + ": its address is " + offer.ip +
                         ", FI_HEDDLE_IP names " + settings.ip);
      continue;
    }
    Candidate candidate{.domain_name = std::move(offer.name),
                        .profile = offer.profile,
                        .settings = settings,
                        .reason = named ? kNamed : "it can be opened"};
    if (!offer.ip.empty()) {
      candidate.settings.ip = std::move(offer.ip);
      candidate.settings.payload_mtu =
          static_cast<uint16_t>(offer.payload_mtu_bytes);
    }
    candidates->push_back(std::move(candidate));
  }
  const bool none = candidates->size() == before;
  for (const std::string& refusal : refusals) {
    base::Log(named && none ? base::LogLevel::kWarn : base::LogLevel::kInfo,
              base::LogSubsystem::kCore, "device vfio ruled out: %s",
              refusal.c_str());
  }
}

void AddSimulated(const Settings& settings,
                  std::vector<Candidate>* candidates) {
  const bool named = !settings.device.kind.empty();
  const std::string kind =
      named ? settings.device.kind : std::string(contract::kDefaultKind.name);
  std::string message;
  const auto known = nic::SimulatedProfile(kind, settings.sim_path, message);
  if (!known.ok()) {
    // Most installations have no simulator; the user has to replace one that
    // does not fit.
    const auto level = named || static_cast<int>(known.error()) != ENOENT
                           ? base::LogLevel::kWarn
                           : base::LogLevel::kInfo;
    base::Log(level, base::LogSubsystem::kCore, "device %s0 ruled out: %s",
              kind.c_str(), message.c_str());
    return;
  }
  candidates->push_back(
      {.domain_name = kind + "0",
       .profile = known.value(),
       .reach = SimulatedReach(settings),
       .settings = settings,
       .reason =
           named
               ? kNamed
               : "there is no hardware, and FI_HEDDLE_DEVICE names no device"});
}

// ADR 0011.
std::vector<Candidate> FindCandidates(const Settings& settings) {
  std::vector<Candidate> candidates;
  if (settings.device.kind.empty() ||
      settings.device.kind == contract::kVfioKind.name) {
    AddFunctions(settings, &candidates);
  }
  if (candidates.empty() && settings.device.kind != contract::kVfioKind.name) {
    AddSimulated(settings, &candidates);
  }
  return candidates;
}

// A stock core writes the name itself and takes one that is there for that of
// a layered provider. Source: clients.md section 1, infos.
bool StoreProviderName(fi_info* info) {
  if (base::Core().stock) {
    return true;
  }
  info->fabric_attr->prov_name = DuplicateText(base::kProviderName);
  return info->fabric_attr->prov_name != nullptr;
}

// FI_PROV_ATTR_ONLY: name and version, whether or not there is a device.
int ProviderOnly(const Hints& hints, uint32_t version, fi_info** info) {
  const char* wanted = hints->fabric_attr->prov_name;
  if (wanted != nullptr && strcasecmp(wanted, base::kProviderName) != 0) {
    return -FI_ENODATA;
  }
  InfoPointer made(AllocateInfo());
  if (made == nullptr || !StoreProviderName(made.get())) {
    return -FI_ENOMEM;
  }
  made->fabric_attr->prov_version = base::kProviderVersion;
  made->fabric_attr->api_version = version;
  *info = made.release();
  return FI_SUCCESS;
}

// The info of one device.
int AnswerOf(const Candidate& candidate, const InfoRequest& request,
             const Hints& hints,
             const std::vector<InterfaceAddress>& interfaces,
             InfoPointer* info) {
  OwnAddresses own(candidate.reach, candidate.settings.ip, interfaces);
  const FoundObjects open = FindOpenObjects(FabricName(), candidate.domain_name,
                                            WantedObjects(hints));
  // Endpoints of an open domain have its address.
  const bool in_domain =
      hints->domain_attr->domain != nullptr && open.address.has_value();
  if (in_domain) {
    own = own.At(*open.address);
  }
  const DeviceOffer offer = MakeOffer(candidate, own);
  std::optional<Refusal> refusal = FindRefusal(hints, offer);
  if (!refusal) {
    refusal = FindUnopened(hints, offer, open);
  }
  if (refusal) {
    LogRefusal(offer, *refusal);
    return -FI_ENODATA;
  }
  Endpoints endpoints;
  std::string reason;
  const int result = Resolve(request, hints, own, &endpoints, &reason);
  if (result != FI_SUCCESS) {
    base::Log(base::LogLevel::kInfo, base::LogSubsystem::kCore,
              "device %s ruled out: %s", offer.domain_name.c_str(),
              reason.c_str());
    return result;
  }
  if (in_domain && endpoints.source.WithPort(0) != *open.address) {
    LogRefusal(offer, {"src_addr", endpoints.source.IpText(),
                       open.address->IpText() + ", that of the open domain"});
    return -FI_ENODATA;
  }
  InfoPointer made = MakeInfo(hints, request.version, offer);
  if (made == nullptr || !StoreProviderName(made.get()) ||
      !StoreAddresses(endpoints, made.get()) ||
      !StoreNic(offer, candidate.settings, endpoints.source, made.get())) {
    return -FI_ENOMEM;
  }
  made->addr_format = hints->addr_format == FI_SOCKADDR
                          ? uint32_t{FI_SOCKADDR}
                          : endpoints.source.format();
  made->fabric_attr->fabric = open.fabric;
  made->domain_attr->domain = open.domain;
  base::Log(base::LogLevel::kInfo, base::LogSubsystem::kCore,
            "device %s offered: it meets all hints, and %s",
            offer.domain_name.c_str(), candidate.reason);
  *info = std::move(made);
  return FI_SUCCESS;
}

// One info for each device; the first error where there is none.
int Answer(const InfoRequest& request, const Hints& hints,
           const Settings& settings, fi_info** info) {
  int result = -FI_ENODATA;
  InfoPointer first;
  fi_info* last = nullptr;
  const std::vector<InterfaceAddress> interfaces = ReadInterfaces();
  for (const Candidate& candidate : FindCandidates(settings)) {
    InfoPointer made;
    const int outcome = AnswerOf(candidate, request, hints, interfaces, &made);
    if (outcome == -FI_ENOMEM) {
      return outcome;
    }
    if (outcome != FI_SUCCESS) {
      result = result == -FI_ENODATA ? outcome : result;
    } else if (last == nullptr) {
      first = std::move(made);
      last = first.get();
    } else {
      last->next = made.release();
      last = last->next;
    }
  }
  *info = first.release();
  return *info != nullptr ? FI_SUCCESS : result;
}

}  // namespace

std::string FabricName() {
  return "heddle-" + GetSettings().wire;
}

int GetInfo(const InfoRequest& request, fi_info** info) noexcept {
  return base::Guard([&]() -> int {
    if (info == nullptr) {
      return -FI_EINVAL;
    }
    *info = nullptr;
    if (FI_VERSION_LT(kApiVersion, request.version)) {
      base::Log(
          base::LogLevel::kWarn, base::LogSubsystem::kCore,
          "API version %u.%u requested, the newest one supported is %u.%u",
          FI_MAJOR(request.version), FI_MINOR(request.version),
          FI_MAJOR(kApiVersion), FI_MINOR(kApiVersion));
      return -FI_ENOSYS;
    }
    if ((request.flags & kAskedForLayering) != 0) {
      return -FI_ENODATA;
    }
    const Hints hints(request.hints, Smaller(*request.layout,
                                             LayoutOfVersion(request.version)));
    if ((request.flags & FI_PROV_ATTR_ONLY) != 0) {
      return ProviderOnly(hints, request.version, info);
    }
    const Settings& settings = GetSettings();
    return settings.valid ? Answer(request, hints, settings, info) : -FI_EINVAL;
  });
}

}  // namespace heddle::core
