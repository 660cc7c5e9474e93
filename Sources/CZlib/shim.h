#ifndef TIEREDCACHE_CZLIB_SHIM_H
#define TIEREDCACHE_CZLIB_SHIM_H
// The same view of the C library as Swift's own modules and CLinuxCalls have, hence without
// _GNU_SOURCE: two modules must not define a type twice.
#include <zlib.h>
#endif
