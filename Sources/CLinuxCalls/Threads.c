#include "Threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static void *wait_for_all(void *gate) {
  (void)pthread_mutex_lock(gate);
  (void)pthread_mutex_unlock(gate);
  return NULL;
}

int tc_try_threads(int count) {
  pthread_t *tried = calloc((size_t)count, sizeof(pthread_t));
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  int made = 0, result = 0;
  if (!tried) return -ENOMEM;
  // All live until the last was made.
  (void)pthread_mutex_lock(&gate);
  while (made < count && (result = pthread_create(&tried[made], NULL, wait_for_all, &gate)) == 0) made++;
  (void)pthread_mutex_unlock(&gate);
  while (made > 0) (void)pthread_join(tried[--made], NULL);
  free(tried);
  return -result;
}
