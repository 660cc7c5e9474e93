/// How many descriptors the process may have.
#ifndef TIEREDCACHE_DESCRIPTORS_H
#define TIEREDCACHE_DESCRIPTORS_H

/// setrlimit(RLIMIT_NOFILE): raises the soft limit to the hard one, at most 65,536. Left as it is
/// where that is not allowed.
void tc_raise_descriptor_limit(void);

#endif
