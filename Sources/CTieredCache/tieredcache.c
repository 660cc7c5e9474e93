/* The header is a module of its own; its functions are implemented by the Swift target TieredCacheC. */
#include "tieredcache.h"

/* What programs were compiled with: a struct grows at its end alone. */
_Static_assert(offsetof(tiered_options, log_context) + sizeof(void *) == sizeof(tiered_options), "");
_Static_assert(offsetof(tiered_request, read_ahead) + 8 == sizeof(tiered_request), "");
_Static_assert(sizeof(tiered_job_info) == sizeof(size_t) + 56, "");
