/// Threads that the process may still have.
#ifndef TIEREDCACHE_THREADS_H
#define TIEREDCACHE_THREADS_H

/// Whether the process may have so many more threads at once; 0 or -errno. They are ended again.
int tc_try_threads(int count);

#endif
