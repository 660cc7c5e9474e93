#include "Forks.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic bool has_forked = false;

static void note_fork(void) { atomic_store_explicit(&has_forked, true, memory_order_relaxed); }

static void watch(void) { (void)pthread_atfork(NULL, NULL, note_fork); }

void tc_watch_forks(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, watch);
}

bool tc_has_forked(void) { return atomic_load_explicit(&has_forked, memory_order_relaxed); }
