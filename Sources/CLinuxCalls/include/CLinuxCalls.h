/// The Linux calls that Swift's overlay lacks, and the hash of the memory tier's keys.
///
/// Short ones are `static inline`; the rest is defined in the C files with the headers' names.
#ifndef TIEREDCACHE_CLINUXCALLS_H
#define TIEREDCACHE_CLINUXCALLS_H

#include "Descriptors.h"
#include "DiskCalls.h"
#include "Events.h"
#include "Forks.h"
#include "KeyHash.h"
#include "MessageBus.h"
#include "NamedSockets.h"
#include "Programs.h"
#include "RouteEvents.h"
#include "Signals.h"
#include "SocketCalls.h"
#include "Terminal.h"
#include "Threads.h"
#include "UnnamedFiles.h"

#if defined(__linux__)
#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/// prctl(PR_SET_NAME): names the calling thread; at most 15 bytes are kept.
static inline void tc_set_thread_name(const char *name) {
  prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

/// pthread_self() as a number, asked anew at each call: glibc promises compilers that it is the same all through a
/// function, and a function in Swift goes on at another thread after an await.
uint64_t tc_thread_number(void);

/// Says that the calling thread is there to wait for disks.
void tc_set_waiting_thread(void);

/// Whether it has said so.
bool tc_is_waiting_thread(void);

/// The instant so many nanoseconds from now, which must be below a second.
static inline struct timespec tc_instant_after(long nanoseconds) {
  struct timespec end = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += nanoseconds;
  if (end.tv_nsec >= 1000000000) {
    end.tv_nsec -= 1000000000;
    end.tv_sec += 1;
  }
  return end;
}

/// futex(FUTEX_WAIT_BITSET_PRIVATE): sleeps while the word has this value, until it is woken by one of its bits, or
/// `end` is reached, if there is one; may return early. Returns whether `end` was reached.
static inline bool tc_futex_wait_until(const uint32_t *word, uint32_t value, uint32_t bits, const struct timespec *end) {
  return syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, end, (void *)0, bits) != 0 && errno == ETIMEDOUT;
}

/// futex(FUTEX_WAKE_BITSET_PRIVATE): wakes one that sleeps with one of these bits, the first of them.
static inline void tc_futex_wake_one(const uint32_t *word, uint32_t bits) {
  syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, 1, (void *)0, (void *)0, bits);
}

/// futex(FUTEX_WAIT_PRIVATE): sleeps while the word has this value, for at most this many nanoseconds, which must be
/// below a second; may return early.
static inline void tc_futex_wait_for(const uint32_t *word, uint32_t value, long nanoseconds) {
  struct timespec time = {0, nanoseconds};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, (void *)0, 0);
}

/// futex(FUTEX_WAKE_PRIVATE): wakes up to `count` sleepers.
static inline void tc_futex_wake(const uint32_t *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, (void *)0, (void *)0, 0);
}

/// Tells the processor that the caller spins.
static inline void tc_cpu_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}
#endif

#include <stdint.h>

/// Starts loading a cache line that will be read; any address may be passed.
static inline void tc_prefetch(uintptr_t address) {
  __builtin_prefetch((const void *)address, 0, 3);
}

/// Starts loading a cache line that will be written; any address may be passed.
static inline void tc_prefetch_for_writing(uintptr_t address) {
  __builtin_prefetch((const void *)address, 1, 3);
}

#endif
