#include "CLinuxCalls.h"
#include "Descriptors.h"
#include "Events.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

void tc_raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  rlim_t wanted = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int tc_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  return limit.rlim_cur > INT_MAX ? INT_MAX : (int)limit.rlim_cur;
}

static _Atomic int file_ceiling = INT_MAX;
static _Atomic int socket_ceiling = INT_MAX;

void tc_set_descriptor_ceilings(int files, int sockets) {
  atomic_store_explicit(&file_ceiling, files, memory_order_relaxed);
  atomic_store_explicit(&socket_ceiling, sockets, memory_order_relaxed);
}

bool tc_may_keep_socket(int descriptor) {
  return descriptor < atomic_load_explicit(&socket_ceiling, memory_order_relaxed);
}

int tc_keep_file(int descriptor) {
  if (descriptor < atomic_load_explicit(&file_ceiling, memory_order_relaxed)) return descriptor;
  (void)close(descriptor);
  return -EMFILE;
}

int tc_lowest_free_descriptor(int descriptor) {
  int lowest = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (lowest < 0) return errno == EMFILE ? INT_MAX : -errno;
  (void)close(lowest);
  return lowest;
}

int tc_try_descriptors(int count) {
  int *tried = calloc((size_t)count, sizeof(int));
  int made = 0, result = 0;
  if (!tried) return -ENOMEM;
  while (made < count && (tried[made] = tc_event_open()) >= 0) made++;
  if (made < count) result = tried[made];
  while (made > 0) tc_event_close(tried[--made]);
  free(tried);
  return result;
}
