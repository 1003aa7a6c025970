// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/registration.h"

#include "host/lib/nic/counter_cell.h"
#include "hw/contract/split_number.h"

namespace heddle::nic {

Result<std::unique_ptr<Registration>> Registration::Create(
    Nic& nic, std::span<const iovec> parts, size_t* refused_bytes) {
  std::unique_ptr<Registration> made(new Registration(nic));
  for (const iovec& part : parts) {
    auto mapped =
        nic::Region::Create(nic.device(), part.iov_base, part.iov_len);
    if (!mapped.ok()) {
      *refused_bytes = part.iov_len;
      return mapped.error();
    }
    made->parts_[made->count_++] = std::move(mapped.value());
  }
  made->whole_ = parts.size() == 1 ? made->parts_[0].reach() : Reach{};
  return made;
}

Result<uint64_t> Registration::Grant(const Access& access) {
  const auto flag = [](bool set, uint8_t bit) {
    return set ? unsigned{bit} : 0U;
  };
  const uint16_t counter =
      access.counter == nullptr
          ? uint16_t{0}
          : static_cast<const Counter*>(access.counter)->reference();
  auto granted = RemoteAccess::Grant(
      nic_,
      {.endpoint = access.endpoint.value_or(0),
       .iova = parts_[0].reach().start + parts_[0].reach().shift,
       .length = parts_[0].reach().bytes,
       .address_base = access.address_base,
       .key = access.key.value_or(0),
       .job_id = access.job_id,
       .flags = static_cast<uint8_t>(
           flag(access.read, contract::kRegionFlagRemoteRead) |
           flag(access.write, contract::kRegionFlagRemoteWrite) |
           flag(access.endpoint.has_value(), contract::kRegionFlagEndpoint) |
           flag(!access.key.has_value(), contract::kRegionFlagProviderKey)),
       .counter = contract::LowByte(counter),
       .counter_high = contract::HighByte(counter)});
  if (!granted.ok()) {
    return granted.error();
  }
  access_ = std::move(granted.value());
  return access_.key();
}

}  // namespace heddle::nic
