// SPDX-License-Identifier: Apache-2.0
// A library of devices of another release, as far as fi_getinfo sees it.
#include <cerrno>
#include <cstdio>

#include "driver/sim_factory.h"

extern "C" int heddle_sim_identity(const char*, uint32_t, uint64_t hash,
                                   uint64_t*, size_t, HeddleSimError* error) {
  error->error = EPROTO;
  std::snprintf(error->message, sizeof(error->message),
                "library has contract 0x1, the driver %#llx; install both "
                "from one release",
                static_cast<unsigned long long>(hash));
  return EPROTO;
}
