/// Sends what no channel of SwiftNIO sends in as few steps.
///
/// No system header is included: whichever module includes one first owns its types.
#ifndef TIEREDCACHE_SOCKETCALLS_H
#define TIEREDCACHE_SOCKETCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Sends bytes and then a part of a file on a socket that does not block. What of the file shares its
/// first page with something else goes with the bytes, if it is in memory: the rest then begins with a
/// page, and 64 KiB are one segment less. Returns how many bytes of both together the socket has taken,
/// 0 where that is none or where the system has no such calls; what was wrong shows at the next write.
int64_t tc_send_with_file(int socket, const void *bytes, size_t count, int file, int64_t offset, size_t length);

/// Sends two pieces of memory on a socket that does not block. Returns how many bytes of both together
/// the socket has taken, 0 where that is none; what was wrong shows at the next write.
int64_t tc_send_both(int socket, const void *first, size_t first_count, const void *second, size_t second_count);

/// Whether a process of this user, or of root, is at the other end of a Unix socket.
bool tc_peer_is_own_user(int socket);

#endif
