#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "SocketCalls.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/sendfile.h>

enum { page_size = 4096 };
#endif

#if defined(MSG_NOSIGNAL)
enum { send_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
#else
// There the socket itself says that no signal is wanted.
enum { send_flags = MSG_DONTWAIT };
#endif

// Sends what there is to be copied. (To let it wait for the pages with MSG_MORE was measured to take
// about twice the time of a request.)
static ssize_t send_both(int socket, struct iovec *parts) {
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = parts[1].iov_len > 0 ? 2 : 1};
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, send_flags);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? 0 : sent;
}

int64_t tc_send_both(int socket, const void *first, size_t first_count, const void *second, size_t second_count) {
  struct iovec parts[2] = {{.iov_base = (void *)first, .iov_len = first_count},
                           {.iov_base = (void *)second, .iov_len = second_count}};
  return send_both(socket, parts);
}

int64_t tc_send_with_file(int socket, const void *bytes, size_t count, int file, int64_t offset, size_t length) {
#if defined(__linux__)
  char start[page_size];
  size_t wanted = (size_t)(-offset & (page_size - 1));
  struct iovec parts[2] = {{.iov_base = (void *)bytes, .iov_len = count}, {.iov_base = start}};
  if (wanted > 0 && wanted < length) {
    struct iovec room = {.iov_base = start, .iov_len = wanted};
    ssize_t got = preadv2(file, &room, 1, offset, RWF_NOWAIT);
    parts[1].iov_len = got > 0 ? (size_t)got : 0;
  }
  ssize_t sent = count + parts[1].iov_len > 0 ? send_both(socket, parts) : 0;
  if ((size_t)sent < count + parts[1].iov_len)
    return sent;
  off_t rest = (off_t)offset + (off_t)parts[1].iov_len;
  ssize_t added;
  do {
    added = sendfile(socket, file, &rest, length - parts[1].iov_len);
  } while (added < 0 && errno == EINTR);
  return added < 0 ? sent : sent + added;
#else
  return 0;
#endif
}

bool tc_peer_is_own_user(int socket) {
#if defined(__linux__)
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  uid_t user = peer.uid;
#else
  uid_t user;
  gid_t group;
  if (getpeereid(socket, &user, &group) != 0) return false;
#endif
  return user == geteuid() || user == 0;
}
