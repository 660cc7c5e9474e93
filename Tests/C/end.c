/* Linked to the programs whose leaks the address sanitizer looks for, at their end: before that a moment passes.
 *
 * Threads of the library let go of a cache and its listener shortly after the release of it has returned. Until then
 * they are no leak, but the sanitizer does not see what Swift refers to weakly, or by an enumeration. */
#include <stdlib.h>
#include <unistd.h>

static void wait_for_threads(void) { usleep(500000); }

__attribute__((constructor)) static void begin(void) { (void)atexit(wait_for_threads); }
