/// Whether this process is a fork of the one that has begun to watch.
#ifndef TIEREDCACHE_FORKS_H
#define TIEREDCACHE_FORKS_H

#include <stdbool.h>

/// pthread_atfork, once in a process: from now on a child knows that it is one.
void tc_watch_forks(void);

/// Whether a fork since then made this process; one load.
bool tc_has_forked(void);

#endif
