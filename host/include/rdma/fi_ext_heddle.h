/* SPDX-License-Identifier: Apache-2.0 */
/* Extensions of the heddle provider to the libfabric API. */
#ifndef FI_EXT_HEDDLE_H
#define FI_EXT_HEDDLE_H

#ifdef __cplusplus
extern "C" {
#endif

/* prov_errno of completion and event errors. Values are never changed or
 * reused; fi_cq_strerror and fi_eq_strerror have a sentence for each. */
/* NOLINTBEGIN(readability-identifier-naming): names as in libfabric. */
enum fi_heddle_errno {
  FI_HEDDLE_OK = 0,
  FI_HEDDLE_TRUNCATED = 1,
  FI_HEDDLE_CANCELLED = 2,
  FI_HEDDLE_FLUSHED = 3,
  FI_HEDDLE_BAD_OPCODE = 4,
  FI_HEDDLE_BAD_LENGTH = 5,
  FI_HEDDLE_BAD_PEER = 6,
  FI_HEDDLE_BAD_POSITION = 7,
  FI_HEDDLE_LOCAL_ACCESS = 8,
  FI_HEDDLE_PEER_UNREACHABLE = 9,
  FI_HEDDLE_PEER_REJECTED = 10,
  FI_HEDDLE_REMOTE_ERROR = 11,
  FI_HEDDLE_INITIATOR_ERROR = 12,
  FI_HEDDLE_DEVICE_FAULT = 13,
  FI_HEDDLE_UNKNOWN = 255
};
/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif
