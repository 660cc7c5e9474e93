/// Sockets with a name in the file system. These calls may wait for a disk.
#ifndef TIEREDCACHE_NAMEDSOCKETS_H
#define TIEREDCACHE_NAMEDSOCKETS_H

#include <stdint.h>

/// The file that a name stood for.
struct tc_named_file {
  uint64_t device;
  uint64_t inode;
};

/// Listens at a stream socket that only this user may connect to, whatever the umask; takes the place of a socket that
/// is there. Returns a descriptor that closes with exec, and notes the file of the name; a negative errno on failure,
/// EADDRINUSE where something else has the name.
int tc_listen_at(const char *path, int backlog, struct tc_named_file *file);

/// Removes a name that still stands for this file. Returns 0, also where it stands for another one or is gone, or a
/// negative errno. Call it while the file is open: the number of one that is gone may be another's.
int tc_unlink_file(const char *path, const struct tc_named_file *file);

#endif
