#ifndef TIEREDCACHE_CXXHASH_SHIM_H
#define TIEREDCACHE_CXXHASH_SHIM_H
#include <xxhash.h>
#endif
