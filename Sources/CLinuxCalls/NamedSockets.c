#include "NamedSockets.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int bind_and_listen(int socket, const struct sockaddr_un *address, int backlog, struct tc_named_file *file) {
  struct stat status;
#if !defined(SOCK_CLOEXEC)
  if (fcntl(socket, F_SETFD, FD_CLOEXEC) != 0) return -errno;
#endif
  if (lstat(address->sun_path, &status) == 0 && S_ISSOCK(status.st_mode) && unlink(address->sun_path) != 0 &&
      errno != ENOENT)
    return -errno;
  if (bind(socket, (const struct sockaddr *)address, sizeof *address) != 0) return -errno;
  if (lstat(address->sun_path, &status) != 0) return -errno;
  *file = (struct tc_named_file){(uint64_t)status.st_dev, (uint64_t)status.st_ino};
  // No connection is accepted before it listens.
  if (chmod(address->sun_path, 0600) != 0 || listen(socket, backlog) != 0) {
    int error = errno;
    (void)tc_unlink_file(address->sun_path, file);
    return -error;
  }
  return 0;
}

int tc_listen_at(const char *path, int backlog, struct tc_named_file *file) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
  strcpy(address.sun_path, path);
#if defined(SOCK_CLOEXEC)
  // No program that another thread starts meanwhile gets it.
  int result = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
#else
  int result = socket(AF_UNIX, SOCK_STREAM, 0);
#endif
  if (result < 0) return -errno;
  int error = bind_and_listen(result, &address, backlog, file);
  if (error == 0) return result;
  (void)close(result);
  return error;
}

int tc_unlink_file(const char *path, const struct tc_named_file *file) {
  struct stat status;
  if (lstat(path, &status) != 0) return errno == ENOENT ? 0 : -errno;
  if ((uint64_t)status.st_dev != file->device || (uint64_t)status.st_ino != file->inode) return 0;
  return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}
