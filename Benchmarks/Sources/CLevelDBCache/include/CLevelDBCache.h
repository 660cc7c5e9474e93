/// LevelDB's sharded LRU cache, the peer of the memory tier, as C sees it.
#ifndef CLEVELDBCACHE_H
#define CLEVELDBCACHE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leveldb_bench_cache leveldb_bench_cache;

leveldb_bench_cache *leveldb_bench_create(size_t capacity);
void leveldb_bench_destroy(leveldb_bench_cache *cache);

/// Insert and Release of the handle, as a user that only stores must.
void leveldb_bench_insert(leveldb_bench_cache *cache, const char *key, size_t length, void *value,
                          size_t charge);

/// The same for a value that the cache owns: `release` is called when it leaves. One function for
/// all caches.
void leveldb_bench_insert_owned(leveldb_bench_cache *cache, const char *key, size_t length,
                                void *value, size_t charge, void (*release)(void *));

/// Lookup, Value and Release; null if the key is not there.
void *leveldb_bench_lookup(leveldb_bench_cache *cache, const char *key, size_t length);

#ifdef __cplusplus
}
#endif
#endif
