/* What a child of a fork has to tell the runtimes that the library has inside: the number of its one thread.
 *
 * The runtimes of Swift and of Dispatch ask for the number of a thread once and keep it; of the thread that loads the
 * library they ask then. Their locks hold the number of the owner, and the kernel, which hands a lock on when two
 * threads want it at once (FUTEX_LOCK_PI), unlocks none for a thread of another number. So in a child that opened a
 * cache the first lock that two threads wanted at once, with the one that forked as the owner, was held for ever.
 *
 * Compiled by scripts/link.sh, for the library and the plug-ins alone: elsewhere the runtimes are not linked in, and
 * the names are not to be had. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

/* Of Swift (ulock.h), and the first field of what Dispatch keeps for each thread (shims/tsd.h). */
#define SWIFT_NUMBER "_ZZN5swift14threading_impl5linux13ulock_get_tidEvE3tid"
#define DISPATCH_NUMBER "__dispatch_tsd"
extern __thread int swift_number __asm__(SWIFT_NUMBER) __attribute__((visibility("hidden")));
extern __thread int dispatch_number __asm__(DISPATCH_NUMBER) __attribute__((visibility("hidden")));

/* Where the runtimes have other names, this does not link. gcc leaves the attribute out of the names that it does not
 * define, and the linker of a shared object would leave those to the loader. */
__asm__(".hidden " SWIFT_NUMBER "\n.hidden " DISPATCH_NUMBER);

static __thread int before;

static void note(void) { before = gettid(); }

static void renumber(void) {
  int now = gettid();
  if (swift_number == before) swift_number = now;
  if (dispatch_number == before) dispatch_number = now;
}

__attribute__((constructor)) static void watch(void) { (void)pthread_atfork(note, NULL, renumber); }
