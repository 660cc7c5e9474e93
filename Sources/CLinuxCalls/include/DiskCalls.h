/// The disk tier's system calls that Swift's overlay lacks or makes clumsy. Header only.
///
/// Each call restarts after EINTR and returns a negative errno on failure, so that nothing can
/// overwrite errno between the call and its reading.
#ifndef TIEREDCACHE_DISKCALLS_H
#define TIEREDCACHE_DISKCALLS_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

#define TC_RETRY(result, call)                                                 \
  do {                                                                         \
    result = (call);                                                           \
  } while (result < 0 && errno == EINTR)

#if !defined(O_NOATIME)
#define O_NOATIME 0
#endif

static inline int tc_openat_plain(int directory, const char *path, int flags,
                                  mode_t mode) {
  int file;
  TC_RETRY(file, openat(directory, path, flags | O_CLOEXEC, mode));
  return file < 0 ? -errno : file;
}

#if defined(__linux__)
static inline int tc_openat2(int directory, const char *path, int flags,
                             mode_t mode, uint64_t resolve) {
  struct open_how how = {
      .flags = (uint64_t)(flags | O_CLOEXEC),
      .mode = (flags & O_CREAT) != 0 ? mode : 0,
      .resolve = resolve,
  };
  long file;
  TC_RETRY(file, syscall(SYS_openat2, directory, path, &how, sizeof how));
  return file < 0 ? -errno : (int)file;
}
#endif

/// Opens below `directory` without following a symbolic link in any component. With `cached`, fails
/// with EAGAIN where that would need the disk. O_NOATIME is dropped for files of another user, and
/// kernels or sandboxes without openat2 get O_NOFOLLOW, which guards the last component alone.
static inline int tc_open_beneath(int directory, const char *path, int flags,
                                  mode_t mode, bool cached) {
#if defined(__linux__)
  uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                     (cached ? RESOLVE_CACHED : 0);
  int file = tc_openat2(directory, path, flags, mode, resolve);
  if (file == -EPERM && (flags & O_NOATIME) != 0) {
    flags &= ~O_NOATIME;
    file = tc_openat2(directory, path, flags, mode, resolve);
  }
  if (file != -ENOSYS && file != -EPERM)
    return file;
#endif
  if (cached)
    return -EAGAIN;
  return tc_openat_plain(directory, path, flags | O_NOFOLLOW, mode);
}

/// Reads what the page cache holds; fails with EAGAIN where the disk would be needed.
static inline ssize_t tc_pread_nowait(int file, void *buffer, size_t count,
                                      off_t offset) {
#if defined(__linux__)
  struct iovec vector = {.iov_base = buffer, .iov_len = count};
  ssize_t result;
  TC_RETRY(result, preadv2(file, &vector, 1, offset, RWF_NOWAIT));
  if (result >= 0)
    return result;
  return errno == EOPNOTSUPP || errno == ENOSYS ? -EAGAIN : -errno;
#else
  return -EAGAIN;
#endif
}

static inline ssize_t tc_pread(int file, void *buffer, size_t count,
                               off_t offset) {
  ssize_t result;
  TC_RETRY(result, pread(file, buffer, count, offset));
  return result < 0 ? -errno : result;
}

/// Writes two buffers that follow each other, as far as the kernel takes them in one call.
static inline ssize_t tc_pwrite_two(int file, const void *first,
                                    size_t first_count, const void *second,
                                    size_t second_count, off_t offset) {
  struct iovec vectors[2] = {
      {.iov_base = (void *)first, .iov_len = first_count},
      {.iov_base = (void *)second, .iov_len = second_count},
  };
  ssize_t result;
  TC_RETRY(result, pwritev(file, vectors, second_count == 0 ? 1 : 2, offset));
  return result < 0 ? -errno : result;
}

static inline int tc_ftruncate(int file, off_t length) {
  int result;
  TC_RETRY(result, ftruncate(file, length));
  return result < 0 ? -errno : 0;
}

/// Gives the blocks of a range back; the length stays and the range reads as zeros.
static inline int tc_punch(int file, off_t offset, off_t length) {
#if defined(__linux__)
  int result;
  TC_RETRY(result, fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                             offset, length));
  return result < 0 ? -errno : 0;
#else
  return -ENOTSUP;
#endif
}

static inline int tc_sync(int file, bool data_only) {
  int result;
#if defined(__linux__)
  TC_RETRY(result, data_only ? fdatasync(file) : fsync(file));
#else
  TC_RETRY(result, fsync(file));
#endif
  return result < 0 ? -errno : 0;
}

/// Takes a lock that belongs to the open file, not to the process. Returns 1 if it was taken, 0 if
/// another holds it.
static inline int tc_lock(int file) {
#if defined(F_OFD_SETLK)
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  int result;
  TC_RETRY(result, fcntl(file, F_OFD_SETLK, &lock));
  if (result == 0)
    return 1;
  return errno == EAGAIN || errno == EACCES ? 0 : -errno;
#else
  return -ENOTSUP;
#endif
}

static inline int tc_set_modified(int file, int64_t seconds,
                                  int64_t nanoseconds) {
  struct timespec times[2] = {
      {.tv_sec = 0, .tv_nsec = UTIME_OMIT},
      {.tv_sec = (time_t)seconds, .tv_nsec = (long)nanoseconds},
  };
  return futimens(file, times) < 0 ? -errno : 0;
}

static inline int tc_renameat(int from, const char *old_path, int to,
                              const char *new_path) {
  return renameat(from, old_path, to, new_path) < 0 ? -errno : 0;
}

static inline int tc_unlinkat(int directory, const char *path, bool is_directory) {
  return unlinkat(directory, path, is_directory ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
}

static inline int tc_mkdirat(int directory, const char *path) {
  return mkdirat(directory, path, 0700) < 0 ? -errno : 0;
}

static inline int tc_fstat(int file, struct stat *status) {
  return fstat(file, status) < 0 ? -errno : 0;
}

static inline int tc_lstatat(int directory, const char *path,
                             struct stat *status) {
  return fstatat(directory, path, status, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/// Nanoseconds since 1970 of the last modification.
static inline int64_t tc_modified(const struct stat *status) {
#if defined(__APPLE__)
  return (int64_t)status->st_mtimespec.tv_sec * 1000000000 + status->st_mtimespec.tv_nsec;
#else
  return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
#endif
}

/// Bytes that an unprivileged process may still write, and all bytes of the volume.
static inline int tc_volume(int file, int64_t *available, int64_t *total) {
  struct statvfs volume;
  int result;
  TC_RETRY(result, fstatvfs(file, &volume));
  if (result < 0)
    return -errno;
  *available = (int64_t)volume.f_bavail * (int64_t)volume.f_frsize;
  *total = (int64_t)volume.f_blocks * (int64_t)volume.f_frsize;
  return 0;
}

#endif
