/* SPDX-License-Identifier: Apache-2.0 */
/* The public header is C11 by itself, without libfabric's. */
#include <rdma/fi_ext_heddle.h>

_Static_assert(FI_HEDDLE_OK == 0, "no error is 0");
_Static_assert(FI_HEDDLE_TRUNCATED == 1, "values are never changed");
_Static_assert(FI_HEDDLE_DEVICE_FAULT == 13, "values are never changed");
_Static_assert(FI_HEDDLE_UNKNOWN == 255, "values are never changed");

enum fi_heddle_errno heddle_header_is_c11(void);

enum fi_heddle_errno heddle_header_is_c11(void) {
  return FI_HEDDLE_OK;
}
