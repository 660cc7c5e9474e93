/* What the library does not let its own parts do to the host. scripts/library.sh links with --wrap, so that
 * their calls of these functions come here; a program in Swift that links the package does not, and nothing
 * calls these there.
 *
 * SwiftNIO would ignore SIGPIPE for the whole process, and the runtime of Swift catch crashes: both are the
 * host's to decide. Threads of Dispatch, SwiftNIO and ours would take signals that the host has handlers
 * for, on a stack that is not the host's.
 *
 * Dispatch ends the process where it cannot open a file of /proc, once a second, for each of its threads: it takes that
 * for a thread that was lost. There may be no descriptor left, no /proc at all, as in a chroot, or a rule against it.
 * What the host has is the host's to decide, and so is its end. */
#define _GNU_SOURCE /* O_TMPFILE */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

void (*__wrap_signal(int number, void (*handler)(int)))(int);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument);
int __wrap_open(const char *path, int flags, ...);

/* Weak: only the linker of the library defines them. */
int __real_open(const char *path, int flags, ...) __attribute__((weak));
int __real_sigaction(int number, const struct sigaction *action, struct sigaction *before)
    __attribute__((weak));
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                          void *argument) __attribute__((weak));

void (*__wrap_signal(int number, void (*handler)(int)))(int) {
  (void)number;
  (void)handler;
  return SIG_DFL;
}

/* Tells what is so, and changes nothing. */
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before) {
  (void)action;
  return __real_sigaction ? __real_sigaction(number, NULL, before) : -1;
}

/* A thread inherits the mask. It takes what tells of its own faults, and SIGPROF, which counts its time. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                          void *argument) {
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF};
  sigset_t all, before;
  if (!__real_pthread_create) return EAGAIN;
  sigfillset(&all);
  for (size_t index = 0; index < sizeof(own) / sizeof(own[0]); index++) sigdelset(&all, own[index]);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int result = __real_pthread_create(thread, attributes, body, argument);
  /* A thread that was joined counts as one of the user's for a moment longer; SwiftNIO would end the process. */
  for (int tries = 0; result == EAGAIN && tries < 20; tries++) {
    const struct timespec moment = {0, 1000000};
    (void)nanosleep(&moment, NULL);
    result = __real_pthread_create(thread, attributes, body, argument);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return result;
}

/* For /proc/NUMBER/stat of a thread of Dispatch a number that is no descriptor, whyever it cannot be opened: reading it
 * fails, and Dispatch takes the thread to be asleep. No other part of the library opens such a file. */
int __wrap_open(const char *path, int flags, ...) {
  unsigned mode = 0;
  if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, unsigned);
    va_end(rest);
  }
  if (!__real_open) return -1;
  int file = __real_open(path, flags, mode);
  if (file >= 0 || !path) return file;
  int error = errno, number = 0, length = 0;
  bool is_status = sscanf(path, "/proc/%d/stat%n", &number, &length) == 1 && length > 0 && path[length] == '\0';
  errno = error;
  return is_status ? INT_MAX : file;
}
