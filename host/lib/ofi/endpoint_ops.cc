// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/endpoint_ops.h"

#include "host/lib/boundary/guard.h"
#include "host/lib/fabric/unsupported.h"
#include "host/lib/ofi/endpoint.h"
#include "host/lib/ofi/endpoint_alias.h"
#include "host/lib/ofi/refuse.h"
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
      return boundary::Guard([&] { return transfer->endpoint().Enable(); });
    case FI_GETOPSFLAG:
      return transfer->ReadOpFlags(static_cast<uint64_t*>(argument));
    case FI_SETOPSFLAG:
      return transfer->ReplaceOpFlags(*static_cast<uint64_t*>(argument));
    case FI_ALIAS:
      return boundary::Guard([&] {
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

int GetOption(struct fid* /*handle*/, int level, int option, void* /*value*/,
              size_t* /*length*/) noexcept {
  return RefuseOption(level, option);
}

int SetOption(struct fid* /*handle*/, int level, int option,
              const void* /*value*/, size_t /*length*/) noexcept {
  return RefuseOption(level, option);
}

int SetName(struct fid* handle, void* address, size_t length) noexcept {
  return boundary::Guard(
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
    .ops_open = fabric::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = fabric::RefuseSetOps,
};

fi_ops alias_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseAlias,
    .bind = BindEndpoint,
    .control = ControlEndpoint,
    .ops_open = fabric::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = fabric::RefuseSetOps,
};

fi_ops_ep endpoint_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = Cancel,
    .getopt = GetOption,
    .setopt = SetOption,
    .tx_ctx = kNotImplemented,
    .rx_ctx = kNotImplemented,
    .rx_size_left = kNotImplemented,
    .tx_size_left = kNotImplemented,
};

// Connections and multicast groups are not of this endpoint type.
fi_ops_cm endpoint_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = SetName,
    .getname = GetName,
    .getpeer = kNotImplemented,
    .connect = kNotImplemented,
    .listen = kNotImplemented,
    .accept = kNotImplemented,
    .reject = kNotImplemented,
    .shutdown = kNotImplemented,
    .join = kNotImplemented,
};

fi_ops_tagged endpoint_tagged_ops = {
    .size = sizeof(fi_ops_tagged),
    .recv = kNotImplemented,
    .recvv = kNotImplemented,
    .recvmsg = kNotImplemented,
    .send = kNotImplemented,
    .sendv = kNotImplemented,
    .sendmsg = kNotImplemented,
    .inject = kNotImplemented,
    .senddata = kNotImplemented,
    .injectdata = kNotImplemented,
};

fi_ops_atomic endpoint_atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = kNotImplemented,
    .writev = kNotImplemented,
    .writemsg = kNotImplemented,
    .inject = kNotImplemented,
    .readwrite = kNotImplemented,
    .readwritev = kNotImplemented,
    .readwritemsg = kNotImplemented,
    .compwrite = kNotImplemented,
    .compwritev = kNotImplemented,
    .compwritemsg = kNotImplemented,
    .writevalid = kNotImplemented,
    .readwritevalid = kNotImplemented,
    .compwritevalid = kNotImplemented,
};

fi_ops_collective endpoint_collective_ops = {
    .size = sizeof(fi_ops_collective),
    .barrier = kNotImplemented,
    .broadcast = kNotImplemented,
    .alltoall = kNotImplemented,
    .allreduce = kNotImplemented,
    .allgather = kNotImplemented,
    .reduce_scatter = kNotImplemented,
    .reduce = kNotImplemented,
    .scatter = kNotImplemented,
    .gather = kNotImplemented,
    .msg = kNotImplemented,
    .barrier2 = kNotImplemented,
};

}  // namespace heddle::ofi
