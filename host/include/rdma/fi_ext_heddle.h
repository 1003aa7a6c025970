/* SPDX-License-Identifier: Apache-2.0 */
/* Extensions of the heddle provider to the libfabric API. */
#ifndef FI_EXT_HEDDLE_H
#define FI_EXT_HEDDLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fid;

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
  FI_HEDDLE_BAD_KEY = 14,
  FI_HEDDLE_NO_RIGHT = 15,
  FI_HEDDLE_OUT_OF_RANGE = 16,
  FI_HEDDLE_NO_MESSAGE = 17,
  FI_HEDDLE_PEER_UNSUPPORTED = 18,
  FI_HEDDLE_UNKNOWN = 255
};

/* Statistics of an open domain (those of its device) or of an open fabric (the
 * sums over its open domains). Open them with
 *
 *   struct fi_heddle_ops_statistics *ops;
 *   fi_open_ops(&domain->fid, FI_HEDDLE_STATISTICS, 0, (void **)&ops, NULL);
 *
 * which fails with -FI_ENOSYS for other objects and -FI_EBADFLAGS for flags.
 *
 * Ownership: the table and all text are static and valid for the life of the
 * process. `fid` is always the object that the table was opened on.
 * Threads: any thread at any time between the opening and the closing of the
 * object, also while others use it; no call waits for the device's progress.
 */
#define FI_HEDDLE_STATISTICS "heddle_statistics"

struct fi_heddle_ops_statistics {
  /* Bytes of this structure in the library, which may be newer than this
   * header: a member exists if it lies below `size`. Members are only
   * appended. */
  size_t size;

  /* Number of statistics; constant for the life of the process. */
  size_t (*count)(struct fid* fid);

  /* Name of statistic `index`, e.g. "tx_retransmissions", in lower case, and
   * one sentence on its meaning. An index keeps its meaning in all versions;
   * later versions append. NULL beyond the last. */
  const char* (*name)(struct fid* fid, size_t index);
  const char* (*help)(struct fid* fid, size_t index);

  /* Reads the first `count` statistics, or all if there are fewer, into
   * `values` and returns the number read. Each value is read atomically, but
   * different values at different times. Values start at 0 at the device's
   * power-on and only grow; they wrap at 2^64.
   * Errors: -FI_EINVAL: no `values`; -FI_EIO: a device has failed. */
  ssize_t (*read)(struct fid* fid, uint64_t* values, size_t count);
};
/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif
