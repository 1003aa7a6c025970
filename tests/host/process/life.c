// SPDX-License-Identifier: Apache-2.0
// A process that uses the library and then does what processes do:
//
//   life exit HOW STATUS  ends with operations outstanding and nothing closed,
//                         by `exit`, `_exit`, `return`, `quick_exit` or `abort`
//   life threads          has threads that take no signals and have a name
//   life fork             a child may open what it needs, but not use the
//                         parent's objects; both then exchange messages
//   life exec             a forked child runs `life child`
//   life child COUNT      works and holds COUNT descriptors before it begins
//   life signals          is hit by a signal every millisecond
//   life cycles COUNT     opens and closes everything COUNT times, leaks
//   nothing
//
// It ends with 0 when all was as it should be; else it says what was not, on
// standard error, and ends with 3.
#define _GNU_SOURCE  // NOLINT: gettid.

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  kFailed = 3,
  kLimitMs = 200000,
  kSignalledExchanges = 60,
};

// One endpoint that sends to itself, and all it needs.
struct Node {
  struct fi_info* info;
  struct fid_fabric* fabric;
  struct fid_eq* eq;
  struct fid_domain* domain;
  struct fid_cq* cq;
  struct fid_av* av;
  struct fid_ep* ep;
  fi_addr_t self;
};

#define CHECK(condition) Check((condition), #condition, __LINE__)

static void Check(bool condition, const char* text, int line) {
  if (!condition) {
    (void)fprintf(stderr, "life.c:%d: not true: %s (errno %s)\n", line, text,
                  strerror(errno));
    _exit(kFailed);
  }
}

static void Open(struct Node* node) {
  struct fi_info* hints = fi_allocinfo();
  hints->caps = FI_MSG;
  hints->ep_attr->type = FI_EP_RDM;
  CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &node->info) == 0);
  fi_freeinfo(hints);
  struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
  struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT,
                               .wait_obj = FI_WAIT_FD};
  struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
  CHECK(fi_fabric(node->info->fabric_attr, &node->fabric, NULL) == 0);
  CHECK(fi_eq_open(node->fabric, &eq_attr, &node->eq, NULL) == 0);
  CHECK(fi_domain(node->fabric, node->info, &node->domain, NULL) == 0);
  CHECK(fi_cq_open(node->domain, &cq_attr, &node->cq, NULL) == 0);
  CHECK(fi_av_open(node->domain, &av_attr, &node->av, NULL) == 0);
  CHECK(fi_endpoint(node->domain, node->info, &node->ep, NULL) == 0);
  CHECK(fi_ep_bind(node->ep, &node->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
  CHECK(fi_ep_bind(node->ep, &node->av->fid, 0) == 0);
  CHECK(fi_ep_bind(node->ep, &node->eq->fid, 0) == 0);
  CHECK(fi_enable(node->ep) == 0);
  char name[64];
  size_t length = sizeof(name);
  CHECK(fi_getname(&node->ep->fid, name, &length) == 0);
  CHECK(fi_av_insert(node->av, name, 1, &node->self, 0, NULL) == 1);
}

static void Close(struct Node* node) {
  CHECK(fi_close(&node->ep->fid) == 0);
  CHECK(fi_close(&node->av->fid) == 0);
  CHECK(fi_close(&node->cq->fid) == 0);
  CHECK(fi_close(&node->domain->fid) == 0);
  CHECK(fi_close(&node->eq->fid) == 0);
  CHECK(fi_close(&node->fabric->fid) == 0);
  fi_freeinfo(node->info);
}

// Sends `value` to itself and waits, blocked, for both completions. Returns how
// often the wait was interrupted.
static int Exchange(const struct Node* node, uint64_t value) {
  uint64_t received = ~value;
  int interrupted = 0;
  CHECK(fi_recv(node->ep, &received, sizeof(received), NULL, FI_ADDR_UNSPEC,
                &received) == 0);
  CHECK(fi_send(node->ep, &value, sizeof(value), NULL, node->self, &value) ==
        0);
  for (int done = 0; done < 2;) {
    struct fi_cq_entry entry;
    const ssize_t result = fi_cq_sread(node->cq, &entry, 1, NULL, kLimitMs);
    CHECK(result == 1 || result == -FI_EINTR);
    done += result == 1 ? 1 : 0;
    interrupted += result == 1 ? 0 : 1;
  }
  CHECK(received == value);
  return interrupted;
}

// Leaves receives, sends that find no buffer and mapped memory behind.
static void LeaveUnfinished(const struct Node* node) {
  enum { kBytes = 100000, kCount = 8 };
  char* data = calloc(2, kBytes);
  CHECK(data != NULL);
  for (int i = 0; i < kCount; ++i) {
    CHECK(fi_send(node->ep, data, kBytes, NULL, node->self, NULL) == 0);
  }
  CHECK(fi_recv(node->ep, data + kBytes, kBytes, NULL, FI_ADDR_UNSPEC, NULL) ==
        0);
}

// ----------------------------------------------------------------------- exit

static int End(const char* how, int status) {
  static struct Node node;
  Open(&node);
  (void)Exchange(&node, 1);
  LeaveUnfinished(&node);
  if (strcmp(how, "exit") == 0) {
    exit(status);
  } else if (strcmp(how, "_exit") == 0) {
    _exit(status);
  } else if (strcmp(how, "quick_exit") == 0) {
    quick_exit(status);
  } else if (strcmp(how, "abort") == 0) {
    abort();
  }
  return status;
}

// -------------------------------------------------------------------- threads

// Entries of a directory of /proc/self, but for "." and "..", and what the
// listing itself opens.
static int CountEntries(const char* path) {
  DIR* directory = opendir(path);
  CHECK(directory != NULL);
  int count = 0;
  for (const struct dirent* entry = readdir(directory); entry != NULL;
       entry = readdir(directory)) {
    count += entry->d_name[0] != '.' ? 1 : 0;
  }
  CHECK(closedir(directory) == 0);
  return count;
}

static int CountThreads(void) {
  return CountEntries("/proc/self/task");
}
static int CountDescriptors(void) {
  return CountEntries("/proc/self/fd") - 1;
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

// Every thread but the calling one is named after us and blocks the signals
// that applications use.
static void CheckThreads(void) {
  DIR* directory = opendir("/proc/self/task");
  CHECK(directory != NULL);
  for (const struct dirent* entry = readdir(directory); entry != NULL;
       entry = readdir(directory)) {
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid()) {
      continue;
    }
    char path[512];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%s/status",
                   entry->d_name);
    FILE* file = fopen(path, "re");
    CHECK(file != NULL);
    char line[256];
    bool named = false;
    uint64_t blocked = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
      named |= strncmp(line, "Name:\theddle-", 13) == 0;
      if (strncmp(line, "SigBlk:\t", 8) == 0) {
        blocked = strtoull(line + 8, NULL, 16);
      }
    }
    CHECK(fclose(file) == 0);
    CHECK(named);
    const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE,
                           SIGALRM, SIGTERM, SIGCHLD, SIGIO,   SIGPROF};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); ++i) {
      CHECK((blocked & (UINT64_C(1) << (unsigned)(signals[i] - 1))) != 0);
    }
  }
  CHECK(closedir(directory) == 0);
}

static int Threads(void) {
  struct fi_info* info = NULL;
  CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info) == 0);
  fi_freeinfo(info);
  CHECK(CountThreads() == 1);
  struct Node node;
  struct Node other;
  Open(&node);
  Open(&other);
  (void)Exchange(&node, 5);
  CHECK(CountThreads() > 1);
  CheckThreads();
  Close(&node);
  (void)Exchange(&other, 6);
  Close(&other);
  CHECK(CountThreads() == 1);
  return 0;
}

// ------------------------------------------------------------------ fork, exec

static void WaitFor(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void CheckInherited(struct Node* node) {
  uint64_t value = 0;
  struct fi_cq_entry entry;
  struct fid_mr* region = NULL;
  size_t length = sizeof(value);
  CHECK(fi_send(node->ep, &value, 8, NULL, node->self, NULL) ==
        -FI_EOPBADSTATE);
  CHECK(fi_recv(node->ep, &value, 8, NULL, 0, NULL) == -FI_EOPBADSTATE);
  CHECK(fi_cancel(&node->ep->fid, NULL) == -FI_EOPBADSTATE);
  CHECK(fi_getname(&node->ep->fid, &value, &length) == -FI_EOPBADSTATE);
  CHECK(fi_cq_read(node->cq, &entry, 1) == -FI_EOPBADSTATE);
  CHECK(fi_cq_sread(node->cq, &entry, 1, NULL, -1) == -FI_EOPBADSTATE);
  CHECK(fi_av_insert(node->av, &value, 1, NULL, 0, NULL) == -FI_EOPBADSTATE);
  CHECK(fi_mr_reg(node->domain, &value, 8, FI_SEND, 0, 0, 0, &region, NULL) ==
        -FI_EOPBADSTATE);
  CHECK(fi_close(&node->ep->fid) == -FI_EOPBADSTATE);
  CHECK(fi_close(&node->cq->fid) == -FI_EOPBADSTATE);
  CHECK(fi_close(&node->domain->fid) == -FI_EOPBADSTATE);
}

static int Fork(void) {
  struct Node node;
  Open(&node);
  (void)Exchange(&node, 1);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CheckInherited(&node);
    struct Node own;
    Open(&own);
    for (uint64_t i = 0; i < 20; ++i) {
      (void)Exchange(&own, i);
    }
    // A grandchild finds the same.
    const pid_t grandchild = fork();
    CHECK(grandchild >= 0);
    if (grandchild == 0) {
      CheckInherited(&node);
      CheckInherited(&own);
      exit(0);
    }
    WaitFor(grandchild);
    Close(&own);
    exit(0);
  }
  for (uint64_t i = 0; i < 20; ++i) {
    (void)Exchange(&node, i);
  }
  WaitFor(child);
  (void)Exchange(&node, 2);
  Close(&node);
  return 0;
}

static int Exec(const char* program) {
  char count[16];
  (void)snprintf(count, sizeof(count), "%d", CountDescriptors());
  struct Node node;
  Open(&node);
  LeaveUnfinished(&node);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    execl(program, program, "child", count, (char*)NULL);
    _exit(kFailed);
  }
  WaitFor(child);
  Close(&node);
  return 0;
}

// Nothing of the parent's came over: its descriptors close on exec.
static int Child(int descriptors) {
  CHECK(CountDescriptors() == descriptors);
  struct Node node;
  Open(&node);
  (void)Exchange(&node, 3);
  Close(&node);
  return 0;
}

// -------------------------------------------------------------------- signals

static volatile sig_atomic_t alarms;
static volatile sig_atomic_t strays;  // Taken by a thread not ours.
static pid_t main_thread;

static void OnAlarm(int number) {
  (void)number;
  ++alarms;
  strays += gettid() == main_thread ? 0 : 1;
}

static int Signals(void) {
  main_thread = gettid();
  struct Node node;
  Open(&node);
  struct sigaction action = {.sa_handler = OnAlarm};  // No SA_RESTART.
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  const struct itimerval each_ms = {.it_interval = {.tv_usec = 1000},
                                    .it_value = {.tv_usec = 1000}};
  CHECK(setitimer(ITIMER_REAL, &each_ms, NULL) == 0);
  // Opening and closing are hit, too.
  struct Node other;
  Open(&other);
  int interrupted = 0;
  for (uint64_t i = 0; i < kSignalledExchanges; ++i) {
    interrupted += Exchange(i % 2 == 0 ? &node : &other, i);
    if (i % 10 == 0) {
      uint32_t event = 0;
      struct fi_eq_entry entry;
      const ssize_t result =
          fi_eq_sread(node.eq, &event, &entry, sizeof(entry), 20, 0);
      CHECK(result == -FI_EAGAIN || result == -FI_EINTR);
      // A wait that nothing ends but its time.
      struct timespec before;
      struct timespec after;
      struct fi_cq_entry completion;
      CHECK(clock_gettime(CLOCK_MONOTONIC, &before) == 0);
      const ssize_t waited = fi_cq_sread(node.cq, &completion, 1, NULL, 20);
      CHECK(clock_gettime(CLOCK_MONOTONIC, &after) == 0);
      const int64_t ms = (after.tv_sec - before.tv_sec) * 1000 +
                         (after.tv_nsec - before.tv_nsec) / 1000000;
      CHECK(waited == -FI_EINTR || (waited == -FI_EAGAIN && ms >= 19));
    }
  }
  Close(&other);
  CHECK(alarms >= 50);
  CHECK(strays == 0);
  Close(&node);
  const struct itimerval never = {.it_value = {.tv_usec = 0}};
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  (void)printf("%d alarms, %d waits interrupted\n", (int)alarms, interrupted);
  return 0;
}

// --------------------------------------------------------------------- cycles

static int Cycles(int count) {
  int threads = 0;
  int descriptors = 0;
  int mappings = 0;
  for (int i = 0; i < count; ++i) {
    struct Node node;
    Open(&node);
    (void)Exchange(&node, (uint64_t)i);
    LeaveUnfinished(&node);
    Close(&node);
    // What is made once per process is there after the second time.
    if (i == 1) {
      threads = CountThreads();
      descriptors = CountDescriptors();
      mappings = CountMappings();
    }
  }
  CHECK(CountThreads() == threads);
  CHECK(CountDescriptors() == descriptors);
  // The allocator of C may have taken a few more.
  CHECK(CountMappings() <= mappings + 8);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "exit") == 0 && argc == 4) {
    return End(argv[2], atoi(argv[3]));
  }
  if (strcmp(what, "threads") == 0) {
    return Threads();
  }
  if (strcmp(what, "fork") == 0) {
    return Fork();
  }
  if (strcmp(what, "exec") == 0) {
    return Exec(argv[0]);
  }
  if (strcmp(what, "child") == 0 && argc == 3) {
    return Child(atoi(argv[2]));
  }
  if (strcmp(what, "signals") == 0) {
    return Signals();
  }
  if (strcmp(what, "cycles") == 0 && argc == 3) {
    return Cycles(atoi(argv[2]));
  }
  (void)fprintf(stderr, "life: unknown command\n");
  return 2;
}
