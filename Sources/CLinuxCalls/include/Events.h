/// Descriptors that are readable while something is so (eventfd(2)).
#ifndef TIEREDCACHE_EVENTS_H
#define TIEREDCACHE_EVENTS_H

/// A descriptor that is not set, or a negative errno; -ENOSYS on systems other than Linux.
int tc_event_open(void);

/// Makes it readable.
void tc_event_set(int descriptor);

/// Makes it not readable.
void tc_event_clear(int descriptor);

void tc_event_close(int descriptor);

#endif
