#ifndef TIEREDCACHE_CZLIB_SHIM_H
#define TIEREDCACHE_CZLIB_SHIM_H
// The same view of the C library as CLinuxCalls has: two modules must not define a type twice.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <zlib.h>
#endif
