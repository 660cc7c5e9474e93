/// Files without a name (O_TMPFILE), which get one when they are complete.
#ifndef TIEREDCACHE_UNNAMEDFILES_H
#define TIEREDCACHE_UNNAMEDFILES_H

#if defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

// Defined by <fcntl.h> under _GNU_SOURCE only, which a module cannot set for its importers.
#ifndef O_TMPFILE
#define TC_O_TMPFILE (020000000 | O_DIRECTORY)
#else
#define TC_O_TMPFILE O_TMPFILE
#endif
#ifndef AT_SYMLINK_FOLLOW
#define AT_SYMLINK_FOLLOW 0x400
#endif

/// open(directory, O_TMPFILE): a descriptor, or a negative errno. EOPNOTSUPP, EISDIR and ENOENT
/// mean that the kernel or the file system knows no unnamed files.
static inline int tc_open_unnamed(const char *directory, mode_t mode) {
  int fd = open(directory, TC_O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  return fd >= 0 ? fd : -errno;
}

/// linkat through /proc: gives an unnamed file its name, which must be free. 0 or a negative errno.
static inline int tc_link_unnamed(int fd, const char *path) {
  char source[32];
  snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
  return linkat(AT_FDCWD, source, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : -errno;
}

/// rename(2), or renameat2(2) with RENAME_NOREPLACE. 0 or a negative errno.
static inline int tc_rename(const char *from, const char *to, bool replaces) {
  long result = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, replaces ? 0u : 1u);
  return result == 0 ? 0 : -errno;
}

/// copy_file_range(2) from where one file stands to where the other does: how many bytes, 0 at the end, or
/// a negative errno.
static inline ssize_t tc_copy_file_range(int from, int to, size_t count) {
  ssize_t copied = syscall(SYS_copy_file_range, from, (void *)0, to, (void *)0, count, 0u);
  return copied >= 0 ? copied : -errno;
}
#endif

#endif
