// SPDX-License-Identifier: Apache-2.0
// Loads the library as programs do that are not linked to it:
//
//   loading library PATH COUNT  opens, asks and closes libheddle.so.1
//   loading plugin PATH COUNT   the same with libheddle-fi.so
//   loading one PATH            is linked to libfabric.so.1, which is a symlink
//                               to PATH here: the two are one
//
// It ends with 0 when all was as it should be; else it says what was not, on
// standard error, and ends with 3.
#define _GNU_SOURCE  // NOLINT: dladdr, dl_iterate_phdr.

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kFailed = 3 };

#define CHECK(condition) Check((condition), #condition, __LINE__)

static void Check(bool condition, const char* text, int line) {
  if (!condition) {
    const char* reason = dlerror();
    (void)fprintf(stderr, "loading.c:%d: not true: %s (%s)\n", line, text,
                  reason != NULL ? reason : "no loader error");
    exit(kFailed);
  }
}

static int CountEntries(const char* path) {
  DIR* directory = opendir(path);
  CHECK(directory != NULL);
  int count = 0;
  while (readdir(directory) != NULL) {
    ++count;
  }
  CHECK(closedir(directory) == 0);
  return count;
}

static int CountMappings(void) {
  FILE* file = fopen("/proc/self/maps", "re");
  CHECK(file != NULL);
  int lines = 0;
  for (int next = fgetc(file); next != EOF; next = fgetc(file)) {
    lines += next == '\n' ? 1 : 0;
  }
  CHECK(fclose(file) == 0);
  return lines;
}

struct Held {
  int threads;
  int descriptors;
  int mappings;
};

static struct Held CountHeld(void) {
  return (struct Held){.threads = CountEntries("/proc/self/task"),
                       .descriptors = CountEntries("/proc/self/fd"),
                       .mappings = CountMappings()};
}

typedef int (*GetInfoFunction)(uint32_t, const char*, const char*, uint64_t,
                               const struct fi_info*, struct fi_info**);
typedef void (*FreeInfoFunction)(struct fi_info*);

// Asks a core that was loaded.
static void AskLibrary(void* library) {
  const GetInfoFunction get_info =
      (GetInfoFunction)(uintptr_t)dlsym(library, "fi_getinfo");
  const FreeInfoFunction free_info =
      (FreeInfoFunction)(uintptr_t)dlsym(library, "fi_freeinfo");
  CHECK(get_info != NULL && free_info != NULL);
  struct fi_info* info = NULL;
  CHECK(get_info(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info) == 0);
  CHECK(strcmp(info->fabric_attr->prov_name, "heddle") == 0);
  free_info(info);
}

// Asks a provider as a core does, which loads it but once.
static void AskPlugin(void* library) {
  struct fi_provider* (*const init)(void) =
      (struct fi_provider * (*)(void))(uintptr_t)dlsym(library, "fi_prov_ini");
  CHECK(init != NULL);
  const struct fi_provider* provider = init();
  CHECK(provider != NULL && strcmp(provider->name, "heddle") == 0);
}

static int LoadOften(const char* path, int count, void (*ask)(void*)) {
  struct Held before = {0};
  for (int i = 0; i < count; ++i) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    ask(library);
    CHECK(dlclose(library) == 0);
    if (i == 1) {
      before = CountHeld();
    }
  }
  const struct Held after = CountHeld();
  CHECK(after.threads == before.threads);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.mappings <= before.mappings + 2);
  // Its code stays, for threads and handlers that may still be in it.
  CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL);
  return 0;
}

// ------------------------------------------------------------------- one core

static int CountObject(struct dl_phdr_info* object, size_t bytes, void* data) {
  (void)bytes;
  char path[PATH_MAX];
  const bool known = realpath(object->dlpi_name, path) != NULL;
  const char* file = known ? strrchr(path, '/') : NULL;
  if (file != NULL && (strncmp(file, "/libheddle.so", 13) == 0 ||
                       strncmp(file, "/libfabric.so", 13) == 0)) {
    ++*(int*)data;
  }
  return 0;
}

static int LoadOnce(const char* path) {
  void* by_path = dlopen(path, RTLD_NOW);
  void* by_name = dlopen("libfabric.so.1", RTLD_NOW);
  CHECK(by_path != NULL && by_name != NULL);
  int objects = 0;
  (void)dl_iterate_phdr(CountObject, &objects);
  CHECK(objects == 1);
  // The program's own call goes where both names lead.
  Dl_info linked;
  Dl_info loaded;
  CHECK(dladdr((void*)(uintptr_t)fi_getparams, &linked) != 0);
  CHECK(dladdr(dlsym(by_path, "fi_getparams"), &loaded) != 0);
  CHECK(linked.dli_fbase == loaded.dli_fbase);
  CHECK(dlsym(by_name, "fi_getinfo") == dlsym(by_path, "fi_getinfo"));
  struct fi_info* info = NULL;
  CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_PROV_ATTR_ONLY, NULL,
                   &info) == 0);
  CHECK(info->next == NULL);
  CHECK(strcmp(info->fabric_attr->prov_name, "heddle") == 0);
  fi_freeinfo(info);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "library") == 0 && argc == 4) {
    return LoadOften(argv[2], atoi(argv[3]), AskLibrary);
  }
  if (strcmp(what, "plugin") == 0 && argc == 4) {
    return LoadOften(argv[2], atoi(argv[3]), AskPlugin);
  }
  if (strcmp(what, "one") == 0 && argc == 3) {
    return LoadOnce(argv[2]);
  }
  (void)fprintf(stderr, "loading: unknown command\n");
  return 2;
}
