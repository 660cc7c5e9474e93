#ifndef TIEREDCACHE_SIGNALS_H
#define TIEREDCACHE_SIGNALS_H

/// Has SIGINT and SIGTERM write their number to a pipe from now on, at any instant: none is lost, as one may be
/// that is ignored for a moment, which is how sources of Dispatch begin to watch a signal.
///
/// Returns the end to read from, without waiting; the same at each call. A negative errno where there is no pipe.
int tc_watch_stop_signals(void);

#endif
