/// Whether a fork made this process of one whose locks another thread may hold.
///
/// States: unused → in use (tc_begin_use) → forked, in each child from then on. A child of a process that is unused is
/// so too. The handler of pthread_atfork that notes it is there as soon as the program or library is loaded.
#ifndef TIEREDCACHE_FORKS_H
#define TIEREDCACHE_FORKS_H

#include <stdbool.h>

/// Call it before the first lock is taken; changes nothing in a child of a process that was in use.
void tc_begin_use(void);

/// Whether locks may be taken; one load.
bool tc_is_in_use(void);

/// Whether this is a child of a process that was in use; one load.
bool tc_has_forked(void);

#endif
