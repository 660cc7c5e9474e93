#define _GNU_SOURCE
#include "Signals.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int ends[2] = {-1, -1};
static int failure;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void note(int number) {
  int saved = errno;
  unsigned char byte = (unsigned char)number;
  /* A pipe that is full has enough of them. */
  (void)!write(ends[1], &byte, 1);
  errno = saved;
}

static void watch(void) {
  if (pipe(ends) != 0) {
    failure = -errno;
    return;
  }
  for (int end = 0; end < 2; end++) {
    (void)fcntl(ends[end], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[end], F_SETFL, O_NONBLOCK);
  }
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  (void)sigaction(SIGINT, &action, NULL);
  (void)sigaction(SIGTERM, &action, NULL);
}

int tc_watch_stop_signals(void) {
  (void)pthread_once(&once, watch);
  return failure != 0 ? failure : ends[0];
}
