#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "Descriptors.h"
#include "DiskCalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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
#include <sys/ioctl.h>
#include <sys/syscall.h>
#endif

#define TC_RETRY(result, call)                                                 \
  do {                                                                         \
    result = (call);                                                           \
  } while (result < 0 && errno == EINTR)

#if !defined(O_NOATIME)
#define O_NOATIME 0
#endif

int tc_openat_plain(int directory, const char *path, int flags, unsigned mode) {
  int file;
  TC_RETRY(file, openat(directory, path, flags | O_CLOEXEC, mode));
  return file < 0 ? -errno : tc_keep_file(file);
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
  return file < 0 ? -errno : tc_keep_file((int)file);
}
#endif

static void close_parent(int parent, int directory) {
  if (parent != directory)
    (void)close(parent);
}

// Without openat2, one component after the other, none of which may be a link or lead upwards.
static int open_beneath_plainly(int directory, const char *path, int flags, unsigned mode) {
  int parent = directory;
  const char *slash;
  while ((slash = strchr(path, '/')) != NULL) {
    char name[64];
    size_t length = (size_t)(slash - path);
    if (length >= sizeof name) {
      close_parent(parent, directory);
      return -ENAMETOOLONG;
    }
    memcpy(name, path, length);
    name[length] = '\0';
    int next = length == 0 || strcmp(name, "..") == 0
                   ? -EXDEV
                   : tc_openat_plain(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    close_parent(parent, directory);
    if (next < 0)
      return next;
    parent = next;
    path = slash + 1;
  }
  int file = strcmp(path, "..") == 0 ? -EXDEV
                                     : tc_openat_plain(parent, path, flags | O_NOFOLLOW, mode);
  if (file == -EPERM && (flags & O_NOATIME) != 0)
    file = tc_openat_plain(parent, path, (flags & ~O_NOATIME) | O_NOFOLLOW, mode);
  close_parent(parent, directory);
  return file;
}

// An odd umask can take the owner's own bits, and so make a file that cannot be opened again.
static void restore_mode(int file, unsigned mode) {
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
      (status.st_mode & 0777) != mode)
    (void)fchmod(file, mode);
}

static int open_beneath(int directory, const char *path, int flags, unsigned mode, bool cached,
                        bool is_old_kernel) {
  // Our reads must not cost a write of the inode.
  if ((flags & (O_CREAT | O_DIRECTORY)) == 0)
    flags |= O_NOATIME;
#if defined(__linux__)
  // RESOLVE_BENEATH takes locks that all lookups of the machine share. Where a lookup is a hit, its
  // name is made from a digest: without links and "..", there is no way out.
  uint64_t resolve = RESOLVE_NO_SYMLINKS | (cached ? RESOLVE_CACHED : RESOLVE_BENEATH);
  int file = is_old_kernel ? -ENOSYS : tc_openat2(directory, path, flags, mode, resolve);
  if (file == -EPERM && (flags & O_NOATIME) != 0) {
    flags &= ~O_NOATIME;
    file = tc_openat2(directory, path, flags, mode, resolve);
  }
  if (file != -ENOSYS && file != -EPERM)
    return file;
#endif
  if (cached)
    return -EAGAIN;
  return open_beneath_plainly(directory, path, flags, mode);
}

int tc_open_beneath(int directory, const char *path, int flags, unsigned mode, bool cached) {
  return tc_open_beneath_on(directory, path, flags, mode, cached, false);
}

int tc_open_beneath_on(int directory, const char *path, int flags, unsigned mode, bool cached,
                       bool is_old_kernel) {
  int file = open_beneath(directory, path, flags, mode, cached, is_old_kernel);
  if (file >= 0 && (flags & O_CREAT) != 0)
    restore_mode(file, mode);
  return file;
}

int64_t tc_pread_nowait(int file, void *buffer, size_t count,
                                      int64_t offset) {
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

// Linux 6.5; older headers do not know it.
#if defined(__linux__) && !defined(SYS_cachestat)
#define SYS_cachestat 451
#endif

#if defined(__linux__)
// What was cached at a tick of the kernel's clock, for callers that ask thousands of times in it.
struct cached_range {
  int64_t offset, length;
  struct timespec tick;
  int file;
};

static _Thread_local struct cached_range known_ranges[64];
#endif

int tc_is_cached(int file, int64_t offset, int64_t length) {
#if defined(__linux__)
  struct {
    uint64_t offset, length;
  } range = {(uint64_t)offset, (uint64_t)length};
  struct {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } state = {0};
  static long page = 0;
  struct timespec now = {0};
  if (length <= 0)
    return 1;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  struct cached_range *known = &known_ranges[((unsigned)file + (uint64_t)offset / 65536) % 64];
  if (known->file == file && known->offset == offset && known->length == length &&
      known->tick.tv_sec == now.tv_sec && known->tick.tv_nsec == now.tv_nsec)
    return 1;
  if (page == 0)
    page = sysconf(_SC_PAGESIZE);
  if (syscall(SYS_cachestat, file, &range, &state, 0) != 0)
    return 0;
  int64_t pages = (offset + length - 1) / page - offset / page + 1;
  if (state.cached < (uint64_t)pages)
    return 0;
  // A page that is being read counts as cached, and who sends it waits. The kernel reads ahead up to an end.
  char byte;
  struct iovec room = {.iov_base = &byte, .iov_len = 1};
  if (preadv2(file, &room, 1, offset, RWF_NOWAIT) != 1 || preadv2(file, &room, 1, offset + length - 1, RWF_NOWAIT) != 1)
    return 0;
  *known = (struct cached_range){offset, length, now, file};
  return 1;
#else
  return 0;
#endif
}

int64_t tc_pread(int file, void *buffer, size_t count,
                               int64_t offset) {
  ssize_t result;
  TC_RETRY(result, pread(file, buffer, count, offset));
  return result < 0 ? -errno : result;
}

int64_t tc_pwrite_two(int file, const void *first,
                                    size_t first_count, const void *second,
                                    size_t second_count, int64_t offset) {
  struct iovec vectors[2] = {
      {.iov_base = (void *)first, .iov_len = first_count},
      {.iov_base = (void *)second, .iov_len = second_count},
  };
  ssize_t result;
  TC_RETRY(result, pwritev(file, vectors, second_count == 0 ? 1 : 2, offset));
  return result < 0 ? -errno : result;
}

int tc_ftruncate(int file, int64_t length) {
  int result;
  TC_RETRY(result, ftruncate(file, length));
  return result < 0 ? -errno : 0;
}

int tc_punch(int file, int64_t offset, int64_t length) {
#if defined(__linux__)
  int result;
  TC_RETRY(result, fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                             offset, length));
  return result < 0 ? -errno : 0;
#else
  return -ENOTSUP;
#endif
}

int tc_spread(int directory) {
#if defined(__linux__)
  int flags = 0;
  if (ioctl(directory, FS_IOC_GETFLAGS, &flags) != 0)
    return -errno;
  if (flags & FS_TOPDIR_FL)
    return 0;
  flags |= FS_TOPDIR_FL;
  return ioctl(directory, FS_IOC_SETFLAGS, &flags) == 0 ? 0 : -errno;
#else
  return -ENOTSUP;
#endif
}

int tc_sync(int file, bool data_only) {
  int result;
#if defined(__linux__)
  TC_RETRY(result, data_only ? fdatasync(file) : fsync(file));
#else
  TC_RETRY(result, fsync(file));
#endif
  return result < 0 ? -errno : 0;
}

static int set_lock(int file, short type) {
#if defined(F_OFD_SETLK)
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
  int result;
  TC_RETRY(result, fcntl(file, F_OFD_SETLK, &lock));
  if (result == 0)
    return 1;
  return errno == EAGAIN || errno == EACCES ? 0 : -errno;
#else
  return -ENOTSUP;
#endif
}

int tc_lock(int file) { return set_lock(file, F_WRLCK); }

int tc_share(int file) { return set_lock(file, F_RDLCK); }

int tc_is_locked(int file) {
#if defined(F_OFD_GETLK)
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  int result;
  TC_RETRY(result, fcntl(file, F_OFD_GETLK, &lock));
  return result < 0 ? -errno : lock.l_type != F_UNLCK;
#else
  return -ENOTSUP;
#endif
}

void tc_unlock(int file) {
#if defined(F_OFD_SETLK)
  struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1};
  (void)fcntl(file, F_OFD_SETLK, &lock);
#endif
}

// Calls that take a name follow links in all of it but the last component: the directory before that
// is opened first, as files are. `*last` becomes the last component; the result is `directory` itself
// where the name has no other, and is to be closed where it is not.
static int open_parent(int directory, const char *path, const char **last) {
  const char *slash = strrchr(path, '/');
  *last = path;
  if (slash == NULL)
    return directory;
  char name[64];
  size_t length = (size_t)(slash - path);
  if (length >= sizeof name)
    return -ENAMETOOLONG;
  memcpy(name, path, length);
  name[length] = '\0';
  *last = slash + 1;
  return tc_open_beneath(directory, name, O_RDONLY | O_DIRECTORY, 0, false);
}

int tc_renameat(int from, const char *old_path, int to,
                              const char *new_path) {
  const char *old_name, *new_name;
  int old_parent = open_parent(from, old_path, &old_name);
  if (old_parent < 0)
    return old_parent;
  int new_parent = open_parent(to, new_path, &new_name);
  int result = new_parent;
  if (new_parent >= 0) {
    result = renameat(old_parent, old_name, new_parent, new_name) < 0 ? -errno : 0;
    close_parent(new_parent, to);
  }
  close_parent(old_parent, from);
  return result;
}

int tc_unlinkat(int directory, const char *path, bool is_directory) {
  const char *name;
  int parent = open_parent(directory, path, &name);
  if (parent < 0)
    return parent;
  int result = unlinkat(parent, name, is_directory ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
  close_parent(parent, directory);
  return result;
}

int tc_mkdirat(int directory, const char *path) {
  if (mkdirat(directory, path, 0700) < 0)
    return -errno;
  struct stat status;
  if (fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(status.st_mode) && (status.st_mode & 0777) != 0700)
    (void)fchmodat(directory, path, 0700, 0);
  return 0;
}

int tc_claim_root(int directory) {
  struct stat status;
  if (fstat(directory, &status) != 0)
    return -errno;
  uid_t user = geteuid();
  mode_t shared = status.st_mode & (S_IWGRP | S_IWOTH);
  if (status.st_uid == user) {
    if (shared == 0)
      return 0;
    // Where many may make files, as in /tmp, some of what has our names may be another's.
    if ((status.st_mode & S_ISVTX) != 0)
      return -EPERM;
    // A file system without permissions keeps them as they are, and there they mean nothing.
    (void)fchmod(directory, status.st_mode & 07777 & ~shared);
    return 0;
  }
  /* Nor does root believe what another user has put there. */
  if (status.st_uid != 0)
    return -EPERM;
  // Root's, for the group that a service runs as.
  if (status.st_uid == 0 && status.st_gid == getegid())
    shared &= ~(mode_t)S_IWGRP;
  return shared == 0 ? 0 : -EPERM;
}

/* A time before 1970 counts as unknown, one that does not fit as the last that does. */
static int64_t nanoseconds(struct timespec time) {
  int64_t result;
  if (time.tv_sec < 0)
    return 0;
  if (__builtin_mul_overflow((int64_t)time.tv_sec, 1000000000, &result) ||
      __builtin_add_overflow(result, (int64_t)time.tv_nsec, &result))
    return INT64_MAX;
  return result;
}

static void describe(const struct stat *from, struct tc_file_status *to) {
  to->kind = S_ISREG(from->st_mode) ? 1 : S_ISDIR(from->st_mode) ? 2 : 0;
  to->size = from->st_size;
  to->allocated = (int64_t)from->st_blocks * 512;
  to->identity = from->st_ino;
#if defined(__APPLE__)
  to->modified = nanoseconds(from->st_mtimespec);
  to->changed = nanoseconds(from->st_ctimespec);
#else
  to->modified = nanoseconds(from->st_mtim);
  to->changed = nanoseconds(from->st_ctim);
#endif
}

int tc_fstat(int file, struct tc_file_status *status) {
  struct stat found;
  if (fstat(file, &found) < 0)
    return -errno;
  describe(&found, status);
  return 0;
}

int tc_lstatat(int directory, const char *path, struct tc_file_status *status) {
  struct stat found;
  if (fstatat(directory, path, &found, AT_SYMLINK_NOFOLLOW) < 0)
    return -errno;
  describe(&found, status);
  return 0;
}

int tc_volume(int file, int64_t *available, int64_t *total) {
  struct statvfs volume;
  int result;
  TC_RETRY(result, fstatvfs(file, &volume));
  if (result < 0)
    return -errno;
  *available = (int64_t)volume.f_bavail * (int64_t)volume.f_frsize;
  *total = (int64_t)volume.f_blocks * (int64_t)volume.f_frsize;
  return 0;
}
