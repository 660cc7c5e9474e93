/* Whether the runtimes of Swift and Dispatch in a library know the number of the thread that asks.
 *
 * scripts/check-library.sh links it with their objects, as the library is linked; its handler of forks, which comes
 * with the names, finds nothing to do then. */
#include "../../Sources/CTieredCache/forked.c"

int numbers_are_right(void);

int numbers_are_right(void) { return swift_number == gettid() && dispatch_number == gettid(); }
