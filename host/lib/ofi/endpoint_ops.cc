// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/endpoint_ops.h"

#include "host/lib/base/guard.h"
#include "host/lib/base/refuse.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/ofi/endpoint.h"
#include "host/lib/ofi/endpoint_alias.h"
#include "host/lib/ofi/transfer_handle.h"

namespace heddle::ofi {
namespace {

Endpoint& EndpointOf(struct fid* handle) noexcept {
  return TransferHandle::From(handle)->endpoint();
}

int CloseEndpoint(struct fid* handle) noexcept {
  return EndpointOf(handle).Close();
}

int CloseAlias(struct fid* handle) noexcept {
  return EndpointAlias::From(handle)->Close();
}

int BindEndpoint(struct fid* handle, struct fid* other,
                 uint64_t flags) noexcept {
  return EndpointOf(handle).Bind(other, flags);
}

int MakeAlias(TransferHandle* parent, const struct fi_alias& wanted) {
  EndpointAlias* alias = nullptr;
  const int result = EndpointAlias::Open(parent, wanted.flags, &alias);
  if (result == 0) {
    *wanted.fid = &alias->fid;
  }
  return result;
}

int ControlEndpoint(struct fid* handle, int command, void* argument) noexcept {
  TransferHandle* transfer = TransferHandle::From(handle);
  switch (command) {
    case FI_ENABLE:
      return base::Guard([&] { return transfer->endpoint().Enable(); });
    case FI_GETOPSFLAG:
      return transfer->ReadOpFlags(static_cast<uint64_t*>(argument));
    case FI_SETOPSFLAG:
      return transfer->ReplaceOpFlags(*static_cast<uint64_t*>(argument));
    case FI_ALIAS:
      return base::Guard([&] {
        return MakeAlias(transfer,
                         *static_cast<const struct fi_alias*>(argument));
      });
    default:
      return -FI_ENOSYS;
  }
}

ssize_t Cancel(struct fid* handle, void* context) noexcept {
  return EndpointOf(handle).Cancel(context);
}

// Source: fi_endpoint(3): levels and options that nobody knows differ from
// those that concern memory of other devices.
int RefuseOption(int level, int option) noexcept {
  const bool device_memory =
      level == FI_OPT_ENDPOINT &&
      (option == FI_OPT_FI_HMEM_P2P || option == FI_OPT_XPU_TRIGGER);
  return device_memory ? -FI_EOPNOTSUPP : -FI_ENOPROTOOPT;
}

bool IsMinMultiRecv(int level, int option) noexcept {
  return level == FI_OPT_ENDPOINT && option == FI_OPT_MIN_MULTI_RECV;
}

int GetOption(struct fid* handle, int level, int option, void* value,
              size_t* length) noexcept {
  return IsMinMultiRecv(level, option)
             ? EndpointOf(handle).GetMinMultiRecv(value, length)
             : RefuseOption(level, option);
}

int SetOption(struct fid* handle, int level, int option, const void* value,
              size_t length) noexcept {
  return IsMinMultiRecv(level, option)
             ? EndpointOf(handle).SetMinMultiRecv(value, length)
             : RefuseOption(level, option);
}

int SetName(struct fid* handle, void* address, size_t length) noexcept {
  return base::Guard(
      [&] { return EndpointOf(handle).SetName(address, length); });
}

int GetName(struct fid* handle, void* address, size_t* length) noexcept {
  return EndpointOf(handle).GetName(address, length);
}

}  // namespace

fi_ops endpoint_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseEndpoint,
    .bind = BindEndpoint,
    .control = ControlEndpoint,
    .ops_open = base::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

fi_ops alias_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseAlias,
    .bind = BindEndpoint,
    .control = ControlEndpoint,
    .ops_open = base::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

fi_ops_ep endpoint_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = Cancel,
    .getopt = GetOption,
    .setopt = SetOption,
    .tx_ctx = base::kNotImplemented,
    .rx_ctx = base::kNotImplemented,
    .rx_size_left = base::kNotImplemented,
    .tx_size_left = base::kNotImplemented,
};

// Connections and multicast groups are not of this endpoint type.
fi_ops_cm endpoint_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = SetName,
    .getname = GetName,
    .getpeer = base::kNotImplemented,
    .connect = base::kNotImplemented,
    .listen = base::kNotImplemented,
    .accept = base::kNotImplemented,
    .reject = base::kNotImplemented,
    .shutdown = base::kNotImplemented,
    .join = base::kNotImplemented,
};

fi_ops_atomic endpoint_atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = base::kNotImplemented,
    .writev = base::kNotImplemented,
    .writemsg = base::kNotImplemented,
    .inject = base::kNotImplemented,
    .readwrite = base::kNotImplemented,
    .readwritev = base::kNotImplemented,
    .readwritemsg = base::kNotImplemented,
    .compwrite = base::kNotImplemented,
    .compwritev = base::kNotImplemented,
    .compwritemsg = base::kNotImplemented,
    .writevalid = base::kNotImplemented,
    .readwritevalid = base::kNotImplemented,
    .compwritevalid = base::kNotImplemented,
};

fi_ops_collective endpoint_collective_ops = {
    .size = sizeof(fi_ops_collective),
    .barrier = base::kNotImplemented,
    .broadcast = base::kNotImplemented,
    .alltoall = base::kNotImplemented,
    .allreduce = base::kNotImplemented,
    .allgather = base::kNotImplemented,
    .reduce_scatter = base::kNotImplemented,
    .reduce = base::kNotImplemented,
    .scatter = base::kNotImplemented,
    .gather = base::kNotImplemented,
    .msg = base::kNotImplemented,
    .barrier2 = base::kNotImplemented,
};

}  // namespace heddle::ofi
