/* What the library does not let its own parts do to the host. scripts/library.sh links with --wrap, so that
 * their calls of these functions come here; a program in Swift that links the package does not, and nothing
 * calls these there.
 *
 * SwiftNIO would ignore SIGPIPE for the whole process, and the runtime of Swift catch crashes: both are the
 * host's to decide. Threads of Dispatch, SwiftNIO and ours would take signals that the host has handlers
 * for, on a stack that is not the host's. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

void (*__wrap_signal(int number, void (*handler)(int)))(int);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument);

/* Weak: only the linker of the library defines them. */
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
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return result;
}
