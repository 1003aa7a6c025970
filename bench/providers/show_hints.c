// SPDX-License-Identifier: Apache-2.0
// Preloaded into a libfabric program, prints on standard error the hints of its
// fi_getinfo calls and the providers in the results.
//
//   LD_PRELOAD=build/lib/libheddle_show_hints.so program
#define _GNU_SOURCE  // NOLINT: RTLD_NEXT.

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <stdio.h>

typedef int GetInfo(uint32_t version, const char* node, const char* service,
                    uint64_t flags, const struct fi_info* hints,
                    struct fi_info** info);
typedef char* ToText(const void* data, enum fi_type type);

static const char* Or(const char* text) {
  return text == NULL ? "NULL" : text;
}

int fi_getinfo(uint32_t version, const char* node, const char* service,
               uint64_t flags, const struct fi_info* hints,
               struct fi_info** info) {
  // A core calls itself for the providers below it: only the program's own
  // call is shown.
  static _Thread_local int depth;
  GetInfo* const next = (GetInfo*)dlsym(RTLD_NEXT, "fi_getinfo");
  ToText* const to_text = (ToText*)dlsym(RTLD_NEXT, "fi_tostr");
  if (next == NULL || to_text == NULL) {
    return -1;
  }
  const int shown = depth++ == 0;
  if (shown) {
    fprintf(stderr, "fi_getinfo version %u.%u node %s service %s flags %#llx\n",
            FI_MAJOR(version), FI_MINOR(version), Or(node), Or(service),
            (unsigned long long)flags);
    if (hints != NULL) {
      fputs(to_text(hints, FI_TYPE_INFO), stderr);
    }
  }
  const int result = next(version, node, service, flags, hints, info);
  if (shown) {
    fprintf(stderr, "fi_getinfo returned %d", result);
    for (const struct fi_info* found = result == 0 ? *info : NULL;
         found != NULL; found = found->next) {
      fprintf(stderr, " %s/%s", Or(found->fabric_attr->prov_name),
              Or(found->domain_attr->name));
    }
    fputc('\n', stderr);
  }
  --depth;
  return result;
}
