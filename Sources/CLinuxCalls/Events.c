#include "Events.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/eventfd.h>

int tc_event_open(void) {
  int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return descriptor >= 0 ? descriptor : -errno;
}
#else
int tc_event_open(void) { return -ENOSYS; }
#endif

// Neither can fail in a way that matters: a counter at its limit is set, and one at 0 is clear.
void tc_event_set(int descriptor) {
  const uint64_t one = 1;
  ssize_t written = write(descriptor, &one, sizeof(one));
  (void)written;
}

void tc_event_clear(int descriptor) {
  uint64_t count;
  ssize_t got = read(descriptor, &count, sizeof(count));
  (void)got;
}

void tc_event_close(int descriptor) { (void)close(descriptor); }
