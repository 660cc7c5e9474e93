/// The disk tier's system calls that Swift's overlay lacks or makes clumsy.
///
/// Each call restarts after EINTR and returns a negative errno on failure, so that nothing can
/// overwrite errno between the call and its reading. No system header is included: whichever module
/// includes one first owns its types, and `timespec` must stay Glibc's.
#ifndef TIEREDCACHE_DISKCALLS_H
#define TIEREDCACHE_DISKCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tc_file_status {
  /// 1 a regular file, 2 a directory, 0 anything else.
  int32_t kind;
  int64_t size;
  int64_t allocated;
  /// Nanoseconds since 1970: content, and content or anything else.
  int64_t modified;
  int64_t changed;
  uint64_t identity;
};

/// openat(2) with O_CLOEXEC.
int tc_openat_plain(int directory, const char *path, int flags, unsigned mode);

/// Opens below `directory` without following a symbolic link in any component. With `cached`, fails
/// with EAGAIN where that would need the disk. O_NOATIME is dropped for files of another user. On
/// kernels or in sandboxes without openat2 each component is opened by itself with O_NOFOLLOW, and
/// with `cached` the answer is always EAGAIN.
int tc_open_beneath(int directory, const char *path, int flags, unsigned mode, bool cached);

/// The same; with `is_old_kernel` as if there were no openat2.
int tc_open_beneath_on(int directory, const char *path, int flags, unsigned mode, bool cached,
                       bool is_old_kernel);

/// Reads what the page cache holds; fails with EAGAIN where the disk would be needed.
int64_t tc_pread_nowait(int file, void *buffer, size_t count, int64_t offset);

/// Whether the page cache holds all of a range that lies within the file. Returns 1 or 0, 0 also where
/// the kernel cannot tell. What was there is taken to be there until the kernel's clock ticks, some
/// milliseconds at most, also if the descriptor stands for another file by then.
int tc_is_cached(int file, int64_t offset, int64_t length);

int64_t tc_pread(int file, void *buffer, size_t count, int64_t offset);

/// Writes two buffers that follow each other, as far as the kernel takes them in one call.
int64_t tc_pwrite_two(int file, const void *first, size_t first_count, const void *second, size_t second_count, int64_t offset);

int tc_ftruncate(int file, int64_t length);

/// Gives the blocks of a range back; the length stays and the range reads as zeros.
int tc_punch(int file, int64_t offset, int64_t length);

/// FS_TOPDIR_FL: asks the file system to lay directories that are made in this one apart from each other.
int tc_spread(int directory);

int tc_sync(int file, bool data_only);

/// Takes a lock that belongs to the open file, not to the process. Returns 1 if it was taken, 0 if
/// another holds it.
int tc_lock(int file);

/// Takes a share of that lock, beside other shares. Returns 1 if it was taken, 0 if another has the
/// whole.
int tc_share(int file);

/// Returns 1 if another open file has the lock or a share of it, 0 if none has.
int tc_is_locked(int file);

/// Gives that lock up, for all that share the open file.
void tc_unlock(int file);

int tc_renameat(int from, const char *old_path, int to, const char *new_path);

int tc_unlinkat(int directory, const char *path, bool is_directory);

/// fstat and fchmod: takes the right to write to a directory of ours from all others, or says that it
/// cannot be ours alone: 0, or a negative errno, EPERM for the latter.
int tc_claim_root(int directory);

int tc_mkdirat(int directory, const char *path);

int tc_fstat(int file, struct tc_file_status *status);

int tc_lstatat(int directory, const char *path, struct tc_file_status *status);

/// Bytes that an unprivileged process may still write, and all bytes of the volume.
int tc_volume(int file, int64_t *available, int64_t *total);

#endif
