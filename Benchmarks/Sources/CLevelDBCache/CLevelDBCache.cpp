#include "CLevelDBCache.h"

#include <leveldb/cache.h>

struct leveldb_bench_cache {
  leveldb::Cache *cache;
};

static void keep(const leveldb::Slice &, void *) {}

static void (*release_value)(void *);

static void drop(const leveldb::Slice &, void *value) { release_value(value); }

void leveldb_bench_insert_owned(leveldb_bench_cache *cache, const char *key, size_t length,
                                void *value, size_t charge, void (*release)(void *)) {
  release_value = release;
  cache->cache->Release(
      cache->cache->Insert(leveldb::Slice(key, length), value, charge, &drop));
}

leveldb_bench_cache *leveldb_bench_create(size_t capacity) {
  return new leveldb_bench_cache{leveldb::NewLRUCache(capacity)};
}

void leveldb_bench_destroy(leveldb_bench_cache *cache) {
  delete cache->cache;
  delete cache;
}

void leveldb_bench_insert(leveldb_bench_cache *cache, const char *key, size_t length, void *value,
                          size_t charge) {
  cache->cache->Release(
      cache->cache->Insert(leveldb::Slice(key, length), value, charge, &keep));
}

void *leveldb_bench_lookup(leveldb_bench_cache *cache, const char *key, size_t length) {
  leveldb::Cache::Handle *handle = cache->cache->Lookup(leveldb::Slice(key, length));
  if (handle == nullptr) return nullptr;
  void *value = cache->cache->Value(handle);
  cache->cache->Release(handle);
  return value;
}
