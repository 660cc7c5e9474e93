/// How many descriptors the process may have.
#ifndef TIEREDCACHE_DESCRIPTORS_H
#define TIEREDCACHE_DESCRIPTORS_H

#include <stdbool.h>

/// setrlimit(RLIMIT_NOFILE): raises the soft limit to the hard one, at most 65,536. Left as it is
/// where that is not allowed.
void tc_raise_descriptor_limit(void);

/// getrlimit(RLIMIT_NOFILE): the soft limit, or -1.
int tc_descriptor_limit(void);

/// From now on no file that is opened here, and no connection, gets a number at or above these; none by
/// default.
void tc_set_descriptor_ceilings(int files, int sockets);

/// Whether a connection may keep its descriptor.
bool tc_may_keep_socket(int descriptor);

/// The descriptor of a file, or -EMFILE after closing one that is too high; negative numbers pass.
int tc_keep_file(int descriptor);

/// The number that the next descriptor would get; INT_MAX if there is none, or -errno.
///
/// fcntl(F_DUPFD) with `descriptor`, which must be open.
int tc_lowest_free_descriptor(int descriptor);

/// Whether the process may have so many more descriptors at once, and the system has them; 0 or
/// -errno. They are closed again.
int tc_try_descriptors(int count);

#endif
