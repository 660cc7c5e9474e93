/* The header is a module of its own; its functions are implemented by the Swift target TieredCacheC. */
#include "tieredcache.h"

#include <signal.h>

/* What programs were compiled with: a struct grows at its end alone. */
_Static_assert(offsetof(tiered_options, log_context) + sizeof(void *) == sizeof(tiered_options), "");
_Static_assert(offsetof(tiered_request, read_ahead) + 8 == sizeof(tiered_request), "");
_Static_assert(sizeof(tiered_job_info) == sizeof(size_t) + 56, "");

/* scripts/library.sh links with --wrap=signal and --wrap=sigaction: SwiftNIO would ignore SIGPIPE for the
 * whole process, and the runtime of Swift would print crashes, both of which are the host's to decide. The
 * threads of the library block SIGPIPE themselves. Elsewhere nothing calls these. */
void (*__wrap_signal(int number, void (*handler)(int)))(int);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int __real_sigaction(int number, const struct sigaction *action, struct sigaction *before)
    __attribute__((weak));

void (*__wrap_signal(int number, void (*handler)(int)))(int) {
    (void)number;
    (void)handler;
    return SIG_DFL;
}

int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    (void)action;
    return __real_sigaction ? __real_sigaction(number, NULL, before) : -1;
}
