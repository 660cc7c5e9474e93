#include "Forks.h"

#include <pthread.h>
#include <stdatomic.h>

enum { unused, in_use, forked };

static _Atomic int state = unused;

static void note_fork(void) {
  int expected = in_use;
  (void)atomic_compare_exchange_strong(&state, &expected, forked);
}

// Not in the first use: a fork that comes while that registers its handler would not run it.
__attribute__((constructor)) static void watch(void) { (void)pthread_atfork(NULL, NULL, note_fork); }

void tc_begin_use(void) {
  int expected = unused;
  (void)atomic_compare_exchange_strong(&state, &expected, in_use);
}

bool tc_is_in_use(void) { return atomic_load_explicit(&state, memory_order_relaxed) == in_use; }

bool tc_has_forked(void) { return atomic_load_explicit(&state, memory_order_relaxed) == forked; }
