// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/fabric.h"

#include <strings.h>

#include <string>

#include "host/lib/base/guard.h"
#include "host/lib/base/log.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/core/getinfo.h"
#include "host/lib/ofi/domain_open.h"
#include "host/lib/ofi/event_queue.h"
#include "host/lib/ofi/statistics.h"
#include "host/lib/ofi/wait_set.h"

namespace heddle::ofi {
namespace {

int CloseFabric(struct fid* handle) noexcept {
  return Fabric::From(handle)->Close();
}

int OpenDomain(fid_fabric* handle, fi_info* info, fid_domain** domain,
               void* context) noexcept {
  return ofi::OpenDomain(handle, info, 0, domain, context);
}

int OpenDomain2(fid_fabric* handle, fi_info* info, fid_domain** domain,
                uint64_t flags, void* context) noexcept {
  return ofi::OpenDomain(handle, info, flags, domain, context);
}

int RefusePassiveEndpoint(fid_fabric* /*handle*/, fi_info* /*info*/,
                          fid_pep** /*endpoint*/, void* /*context*/) noexcept {
  return -FI_ENOSYS;
}

int OpenEventQueue(fid_fabric* handle, fi_eq_attr* attr, fid_eq** queue,
                   void* context) noexcept {
  return base::Guard([&] {
    return EventQueue::Open(Fabric::From(handle), attr, queue, context);
  });
}

int OpenWaitSet(fid_fabric* handle, fi_wait_attr* attr,
                fid_wait** set) noexcept {
  return base::Guard(
      [&] { return WaitSet::Open(Fabric::From(handle), attr, set); });
}

int TryWait(fid_fabric* /*handle*/, struct fid** objects, int count) noexcept {
  for (int index = 0; index < count; ++index) {
    struct fid* object = objects[index];
    const int result =
        object->ops->control(object, base::kControlTryWait, nullptr);
    if (result != FI_SUCCESS) {
      return result;
    }
  }
  return FI_SUCCESS;
}

fi_ops fabric_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseFabric,
    .bind = base::RefuseBind,
    .control = base::RefuseControl,
    .ops_open = ofi::OpenFabricOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

fi_ops_fabric fabric_ops = {
    .size = sizeof(fi_ops_fabric),
    .domain = OpenDomain,
    .passive_ep = RefusePassiveEndpoint,
    .eq_open = OpenEventQueue,
    .wait_open = OpenWaitSet,
    .trywait = TryWait,
    .domain2 = OpenDomain2,
};

}  // namespace

int Fabric::Open(const fi_fabric_attr* attr, fid_fabric** fabric,
                 void* context) {
  if (attr == nullptr || attr->name == nullptr || fabric == nullptr) {
    return -FI_EINVAL;
  }
  const std::string offered = core::FabricName();
  if (strcasecmp(attr->name, offered.c_str()) != 0) {
    base::Log(base::LogLevel::kInfo, base::LogSubsystem::kFabric,
              "no fabric %s: the one here is %s", attr->name, offered.c_str());
    return -FI_ENODATA;
  }
  auto* made = new Fabric;
  made->fid = {
      .fclass = FI_CLASS_FABRIC, .context = context, .ops = &fabric_fid_ops};
  made->ops = &fabric_ops;
  made->api_version = attr->api_version;
  *fabric = made;
  return FI_SUCCESS;
}

int Fabric::Close() noexcept {
  if (users_.in_use()) {
    return -FI_EBUSY;
  }
  delete this;
  return FI_SUCCESS;
}

}  // namespace heddle::ofi
